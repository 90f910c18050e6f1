"""A Codex memories folder, its own or one that we wrote: each raw memory with its summary.

`raw_memories.md` is one text with a section a session, and a session's words may hold what looks
like a section: whoever read the file in a session has it in that session's memory. So a section is
one only where its header says, field by field, what the summary that it names says; and of several
of one session it is the one that stands where its id belongs, for sections go by ascending id. If
that still leaves two, the session is left out, and told.
"""

import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import pairwise
from pathlib import Path

from msgspec import Struct

from ...application.foreign import CodexFolder, ForeignProject, ForeignThread, LeftOut
from ...application.roots import NOTES, RESOURCES, SCOPE_FILE, ScopeFile
from ...domain.artifact import MEMORY, RAW_MEMORIES, SUMMARIES, SUMMARY
from . import files
from .files import below, is_file, is_folder, texts

IN_ITS_HOME = "memories"
SKILLS = "skills"
RAW_BYTES_MAX = 256 << 20  # 4,096 sessions of the largest kind.
RAW_WITHOUT_SUMMARY = "no summary says what this section says; export the folder once more"

_THREAD = re.compile(r"^## Thread `(?P<id>[^\n]*)`\n", re.MULTILINE)
_STEM = re.compile(r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-[0-9A-Za-z]{4}(?:-(?P<slug>[^-]*).*)?\.md")
_RAW_FIELDS = ("updated_at", "cwd", "rollout_path", "rollout_summary_file")
_SUMMARY_FIELDS = ("thread_id", "updated_at", "rollout_path", "cwd", "git_branch")


class Summary(Struct, frozen=True, kw_only=True):
    header: dict[str, str]
    text: str


class Section(Struct, frozen=True, kw_only=True):
    """`begins` at its heading, its words at `words`."""

    thread_id: str
    begins: int
    words: int
    file: str


def is_one(folder: Path) -> bool:
    return is_folder(folder) and (is_file(folder / RAW_MEMORIES) or is_folder(folder / SUMMARIES))


def read(folder: Path) -> CodexFolder:
    left_out: list[LeftOut] = []
    try:
        raw = unix(files.text(folder / RAW_MEMORIES, bytes_max=RAW_BYTES_MAX))
    except (OSError, ValueError) as error:
        missing = isinstance(error, FileNotFoundError)
        told = (
            "it is missing, and without it no session can be imported (the layout v2 has none);"
            " give a folder of the layout v1"
            if missing
            else files.why(error)
        )
        left_out.append(LeftOut(what=RAW_MEMORIES, why=told))
        raw = ""
    found = texts(
        folder / SUMMARIES, below(folder / SUMMARIES, left_out, suffixes=(".md",)), left_out
    )
    summaries = {}
    for name, text in found.items():
        summary = summary_of(unix(text))
        if summary is None:
            why = "its first lines are no header of a summary"
            left_out.append(LeftOut(what=f"{SUMMARIES}/{name}", why=why))
        else:
            summaries[name] = summary
    threads = threads_of(raw, summaries, left_out)
    named = {thread.thread_id for thread in threads}
    if raw:
        for name, summary in summaries.items():
            if summary.header["thread_id"] not in named:
                why = f"{RAW_MEMORIES} has no section of this session"
                left_out.append(LeftOut(what=f"{SUMMARIES}/{name}", why=why))
    handbook = [name for name in (MEMORY, SUMMARY) if is_file(folder / name)]
    skills = (f"{SKILLS}/{path}" for path in below(folder / SKILLS, left_out))
    return CodexFolder(
        path=str(folder),
        threads=tuple(threads),
        notes=texts(folder / NOTES, below(folder / NOTES, left_out, suffixes=(".md",)), left_out),
        files=texts(folder, iter([*handbook, *skills]), left_out),
        projects=tuple(projects_of(folder / RESOURCES)),
        left_out=tuple(left_out),
    )


def projects_of(resources: Path) -> Iterator[ForeignProject]:
    """What the folder imported from another program. A handbook of ours has no place of its own."""
    places = sorted(resources.iterdir()) if is_folder(resources) else []
    for place in places:
        left_out: list[LeftOut] = []
        files = texts(place, below(place, left_out, suffixes=(".md", SCOPE_FILE)), left_out)
        said = ScopeFile.read(files.pop(SCOPE_FILE, ""))
        if files and not said.threads:
            yield ForeignProject(
                key=place.name, cwd=said.cwd, files=files, left_out=tuple(left_out)
            )


def summary_of(text: str) -> Summary | None:
    header, rest = header_of(text, _SUMMARY_FIELDS)
    if not {"thread_id", "updated_at", "rollout_path", "cwd"} <= header.keys():
        return None
    if not rest.startswith("\n") or seconds(header["updated_at"]) is None:
        return None
    return Summary(header=header, text=rest[1:].removesuffix("\n"))


def unix(text: str) -> str:
    """A file whose first line ends as on Windows was converted as a whole; others hold what a
    session said."""
    return text.replace("\r\n", "\n") if text.partition("\n")[0].endswith("\r") else text


def header_of(text: str, fields: Sequence[str]) -> tuple[dict[str, str], str]:
    """Its fields, each a line in this order, and what follows them."""
    header: dict[str, str] = {}
    for field in fields:
        line, _, rest = text.partition("\n")
        if not line.startswith(f"{field}: "):
            break
        header[field] = line.removeprefix(f"{field}: ")
        text = rest
    return header, text


def threads_of(
    raw: str, summaries: dict[str, Summary], left_out: list[LeftOut]
) -> list[ForeignThread]:
    found = []
    unlike: list[str] = []
    for match in _THREAD.finditer(raw):
        header, rest = header_of(raw[match.end() : match.end() + 16_384], _RAW_FIELDS)
        if len(header) < len(_RAW_FIELDS) or not rest.startswith("\n"):
            continue
        file = header["rollout_summary_file"]
        summary = summaries.get(file)
        says = {"thread_id": match["id"], **header}
        del says["rollout_summary_file"]
        if summary is None or any(summary.header[field] != told for field, told in says.items()):
            unlike.append(match["id"])
            continue
        words = match.end() + sum(len(f"{name}: {told}\n") for name, told in header.items()) + 1
        found.append(Section(thread_id=match["id"], begins=match.start(), words=words, file=file))
    sections = in_order(found, left_out)
    # An earlier section of a session that is there is a quotation.
    for thread_id in sorted(set(unlike) - {section.thread_id for section in found}):
        left_out.append(LeftOut(what=f"{RAW_MEMORIES}: {thread_id}", why=RAW_WITHOUT_SUMMARY))
    ends = [*(section.begins for section in sections[1:]), len(raw)] if sections else []
    return [
        thread
        for section, end in zip(sections, ends, strict=True)
        if (thread := thread_of(section, raw[section.words : end], summaries[section.file]))
    ]


def in_order(found: Sequence[Section], left_out: list[LeftOut]) -> list[Section]:
    """One section a session. Where one memory quotes others, taking that quotation out leaves them
    all in order; where several do, the one counts that stands where its id belongs."""
    times: dict[str, list[Section]] = {}
    for section in found:
        times.setdefault(section.thread_id, []).append(section)
    quoted = len(found) - len(times)
    for at in range(1, len(found) - quoted + 1) if quoted else ():
        kept = [*found[:at], *found[at + quoted :]]
        if is_ascending(found[:at]) and is_ascending(kept[at - 1 :]):
            return kept
    once = [sections[0] for sections in times.values() if len(sections) == 1]
    chosen = list(once)
    for thread_id, sections in times.items():
        fitting = [section for section in sections if fits(section, once)]
        if len(sections) > 1 and len(fitting) == 1:
            chosen += fitting
        elif len(sections) > 1:
            why = f"{RAW_MEMORIES} has several sections of it, and nobody can tell which is its own"
            left_out.append(LeftOut(what=thread_id, why=why))
    return sorted(chosen, key=lambda section: section.begins)


def is_ascending(sections: Sequence[Section]) -> bool:
    return all(a.thread_id < b.thread_id for a, b in pairwise(sections))


def fits(section: Section, others: Sequence[Section]) -> bool:
    return all(
        (other.thread_id < section.thread_id) == (other.begins < section.begins) for other in others
    )


def thread_of(section: Section, raw: str, summary: Summary) -> ForeignThread | None:
    updated_at = seconds(summary.header["updated_at"])
    assert updated_at is not None, "a summary whose time is none is no summary"
    named = _STEM.fullmatch(section.file)
    return ForeignThread(
        thread_id=section.thread_id,
        updated_at=updated_at,
        rollout_path=summary.header["rollout_path"],
        cwd=summary.header["cwd"] or None,
        git_branch=summary.header.get("git_branch"),
        raw_memory=raw.strip("\n"),
        rollout_summary=summary.text,
        rollout_slug=(named["slug"] if named else None) or None,
    )


def seconds(written: str) -> int | None:
    try:
        moment = datetime.fromisoformat(written)
    except ValueError:
        return None
    return int(moment.timestamp()) if moment.tzinfo else None
