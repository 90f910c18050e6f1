"""Every row of the table finds its example alone, and leaves its counter-example alone."""

import pytest
from threadbook.domain.redaction import RULES, redact
from threadbook.domain.redaction_rules import Rule

from tests.fixtures.secrets.examples import filled

SEEDS = ("one", "two", "three")


def names(rule: Rule) -> str:
    return rule.name


@pytest.mark.parametrize("rule", RULES, ids=names)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_rule_hides_its_example_and_nothing_round_it(rule, seed):
    example = filled(rule.example, seed + rule.name)
    assert example.secrets

    hidden = redact(example.text)

    assert hidden == example.hidden


@pytest.mark.parametrize("rule", RULES, ids=names)
def test_a_rule_is_what_finds_its_example(rule):
    example = filled(rule.example, rule.name)

    hidden = redact(example.text, rules=(rule,))

    assert hidden == example.hidden


@pytest.mark.parametrize("rule", RULES, ids=names)
def test_a_rule_leaves_its_counter_example(rule):
    counter = filled(rule.counter, rule.name).text
    assert any(anchor in counter.lower() for anchor in rule.anchors) or rule.before

    hidden = redact(counter)

    assert hidden == counter


def test_no_two_rules_have_one_name():
    assert len({rule.name for rule in RULES}) == len(RULES)


def test_anchors_are_written_as_they_are_looked_up():
    for rule in RULES:
        assert all(anchor == anchor.lower() for anchor in rule.anchors), rule.name
