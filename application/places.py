"""Which project a thread or a folder belongs to."""

import os

from ..domain import scope
from ..projections import places, threads
from .ports import View
from .surroundings import Surroundings


def scope_of_thread(view: View, thread_id: str) -> str | None:
    rows: list[threads.Row] = view.rows(threads, (thread_id,))
    return rows[0].scope if rows and rows[0].registered else None


def scope_of_place(around: Surroundings, view: View, path: str) -> str:
    """The scope that a session in this folder would have."""
    path = os.path.abspath(path)
    seen = around.look(path)
    linked = {}
    if seen.root:
        rows = view.find(places, places.OF_ROOT, root=seen.root)
        linked = {row.root: row.remote for row in rows[:1]}
    return scope.scope_of(
        thread_id="this folder",
        cwd=path,
        root=seen.root,
        remote=seen.remote,
        machine_id=around.machine_id,
        linked=linked,
    )
