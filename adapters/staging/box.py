"""box: the tools that a consolidating model has, and nothing else: seven on files, and `finish`.

Promises. No call reaches beyond the folder, starts a program or opens a connection. Whatever a
model asks, `call` answers with text, `error: …` where it is refused, and the refusal says what to
do; a program's own mistake is the only thing that raises. Inputs, which are made from the sessions
again, cannot be changed. What is spent (calls, bytes, files, time) is bounded, and counted here;
of each call the tool, the path and the size are kept, never a text.
"""

import time
from collections.abc import Callable, Collection
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ...application.ports import ToolUse
from ...domain.artifact import RAW_MEMORIES, SUMMARIES
from ...domain.path import folded, names_of, told
from ...domain.redaction import redact
from ...domain.refusals import Refused
from ...domain.search import lines_of
from ...projections.folder import WORKSPACE_DIFF
from .resolver import NotAFile, Resolver

RESULT_CHARS_MAX = 20_000
HEADER_CHARS_MAX = 1_200
LINE_CHARS_MAX = 400
READ_BYTES_MAX = 64 * 1024 * 1024  # What we filled in can be larger than what a model may write.

# Made by us, from the sessions, notes and imports. One with a / behind it is a whole folder.
INPUTS = (RAW_MEMORIES, WORKSPACE_DIFF, f"{SUMMARIES}/", "extensions/")


class Limits(NamedTuple):
    """Sizes in bytes. What is written counts each time, whatever it replaced. `files` is how many
    more there may be than were given, because a selection may be of any size."""

    bytes_total: int = 32 * 1024 * 1024
    bytes_file: int = 1024 * 1024
    files: int = 500
    calls_turn: int = 32
    calls: int = 500
    wall_s: float = 1_800.0


class Spent(Refused):
    code = "limit"


class ReadOnly(Refused):
    code = "read_only"


class BadCall(Refused):
    code = "bad_call"


class Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class ListFiles(Arguments):
    """List what is in a folder, one level, with sizes in bytes. Folders end with a slash."""

    path: str | None = Field(description="A folder such as skills; null for the memory folder.")
    start: int | None = Field(description="How many entries to leave out; null for none.")


class ReadFile(Arguments):
    """Read a file, a page at a time. The first line of the answer says where to read on."""

    path: str
    offset: int | None = Field(description="The character to begin at, from 0; null for 0.")


class SearchFiles(Arguments):
    """Find the lines that have a text, in every file of a folder, or in one file."""

    text: str = Field(description="Plain text within one line; no pattern.")
    path: str | None = Field(description="A folder or a file; null for everything.")
    ignore_case: bool
    start: int | None = Field(description="How many finds to leave out; null for none.")


class WriteFile(Arguments):
    """Make a file hold exactly this text, whether or not it is there. Folders are made."""

    path: str
    content: str


class ReplaceText(Arguments):
    """Replace one passage of a file. The old text must stand in it exactly once."""

    path: str
    old: str
    new: str


class MoveFile(Arguments):
    """Give a file another path, where nothing is yet."""

    path: str
    to: str


class DeleteFile(Arguments):
    """Remove a file. A folder goes with its last file."""

    path: str


class Finish(Arguments):
    """Say that the memory is complete. What stands in the folder is then checked."""


TOOLS: dict[str, type[Arguments]] = {
    "list": ListFiles,
    "read": ReadFile,
    "search": SearchFiles,
    "write": WriteFile,
    "replace": ReplaceText,
    "move": MoveFile,
    "delete": DeleteFile,
    "finish": Finish,
}
UNKNOWN = "unknown"  # What a call of any other name counts as: a name is a model's text.

Asked = TypeVar("Asked", bound=Arguments)


class Box:
    """The tools on one staging folder, for one consolidation. Close it when the model has ended."""

    def __init__(
        self,
        root: Path,
        limits: Limits = Limits(),  # noqa: B008 - it is a tuple of numbers
        *,
        read_only: Collection[str] = INPUTS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.limits = limits
        self.calls: dict[str, int] = {}
        self.done: list[ToolUse] = []
        self.finished = False
        self.bytes_written = 0
        self.paths = Resolver(root)
        self.files = sum(entry.kind == "file" for _, entry in self.paths.files())
        self._files_max = self.files + limits.files
        self._read_only = tuple(read_only)
        self._clock = clock
        self._started = clock()
        self._turn_calls = 0

    def close(self) -> None:
        self.paths.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        self.close()

    def tools(self) -> list[dict[str, Any]]:
        """The tools as the Responses API takes them: strict functions."""
        return [
            {
                "type": "function",
                "name": name,
                "description": kind.__doc__,
                "parameters": schema(kind),
                "strict": True,
            }
            for name, kind in TOOLS.items()
        ]

    def next_turn(self) -> None:
        """A new reply of the model: its calls are counted from here."""
        self._turn_calls = 0

    def spent(self) -> str | None:
        """Which limit leaves no call but `finish`; None while there are calls to be had."""
        if sum(self.calls.values()) >= self.limits.calls:
            return "calls"
        return "wall" if self._clock() - self._started >= self.limits.wall_s else None

    def call(self, name: str, arguments: str) -> str:
        """What a tool answers, in at most `RESULT_CHARS_MAX` characters."""
        known = name if name in TOOLS else UNKNOWN
        spent = self.spent()
        self.calls[known] = self.calls.get(known, 0) + 1
        self._turn_calls += 1
        asked: Arguments | None = None
        try:
            if name not in TOOLS:
                raise BadCall(f"there is no such tool; there are {', '.join(TOOLS)}")
            if name != "finish":
                self._refuse_more(spent)
            asked = self._parsed(TOOLS[name], arguments)
            answer, size = self._answer(asked)
        except Refused as refused:
            self._keep(known, asked, 0, refused.code)
            return f"error: {refused}"[:RESULT_CHARS_MAX]
        except OSError as error:
            self._keep(known, asked, 0, "disk")
            return f"error: {disk_said(error)}"
        self._keep(known, asked, size, "")
        return answer

    def _refuse_more(self, spent: str | None) -> None:
        if self.finished:
            raise Spent("the memory was finished; nothing more is done")
        if spent == "calls":
            raise Spent(f"all {self.limits.calls} calls of this run are used; call finish")
        if spent == "wall":
            raise Spent(f"the {self.limits.wall_s:,.0f} seconds of this run are over; call finish")
        if self._turn_calls > self.limits.calls_turn:
            raise Spent(
                f"a reply may make {self.limits.calls_turn} calls; make the others in the next one"
            )

    def _parsed(self, kind: type[Asked], arguments: str) -> Asked:
        # Six bytes of JSON are the most for one of text.
        if len(arguments) > 6 * self.limits.bytes_file + 100_000:
            raise Spent(f"the arguments are too long; {self._a_file()}")
        try:
            return kind.model_validate_json((arguments or "{}").encode())
        except UnicodeEncodeError:
            raise BadCall("the arguments are no Unicode text; send them as JSON") from None
        except ValidationError as error:
            found = error.errors(include_input=False, include_url=False, include_context=False)
            what = "; ".join(
                f"{'.'.join(map(str, each['loc']))[:80] or 'arguments'}: {each['msg'][:200]}"
                for each in found[:5]
            )
            expected = ", ".join(kind.model_fields) or "none"
            raise BadCall(f"{what} (the arguments are {expected}, in one JSON object)") from None

    def _answer(self, asked: Arguments) -> tuple[str, int]:
        match asked:
            case ListFiles():
                return self._list(asked)
            case ReadFile():
                return self._read(asked)
            case SearchFiles():
                return self._search(asked)
            case WriteFile():
                return self._write(asked.path, asked.content)
            case ReplaceText():
                return self._replace(asked)
            case MoveFile():
                return self._move(asked)
            case DeleteFile():
                return self._delete(asked)
            case Finish():
                self.finished = True
                return "finished; the folder is checked now", 0
        raise AssertionError(f"{type(asked).__name__} is a tool without an answer")

    def _list(self, asked: ListFiles) -> tuple[str, int]:
        names = below(asked.path)
        if self.paths.kind(names) == "file":
            raise NotAFile(f"{told('/'.join(names))} is a file; read it")
        lines = [
            f"{entry.name}/" if entry.kind == "folder" else f"{entry.name}  {entry.size}"
            for entry in self.paths.entries(names)
            if entry.kind != "other" and is_ours(entry.name)
        ]
        return page(lines, asked.start, "entries"), 0

    def _read(self, asked: ReadFile) -> tuple[str, int]:
        names = names_of(asked.path)
        text = self._text(names)
        start = asked.offset or 0
        if not 0 <= start <= len(text):
            raise BadCall(f"offset {start} is not within the file; it has {len(text)} characters")
        end = start + RESULT_CHARS_MAX - HEADER_CHARS_MAX
        if end < len(text):
            # At a line's end where there is one, so that lines are read whole.
            end = text.rfind("\n", start, end) + 1 or end
        end = min(end, len(text))
        said = f"characters {start} to {end} of {len(text)}"
        more = f"; read on with offset {end}" if end < len(text) else ""
        return f"{said}{more}\n\n{text[start:end]}", len(text[start:end].encode())

    def _search(self, asked: SearchFiles) -> tuple[str, int]:
        sought = asked.text.lower() if asked.ignore_case else asked.text
        if not sought.strip() or "\n" in sought:
            raise BadCall("text is blank or more than a line; search for a part of one line")
        names = below(asked.path)
        if self.paths.kind(names) == "file":
            wanted = [tuple(names)]
        else:
            self.paths.entries(names)  # Refuses what is no folder.
            wanted = [
                path
                for path, entry in self.paths.files(names)
                if entry.kind == "file" and all(map(is_ours, path))
            ]
        found = []
        for path in wanted:
            try:
                lines = lines_of(self._text(path))
            except (Refused, OSError):
                continue  # It is no text, or was taken away; `read` says which.
            for number, line in enumerate(lines, 1):
                if sought in (line.lower() if asked.ignore_case else line):
                    shown = line if len(line) <= LINE_CHARS_MAX else f"{line[:LINE_CHARS_MAX]}…"
                    found.append(f"{'/'.join(path)}:{number}: {shown}")
        return page(found, asked.start, "finds"), 0

    def _write(self, path: str, content: str) -> tuple[str, int]:
        names = self._writable(path)
        encoded = self._allowed(content)
        before = self.paths.size(names)
        if before is None and self.files >= self._files_max:
            raise Spent(
                f"{self.limits.files} more files than were given are the most; delete some, or"
                " write into one that is there"
            )
        self.files += self.paths.write(names, encoded)
        self.bytes_written += len(encoded)
        return f"{'/'.join(names)} has {len(encoded)} bytes now", len(encoded)

    def _replace(self, asked: ReplaceText) -> tuple[str, int]:
        names = self._writable(asked.path)
        text = self._text(names)
        at = text.find(asked.old)
        if not asked.old or at < 0:
            raise BadCall("old does not stand in the file; read it, and give a passage exactly")
        if text.find(asked.old, at + 1) >= 0:
            raise BadCall("old stands in the file more than once; give more of what is around it")
        return self._write(asked.path, text[:at] + asked.new + text[at + len(asked.old) :])

    def _move(self, asked: MoveFile) -> tuple[str, int]:
        names, to = self._writable(asked.path), self._writable(asked.to)
        self.paths.move(names, to)
        return f"{'/'.join(names)} is {'/'.join(to)} now", 0

    def _delete(self, asked: DeleteFile) -> tuple[str, int]:
        names = self._writable(asked.path)
        self.paths.delete(names)
        self.files -= 1
        return f"{'/'.join(names)} is gone", 0

    def _text(self, names: Collection[str]) -> str:
        path = "/".join(names)
        try:
            return self.paths.read(list(names), READ_BYTES_MAX).decode()
        except UnicodeDecodeError:
            raise NotAFile(f"{told(path)} is no UTF-8 text and cannot be used") from None

    def _writable(self, path: str) -> list[str]:
        names = names_of(path)
        wanted = [folded(name) for name in names]
        for each in self._read_only:
            given = [folded(name) for name in each.rstrip("/").split("/")]
            if wanted == given or (each.endswith("/") and wanted[: len(given)] == given):
                raise ReadOnly(
                    f"{told(path)} is made from the sessions and notes, and a change of it would"
                    " have no effect; write what you learn from it to MEMORY.md,"
                    " memory_summary.md or skills/"
                )
        return names

    def _allowed(self, content: str) -> bytes:
        if "\0" in content:
            raise BadCall("the text has a NUL character; memory is plain text, leave it out")
        try:
            encoded = content.encode()
        except UnicodeEncodeError:
            raise BadCall("the text has half of a character; leave it out") from None
        if len(encoded) > self.limits.bytes_file:
            raise Spent(f"the file would have {len(encoded):,} bytes; {self._a_file()}")
        left = self.limits.bytes_total - self.bytes_written
        if len(encoded) > left:
            raise Spent(
                f"a run may write {self.limits.bytes_total:,} bytes, and {left:,} are left of"
                " them; write less, or call finish"
            )
        return encoded

    def _a_file(self) -> str:
        return f"{self.limits.bytes_file:,} are the most; keep what a later session will need"

    def _keep(self, tool: str, asked: Arguments | None, size: int, refused: str) -> None:
        if len(self.done) < self.limits.calls:
            path, to = kept_path(asked, "path"), kept_path(asked, "to")
            self.done.append(ToolUse(tool=tool, path=path, bytes=size, refused=refused, to=to))


def schema(kind: type[Arguments]) -> dict[str, Any]:
    """What strict mode takes: every field required, nothing else allowed, no titles."""
    made = kind.model_json_schema()
    return {
        "type": "object",
        "properties": {
            name: {word: value for word, value in field.items() if word != "title"}
            for name, field in made.get("properties", {}).items()
        },
        "required": list(kind.model_fields),
        "additionalProperties": False,
    }


def below(path: str | None) -> list[str]:
    return [] if path in (None, "", ".", "./") else names_of((path or "").removesuffix("/"))


def is_ours(name: str) -> bool:
    try:
        return names_of(name) == [name]
    except Refused:
        return False


def page(lines: list[str], start: int | None, what: str) -> str:
    """As many lines as an answer has room for, and where the next ones begin."""
    first = start or 0
    if not 0 <= first <= len(lines):
        raise BadCall(f"start {first} is not within the {len(lines)} {what}; begin with null")
    room = RESULT_CHARS_MAX - HEADER_CHARS_MAX
    shown: list[str] = []
    for line in lines[first:]:
        room -= len(line) + 1
        if room < 0:
            break
        shown.append(line)
    end = first + len(shown)
    more = f"; go on with start {end}" if end < len(lines) else ""
    said = f"{len(lines)} {what}"
    if more or first:
        said = f"{what} {first + 1} to {end} of {len(lines)}{more}"
    return "\n".join([said, *shown])


def kept_path(asked: Arguments | None, argument: str) -> str:
    """The path that a call is recorded with: none of a text that is no path, and no secret."""
    path = getattr(asked, argument, None)
    if not isinstance(path, str):
        return ""
    try:
        return redact("/".join(names_of(path)))
    except Refused:
        return ""


def disk_said(error: OSError) -> str:
    return (
        f"the disk did not do it ({error.strerror or type(error).__name__});"
        " nothing was changed; try something smaller, or call finish"
    )
