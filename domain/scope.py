"""Scope: which memory a session belongs to, as a pure function of recorded facts.

What is promised: the same facts give the same scope on every machine and operating system, two
projects never meet by accident, and no question is asked of a disk or a network here. A remote
names a project wherever its folder lies; a folder without one is this machine's alone; what is
neither (no cwd, a home directory, a root directory) is in quarantine, read by nobody.

Paths are told apart by their form. Windows folders compare without case, either slash, a closing
slash and the extended-length prefix; `/mnt/<letter>/` is taken for the Windows drive that WSL
mounts there, so one folder is one project seen from either side (the price: on a Linux machine
with single letters under /mnt, folders there that differ only by case are one project). A folder
of a WSL distribution is the same under both of its network names. Other paths keep their case.
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping
from hashlib import sha256

from .events import ProjectLinked, ThreadRescoped
from .refusals import BadScope
from .remote import normalised, public_url
from .thread import Thread, rescope

GLOBAL = "global"
USER = "user"

SCOPE = re.compile(r"global|user|project:\w(?:[\w.-]*[\w-])?")
HOME = re.compile(
    r"(?:wsl:[^/]+)?/(?:root|var/root|(?:home|Users)(?:/[^/]+)?)|[a-z]:/users(?:/[^/]+)?"
)
NAME_CHARS_MAX = 40  # Of what is taken from a folder or remote.
NAME_BYTES_MAX = 200  # Of what a person writes: a file system takes 255, lock and edits need some.


def scope_of(
    *,
    thread_id: str,
    cwd: str | None,
    repository_url: str | None = None,
    root: str | None = None,
    remote: str | None = None,
    machine_id: str,
    home_dirs: Iterable[str] = (),
    linked: Mapping[str, str] | None = None,
) -> str:
    """The key of a thread's memory.

    cwd and repository_url are the transcript's, root and remote were seen on disk. `linked` says
    which roots have been given which remote (`ProjectLinked`).
    """
    if named := normalised(repository_url) or normalised(remote):
        return project_of_remote(named)
    place = place_key(root) or place_key(cwd)
    if place is None:
        return f"quarantine:{thread_id}"
    for linked_root, linked_remote in (linked or {}).items():
        if place_key(linked_root) == place and (named := normalised(linked_remote)):
            return project_of_remote(named)
    if is_ambiguous(place, home_dirs=home_dirs):
        return f"quarantine:{thread_id}"
    return project_of_place(place, machine_id=machine_id)


def project_of_remote(named: str) -> str:
    return project(named, identity=f"remote\0{named}")


def project_of_place(place: str, *, machine_id: str) -> str:
    return project(place, identity=f"place\0{machine_id}\0{place}")


def project_of_root(root: str, *, machine_id: str) -> str:
    """The scope of a root that no remote is known of."""
    place = place_key(root)
    assert place is not None, "a root that was seen on the disk is absolute"
    return project_of_place(place, machine_id=machine_id)


def project(path: str, *, identity: str) -> str:
    digest = sha256(identity.encode("utf-8", "surrogatepass")).hexdigest()
    return f"project:{slug(path.rpartition('/')[2])}-{digest[:8]}"


def slug(text: str) -> str:
    """What a person recognises of a name, in characters that every file system takes."""
    return re.sub(r"[^\w.-]+", "-", folded(text))[:NAME_CHARS_MAX].strip(".-") or "project"


def place_key(path: str | None) -> str | None:
    """A folder's name for comparing, whatever system wrote it; None where it is not absolute."""
    if not path:
        return None
    text = unicodedata.normalize("NFC", path)
    if mounted := re.match(r"/mnt/([A-Za-z])(?:/|$)", text):
        return joined(f"{mounted[1].lower()}:", text[mounted.end() :].casefold(), windows=True)
    if text.startswith("/") and not text.startswith("//"):
        return joined("", text, windows=False)
    slashed = text.replace("\\", "/")
    if extended := re.match(r"//[?.]/(UNC/)?", slashed, re.IGNORECASE):
        slashed = ("//" if extended[1] else "") + slashed[extended.end() :]
    if drive := re.match(r"([A-Za-z]):/", slashed):
        return joined(f"{drive[1].lower()}:", slashed[3:].casefold(), windows=True)
    return share_key(slashed) if slashed.startswith("//") else None


def share_key(slashed: str) -> str | None:
    server, _, rest = slashed[2:].partition("/")
    share, _, path = rest.partition("/")
    if not server or not share:
        return None
    if server.casefold() in ("wsl.localhost", "wsl$"):
        return joined(f"wsl:{share.casefold()}", path, windows=False)
    return joined(f"//{server.casefold()}/{share.casefold()}", path.casefold(), windows=True)


def joined(start: str, path: str, *, windows: bool) -> str:
    parts: list[str] = []
    for part in path.split("/"):
        # Windows itself drops dots and spaces at the end of a name.
        name = part.rstrip(". ") if windows and part.strip(".") else part
        if name == "..":
            del parts[-1:]
        elif name not in ("", "."):
            parts.append(name)
    return "/".join([start, *parts]) if parts else f"{start}/"


def is_ambiguous(place: str, *, home_dirs: Iterable[str] = ()) -> bool:
    """Too wide to be a project: the root of a drive, a share or a system, or somebody's home."""
    homes = {place_key(home) for home in home_dirs}
    return place.endswith("/") or HOME.fullmatch(place) is not None or place in homes


def has_root(scope: str) -> bool:
    """Whether phase 2 makes a folder of it. Quarantine is read by nobody; `user` is promoted by
    hand."""
    return scope == GLOBAL or scope.startswith("project:")


def checked(text: str) -> str:
    """A scope that a person wrote. Each is a folder, so two must not be one where case and accents
    do not tell names apart, nor one be the folder in which another's edits are kept."""
    fits = len(text.encode("utf-8", "replace")) <= NAME_BYTES_MAX and text == folded(text)
    if not fits or not SCOPE.fullmatch(text) or text.endswith(".edits"):
        raise BadScope(text)
    return text


def folded(text: str) -> str:
    return unicodedata.normalize("NFC", text.casefold())


def folder_name(scope: str) -> str:
    """One name that every file system takes: no separator in it, no dot or space at its end."""
    return re.sub(r"[^\w.-]", "-", scope).strip(".") or "-"


def link(
    *,
    root: str,
    remote: str,
    known_remote: str | None,
    threads: Iterable[Thread],
    machine_id: str,
    now: int,
) -> tuple[ProjectLinked | ThreadRescoped, ...]:
    """What follows when a remote is seen at a root. The first one takes the root's threads along.

    So it does whenever it is seen again: a thread may have been told its root later. Another
    remote moves nothing, and what has a remote of its own, was put elsewhere by a person, or is
    forgotten is not moved.
    """
    named, place = normalised(remote), place_key(root)
    if named is None or place is None or (known_remote and normalised(known_remote) != named):
        return ()
    here, there = project_of_place(place, machine_id=machine_id), project_of_remote(named)
    moved = [
        rescope(thread, scope=there, reason="project_linked", now=now)
        for thread in threads
        if thread.exists and not thread.forgotten and thread.scope == here
    ]
    followed = tuple(event for event in moved if event is not None)
    if known_remote:
        return followed
    return (
        ProjectLinked(at=now, scope=there, root=root, remote=public_url(remote) or named),
        *followed,
    )
