"""Measures the engine: the log, its tables, and what is asked of them, beside their limits.

    python tests/bench/engine.py [--events N] [--json] [--only NAME…] [--rounds N]

Every figure is made in one run with its limit and, where the eventsourcing library does the same
work, with the library: they take turns, and a ratio is the median of the rounds' ratios. So a busy
machine moves both. Times by themselves say little; the load stands above them. A goal is one of
the design's; the bench prints whether it is met and fails nothing.
"""

import argparse
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]

from threadbook.adapters.store import SqliteStore  # noqa: E402

from tests.bench import engine_append, engine_fold, engine_outside, engine_reads  # noqa: E402
from tests.bench.engine_log import Told, build, told  # noqa: E402
from tests.bench.engine_measuring import Figure  # noqa: E402


class Bench:
    """Makes what the groups share once, and only when one of them is asked for."""

    def __init__(self, folder: Path, events: int, rounds: int) -> None:
        self.folder, self.events, self.rounds = folder, events, rounds

    @cached_property
    def log(self) -> list[Told]:
        return told(self.events)

    @cached_property
    def store(self) -> SqliteStore:
        return build(self.folder / "whole", self.log)

    def append(self) -> list[Figure]:
        return engine_append.measure(self.folder / "append", self.log, self.rounds)

    def replay(self) -> list[Figure]:
        return engine_fold.replay(self.folder / "replay", self.store, self.log, self.rounds)

    def library(self) -> list[Figure]:
        return engine_fold.against_library(self.folder / "library", self.log, self.rounds)

    def selection(self) -> list[Figure]:
        return engine_reads.selecting(self.folder, self.events, self.rounds)

    def load(self) -> list[Figure]:
        return engine_fold.load(self.folder / "load", self.rounds)

    def baseline(self) -> list[Figure]:
        return engine_outside.baseline(self.folder / "baseline", self.rounds)

    def claims(self) -> list[Figure]:
        return engine_outside.claims(self.folder / "claims", max(self.events // 10, 40))

    def cold_start(self) -> list[Figure]:
        return engine_outside.cold_start(self.folder / "cold", self.log, self.rounds)

    def memory(self) -> list[Figure]:
        return engine_fold.memory(self.store, len(self.log))

    def verify(self) -> list[Figure]:
        return engine_fold.verify(self.store, self.rounds)

    def growth(self) -> list[Figure]:
        # Last: it claims and cites, so that the log is no longer the one that was built.
        return engine_reads.growth(self.folder / "growth", self.log, self.store, self.rounds)


GROUPS: dict[tuple[str, ...], Callable[[Bench], list[Figure]]] = {
    (
        "append_1",
        "append_1_chain",
        "append_1_vs_library",
        "append_1_vs_library_hooked",
        "append_100_chain",
        "append_100",
        "append_100_vs_library",
        "append_100_vs_library_hooked",
        "append_100_chain_vs_library",
    ): Bench.append,
    ("replay", "fold_vs_by_hand", "rebuild"): Bench.replay,
    ("replay_vs_library", "rebuild_vs_library"): Bench.library,
    ("selection_ms", "selection_stale_ms"): Bench.selection,
    ("load_1000_vs_library",): Bench.load,
    ("baseline_vs_git",): Bench.baseline,
    ("claims",): Bench.claims,
    ("cold_start_ms",): Bench.cold_start,
    ("rss_mb",): Bench.memory,
    ("verify_events_per_s", "verify"): Bench.verify,
    (
        "growth_open",
        "growth_claim",
        "growth_cite",
        "growth_select",
        "growth_explain",
        "growth_status",
        "growth_at",
    ): Bench.growth,
}
NAMES = tuple(name for names in GROUPS for name in names)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--events", type=int, default=100_000, help="how long the log is (100000)")
    parser.add_argument("--rounds", type=int, default=5, help="how often each case is run (5)")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=NAMES, default=NAMES)
    asked = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="threadbook-bench-"))
    try:
        print_all(folder, asked.events, asked.rounds, set(asked.only), as_json=asked.json)
    finally:
        shutil.rmtree(folder)


def print_all(folder: Path, events: int, rounds: int, only: set[str], *, as_json: bool) -> None:
    bench = Bench(folder, events, rounds)
    around = {
        "at": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
        "load": [round(each, 2) for each in os.getloadavg()],
        "cpus": os.cpu_count(),
        "python": sys.version.split()[0],
        "events": events,
        "rounds": rounds,
    }
    if not as_json:
        print(", ".join(f"{what} {value}" for what, value in around.items()))
        print(f"{'figure':30} {'value':>10} {'goal':>10}  met  ours, and beside it")
    figures = []
    for names, measure in GROUPS.items():
        if only.isdisjoint(names):
            continue
        found = [figure for figure in measure(bench) if figure.name in only]
        figures += found
        if not as_json:
            print("\n".join(map(line, found)), flush=True)
    around["load_after"] = [round(each, 2) for each in os.getloadavg()]
    if as_json:
        print(json.dumps({**around, "figures": {each.name: in_json(each) for each in figures}}))
    else:
        print(f"load after {around['load_after']}")


def line(figure: Figure) -> str:
    value = "-" if figure.value is None else f"{figure.value:,.{digits(figure.unit)}f}"
    met = {True: "yes", False: "NO", None: ""}[figure.met]
    told = "; ".join(part for part in (figure.ours, figure.beside) if part)
    return (
        f"{figure.name:30} {value:>6} {figure.unit[:3]:3} {figure.goal[:10]:>10}  {met:3}  {told}"
    )


def digits(unit: str) -> int:
    return 0 if unit in ("MB", "events/s") else 2


def in_json(figure: Figure) -> dict[str, object]:
    return {
        "value": None if figure.value is None else round(figure.value, 4),
        "unit": figure.unit,
        "ours": figure.ours,
        "beside": figure.beside,
        "goal": figure.goal,
        "met": figure.met,
        **({"more": figure.more} if figure.more else {}),
    }


if __name__ == "__main__":
    main()
