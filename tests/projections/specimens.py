"""Plain events for examples, and the tables that follow them: a test names what it is about."""

import sqlite3

from msgspec import NODEFAULT
from msgspec.structs import fields
from threadbook.projections.catalog import SYNCHRONOUS
from threadbook.projections.fold import create, follow

PLAIN = {
    "at": 1,
    "thread_id": "t1",
    "memory_version": "v1",
    "scope": "project:a",
    "scope_before": "project:a",
    "ownership_token": "token",
    "worker_id": "ann",
    "input_watermark": 100,
    "lease_until": 3601,
    "retry_remaining": 3,
    "source_updated_at": 100,
    "counts_from": 100,
    "raw_memory_ref": "raw",
    "rollout_summary_ref": "summary",
    "rollout_slug_ref": None,
    "memory_mode": "enabled",
    "output_replaced": True,
    "output_removed": True,
    "extractor": "offline",
    "reason": "because",
    "cause": "web_search",
    "mode_before": "enabled",
    "backoff_cleared": True,
    "completed_watermark": 100,
    "last_success_watermark": 100,
    "selected": (),
    "tool": "codex",
    "source": "cli",
    "kind": "interactive",
    "rollout_path": "/sessions/t1.jsonl",
    "cwd": "/home/ann/a",
    "git_branch": None,
    "repository_url": None,
    "root": "/home/ann/a",
    "created_at_ms": 1_000,
    "updated_at_ms": 2_000,
    "preview_ref": "preview",
    "archived": False,
    "forked_from": None,
    "mode": "enabled",
    "mode_reason": "default",
    "citation_id": "s1:1",
    "usage_count": 1,
    "run_id": "run",
    "consolidator": "offline",
    "files": (),
    "renderer": "threadbook",
    "manifest_ref": "manifest",
    "body_ref": "body",
    "session_id": "s1",
    "via": "context",
    "remote": "example.org/a",
}


def plain(event, **given):
    needed = {field.name for field in fields(event) if field.default is NODEFAULT}
    needed -= {field.name for field in fields(event) if field.default_factory is not NODEFAULT}
    return event(**{name: PLAIN[name] for name in needed - given.keys()}, **given)


def tables(log):
    db = sqlite3.connect(":memory:")
    for projection in SYNCHRONOUS:
        create(projection, db)
    for event in log:
        for projection in SYNCHRONOUS:
            follow(projection, event, db)
    return db


def find(db, projection, rest, **values):
    columns = projection.Row.__struct_fields__
    query = f"SELECT {', '.join(columns)} FROM {projection.NAME} {rest}"
    return [
        projection.Row(**dict(zip(columns, row, strict=True))) for row in db.execute(query, values)
    ]


def value(db, query, **values):
    return db.execute(query, values).fetchone()[0]
