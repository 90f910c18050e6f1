"""The log that the engine is measured on: a year of a busy person's sessions, the same every time.

About ten events a session, several sessions at once, many projects: a session is registered,
claimed and read; its root is asked for, claimed and published now and then; it is shown and cited;
some are changed, set, polluted, moved or forgotten. Numbers are drawn from one seed.
"""

from collections import defaultdict
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

from threadbook.adapters.store import SqliteStore, chain, dialect, head
from threadbook.adapters.store.codec import Codec, tag_of
from threadbook.adapters.store.connections import open_connection
from threadbook.adapters.store.views import LastRow
from threadbook.domain.events import (
    ArtifactsPublished,
    Cited,
    ConsolidationRequested,
    Event,
    Input,
    MemoryModeSet,
    MemoryShown,
    Phase2InputsSelected,
    Phase2LeaseClaimed,
    Phase2LeaseRenewed,
    Phase2Succeeded,
    RootRendered,
    Selected,
    Stage1Failed,
    Stage1LeaseClaimed,
    Stage1Succeeded,
    Stage1SucceededNoOutput,
    ThreadChanged,
    ThreadForgotten,
    ThreadPolluted,
    ThreadRegistered,
    ThreadRescoped,
    Tokens,
    consolidation_stream,
    extraction_stream,
    session_stream,
    thread_stream,
)
from threadbook.projections.catalog import SYNCHRONOUS

BEGAN = 1_767_268_800
ROOT = Path(__file__).resolve().parents[2]
STEP_S = 10  # Between two events: a million of them are four months.
AT_ONCE = 8  # Sessions.
PROJECT_OF = 60  # Sessions, about.
ROOT_EVERY = 12  # Outputs of a project.

Told = tuple[str, Event]
ReadyRow = tuple[Any, ...]


def told(count: int) -> list[Told]:
    """The first so many events, each with its stream."""
    return list(islice(History().events(), count))


class History:
    def __init__(self) -> None:
        self.random = Random(11)
        self.now = BEGAN
        self.threads = 0
        self.outputs: defaultdict[str, dict[str, int]] = defaultdict(dict)  # scope -> thread -> at
        self.uses: defaultdict[str, int] = defaultdict(int)
        self.unread: defaultdict[str, int] = defaultdict(int)

    def events(self) -> Iterator[Told]:
        lives = [self.life() for _ in range(AT_ONCE)]
        while True:
            place = self.random.randrange(AT_ONCE)
            told = next(lives[place], None)
            if told is None:
                lives[place] = self.life()
                continue
            self.now += STEP_S
            yield told

    def ref(self) -> str:
        return f"{self.random.getrandbits(128):032x}"

    def life(self) -> Iterator[Told]:
        chance = self.random.random
        self.threads += 1
        number, thread_id = self.threads, f"019b{self.random.getrandbits(112):028x}"
        name = f"fern-{number // PROJECT_OF}-{self.random.randrange(2)}"
        scope = f"project:{name}-{number // PROJECT_OF:08x}"
        thread, extraction = thread_stream(thread_id), extraction_stream("v1", thread_id)
        yield thread, self.registered(thread_id, name, scope)
        token = self.ref()
        yield extraction, self.claimed(thread_id, token)
        if chance() < 0.3:
            yield (
                thread,
                ThreadChanged(at=self.now, thread_id=thread_id, updated_at_ms=self.now * 1000),
            )
        ended = chance()
        if ended < 0.03:
            yield extraction, self.failed(thread_id, token)
            return
        if ended < 0.08:
            yield extraction, self.nothing(thread_id, token)
            return
        yield extraction, self.succeeded(thread_id, scope, token)
        outputs = self.outputs[scope]
        outputs[thread_id] = self.now
        yield (
            consolidation_stream("v1", scope),
            ConsolidationRequested(
                at=self.now,
                memory_version="v1",
                scope=scope,
                cause="output",
                thread_id=thread_id,
                input_watermark=self.now,
                backoff_cleared=False,
                retry_remaining=3,
            ),
        )
        self.unread[scope] += 1
        if self.unread[scope] >= ROOT_EVERY:
            self.unread[scope] = 0
            yield from self.consolidation(scope)
        for turn in range(self.random.randrange(8)):
            if not outputs:
                break
            cited = self.random.choice(list(outputs))
            if turn == 0:
                yield session_stream(thread_id), self.shown(thread_id, scope, cited)
            self.uses[cited] += 1
            yield (
                extraction_stream("v1", cited),
                Cited(
                    at=self.now,
                    thread_id=cited,
                    memory_version="v1",
                    citation_id=f"{thread_id}:{turn}",
                    usage_count=self.uses[cited],
                ),
            )
        event = self.turn(thread_id, scope, chance())
        if event is not None:
            outputs.pop(thread_id, None)
            yield thread, event

    def registered(self, thread_id: str, name: str, scope: str) -> ThreadRegistered:
        return ThreadRegistered(
            at=self.now,
            thread_id=thread_id,
            tool="codex",
            source="cli",
            kind="interactive",
            rollout_path=f"/home/dana/.codex/sessions/2026/01/01/rollout-{thread_id}.jsonl",
            cwd=f"/home/dana/{name}",
            git_branch="main",
            repository_url=f"https://example.org/dana/{name}.git",
            root=f"/home/dana/{name}",
            scope=scope,
            created_at_ms=self.now * 1000 - 7_200_000,
            updated_at_ms=self.now * 1000 - 3_600_000,
            preview_ref=self.ref(),
            archived=False,
            forked_from=None,
            mode="enabled",
            mode_reason="default",
        )

    def claimed(self, thread_id: str, token: str) -> Stage1LeaseClaimed:
        return Stage1LeaseClaimed(
            at=self.now,
            thread_id=thread_id,
            memory_version="v1",
            ownership_token=token,
            worker_id="machine-1:4711:3",
            input_watermark=self.now - 3600,
            lease_until=self.now + 3600,
            retry_remaining=3,
        )

    def failed(self, thread_id: str, token: str) -> Stage1Failed:
        return Stage1Failed(
            at=self.now,
            thread_id=thread_id,
            memory_version="v1",
            ownership_token=token,
            reason="bad_reply:rollout_summary",
            kind="bad_reply",
            retry_at=self.now + 3600,
            retry_remaining=2,
            tokens=self.tokens(),
        )

    def nothing(self, thread_id: str, token: str) -> Stage1SucceededNoOutput:
        return Stage1SucceededNoOutput(
            at=self.now,
            thread_id=thread_id,
            memory_version="v1",
            ownership_token=token,
            input_watermark=self.now - 3600,
            output_removed=False,
            extractor="model:luna",
            tokens=self.tokens(),
        )

    def succeeded(self, thread_id: str, scope: str, token: str) -> Stage1Succeeded:
        return Stage1Succeeded(
            at=self.now,
            thread_id=thread_id,
            memory_version="v1",
            ownership_token=token,
            input_watermark=self.now - 3600,
            source_updated_at=self.now - 3600,
            raw_memory_ref=self.ref(),
            rollout_summary_ref=self.ref(),
            rollout_slug_ref=self.ref(),
            memory_mode="enabled",
            scope=scope,
            output_replaced=True,
            counts_from=self.now - 3600,
            evidence_ref=self.ref(),
            extractor="model:luna",
            prompt_digest=self.ref(),
            tokens=self.tokens(),
        )

    def tokens(self) -> Tokens:
        draw = self.random.randrange
        return Tokens(model="luna", calls=1, input=draw(50_000), cached=draw(9_000), output=900)

    def shown(self, session_id: str, scope: str, thread_id: str) -> MemoryShown:
        return MemoryShown(
            at=self.now,
            session_id=session_id,
            via="context",
            memory_version="v1",
            scope=scope,
            rendered_position=1,
            thread_ids=(thread_id,),
            tokens=1_200,
        )

    def consolidation(self, scope: str) -> Iterator[Told]:
        stream, token = consolidation_stream("v1", scope), self.ref()
        root = {"memory_version": "v1", "scope": scope}
        newest = sorted(list(self.outputs[scope].items())[-256:])
        yield (
            stream,
            Phase2LeaseClaimed(
                at=self.now,
                **root,
                ownership_token=token,
                worker_id="machine-1:4711:3",
                input_watermark=self.now,
                lease_until=self.now + 3600,
                retry_remaining=3,
            ),
        )
        yield (
            stream,
            Phase2InputsSelected(
                at=self.now,
                **root,
                ownership_token=token,
                limit=256,
                cutoff=self.now - 30 * 86_400,
                position=1,
                selected=tuple(Input(thread_id=t, source_updated_at=at) for t, at in newest),
            ),
        )
        yield (
            stream,
            Phase2LeaseRenewed(
                at=self.now, **root, ownership_token=token, lease_until=self.now + 3600
            ),
        )
        yield (
            stream,
            ArtifactsPublished(
                at=self.now,
                **root,
                run_id=self.ref(),
                consolidator="model:terra",
                files=(self.ref(), self.ref(), self.ref()),
                tokens=self.tokens(),
                tool_calls={"read": 4, "write": 3},
            ),
        )
        yield (
            stream,
            Phase2Succeeded(
                at=self.now,
                **root,
                ownership_token=token,
                completed_watermark=self.now,
                last_success_watermark=self.now,
                selected=tuple(
                    Selected(thread_id=t, source_updated_at=at, matched=True) for t, at in newest
                ),
            ),
        )
        yield (
            stream,
            RootRendered(at=self.now, **root, renderer="1", manifest_ref=self.ref()),
        )

    def turn(self, thread_id: str, scope: str, chance: float) -> Event | None:
        if chance < 0.03:
            return MemoryModeSet(
                at=self.now,
                thread_id=thread_id,
                mode="disabled",
                mode_before="enabled",
                reason="person",
            )
        if chance < 0.07:
            return ThreadPolluted(
                at=self.now, thread_id=thread_id, cause="web_search", mode_before="enabled"
            )
        if chance < 0.08:
            return ThreadRescoped(
                at=self.now,
                thread_id=thread_id,
                scope=scope + "-2",
                scope_before=scope,
                reason="person",
            )
        if chance < 0.085:
            return ThreadForgotten(at=self.now, thread_id=thread_id, reason="person")
        return None


def ready_rows(
    log: list[Told], *, position: int = 0, linked: bytes = chain.START
) -> list[ReadyRow]:
    """The rows that these events become behind a position, chain and all."""
    encode = Codec().encode
    versions: defaultdict[str, int] = defaultdict(int)
    rows = []
    for position_, (stream, event) in enumerate(log, start=position + 1):
        versions[stream] += 1
        columns = (
            position_,
            stream,
            versions[stream],
            tag_of(type(event)),
            event.at * 1000,
            "pipeline",
            None,
            encode(event),
        )
        linked = chain.link(linked, columns)
        rows.append((*columns, linked))
    return rows


def clock() -> float:
    """Half a year on, so that the youngest outputs of a long log are the ones that count."""
    return float(BEGAN + 180 * 86_400)


def open_store(home: Path, projections: Any = SYNCHRONOUS) -> SqliteStore:
    return SqliteStore.open(home, projections=projections, clock=clock, simulated=True)


def build(home: Path, log: list[Told]) -> SqliteStore:
    """A home with this log, written as quickly as a disk takes it and folded afterwards."""
    store = open_store(home)
    db = open_connection(store.path, timeout_s=10)
    with db:
        db.execute(dialect.BEGIN_WRITING)
        last = LastRow(db)
        rows = ready_rows(log, position=last.position, linked=last.chain)
        db.executemany(dialect.INSERT_EVENT, rows)
    db.close()
    head.advance(home, head.Head(rows[-1][0], rows[-1][8]))
    store.replay_rebuild()
    return store
