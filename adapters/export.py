"""Export: the memory folders as plain files somewhere else, from the log and not from the disk.

What a reader may not see is not written."""

from pathlib import Path

from ..application.ports import Failure, View
from ..application.reading import reading_of_log, texts_of
from ..application.roots import Root, published, roots
from ..application.surroundings import Policy
from ..domain.refusals import Refused
from ..domain.scope import folder_name


class NotEmpty(Refused):
    code = "not_empty"

    def __init__(self, folder: Path) -> None:
        super().__init__(f"{folder} is not an empty folder; name one that is new or empty")


def export(view: View, policy: Policy, folder: Path) -> dict[str, Path]:
    """One folder a root; the only root in all becomes `folder` itself. Scope -> where it is."""
    found: list[tuple[Root, dict[str, str]]] = [
        (root, texts_of(reading_of_log(view, root)))
        for root in roots(view, policy)
        if published(view, root)
    ]
    written = {}
    try:
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise NotEmpty(folder)
        for root, files in found:
            target = folder if len(found) == 1 else folder / folder_name(root.scope)
            for path, text in files.items():
                file = target / path
                make_private(file.parent)
                file.touch(mode=0o600)
                file.write_bytes(text.encode("utf-8"))
            written[root.scope] = target
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
