"""The memory tools: a server's cold start, and searches of a small and of the largest memory.

    python tests/bench/tools.py [TIMES]

The server is a new process with its compiled files there, interleaved with `python -c pass`. The
searches are in this process, over made texts of 3 KB a session in the form that ours have; their
times are of the processor, without what a disk takes.
"""

import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]

from threadbook.adapters.ranking import Ranking  # noqa: E402
from threadbook.application.questions import SearchArguments  # noqa: E402
from threadbook.application.ranked import RankedArguments, RankedSearch  # noqa: E402
from threadbook.application.reading import Reading, Texts  # noqa: E402
from threadbook.application.roots import Root  # noqa: E402
from threadbook.application.tools import search  # noqa: E402

HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "bench", "version": "0"},
    },
}
THEN = (
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
    {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
)


def started(words: list[str], environment: dict[str, str], *, asks: bool) -> dict[str, float]:
    """Milliseconds until each answer, and of the processor in all."""
    began = time.perf_counter()
    process = subprocess.Popen(
        words, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdin is not None
    assert process.stdout is not None
    told = {}
    if asks:
        process.stdin.write(b"".join(json.dumps(each).encode() + b"\n" for each in (HELLO, *THEN)))
        process.stdin.flush()
        for name in ("initialize", "tools/list"):
            assert b"result" in process.stdout.readline()
            told[name] = (time.perf_counter() - began) * 1000
    process.stdin.close()
    _, _, used = os.wait4(process.pid, 0)
    told["processor"] = (used.ru_utime + used.ru_stime) * 1000
    process.stdout.close()
    return told


def cold(times: int) -> None:
    environment = {
        name: value
        for name, value in os.environ.items()
        if name != "PYTHONDONTWRITEBYTECODE" and not name.startswith("THREADBOOK_")
    }
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    with TemporaryDirectory() as place:
        program = [sys.executable, "-m", "threadbook.adapters.cli", "--home", f"{place}/memory"]
        found: dict[str, list[dict[str, float]]] = {"pass": [], "threadbook mcp": []}
        for _ in range(times + 1):
            found["pass"].append(started([sys.executable, "-c", "pass"], environment, asks=False))
            found["threadbook mcp"].append(
                started([*program, "mcp", "--cwd", place], environment, asks=True)
            )
    for name, runs in found.items():
        for what in runs[0]:
            seen = sorted(each[what] for each in runs[1:])  # The first one compiled.
            unit = "" if what == "MB" else " ms"
            print(
                f"{name}: {what} median {seen[len(seen) // 2]:.0f}{unit}, min {seen[0]:.0f}{unit}"
            )


def memory(outputs: int) -> dict[str, str]:
    chance = random.Random(1)
    letters = "abcdefghijklmnopqrstuvwxyz"
    known = ["".join(chance.choices(letters, k=chance.randint(3, 9))) for _ in range(20_000)]

    def said(count: int) -> str:
        return " ".join(
            known[min(int(chance.paretovariate(0.6)), len(known) - 1)] for _ in range(count)
        )

    texts, handbook = {}, ["# Task Group: made", "scope: made", ""]
    for number in range(1, outputs + 1):
        name = f"rollout_summaries/2026-11-29T00-00-00-{number:04}-{said(4).replace(' ', '_')}.md"
        texts[name] = f"thread_id: {number}\n\n# {said(6)}\n\nPreference signals:\n" + "".join(
            f"- {said(20)}\n" for _ in range(20)
        )
        handbook += [f"## Task {number}: {said(6)}, success", "", "### rollout_summary_files"]
        handbook += [f"- {name}", "", "### keywords", f"- {said(8)}", ""]
    handbook += ["## User preferences", *(f"- {said(15)} [Task {n + 1}]" for n in range(outputs))]
    return texts | {"MEMORY.md": "\n".join(handbook)}


def searches(outputs: int) -> None:
    texts = memory(outputs)
    root = Root(memory_version="v1", scope="global")
    reading = Reading(root=root, position=1, rendered_position=1, files=Texts(texts))
    words = texts["MEMORY.md"].split("\n")[-1].split()[1:4]
    question = RankedArguments(query=" ".join(words))
    exact = SearchArguments(queries=(words[0],))
    loose = SearchArguments(queries=(words[0],), normalized=True, case_sensitive=False)
    ranked = RankedSearch(Ranking)
    size = sum(map(len, texts.values())) // 1000
    told = {
        "ranked, the first": spent(lambda: ranked.search(reading, question)),
        "ranked, again": spent(lambda: ranked.search(reading, question)),
        "exact": spent(lambda: search(reading, exact)),
        "normalized, without case": spent(lambda: search(reading, loose)),
    }
    line = "; ".join(f"{name} {ms:.0f} ms" for name, ms in told.items())
    print(f"{outputs} outputs, {size} KB: {line}")


def spent(what) -> float:
    began = time.process_time()
    what()
    return (time.process_time() - began) * 1000


if __name__ == "__main__":
    print(f"load {os.getloadavg()[0]:.1f}")
    for outputs in (256, 4_096):
        searches(outputs)
    cold(int(sys.argv[1]) if len(sys.argv) > 1 else 7)
