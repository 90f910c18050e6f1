"""The store on SQLite: the log, its texts, its tables, and what keeps them honest."""

from .errors import (
    StoreBusy,
    StoreDamaged,
    StoreError,
    StoreFull,
    StoreMismatch,
    StoreUnreadable,
)
from .sqlite import FILE, SqliteStore
from .verify import Difference, Verified

__all__ = [
    "FILE",
    "Difference",
    "SqliteStore",
    "StoreBusy",
    "StoreDamaged",
    "StoreError",
    "StoreFull",
    "StoreMismatch",
    "StoreUnreadable",
    "Verified",
]
