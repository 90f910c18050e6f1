"""Appending: our store, and the same without tables, against the disk and against the library."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from threadbook.adapters.store import SqliteStore, dialect
from threadbook.adapters.store.connections import open_connection

from tests.bench.engine_library import Library
from tests.bench.engine_log import BEGAN, ReadyRow, Told, open_store, ready_rows
from tests.bench.engine_measuring import Figure, Times, interleaved, rate

LIBRARY_PART = 10  # Its runner commits each event for itself: of such a batch it gets a part.


class Appending:
    """Each case has a file of its own and appends the same part of the log in the same round."""

    def __init__(self, folder: Path, log: Sequence[Told], *, batch: int, rounds: int) -> None:
        self.log, self.batch = log, batch
        self.share = len(log) // rounds
        self.library_share = self.share // (LIBRARY_PART if batch > 1 else 1)
        self.rows = ready_rows(list(log), position=0)
        self.raw = open_connection(open_store(folder / "raw", ()).path, timeout_s=10)
        self.raw.execute("DELETE FROM events")
        self.whole = open_store(folder / "whole")
        self.chain_alone = open_store(folder / "chain", ())
        self.library = Library(folder / "library")
        self.hooked = Library(folder / "hooked", hooked=True)
        self.alone = Library(folder / "alone", views=False)

    def measure(self, rounds: int) -> Times:
        return interleaved(
            {
                "raw": Turn(self.rows, self.share, self.batch, self.take_raw),
                "chain": Turn(self.log, self.share, self.batch, self.taker(self.chain_alone)),
                "whole": Turn(self.log, self.share, self.batch, self.taker(self.whole)),
                "library": Turn(self.log, self.library_share, self.batch, self.library.append),
                "library hooked": Turn(self.log, self.share, self.batch, self.hooked.append),
                "library alone": Turn(self.log, self.share, self.batch, self.alone.append),
            },
            rounds,
        )

    def take_raw(self, batch: Sequence[ReadyRow]) -> None:
        self.raw.execute(dialect.BEGIN_WRITING)
        self.raw.executemany(dialect.INSERT_EVENT, batch)
        self.raw.execute("COMMIT")

    def taker(self, store: SqliteStore) -> Callable[[Sequence[Told]], None]:
        def take(batch: Sequence[Told]) -> None:
            with store.writing(actor="pipeline") as tx:
                for stream, event in batch:
                    tx.append(stream, event)

        return take

    def close(self) -> None:
        self.raw.close()
        for each in (self.whole, self.chain_alone, self.library, self.hooked, self.alone):
            each.close()


class Turn:
    """The next share of the log, in batches; each turn goes on where the last one ended."""

    def __init__(self, log: Sequence[Any], share: int, batch: int, take: Any) -> None:
        self.log, self.share, self.batch, self.take = log, share, batch, take
        self.done = 0

    def __call__(self) -> None:
        until = self.done + self.share
        for first in range(self.done, until, self.batch):
            self.take(self.log[first : min(first + self.batch, until)])
        self.done = until


def measure(folder: Path, log: list[Told], rounds: int) -> list[Figure]:
    return [
        *by_batch(folder / "one", log[: min(len(log), 1_000 * rounds)], 1, rounds),
        *by_batch(folder / "hundred", log[: min(len(log), 10_000 * rounds)], 100, rounds),
    ]


def by_batch(folder: Path, log: list[Told], batch: int, rounds: int) -> list[Figure]:
    assert log[0][1].at >= BEGAN
    appending = Appending(folder, log, batch=batch, rounds=rounds)
    times = appending.measure(rounds)
    appending.close()
    share = appending.share

    def figure(name: str, ours: str, limit: str, goal: float | None, per: float = 1) -> Figure:
        ratio = times.ratio(limit, ours, per=per)
        count = appending.library_share if limit == "library" else share
        return Figure(
            name=name,
            value=ratio,
            unit="x",
            ours=rate(share, times.median(ours)),
            beside=f"{limit} {rate(count, times.median(limit))}",
            goal="" if goal is None else f">= {goal}",
            met=None if goal is None else ratio >= goal,
        )

    part = share / appending.library_share
    if batch == 1:
        return [
            figure("append_1", "whole", "raw", 0.60),
            figure("append_1_chain", "chain", "raw", None),
            figure("append_1_vs_library", "whole", "library", None, part),
            figure("append_1_vs_library_hooked", "whole", "library hooked", None),
        ]
    return [
        figure("append_100_chain", "chain", "raw", 0.65),
        figure("append_100", "whole", "raw", None),
        figure("append_100_vs_library", "whole", "library", 2.0, part),
        figure("append_100_vs_library_hooked", "whole", "library hooked", None),
        figure("append_100_chain_vs_library", "chain", "library alone", None),
    ]
