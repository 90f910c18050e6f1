"""Foreign and own failures as one line and an exit code."""

import errno

from msgspec import ValidationError

from ...domain.refusals import Refused
from ..settings import SettingsError
from .common import fail

NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def told(error: Exception) -> int | None:
    """The exit code of a failure that has been told, or None for a mistake of ours."""
    if isinstance(error, Refused):
        return fail(str(error), code=1)
    if isinstance(error, SettingsError):
        return fail(str(error), code=2)
    from ...application.ports import Failure

    if isinstance(error, Failure):
        return fail(str(error), code=3)
    if isinstance(error, OSError) and error.filename:
        advice = "make room" if error.errno in NO_ROOM else "check the path"
        return fail(f"{error.filename}: {error.strerror}; {advice}, and run it again", code=3)
    if isinstance(error, OSError) and error.errno in NO_ROOM:
        return fail(f"{error.strerror}; make room and run it again, nothing was lost", code=3)
    if isinstance(error, ValidationError):
        return fail(
            f"the store holds something unexpected ({error}); run threadbook verify", code=3
        )
    return None
