"""Places: what the disk says of the folder a session worked in: its project's root and remote.

Looked at once, at ingest; what was seen is recorded and never asked for again. Git is not run, and
nothing a repository says is followed or executed: two or three small files are read by hand, so a
hostile configuration has nothing to set off. Network paths are not touched at all, and a disk that
does not answer within a second has said nothing.
"""

import os
import re
import stat
from collections.abc import Callable
from pathlib import Path
from threading import Thread

from msgspec.structs import replace

from ..application.surroundings import ProjectFile, Seen

TIMEOUT_S = 1.0
PROJECT_FILE = ".threadbook.toml"
FILE_BYTES_MAX = 1 << 18

SECTION = re.compile(r'\[\s*([\w.-]+)(?:\s+"((?:[^"\\]|\\.)*)")?\s*\]')
URL = re.compile(r"url\s*=\s*(.*)", re.IGNORECASE)


def look(
    cwd: str | None,
    *,
    home: Path | None = None,
    timeout_s: float = TIMEOUT_S,
    disk: Callable[..., Seen] | None = None,
) -> Seen:
    """Root and remote of an existing local folder. Everything else, and a slow disk, says nothing.

    A folder in a linked worktree belongs to the main one. A repository at the home directory
    itself is how people keep their dotfiles; folders below do not belong to it.
    """
    if not cwd or not os.path.isabs(cwd) or is_network(cwd):
        return Seen()
    ask_disk = disk or seen
    answer: list[Seen] = []

    def ask() -> None:
        try:
            answer.append(ask_disk(Path(cwd), home=home or Path.home()))
        except (OSError, ValueError, RuntimeError):
            answer.append(Seen())  # Unreadable, no path at all, or a loop: nothing is known.

    # A hung mount cannot be interrupted; the thread is left to it and dies with the program.
    asking = Thread(target=ask, daemon=True)
    asking.start()
    asking.join(timeout_s)
    return answer[0] if answer else Seen()


def seen(cwd: Path, *, home: Path) -> Seen:
    start = cwd.resolve(strict=True)
    home = home.resolve()
    if not start.is_dir():
        return Seen()
    files: list[ProjectFile] = []
    for folder in (start, *start.parents):
        if folder == home and folder != start:
            break
        files += project_file(folder / PROJECT_FILE)
        entry = folder / ".git"
        if (entry / "HEAD").is_file():
            return Seen(root=str(folder), remote=origin(entry), files=tuple(files))
        if entry.is_file():
            return replace(linked(folder, entry), files=tuple(files))
    # Without a repository nothing says how far up a project reaches: only its own folder counts.
    own = [file for file in files if Path(file.path).parent == start]
    return Seen(files=tuple(own))


def project_file(path: Path) -> list[ProjectFile]:
    """What a project says of itself. One that is there and cannot be read is told, not skipped."""
    if not os.path.lexists(path):
        return []
    text = read(path)
    is_empty = path.is_file() and path.stat().st_size == 0
    return [ProjectFile(path=str(path), text=text if text or is_empty else None)]


def linked(folder: Path, entry: Path) -> Seen:
    """A `.git` that is a file: a linked worktree, a submodule, or a git folder kept elsewhere."""
    named = read(entry).strip()
    target = named.removeprefix("gitdir:").strip()
    if target == named or not target or is_network(target):
        return Seen(root=str(folder))
    git = (folder / target).resolve()
    shared = read(git / "commondir").strip()
    if not shared:
        return Seen(root=str(folder), remote=origin(git))
    # The main repository names its worktrees too. One that it does not name is a stranger that
    # wants to be taken for a part of it.
    back = read(git / "gitdir").strip()
    if is_network(shared) or is_network(back) or (git / back).resolve() != entry.resolve():
        return Seen(root=str(folder))
    common = (git / shared).resolve()
    root = common.parent if common.name == ".git" else common
    return Seen(root=str(root), remote=origin(common))


def origin(git: Path) -> str | None:
    return origin_url(read(git / "config"))


def origin_url(config: str) -> str | None:
    """The first address of the remote `origin` in the text of a git configuration."""
    inside = False
    for written in re.sub(r"\\\r?\n", "", config).split("\n"):
        line = written.strip()
        if section := SECTION.match(line):
            inside = section[1].lower() == "remote" and section[2] == "origin"
            line = line[section.end() :].strip()
        if inside and (url := URL.match(line)) and (value := unquoted(url[1])):
            return value
    return None


def unquoted(text: str) -> str:
    """A configuration value: without quotes, escapes, and the comment behind it."""
    kept, quoted, escaped = "", False, False
    for character in text:
        if escaped:
            kept, escaped = kept + character, False
        elif character == "\\":
            escaped = True
        elif character == '"':
            quoted = not quoted
        elif character in "#;" and not quoted:
            break
        else:
            kept += character
    return kept.strip()


def read(path: Path) -> str:
    """A small regular file's text; nothing where it is missing, large, or a pipe to wait on."""
    try:
        number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return ""
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        return ""
    with open(number, "rb") as file:
        content = file.read(FILE_BYTES_MAX + 1)
    return "" if len(content) > FILE_BYTES_MAX else content.decode("utf-8", "replace")


def is_network(path: str) -> bool:
    return path.startswith(("//", "\\\\"))
