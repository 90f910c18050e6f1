"""The store: the log, its texts, its tables, and what keeps them honest.

On SQLite here; `postgres.py` is imported only where a DSN is given.
"""

from .base import LogStore
from .errors import (
    NoMemoryYet,
    StoreBusy,
    StoreDamaged,
    StoreError,
    StoreFull,
    StoreLost,
    StoreMismatch,
    StoreSealed,
    StoreUnreadable,
)
from .sqlite import FILE, SqliteStore
from .verify import Difference, Verified

__all__ = [
    "FILE",
    "Difference",
    "LogStore",
    "NoMemoryYet",
    "SqliteStore",
    "StoreBusy",
    "StoreDamaged",
    "StoreError",
    "StoreFull",
    "StoreLost",
    "StoreMismatch",
    "StoreSealed",
    "StoreUnreadable",
    "Verified",
]
