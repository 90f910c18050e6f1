"""Both databases: a test that asks for `database` runs on the file and on a PostgreSQL server."""

import pytest

from tests.adapters.stores import DSN
from tests.postgres import server


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
