"""Which project a thread or a folder belongs to."""

import os

from ..domain import scope
from ..domain.refusals import Refused
from ..projections import places, threads
from .ports import View
from .surroundings import Surroundings


class NeitherThreadNorFolder(Refused):
    code = "unknown_thread"

    def __init__(self, text: str) -> None:
        super().__init__(
            f"no thread {text} is known, and no folder of that name is here; `threadbook threads`"
            " lists the threads, and a folder may be written with its whole path"
        )


def scope_of_thread(view: View, thread_id: str) -> str | None:
    rows: list[threads.Row] = view.rows(threads, (thread_id,))
    return rows[0].scope if rows and rows[0].registered else None


def scope_of_place(around: Surroundings, view: View, path: str) -> str:
    """The scope that a session in this folder would have. A path may be that of a folder which is
    not there any more; a bare name that is no folder here is a slip of an id."""
    if os.sep not in path and not os.path.isdir(path):
        raise NeitherThreadNorFolder(path)
    path = os.path.abspath(path)
    seen = around.look(path)
    return scope_of(around, view, "this folder", cwd=path, root=seen.root, remote=seen.remote)


def scope_of(
    around: Surroundings,
    view: View,
    thread_id: str,
    *,
    cwd: str | None,
    repository_url: str | None = None,
    root: str | None,
    remote: str | None = None,
) -> str:
    """The scope that these facts give a thread, with what is known of the root's remote."""
    linked = view.find(places, places.OF_ROOT, root=root) if root else []
    return scope.scope_of(
        thread_id=thread_id,
        cwd=cwd,
        repository_url=repository_url,
        root=root,
        remote=remote,
        machine_id=around.machine_id,
        home_dirs=around.home_dirs,
        linked={row.root: row.remote for row in linked[:1]},
    )
