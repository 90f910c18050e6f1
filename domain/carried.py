"""Carried: what a person did to the published files, kept through every later publication.

A line that a person added stays until they remove it. A line that they removed stays out, wherever
the next text would have it; one that they only moved stands where the next text has it. Files are
written anew each time, so what was done to one is kept apart from it: the added lines with the
places where they stood, and the removed ones. Places and removed lines are kept as salted digests
only: they are other people's words, which a forgetting may have to take back.

What the summary cannot do without, its first line and its headings, is no edit: it is there anyway.

A statement is known by its words. Which tasks and days stand behind it is not part of them: tasks
are numbered anew with each text, and a session more changes the day. So an added line is kept
without such marks: it is a person's from then on. What is no statement is known by where it stands.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import msgspec
from msgspec import Struct

from .artifact import SUMMARY, is_form, unmarked
from .differing import changes
from .retold import retold

_HEADING = re.compile(r"(#{1,6}) ")
_TASK_NUMBER = re.compile(r"(?<=^## Task )\d+\b")
_WORD = re.compile(r"\w{3,}")
_DIGEST_CHARS = 32
# Of a line's words, how many one line of a forgotten session may have before both go. A long word
# is enough by itself, if only that session has it.
_SHARED_MAX = 0.3
_LONG_CHARS = 8
_TOP = ""  # The place before the first line.


class Added(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Lines that a person wrote in one place: behind one line, and under one heading."""

    lines: tuple[str, ...]
    after: str | None = None
    under: str | None = None


class Kept(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was done to one file."""

    added: tuple[Added, ...] = ()
    removed: tuple[str, ...] = ()


NOTHING = Kept()


class Carried(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was done to a root's files, by path."""

    salt: str
    files: dict[str, Kept] = {}

    def kept(self, path: str) -> Kept:
        return self.files.get(path, NOTHING)

    def lines(self, path: str) -> set[str]:
        """The lines of a file that a person wrote."""
        return {line for added in self.kept(path).added for line in added.lines if line.strip()}


def read(body: str) -> Carried:
    return msgspec.json.decode(body, type=Carried)


def written(carried: Carried) -> str:
    return msgspec.json.encode(carried).decode()


def edited(carried: Carried, path: str, before: str, after: str) -> Carried:
    """With what a person made of a file: `before` is what was published, `after` what they left."""
    old, new = before.split("\n"), after.replace("\r\n", "\n").split("\n")
    old_keys, new_keys = keys(carried.salt, old), keys(carried.salt, new)
    gaps = list(changes(old_keys, new_keys))
    gone = Counter(key for i, i_end, *_ in gaps for key in old_keys[i:i_end] if key)
    came = Counter(key for *_, j, j_end in gaps for key in new_keys[j:j_end] if key)
    moved = gone & came
    still_moved, left_out = Counter(moved), gone - moved
    there = set(new_keys)  # What they left in another place is not out.
    removed = dict.fromkeys(key for key in left_out if key not in there)
    lines_out: dict[str, list[str]] = {}
    for i, i_end, *_ in gaps:
        for at in range(i, i_end):
            if left_out[old_keys[at]] > 0:
                left_out[old_keys[at]] -= 1
                lines_out.setdefault(unmarked(old[at]), []).append(old_keys[at])
    added: list[Added] = []
    for begin, end in between_forms(path, new, gaps):
        lines: list[str] = []
        for at in range(begin, end):
            if still_moved[new_keys[at]] > 0:
                still_moved[new_keys[at]] -= 1
            else:
                lines.append(unmarked(new[at]))
        if any(map(str.strip, lines)):
            above = [key for key in new_keys[:begin] if key]
            heads = [new_keys[at] for at in range(begin) if is_heading(new[at])]
            added.append(
                Added(
                    lines=tuple(lines),
                    after=above[-1] if above else _TOP,
                    under=heads[-1] if heads else None,
                )
            )
    kept = carried.kept(path)
    back = {key for key in came if key not in moved}
    own: list[Added] = []
    for each in kept.added:
        left = []
        for line in each.lines:
            if line.strip() and lines_out.get(line):
                removed.pop(lines_out[line].pop(), None)
            else:
                left.append(line)
        if any(map(str.strip, left)):
            own.append(msgspec.structs.replace(each, lines=tuple(left)))
    changed = Kept(
        added=(*own, *(each for each in added if each not in own)),
        removed=tuple(dict.fromkeys(key for key in (*kept.removed, *removed) if key not in back)),
    )
    return msgspec.structs.replace(carried, files={**carried.files, path: changed})


def between_forms(
    path: str, lines: Sequence[str], gaps: Iterable[tuple[int, int, int, int]]
) -> Iterator[tuple[int, int]]:
    """From where to where lines came that the file does not have anyway."""
    for *_, begin, end in gaps:
        for at in range(begin, end):
            if is_fixed(path, lines[at]):
                yield begin, at
                begin = at + 1
        yield begin, end


def is_fixed(path: str, line: str) -> bool:
    return path == SUMMARY and is_form(path, line)


def applied(carried: Carried, path: str, made: str) -> str:
    """A text with what a person did to its forerunners.

    Added lines whose place has gone stand at the end of their heading's lines; without that one
    either, at the end of the file.
    """
    kept = carried.kept(path)
    if kept == NOTHING:
        return made
    made_lines = made.split("\n")
    fixed = [
        key
        for line, key in zip(made_lines, keys(carried.salt, made_lines), strict=True)
        if is_fixed(path, line)
    ]
    lines = left_of(carried.salt, made_lines, set(kept.removed).difference(fixed))
    for added in kept.added:
        there = keys(carried.salt, lines)
        at = position(lines, there, added)
        if at == 0 and lines and is_fixed(path, lines[0]):
            at = 1  # Nothing stands above a summary's first line.
        # What the text says by itself is not said twice.
        lines[at:at] = [
            line
            for line in added.lines
            if not is_statement(line) or statement(carried.salt, line) not in there
        ]
    if made.endswith("\n") and lines and lines[-1]:
        lines.append("")
    return "\n".join(lines)


def left_of(salt: str, lines: Sequence[str], out: Collection[str]) -> list[str]:
    """Without the lines that are out, and without a second empty one where they stood."""
    left: list[str] = []
    gap = False
    for line, key in zip(lines, keys(salt, lines), strict=True):
        if key in out:
            gap = True
        elif key or not gap or (left and left[-1].strip()):
            left.append(line)
            gap = gap and not key
    return left


def position(lines: Sequence[str], there: Sequence[str], added: Added) -> int:
    """Before which line they belong."""
    if added.after == _TOP:
        return 0
    within = section(lines, there, added.under)
    inside = [at for at in range(*within) if there[at] == added.after] if within else []
    found = inside or [at for at, key in enumerate(there) if key and key == added.after]
    if found:
        return found[0] + 1
    end = within[1] if within else len(lines)
    while end > 0 and not lines[end - 1].strip():
        end -= 1
    return end


def section(
    lines: Sequence[str], there: Sequence[str], heading: str | None
) -> tuple[int, int] | None:
    """From a heading to the next one."""
    if heading is None or heading not in there:
        return None
    start = there.index(heading)
    return start, next(
        (at for at in range(start + 1, len(lines)) if is_heading(lines[at])), len(lines)
    )


def forgetting(
    carried: Carried, told: Sequence[str], made: Mapping[str, str], *, salt: str
) -> Carried:
    """Without what a forgotten session said too: `told` are its lines, `made` the texts that were
    written without it. What of places and removed lines is not in these may be its words."""
    files: dict[str, Kept] = {}
    stays = words("\n".join(made.values()))
    for path, kept in carried.files.items():
        lines = made.get(path, "").split("\n")
        renewed = dict(zip(keys(carried.salt, lines), keys(salt, lines), strict=True))
        added = []
        for each in kept.added:
            out = said_by(each.lines, told, stays=stays)
            left = tuple(line for at, line in enumerate(each.lines) if at not in out)
            if any(map(str.strip, left)):
                after = _TOP if each.after == _TOP else renewed.get(each.after or "-")
                under = renewed.get(each.under or "-")
                added.append(Added(lines=left, after=after, under=under))
        removed = tuple(renewed[each] for each in kept.removed if each in renewed)
        if added or removed:
            files[path] = Kept(added=tuple(added), removed=removed)
    return Carried(salt=salt, files=files)


def said_by(lines: Sequence[str], told: Sequence[str], *, stays: set[str]) -> set[int]:
    """Which lines say what any of these does: in the same words, in many of them, or in one that
    is long and not among those that stay."""
    out = retold(lines, told, range(len(told)))
    sentences = [words(line) for line in told]
    alone = {word for each in sentences for word in each if len(word) >= _LONG_CHARS} - stays
    for at, line in enumerate(lines):
        mine = words(line)
        if mine & alone or any(len(mine & each) > _SHARED_MAX * len(mine) for each in sentences):
            out.add(at)
    return out


def words(line: str) -> set[str]:
    return set(_WORD.findall(line.casefold()))


def keys(salt: str, lines: Sequence[str]) -> list[str]:
    """What each line is found again by; nothing for an empty one."""
    found = []
    above: list[tuple[int, str]] = []
    for line in lines:
        if not line.strip():
            found.append("")
        elif is_statement(line):
            found.append(statement(salt, line))
        else:
            plain = _TASK_NUMBER.sub("", line.rstrip())
            heading = _HEADING.match(line)
            if heading:
                above = [each for each in above if each[0] < len(heading[1])]
            found.append(digest(salt, *(text for _, text in above), plain))
            if heading:
                above.append((len(heading[1]), plain))
    return found


def statement(salt: str, line: str) -> str:
    return digest(salt, unmarked(line).strip())


def digest(*parts: str) -> str:
    whole = "\n".join(parts).encode("utf-8", "surrogatepass")
    return hashlib.sha256(whole).hexdigest()[:_DIGEST_CHARS]


def is_statement(line: str) -> bool:
    return line.lstrip().startswith("- ")


def is_heading(line: str) -> bool:
    return _HEADING.match(line) is not None
