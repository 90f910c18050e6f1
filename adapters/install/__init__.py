"""Install and uninstall: hooks and the MCP server, in the settings of the agents that are here.

What a person wrote stays, byte for byte: ours is put in between, and every result is parsed and
held against what was there before anything is written. Several files change together or not at
all. Instruction files (AGENTS.md, CLAUDE.md) are never touched.
"""

import difflib
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal

from msgspec import Struct

from ...application.ports import Failure
from . import claude, codex, record
from .draft import CannotEdit, Draft, wherever, without
from .entries import NAME, Entries, bare
from .files import CannotInstall, Change, Found, carry_out, read
from .parts import Part, Place
from .turns import alone

__all__ = ["AGENTS", "CannotInstall", "FileReport", "Report", "install", "places", "uninstall"]

AGENTS = ("codex", "claude")
Done = Literal["created", "changed", "unchanged", "restored", "removed", "nothing"]


class FileReport(Struct, kw_only=True):
    """What became of one file; `diff` shows lines that are ours, and none beside them."""

    path: str
    what: str
    done: Done
    diff: str = ""


class Report(Struct, kw_only=True):
    agent: str
    title: str
    files: list[FileReport]
    notes: list[str]


def places(
    agents: Sequence[str],
    *,
    environment: Mapping[str, str] | None = None,
    user: Path | None = None,
) -> list[Place]:
    """The agents that are meant: those named, which must be here, or else those that are here."""
    environment = os.environ if environment is None else environment
    try:
        user = Path.home() if user is None else user
    except RuntimeError as error:
        raise CannotInstall("your home folder is not known; set HOME, then try again") from error
    found = {
        place.agent: place
        for place in (codex.place(environment, user), claude.place(environment, user))
    }
    if not agents:
        return [found[agent] for agent in AGENTS if found[agent].is_present()]
    for agent in agents:
        if not found[agent].is_present():
            raise CannotInstall(
                f"{found[agent].title} was not used here yet: there is no {found[agent].folder};"
                f" start it once, or set {found[agent].variable}, then try again"
            )
    return [found[agent] for agent in AGENTS if agent in agents]


def install(
    chosen: Sequence[Place], entries: Entries, *, home: Path, dry_run: bool = False
) -> list[Report]:
    """Raises `CannotInstall` and `Failure`; then nothing was changed."""
    with alone(place.folder for place in chosen):
        plans = [_Plan(place, home) for place in chosen]
        reports = [plan.installed(entries) for plan in plans]
        if not dry_run:
            _carry_out(plans, home)
    return reports


def uninstall(chosen: Sequence[Place], *, home: Path, dry_run: bool = False) -> list[Report]:
    """Raises `CannotInstall` and `Failure`; then nothing was changed."""
    with alone(place.folder for place in chosen):
        plans = [_Plan(place, home) for place in chosen]
        reports = [plan.uninstalled() for plan in plans]
        if not dry_run:
            _carry_out(plans, home)
    return reports


def _carry_out(plans: "list[_Plan]", home: Path) -> None:
    changes = [change for plan in plans for change in plan.changes]
    kept = [plan.kept() for plan in plans]
    made: list[Path] = []
    try:
        if any(change.content is not None for change in kept):
            made = _make_folders(home / "install")
        carry_out([*changes, *(each for each in kept if each.content != each.found.content)])
    except BaseException:
        for folder in reversed(made):
            with suppress(OSError):  # Somebody has put something into it meanwhile.
                folder.rmdir()
        raise
    with suppress(OSError):  # It holds another agent's record, or is not there.
        (home / "install").rmdir()


def _make_folders(folder: Path) -> list[Path]:
    """The folder and every missing one above it, for their owner alone; which were made."""
    made: list[Path] = []
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    try:
        for each in reversed(missing):
            each.mkdir(mode=0o700)
            made.append(each)
    except OSError as error:
        for each in reversed(made):
            each.rmdir()
        raise Failure(
            f"{error.filename} cannot be made ({error.strerror}); nothing was changed:"
            " check the folder, or name another one with --home"
        ) from error
    return made


class _Plan:
    """What is to happen to one agent's files; nothing is written here."""

    def __init__(self, place: Place, home: Path) -> None:
        self.place = place
        self.changes: list[Change] = []
        self.lefts: list[record.Left] = []
        path = record.file_of(home, place.agent)
        content = None
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            pass
        except OSError as error:
            raise CannotInstall(
                f"{path} cannot be read ({error.strerror}); check it, then try again"
            ) from error
        self.record_found = Found(path=path, target=path, content=content)
        self.record = record.decoded(content, place.agent)

    def kept(self) -> Change:
        """The record afterwards; none when nothing of ours is left."""
        if not self.lefts:
            return Change(self.record_found, None)
        new = record.Record(agent=self.place.agent, files=tuple(self.lefts))
        return Change(self.record_found, record.encoded(new))

    # In.

    def installed(self, entries: Entries) -> Report:
        files, notes = [], list(self.place.notes)
        for part in self.place.parts:
            found = read(part.path)
            files.append(self._put_in(part, found, entries))
            notes += part.hints(_parsed(part, found, found.text()))
        if all(file.done == "unchanged" for file in files):
            notes = []
        return Report(agent=self.place.agent, title=self.place.title, files=files, notes=notes)

    def _put_in(self, part: Part, found: Found, entries: Entries) -> FileReport:
        text = found.text()
        said = _parsed(part, found, text)
        before = self.record.of(part.path)
        as_left = before is not None and _is_as_left(found, before)
        with _telling(found):
            if before is not None and as_left and before.original is not None:
                draft = Draft(text, before.ours)
            else:
                # What of ours is in it already was put there by hand, or before an edit.
                draft = Draft(text, exact=part.remove(text) == text)
            part.add(draft, entries)
        content = found.encoded(draft.text)
        _check(part, found, said, draft.text)
        again = Draft(draft.text, exact=False)
        part.add(again, entries)
        assert again.text == draft.text, f"{part.path}: ours is not known again"
        existed = found.content is not None and (before is None or before.existed)
        cut = without(draft.text, draft.ours) if draft.exact else None
        if cut is not None and not as_left:
            assert cut == text, f"{part.path}: cutting ours out does not give the file back"
        ours = tuple(draft.ours)
        if cut is None and before is not None and draft.text == text:
            ours = before.ours  # The file was edited around it since; it may stand there as it was.
        self.lefts.append(
            record.Left(
                path=str(part.path),
                existed=existed,
                left=record.digest(content),
                original=None if cut is None else record.digest(found.encoded(cut)),
                ours=ours,
            )
        )
        if content == found.content:
            return FileReport(path=str(part.path), what=part.what, done="unchanged")
        self.changes.append(Change(found, content))
        return FileReport(
            path=str(part.path),
            what=part.what,
            done="created" if found.content is None else "changed",
            diff=_diff(part.path, text, draft.text),
        )

    # Out.

    def uninstalled(self) -> Report:
        files = []
        for part in self.place.parts:
            if not os.path.lexists(part.path) and self.record.of(part.path) is None:
                continue
            files.append(self._take_out(part))
        return Report(agent=self.place.agent, title=self.place.title, files=files, notes=[])

    def _take_out(self, part: Part) -> FileReport:
        nothing = FileReport(path=str(part.path), what=part.what, done="nothing")
        if not _names_us(part.path):
            return nothing
        found = read(part.path)
        text = found.text()
        said = _parsed(part, found, text)
        before = self.record.of(part.path)
        with _telling(found):
            rest, done = self._without_ours(part, found, text, before)
        if rest == text:
            return nothing
        was_made = before is not None and not before.existed
        empty = was_made and _same(bare(part.parsed(rest)), {}) and not _has_comments(rest)
        content = None if empty else found.encoded(rest)
        if not empty:
            _check(part, found, said, rest, gone=True)
        self.changes.append(Change(found, content))
        return FileReport(
            path=str(part.path),
            what=part.what,
            done="removed" if empty else done,
            diff=_diff(part.path, text, "" if empty else rest),
        )

    def _without_ours(
        self, part: Part, found: Found, text: str, before: record.Left | None
    ) -> tuple[str, Done]:
        if before is not None and before.ours:
            cut = without(text, before.ours) if _is_as_left(found, before) else None
            if cut is not None and record.digest(found.encoded(cut)) == before.original:
                return cut, "restored"
            cut = wherever(text, before.ours)
            if cut is not None and _is_clean(part, text, cut):
                return cut, "changed"
        return part.remove(text), "changed"


def _names_us(path: Path) -> bool:
    """Whether anything of ours can be in it. A file that was never ours need not even parse."""
    try:
        return NAME.encode() in path.read_bytes()
    except FileNotFoundError:
        return False
    except OSError:
        return True  # For `read` to say why.


def _is_as_left(found: Found, left: record.Left) -> bool:
    return found.content is not None and record.digest(found.content) == left.left


def _is_clean(part: Part, text: str, cut: str) -> bool:
    """Whether cutting left the person's settings as they were, and nothing of ours."""
    try:
        said = part.parsed(cut)
    except CannotEdit:
        return False
    return _same(bare(said), bare(part.parsed(text))) and part.remove(cut) == cut


def _parsed(part: Part, found: Found, text: str) -> object:
    with _telling(found):
        return part.parsed(text)


@contextmanager
def _telling(found: Found) -> Iterator[None]:
    """A text that cannot be edited is told with its file and what to do."""
    try:
        yield
    except CannotEdit as error:
        raise CannotInstall(
            f"{found.path} cannot be edited: {error}; nothing was changed:"
            " mend the file, then try again"
        ) from error


def _check(part: Part, found: Found, said: object, text: str, *, gone: bool = False) -> None:
    """The result parses, and says what was said before but for what is ours."""
    try:
        now = part.parsed(text)
    except CannotEdit as error:
        raise CannotInstall(
            f"{found.path} is written in a way that nothing can be added to ({error});"
            " nothing was changed: write its tables one a line, then try again"
        ) from error
    if not _same(bare(now), bare(said)) or (gone and part.remove(text) != text):
        raise CannotInstall(
            f"{found.path} is written in a way that cannot be edited safely; nothing was changed:"
            " write its tables one a line, then try again"
        )


def _same(one: object, other: object) -> bool:
    """Equal also where a number is no number."""
    return repr(one) == repr(other)


def _has_comments(text: str) -> bool:
    """What a person wrote into a file of ours, and no parser tells."""
    return bool(text.strip(" \t\r\n{}"))


def _diff(path: Path, before: str, after: str) -> str:
    """Only the lines that change: those beside them may hold what nobody should see."""
    lines = difflib.unified_diff(
        before.splitlines(), after.splitlines(), str(path), str(path), n=0, lineterm=""
    )
    return "\n".join(lines)
