"""Spool: what a session was shown while somebody held the log, a line each, until it is recorded.

A line that was left is in the file whole or torn, never in the middle of another; and it is handed
out until whoever took it has come to a good end, so that a kill loses none. It may then be handed
out twice: the taker knows what it has recorded.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..application.ports import Failure

NAME = "shown.jsonl"


class Spool:
    def __init__(self, home: Path) -> None:
        self.path = home / NAME
        self.taken_path = home / f"{NAME}.taken"

    def leave(self, line: bytes) -> None:
        try:
            while not self._left(line):
                pass  # The file was taken while we opened it: there is a new one.
        except OSError as error:
            raise Failure(
                f"{self.path} cannot be written ({error.strerror}), so it is not known what this"
                " session was shown; make room, or make the file your own"
            ) from error

    def _left(self, line: bytes) -> bool:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        file = os.open(self.path, flags, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_SH)  # Held alone only for as long as a rename takes.
            try:
                if not os.path.samestat(os.fstat(file), os.stat(self.path)):
                    return False
            except FileNotFoundError:
                return False
            # A line that was torn before has no end of its own.
            os.write(file, b"\n" + line + b"\n")
            return True
        finally:
            os.close(file)

    @contextmanager
    def taking(self) -> Iterator[list[bytes]]:
        """The lines that were left. They are gone when the block has ended well."""
        try:
            self._take()
            taken = self.taken_path.open("rb")
        except FileNotFoundError:
            yield []
            return
        except OSError as error:
            raise self._unreadable(error) from error
        with taken:
            try:
                lines = [line for line in taken.read().split(b"\n") if line]
            except OSError as error:
                raise self._unreadable(error) from error
            yield lines
            self._remove(taken.fileno())

    def _unreadable(self, error: OSError) -> Failure:
        return Failure(
            f"{self.path} cannot be read ({error.strerror}); make it your own, or remove it"
        )

    def _remove(self, taken: int) -> None:
        """Only the file that was read: a quicker taker may have ended, and another begun."""
        fcntl.flock(taken, fcntl.LOCK_EX)  # Who else has read this file looks after us.
        try:
            if os.path.samestat(os.fstat(taken), os.stat(self.taken_path)):
                os.unlink(self.taken_path)
        except FileNotFoundError:
            return

    def _take(self) -> None:
        if self.taken_path.exists():
            return  # Somebody was killed with it, or is at it now.
        file = os.open(self.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            try:
                os.link(self.path, self.taken_path)  # Fails where another was first.
            except FileExistsError:
                return
            os.unlink(self.path)
        finally:
            os.close(file)
