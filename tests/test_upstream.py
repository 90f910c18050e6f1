"""The table of upstream's tests is whole, and what it names is there."""

import ast
from functools import cache
from pathlib import Path

import pytest

from tests.upstream import BESIDE, DEPARTURES, IN_THE_STORE, OURS, SCENARIO, STORE

ROOT = Path(__file__).parents[1]
SECTIONS = {str(number) for number in range(1, 12)}


@cache
def names_in(path: str) -> frozenset[str]:
    """Functions, and methods as Class::method, of a test file."""
    found = set()
    for node in ast.parse((ROOT / path).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef):
            found.add(node.name)
        if isinstance(node, ast.ClassDef):
            methods = [each for each in node.body if isinstance(each, ast.FunctionDef)]
            found |= {f"{node.name}::{method.name}" for method in methods}
    return frozenset(found)


def test_all_39_tests_and_the_scenario_are_listed():
    assert len(OURS.keys() - {SCENARIO}) == 39
    assert SCENARIO in OURS


@pytest.mark.parametrize(
    "node",
    sorted({node for nodes in (OURS | BESIDE).values() for node in nodes} - IN_THE_STORE),
)
def test_every_test_that_is_named_exists(node):
    path, _, name = node.partition("::")

    assert name in names_in(path)


def test_every_test_that_is_named_in_the_store_exists():
    path = STORE.removesuffix("::")

    missing = {node.partition("::")[2] for node in IN_THE_STORE} - names_in(path)

    assert not missing


def test_what_has_no_test_of_ours_is_a_departure():
    bare = {name for name, nodes in OURS.items() if not nodes}

    assert bare <= DEPARTURES.keys()


def test_every_departure_is_of_a_listed_test_and_names_what_decided_it():
    assert DEPARTURES.keys() <= OURS.keys()
    for section, what in DEPARTURES.values():
        assert section in SECTIONS
        assert what
