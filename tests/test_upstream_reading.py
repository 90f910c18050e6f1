"""The table of upstream's tests of the tools is whole, and what it names is there."""

import pytest

from tests.test_upstream import names_in
from tests.upstream_reading import GAPS, TOOLS


def test_all_31_tests_of_the_tools_are_listed_each_with_one_of_ours():
    assert len(TOOLS) == 31
    assert all((TOOLS | GAPS).values())


@pytest.mark.parametrize(
    "node", sorted({node for nodes in (TOOLS | GAPS).values() for node in nodes})
)
def test_every_test_that_is_named_exists(node):
    path, _, name = node.partition("::")

    assert name in names_in(path)
