"""Whatever path a model writes, a tool answers with what lies in the memory, or with words.

The folder has a link out of it, a folder that is one, a link within, a pipe, and hidden files; each
of those ends in a text with the canary, which no answer may hold. The controls find it where it is.
"""

import os

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from threadbook.adapters.ranking import Ranking
from threadbook.application.questions import ListArguments, ReadArguments, SearchArguments
from threadbook.application.ranked import RankedArguments, RankedSearch
from threadbook.application.reading import Unreadable
from threadbook.application.tools import Tools

from tests.application.homes import FERN, Home, Session

CANARY = "xanthippe"
PARTS = [
    *("", ".", "..", "...", "~", "\\", "C:", "\0", "\n", "ü", "x" * 300),
    *("MEMORY.md", "memory_summary.md", "raw_memories.md", "rollout_summaries", "beside"),
    *("link.md", "linked", "secret.md", "within.md", "pipe.md", ".git", ".hidden.md", "latin.md"),
    *("phase2_workspace_diff.md", "outside", "etc", "passwd", "home"),
]
PATHS = st.one_of(
    st.lists(st.sampled_from(PARTS), max_size=6).map("/".join),
    st.text(max_size=12).filter(lambda text: text.isprintable() or "\0" in text),
)


@pytest.fixture(scope="module")
def tools(tmp_path_factory):
    home = Home(tmp_path_factory.mktemp("inside"))
    home.write(Session(number=1))
    home.run()
    folder, outside = home.root(), home.folder / "outside"
    outside.mkdir()
    (outside / "secret.md").write_text(CANARY)
    (folder / "beside").mkdir()
    (folder / "beside" / "plain.md").write_text("always run make check\n")
    (folder / "beside" / "within.md").symlink_to("../.hidden.md")
    (folder / "link.md").symlink_to(outside / "secret.md")
    (folder / "linked").symlink_to(outside, target_is_directory=True)
    (folder / ".hidden.md").write_text(CANARY)
    (folder / ".git" / "secret.md").write_text(CANARY)
    (folder / "latin.md").write_bytes(b"\xff" + CANARY.encode())
    os.mkfifo(folder / "pipe.md")
    assert (folder / "link.md").read_text() == CANARY
    assert (folder / "beside" / "within.md").read_text() == CANARY
    yield Tools(home.memory._around, cwd=FERN, actor="agent:mcp")
    home.memory.close()


ASKED = {
    "list": lambda tools, path: tools.list(ListArguments(path=path)).entries,
    "read": lambda tools, path: tools.read(ReadArguments(path=path)).content,
    "search": lambda tools, path: (
        tools.search(
            SearchArguments(queries=(CANARY, "make"), path=path, case_sensitive=False)
        ).matches
    ),
    "search_ranked": lambda tools, path: (
        RankedSearch(Ranking)
        .answer(tools, RankedArguments(query=f"{CANARY} make check", path=path))
        .results
    ),
}


def test_no_path_leads_out(tools):
    answered: set[str] = set()
    refused: set[str] = set()

    @settings(max_examples=150)
    @given(PATHS)
    @example("linked/secret.md")
    @example("link.md")
    @example("beside/within.md")
    @example("beside/../../outside/secret.md")
    @example(".git/secret.md")
    @example("latin.md")
    @example("beside/plain.md")
    @example("beside")
    @example("")
    def nothing_of_outside_is_told(path):
        for name, ask in ASKED.items():
            try:
                told = str(ask(tools, path))
            except Unreadable as error:
                refused.add(error.code)
                told = str(error)
            else:
                answered.add(name)
            assert CANARY not in told

    nothing_of_outside_is_told()

    assert answered == set(ASKED)
    assert refused >= {"invalid_path", "not_found", "not_file", "not_text"}
