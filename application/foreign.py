"""Foreign: what lies in a folder in which another program keeps what it remembers, as it was read.

Nothing of it is redacted, checked or anybody's yet; `importing.py` decides what becomes of it.
"""

from msgspec import Struct


class LeftOut(Struct, frozen=True, kw_only=True):
    what: str
    why: str


class ForeignThread(Struct, frozen=True, kw_only=True):
    """A session as another program's folder tells it. `updated_at` is in Unix seconds."""

    thread_id: str
    updated_at: int
    rollout_path: str
    cwd: str | None
    git_branch: str | None
    raw_memory: str
    rollout_summary: str
    rollout_slug: str | None


class ForeignProject(Struct, frozen=True, kw_only=True):
    key: str
    cwd: str | None
    files: dict[str, str] = {}
    left_out: tuple[LeftOut, ...] = ()


class CodexFolder(Struct, frozen=True, kw_only=True):
    """`notes` by file name; `files` are the handbook's, by path from the folder on; `projects` are
    what that folder imported itself."""

    path: str
    threads: tuple[ForeignThread, ...] = ()
    notes: dict[str, str] = {}
    files: dict[str, str] = {}
    projects: tuple[ForeignProject, ...] = ()
    left_out: tuple[LeftOut, ...] = ()


class ClaudeFolder(Struct, frozen=True, kw_only=True):
    path: str
    projects: tuple[ForeignProject, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
