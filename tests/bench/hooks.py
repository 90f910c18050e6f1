"""Hooks, cold: how long a session waits for them, beside an interpreter that does nothing.

    python tests/bench/hooks.py [TIMES]

Each is a new process with its compiled files there, interleaved with `python -c pass`, on a home
made from the sample. On a busy machine the processor time and the ratio say more than the wall.
"""

import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[2]


def main(times: int) -> None:
    environment = {
        name: value
        for name, value in os.environ.items()
        if name != "PYTHONDONTWRITEBYTECODE" and not name.startswith("THREADBOOK_")
    }
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    with TemporaryDirectory() as place:
        home = Path(place) / "memory"
        program = [sys.executable, "-m", "threadbook.adapters.cli", "--home", str(home)]
        quiet = {"env": environment, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        subprocess.run([*program, "run", "--sample"], check=True, **quiet)
        start = {"session_id": "s", "cwd": "/home/sam/gallery", "transcript_path": None}
        end = {"session_id": "s", "cwd": "/srv", "transcript_path": None}
        asked = {
            "python -c pass": ([sys.executable, "-c", "pass"], {}),
            "session-start": ([*program, "hook", "session-start", "--within", "60000"], start),
            "session-end": ([*program, "hook", "session-end", "--within", "60000"], end),
        }
        words, said = asked["session-start"]
        told = subprocess.run(
            words,
            input=json.dumps(said).encode(),
            check=True,
            **quiet | {"stdout": subprocess.PIPE},
        )
        if b"THREADBOOK MEMORY BEGINS" not in told.stdout:
            sys.exit("the session was given no memory, so that nothing would be measured")
        walls: dict[str, list[float]] = {name: [] for name in asked}
        cpus: dict[str, list[float]] = {name: [] for name in asked}
        for _ in range(times + 1):
            for name, (words, said) in asked.items():
                before = resource.getrusage(resource.RUSAGE_CHILDREN)
                began = time.perf_counter()
                subprocess.run(words, input=json.dumps(said).encode(), check=True, **quiet)
                walls[name].append(time.perf_counter() - began)
                after = resource.getrusage(resource.RUSAGE_CHILDREN)
                used = (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime)
                cpus[name].append(used)
    print(f"{times} times, load {os.getloadavg()[0]:.1f}; milliseconds")
    for name in asked:
        wall = sorted(each * 1000 for each in walls[name][1:])  # The first one compiled.
        cpu = sorted(each * 1000 for each in cpus[name][1:])
        print(
            f"{name:16} wall min {wall[0]:.0f}, median {wall[len(wall) // 2]:.0f},"
            f" p95 {wall[int(len(wall) * 0.95) - 1]:.0f}; processor median {cpu[len(cpu) // 2]:.0f}"
        )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 30)
