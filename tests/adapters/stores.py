"""What tests of the store share: a home, events to put into it, and other processes beside it."""

import os
import sqlite3
import subprocess
import sys
from pathlib import Path

from threadbook.adapters.store import SqliteStore
from threadbook.domain.events import ThreadForgotten, ThreadPolluted
from threadbook.projections.catalog import SYNCHRONOUS

DSN = "dsn"  # A file of that name beside a home: the home's log is in PostgreSQL.
ROOT = Path(__file__).resolve().parents[2]
NOON = 1_767_268_800


def dsn_beside(home):
    file = home.parent / DSN
    return file.read_text() if file.exists() else None


def open_store(home, *, clock=lambda: float(NOON), projections=SYNCHRONOUS, **options):
    dsn = dsn_beside(home)
    if dsn is None:
        return SqliteStore.open(home, projections=projections, clock=clock, **options)
    from threadbook.adapters.store.postgres import PostgresStore

    return PostgresStore.open(
        dsn, home, projections=projections, clock=clock, machine=lambda: home.name, **options
    )


def edit(home, *statements):
    """As anyone could who may write the database."""
    dsn = dsn_beside(home)
    if dsn is not None:
        from tests.postgres import schema_of, server

        server().admin("BEGIN", *statements, "COMMIT", schema=schema_of(dsn))
        return
    db = sqlite3.connect(home / "threadbook.sqlite")
    for statement in statements:
        db.execute(statement)
    db.commit()
    db.close()


def polluted(thread_id="t1", at=NOON):
    return ThreadPolluted(at=at, thread_id=thread_id, cause="web_search", mode_before="enabled")


def forgotten(thread_id="t1", at=NOON):
    return ThreadForgotten(at=at, thread_id=thread_id, reason="person")


def append(store, count=1, thread_id="t1"):
    for _ in range(count):
        with store.writing(actor="pipeline") as writing:
            writing.append(f"thread:{thread_id}", polluted(thread_id))


PRELUDE = """
import os, sys, time
from pathlib import Path
from tests.adapters.stores import append, forgotten, open_store, polluted
home = Path(sys.argv[1])
"""


def process(script, home, *args, **options):
    """Another Python, with `home` and `args` on its command line. It prints lines; read them."""
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    return subprocess.Popen(
        [sys.executable, "-c", PRELUDE + script, str(home), *map(str, args)],
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


def ended(running):
    out, err = running.communicate(timeout=60)
    assert running.returncode == 0, err
    return out.split()


def bytes_of(home):
    """Every file of the home in one, for a search."""
    return b"\n".join(file.read_bytes() for file in sorted(home.rglob("*")) if file.is_file())
