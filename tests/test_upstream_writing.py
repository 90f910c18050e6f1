"""The table of upstream's tests of extraction is whole, and what it names is there."""

import pytest

from tests.test_upstream import names_in
from tests.upstream_writing import (
    ALL,
    DEPARTURES,
    GUARD,
    INPUT,
    PHASE_1,
    SANITIZER,
    STARTUP,
    WINDOW,
)


def test_all_22_tests_of_extraction_are_listed():
    sizes = [len(each) for each in (PHASE_1, INPUT, GUARD, WINDOW, SANITIZER, STARTUP)]

    assert sizes == [7, 4, 3, 2, 2, 4]
    assert len(ALL) == 22


@pytest.mark.parametrize("node", sorted({node for nodes in ALL.values() for node in nodes}))
def test_every_test_that_is_named_exists(node):
    path, _, name = node.partition("::")

    assert name in names_in(path)


def test_each_has_a_test_of_ours_and_what_departs_is_listed():
    assert all(ALL.values())
    assert DEPARTURES.keys() <= ALL.keys()
