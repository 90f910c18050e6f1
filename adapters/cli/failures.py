"""Foreign and own failures as one line and an exit code."""

from msgspec import ValidationError

from ...domain.refusals import Refused
from ..settings import SettingsError
from .common import fail


def told(error: Exception) -> int | None:
    """The exit code of a failure that has been told, or None for a mistake of ours."""
    if isinstance(error, Refused):
        return fail(str(error), code=1)
    if isinstance(error, SettingsError):
        return fail(str(error), code=2)
    from ...application.ports import Failure

    if isinstance(error, Failure):
        return fail(str(error), code=3)
    if isinstance(error, PermissionError | FileNotFoundError | NotADirectoryError):
        return fail(f"{error.filename}: {error.strerror}; check the path", code=3)
    if isinstance(error, ValidationError):
        return fail(
            f"the store holds something unexpected ({error}); run threadbook verify", code=3
        )
    return None
