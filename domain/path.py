"""A path of a memory file: which ones there may be, told from the text alone.

One rule for everybody: for a consolidator before the disk is asked, for the folder that is
published, and for what is imported. What is accepted means one file below the folder on every
system that a memory may travel to. A refusal says which rule and what to do: its reader may be a
model.
"""

import re
import unicodedata

from .refusals import Refused

NAME_BYTES_MAX = 255
DEPTH_MAX = 16
PATH_CHARS_MAX = DEPTH_MAX * (NAME_BYTES_MAX + 1)
SHOWN_MAX = 80

# Also with an ending behind them: Windows opens the device all the same.
_DEVICES = re.compile(
    r"(con|conin\$|conout\$|prn|aux|nul|clock\$|com[0-9¹²³]|lpt[0-9¹²³])(\..*)?", re.IGNORECASE
)
_DRIVE = re.compile(r"[A-Za-z]:")
# Controls, what is not shown or turns the writing round, halves of characters, line breaks.
_UNSEEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}
_IGNORED_BY_HFS = re.compile("[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]")
_EXAMPLE = "skills/release/SKILL.md is one"


class BadName(Refused):
    """The text is no path of ours, whatever lies on the disk."""

    code = "bad_name"

    def __init__(self, path: str, why: str, advice: str) -> None:
        super().__init__(f"path {told(path)} {why}; {advice}")


def names_of(path: str) -> list[str]:
    """The names of a path, top first. Raises `BadName`."""
    if not path:
        raise BadName(path, "is empty", "name a file, such as MEMORY.md")
    if len(path) > PATH_CHARS_MAX:
        raise BadName(path, f"has {len(path)} characters", "shorten it")
    if path[0] == "/":
        raise BadName(path, "is absolute", f"give it relative to the memory folder: {_EXAMPLE}")
    if "\\" in path:
        raise BadName(path, "has a backslash", f"put / between names: {_EXAMPLE}")
    if _DRIVE.match(path):
        raise BadName(path, "begins with a drive", f"paths are relative: {_EXAMPLE}")
    names = path.split("/")
    if len(names) > DEPTH_MAX:
        raise BadName(path, f"has {len(names)} names", f"use at most {DEPTH_MAX}, folders included")
    for name in names:
        _check(path, name)
    return names


def _check(path: str, name: str) -> None:
    if not name:
        raise BadName(path, "has an empty name", "put one / between names, and none at an end")
    if name == "..":
        raise BadName(path, "goes up with ..", "only what is below the memory folder can be used")
    if has_unseen(name):
        raise BadName(
            path,
            "has a control character, an invisible one, or half of one",
            "use letters, digits, - and _",
        )
    if name[0] == "." or not is_content(name):
        raise BadName(path, "is hidden", "memory has no hidden files; choose a name without a dot")
    if name[0] == "~":
        raise BadName(path, "begins a name with ~", "which is nobody's home here; leave it out")
    if name[-1] in ". ":
        raise BadName(path, "ends a name with a dot or a space", "leave that off")
    if ":" in name:
        raise BadName(path, "has a colon", "not every system has that in names; use -")
    if _DEVICES.fullmatch(name) or _DEVICES.fullmatch(name.partition(".")[0].rstrip()):
        raise BadName(path, "is a device's name on Windows", "choose another name")
    length = len(name.encode())
    if length > NAME_BYTES_MAX:
        raise BadName(
            path, f"has a name of {length} bytes", f"{NAME_BYTES_MAX} are the most; shorten it"
        )


def folded(name: str) -> str:
    """What a name is to a file system that tells neither case nor composition apart.

    >>> folded("Re\u0301sume\u0301.MD") == folded("r\u00e9sum\u00e9.md")
    True
    """
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


def told(path: str) -> str:
    """A path in a message: quoted, with escapes, and not at any length."""
    shown = path if len(path) <= SHOWN_MAX else f"{path[:SHOWN_MAX]}…"
    return ascii(shown) if has_unseen(shown) else repr(shown)


def has_unseen(text: str) -> bool:
    """Whether a person who is shown it sees less, or something else, than is there."""
    return any(unicodedata.category(character) in _UNSEEN for character in text)


def is_content(name: str) -> bool:
    """Whether a file or folder of this name belongs to the memory, at whatever depth.

    `.git` and everything named like it does not: our temporary files are named so, that no reader
    takes one for memory, and git refuses trees with names that some file system reads as `.git`.
    What a desktop drops into every folder that it shows would start a consolidation each time.
    """
    plain = _IGNORED_BY_HFS.sub("", name).casefold()
    return not plain.startswith((".git", "git~", "._")) and plain != ".ds_store"
