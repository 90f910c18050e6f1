"""What is SQLite's own: tables, pragmas, how a position is issued. postgres_dialect is its sibling.

All other statements of the store are plain SQL over these tables.
"""

# Of the tables, as tests/fixtures/databases knows each one that there was.
SCHEMA_NUMBER = 2
APPLICATION_ID = 0x54424F4B  # "TBOK", which file(1) shows.

# A rowid table with an explicit id: balancing a WITHOUT ROWID tree leaves copies in page gaps.
# Indexes never cover the text, and the MAC goes with it. Erased ones have no owner.
BODIES = """
CREATE TABLE bodies (
    id    INTEGER PRIMARY KEY,
    ref   TEXT NOT NULL UNIQUE,
    owner TEXT NOT NULL,
    mac   BLOB NOT NULL,
    text  TEXT NOT NULL
) STRICT
"""
BODIES_OWNER = "CREATE INDEX bodies_owner ON bodies (owner)"

LOG = (
    # AUTOINCREMENT: a position is never issued twice, whatever has been cut off.
    """
CREATE TABLE events (
    position       INTEGER PRIMARY KEY AUTOINCREMENT,
    stream         TEXT NOT NULL,
    version        INTEGER NOT NULL,
    type           TEXT NOT NULL,
    recorded_at_ms INTEGER NOT NULL,
    actor          TEXT NOT NULL,
    run_id         TEXT,
    data           TEXT NOT NULL,
    chain          BLOB NOT NULL,
    UNIQUE (stream, version)
) STRICT
""",
    BODIES,
    BODIES_OWNER,
    """
CREATE TABLE erasures_pending (
    position INTEGER PRIMARY KEY,
    since_ms INTEGER NOT NULL,
    bodies   INTEGER NOT NULL
) STRICT
""",
    "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT",
)

ON_CREATION = (
    "PRAGMA journal_mode = WAL",
    "PRAGMA auto_vacuum = NONE",
)

# (pragma, value to set, value that must be read back). Rolled-back text must not have reached the
# WAL, hence no cache spill; freed bytes must be overwritten, hence secure_delete.
ON_EVERY_CONNECTION = (
    ("secure_delete", "ON", 1),
    ("synchronous", "FULL", 2),
    ("temp_store", "MEMORY", 2),
    ("cache_spill", "OFF", 0),
    ("trusted_schema", "OFF", 0),
)

LAST_POSITION_ISSUED = "SELECT seq FROM sqlite_sequence WHERE name = 'events'"

BEGIN_WRITING = "BEGIN IMMEDIATE"
BEGIN_READING = "BEGIN"

INSERT_EVENT = """
INSERT INTO events (position, stream, version, type, recorded_at_ms, actor, run_id, data, chain)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
