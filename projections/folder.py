"""folder: the bytes of a memory root's inputs, `raw_memories.md` and `rollout_summaries/`.

Outputs in, texts out, nothing else: the same selection gives the same bytes wherever and whenever
it is written, and those bytes are Codex's own, so that a real Codex can be pointed at the folder.
The artifacts beside them (MEMORY.md, memory_summary.md, skills/) are the consolidator's.

Two departures, neither of which an honest session can reach. A line break or another control
character inside a header value is written as an escape, because a header is one field a line and a
directory's name must not be able to forge one. And outputs whose names would be one file keep their
texts: the first by id has Codex's name, every other has a digest of its id behind it.
"""

import hashlib
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Protocol

from ..domain.artifact import RAW_MEMORIES, SUMMARIES

WORKSPACE_DIFF = "phase2_workspace_diff.md"  # Made for a consolidator, and no memory.

_SLUG_CHARS_MAX = 60
_BASE_62 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_LAST_SECOND = 253_402_300_799  # of the year 9999: file names have four digits for a year.
_GREGORIAN_TO_UNIX = 0x01B21DD213814000  # 100 ns ticks from 1582-10-15, where UUIDs 1 and 6 begin.

_HYPHENATED = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_UUID = re.compile(
    rf"[0-9a-f]{{32}}|{_HYPHENATED}|\{{{_HYPHENATED}\}}|urn:uuid:{_HYPHENATED}",
    re.ASCII | re.IGNORECASE,
)
# What would end a header line for some reader, or cannot be written as UTF-8.
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
# Unicode's White_Space. Python's own strip takes four separators (U+001C to U+001F) more.
_WHITE_SPACE = "\t\n\x0b\x0c\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(
    map(chr, range(0x2000, 0x200B))
)


def is_input(path: str) -> bool:
    """Whether a file is made from the outputs; the others are artifacts."""
    return path == RAW_MEMORIES or path.startswith(f"{SUMMARIES}/")


def digest(content: bytes) -> str:
    """What a manifest knows a file's bytes by."""
    return hashlib.sha256(content).hexdigest()


class Output(Protocol):
    """One selected output. `updated_at` is source_updated_at, in Unix seconds."""

    @property
    def thread_id(self) -> str: ...
    @property
    def updated_at(self) -> int: ...
    @property
    def rollout_path(self) -> str: ...
    @property
    def cwd(self) -> str: ...
    @property
    def git_branch(self) -> str | None: ...
    @property
    def raw_memory(self) -> str: ...
    @property
    def rollout_summary(self) -> str: ...
    @property
    def rollout_slug(self) -> str | None: ...


def inputs(outputs: Sequence[Output], *, memory_version: str = "v1") -> dict[str, str]:
    """Path -> text of everything a consolidator reads. Version v2 has no `raw_memories.md`."""
    texts = {} if memory_version == "v2" else {RAW_MEMORIES: raw_memories(outputs)}
    for name, output in _named(outputs):
        texts[f"{SUMMARIES}/{name}"] = summary_file(output)
    return texts


def summary_file_names(outputs: Sequence[Output]) -> dict[str, str]:
    """Thread id -> the name of its file in `rollout_summaries/`."""
    return {output.thread_id: name for name, output in _named(outputs)}


def summary_file_name(thread_id: str, source_updated_at: int, slug: str | None) -> str:
    """`<time>-<hash4>[-<slug>].md`: stable for a thread as long as its slug is."""
    number = _uuid(thread_id)
    made_at = None if number is None else _uuid_second(number)
    second = source_updated_at if made_at is None else made_at
    seed = _rolling_hash(thread_id) if number is None else number & 0xFFFF_FFFF
    stem = f"{_utc(second):%Y-%m-%dT%H-%M-%S}-{_hash4(seed)}"
    cleaned = _cleaned(slug or "")
    return f"{stem}-{cleaned}.md" if cleaned else f"{stem}.md"


def summary_file(output: Output) -> str:
    fields = {
        "thread_id": output.thread_id,
        "updated_at": _utc(output.updated_at).isoformat(),
        "rollout_path": output.rollout_path,
        "cwd": output.cwd,
    }
    if output.git_branch is not None:
        fields["git_branch"] = output.git_branch
    return f"{_header(fields)}\n{output.rollout_summary}\n"


def raw_memories(outputs: Sequence[Output]) -> str:
    """In ascending thread id, never by rank: a rank that changes alone changes no byte."""
    if not outputs:
        return "# Raw Memories\n\nNo raw memories yet.\n"
    parts = [
        "# Raw Memories\n\nMerged stage-1 raw memories (stable ascending thread-id order):\n\n"
    ]
    for name, output in _named(outputs):
        fields = {
            "updated_at": _utc(output.updated_at).isoformat(),
            "cwd": output.cwd,
            "rollout_path": output.rollout_path,
            "rollout_summary_file": name,
        }
        parts.append(f"## Thread `{_one_line(output.thread_id)}`\n{_header(fields)}\n")
        parts.append(f"{output.raw_memory.strip(_WHITE_SPACE)}\n\n")
    return "".join(parts)


def _named(outputs: Sequence[Output]) -> list[tuple[str, Output]]:
    named = []
    taken = set()
    for output in sorted(outputs, key=lambda each: each.thread_id):
        first = summary_file_name(output.thread_id, output.updated_at, output.rollout_slug)
        name, turn = first, 0
        # Compared without case: hash4 has both cases, and a Mac's file system tells them not apart.
        while name.lower() in taken:
            turn += 1
            seed = f"{output.thread_id}\n{turn}".encode("utf-8", "surrogatepass")
            name = f"{first.removesuffix('.md')}-{hashlib.sha256(seed).hexdigest()[:8]}.md"
        taken.add(name.lower())
        named.append((name, output))
    return named


def _uuid(thread_id: str) -> int | None:
    if not _UUID.fullmatch(thread_id):
        return None
    return int(thread_id.lower().removeprefix("urn:uuid:").strip("{}").replace("-", ""), 16)


def _uuid_second(number: int) -> int | None:
    """When the UUID says it was made; None for versions that do not say, or say nonsense."""
    match number >> 76 & 0xF:
        case 1:
            ticks = (number >> 64 & 0xFFF) << 48 | (number >> 80 & 0xFFFF) << 32 | number >> 96
            second = (ticks - _GREGORIAN_TO_UNIX) // 10_000_000
        case 6:
            ticks = number >> 80 << 12 | number >> 64 & 0xFFF
            second = (ticks - _GREGORIAN_TO_UNIX) // 10_000_000
        case 7:
            second = (number >> 80) // 1000
        case _:
            return None
    return second if 0 <= second <= _LAST_SECOND else None


def _rolling_hash(thread_id: str) -> int:
    seed = 0
    for byte in thread_id.encode("utf-8", "surrogatepass"):
        seed = (seed * 31 + byte) & 0xFFFF_FFFF
    return seed


def _hash4(seed: int) -> str:
    digits = ""
    for _ in range(4):
        seed, digit = divmod(seed, 62)
        digits = _BASE_62[digit] + digits
    return digits


def _cleaned(slug: str) -> str:
    kept = (
        character.lower() if character.isascii() and character.isalnum() else "_"
        for character in slug[:_SLUG_CHARS_MAX]
    )
    return "".join(kept).rstrip("_")


def _utc(second: int) -> datetime:
    # A time beyond the calendar is some transcript's nonsense, and no reason to lose its memory.
    return datetime.fromtimestamp(min(max(second, 0), _LAST_SECOND), UTC)


def _header(fields: dict[str, str]) -> str:
    return "".join(f"{name}: {_one_line(value)}\n" for name, value in fields.items())


def _one_line(value: str) -> str:
    return _UNPRINTABLE.sub(
        lambda found: (
            found[0].encode("ascii", "backslashreplace").decode("ascii")
            if found[0] > "\x7f"
            else repr(found[0])[1:-1]
        ),
        value,
    )
