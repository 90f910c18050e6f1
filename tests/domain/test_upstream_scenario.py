"""One long run through both phases, as a port of upstream compares itself with upstream.

Four sessions, a to d. What differs from upstream on purpose is said where it differs; the store
has the same run with a database under it.
"""

from functools import partial

import pytest
from threadbook.domain import consolidation, extraction, thread
from threadbook.domain.refusals import (
    BackingOff,
    CapReached,
    CoolingDown,
    Forgotten,
    LeaseHeld,
    LeaseLost,
    RetryExhausted,
    UpToDate,
)
from threadbook.domain.selection import Output, cutoff_at, inputs, prunable, rank, snapshot

from tests.support import DAY_S, NOON, registered

W = NOON - 7 * 3600
VERSION = {"memory_version": "v1"}
WRITTEN = {
    "raw_memory_ref": "raw",
    "rollout_summary_ref": "summary",
    "rollout_slug_ref": None,
    "memory_mode": "enabled",
    "scope": "global",
    "extractor": "gpt-6-luna",
}


class World:
    def __init__(self):
        self.threads = {each: registered(each) for each in "abcd"}
        self.jobs = {each: extraction.Extraction(thread_id=each, **VERSION) for each in "abcd"}
        self.root = consolidation.Consolidation(scope="global", **VERSION)
        self.selected = ()

    def extract(self, each, command, **arguments):
        event = command(self.jobs[each], now=NOON, **arguments)
        if event is not None:
            self.jobs[each] = extraction.evolve(self.jobs[each], event)
        return event

    def claim(self, each, token="right", *, watermark=W, cap=2):
        others = [job for name, job in self.jobs.items() if name != each]
        running = sum(extraction.is_held(job, now=NOON) for job in others)
        terms = {"worker_id": "w", "ownership_token": token, "extractor": "gpt-6-luna"}
        slots = {"running_elsewhere": running, "running_cap": cap}
        return self.extract(each, extraction.claim, watermark=watermark, **terms, **slots)

    def consolidate(self, command, **arguments):
        event = command(self.root, now=NOON, **arguments)
        self.root = consolidation.evolve(self.root, event)
        return event

    def request(self, cause, watermark=NOON):
        return self.consolidate(
            consolidation.request, cause=cause, thread_id=None, watermark=watermark
        )

    def claim_root(self, token="right"):
        return self.consolidate(consolidation.claim, worker_id="w", ownership_token=token)

    def outputs(self):
        marked = {each.thread_id for each in self.selected if each.matched}
        return [
            Output(
                thread_id=each,
                source_updated_at=job.output_source_updated_at,
                counts_from=job.output_source_updated_at,
                usage_count=job.usage_count,
                last_usage=job.last_usage,
                mode=self.threads[each].mode,
                selected=each in marked,
            )
            for each, job in self.jobs.items()
            if job.output_source_updated_at is not None
        ]

    def chosen(self, limit, days=30):
        cutoff = cutoff_at(NOON, max_unused_days=days)
        return rank(self.outputs(), cutoff=cutoff, limit=limit).chosen


def test_one_long_run_ends_as_upstreams_does():
    world = World()
    wrong, right = {"ownership_token": "wrong"}, {"ownership_token": "right"}
    refuses = pytest.raises
    written = partial(world.extract, **WRITTEN)

    # Claims: two slots for a and b; c waits, and upstream says "running" where we say why.
    world.claim("a"), world.claim("b")
    with refuses(LeaseHeld):
        world.claim("a")
    with refuses(CapReached):
        world.claim("c", cap=2)
    assert world.claim("c", cap=3)

    # Success of a.
    with refuses(LeaseLost):
        written("a", command=extraction.succeed, **wrong)
    written("a", command=extraction.succeed, **right)
    with refuses(UpToDate):
        world.claim("a")
    assert world.claim("a", watermark=W + 1, cap=9)
    written("a", command=extraction.succeed, **right)

    # b fails once and waits; c fails three times at no wait and is closed, until it goes on.
    bad_reply = {"command": extraction.fail, "kind": "bad_reply", "reason": "json"}
    world.extract("b", **bad_reply, **right)
    with refuses(LeaseLost):
        world.extract("b", **bad_reply, **right)
    with refuses(BackingOff):
        world.claim("b")
    for attempt in range(3):
        if attempt:
            world.claim("c", cap=9)
        world.extract("c", **bad_reply, retry_after_s=0, **right)
    with refuses(RetryExhausted):
        world.claim("c", cap=9)
    world.claim("c", watermark=W + 1, cap=9)
    written("c", command=extraction.succeed, **right)
    for _ in range(2):
        world.request("stage1_succeeded", watermark=W + 1)

    # d was read as it was a hundred days ago.
    world.claim("d", cap=9)
    written("d", command=extraction.succeed, source_updated_at=NOON - 100 * DAY_S, **right)

    # Uses: a twice, c once; of an unknown thread none. (Upstream counts duplicates; we do not.)
    for each, citation_id in (("a", "s:1"), ("c", "s:1"), ("a", "s:2")):
        assert world.extract(each, extraction.cite, citation_id=citation_id)
    assert world.extract("b", extraction.cite, citation_id="s:1") is None
    assert (world.jobs["a"].usage_count, world.jobs["c"].usage_count) == (2, 1)

    # Selection in id order, without d.
    assert [each.thread_id for each in world.chosen(10)] == ["a", "c"]
    assert [each.thread_id for each in world.chosen(1)] == ["a"]

    # Phase 2: one runner; a failure waits until something new is asked for.
    world.claim_root()
    with refuses(LeaseHeld):
        world.claim_root("other")
    with refuses(LeaseLost):
        world.consolidate(consolidation.renew, **wrong)
    world.consolidate(consolidation.renew, **right)
    with refuses(LeaseLost):
        world.consolidate(consolidation.fail, reason="failed_agent", **wrong)
    world.consolidate(consolidation.fail, reason="failed_agent", **right)
    with refuses(BackingOff):
        world.claim_root()
    with refuses(LeaseLost):
        world.consolidate(consolidation.fail, reason="failed_agent", **right)
    world.request("stage1_succeeded")
    claimed = world.claim_root()

    # Success of phase 2.
    read = inputs(world.chosen(10))
    held = {each.thread_id: each.source_updated_at for each in world.outputs()}
    reached = consolidation.completed_watermark(claimed.input_watermark, read)
    done = {"completed_watermark": reached, "selected": snapshot(read, held=held)}
    with refuses(LeaseLost):
        world.consolidate(consolidation.succeed, **done, **wrong)
    world.selected = world.consolidate(consolidation.succeed, **done, **right).selected
    assert [each.matched for each in world.selected] == [True, True]
    with refuses(CoolingDown):
        world.claim_root()

    # Pruning takes d. With no days left it takes nothing more: a and c are selected.
    cutoff = cutoff_at(NOON, max_unused_days=30)
    assert [each.thread_id for each in prunable(world.outputs(), cutoff=cutoff, limit=10)] == ["d"]
    world.extract("d", extraction.withdraw)
    assert prunable(world.outputs(), cutoff=NOON, limit=10) == ()

    # Pollution of a, once; c teaches nothing any more.
    polluted = thread.pollute(world.threads["a"], cause="web_search", now=NOON)
    world.threads["a"] = thread.evolve(world.threads["a"], polluted)
    assert thread.pollute(world.threads["a"], cause="web_search", now=NOON) is None
    assert [each.thread_id for each in world.chosen(10)] == ["c"]
    world.claim("c", watermark=W + 2, cap=9)
    nothing = {"command": extraction.succeed_without_output, "extractor": "gpt-6-luna"}
    with refuses(LeaseLost):
        world.extract("c", **nothing, **wrong)
    assert world.extract("c", **nothing, **right).output_removed
    assert world.chosen(10) == ()

    # The end of a. Upstream could claim it again; what is forgotten here stays so.
    gone = thread.forget(world.threads["a"], reason="person", now=NOON)
    world.threads["a"] = thread.evolve(world.threads["a"], gone)
    world.jobs["a"] = extraction.evolve(world.jobs["a"], gone)
    assert thread.forget(world.threads["a"], reason="person", now=NOON) is None
    with refuses(Forgotten):
        world.claim("a", watermark=W + 9)
