"""A folder without bottom, which any program can make, brings nothing down."""

import os
import subprocess

import pytest
from threadbook.adapters.checkup import home_findings
from threadbook.adapters.sweep import Sweep
from threadbook.application.ports import Failure
from threadbook.application.questions import ListArguments, ReadArguments, SearchArguments
from threadbook.application.reading import NotFound
from threadbook.application.tools import Tools

from tests.application.homes import FERN, MOSS, Session

A = Session(number=1)
B = Session(number=2, cwd=MOSS, says=("please never use tabs in this project, always spaces",))


@pytest.fixture
def deep(home):
    home.write(A, B)
    home.run()
    sunk(home.root(home.scope_of(A)))
    yield home
    subprocess.run(["rm", "-rf", home.path], check=True)  # Python's own way of it recurses.


def sunk(folder, *, levels=1_100):
    """Deeper than Python recurses."""
    held = os.open(folder, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir("d", dir_fd=held)
        below = os.open("d", os.O_RDONLY, dir_fd=held)
        os.close(held)
        held = below
    os.close(os.open("make.md", os.O_CREAT | os.O_WRONLY, dir_fd=held))
    os.close(held)


def test_what_is_asked_is_answered_down_to_the_depth_that_a_memory_has(deep):
    tools = Tools(deep.memory._around, cwd=FERN, actor="agent:mcp")

    found = tools.search(SearchArguments(queries=("make check",)))
    way = tools.list(ListArguments(path="/".join(["d"] * 15)))

    assert found.matches
    assert [each.path for each in way.entries] == ["/".join(["d"] * 16)]
    with pytest.raises(NotFound):
        tools.read(ReadArguments(path="/".join(["d"] * 1_100) + "/make.md"))


def test_a_run_says_what_is_in_the_way_and_brings_the_other_projects_up_to_date(deep):
    deep.write(
        Session(number=3, says=("from now on always run make fern before you commit",)),
        Session(number=4, says=("always wear a helmet when you deploy",), cwd=MOSS),
    )

    with pytest.raises(Failure, match=r"d .* folders deep.* move it away"):
        deep.run()

    moss = deep.root(deep.scope_of(B))
    assert "helmet" in (moss / "MEMORY.md").read_text()


def test_a_reset_empties_it_and_what_was_set_aside(deep):
    root = deep.root(deep.scope_of(A))
    aside = root.with_name(f"{root.name}.edits")
    aside.mkdir()
    sunk(aside)

    deep.memory.reset()

    assert list(root.iterdir()) == []
    assert not aside.exists()


def test_doctor_looks_at_what_it_can_reach(deep):
    assert {each.what for each in home_findings(deep.path)} >= {"permissions", "secrets"}


def test_a_sweep_reads_it_to_the_bottom(deep):
    found = {piece.file for piece in Sweep(deep.path).pieces()}

    assert any(each.endswith("threadbook.sqlite") for each in found)
    assert any(each.endswith("/d/make.md") for each in found)
