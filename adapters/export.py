"""Export: the memory folders as plain files somewhere else, from the log and not from the disk.

What a reader may not see is not written."""

from pathlib import Path

from ..application.joining import joined
from ..application.ports import Consolidator, Failure, View
from ..application.reading import reading_of_log, texts_of
from ..application.roots import Root, published, roots
from ..application.surroundings import Policy
from ..domain.refusals import Refused
from ..domain.scope import folder_name


class NotEmpty(Refused):
    code = "not_empty"

    def __init__(self, folder: Path) -> None:
        super().__init__(f"{folder} is not an empty folder; name one that is new or empty")


class NothingThere(Refused):
    code = "unknown_scope"

    def __init__(self, scope: str, there: list[Root]) -> None:
        known = ", ".join(root.scope for root in there) or "none yet"
        super().__init__(f"no memory of {scope} was written; there is {known}")


def exportable(view: View, policy: Policy, scope: str | None = None) -> list[Root]:
    """The roots that were published, or the one of a scope. Raises `NothingThere`."""
    there = [root for root in roots(view, policy) if published(view, root)]
    found = [root for root in there if scope in (None, root.scope)]
    if scope is not None and not found:
        raise NothingThere(scope, there)
    return found


def export(
    view: View, policy: Policy, folder: Path, *, scope: str | None = None
) -> dict[str, Path]:
    """One folder a root; the only root in all becomes `folder` itself. Scope -> where it is."""
    found = exportable(view, policy, scope)
    return write(
        folder,
        {
            root.scope: (
                folder if len(found) == 1 else folder / folder_name(root.scope),
                texts_of(reading_of_log(view, root)),
            )
            for root in found
        },
    )


def export_merged(
    view: View, policy: Policy, folder: Path, *, consolidator: Consolidator
) -> dict[str, Path]:
    """All roots joined into `folder`. Scope -> where it is."""
    found = exportable(view, policy)
    files = joined(view, found, consolidator=consolidator) if found else {}
    return write(
        folder, {root.scope: (folder, {} if at else files) for at, root in enumerate(found)}
    )


def write(folder: Path, found: dict[str, tuple[Path, dict[str, str]]]) -> dict[str, Path]:
    written = {}
    try:
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise NotEmpty(folder)
        for scope, (target, files) in found.items():
            for path, text in files.items():
                file = target / path
                make_private(file.parent)
                file.touch(mode=0o600)
                file.write_bytes(text.encode("utf-8"))
            written[scope] = target
    except OSError as error:
        raise Failure(
            f"{error.filename or folder} cannot be written ({error.strerror});"
            " choose another folder, or make room"
        ) from error
    return written


def make_private(folder: Path) -> None:
    """The folder and every missing one above it; `mkdir(parents=True)` would open those to all."""
    if not folder.parent.exists():
        make_private(folder.parent)
    folder.mkdir(mode=0o700, exist_ok=True)
