"""The table of upstream's tests of citations and pollution is whole; what it names is there."""

import pytest

from tests.test_upstream import SECTIONS, names_in
from tests.upstream_citations import CITATIONS, DEPARTURES, GAPS, POLLUTING

NAMED = CITATIONS | POLLUTING | GAPS


def test_all_22_tests_are_listed_and_what_has_none_of_ours_is_a_departure():
    assert len(CITATIONS) + len(POLLUTING) == 22
    assert {name for name, nodes in NAMED.items() if not nodes} <= DEPARTURES.keys()


def test_every_departure_is_of_a_listed_test_and_names_what_decided_it():
    assert DEPARTURES.keys() <= NAMED.keys()
    for section, what in DEPARTURES.values():
        assert section in SECTIONS
        assert what


@pytest.mark.parametrize("node", sorted({node for nodes in NAMED.values() for node in nodes}))
def test_every_test_that_is_named_exists(node):
    path, _, name = node.partition("::")

    assert name in names_in(path)
