"""What the whole suite needs of its surroundings.

A test that asks for `database` runs on the file and on a PostgreSQL server.

Hypothesis has no deadline, because a busy machine is no failure. Where CI is set it draws the same
examples each time, so that what has passed here passes there; everywhere else it goes on looking
for new ones. And a suite that was started in
the background ignores Ctrl-C, which the programs it starts would inherit: tests that interrupt
them need them to listen.
"""

import os
import signal

import pytest
from hypothesis import settings

from tests.adapters.stores import DSN
from tests.postgres import server

settings.register_profile(
    "threadbook", deadline=None, print_blob=True, derandomize="CI" in os.environ
)
settings.load_profile("threadbook")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def dsn(tmp_path):
    """A schema of this test's own, and every home beside it opens there."""
    chosen = server().dsn()
    (tmp_path / DSN).write_text(chosen)
    return chosen


@pytest.fixture(params=["sqlite", "postgres"])
def database(request):
    if request.param == "postgres":
        request.getfixturevalue("dsn")
    return request.param
