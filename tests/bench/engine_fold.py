"""From the log to rows: replay, rebuild, verify, the load of one stream, and memory."""

import subprocess
import sys
from pathlib import Path
from typing import Any

from threadbook.adapters.store import SqliteStore, chain
from threadbook.adapters.store.codec import Codec
from threadbook.adapters.store.connections import open_connection
from threadbook.adapters.store.views import decoded
from threadbook.domain.events import Cited, extraction_stream
from threadbook.domain.extraction import Extraction, evolve
from threadbook.projections.catalog import SYNCHRONOUS
from threadbook.projections.fold import create, fold_all, write

from tests.bench.engine_by_hand import fold_by_hand
from tests.bench.engine_library import Library, outputs
from tests.bench.engine_log import BEGAN, ROOT, Told, build, open_store
from tests.bench.engine_measuring import Figure, interleaved, rate

LOADED = 1_000


def few(rounds: int, events: int) -> int:
    """A million events take long enough to be measured by three."""
    return min(rounds, 3) if events > 200_000 else rounds


class Folding:
    def __init__(self, store: SqliteStore) -> None:
        self.store = store
        self.codec = Codec()
        self.db = open_connection(store.path, timeout_s=10)
        (self.until,) = self.db.execute("SELECT max(position) FROM events").fetchone()
        self.rows: dict[Any, list[Any]] = {}

    def decode(self) -> None:
        for _ in decoded(self.db, self.codec, self.until):
            pass

    def fold(self) -> None:
        self.rows = fold_all(SYNCHRONOUS, decoded(self.db, self.codec, self.until))

    def by_hand(self) -> None:
        fold_by_hand(decoded(self.db, self.codec, self.until))

    def insert(self) -> None:
        """The limit of what a rebuild does to the file: the ready rows into empty tables."""
        self.db.execute("BEGIN IMMEDIATE")
        for projection in SYNCHRONOUS:
            self.db.execute(f"DROP TABLE {projection.NAME}")
            create(projection, self.db)
            write(projection, self.rows[projection], self.db)
        self.db.execute("COMMIT")

    def check(self) -> None:
        """What was compared did the same work."""
        self.fold()
        by_hand = fold_by_hand(decoded(self.db, self.codec, self.until))
        for projection in SYNCHRONOUS:
            assert by_hand.get(projection, []) == self.rows[projection], projection.NAME


def replay(folder: Path, store: SqliteStore, log: list[Told], rounds: int) -> list[Figure]:
    folding = Folding(store)
    folding.check()
    times = interleaved(
        {
            "decode": folding.decode,
            "by hand": folding.by_hand,
            "fold": folding.fold,
            "insert": folding.insert,
            "rebuild": store.replay_rebuild,
        },
        few(rounds, len(log)),
    )
    folding.db.close()
    limit = [a + b for a, b in zip(times.seconds["fold"], times.seconds["insert"], strict=True)]
    times.seconds["fold and insert"] = limit
    count = folding.until
    return [
        Figure(
            name="replay",
            value=times.ratio("decode", "fold"),
            unit="x",
            ours=rate(count, times.median("fold")),
            beside=f"cursor and decode {rate(count, times.median('decode'))}",
        ),
        Figure(
            name="fold_vs_by_hand",
            value=times.ratio("fold", "by hand"),
            unit="x",
            ours=f"{times.median('fold'):.2f} s",
            beside=f"by hand {times.median('by hand'):.2f} s",
            goal="<= 1.5",
            met=times.ratio("fold", "by hand") <= 1.5,
        ),
        Figure(
            name="rebuild",
            value=times.ratio("rebuild", "fold and insert"),
            unit="x",
            ours=f"{times.median('rebuild'):.2f} s",
            beside=f"fold and insert {times.median('fold and insert'):.2f} s",
            goal="<= 1.3",
            met=times.ratio("rebuild", "fold and insert") <= 1.3,
        ),
    ]


def against_library(folder: Path, log: list[Told], rounds: int) -> list[Figure]:
    """Of a part of the log: the library takes a transaction an event."""
    part = log[: min(len(log), 5_000)]
    store = build(folder / "ours", part)
    folding = Folding(store)
    library = Library(folder / "library", views=False)
    for first in range(0, len(part), 100):
        library.append(part[first : first + 100])
    folding.fold()
    assert library.replay() == folding.rows
    times = interleaved(
        {
            "fold": folding.fold,
            "library fold": library.replay,
            "rebuild": store.replay_rebuild,
            "library runner": library.run,
        },
        few(rounds, 200_001),
    )
    folding.db.close()
    library.close()
    store.close()
    return [
        Figure(
            name="replay_vs_library",
            value=times.ratio("library fold", "fold"),
            unit="x",
            ours=rate(len(part), times.median("fold")),
            beside=f"library {rate(len(part), times.median('library fold'))}",
        ),
        Figure(
            name="rebuild_vs_library",
            value=times.ratio("library runner", "rebuild"),
            unit="x",
            ours=rate(len(part), times.median("rebuild")),
            beside=f"its runner {rate(len(part), times.median('library runner'))}",
            goal=">= 16",
            met=times.ratio("library runner", "rebuild") >= 16,
        ),
    ]


def verify(store: SqliteStore, rounds: int) -> list[Figure]:
    db = open_connection(store.path, timeout_s=10)
    (count,) = db.execute("SELECT max(position) FROM events").fetchone()

    def cursor() -> None:
        for _ in db.execute(f"SELECT {chain.COLUMNS}, chain FROM events ORDER BY position"):
            pass

    def verified() -> None:
        found = store.verify()
        assert (found.ok, found.checked) == (True, count)

    times = interleaved({"cursor": cursor, "verify": verified}, few(rounds, count))
    db.close()
    ratio = times.ratio("verify", "cursor")
    return [
        Figure(
            name="verify_events_per_s",
            value=count / times.median("verify"),
            unit="events/s",
            beside=f"bare cursor {rate(count, times.median('cursor'))}",
        ),
        Figure(
            name="verify",
            value=ratio,
            unit="x",
            ours=f"{times.median('verify'):.2f} s",
            beside=f"bare cursor {times.median('cursor'):.2f} s",
            goal="<= 1.5",
            met=ratio <= 1.5,
        ),
    ]


def load(folder: Path, rounds: int) -> list[Figure]:
    """An output that was cited so often, from its stream."""
    stream = extraction_stream("v1", "t1")
    cited = [
        Cited(at=BEGAN, thread_id="t1", memory_version="v1", citation_id=f"s:{n}", usage_count=n)
        for n in range(LOADED)
    ]
    store = open_store(folder / "ours")
    with store.writing(actor="application") as tx:
        tx.append(stream, *cited)
    application, output_id = outputs(folder / "library", LOADED)

    def ours() -> None:
        job = Extraction(thread_id="t1", memory_version="v1")
        with store.reading() as view:
            for recorded in view.events(stream=stream):
                job = evolve(job, recorded.event)

    times = interleaved(
        {"ours": ours, "library": lambda: application.repository.get(output_id)}, rounds * 2
    )
    store.close()
    application.close()
    ratio = times.ratio("library", "ours")
    return [
        Figure(
            name="load_1000_vs_library",
            value=ratio,
            unit="x",
            ours=f"{times.median('ours') * 1000:.1f} ms",
            beside=f"library {times.median('library') * 1000:.1f} ms",
            goal=">= 25",
            met=ratio >= 25,
        )
    ]


MEMORY = """
import resource, sys
from pathlib import Path
from tests.bench.engine_log import open_store
def most():
    try:
        # The kernel's own mark begins anew with a program; getrusage's may be the parent's.
        lines = Path("/proc/self/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 1024
    except FileNotFoundError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024 * 1024)
before, store = most(), open_store(Path(sys.argv[1]))
rows = store.replay_rebuild()
print(before, most(), sum(rows.values()))
"""


def memory(store: SqliteStore, count: int) -> list[Figure]:
    told = subprocess.run(
        [sys.executable, "-c", MEMORY, str(store.home)],
        env={"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}", "PATH": ""},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    before, most, rows = float(told[0]), float(told[1]), int(told[2])
    return [
        Figure(
            name="rss_mb",
            value=most,
            unit="MB",
            ours=f"{count:,} events, {rows:,} rows",
            beside=f"the same process before it {before:.0f} MB",
        )
    ]
