"""Wiring: the one place where adapters meet. A home on disk becomes what a use case needs.

Nothing heavy is imported here before it is used: `status` opens a store, and no git and no model.
"""

import os
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from msgspec.structs import replace

from ..application.ports import Consolidator, Extracted, Extractor, Material, Proposal, Task
from ..application.surroundings import (
    Policy,
    Provider,
    Rollouts,
    Seen,
    Surroundings,
    Tree,
    Workspace,
)
from ..projections.catalog import SYNCHRONOUS
from .settings import Settings, SettingsError, restriction
from .spool import Spool
from .store import LogStore, SqliteStore, StoreUnreadable
from .store.errors import explain_os
from .telemetry import watch
from .workers import Workers

if TYPE_CHECKING:
    from concurrent.futures import Future

    from ..domain.evidence import Exhibit
    from ..domain.session import AnyItem, Survey
    from .models.extractor import OpenAIExtractor

OPENAI_BASE_URL = "https://api.openai.com/v1"
KEY_VARIABLE = "OPENAI_API_KEY"
OFFLINE_CAP = 1 << 30  # The offline model costs nothing, so nothing keeps its sessions waiting.


def open_store(
    home: Path,
    *,
    database: str = "",
    clock: Callable[[], float] | None,
    create: bool,
    check: bool = True,
    announce: bool = True,
) -> LogStore:
    """The file in the home, or the schema of a DSN with this home beside it.

    `announce=False` makes a log that is still empty, for one that is imported into it; where
    nothing was, it begins when it is next opened."""
    store = opened_store(
        home, database=database, clock=clock, create=create, check=check, announce=announce
    )
    try:
        if announce and check:
            store.begin_if_empty(simulated=clock is not None)
    except BaseException:
        store.close()
        raise
    return store


def opened_store(
    home: Path,
    *,
    database: str,
    clock: Callable[[], float] | None,
    create: bool,
    check: bool,
    announce: bool,
) -> LogStore:
    if database:
        try:
            from .store.postgres import PostgresStore
        except ImportError as error:
            raise StoreUnreadable(
                "a memory in PostgreSQL needs psycopg and cryptography:"
                " pip install 'threadbook[postgres]'"
            ) from error
        return PostgresStore.open(
            database,
            home,
            projections=SYNCHRONOUS,
            clock=clock or time.time,
            machine=lambda: machine(home),
            simulated=clock is not None,
            create=create,
            check=check,
            announce=announce,
        )
    return SqliteStore.open(
        home,
        projections=SYNCHRONOUS,
        clock=clock or time.time,
        simulated=clock is not None,
        create=create,
        check=check,
        announce=announce,
    )


def surroundings(
    home: Path, store: LogStore, settings: Settings, *, clock: Callable[[], float] | None
) -> Surroundings:
    machine_id = machine(home)
    workers = Workers(home, machine_id)
    writer = consolidator(settings, home)
    return Surroundings(
        store=store,
        rollouts=Transcripts(),
        look=look,
        restriction=lambda seen: restriction(seen.files),
        workspace=workspaces(home),
        tree=trees(home),
        spool=Spool(home),
        folders=folders(home),
        extractor=extractor(settings, home),
        consolidator=writer,
        offline=LateConsolidator() if writer.kind == "agent" else None,
        policy=policy(settings),
        note_instructions=note_instructions,
        machine_id=machine_id,
        home_dirs=home_dirs(),
        worker_id=workers.name(new_id()),
        is_alive=workers.is_alive,
        take_in_hand=workers.take_in_hand,
        had_in_hand=workers.had_in_hand,
        clock=clock or time.time,
        new_id=new_id,
        sleep=time.sleep,
        watch=watch,
    )


def policy(settings: Settings) -> Policy:
    limits = settings.limits()
    paid = provider(settings)
    if paid is None:
        # Codex looks at no more than its newest 5,000: behind them older ones would wait for ever.
        limits = replace(limits, running_cap=OFFLINE_CAP, scan_limit=OFFLINE_CAP)
    else:
        limits = replace(limits, running_cap=paid.slots)
    both = settings.dual_write and settings.version == "v1"
    return Policy(
        memory_version=settings.version,
        versions=("v1", "v2") if both else (settings.version,),
        provider=paid,
        max_roots_per_run=settings.max_roots_per_run,
        scope=settings.scope,
        limits=limits,
        generate_memories=settings.generate_memories,
        disable_on_external_context=settings.disable_on_external_context,
        trusted_mcp_servers=settings.trusted_mcp_servers,
        history_days=settings.history_days,
        use_memories=settings.use_memories,
        context_tokens=settings.context_tokens,
    )


def provider(settings: Settings) -> Provider | None:
    """Whom the models are asked of; None: nobody, all is done here."""
    if settings.model == "offline":
        return None
    base_url = settings.base_url or os.environ.get("OPENAI_BASE_URL") or OPENAI_BASE_URL
    return Provider(
        base_url=base_url.rstrip("/"),
        extract_model=settings.extract_model,
        # A command of the user's consolidates by itself: to the other model nothing is sent.
        consolidation_model=(
            settings.extract_model if settings.consolidator else settings.consolidation_model
        ),
        context_window=settings.context_window,
        max_output_tokens=settings.max_output_tokens,
        max_tokens_per_run=settings.max_tokens_per_run,
        max_tokens_per_day=settings.max_tokens_per_day,
        min_rate_limit_remaining_percent=settings.min_rate_limit_remaining_percent,
    )


def require_key(paid: Provider | None) -> None:
    """Raises `SettingsError` where a key is wanted and there is none, before anything is sent.
    A server of one's own wants none, or says so."""
    if paid is not None and paid.base_url == OPENAI_BASE_URL and not os.environ.get(KEY_VARIABLE):
        raise SettingsError(
            f"no key to ask {paid.base_url} with: set {KEY_VARIABLE}, or name a server of your own"
            " in `base_url`"
        )


def extractor(settings: Settings, home: Path) -> Extractor:
    paid = provider(settings)
    return LateExtractor() if paid is None else ModelExtractor(paid, home)


def consolidator(settings: Settings, home: Path) -> Consolidator:
    """A command of the user's, or else a provider's model, or else ours."""
    if settings.consolidator:
        return ByCommand(settings, home)
    paid = provider(settings)
    return LateConsolidator() if paid is None else ModelConsolidator(paid, home)


def note_instructions() -> str:
    from ..prompts import prompt

    return prompt("ad_hoc_instructions")


def new_id() -> str:
    return str(uuid.uuid4())


def machine(home: Path) -> str:
    """This machine's own id for a home: folders without a remote are told apart by it."""
    path = home / "machine"
    try:
        return path.read_text(encoding="ascii").strip()
    except FileNotFoundError:
        return written_once(path)
    except (OSError, UnicodeDecodeError) as error:
        raise StoreUnreadable(
            f"{path} cannot be read ({error}); it holds this machine's id: restore it from a"
            " backup, or remove it and set scopes again"
        ) from error


def written_once(path: Path) -> str:
    """Several processes may come first at once: whoever links its file first has decided."""
    own = path.with_name(f"machine.{uuid.uuid4().hex}")
    try:
        own.touch(mode=0o600)
        own.write_text(f"{uuid.uuid4().hex}\n", encoding="ascii")
        with suppress(FileExistsError):
            os.link(own, path)
        return path.read_text(encoding="ascii").strip()
    except OSError as error:
        raise explain_os(error, path) from error
    finally:
        with suppress(OSError):  # It was not even made, or may not be touched any more.
            own.unlink()


def home_dirs() -> tuple[str, ...]:
    """The user's home folder, wherever it is: what was done in it belongs to no project."""
    try:
        own = Path.home()
        return str(own), str(own.resolve())
    except (OSError, RuntimeError):
        return ()


def look(cwd: str | None) -> Seen:
    from . import places

    return places.look(cwd)


def workspaces(home: Path) -> Callable[[str, str], Workspace]:
    def workspace(memory_version: str, scope: str) -> Workspace:
        from . import git
        from .workspace import Workspace as OnDisk

        return OnDisk(home, memory_version, scope, git=git)

    return workspace


def narrowed(around: Surroundings, sources: Sequence[Path], cwd: Path | str) -> list[Path]:
    """What of the user's sources a project leaves to a run in its folder. It adds none."""
    left = around.restriction(around.look(os.path.abspath(cwd))).sources
    if left is None:
        return list(sources)
    wanted = [Path(os.path.normpath(each)) for each in left]
    inside = [one for one in wanted if any(one.is_relative_to(each) for each in sources)]
    return inside + [
        each for each in sources if each not in inside and any(map(each.is_relative_to, wanted))
    ]


def folders(home: Path) -> Callable[[str], list[str]]:
    """A folder's name stands for its scope: a workspace of that name is the same folder."""

    def named(memory_version: str) -> list[str]:
        above = home / "memories" / memory_version
        if not above.is_dir():
            return []
        return sorted(
            {each.name.removesuffix(".edits") for each in above.iterdir() if each.is_dir()}
        )

    return named


def trees(home: Path) -> Callable[[str, str], Tree]:
    def tree(memory_version: str, scope: str) -> Tree:
        from .workspace.tree import Tree as OnDisk

        return OnDisk(home, memory_version, scope)

    return tree


class Transcripts(Rollouts):
    """The readers, loaded when the first file is read."""

    def discover(self, paths: Sequence[Path]) -> Iterator[Path]:
        from . import rollouts

        return rollouts.discover(paths)

    def survey(self, path: Path, *, now_ms: int) -> "Survey":
        from . import rollouts

        return rollouts.survey(path, now_ms=now_ms)

    def items(self, path: Path, *, now_ms: int) -> "Iterator[AnyItem]":
        from . import rollouts

        return rollouts.items(path, now_ms=now_ms)

    def evidence(self, path: Path, *, now_ms: int) -> "Iterator[Exhibit]":
        from . import rollouts

        return rollouts.evidence(path, now_ms=now_ms)


class LateExtractor:
    """The offline model, loaded when the first session is read."""

    name = "offline"
    slots = 1
    remaining_percent = None

    def digest(self, memory_version: str) -> None:
        return None

    def extract(self, material: Material) -> Extracted | None:
        from .offline import OfflineExtractor

        return OfflineExtractor().extract(
            material.header, material.items(), memory_version=material.memory_version
        )

    def stop(self) -> None:
        """It has answered whenever somebody could ask."""


class ModelExtractor:
    """A provider's model; its client is loaded when the first session was claimed."""

    def __init__(self, paid: Provider, home: Path) -> None:
        self.name, self.slots = paid.extract_model, paid.slots
        self._paid, self._home = paid, home
        self._asking: OpenAIExtractor | None = None

    @property
    def remaining_percent(self) -> float | None:
        return None if self._asking is None else self._asking.remaining_percent

    def digest(self, memory_version: str) -> str:
        from .models.stage_one import digest

        return digest(memory_version)

    def extract(self, material: Material) -> "Future[Extracted | None]":
        if self._asking is None:
            from .models.extractor import OpenAIExtractor

            self._asking = OpenAIExtractor(self._paid, home=self._home)
        return self._asking.extract(material)

    def stop(self) -> None:
        if self._asking is not None:
            self._asking.stop()
            self._asking = None


class LateConsolidator:
    name = "offline"
    kind: Literal["offline"] = "offline"

    def propose(self, task: Task) -> Proposal:
        from .offline import OfflineConsolidator

        return OfflineConsolidator().propose(task)


class ModelConsolidator:
    """A provider's model in a folder of its own, both made when there is something to do."""

    kind: Literal["agent"] = "agent"

    def __init__(self, paid: Provider, home: Path) -> None:
        self.name = paid.consolidation_model
        self._paid, self._home = paid, home

    def propose(self, task: Task) -> Proposal:
        from .models.consolidator import OpenAIConsolidator
        from .staging.workplace import workplace

        staged = partial(workplace, home=self._home, owner=partial(at_work, self._home))
        return OpenAIConsolidator(self._paid, home=self._home, workplace=staged).propose(task)


class ByCommand:
    """A command of the user's, found when it is started."""

    kind: Literal["agent"] = "agent"

    def __init__(self, settings: Settings, home: Path) -> None:
        self.name = f"command:{os.path.basename(settings.consolidator[0])}"
        self._settings, self._home = settings, home

    def propose(self, task: Task) -> Proposal:
        from .staging.consolidator import CommandConsolidator

        return CommandConsolidator(
            self._settings.consolidator,
            home=self._home,
            owner=partial(at_work, self._home),
            variables=self._settings.consolidator_variables,
        ).propose(task)


@contextmanager
def at_work(home: Path) -> Iterator[str]:
    """A worker of its own, by whose end it is known that a staging folder is nobody's."""
    workers = Workers(home, machine(home))
    name = workers.name(new_id())
    with workers.at_work(name):
        yield name


def sweep_staging(home: Path) -> None:
    """Remove what consolidations left that were killed: each holds a copy of a memory. Raises
    `Failure`."""
    if os.path.lexists(home / "staging"):
        from .staging.folder import sweep

        sweep(home, Workers(home, machine(home)).is_alive)
