"""jobs: one row for each piece of work that only one worker may do at a time.

Phase 1 has a row per thread and memory version, phase 2 one per memory root. A job is held while
its status is `running` and the token is the holder's; `lease_until` only says from when on somebody
else may take it. The token stays after the end, as proof of who it was. Fresh, late and cooling
down are questions about these columns and a clock; the answers are never stored.
"""

from collections.abc import Sequence
from typing import Literal, assert_never

from msgspec import Struct
from msgspec.structs import replace

from ..domain.events import (
    ConsolidationRequested,
    Phase2Failed,
    Phase2LeaseClaimed,
    Phase2LeaseReleased,
    Phase2LeaseRenewed,
    Phase2Succeeded,
    Stage1Failed,
    Stage1LeaseClaimed,
    Stage1LeaseReleased,
    Stage1Succeeded,
    Stage1SucceededNoOutput,
    StoreReset,
    ThreadForgotten,
)

STAGE1 = "memory_stage1"
PHASE2 = "memory_consolidate_global"

Stage1JobEvent = (
    Stage1LeaseClaimed
    | Stage1LeaseReleased
    | Stage1Succeeded
    | Stage1SucceededNoOutput
    | Stage1Failed
)
Phase2JobEvent = (
    ConsolidationRequested
    | Phase2LeaseClaimed
    | Phase2LeaseRenewed
    | Phase2LeaseReleased
    | Phase2Succeeded
    | Phase2Failed
)
JobEvent = Stage1JobEvent | Phase2JobEvent | ThreadForgotten | StoreReset

NAME = "jobs"
KEY = ("kind", "job_key", "memory_version")  # Key before version: a thread's jobs lie together.
FOLLOWS = JobEvent

SCHEMA = (
    """
CREATE TABLE jobs (
    kind                   TEXT NOT NULL,
    job_key                TEXT NOT NULL,
    memory_version         TEXT NOT NULL,
    status                 TEXT NOT NULL,
    worker_id              TEXT,
    ownership_token        TEXT,
    started_at             INTEGER,
    finished_at            INTEGER,
    lease_until            INTEGER,
    retry_at               INTEGER,
    retry_remaining        INTEGER NOT NULL,
    last_error             TEXT,
    failure                TEXT,
    transient_failures     INTEGER NOT NULL,
    input_watermark        INTEGER,
    last_success_watermark INTEGER,
    completed_watermark    INTEGER,
    extractor              TEXT,
    outcome                TEXT,
    PRIMARY KEY (kind, job_key, memory_version)
) STRICT
""",
    """
CREATE INDEX jobs_running ON jobs (kind, memory_version, lease_until) WHERE status = 'running'
""",
)

# How many phase-1 jobs of other threads hold a lease that has not run out.
OTHERS_RUNNING = """
SELECT count(*)
FROM jobs
WHERE kind = 'memory_stage1' AND memory_version = :memory_version AND status = 'running'
  AND lease_until > :now
  AND job_key IS NOT :thread_id
"""

# The phase-1 leases that keep phase 2 from starting, the last to end first.
FRESH_LEASES = """
WHERE kind = 'memory_stage1' AND memory_version = :memory_version AND status = 'running'
  AND lease_until > :now
ORDER BY lease_until DESC, job_key
"""

FRESH_LEASES_OF_SCOPE = """
WHERE kind = 'memory_stage1' AND memory_version = :memory_version AND status = 'running'
  AND lease_until > :now
  AND EXISTS (
      SELECT 1 FROM threads
      WHERE threads.thread_id = jobs.job_key AND threads.scope = :scope
  )
ORDER BY lease_until DESC, job_key
"""

OF_VERSION = "WHERE kind = :kind AND memory_version = :memory_version ORDER BY job_key"

RUNNING = """
WHERE kind = :kind AND memory_version = :memory_version AND status = 'running'
ORDER BY job_key
"""


class Row(Struct, frozen=True, kw_only=True, array_like=True, gc=False):
    """`failure` and `transient_failures` (in a row) speak of the time since the last success and
    outlive a claim; `extractor`, `outcome` and `completed_watermark` are the last success's."""

    kind: str
    job_key: str
    memory_version: str
    status: Literal["pending", "running", "done", "error"]
    worker_id: str | None = None
    ownership_token: str | None = None
    started_at: int | None = None
    finished_at: int | None = None
    lease_until: int | None = None
    retry_at: int | None = None
    retry_remaining: int
    last_error: str | None = None
    failure: Literal["bad_reply", "refused", "too_long", "transient", "source"] | None = None
    transient_failures: int = 0
    input_watermark: int | None = None
    last_success_watermark: int | None = None
    completed_watermark: int | None = None
    extractor: str | None = None
    outcome: Literal["output", "no_output"] | None = None


def place(event: JobEvent) -> tuple[str, ...]:
    match event:
        case (
            Stage1LeaseClaimed()
            | Stage1LeaseReleased()
            | Stage1Succeeded()
            | Stage1SucceededNoOutput()
            | Stage1Failed()
        ):
            return STAGE1, event.thread_id, event.memory_version
        case (
            ConsolidationRequested()
            | Phase2LeaseClaimed()
            | Phase2LeaseRenewed()
            | Phase2LeaseReleased()
            | Phase2Succeeded()
            | Phase2Failed()
        ):
            return PHASE2, event.scope, event.memory_version
        case ThreadForgotten():
            return STAGE1, event.thread_id
        case StoreReset():
            return ()
        case _:
            assert_never(event)


def evolve(rows: Sequence[Row], event: JobEvent) -> Sequence[Row]:
    match event:
        case ThreadForgotten():
            return []
        case StoreReset(memory_version=emptied):
            return [row for row in rows if row.memory_version != emptied]
        case ConsolidationRequested():
            return [requested(row, event) for row in rows] or [
                Row(
                    kind=PHASE2,
                    job_key=event.scope,
                    memory_version=event.memory_version,
                    status="pending",
                    retry_remaining=event.retry_remaining,
                    input_watermark=event.input_watermark,
                    last_success_watermark=0,
                )
            ]
        case Stage1LeaseClaimed():
            absent = Row(
                kind=STAGE1,
                job_key=event.thread_id,
                memory_version=event.memory_version,
                status="pending",
                retry_remaining=event.retry_remaining,
            )
            return [claimed(row, event) for row in rows or [absent]]
        case Phase2LeaseClaimed():
            absent = Row(
                kind=PHASE2,
                job_key=event.scope,
                memory_version=event.memory_version,
                status="pending",
                retry_remaining=event.retry_remaining,
                last_success_watermark=0,
            )
            return [claimed(row, event) for row in rows or [absent]]
        case Phase2LeaseRenewed(lease_until=until):
            return [replace(row, lease_until=until) for row in rows]
        case Stage1LeaseReleased(retry_remaining=int(left)):
            return [
                replace(row, status="pending", lease_until=None, retry_remaining=left)
                for row in rows
            ]
        case Stage1LeaseReleased() | Phase2LeaseReleased():
            return [replace(row, status="pending", lease_until=None) for row in rows]
        case Stage1Succeeded():
            return [read(row, event, outcome="output") for row in rows]
        case Stage1SucceededNoOutput():
            return [read(row, event, outcome="no_output") for row in rows]
        case Phase2Succeeded():
            return [
                replace(
                    row,
                    status="done",
                    finished_at=event.at,
                    lease_until=None,
                    last_error=None,
                    last_success_watermark=event.last_success_watermark,
                    completed_watermark=event.completed_watermark,
                )
                for row in rows
            ]
        case Stage1Failed():
            return [
                replace(
                    failed(row, event),
                    failure=event.kind,
                    transient_failures=(
                        row.transient_failures + 1 if event.kind == "transient" else 0
                    ),
                )
                for row in rows
            ]
        case Phase2Failed():
            return [failed(row, event) for row in rows]
        case _:
            assert_never(event)


def requested(row: Row, event: ConsolidationRequested) -> Row:
    """A worker at work keeps its lease; it will be seen from the watermarks that more has come."""
    return replace(
        row,
        status="running" if row.status == "running" else "pending",
        retry_at=None if event.backoff_cleared else row.retry_at,
        retry_remaining=event.retry_remaining,
        input_watermark=event.input_watermark,
    )


def claimed(row: Row, event: Stage1LeaseClaimed | Phase2LeaseClaimed) -> Row:
    return replace(
        row,
        status="running",
        worker_id=event.worker_id,
        ownership_token=event.ownership_token,
        started_at=event.at,
        finished_at=None,
        lease_until=event.lease_until,
        retry_at=None,
        retry_remaining=event.retry_remaining,
        last_error=None,
        input_watermark=event.input_watermark,
    )


def read(
    row: Row,
    event: Stage1Succeeded | Stage1SucceededNoOutput,
    *,
    outcome: Literal["output", "no_output"],
) -> Row:
    return replace(
        row,
        status="done",
        finished_at=event.at,
        lease_until=None,
        last_error=None,
        failure=None,
        transient_failures=0,
        last_success_watermark=event.input_watermark,
        extractor=event.extractor,
        outcome=outcome,
    )


def failed(row: Row, event: Stage1Failed | Phase2Failed) -> Row:
    return replace(
        row,
        status="error",
        finished_at=event.at,
        lease_until=None,
        retry_at=event.retry_at,
        retry_remaining=event.retry_remaining,
        last_error=event.reason,
    )
