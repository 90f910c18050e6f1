"""What the log says of its leases, told by a walk over it that knows nothing of the program.

A lease goes from its claim to its end. Its end is recorded by the run that claimed it, or by who
gives it back for a worker that was killed, or by a forgetting; or nobody records it, and whoever
claims next, not before `lease_until`, names it as taken over. Everything else is two at one job.
"""

from collections import Counter
from collections.abc import Collection, Iterable

from msgspec import Struct
from threadbook.application.ports import Recorded
from threadbook.domain.events import (
    ArtifactsPublished,
    Phase2Failed,
    Phase2InputsSelected,
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

Claims = Stage1LeaseClaimed | Phase2LeaseClaimed
Read = Stage1Succeeded | Stage1SucceededNoOutput
Stage1 = Stage1LeaseClaimed | Read | Stage1Failed | Stage1LeaseReleased
Phase2 = (
    Phase2LeaseClaimed
    | Phase2LeaseRenewed
    | Phase2LeaseReleased
    | Phase2InputsSelected
    | ArtifactsPublished
    | Phase2Succeeded
    | Phase2Failed
)


class Lease(Struct, kw_only=True):
    token: str
    worker_id: str
    run_id: str | None
    until: int


def walked(log: Iterable[Recorded], *, killed: Collection[int] | None = None) -> Counter[str]:
    """Hold each lease against the one before: what became of those that were not brought to their
    end. `killed`: the processes that were; nobody else's is given back before it runs out."""
    held: dict[tuple[str, ...], Lease] = {}
    lost: Counter[str] = Counter()
    for recorded in log:
        event, run_id = recorded.event, recorded.run_id
        if isinstance(event, ThreadForgotten):
            for job in [job for job in held if job[0] == "stage1" and job[2] == event.thread_id]:
                del held[job]
                lost["stage1 forgotten"] += 1
            continue
        if isinstance(event, StoreReset):
            held = {job: lease for job, lease in held.items() if job[1] != event.memory_version}
            continue
        if isinstance(event, ArtifactsPublished) and event.consolidator == "forget":
            continue  # Without a lease: what it takes, the release beside it says.
        if isinstance(event, Stage1):
            job = "stage1", event.memory_version, event.thread_id
        elif isinstance(event, Phase2):
            job = "phase2", event.memory_version, event.scope
        else:
            continue
        told = f"{recorded.position} {recorded.type} of {job}"
        lease = held.get(job)
        if isinstance(event, Claims):
            assert event.taken_over_from == (lease and lease.token), f"two at one job: {told}"
            if lease is not None:
                assert event.at >= lease.until, f"taken over before it ran out: {told}"
                lost[f"{job[0]} taken over"] += 1
            held[job] = Lease(
                token=event.ownership_token,
                worker_id=event.worker_id,
                run_id=run_id,
                until=event.lease_until,
            )
            continue
        assert lease is not None, f"without a lease: {told}"
        if not isinstance(event, ArtifactsPublished):
            assert event.ownership_token == lease.token, f"with another's lease: {told}"
        if isinstance(event, Stage1LeaseReleased | Phase2LeaseReleased):
            if run_id != lease.run_id and event.reason != "forgotten":
                pid = int(lease.worker_id.split("-")[1])
                gone = killed is None or pid in killed or event.at >= lease.until
                assert gone, f"given back for the living: {told}"
                lost[f"{job[0]} given back for the dead"] += 1
            else:
                lost[f"{job[0]} given back: {event.reason}"] += 1
            del held[job]
            continue
        assert run_id == lease.run_id, f"by another run than claimed it: {told}"
        if isinstance(event, Phase2LeaseRenewed):
            lease.until = event.lease_until
        elif not isinstance(event, Phase2InputsSelected | ArtifactsPublished):
            del held[job]
    assert not held, f"left behind: {held}"
    return lost


def readings(log: Iterable[Recorded]) -> Counter[tuple[str, int]]:
    """How often each (session, watermark) was read to its end."""
    return Counter(
        (each.event.thread_id, each.event.input_watermark)
        for each in log
        if isinstance(each.event, Read)
    )


def read_again(log: Iterable[Recorded]) -> list[str]:
    """Claims and ends of what was read to its end already, at that watermark or a later one. Only
    a forgetting lets a session begin anew."""
    newest: dict[tuple[str, str], int] = {}
    found = []
    for recorded in log:
        match event := recorded.event:
            case ThreadForgotten(thread_id=thread_id):
                newest = {job: mark for job, mark in newest.items() if job[0] != thread_id}
            case Stage1LeaseClaimed() | Stage1Succeeded() | Stage1SucceededNoOutput():
                job = event.thread_id, event.memory_version
                if event.input_watermark <= newest.get(job, -1):
                    found.append(f"{recorded.position} {recorded.type} of {job}")
                if isinstance(event, Read):
                    newest[job] = event.input_watermark
    return found
