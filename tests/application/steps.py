"""The steps of a run one at a time, on the store of a home: who races, and who comes too late.

Everything goes through the use cases. The models are a provider's by name, because the offline one
never rests; what they say is given, or the session's own words.
"""

from contextlib import contextmanager
from pathlib import Path

from msgspec.structs import replace
from threadbook import Memory
from threadbook.adapters.offline import OfflineConsolidator
from threadbook.application import (
    citing,
    claims,
    lease,
    outcomes,
    people,
    phase1,
    phase2,
    publication,
    startup,
    state,
)
from threadbook.application.edits import ByHand
from threadbook.application.ports import ConsolidationFailed, Extracted, ExtractionFailed
from threadbook.application.purse import Purse
from threadbook.application.roots import Root, chosen
from threadbook.domain import consolidation
from threadbook.domain.carried import Carried
from threadbook.domain.eligibility import Limits
from threadbook.domain.events import (
    STORE_STREAM,
    StoreReset,
    consolidation_stream,
)
from threadbook.domain.session import Human
from threadbook.projections import jobs, progress, selection, stage1_outputs, threads

from tests.application.homes import AtOnce, Home, Session, show

LIMITS = Limits(running_cap=8)


class Luna(AtOnce):
    """An extractor that keeps what a person typed, and nothing of a session that was silent."""

    name = "gpt-6-luna"

    def extract(self, material):
        typed = "\n".join(item.text for item in material.items() if isinstance(item, Human))
        return taught(typed)


class Terra(OfflineConsolidator):
    name = "gpt-6.1-terra"
    kind = "agent"


def taught(text):
    return Extracted(raw_memory=f"raw: {text}", rollout_summary=text, rollout_slug=None)


def failing(kind="bad_reply", retry_after_s=None):
    """An extractor whose model cannot be used."""

    class Failing(Luna):
        def extract(self, material):
            raise ExtractionFailed(kind, "no_json", retry_after_s=retry_after_s)

    return Failing()


class Steps:
    """One worker. `another` is a second one on the same home, with a store object of its own."""

    def __init__(
        self,
        home: Home,
        *,
        worker_id: str = "w1",
        memory: Memory | None = None,
        scope: str = "global",
        version: str = "v1",
        clock=None,
        **limits,
    ) -> None:
        self.home = home
        self.memory = memory or home.memory
        given = self.memory._around
        self.around = replace(
            given,
            extractor=Luna(),
            consolidator=Terra(),
            worker_id=worker_id,
            is_alive=lambda _: True,
            clock=clock or given.clock,
            policy=replace(
                given.policy,
                scope=scope,
                memory_version=version,
                limits=replace(LIMITS, **limits),
            ),
        )
        self.root = Root(memory_version=version, scope="global")

    def another(self, worker_id: str, **given) -> "Steps":
        return Steps(self.home, worker_id=worker_id, memory=self.home.another(), **given)

    @property
    def version(self) -> str:
        return self.around.policy.memory_version

    @property
    def store(self):
        return self.around.store

    # What happens to sessions.

    def meets(self, *sessions: Session) -> None:
        self.home.write(*sessions)
        self.memory.ingest([self.home.file(each) for each in sessions])

    def goes_on(self, session: Session, seconds: int = 1) -> Session:
        later = Session(
            number=session.number,
            says=(*session.says, "and more"),
            cwd=session.cwd,
            ended_at=session.ended_at + seconds,
        )
        self.meets(later)
        return later

    # Phase 1.

    def claim(self, session: Session, *, backfill: bool = False, cap: int | None = None):
        around = self.around
        if cap is not None:
            limits = replace(around.policy.limits, running_cap=cap)
            around = replace(around, policy=replace(around.policy, limits=limits))
        with self.store.writing(actor="pipeline") as tx:
            return claims.claim(around, tx, session.id, backfill=backfill, unfinished_mtime_ms=None)

    def record(self, claimed, found: Extracted | None) -> bool:
        with self.store.writing(actor="pipeline") as tx:
            return outcomes.record(self.around, tx, claimed, found, backfill=False)

    def reads(self, session: Session, text: str | None = None, *, backfill: bool = False):
        """Claim and record. Without a text it teaches nothing."""
        claimed = self.claim(session, backfill=backfill)
        self.record(claimed, None if text is None else taught(text))
        return claimed

    def finishes(self, claimed) -> str:
        """Read it to its end as a run does; the name of the count that it adds to."""
        return self.reads_to_the_end(self.around, claimed)

    def fails(self, claimed, kind="bad_reply", *, retry_after_s=None) -> str:
        around = replace(self.around, extractor=failing(kind, retry_after_s))
        return self.reads_to_the_end(around, claimed)

    def reads_to_the_end(self, around, lease) -> str:
        with self.store.reading() as view:
            (thread,) = view.rows(threads, (lease.thread_id,))
        budget = Purse(run_max=0, day_max=0)
        extractions = phase1.Extractions(around, run_id="r", backfill=False, budget=budget)
        source = Path(thread.rollout_path)
        extractions.begin(claims.Claimed(lease=lease, thread=thread, source=source))
        report = extractions.report
        (outcome,) = (n for n in ("succeeded", "no_output", "failed") if getattr(report, n))
        return outcome

    def phase1(self, **limits):
        """All of phase 1, within other limits if they are given."""
        policy = self.around.policy
        around = replace(
            self.around, policy=replace(policy, limits=replace(policy.limits, **limits))
        )
        return phase1.run(around, run_id="r", backfill=None, sighted={}, waiting={})

    # Phase 2.

    def claim_root(self, root: Root | None = None):
        with self.store.writing(actor="pipeline") as tx:
            return lease.claim(self.around, tx, root or self.root)

    def publish(self, claimed, root: Root | None = None) -> str:
        root = root or self.root
        made = phase2.proposed(self.around, root, claimed, Carried(salt="s"), ByHand())
        with self.store.writing(actor="pipeline") as tx:
            return publication.publish(self.around, tx, root, claimed, made, run_id="r")

    def consolidates(self, root: Root | None = None) -> str:
        return self.publish(self.claim_root(root), root)

    def fails_root(self, claimed, root: Root | None = None) -> None:
        error = ConsolidationFailed("failed_agent")
        phase2.fail(self.around, root or self.root, claimed, error, run_id="r")

    def gives_root_back(self, claimed, root: Root | None = None) -> None:
        token, now = claimed.lease.ownership_token, self.around.now()
        with self.store.writing(actor="pipeline") as tx:
            lease.give_back(tx, root or self.root, token, reason="stopped", now=now)

    def renew_root(self, ownership_token: str):
        with self.store.writing(actor="pipeline") as tx:
            job = state.consolidation(tx, self.version, self.root.scope)
            renewed = consolidation.renew(
                job, ownership_token=ownership_token, now=self.around.now()
            )
            tx.append(consolidation_stream(self.version, self.root.scope), renewed)
            return renewed

    def chosen(self, *, limit: int = 256, days: int = 30) -> list[str]:
        """What phase 2 would read now."""
        policy = self.around.policy
        limits = replace(
            policy.limits, max_raw_memories_for_consolidation=limit, max_unused_days=days
        )
        with self.store.reading() as view:
            rows = chosen(view, self.root, replace(policy, limits=limits), now=self.around.now())
        return [row.thread_id for row in rows]

    # The rest.

    def prune(self, *, days: int = 30, batch: int = 200) -> int:
        policy = self.around.policy
        limits = replace(policy.limits, max_unused_days=days, prune_batch=batch)
        around = replace(self.around, policy=replace(policy, limits=limits))
        with self.store.writing(actor="pipeline") as tx:
            return startup.prune(around, tx)

    def cited(self, *sessions: Session, turn: int) -> int:
        return self.cited_ids([each.id for each in sessions], turn=turn)

    def cited_ids(self, ids, *, turn: int) -> int:
        show(self.around, ids, "s")
        return citing.cited(self.around, ids, session="s", turn=turn, actor="application")

    def pollute(self, session: Session) -> bool:
        return people.pollute(self.around, session.id, cause="web_search", actor="application")

    def reset(self, version: str | None = None) -> None:
        """As the command of that name will record it."""
        with self.store.writing(actor="application") as tx:
            emptied = StoreReset(at=self.around.now(), memory_version=version or self.version)
            tx.append(STORE_STREAM, emptied)

    # What is stored.

    def output(self, session: Session):
        found = self.rows(stage1_outputs, (session.id, self.version))
        return found[0] if found else None

    def job(self, session: Session):
        found = self.rows(jobs, (jobs.STAGE1, session.id, self.version))
        return found[0] if found else None

    def root_job(self):
        found = self.rows(jobs, (jobs.PHASE2, self.root.scope, self.version))
        return found[0] if found else None

    def snapshot(self):
        return {
            row.thread_id: (row.source_updated_at, row.matched)
            for row in self.rows(selection, (self.version, self.root.scope))
        }

    def is_selected(self, session: Session) -> bool:
        with self.store.reading() as view:
            found = view.find(selection, selection.SELECTED, thread_id=session.id)
        return any(row.memory_version == self.version for row in found)

    def progress(self) -> int:
        with self.store.reading() as view:
            return view.value(progress.MAX_THREAD_COUNT, memory_version=self.version)

    def mode(self, session: Session) -> str:
        return self.rows(threads, (session.id,))[0].mode

    def body(self, ref: str) -> str | None:
        with self.store.reading() as view:
            return view.body(ref)

    def rows(self, projection, place):
        with self.store.reading() as view:
            return view.rows(projection, place)


class Ending:
    """A store whose program comes to its end after so many appends, before anything else."""

    def __init__(self, store, *, after: int, end) -> None:
        self.store = store
        self.left = after
        self.end = end

    def __getattr__(self, name):
        return getattr(self.store, name)

    @contextmanager
    def writing(self, **who):
        with self.store.writing(**who) as tx:
            yield EndingWriting(tx, self)


class EndingWriting:
    def __init__(self, tx, ending: Ending) -> None:
        self.tx = tx
        self.ending = ending

    def __getattr__(self, name):
        return getattr(self.tx, name)

    def append(self, stream, *events, **given):
        for event in events:
            if self.ending.left == 0:
                self.ending.end()
            self.ending.left -= 1
            position = self.tx.append(stream, event, **given)
        return position
