"""The table of upstream's tests and scenarios of phase 2 is whole, and what it names is there."""

import pytest

from tests.test_upstream import SECTIONS, names_in
from tests.upstream_consolidating import ALL, DEPARTURES, NOT_OURS, PARTS

SIZES = {
    "files": 6,
    "prompts": 1,
    "workspaces": 7,
    "control": 2,
    "extensions": 4,
    "agent": 2,
    "startup": 13,
    "baseline": 6,
    "historical": 12,
    "seen": 36,
}


def test_every_test_and_scenario_of_phase_2_is_listed_once():
    assert {part: len(rows) for part, rows in PARTS.items()} == SIZES
    assert len(ALL) == sum(SIZES.values())


@pytest.mark.parametrize("node", sorted({node for nodes in ALL.values() for node in nodes}))
def test_every_test_that_is_named_exists(node):
    path, _, name = node.partition("::")

    assert name in names_in(path)


def test_what_has_no_test_of_ours_is_said():
    bare = {name for name, nodes in ALL.items() if not nodes}

    assert bare <= NOT_OURS.keys() | DEPARTURES.keys()
    assert NOT_OURS.keys() <= bare


def test_every_departure_is_of_a_listed_row_and_names_what_decided_it():
    assert DEPARTURES.keys() | NOT_OURS.keys() <= ALL.keys()
    assert not DEPARTURES.keys() & NOT_OURS.keys()
    assert all(NOT_OURS.values())
    for section, what in DEPARTURES.values():
        assert section in SECTIONS
        assert what
