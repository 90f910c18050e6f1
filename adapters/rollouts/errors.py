"""Why a file could not be read as a session, said so that a person can act on it."""

from pathlib import Path

from ...application.ports import Failure, NoLongerASession


class RolloutError(Failure):
    """A transcript cannot be read. `why` is a reason, `advice` what to do about it."""

    advice = "nothing was changed"

    def __init__(self, path: Path, why: str) -> None:
        # A name that is not UTF-8 must not break the message about it.
        shown = str(path).encode("utf-8", "backslashreplace").decode()
        super().__init__(f"{shown}: {why}; {self.advice}")
        self.path = path
        self.why = why


class NotASession(RolloutError, NoLongerASession):
    """The file was read, and none of its first records names a session."""

    advice = (
        "give a session file of Codex or Claude Code (.jsonl or .jsonl.zst), or a folder of them"
    )


class Unreadable(RolloutError):
    """The file is missing, closed to us, or its compression is damaged."""

    advice = "check the path and its permissions, or leave the file out, then run again"
