"""A home with a clock that stands still, and sessions written into a folder beside it."""

import json
import os
from collections.abc import Iterable
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace
from threadbook import Memory
from threadbook.adapters.offline import OfflineConsolidator, OfflineExtractor
from threadbook.application import startup
from threadbook.application.surroundings import Surroundings
from threadbook.domain.events import MemoryShown, session_stream
from threadbook.projections import jobs, stage1_outputs

from tests.adapters.stores import dsn_beside
from tests.support import DAY_S, HOUR_S, NOON

ROOT = Path(__file__).resolve().parents[2]
FIXTURES = ROOT / "tests" / "fixtures"
ROLLOUTS = FIXTURES / "rollouts"
FERN, MOSS = "/srv/fern", "/srv/moss"
FIXTURE_DAY = 1_795_960_800  # 2026-11-29T14:00:00Z, when every fixture session was at rest.
HALF_A_DAY_LATER = FIXTURE_DAY + 12 * HOUR_S


def thread_id(number: int) -> str:
    """A UUID of version 7, so that file names are Codex's own; ascending with the number."""
    return f"019b7a00-{number:04x}-7000-8000-{number:012x}"


def rfc(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")[:-6] + "Z"


class Session(Struct, kw_only=True):
    """A Codex session of one wish that lasts, at rest for seven hours at NOON."""

    number: int
    says: tuple[str, ...] = ("from now on always run make check before you commit",)
    cwd: str | None = FERN
    ended_at: int = NOON - 7 * HOUR_S
    source: str = "cli"
    repository_url: str | None = None
    memory_mode: str | None = None
    searched: bool = False

    @property
    def id(self) -> str:
        return thread_id(self.number)

    def records(self) -> list[dict[str, object]]:
        began = self.ended_at - 60
        meta: dict[str, object] = {
            "id": self.id,
            "timestamp": rfc(began),
            "source": self.source,
            "originator": "codex_cli",
        }
        if self.cwd:
            meta["cwd"] = self.cwd
        if self.repository_url:
            meta["git"] = {"branch": "main", "repository_url": self.repository_url}
        if self.memory_mode:
            meta["memory_mode"] = self.memory_mode
        found = [{"timestamp": rfc(began), "type": "session_meta", "payload": meta}]
        for at, text in enumerate(self.says):
            last = at == len(self.says) - 1
            content = [{"type": "input_text", "text": text}]
            found.append(
                {
                    "timestamp": rfc(self.ended_at if last else began + at),
                    "type": "response_item",
                    "payload": {"type": "message", "role": "user", "content": content},
                }
            )
        if self.searched:
            call = {"type": "web_search_call", "status": "completed", "action": {"query": "x"}}
            stamp = rfc(self.ended_at)
            found.append({"timestamp": stamp, "type": "response_item", "payload": call})
        return found

    def text(self) -> str:
        return "".join(json.dumps(each) + "\n" for each in self.records())


class Home:
    """`home.run()` is one whole run at `home.now`; `home.memory` asks and says what people do."""

    def __init__(self, folder: Path, *, now: float = NOON, **settings: object) -> None:
        self.folder = folder
        self.path = folder / "home"
        self.sessions = folder / "sessions"
        self.sessions.mkdir(exist_ok=True)
        self.now = now
        dsn = dsn_beside(self.path)
        self.settings = {"database": dsn, **settings} if dsn else settings
        self.memory = self.another()

    def another(self, **settings: object) -> Memory:
        """One more program on the same home."""
        return Memory.open(
            self.path, clock=lambda: self.now, settings={**self.settings, **settings}
        )

    def reopened(self, **settings: object) -> "Home":
        self.memory.close()
        self.settings |= settings
        self.memory = self.another()
        return self

    def write(self, *sessions: Session, folder: str = ".") -> None:
        for each in sessions:
            path = self.sessions / folder / f"rollout-{each.id}.jsonl"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(each.text())
            os.utime(path, (each.ended_at, each.ended_at))

    def file(self, session: Session) -> Path:
        return self.sessions / f"rollout-{session.id}.jsonl"

    def run(self, sessions: Iterable[Path] | None = None, **options):
        return self.memory.run(sessions=list(sessions or [self.sessions]), **options)

    def run_with(self, *, consolidator=None, extractor=None, memory: Memory | None = None, **more):
        """A run whose model is another one: the ports are all that the run knows of it."""
        memory = memory or self.memory
        around = replace(
            memory._around,
            consolidator=consolidator or memory._around.consolidator,
            extractor=extractor or memory._around.extractor,
            **more,
        )
        with memory._workers.at_work(around.worker_id):
            return startup.run(around, [self.sessions])

    def later(self, seconds: float) -> "Home":
        self.now += seconds
        return self

    @property
    def position(self) -> int:
        with self.memory.store.reading() as view:
            return view.position

    def log(self, after: int = 0) -> list:
        return list(self.memory.log(after=after))

    def types(self, after: int = 0) -> list[str]:
        return [each.type for each in self.log(after)]

    def events(self, kind: type, after: int = 0) -> list:
        return [each.event for each in self.log(after) if isinstance(each.event, kind)]

    def root(self, scope: str | None = None, *, version: str | None = None) -> Path:
        """The only memory folder of the version in force, or of another, or the one of a scope."""
        found = self.roots(version=version)
        if scope is not None:
            return self.path / "memories" / (version or self.version) / scope.replace(":", "-")
        assert len(found) == 1, found
        return found[0]

    @property
    def version(self) -> str:
        return str(self.settings.get("version", "v1"))

    def roots(self, *, version: str | None = None) -> list[Path]:
        folder = self.path / "memories" / (version or self.version)
        return sorted(p for p in folder.glob("*") if p.is_dir() and p.suffix != ".edits")

    def outputs(self) -> list:
        with self.memory.store.reading() as view:
            return view.rows(stage1_outputs, ())

    def phase2_job(self, scope: str):
        with self.memory.store.reading() as view:
            return view.rows(jobs, (jobs.PHASE2, scope, self.version))[0]

    def scope_of(self, session: Session) -> str:
        with self.memory.store.reading() as view:
            return view.value(
                "SELECT scope FROM threads WHERE thread_id = :thread_id", thread_id=session.id
            )

    def selected(self) -> set[str]:
        return {line.thread_id for line in self.memory.threads() if line.selected}


def show(around: Surroundings, ids: Iterable[str], session: str) -> None:
    """What a session's tool records when it has read these threads' memory."""
    read = MemoryShown(
        at=around.now(),
        session_id=session,
        via="read",
        memory_version=around.policy.memory_version,
        scope="global",
        thread_ids=tuple(ids),
    )
    with around.store.writing(actor="application") as tx:
        tx.append(session_stream(session), read)


def used(memory: Memory, ids: Iterable[str], session: str, turn: int) -> int:
    """A session reads threads' memory and cites it; how many uses were new."""
    ids = list(ids)
    show(memory._around, ids, session)
    return memory.cited(ids, session, turn)


def content(root: Path) -> dict[str, str]:
    """Path -> text of a memory folder, without what git and we keep there."""
    return {
        str(path.relative_to(root)): path.read_text()
        for path in sorted(root.rglob("*"))
        if path.is_file() and ".git" not in path.relative_to(root).parts
    }


def bytes_of(root: Path) -> dict[str, bytes]:
    """Every byte of a memory folder, its git objects too."""
    return {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file()}


class Interrupting:
    """A consolidator that somebody cuts in on while it works, the first time that it does."""

    name = "offline"
    kind = "offline"

    def __init__(self, act, times: int = 1) -> None:
        self.act = act
        self.times = times
        self.worked = 0

    def propose(self, task):
        self.worked += 1
        if self.worked <= self.times:
            self.act()
        return OfflineConsolidator().propose(task)


class AtOnce:
    """An extractor that answers while it is asked, and is paid nothing."""

    name = "offline"
    slots = 1
    remaining_percent = None

    def digest(self, memory_version):
        return None

    def stop(self):
        pass


class Telling(AtOnce):
    """An extractor that says what it is told to, by thread id, and is offline's otherwise."""

    def __init__(self, **told) -> None:
        self.told = told
        self.read: list[str] = []

    def extract(self, material):
        header = material.header
        self.read.append(header.thread_id)
        say = self.told.get(header.thread_id) or OfflineExtractor().extract
        return say(header, material.items())


@contextmanager
def environment(**values: str):
    before = dict(os.environ)
    os.environ.update(values)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


__all__ = [
    "DAY_S",
    "FERN",
    "FIXTURES",
    "HOUR_S",
    "MOSS",
    "NOON",
    "ROLLOUTS",
    "AtOnce",
    "Home",
    "Interrupting",
    "Session",
    "Telling",
    "bytes_of",
    "content",
]
