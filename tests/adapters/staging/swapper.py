"""An attacker of the same user: swaps two names without a pause until it is ended.

`renameat2(RENAME_EXCHANGE)` swaps them in one step, so that there is no moment at which either is
missing. It is Linux's; elsewhere the tests that need it are skipped.
"""

import ctypes
import os
import subprocess
import sys
from contextlib import contextmanager, suppress

AT_FDCWD = -100
RENAME_EXCHANGE = 2


def exchange():
    """`renameat2` of the C library, or None."""
    if sys.platform != "linux":
        return None
    with suppress(AttributeError, OSError):
        return ctypes.CDLL(None, use_errno=True).renameat2
    return None


@contextmanager
def swapping(one, other):
    """Another process swaps the two names as fast as it can."""
    process = subprocess.Popen(
        [sys.executable, __file__, str(one), str(other)], stdout=subprocess.PIPE
    )
    try:
        assert process.stdout.readline() == b"swapping\n"
        yield
        assert process.poll() is None, "the attacker ended before the attack did"
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def swap_for_ever(one, other):
    swap = exchange()
    names = os.fsencode(one), os.fsencode(other)
    assert swap(AT_FDCWD, names[0], AT_FDCWD, names[1], RENAME_EXCHANGE) == 0
    print("swapping", flush=True)
    while True:
        # Whoever writes replaces one of them now and then, and both are there again at once.
        swap(AT_FDCWD, names[0], AT_FDCWD, names[1], RENAME_EXCHANGE)


if __name__ == "__main__":
    swap_for_ever(*sys.argv[1:])
