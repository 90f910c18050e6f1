"""Every statement is written once, as SQLite reads it, and says the same on PostgreSQL."""

import re
import sqlite3
from itertools import product

import pytest
from hypothesis import HealthCheck, given, settings
from threadbook.adapters.store.postgres_dialect import translated
from threadbook.projections import roots
from threadbook.projections.catalog import SYNCHRONOUS
from threadbook.projections.fold import create, fold_all, plan, write

from tests.postgres import server
from tests.projections.histories import logs

SAID = {
    "SELECT a FROM t WHERE b = ? AND c = :c_1": "SELECT a FROM t WHERE b = %s AND c = %(c_1)s",
    "a IS NOT :a AND b IS NOT NULL AND c IS ?": (
        "a IS DISTINCT FROM %(a)s AND b IS NOT NULL AND c IS NOT DISTINCT FROM %s"
    ),
    "a LIKE '50%' AND b = ':no' AND c = '?' AND d = 'it''s :no'": (
        "a LIKE '50%%' AND b = ':no' AND c = '?' AND d = 'it''s :no'"
    ),
    "a % 2": "a %% 2",
    "x::text": "x::text",
    "FROM t INDEXED BY t_by_a WHERE a": "FROM t  WHERE a",
    "scope NOT GLOB 'quarantine:*'": "scope NOT LIKE 'quarantine:%%'",
    "SELECT json_group_array(a)": "SELECT coalesce(json_agg(a)::text, '[]')",
    "instr(stream, ':') = 0": "strpos(stream, ':') = 0",
    "CREATE TABLE t (a INTEGER NOT NULL, b BLOB, c TEXT) STRICT": (
        'CREATE TABLE t (a BIGINT NOT NULL, b BYTEA, c TEXT COLLATE "C") '
    ),
    "SELECT a FROM t LIMIT :most": "SELECT a FROM t LIMIT nullif(greatest(%(most)s, -1), -1)",
    "SELECT 'INTEGER', a FROM t": "SELECT 'INTEGER', a FROM t",
}


@pytest.mark.parametrize("statement", SAID)
def test_a_statement_of_ours_is_said_in_postgresqls_words(statement):
    assert translated(statement).strip() == SAID[statement].strip()


@pytest.fixture(scope="module")
def on_server():
    """The projections' tables in a schema of their own."""
    dsn = server().dsn()
    from threadbook.adapters.store.postgres_connections import Connection, connected
    from threadbook.adapters.store.postgres_place import Place

    place = Place(dsn)
    db = Connection(connected(place))
    db.script(f"CREATE SCHEMA {place.schema}")
    for projection in SYNCHRONOUS:
        create(projection, db)
    yield db
    db.close()


@pytest.fixture(scope="module")
def on_file():
    db = sqlite3.connect(":memory:", isolation_level=None)
    for projection in SYNCHRONOUS:
        create(projection, db)
    yield db
    db.close()


def queries():
    """Every query that stands by name in a projection's file, whole."""
    found = {}
    for module in (*SYNCHRONOUS, roots):
        for name, text in vars(module).items():
            if (
                name.isupper()
                and isinstance(text, str)
                and re.search(r"\b(WHERE|ORDER BY)\b", text)
            ):
                whole = text if "SELECT" in text.split("WHERE")[0] else None
                found[f"{module.__name__.split('.')[-1]}.{name}"] = (
                    whole or f"{plan(module).select} {text}"
                )
    return found


GIVEN = {
    "thread_id": ["t1", "t2", None],
    "current_thread_id": ["t1", None],
    "memory_version": ["v1", "v2"],
    "scope": ["global", "project:a"],
    "root": ["/home/ann/a", "r"],
    "kind": ["memory_stage1", "memory_consolidate_global"],
    "session_id": ["s1"],
    "session": ["s1", "s2"],
    "start": ["t", "t1", "", "%"],
    "day": ["1970-01-01", "1970-01-02"],
    "now": [0, 5, 90_000],
    "cutoff": [0, 5, 100_000],
    "oldest_ms": [0, 5],
    "newest_ms": [3, 100_000_000],
    "scan_limit": [-5, 1, 100],
    "enough": [-1, 0, 100],
    "most": [-1, 1, 100],
}


def asked(query):
    """Each way to fill in what a query asks for."""
    names = sorted(set(re.findall(r"(?<![:\w]):([a-z_]\w*)", re.sub("'[^']*'", "", query))))
    return [dict(zip(names, values, strict=True)) for values in product(*(GIVEN[n] for n in names))]


def test_the_queries_of_the_projections_are_found():
    found = queries()

    assert len(found) >= 30
    assert {"roots.ROOTS", "stage1_outputs.RANKED", "jobs.OTHERS_RUNNING"} <= found.keys()


@settings(
    max_examples=15,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(log=logs)
def test_every_query_of_every_projection_finds_the_same_rows_in_the_same_order(
    on_server, on_file, log
):
    for projection, rows in fold_all(SYNCHRONOUS, log).items():
        for db in (on_server, on_file):
            db.execute(f"DELETE FROM {projection.NAME}")
            write(projection, rows, db)

    for name, query in queries().items():
        for values in asked(query):
            found = [tuple(row) for row in on_server.execute(query, values).fetchall()]
            wanted = on_file.execute(query, values).fetchall()
            if name == "roots.ROOTS":  # A list in JSON, with blanks of its own.
                found = [(text.replace(" ", ""),) for (text,) in found]
            assert found == wanted, (name, values)
