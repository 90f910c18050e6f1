"""What is PostgreSQL's own: its tables, how it begins, and how our statements are said there.

Every statement of the store and of the projections is written once, as SQLite reads it;
`translated` turns it into what PostgreSQL reads. It knows exactly the words that we use, each held
by a test. Text is compared by its bytes (`COLLATE "C"`), as SQLite does. A position is
max(position) + 1 under the advisory lock, because a sequence would have gaps after a rollback.
"""

import re
from functools import lru_cache
from hashlib import sha256

from . import dialect

TEXT = 'TEXT COLLATE "C"'

# Translated like every other statement, so that text is compared by its bytes here too.
LOG = (
    """
CREATE TABLE events (
    position       BIGINT PRIMARY KEY,
    stream         TEXT NOT NULL,
    version        BIGINT NOT NULL,
    type           TEXT NOT NULL,
    recorded_at_ms BIGINT NOT NULL,
    actor          TEXT NOT NULL,
    run_id         TEXT,
    data           TEXT NOT NULL,
    chain          BYTEA NOT NULL,
    UNIQUE (stream, version)
)
""",
    # A number that was issued once leads to a key that may be erased; it must not come again.
    "CREATE SEQUENCE body_numbers AS BIGINT",
    """
CREATE TABLE bodies (
    ref    TEXT PRIMARY KEY,
    owner  TEXT NOT NULL,
    path   BYTEA NOT NULL,
    sealed BYTEA NOT NULL
)
""",
    "CREATE INDEX bodies_owner ON bodies (owner)",
    # What every machine's key file has to drop, and how far each has come.
    """
CREATE TABLE erasures (
    id       BIGINT PRIMARY KEY,
    path     BYTEA NOT NULL,
    since_ms BIGINT NOT NULL
)
""",
    """
CREATE TABLE machines (
    machine TEXT PRIMARY KEY,
    applied BIGINT NOT NULL,
    seen_ms BIGINT NOT NULL
)
""",
    "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL)",
)

BEGIN_READING = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"

# The few statements that are said in another way altogether.
SAID_OTHERWISE = {
    # There is no counter beside the table; what was cut off, the head knows.
    dialect.LAST_POSITION_ISSUED: "SELECT max(position) FROM events HAVING count(*) > 0",
}


def begin_writing(schema: str, wait_s: float) -> str:
    """One round trip. A statement sees what is committed by then, so that nothing older than the
    lock is decided on."""
    return (
        "BEGIN ISOLATION LEVEL READ COMMITTED;"
        f" SET LOCAL lock_timeout = {max(1, int(wait_s * 1000))};"
        f" SELECT pg_advisory_xact_lock({lock_key(schema)})"
    )


def lock_key(schema: str) -> int:
    """Advisory locks are the whole database's, so that the key names whose it is."""
    digest = sha256(f"threadbook:{schema}".encode()).digest()
    return int.from_bytes(digest[:8], signed=True)


@lru_cache(maxsize=512)
def translated(statement: str) -> str:
    """A statement of ours for psycopg: `?` and `:name` as its placeholders, SQLite's words as
    PostgreSQL's. What stands between quotes stays as it is, except that % is doubled."""
    if statement in SAID_OTHERWISE:
        return SAID_OTHERWISE[statement]
    statement = GLOB_OF_PREFIX.sub(r"LIKE '\1%'", statement)
    pieces = QUOTED.split(statement)
    makes_a_table = statement.lstrip().startswith("CREATE TABLE")
    return "".join(
        piece.replace("%", "%%") if n % 2 else said(piece, makes_a_table=makes_a_table)
        for n, piece in enumerate(pieces)
    )


def said(piece: str, *, makes_a_table: bool) -> str:
    piece = piece.replace("%", "%%")
    for found, instead in WORDS:
        piece = found.sub(instead, piece)
    if makes_a_table:
        for found, instead in TYPES:
            piece = found.sub(instead, piece)
    return NAMED.sub(r"%(\1)s", piece.replace("?", "%s"))


QUOTED = re.compile(r"('(?:[^']|'')*')")
NAMED = re.compile(r"(?<![:\w]):([a-z_][a-z0-9_]*)")
GLOB_OF_PREFIX = re.compile(r"\bGLOB '([^'*?\[\]%_\\]*)\*'")
WORDS = (
    (re.compile(r"\bIS NOT (?=[?:])"), "IS DISTINCT FROM "),
    (re.compile(r"\bIS (?=[?:])"), "IS NOT DISTINCT FROM "),
    # PostgreSQL takes no advice about indexes; its planner finds the partial ones by itself.
    (re.compile(r"\bINDEXED BY \w+"), ""),
    (re.compile(r"\bjson_group_array\((\w+)\)"), r"coalesce(json_agg(\1)::text, '[]')"),
    (re.compile(r"\binstr\("), "strpos("),
    # A negative limit is none.
    (re.compile(r"\bLIMIT :(\w+)"), r"LIMIT nullif(greatest(:\1, -1), -1)"),
)
TYPES = (
    (re.compile(r"\)\s*STRICT\s*$"), ")"),
    (re.compile(r"\bINTEGER\b"), "BIGINT"),
    (re.compile(r"\bBLOB\b"), "BYTEA"),
    (re.compile(r"\bTEXT\b"), TEXT),
)

# How a table and its indexes are defined, in words that do not depend on its name's place.
DEFINITION = """
SELECT 'column', column_name, data_type || ' ' || is_nullable || ' ' ||
       coalesce(collation_name, '') || ' ' || coalesce(column_default, ''), ordinal_position
FROM information_schema.columns
WHERE table_schema = current_schema() AND table_name = ?
UNION ALL
SELECT 'index', indexname, indexdef, 0
FROM pg_indexes
WHERE schemaname = current_schema() AND tablename = ?
ORDER BY 1, 4, 2
"""

# Who else holds the write lock, for a message: what the other called itself, and from where.
HOLDER = """
SELECT application_name, coalesce(client_addr::text, 'this machine'), activity.pid
FROM pg_locks JOIN pg_stat_activity AS activity ON activity.pid = pg_locks.pid
WHERE locktype = 'advisory' AND granted AND objsubid = 1
  AND ((classid::bigint << 32) | objid::bigint) = ?
LIMIT 1
"""
