"""`Memory`: the library's face. Open a home, run, ask why, look back, forget.

Every method may raise `Refused` (the state does not allow it; the message says what to do) and
`Failure` (something outside could not do it). Times are Unix seconds, positions count from 1.
An object may be used by several threads; close it, or use it as a context manager.
"""

import builtins
import functools
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, Literal, ParamSpec, TypeVar, overload

from msgspec import to_builtins
from msgspec.structs import replace

from ..application.ports import Failure
from ..domain.address import shown
from . import wiring
from .actor import cli_actor, inside_a_run
from .settings import (
    REASONS,
    Settings,
    default_home,
    expanded,
    is_dsn,
    load,
    validated,
    without_password,
)
from .store import LogStore, StoreSealed, Verified
from .telemetry import watch
from .workers import Workers

if TYPE_CHECKING:
    from ..application.certificate import Certificate
    from ..application.consent import ConsentNeeded
    from ..application.context import Context
    from ..application.notes import NoteReceipt
    from ..application.ports import Progress, Recorded, View
    from ..application.questions import ListAnswer, ReadAnswer, SearchAnswer
    from ..application.ranked import RankedAnswer, RankedSearch
    from ..application.reports import (
        CiteReport,
        Explanation,
        ForgetReport,
        ImportReport,
        IngestReport,
        RunReport,
        ThreadLine,
    )
    from ..application.reset import ResetReport
    from ..application.surroundings import Policy, Surroundings
    from ..application.tools import Tools
    from ..domain.search import MatchMode
    from .store.transfer import End


Asked = ParamSpec("Asked")
Told = TypeVar("Told")


def watched(
    method: "Callable[Concatenate[Memory, Asked], Told]",
) -> "Callable[Concatenate[Memory, Asked], Told]":
    """Whoever watches the memory is told what was asked, by name, and what came of it."""
    code = method.__code__
    names = code.co_varnames[1 : code.co_argcount]

    @functools.wraps(method)
    def told(memory: "Memory", /, *args: Asked.args, **asked: Asked.kwargs) -> Told:
        named = dict(zip(names, args, strict=False)) | asked
        with memory._around.watch(method.__name__, named) as tell:
            answer = method(memory, *args, **asked)
            tell(answer)
        return answer

    return told


def home_of(home: Path | str | None, *, sample: bool = False) -> Path:
    """The home that is meant: the one that was given, as it is, or the user's own."""
    if home is not None:
        return expanded(home)
    own = default_home()
    return own.with_name(f"{own.name}-sample") if sample else own


class Memory:
    """One home. `Memory.open` makes it."""

    def __init__(
        self,
        home: Path,
        store: LogStore,
        settings: Settings,
        *,
        clock: Callable[[], float] | None,
        sample: bool,
        from_cli: bool,
    ) -> None:
        self.home = home
        self.store = store
        self.settings = settings
        self._clock = clock
        self._sample = sample
        self._from_cli = from_cli
        self._around = wiring.surroundings(home, store, settings, clock=clock)
        self._workers = Workers(home, self._around.machine_id)
        self._ranked: RankedSearch | None = None

    @classmethod
    def open(
        cls,
        place: Path | str | None = None,
        /,
        *,
        home: Path | str | None = None,
        clock: Callable[[], float] | None = None,
        config: Path | None = None,
        settings: Mapping[str, Any] | None = None,
        create: bool = True,
        sample: bool = False,
        from_cli: bool = False,
        check: bool = True,
    ) -> "Memory":
        """Open the memory in a home, by default the user's own; made there unless `create=False`.

        `place` is the home, or the DSN of a PostgreSQL database that several machines share: then
        this machine's part (folders, keys) is in `home`. The setting `database` is a DSN, too.
        `clock` (Unix seconds) marks a new home as simulated; a home keeps to one kind of clock.
        `settings` beat the environment, which beats the file. `sample` works beside the default
        home, on the sessions that come with Threadbook. Raises `SettingsError`, `StoreError`.
        """
        database = str(place) if is_dsn(place) else None
        chosen = load(config, flags={"database": database, **(settings or {})})
        folder = home_of(home if place is None or database else place, sample=sample)
        store = wiring.open_store(
            folder,
            database="" if sample else chosen.database,
            clock=clock,
            create=create,
            check=check,
        )
        try:
            return cls(folder, store, chosen, clock=clock, sample=sample, from_cli=from_cli)
        except BaseException:
            store.close()  # Nobody else could: the caller gets no `Memory`.
            raise

    def close(self) -> None:
        self.store.close()

    def __enter__(self) -> "Memory":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # The main job.

    @watched
    def ingest(self, paths: Sequence[Path | str] | None = None) -> "IngestReport":
        """Read session files and register what they are; nothing is extracted yet."""
        from ..application import ingest

        sightings, report = ingest.survey(self._around, self._sources(paths))
        report.ingested = ingest.record(self._around, sightings, actor=self._actor(), run_id=None)
        return report

    @watched
    def run(
        self,
        *,
        sessions: Sequence[Path | str] | None = None,
        cwd: Path | str | None = None,
        model: str | None = None,
        backfill: int | None = None,
        again: bool = False,
        consolidate: bool = False,
        consented: bool = False,
        confirmed: bool = False,
        dry_run: bool = False,
        progress: "Progress | None" = None,
    ) -> "RunReport":
        """Sessions in, memory folders out. `model` is for this run instead of the setting.

        `backfill`: -1 reads every older session, N so many. A run in a project's folder (`cwd`)
        reads no more sources than its own file leaves. `again` reads once more what another model
        or prompt has read, and tries anew what failed; `consolidate` lets no folder rest.
        `consented` agrees that sessions are sent to the provider, once for each server and model:
        `NotConsented` where that was never said (`consent_needed` tells)."""
        from ..application import startup

        self._refuse_sealed()
        # A worker a run, so that what an earlier run of this program left is nobody's.
        worker_id = self._workers.name(wiring.new_id())
        around = replace(self._with_model(model), worker_id=worker_id)
        if not dry_run:
            wiring.require_key(around.policy.provider)
        with inside_a_run(), self._workers.at_work(worker_id):
            report = startup.run(
                around,
                self._sources(sessions, cwd=cwd),
                backfill=backfill,
                again=again,
                consolidate=consolidate,
                consented=consented,
                actor=self._actor(confirmed=confirmed),
                dry_run=dry_run,
                progress=progress,
            )
        if not dry_run:
            wiring.sweep_staging(self.home)
        return report

    def consent_needed(self, *, model: str | None = None) -> "ConsentNeeded | None":
        """Where a run would send sessions, while nobody has agreed to that."""
        from ..application import consent

        with self.store.reading() as view:
            return consent.needed(self._with_model(model), view)

    def _with_model(self, model: str | None) -> "Surroundings":
        if model is None:
            return self._around
        settings = validated({**to_builtins(self.settings), "model": model}, "run")
        return wiring.surroundings(self.home, self.store, settings, clock=self._clock)

    # What is known.

    def threads(self) -> "builtins.list[ThreadLine]":
        """Every session, newest first, and where it stands."""
        from ..application.explain import thread_lines

        with self.store.reading() as view:
            return thread_lines(
                view,
                self._around.policy,
                extractor=self._around.extractor.name,
                now=self._around.now(),
            )

    def explain(self, thread_id: str, *, at: int | float | None = None) -> "Explanation":
        """Why a thread is in or out, now or at a position (int) or time (float)."""
        from ..application import state
        from ..application.explain import explain

        with self._view(at) as (view, now):
            return explain(
                view,
                state.named(view, thread_id),
                self._around.policy,
                extractor=self._around.extractor.name,
                now=now,
            )

    def at(self, place: int | float | None = None) -> dict[str, Any]:
        """Threads, jobs, outputs and the selection with reasons as they were, or are."""
        from ..application.past import as_it_was

        with self._view(place) as (view, now):
            return as_it_was(view, self._around.policy, now=int(now))

    def log(
        self, *, stream: str | None = None, after: int = 0, limit: int | None = None
    ) -> "Iterator[Recorded]":
        """The events in order, of one stream or all, behind position `after`, at most `limit`.

        They are read as the iterator goes; one that is left half-way holds its moment open.
        """
        with self.store.reading() as view:
            most = None if limit is None else min(limit, sys.maxsize)
            yield from islice(view.events(stream=stream, after=after), most)

    def status(self) -> dict[str, Any]:
        """What is stored, stuck, spent and in force, ready for JSON."""
        from ..application.status import status

        with self.store.reading() as view:
            told = status(self._around, view)
        head = self.store.head()
        return {
            "home": str(self.home),
            "database": self.store.name,
            "sealed": self.store.sealed(),
            "clock": "real" if self._clock is None else "simulated",
            "head": None if head is None else f"{head.position} {head.chain.hex()}",
            **told,
            "erasures_pending": [str(each) for each in self.store.pending_erasures()],
            "backups": [str(each) for each in self.store.backups()],
            "settings": self._settings_told(),
        }

    # What an agent may ask of a project's memory: that of `cwd`, by default where this program is.
    # What it is given is recorded for its `session`, the id of its transcript, if that is known.

    def list(
        self,
        path: str | None = None,
        *,
        cursor: str | None = None,
        max_results: int | None = None,
        cwd: Path | str | None = None,
    ) -> "ListAnswer":
        """One level of the memory folder, at most 2,000 entries a page."""
        from ..application.questions import ListArguments

        return self._tools(cwd).list(
            ListArguments(path=path, cursor=cursor, max_results=max_results)
        )

    def read(
        self,
        path: str,
        *,
        line_offset: int = 1,
        max_lines: int | None = None,
        cwd: Path | str | None = None,
        session: str | None = None,
    ) -> "ReadAnswer":
        """A file of the memory from a line on, counted from 1; of more than 80,000 bytes the
        middle is left out."""
        from ..application.questions import ReadArguments

        return self._tools(cwd, session).read(
            ReadArguments(path=path, line_offset=line_offset, max_lines=max_lines)
        )

    def search(
        self,
        queries: str | Sequence[str],
        *,
        match_mode: "MatchMode | None" = None,
        path: str | None = None,
        cursor: str | None = None,
        context_lines: int = 0,
        case_sensitive: bool = True,
        normalized: bool = False,
        max_results: int | None = None,
        cwd: Path | str | None = None,
        session: str | None = None,
    ) -> "SearchAnswer":
        """The lines that hold these texts, letter for letter, at most 200 a page. `match_mode` is
        one of `threadbook.domain.search`; by default any of the texts is enough."""
        from ..application.questions import SearchArguments
        from ..domain.search import AnyOf

        return self._tools(cwd, session).search(
            SearchArguments(
                queries=(queries,) if isinstance(queries, str) else tuple(queries),
                match_mode=match_mode or AnyOf(),
                path=path,
                cursor=cursor,
                context_lines=context_lines,
                case_sensitive=case_sensitive,
                normalized=normalized,
                max_results=max_results,
            )
        )

    def search_ranked(
        self,
        query: str,
        *,
        path: str | None = None,
        max_results: int | None = None,
        cwd: Path | str | None = None,
        session: str | None = None,
    ) -> "RankedAnswer":
        """The statements that fit a question best, best first, 10 unless told, at most 50."""
        from ..application.ranked import RankedArguments, RankedSearch
        from .ranking import Ranking

        if self._ranked is None:
            self._ranked = RankedSearch(Ranking)
        asked = RankedArguments(query=query, path=path, max_results=max_results)
        return self._ranked.answer(self._tools(cwd, session), asked)

    def _tools(self, cwd: Path | str | None, session: str | None = None) -> "Tools":
        from ..application.tools import Tools

        self._refuse_sealed()
        return Tools(self._around, cwd=self._cwd(cwd), session=session, actor=self._actor())

    # What a session is given, and leaves.

    @watched
    def context(
        self,
        cwd: Path | str | None = None,
        session: str | None = None,
        *,
        room: int | None = None,
    ) -> "Context":
        """What a session that starts in `cwd` (default: here) is given of its project's memory:
        the summary and the newest notes in a prompt, within `context_tokens`, fenced as data.
        `room`, in bytes, is what the agent takes in all, the prompt with it.

        With the id of the session it is recorded as shown, so that what it cites counts. Where
        there is nothing to give, or nobody can tell whose memory it would be, the text says so;
        `state` is then another than `shown`. Raises `Failure` for a store that cannot be read.
        """
        from ..application.context import context
        from ..prompts import filled

        return context(
            self._around,
            self._cwd(cwd),
            session=session,
            prompt=filled,
            actor=self._actor(),
            room=room,
        )

    @watched
    def note(
        self, text: str, *, cwd: Path | str | None = None, filename: str | None = None
    ) -> "NoteReceipt":
        """Keep a note for the later sessions of the project in `cwd` (default: here). Secrets in it
        are hidden; the same text twice is one note. Raises `Refused` for an empty or long one, a
        filename that is none or is taken, and where no project is."""
        from ..application import notes

        return notes.add_note(
            self._around,
            self._note_scope(cwd),
            filename=filename,
            text=text,
            via="cli",
            actor=self._actor(),
        )

    @watched
    def remove_note(self, path: str, *, cwd: Path | str | None = None) -> None:
        """Take a note back, by its path or its file's name; its words are erased."""
        from ..application import notes

        self._refuse_sealed()
        scope = self._note_scope(cwd)
        notes.remove_note(self._around, scope, path, reason="asked", actor=self._actor())

    @watched
    def cite(self, reply: str, session: str | None, turn: int) -> "CiteReport":
        """Read an agent's whole reply: what a person should see of it, and the sessions it used,
        each counted once a session and turn if that session was shown it.

        `session` is the id of the citing session's transcript, None where it is not known: then
        nothing counts. `turn` is the ordinal, from 1, of the message that a person typed.
        """
        from ..application import citing

        return citing.cite(self._around, reply, session=session, turn=turn, actor=self._actor())

    @watched
    def cited(self, ids: Iterable[str], session: str, turn: int) -> int:
        """Count a use of each thread that the session was shown, once a session and turn; how many
        uses were new. `cite` also says why one did not count."""
        from ..application import citing

        return citing.cited(self._around, ids, session=session, turn=turn, actor=self._actor())

    # What a person says. `confirmed`: one has just agreed to it at the terminal; the command line
    # says so, and is believed only there.

    @watched
    def set_mode(self, thread_id: str, mode: str, *, confirmed: bool = False) -> bool:
        """`enabled` or `disabled`; False: it was that already. Enabling also lifts pollution."""
        from ..application import people

        return people.set_mode(
            self._around, self._named(thread_id), mode, actor=self._actor(confirmed=confirmed)
        )

    @watched
    def pollute(
        self,
        thread_id: str,
        cause: str = "application",
        *,
        detail: str | None = None,
        confirmed: bool = False,
    ) -> bool:
        """Mark a thread as touched by outside text, until `set_mode` enables it; False: it was.

        `cause` is a word for why (`web_search`), `detail` the server or tool.
        """
        from ..application import people

        return people.pollute(
            self._around,
            self._named(thread_id),
            cause=cause,
            detail=detail,
            actor=self._actor(confirmed=confirmed),
        )

    def scope(self, what: str) -> str:
        """The scope of a thread, or of a folder on this machine."""
        from ..application import state
        from ..application.places import scope_of_place, scope_of_thread

        with self.store.reading() as view:
            known = scope_of_thread(view, state.named(view, what))
            return known or scope_of_place(self._around, view, what)

    @watched
    def set_scope(self, thread_id: str, scope: str, *, confirmed: bool = False) -> bool:
        """Move a thread to another `project:<name>`; False: it was there. A run does the rest."""
        from ..application import people

        return people.set_scope(
            self._around, self._named(thread_id), scope, actor=self._actor(confirmed=confirmed)
        )

    @overload
    def forget(
        self, thread: str, *, prove: Literal[False] = False, confirmed: bool = False
    ) -> "ForgetReport": ...

    @overload
    def forget(
        self, thread: str, *, prove: Literal[True], confirmed: bool = False
    ) -> "Certificate": ...

    def forget(
        self, thread: str, *, prove: bool = False, confirmed: bool = False
    ) -> "ForgetReport | Certificate":
        """Forget a thread for good, its words included; also one that was never seen.

        `prove` then reads every file of the home for these words, which takes as long as that
        takes, and answers a certificate: `proven`, what was looked for and where, what was found,
        and what nobody can see from here.
        """
        with self._around.watch("forget", {}) as tell:
            told = self._forgotten(thread, prove=prove, confirmed=confirmed)
            tell(told)
        return told

    def _forgotten(
        self, thread: str, *, prove: bool, confirmed: bool
    ) -> "ForgetReport | Certificate":
        from ..application import forget
        from ..domain.refusals import NotTheWholeId

        if len(meant := self._named(thread)) != len(thread):
            raise NotTheWholeId(thread, meant)
        self._refuse_sealed()
        with suppress(Failure):  # A certificate finds what cannot be removed; a run tells it.
            wiring.sweep_staging(self.home)
        actor = self._actor(confirmed=confirmed)
        if prove:
            from ..application.certificate import forget_and_prove
            from .sweep import Sweep

            sweep = Sweep(self.home)
            database = self.store.name
            return forget_and_prove(
                self._around, sweep, meant, reason="asked", actor=actor, database=database
            )
        report = forget.forget(self._around, meant, reason="asked", actor=actor)
        pending = self.store.pending_erasures()
        report.pending = str(pending[0]) if pending else None
        return report

    def lift(self, thread: str, *, confirmed: bool = False) -> None:
        """Let a forgotten thread be read again. Only a person at a terminal may."""
        from ..application import forget

        forget.lift(self._around, self._named(thread), actor=self._actor(confirmed=confirmed))

    @watched
    def reset(
        self, *, notes: bool = False, dry_run: bool = False, confirmed: bool = False
    ) -> "ResetReport":
        """Empty what was learned, at once; sessions stay known, and notes too unless `notes`.
        `dry_run` only tells what would go."""
        from ..application import reset

        if dry_run:
            return reset.plan(self._around, keep_notes=not notes)
        with suppress(Failure):  # As before something is forgotten.
            wiring.sweep_staging(self.home)
        report = reset.reset(
            self._around, keep_notes=not notes, actor=self._actor(confirmed=confirmed)
        )
        pending = self.store.pending_erasures()
        report.pending = str(pending[0]) if pending else None
        return report

    # Out, and the record itself.

    @watched
    def export(
        self,
        folder: Path | str,
        *,
        at: int | float | None = None,
        scope: str | None = None,
        version: Literal["v1", "v2"] | None = None,
        merge: bool = False,
    ) -> dict[str, Path]:
        """Write every memory root, or that of a scope, as it is or was, under a new or empty
        folder; scope -> path. `version` is the one that is read, or another that is there. `merge`
        joins all of them into one folder of Codex's layout, where each project's memory is read in
        every other: ask before."""
        from .export import export, export_merged

        self._refuse_sealed()
        policy = self._policy_of(version)
        with self._view(at) as (view, _):
            if merge:
                from .offline import OfflineConsolidator

                offline = OfflineConsolidator()
                return export_merged(view, policy, expanded(folder), consolidator=offline)
            return export(view, policy, expanded(folder), scope=scope)

    def exportable(
        self, *, at: int | float | None = None, version: Literal["v1", "v2"] | None = None
    ) -> builtins.list[str]:
        """The scopes whose memory an export writes."""
        from .export import exportable

        with self._view(at) as (view, _):
            return [root.scope for root in exportable(view, self._policy_of(version))]

    def _policy_of(self, version: str | None) -> "Policy":
        policy = self._around.policy
        return replace(policy, memory_version=version or policy.memory_version)

    @watched
    def import_folder(
        self,
        folder: Path | str,
        *,
        projects: Sequence[str] = (),
        scope: str | None = None,
        dry_run: bool = False,
    ) -> "ImportReport":
        """Take over what a Codex memories folder, or Claude Code's own memory, holds. Of the
        latter `projects` names those that are meant; of the former `scope` says whose the notes
        and the handbook are where it mixes projects. `dry_run` only tells what would be done."""
        from ..application.foreign import CodexFolder
        from ..application.importing import import_claude, import_codex
        from ..prompts import prompt
        from .others import WrongOption, found

        self._refuse_sealed()
        there = found(expanded(folder))
        words = prompt("external_agent_import")
        if isinstance(there, CodexFolder):
            if projects:
                raise WrongOption("a Codex folder has no projects to choose from; drop --project")
            return import_codex(
                self._around, there, instructions=words, scope=scope, dry_run=dry_run
            )
        if scope is not None:
            raise WrongOption("each of Claude Code's projects has its own place; drop --scope")
        return import_claude(
            self._around, there, instructions=words, keys=projects, dry_run=dry_run
        )

    @watched
    def export_log(self, file: Path | str) -> "End":
        """Write every event and every text that is not erased to a new file of JSON lines, from
        which `import_log` makes the same log again. It holds the words in the open."""
        from .store.transfer import export_log

        self._refuse_sealed()
        return export_log(self.store, expanded(file))

    @classmethod
    def import_log(
        cls,
        file: Path | str,
        place: Path | str | None = None,
        /,
        *,
        home: Path | str | None = None,
        config: Path | None = None,
        settings: Mapping[str, Any] | None = None,
        simulated: bool = False,
    ) -> "End":
        """Fill a new home (or database, as for `open`) with an exported log: the same positions,
        chain and tables. A home that has events of its own is refused, and left as it is."""
        from ..application import reset
        from .store.transfer import import_log

        database = str(place) if is_dsn(place) else None
        chosen = load(config, flags={"database": database, **(settings or {})})
        store = wiring.open_store(
            home_of(home if place is None or database else place),
            database=chosen.database,
            clock=time.time if simulated else None,
            create=True,
            announce=False,
        )
        try:
            with watch("import_log", {}) as tell:
                end = import_log(store, expanded(file))
                tell(end)
            with store.reading() as view:  # Of folders that lie there none was made from this log.
                around = wiring.surroundings(store.home, store, chosen, clock=None)
                reset.disown(around, view, after=0)
            return end
        except BaseException:
            store.begin(simulated=simulated)  # It stays a home that is new.
            raise
        finally:
            store.close()

    def diff(self, before: int | float, after: int | float | None = None) -> dict[str, Any]:
        """What changed between two positions (int) or times (float); `after` None is now."""
        from ..application.difference import difference

        with self._view(before) as (old, _), self._view(after) as (new, _):
            if new.position < old.position:
                old, new = new, old
            return difference(old, new, self._around.policy)

    def verify(self) -> Verified:
        """Hold every event against its hash. While that fails nothing more is written."""
        return self.store.verify()

    def replay_verify(self) -> builtins.list[str]:
        """What differs between the tables, the folders, and the events they come from."""
        from ..application.status import folder_differences

        differences = [each.message for each in self.store.replay_verify()]
        return differences + folder_differences(self._around)

    def rebuild(self) -> int:
        """Drop every table and fold it from the events; how many events there are."""
        self.store.replay_rebuild()
        with self.store.reading() as view:
            return view.position

    # Inside.

    def _cwd(self, cwd: Path | str | None) -> str:
        """The folder as its whole path; `..` behind a link leads back, as in a shell."""
        try:
            return os.path.abspath(os.getcwd() if cwd is None else expanded(cwd))
        except FileNotFoundError:
            from ..application.reading import FolderGone

            raise FolderGone from None

    def _note_scope(self, cwd: Path | str | None) -> str:
        from ..application.reading import scope_to_note

        with self.store.reading() as view:
            return scope_to_note(self._around, view, self._cwd(cwd))

    def _sources(
        self, paths: Sequence[Path | str] | None, *, cwd: Path | str | None = None
    ) -> builtins.list[Path]:
        if self._sample:
            return [self._written_sample()]
        if paths is not None:
            return [expanded(path) for path in paths]
        if self.settings.sources:
            found = [expanded(path) for path in self.settings.sources]
        else:
            from .rollouts import default_sources

            found = default_sources()
        return found if cwd is None else wiring.narrowed(self._around, found, cwd)

    def _written_sample(self) -> Path:
        """The sample's sessions, beside the home as an agent's own sessions are: forgetting one
        must find none of its words inside. They are made once a home, as of its first day."""
        from .sample import write_sample

        with self.store.reading() as view:
            opened = next(iter(view.events())).recorded_at_ms / 1000
        beside = self.home.with_name(f"{self.home.name}-sessions")
        folder = beside / f"{datetime.fromtimestamp(opened, UTC):%Y-%m-%dT%H-%M-%S}"
        write_sample(folder, now=opened)
        return folder

    @contextmanager
    def _view(self, place: int | float | None) -> "Iterator[tuple[View, float]]":
        """A position or a time with its now. An int is a position, a float is a time."""
        if place is None:
            with self.store.reading() as view:
                yield view, self._around.clock()
            return
        position = place if isinstance(place, int) else self.store.position_at(place)
        with self.store.at(position) as view:
            yield view, view.recorded_at_ms / 1000

    def _refuse_sealed(self) -> None:
        """What would be made from texts that cannot be read here would be half of it."""
        if why := self.store.sealed():
            raise StoreSealed(why)

    def _named(self, text: str) -> str:
        from ..application import state

        with self.store.reading() as view:
            return state.named(view, text)

    def _actor(self, *, confirmed: bool = False) -> str:
        return cli_actor(confirmed=confirmed) if self._from_cli else "application"

    def _settings_told(self) -> dict[str, Any]:
        def told(key: str) -> Any:
            value = getattr(self.settings, key)
            if key == "base_url":
                return shown(value)
            return without_password(value) if is_dsn(value) else to_builtins(value)

        return {key: {"value": told(key), "reason": reason} for key, reason in REASONS.items()}
