"""What the rows say of a thread and its jobs is what its own events say, after every event.

Commands decide on rows; `evolve` is the rule that the rows follow. Here one life of a thread, its
extractions of two memory versions and one root's consolidation is told by the commands themselves,
and after each event the states read from the tables are those that `evolve` came to.
"""

import sqlite3

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from threadbook.adapters.store import bodies
from threadbook.adapters.store.codec import Codec
from threadbook.adapters.store.views import LogView
from threadbook.application import state
from threadbook.domain import consolidation, extraction, thread
from threadbook.domain.consolidation import Consolidation
from threadbook.domain.events import (
    ForgettingLifted,
    Selected,
    StoreReset,
    ThreadForgotten,
)
from threadbook.domain.extraction import Extraction
from threadbook.domain.refusals import Refused
from threadbook.domain.thread import Thread
from threadbook.projections.catalog import SYNCHRONOUS
from threadbook.projections.fold import create, follow

from tests.support import HOUR_S, NOON, header

ROOT = {"memory_version": "v1", "scope": "project:fern-00000000"}
VERSIONS = ("v1", "v2")
HOLDS = st.sampled_from((True, True, True, True, False))


def weighted(**times):
    return st.sampled_from([verb for verb, count in times.items() for _ in range(count)])


THREAD_VERBS = weighted(register=3, change=2, mode=2, pollute=1, rescope=2, forget=1, lift=2)
EXTRACTION_VERBS = weighted(claim=4, release=1, succeed=4, no=1, fail=1, cite=3, withdraw=1)
ROOT_VERBS = weighted(request=3, claim=4, renew=2, release=1, succeed=3, fail=2, reset=1)


class Life:
    """Both tellings side by side: states that `evolve` made, and tables that `follow` made."""

    def __init__(self):
        self.now = NOON
        self.tokens = 0
        self.thread = Thread(thread_id="t1")
        self.jobs = {v: Extraction(thread_id="t1", memory_version=v) for v in VERSIONS}
        self.root = Consolidation(**ROOT)
        self.db = sqlite3.connect(":memory:", isolation_level=None)
        for projection in SYNCHRONOUS:
            create(projection, self.db)
        self.view = LogView(self.db, Codec(), 0, 0, bodies=bodies)

    def token(self, job, verb, *, holds):
        """A new one for a claim; else the holder's, or one that has been lost."""
        if verb == "claim":
            self.tokens += 1
            return f"token-{self.tokens}"
        return job.ownership_token if holds and job.ownership_token else "lost"

    def tell(self, event):
        for projection in SYNCHRONOUS:
            follow(projection, event, self.db)
        match event:
            case ThreadForgotten() | ForgettingLifted():
                self.thread = thread.evolve(self.thread, event)
                self.jobs = {v: extraction.evolve(job, event) for v, job in self.jobs.items()}
            case StoreReset():
                self.jobs = {v: extraction.evolve(job, event) for v, job in self.jobs.items()}
                self.root = consolidation.evolve(self.root, event)
            case _ if type(event).__struct_config__.tag.startswith("thread."):
                self.thread = thread.evolve(self.thread, event)
            case _ if type(event).__struct_config__.tag.startswith("stage1."):
                version = event.memory_version
                self.jobs[version] = extraction.evolve(self.jobs[version], event)
            case _:
                self.root = consolidation.evolve(self.root, event)

    def agree(self):
        assert state.thread(self.view, "t1") == self.thread
        for version, job in self.jobs.items():
            found = state.extraction(self.view, version, "t1")
            # Whether a root's success holds the output is that root's story.
            assert replace(found, selected=False) == replace(job, selected=False)
        assert state.consolidation(self.view, **ROOT) == self.root


@st.composite
def thread_command(draw):
    verb = draw(THREAD_VERBS)
    facts = {
        "cwd": draw(st.sampled_from((None, "/home/dana/fern", "/srv/moss"))),
        "git_branch": draw(st.sampled_from((None, "main", "wip"))),
        "repository_url": draw(st.sampled_from((None, "https://forge.test/a/b"))),
        "updated_at_ms": draw(st.sampled_from((NOON * 1000, (NOON - HOUR_S) * 1000))),
        "archived": draw(st.booleans()),
        "forked_from": draw(st.sampled_from((None, "t0"))),
    }
    root = draw(st.sampled_from((None, "/home/dana/fern")))
    preview_ref = draw(st.sampled_from((None, "preview-1", "preview-2")))
    mode = draw(st.sampled_from(("enabled", "disabled")))
    scope = draw(st.sampled_from((ROOT["scope"], "project:moss-00000000")))

    def command(life):
        now = life.now
        match verb:
            case "register":
                return thread.register(
                    life.thread,
                    header=header(**facts),
                    scope=scope,
                    root=root,
                    preview_ref=preview_ref,
                    mode=mode,
                    mode_reason="default",
                    now=now,
                )
            case "change":
                return thread.change(
                    life.thread,
                    header=header(**facts),
                    root=root,
                    preview_ref=preview_ref,
                    now=now,
                )
            case "mode":
                return thread.set_mode(life.thread, mode=mode, reason="person", now=now)
            case "pollute":
                return thread.pollute(life.thread, cause="web_search", now=now)
            case "rescope":
                return thread.rescope(life.thread, scope=scope, reason="person", now=now)
            case "forget":
                return thread.forget(life.thread, reason="person", now=now)
            case _:
                return thread.lift(life.thread, now=now)

    return command


@st.composite
def extraction_command(draw):
    verb = draw(EXTRACTION_VERBS)
    version, holds = draw(st.sampled_from(("v1", "v1", "v1", "v2"))), draw(HOLDS)
    behind = draw(st.sampled_from((0, 0, 0, 1, 2)))
    again = draw(st.booleans())
    kind = draw(st.sampled_from(("transient", "transient", "bad_reply", "refused", "too_long")))

    def command(life):
        job, now = life.jobs[version], life.now
        mine = {"ownership_token": life.token(job, verb, holds=holds)}
        match verb:
            case "claim":
                return extraction.claim(
                    job,
                    watermark=100 + life.tokens - behind,
                    extractor="offline",
                    worker_id="ann",
                    running_elsewhere=0,
                    running_cap=1,
                    again=again,
                    now=now,
                    **mine,
                )
            case "release":
                return extraction.release(job, now=now, **mine)
            case "succeed":
                return extraction.succeed(
                    job,
                    raw_memory_ref="raw",
                    rollout_summary_ref="summary",
                    rollout_slug_ref=None,
                    memory_mode=life.thread.mode,
                    scope=life.thread.scope,
                    extractor="offline",
                    now=now,
                    **mine,
                )
            case "no":
                return extraction.succeed_without_output(job, extractor="offline", now=now, **mine)
            case "fail":
                return extraction.fail(job, kind=kind, reason="because", now=now, **mine)
            case "cite":
                return extraction.cite(job, citation_id=f"s1:{now}", now=now)
            case _:
                return extraction.withdraw(job, now=now)

    return command


@st.composite
def consolidation_command(draw):
    verb = draw(ROOT_VERBS)
    holds, watermark = draw(HOLDS), draw(st.sampled_from((50, 100, 150)))
    version = draw(st.sampled_from(VERSIONS))

    def command(life):
        job, now = life.root, life.now
        mine = {"ownership_token": life.token(job, verb, holds=holds)}
        match verb:
            case "request":
                return consolidation.request(
                    job, cause="output", thread_id="t1", watermark=watermark, now=now
                )
            case "claim":
                return consolidation.claim(job, worker_id="bob", now=now, **mine)
            case "renew":
                return consolidation.renew(job, now=now, **mine)
            case "release":
                return consolidation.release(job, reason="stopped", now=now, **mine)
            case "succeed":
                read = Selected(thread_id="t1", source_updated_at=watermark, matched=True)
                return consolidation.succeed(
                    job, completed_watermark=watermark, selected=(read,), now=now, **mine
                )
            case "fail":
                return consolidation.fail(job, reason="failed_agent", now=now, **mine)
            case _:
                return StoreReset(at=now, memory_version=version)

    return command


STEPS = st.tuples(
    st.integers(0, 4).flatmap(
        lambda whose: (thread_command, consolidation_command, *[extraction_command] * 3)[whose]()
    ),
    st.sampled_from((0, 0, 1, HOUR_S - 1, HOUR_S, 6 * HOUR_S)),
)


@settings(max_examples=100, deadline=None)
@given(steps=st.lists(STEPS, min_size=40, max_size=80))
def test_the_states_read_from_rows_are_those_that_evolve_comes_to(steps):
    life = Life()
    for command, later_s in steps:
        life.now += later_s
        try:
            event = command(life)
        except Refused:
            continue
        if event is not None:
            life.tell(event)
            life.agree()
