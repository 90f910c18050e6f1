"""Claude Code's own memory: Markdown below `projects/<key>/memory/`, one folder a project.

A key is a folder's name and says nothing by itself. Where the project lies is what its newest
session says; without one nobody knows whose memory it is.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path

from ...application.foreign import ClaudeFolder, ForeignProject, LeftOut
from ...domain.scope import place_key
from .files import READ, below, is_file, is_folder, text, texts

PROJECTS = "projects"
MEMORY = "memory"
SETTINGS = "settings.json"
CUSTOM = "autoMemoryDirectory"
MARKDOWN = (".md",)
LINES_READ_MAX = 200  # The first records of a session say where it ran.
LINE_BYTES_MAX = 1 << 20


def projects_of(folder: Path) -> Path | None:
    """The projects folder: of a home, or this one."""
    if is_folder(folder / PROJECTS):
        return folder / PROJECTS
    looks_so = is_folder(folder) and any(
        is_folder(each) and (is_folder(each / MEMORY) or any(sessions(each)))
        for each in folder.iterdir()
    )
    return folder if looks_so else None


def read(folder: Path) -> ClaudeFolder:
    projects = projects_of(folder)
    assert projects is not None, "somebody has looked"
    found = []
    for place in sorted(projects.iterdir(), key=lambda each: each.name):
        if not is_folder(place):
            continue
        left_out: list[LeftOut] = []
        files = texts(place / MEMORY, below(place / MEMORY, left_out, suffixes=MARKDOWN), left_out)
        if files or left_out:
            found.append(
                ForeignProject(
                    key=place.name,
                    cwd=cwd_of(place),
                    files=files,
                    left_out=tuple(left_out),
                )
            )
    return ClaudeFolder(
        path=str(projects), projects=tuple(found), left_out=tuple(elsewhere(projects.parent))
    )


def elsewhere(home: Path) -> Iterator[LeftOut]:
    """A memory folder that the settings name for all projects at once is nobody's here; it is told,
    and not followed."""
    try:
        settings = json.loads(text(home / SETTINGS))
    except (OSError, ValueError, RecursionError):
        return
    named = settings.get(CUSTOM) if isinstance(settings, dict) else None
    if isinstance(named, str):
        why = (
            f"{CUSTOM} names one folder for all projects, and nobody can tell whose a file in it is"
        )
        yield LeftOut(what=named, why=why)


def sessions(place: Path) -> Iterator[Path]:
    return (each for each in place.iterdir() if each.suffix == ".jsonl" and is_file(each))


def cwd_of(place: Path) -> str | None:
    """The first absolute folder that a session names, the newest session first."""

    def newest(path: Path) -> tuple[int, str]:
        return path.stat().st_mtime_ns, path.name

    for path in sorted(sessions(place), key=newest, reverse=True):
        for cwd in cwds(path):
            if place_key(cwd) is not None:
                return cwd
    return None


def cwds(path: Path) -> Iterator[str]:
    with open(os.open(path, READ), "rb") as file:
        for _ in range(LINES_READ_MAX):
            line = file.readline(LINE_BYTES_MAX)
            if not line:
                return
            try:
                record = json.loads(line)
            except (ValueError, RecursionError):
                continue
            cwd = record.get("cwd") if isinstance(record, dict) else None
            if isinstance(cwd, str):
                yield cwd
