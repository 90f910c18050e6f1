"""Each prompt states what the table demands of it, once; no section is without a demand."""

import re

import pytest
from threadbook.domain.redaction import MARKER, redact
from threadbook.prompts import prompt

from tests.prompts.demands import BYTES_MAX, DEMANDS, OTHERS
from tests.prompts.texts import FOLDER, sections, words


@pytest.mark.parametrize(
    ("name", "demand"), [(name, demand) for name in DEMANDS for demand in DEMANDS[name]]
)
def test_a_prompt_states_its_demand_once(name, demand):
    text = words(prompt(name))

    assert text.count(DEMANDS[name][demand]) == 1


@pytest.mark.parametrize("name", [name for name in DEMANDS if "## " in prompt(name)])
def test_every_section_of_a_prompt_holds_a_demand_that_is_named_here(name):
    unnamed = [
        section.split(" ", 3)[:3]
        for section in sections(name)
        if not any(demand in section for demand in DEMANDS[name].values())
        and not section.startswith("## An example")
    ]

    assert unnamed == []


@pytest.mark.parametrize("name", DEMANDS)
def test_a_prompt_keeps_within_its_size(name):
    assert len(prompt(name).encode()) <= BYTES_MAX[name]


@pytest.mark.parametrize("name", DEMANDS)
def test_a_prompt_is_plain_text_but_for_a_gap_and_a_dash_that_are_codexs(name):
    text = prompt(name)

    assert set(re.findall(r"[^\x00-\x7f]", text)) <= {"…", "—"}
    assert text.endswith("\n")
    assert not re.search(r"[ \t]$", text, re.MULTILINE)


@pytest.mark.parametrize("name", DEMANDS)
def test_a_prompt_that_speaks_of_secrets_holds_nothing_that_looks_like_one(name):
    assert redact(prompt(name)) == prompt(name)


@pytest.mark.parametrize("name", [name for name in DEMANDS if "secrets" in DEMANDS[name]])
def test_the_mark_for_a_secret_is_the_one_that_the_program_writes(name):
    assert set(re.findall(r"\[REDACTED\w*\]", prompt(name))) == {MARKER}


def test_a_prompt_is_known_to_the_table_or_to_other_tests():
    there = {path.stem for path in FOLDER.glob("*.md")}

    assert there - set(DEMANDS) <= OTHERS
    assert set(DEMANDS) <= there
    assert set(BYTES_MAX) == set(DEMANDS)
