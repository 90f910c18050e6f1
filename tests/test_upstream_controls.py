"""The tables of upstream's tests of injection, settings, controls and import name what is there."""

import pytest

from tests.test_upstream import names_in
from tests.upstream_controls import (
    CONTROLS,
    EXTERNAL_MEMORY,
    INJECTION,
    NOT_OURS,
    SESSIONS,
    SETTINGS_TABLE,
)

TABLES = (INJECTION, SETTINGS_TABLE, CONTROLS, EXTERNAL_MEMORY, SESSIONS)
ALL = {name: nodes for table in TABLES for name, nodes in table.items()}


def test_every_row_is_listed_once_with_a_test_of_ours_or_a_reason():
    assert len(ALL) == sum(map(len, TABLES)) == 36
    assert all(ALL.values())
    assert not ALL.keys() & NOT_OURS.keys()
    assert all(NOT_OURS.values())


@pytest.mark.parametrize("node", sorted({node for nodes in ALL.values() for node in nodes}))
def test_every_test_that_is_named_exists(node):
    path, _, name = node.partition("::")

    assert name in names_in(path)
