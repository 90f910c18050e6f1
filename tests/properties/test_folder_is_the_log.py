"""The folder is what the log renders, whatever happened to it and to whoever wrote it; and nothing
that a person did to it is lost.

Sessions come, change and go, an agent or the offline model consolidates, well or badly, a person
edits what was published, and a run may be killed at any write of the log or the folder. After each
run that ended, the folder holds byte for byte what the log says; every line that a person added
stands in it until they take it out or forget a session that says it too; what they took out is not
there; and another machine renders the same bytes from a copy of the database.
"""

import shutil
import tempfile
from pathlib import Path

from hypothesis import Phase, event, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from msgspec.structs import replace
from threadbook.adapters import git
from threadbook.adapters.workspace import Workspace
from threadbook.application import startup
from threadbook.application.ports import ConsolidationFailed
from threadbook.application.roots import Root, wanted
from threadbook.domain.artifact import unmarked

from tests.application.agents import Agent, honest, with_line
from tests.application.homes import DAY_S, Home, Session, content

WORDS = ("kestrel", "walnut", "granite", "harbour", "lantern", "meadow")
MINE = ("- mine: buy milk", "- mine: call ann", "my own words", "## My own heading")


class Killed(BaseException):
    pass


class Dying(Workspace):
    """A folder whose writer is killed before its nth write."""

    def __init__(self, home, *where, left):
        super().__init__(home, *where, git=git)
        self.left = left

    def dies(self):
        self.left[0] -= 1
        if self.left[0] == 0:
            raise Killed

    def write(self, path, text, *, flushed=True):
        self.dies()
        return super().write(path, text, flushed=flushed)

    def reset_baseline(self, now):
        self.dies()
        super().reset_baseline(now)

    def note_rendered(self, position):
        self.dies()
        super().note_rendered(position)


def broken(_):
    raise ConsolidationFailed("failed_agent")


def forgiven(task):
    """Without the line that nobody said, and with what a person did."""
    files = honest(task)
    name = "memory_summary.md"
    return {**files, name: files[name].replace("- nobody said so\n", "")}


def spoiling(task):
    return dict.fromkeys(honest(task), "spoiled\n")


class OnAFolder(RuleBasedStateMachine):
    @initialize(version=st.sampled_from(["v1", "v2"]))
    def begins(self, version):
        self.folder = Path(tempfile.mkdtemp())
        self.home = Home(self.folder, version=version)
        self.version = version
        self.sessions = {}
        self.added: set[str] = set()
        self.removed: set[str] = set()
        self.is_rendered = True
        self.learns("kestrel")
        self.runs("offline", 0)

    @property
    def files(self):
        return ["memory_summary.md"] if self.version == "v2" else ["MEMORY.md", "memory_summary.md"]

    def learns(self, word):
        number = WORDS.index(word) + 1
        ended = int(self.home.now) - DAY_S
        says = (f"from now on always feed the {word} first", *self.sessions.get(word, ()))
        self.sessions[word] = ("and more",)
        self.home.write(Session(number=number, says=says, ended_at=ended))

    @rule(word=st.sampled_from(WORDS))
    def a_session_ends(self, word):
        self.home.later(60)
        self.learns(word)

    @precondition(lambda self: self.is_rendered)
    @rule(
        file=st.integers(0, 1),
        line=st.sampled_from(MINE),
        at=st.integers(1, 40),
    )
    def a_person_adds(self, file, line, at):
        path = self.home.root() / self.files[file % len(self.files)]
        lines = path.read_text().split("\n")
        if line in lines or (path.name, line) in self.added:
            return
        lines.insert(max(1, min(at, len(lines) - 1)), line)
        path.write_text("\n".join(lines))
        self.added.add((path.name, line))
        self.removed.discard((path.name, line))
        self.is_rendered = False
        event("added")

    @precondition(lambda self: self.is_rendered)
    @rule(file=st.integers(0, 1), number=st.integers(0, 30))
    def a_person_removes(self, file, number):
        path = self.home.root() / self.files[file % len(self.files)]
        lines = path.read_text().split("\n")
        found = [line for line in lines if line.startswith("- ") and "wrote" in line]
        found += [line for line in lines if (path.name, line) in self.added]
        if not found:
            return
        line = found[number % len(found)]
        path.write_text("\n".join(each for each in lines if each != line))
        if (path.name, line) in self.added:
            self.added.discard((path.name, line))
            event("removed their own")
        else:
            self.removed.add((path.name, unmarked(line)))
            event("removed ours")
        self.is_rendered = False

    @rule(word=st.sampled_from(WORDS), mode=st.sampled_from(["enabled", "disabled"]))
    def a_mode_is_set(self, word, mode):
        known = {each.thread_id for each in self.home.memory.threads()}
        session = Session(number=WORDS.index(word) + 1)
        if session.id in known:
            self.home.memory.set_mode(session.id, mode)
            self.finishes()

    @rule(
        who=st.sampled_from(["offline", "agent", "repairs", "spoils", "fails"]),
        dies=st.sampled_from([0, 0, 0, 1, 2, 3, 5, 8]),
    )
    def runs(self, who, dies):
        self.home.later(DAY_S / 2)
        around = self.home.memory._around
        agents = {
            "agent": Agent(),
            "repairs": Agent(with_line("memory_summary.md", "- nobody said so"), forgiven, honest),
            "spoils": Agent(spoiling),
            "fails": Agent(broken),
        }
        left = [dies]
        around = replace(
            around,
            consolidator=agents.get(who, around.consolidator),
            workspace=lambda *where: Dying(self.home.path, *where, left=left),
        )
        before = None if not self.is_rendered else content(self.home.root()) if self.made else None
        try:
            with self.home.memory._workers.at_work(around.worker_id):
                report = startup.run(around, [self.home.sessions])
        except Killed:
            event("killed")
            self.is_rendered = False
            self.finishes()
            return
        statuses = {root.status for root in report.phase2}
        event(f"{who}: {sorted(statuses)}")
        if "failed" in statuses:
            if before is not None:
                assert content(self.home.root()) == before
            self.is_rendered = False
            self.home.later(DAY_S)
            self.finishes()
            return
        self.is_rendered = True

    @property
    def made(self):
        return bool(self.home.roots())

    def finishes(self):
        """The next run, which nobody disturbs."""
        self.home.later(DAY_S / 2).run()
        self.is_rendered = True

    @invariant()
    def the_folder_is_what_the_log_renders(self):
        if not getattr(self, "home", None) or not self.is_rendered or not self.made:
            return
        root = self.home.root()
        with self.home.memory.store.reading() as view:
            scope = self.home.memory.threads()[0].scope
            said = wanted(view, Root(memory_version=self.version, scope=scope))
        there = content(root)
        assert there == said
        for name, line in self.added:
            assert line in there[name].split("\n"), (name, line)
        for name, line in self.removed:
            assert line not in map(unmarked, there[name].split("\n")), (name, line)
        assert self.home.memory.replay_verify() == []

    def teardown(self):
        if not getattr(self, "home", None):
            return
        if self.made:
            self.finishes()
            self.the_folder_is_what_the_log_renders()
            self.elsewhere_the_bytes_are_the_same()
        self.home.memory.close()
        shutil.rmtree(self.folder)

    def elsewhere_the_bytes_are_the_same(self):
        there = self.folder / "elsewhere"
        there.mkdir()
        here = content(self.home.root())
        self.home.memory.close()
        (there / "home").mkdir(mode=0o700)
        for name in ("threadbook.sqlite", "head", "machine"):
            if (self.home.path / name).exists():
                shutil.copy(self.home.path / name, there / "home" / name)
        copied = Home(there, now=self.home.now, version=self.version)
        copied.run()
        assert content(copied.root()) == here
        copied.memory.close()
        self.home.memory = self.home.another()


TestTheFolder = OnAFolder.TestCase
TestTheFolder.settings = settings(
    max_examples=8, stateful_step_count=12, deadline=None, phases=[Phase.explicit, Phase.generate]
)
