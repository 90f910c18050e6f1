"""Which files are sessions, and where they lie by default.

A file is known by its first record, not by its name, so a folder is asked file by file; of each
only the first records are read. What cannot be opened is handed on as well, so that the reading
says why: a session that is passed over in silence looks like one that taught nothing.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from stat import S_ISDIR

from .errors import Unreadable

_ENDINGS = (".jsonl", ".jsonl.zst")
# Where a home keeps its sessions; beside these it keeps logs and caches of the same ending.
_CODEX_FOLDERS = ("sessions", "archived_sessions")
_CLAUDE_FOLDER = "projects"


def default_sources(
    environ: Mapping[str, str] | None = None, home: Path | None = None
) -> list[Path]:
    """The homes of Codex and Claude Code that exist for this user."""
    environ = os.environ if environ is None else environ
    home = Path.home() if home is None else home
    homes = (
        Path(environ.get("CODEX_HOME") or home / ".codex"),
        Path(environ.get("CLAUDE_CONFIG_DIR") or home / ".claude"),
    )
    return [path for path in homes if path.is_dir()]


def candidates(paths: Iterable[Path]) -> Iterator[tuple[Path, bool]]:
    """(file, whether a person named it), in a stable order, each once. A plain file hides its
    compressed sibling: they are one session, and the plain one is being written."""
    seen: set[Path] = set()
    for path in paths:
        try:
            is_folder = S_ISDIR(path.stat().st_mode)
        except FileNotFoundError as error:
            raise Unreadable(path, "there is no such file or folder") from error
        except (OSError, ValueError) as error:
            raise Unreadable(path, _reason(error)) from error
        for file in _under(path) if is_folder else (path,):
            key = file.absolute()
            if key not in seen:
                seen.add(key)
                yield file, not is_folder


def _under(folder: Path) -> Iterator[Path]:
    roots = [folder / name for name in _CODEX_FOLDERS if (folder / name).is_dir()]
    if not roots and (folder / _CLAUDE_FOLDER).is_dir():
        roots = [folder / _CLAUDE_FOLDER]
    for root in roots or [folder]:
        for place, folders, files in os.walk(root, onerror=_refuse):
            folders[:] = sorted(name for name in folders if name != ".git")
            names = {name for name in files if name.endswith(_ENDINGS)}
            for name in sorted(names):
                if not (name.endswith(".zst") and name.removesuffix(".zst") in names):
                    yield Path(place, name)


def _refuse(error: OSError) -> None:
    raise Unreadable(Path(error.filename or "?"), _reason(error)) from error


def _reason(error: Exception) -> str:
    return (getattr(error, "strerror", None) or str(error)).lower()
