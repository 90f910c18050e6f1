"""A proposal: what an agent left in its folder, and what of it keeps it from being published.

An agent can only propose. Its files are taken if each is one that a memory has, is of a readable
size, holds no secret, names a source behind every statement, and points to nothing that is not
there; if what a person wrote is in them and what a person took out is not; and if most of what was
published before, and whose sources are still read, is still said. What is refused is said by file
and line, for the agent to mend, in words that quote no memory.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from .artifact import (
    MEMORY,
    SUMMARIES,
    SUMMARY,
    SUMMARY_BYTES_MAX,
    cited_tasks,
    is_form,
    is_source,
    pointed_threads,
    problems,
    unmarked,
)
from .carried import Added, Carried, Kept, is_statement, keys, words

MEMORY_BYTES_MAX = 256 * 1024
SKILL_BYTES_MAX = 64 * 1024
SKILL_LINES_MAX = 500
SKILL_FILES_MAX = 64
INPUTS = (f"{SUMMARIES}/", "extensions/")  # What a memory may rest on.
# So few statements may all go at once: a small memory changes as a whole.
REMOVED_ALWAYS = 2
# Of a statement's words, by how rare they are, what one of the new ones must have to say it still.
STILL_SAID_MIN = 0.5
ROUNDING = 1e-9
TOLD_MAX = 40  # Of one kind of thing that is wrong.

_SKILL = re.compile(
    r"skills/(?P<name>[a-z0-9][a-z0-9-]{0,63})/"
    r"(?P<rest>SKILL\.md|(?:(?:scripts|templates|examples)/)?[A-Za-z0-9_][A-Za-z0-9._-]{0,99})"
)
_FRONT_MATTER = re.compile(r"---\r?\n(.*?)\r?\n---\r?\n", re.DOTALL)
_FIELD = re.compile(r"^(name|description):[ \t]*(\S.*)$", re.MULTILINE)
# Only what can be no path of the project that a statement is about.
_PATH = re.compile(
    r"(?<![\w./-])rollout_summaries/[\w.-]*\w"
    r"|(?<=^- )extensions/[\w./-]*\w|(?<=thread_id=)extensions/[\w./-]*\w"
    r"|(?<![\w./-])skills/[a-z0-9-]+/SKILL\.md"
)
_THREAD = re.compile(r"\bthread_id=([^\s,;)]+)")

Redact = Callable[[str], str]


def is_publishable(path: str, memory_version: str) -> bool:
    """Whether a file of that name may be one of a root's artifacts."""
    if path == SUMMARY:
        return True
    return memory_version == "v1" and (path == MEMORY or path.startswith("skills/"))


def artifacts(
    files: Mapping[str, str], *, memory_version: str, own: Collection[str]
) -> dict[str, str]:
    """What of a folder would be published. `own`: a person's files, which stay theirs."""
    return {
        path: text
        for path, text in sorted(files.items())
        if is_publishable(path, memory_version) and path not in own
    }


def refusals(
    files: Mapping[str, str],
    *,
    memory_version: str,
    staged: Mapping[str, str],
    unusable: Mapping[str, str],
    threads: Collection[str],
    published: Mapping[str, str],
    carried: Carried,
    own: Collection[str],
    redact: Redact,
) -> list[str]:
    """What is wrong; nothing where the artifacts may be published.

    `staged` is what the agent was given, `threads` the sessions it was to read.
    """
    proposed = artifacts(files, memory_version=memory_version, own=own)
    named = {*staged, *proposed}
    outside = [
        some(strangers(files, unusable, memory_version=memory_version, staged=staged)),
        some(sizes(proposed)),
    ]
    if outside[1]:  # What is too large is not read: a line of it can be as long as it likes.
        return [redact(each) for kind in outside for each in kind]
    kinds = [
        *outside,
        some(problems(unclaimed(proposed, carried), version=memory_version)),
        some(dangling(proposed, carried, named=named, threads=threads)),
        some(secrets(proposed, redact)),
        some(skills(proposed)),
        [*undone(proposed, carried)],  # All of it: nobody else has the words any more.
    ]
    if not any(kinds):
        kinds = [list(removed(proposed, published, staged=staged, threads=threads))]
    return [redact(each) for kind in kinds for each in kind]


def some(found: Iterable[str]) -> list[str]:
    """As many as somebody may mend at once, and how many more: a model is paid for each."""
    told = list(found)
    if len(told) > TOLD_MAX:
        told[TOLD_MAX:] = [f"and {len(told) - TOLD_MAX:,} more like these"]
    return told


def strangers(
    files: Mapping[str, str],
    unusable: Mapping[str, str],
    *,
    memory_version: str,
    staged: Mapping[str, str],
) -> Iterator[str]:
    for path in sorted(files):
        if path not in staged and not is_publishable(path, memory_version):
            yield f"{path} is no file of this memory: move what matters of it, and delete it"
    for path, why in sorted(unusable.items()):
        if path not in staged or is_publishable(path, memory_version):
            yield f"{path} cannot be published: {why}"


def sizes(proposed: Mapping[str, str]) -> Iterator[str]:
    for path, text in proposed.items():
        most = bytes_max(path)
        size = len(text.encode("utf-8", "replace"))
        if size > most:
            yield f"{path} has {size:,} bytes, and {most:,} are the most: leave out what is least"


def leaves_no_room(path: str, kept: Kept) -> bool:
    """Whether a person's lines take more than half of what the file may hold. An agent could keep
    them only by giving up the rest, so the file is laid aside instead."""
    lines = [line for added in kept.added for line in added.lines]
    size = sum(len(line.encode("utf-8", "replace")) + 1 for line in lines)
    is_page = path.startswith("skills/") and path.endswith("/SKILL.md")
    return size * 2 > bytes_max(path) or (is_page and len(lines) * 2 > SKILL_LINES_MAX)


def bytes_max(path: str) -> int:
    return {MEMORY: MEMORY_BYTES_MAX, SUMMARY: SUMMARY_BYTES_MAX}.get(path, SKILL_BYTES_MAX)


def unclaimed(proposed: Mapping[str, str], carried: Carried) -> dict[str, str]:
    """The files with a person's lines empty: those need no form and no source."""
    return {path: emptied(text, carried.kept(path).added) for path, text in proposed.items()}


def emptied(text: str, added: Collection[Added]) -> str:
    if not added:
        return text
    lines = text.split("\n")
    theirs = claimed([unmarked(line) for line in lines], added)
    return "\n".join("" if at in theirs else line for at, line in enumerate(lines))


def claimed(lines: Sequence[str], added: Iterable[Added]) -> set[int]:
    """Where a person's lines stand. A line is theirs as often as they wrote it, and among several
    the one that stands with the others of its block: headings are the same in every task."""
    there = [at for at, line in enumerate(lines) if line]
    places: dict[str, list[int]] = {}
    for number, at in enumerate(there):
        places.setdefault(lines[at], []).append(number)
    theirs: set[int] = set()
    for block in added:
        left = [line for line in block.lines if line.strip()]
        while left:
            best, length = -1, 0
            for number in reversed(places.get(left[0], ())):
                run = 0
                while (
                    run < len(left)
                    and number + run < len(there)
                    and there[number + run] not in theirs
                    and lines[there[number + run]] == left[run]
                ):
                    run += 1
                if run > length:
                    best, length = number, run
                if length == len(left):
                    break
            theirs.update(there[best : best + length])
            left = left[max(length, 1) :]
    return theirs


def dangling(
    proposed: Mapping[str, str],
    carried: Carried,
    *,
    named: Collection[str],
    threads: Collection[str],
) -> Iterator[str]:
    """Sources and files that a line names and that are not there."""
    for path, text in unclaimed(proposed, carried).items():
        for at, line in enumerate(text.split("\n"), 1):
            if path == MEMORY and is_source(line):
                source = line[2 : line.index(" (cwd=")]
                if not source.startswith(INPUTS):
                    yield f"{path}:{at} names {source}, which is no source: it was not read"
            for other in _PATH.findall(line):
                if other not in named:
                    yield f"{path}:{at} names {other}, which is not in the folder"
            for each in [*_THREAD.findall(line), *pointed_threads(line)[1:]]:
                if each not in threads and each not in named and each != "none":
                    yield f"{path}:{at} names a session that is not among those to be read"


def secrets(proposed: Mapping[str, str], redact: Redact) -> Iterator[str]:
    for path, text in proposed.items():
        if redact(path) != path:
            yield "the name of a file holds what looks like a secret: choose another name"
        if redact(text) == text:
            continue
        lines = [at for at, line in enumerate(text.split("\n"), 1) if redact(line) != line]
        for at in lines:
            yield f"{path}:{at} holds what looks like a secret: write [REDACTED_SECRET] for it"
        if not lines:
            yield f"{path} holds what looks like a secret over several lines: leave it out"


def skills(proposed: Mapping[str, str]) -> Iterator[str]:
    found: dict[str, set[str]] = {}
    for path in proposed:
        if not path.startswith("skills/"):
            continue
        matched = _SKILL.fullmatch(path)
        if matched is None:
            yield (
                f"{path} is no file of a skill: skills/<name>/SKILL.md, and files in scripts/,"
                " templates/ or examples/ beside it, where a name has lowercase letters, digits"
                " and hyphens"
            )
        else:
            found.setdefault(matched["name"], set()).add(path)
    for name, paths in found.items():
        page = f"skills/{name}/SKILL.md"
        if len(paths) > SKILL_FILES_MAX:
            yield f"skills/{name} has more than {SKILL_FILES_MAX} files"
        if page not in paths:
            yield f"skills/{name} has no SKILL.md: write one, or delete the folder"
            continue
        text = proposed[page]
        front = _FRONT_MATTER.match(text)
        fields = dict(_FIELD.findall(front[1])) if front else {}
        if fields.get("name", "").strip("'\"") != name or not fields.get("description"):
            yield f"{page} must begin with front matter that has `name: {name}` and a description"
        if text.count("\n") > SKILL_LINES_MAX:
            yield f"{page} has more than {SKILL_LINES_MAX} lines"
        if not any(other in text for other in (SUMMARIES, "extensions/", "thread_id=")):
            yield f"{page} names no source: end it with `## Sources`"


def undone(proposed: Mapping[str, str], carried: Carried) -> Iterator[str]:
    """What a person did and the agent did not keep."""
    for path, kept in carried.files.items():
        if path not in proposed:
            continue  # That it is missing is said already, where it must not be.
        lines = proposed[path].split("\n")
        there = {unmarked(line) for line in lines}
        own = carried.lines(path)
        for line in sorted(own):
            if line not in there:
                yield f"{path} lacks a line that a person wrote; put it back word for word: {line}"
        out = set(kept.removed)
        for at, key in enumerate(keys(carried.salt, lines), 1):
            line = lines[at - 1]
            if key in out and unmarked(line) not in own and not is_form(path, line):
                yield f"{path}:{at} is a line that a person has taken out; leave it out"


def removed(
    proposed: Mapping[str, str],
    published: Mapping[str, str],
    *,
    staged: Mapping[str, str],
    threads: Collection[str],
) -> Iterator[str]:
    """Statements that are no longer said though their sources are still to be read, where these
    are more than half of all."""
    said = [words(line) for text in proposed.values() for line in statements(text)]
    before = []
    for path, text in published.items():
        # What a person has taken out is not the agent's to keep.
        here = {unmarked(line) for line in staged.get(path, "").split("\n")}
        before += [
            (f"{path}: {line}", words(unmarked(line)))
            for line in sourced(path, text, threads)
            if unmarked(line) in here
        ]
    # What stands in every statement, as "the user wrote", says little about any.
    spread = Counter(word for each in [*said, *(mine for _, mine in before)] for word in each)
    where: dict[str, list[int]] = {}
    for at, each in enumerate(said):
        for word in each:
            where.setdefault(word, []).append(at)
    gone = [line for line, mine in before if not is_said(mine, where, spread=spread)]
    if len(gone) > REMOVED_ALWAYS and len(gone) * 2 > len(before):
        yield (
            f"{len(gone)} of {len(before)} statements are gone although their sources are still"
            " here; a consolidation may remove no more than half of them. Put back what still"
            " holds:"
        )
        yield from gone[:TOLD_MAX]


def is_said(
    mine: set[str], where: Mapping[str, Sequence[int]], *, spread: Mapping[str, int]
) -> bool:
    """`where` tells of each word in which of the new statements it stands."""
    shared: dict[int, float] = {}
    for word in sorted(mine):
        for at in where.get(word, ()):
            shared[at] = shared.get(at, 0.0) + 1 / spread[word]
    whole = sum(1 / spread[word] for word in sorted(mine))
    return max(shared.values(), default=0.0) >= STILL_SAID_MIN * whole - ROUNDING


def statements(text: str) -> list[str]:
    return [line for line in text.split("\n") if is_statement(line)]


def sourced(path: str, text: str, threads: Collection[str]) -> Iterator[str]:
    """The statements of a published file of which some source is still to be read."""
    tasks = live_tasks(text, threads) if path == MEMORY else None
    for line in statements(text):
        named = pointed_threads(line)
        if named:
            if any(each in threads for each in named):
                yield line
        elif tasks is not None and any(number in tasks for number in cited_tasks(line)):
            yield line


def live_tasks(memory: str, threads: Collection[str]) -> set[int]:
    live, number = set(), 0
    for line in memory.split("\n"):
        heading = re.match(r"## Task (\d{1,9}): ", line)
        if heading:
            number = int(heading[1])
        elif any(each in threads for each in _THREAD.findall(line)):
            live.add(number)
    return live
