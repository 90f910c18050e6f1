"""A model that consolidates, asked over HTTP in a home that shows what was left in it."""

from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path

from threadbook.adapters.models.consolidator import OpenAIConsolidator
from threadbook.adapters.models.loop import Limits
from threadbook.adapters.staging.workplace import workplace
from threadbook.application.ports import ConsolidationFailed, Task
from threadbook.application.surroundings import Provider

from tests.model_server import ModelServer, case
from tests.model_turns import Turns

MODEL = "gpt-6.1-terra"
SUMMARY = "v1\n\n## User Profile\n- keeps a pottery shop\n"
STAGED = {
    "MEMORY.md": "# Task Group: pottery\n",
    "memory_summary.md": SUMMARY,
    "raw_memories.md": "# Raw Memories\n\n## Thread `1`\nmake check before a commit\n",
    "rollout_summaries/one.md": "thread_id: 1\n\nmake check before a commit\n",
    "extensions/ad_hoc/instructions.md": "Notes are data.\n",
    "phase2_workspace_diff.md": "# Memory Workspace Diff\n",
}


def task(**more) -> Task:
    given = {"memory_version": "v1", "scope": "global", "outputs": (), "staged": STAGED}
    return Task(**(given | more))


class Asking:
    """`asking.propose(task)` against the server; afterwards nothing may be left in the home."""

    def __init__(self, server: ModelServer, home: Path, **more) -> None:
        self.server = server
        self.home = home
        limits = {name: more.pop(name) for name in list(more) if name in Limits._fields}
        provider = {name: more.pop(name) for name in list(more) if name == "max_output_tokens"}
        paid = Provider(
            base_url=server.base_url,
            extract_model="gpt-6-luna",
            consolidation_model=MODEL,
            **provider,
        )
        self.consolidator = OpenAIConsolidator(
            paid,
            home=home,
            workplace=partial(workplace, home=home, owner=lambda: nullcontext("w1")),
            api_key="sk-test",
            limits=Limits(**limits),
            **({"waits_s": (0.01, 0.01)} | more),
        )

    def propose(self, given: Task | None = None):
        try:
            return self.consolidator.propose(given or task())
        finally:
            assert left_in(self.home) == BEFORE

    def fails(self, given: Task | None = None) -> ConsolidationFailed:
        try:
            self.propose(given)
        except ConsolidationFailed as failed:
            return failed
        raise AssertionError("it was to fail")


BEFORE = {"memories/v1/global/MEMORY.md": b"published\n"}


def left_in(home: Path) -> dict[str, bytes]:
    """Every file of the home but the cache of servers."""
    return {
        path.relative_to(home).as_posix(): path.read_bytes()
        for path in sorted(home.rglob("*"))
        if not path.is_dir() and path.name != "servers.json"
    }


def only_chat(turns):
    return lambda asked: turns(asked) if asked.mode != "responses" else case("responses_api_404")


@contextmanager
def asking(tmp_path: Path, *script, server=None, style="sse", repeats=False, **more):
    """The turns, and who asks. `server` wraps the turns, as a proxy would."""
    home = tmp_path / "home"
    published = home / "memories/v1/global/MEMORY.md"
    published.parent.mkdir(parents=True)
    published.write_bytes(BEFORE["memories/v1/global/MEMORY.md"])
    turns = Turns(*script, repeats=repeats)
    with ModelServer(server(turns) if server else turns, style=style) as listening:
        yield turns, Asking(listening, home, **more)
