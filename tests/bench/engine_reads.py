"""What a person or a run asks of a home, as the home grows."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from threadbook import Memory
from threadbook.adapters.store import SqliteStore
from threadbook.adapters.store.connections import open_connection
from threadbook.application import state
from threadbook.application.roots import Root, chosen, roots
from threadbook.application.surroundings import Policy
from threadbook.domain import extraction
from threadbook.domain.events import extraction_stream
from threadbook.projections import jobs, stage1_outputs
from threadbook.projections.fold import write

from tests.application.homes import show
from tests.bench.engine_log import Told, build, clock, open_store
from tests.bench.engine_measuring import Figure, once_ms

DAY_S = 86_400
FRESH = 201  # Of the outputs in the worst case: less than phase 2 reads.
ROOT_ASKED = Root(memory_version="v1", scope="project:a")


def sizes(events: int) -> list[int]:
    """10k, 100k and 1M of a million."""
    return [max(events // 100, 10), max(events // 10, 10), events]


def selecting(folder: Path, events: int, rounds: int) -> list[Figure]:
    found = []
    for name, stale in (("selection_ms", False), ("selection_stale_ms", True)):
        counts = sizes(events)
        took = {
            f"{count}": selected_ms(folder / f"{name}-{count}", count, stale, rounds)
            for count in (counts[-1:] if stale else counts)
        }
        most = max(took.values())
        found.append(
            Figure(
                name=name,
                value=most,
                unit="ms",
                ours=", ".join(f"{ms:.2f} at {int(count):,}" for count, ms in took.items()),
                beside=f"all used, {FRESH} fresh" if stale else "256 of them",
                goal="<= 1",
                met=most <= 1,
                more=took,
            )
        )
    return found


def selected_ms(home: Path, count: int, stale: bool, rounds: int) -> float:
    store = open_store(home)
    db = open_connection(store.path, timeout_s=10)
    with db:
        db.execute("BEGIN IMMEDIATE")
        write(stage1_outputs, outputs(count, stale), db)
    db.close()
    policy, now = Policy(), int(clock())
    with store.reading() as view:
        rows = chosen(view, ROOT_ASKED, policy, now=now)
        assert len(rows) == min(FRESH if stale else 256, count)
        took = once_ms(lambda: chosen(view, ROOT_ASKED, policy, now=now), rounds * 5)
    store.close()
    return took


def outputs(count: int, stale: bool) -> list[stage1_outputs.Row]:
    now = int(clock())
    found = []
    for number in range(count):
        fresh = number % max(count // FRESH, 1) == 0 and number // max(count // FRESH, 1) < FRESH
        age_s = number % (20 * DAY_S) if fresh or not stale else 60 * DAY_S + number
        used = stale or number % 3 == 0
        found.append(
            stage1_outputs.Row(
                thread_id=f"019b{number:032x}",
                memory_version="v1",
                scope="project:a",
                memory_mode="enabled",
                source_updated_at=now - age_s,
                counts_from=now - age_s,
                raw_memory_ref=f"{number:032x}",
                rollout_summary_ref=f"{number + 1:032x}",
                extractor="model:luna",
                since=now - age_s,
                generated_at=now - age_s,
                usage_count=(1 + number % 7 if not fresh else 1) if used else 0,
                last_usage=now - age_s if used else None,
            )
        )
    return found


def growth(folder: Path, log: list[Told], whole: SqliteStore, rounds: int) -> list[Figure]:
    took: dict[str, dict[int, float]] = {}
    for count in sizes(len(log)):
        store = whole if count == len(log) else build(folder / str(count), log[:count])
        for name, ms in asked(store, log[:count], rounds).items():
            took.setdefault(name, {})[count] = ms
    figures = []
    for name, by_count in took.items():
        counts = list(by_count)
        figures.append(
            Figure(
                name=f"growth_{name}",
                value=by_count[counts[-1]] / max(by_count[counts[-2]], 1e-6),
                unit="x",
                ours=", ".join(f"{ms:.2f}" for ms in by_count.values()) + " ms",
                beside=f"at {', '.join(f'{count:,}' for count in counts)} events",
                more={str(count): ms for count, ms in by_count.items()},
            )
        )
    return figures


def asked(store: SqliteStore, log: list[Told], rounds: int) -> dict[str, float]:
    """Milliseconds of each question at one size."""
    repeats = max(rounds, 3)
    memory = Memory.open(store.home, clock=clock)
    thread_id, turn = some_output(store), iter(range(1_000_000))
    show(memory._around, [thread_id], "bench")
    policy, now = Policy(), int(clock())

    def opened() -> None:
        Memory.open(store.home, clock=clock).close()

    def claims() -> None:
        with store.writing(actor="pipeline") as tx:
            claimed = extraction.claim(
                state.extraction(tx, "v1", thread_id),
                watermark=now + next(turn),
                extractor="bench",
                worker_id="bench",
                ownership_token="token",
                lease_s=0,
                running_elsewhere=tx.value(
                    jobs.OTHERS_RUNNING, memory_version="v1", thread_id=thread_id, now=now
                ),
                running_cap=8,
                now=now,
            )
            tx.append(extraction_stream("v1", thread_id), claimed)

    def selects() -> None:
        with store.reading() as view:
            for root in roots(view, policy)[:1]:
                chosen(view, root, policy, now=now)

    quick: dict[str, Callable[[], Any]] = {
        "open": opened,
        "claim": claims,
        "cite": lambda: memory.cited([thread_id], "bench", next(turn)),
        "select": selects,
        "explain": lambda: memory.explain(thread_id),
    }
    slow: dict[str, Callable[[], Any]] = {
        "status": memory.status,
        "at": lambda: memory.at(len(log) // 2),
    }
    took = {name: once_ms(case, repeats * 3) for name, case in quick.items()}
    took |= {
        name: once_ms(case, 1 if len(log) > 200_000 else repeats) for name, case in slow.items()
    }
    memory.close()
    return took


def some_output(store: SqliteStore) -> str:
    with store.reading() as view:
        newest = view.find(
            stage1_outputs, "WHERE memory_mode = 'enabled' ORDER BY since DESC LIMIT 1"
        )
        return str(newest[0].thread_id)
