"""Around the log: the folder's baseline beside git, processes that race, and a cold start."""

import os
import resource
import shutil
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from statistics import median

from threadbook.adapters import git
from threadbook.adapters.memory import Memory
from threadbook.adapters.store import SqliteStore
from threadbook.application.publication import Made, publication
from threadbook.application.render import render
from threadbook.application.roots import Root
from threadbook.domain.carried import Carried
from threadbook.domain.events import (
    Phase2Succeeded,
    Selected,
    consolidation_stream,
    thread_stream,
)
from threadbook.projections import stage1_outputs

from tests.bench.engine_claims import JOBS
from tests.bench.engine_log import ROOT, History, Told, build, clock, open_store
from tests.bench.engine_measuring import Figure, interleaved

PROCESSES = 4
CLAIMING = Path(__file__).with_name("engine_claims.py")
COLD_MS = 150
EVENTS_OF_TEN_THOUSAND = 60_000


def baseline(folder: Path, rounds: int) -> list[Figure]:
    if shutil.which("git") is None:
        return [Figure(name="baseline_vs_git", value=None, unit="x", beside="git is not installed")]
    ratios, told, beside = {}, [], []
    for count in (256, 1_000):
        root = folder / str(count)
        write_files(root, count)
        quiet = {"cwd": root, "check": True, "capture_output": True}

        def by_git(root: Path = root, quiet: dict = quiet) -> None:
            shutil.rmtree(root / ".git", ignore_errors=True)
            who = ["-c", "user.name=bench", "-c", "user.email=bench@localhost"]
            for words in (["init", "-q"], ["add", "-A"], [*who, "commit", "-q", "-m", "baseline"]):
                subprocess.run(["git", *words], **quiet)

        def ours(root: Path = root) -> None:
            git.reset(root, at=1)

        times = interleaved({"ours": ours, "git": by_git}, rounds)
        ours()
        subprocess.run(["git", "fsck", "--strict"], **quiet)
        ratios[str(count)] = times.ratio("ours", "git")
        told.append(f"{times.median('ours') * 1000:.0f} ms")
        beside.append(f"{times.median('git') * 1000:.0f} ms")
    worst = max(ratios.values())
    return [
        Figure(
            name="baseline_vs_git",
            value=worst,
            unit="x",
            ours=f"{', '.join(told)} (256 and 1,000 files)",
            beside=f"git init, add, commit {', '.join(beside)}",
            goal="<= 0.7",
            met=worst <= 0.7,
            more=ratios,
        )
    ]


def write_files(root: Path, count: int) -> None:
    for number in range(count):
        file = root / f"rollout_summaries/{number:04}.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"# Session {number}\n" + f"- water the ferns, {number}\n" * 60)


def environment() -> dict[str, str]:
    found = {
        **os.environ,
        "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}",
        "THREADBOOK_SCOPE": "global",
    }
    found.pop("PYTHONDONTWRITEBYTECODE", None)  # A program is compiled once, and not each time.
    return found


def claims(folder: Path, count: int) -> list[Figure]:
    """The same number of claims by several processes and by one, on homes of the same kind."""
    alone = raced(folder / "alone", 1, count // PROCESSES)
    several = raced(folder / "several", PROCESSES, count // PROCESSES)
    sound = several["violations"] == 0 and several["errors"] == 0
    return [
        Figure(
            name="claims",
            value=several["rate"] / alone["rate"],
            unit="x",
            ours=f"{several['rate']:,.0f}/s, {several['claims']:,.0f} claims,"
            f" {several['violations']:.0f} violations, {several['errors']:.0f} errors",
            beside=f"one process {alone['rate']:,.0f}/s",
            goal="0 violations, 0 errors",
            met=sound,
            more=several,
        )
    ]


def raced(home: Path, processes: int, each: int) -> dict[str, float]:
    store = open_store(home)
    history = History()
    with store.writing(actor="pipeline") as tx:
        for number in range(JOBS):
            event = history.registered(f"t{number}", "fern", "project:fern")
            tx.append(thread_stream(event.thread_id), event)
    started = time.perf_counter()
    running = [
        subprocess.Popen(
            [sys.executable, str(CLAIMING), str(home), str(each), str(seed)],
            env=environment(),
            stdout=subprocess.PIPE,
            text=True,
        )
        for seed in range(processes)
    ]
    answers = [process.communicate()[0].split() for process in running]
    took = time.perf_counter() - started
    assert all(process.returncode == 0 for process in running)
    assert store.verify().ok
    assert store.replay_verify() == []
    store.close()
    claimed, refused, violations, errors = (
        sum(map(int, column)) for column in zip(*answers, strict=True)
    )
    return {
        "rate": claimed / took,
        "claims": claimed,
        "refused": refused,
        "violations": violations,
        "errors": errors,
    }


def cold_start(folder: Path, log: list[Told], rounds: int) -> list[Figure]:
    """From nothing to the answer: a new process. `status` on a home of a thousand events, `context`
    on one of ten thousand sessions, with a folder of 256 of them and a summary that fills the
    budget, for a session whose showing is recorded."""
    small = build(folder / "small", log[:1_000])
    small.close()
    large = build(folder / "large", log[:EVENTS_OF_TEN_THOUSAND])
    remember(large)
    large.close()
    command = [sys.executable, "-c", "from threadbook.adapters.cli import main; main()"]
    now = ["--now", "2026-07-01T00:00:00Z"]
    asked = {
        "status": [*command, "status", "--home", str(small.home)],
        "context": [*command, "context", "--home", str(large.home), "--session", "bench"],
    }

    cpu_ms: dict[str, list[float]] = {}

    def run(name: str, words: list[str]) -> None:
        before = cpu_of_children()
        subprocess.run(words, env=environment(), check=True, capture_output=True)
        cpu_ms.setdefault(name, []).append((cpu_of_children() - before) * 1000)

    commands = {name: [*words, *now] for name, words in asked.items()}
    commands["python"] = [sys.executable, "-c", "pass"]
    times = interleaved({name: partial(run, name, commands[name]) for name in commands}, rounds + 2)
    took = {name: times.median(name) * 1000 for name in commands}
    cpu = {name: median(cpu_ms[name]) for name in commands}
    worst = max(took[name] for name in asked)
    return [
        Figure(
            name="cold_start_ms",
            value=worst,
            unit="ms",
            ours=", ".join(f"{name} {took[name]:.0f}, CPU {cpu[name]:.0f}" for name in asked),
            beside=f"python -c pass {took['python']:.0f}, CPU {cpu['python']:.0f}",
            goal=f"<= {COLD_MS}",
            met=worst <= COLD_MS,
            more=took | {f"{name}_cpu": ms for name, ms in cpu.items()},
        )
    ]


def remember(store: SqliteStore) -> None:
    """The single memory of all sessions, as a run would leave it."""
    line = '- the user wrote "from now on always water the ferns at dawn" (2026-06-01) [Task 1]\n'
    files = {
        "MEMORY.md": f"# Task Group: ferns\n{line * 2_000}",
        "memory_summary.md": f"v1\n\n## User preferences\n{line * (9_900 // len(line))}",
    }
    with Memory.open(store.home, clock=clock) as memory:
        around = memory._around
        root = Root(memory_version="v1", scope="global")
        stream = consolidation_stream("v1", "global")
        with memory.store.writing(actor="pipeline") as tx:
            outputs = tx.find(stage1_outputs, "WHERE memory_mode = 'enabled' LIMIT 256")
            made = Made(consolidator="offline", files=files, carried=Carried(salt="bench"))
            published = publication(around, tx, root, made, run_id=None, now=around.now())
            succeeded = Phase2Succeeded(
                at=around.now(),
                memory_version="v1",
                scope="global",
                ownership_token="bench",
                completed_watermark=around.now(),
                last_success_watermark=around.now(),
                selected=tuple(
                    Selected(
                        thread_id=row.thread_id,
                        source_updated_at=row.source_updated_at,
                        matched=True,
                    )
                    for row in outputs
                ),
            )
            tx.append(stream, published, succeeded)
        workspace = around.workspace("v1", "global")
        with workspace.lock():
            render(around, root, workspace, run_id=None)


def cpu_of_children() -> float:
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime
