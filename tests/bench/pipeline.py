"""The pipeline: whole `threadbook run` processes against a model server that answers at once.

    python tests/bench/pipeline.py [--json] [--rounds N] [--sessions 2,16,64,128]

Each figure is of a new process on a new home, imports included: wall and processor seconds and peak
memory. Beside it, in the same round, stands what posting the very same bodies through the SDK's
bare client takes (`calibration_s`), and what the real Codex 0.171.0 took for so many sessions on
the day that it was measured (2026-11-29, another hour of a machine like this one: it is not part
of the run, so only the order of magnitude compares). Ratios are medians over the rounds.
"""

import argparse
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from msgspec import Struct

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).parent
CODEX = {"fixed_s": 1.35, "a_session_s": 0.0295, "no_change_s": 0.43, "one_changed_s": 1.54}
CODEX_MB = 178
AGE_S = 12 * 3600  # At rest, and young enough.
PADDING = 42_000  # As a real rollout: instructions of the program that no model is shown.
BIG_PADDING = 630_000  # Of the sessions of 756 KB that Codex was measured with,
BIG_CALLS, BIG_OUTPUT = 12, 10_000  # whose twelve calls have 10 KB of output each.


class Took(Struct, kw_only=True):
    """`until_s` is when the last session had been read, from the start of the process."""

    wall_s: float
    cpu_s: float
    mb: float
    until_s: float | None = None


class Server:
    """The stub, as a process of its own."""

    def __init__(self, place: Path) -> None:
        port_file, self.asked = place / "port", place / "asked.jsonl"
        words = ["-m", "tests.model_server", "--port-file", str(port_file)]
        self.process = subprocess.Popen(
            [sys.executable, *words, "--asked", str(self.asked)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
        )
        while not port_file.exists() or not port_file.read_text().strip():
            time.sleep(0.02)
            assert self.process.poll() is None, "the model server did not start"
        self.base_url = f"http://127.0.0.1:{port_file.read_text().strip()}/v1"

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *_: object) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(10)


def thread_id(number: int) -> str:
    return f"019b7a00-{number:04x}-7000-8000-{number:012x}"


def write_sessions(folder: Path, many: int, *, big: bool = False, first: int = 1) -> None:
    """Sessions of one project, each with a task, a command and an answer."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(first, first + many):
        at = time.time() - AGE_S - number
        stamp = datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")[:-6] + "Z"
        meta = {
            "id": thread_id(number),
            "timestamp": stamp,
            "source": "cli",
            "originator": "codex_cli",
            "cwd": "/srv/bench",
            "git": {"branch": "main", "repository_url": "https://example.test/bench.git"},
            "base_instructions": {"text": "x" * (BIG_PADDING if big else PADDING)},
        }
        said = f"Build step {number}. FACT[step {number} is built with make step{number}]"
        items = [message("user", "input_text", said)]
        for call in range(BIG_CALLS if big else 1):
            items += called(f"c{number}-{call}", number, many=BIG_OUTPUT // 40 if big else 1)
        items.append(message("assistant", "output_text", f"Step {number} is built."))
        lines = [{"timestamp": stamp, "type": "session_meta", "payload": meta}]
        lines += [{"timestamp": stamp, "type": "response_item", "payload": one} for one in items]
        path = folder / f"rollout-{thread_id(number)}.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        os.utime(path, (at, at))


def called(call_id: str, number: int, *, many: int) -> list[dict[str, Any]]:
    """A command and so many lines of output, of 40 characters each."""
    lines = (f"[{at:05}] step {number:03}: linked object {at % 97:02}.o" for at in range(many))
    return [
        {
            "type": "function_call",
            "name": "exec_command",
            "arguments": json.dumps({"cmd": f"make step{number}"}),
            "call_id": call_id,
        },
        {"type": "function_call_output", "call_id": call_id, "output": "\n".join(lines) + "\n"},
    ]


def message(role: str, kind: str, text: str) -> dict[str, Any]:
    return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}


def timed(words: list[str], environment: dict[str, str]) -> Took:
    began = time.perf_counter()
    process = subprocess.Popen(
        words, env=environment, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    assert process.stderr is not None
    complaint = process.stderr.read().decode(errors="replace")
    _, status, used = os.wait4(process.pid, 0)
    wall = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{' '.join(words)} ended with {process.returncode}: {complaint}")
    return Took(wall_s=wall, cpu_s=used.ru_utime + used.ru_stime, mb=used.ru_maxrss / 1024)


def run(home: Path, sessions: Path, server: Server, **settings: object) -> Took:
    """One `threadbook run` with the provider."""
    given = {"max_rollouts_per_startup": 128, "max_roots_per_run": 4, **settings}
    environment = clean() | {f"THREADBOOK_{k.upper()}": str(v) for k, v in given.items()}
    environment |= {"THREADBOOK_BASE_URL": server.base_url, "OPENAI_API_KEY": "none"}
    began = time.time()
    words = [sys.executable, "-m", "threadbook.adapters.cli", "--home", str(home), "run"]
    took = timed(
        [*words, "--model", "openai", "--yes", "--consolidate", "--sessions", str(sessions)],
        environment,
    )
    with sqlite3.connect(home / "threadbook.sqlite") as database:
        (last,) = database.execute(
            "SELECT max(recorded_at_ms) FROM events WHERE type = 'stage1.succeeded'"
            " AND recorded_at_ms > ?",
            (int(began * 1000),),
        ).fetchone()
    took.until_s = None if last is None else last / 1000 - began
    return took


def clean() -> dict[str, str]:
    environment = {
        name: value
        for name, value in os.environ.items()
        if name != "PYTHONDONTWRITEBYTECODE"
        and not name.startswith(("THREADBOOK_", "OPENAI_", "OTEL_"))
    }
    return environment | {"PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}


def bodies_of(server: Server, place: Path) -> Path:
    """What was asked since it was last looked at, as one file of bodies for the calibration."""
    lines = server.asked.read_text(encoding="utf-8").splitlines()
    found = [json.loads(line) for line in lines]
    bodies = [each["body"] for each in found if each["path"].endswith("/responses")]
    file = place / "bodies.jsonl"
    file.write_text("".join(json.dumps(body) + "\n" for body in bodies), encoding="utf-8")
    return file


def calibration(server: Server, bodies: Path) -> Took:
    return timed(
        [sys.executable, str(HERE / "pipeline_post.py"), server.base_url, str(bodies)], clean()
    )


class Case(Struct, kw_only=True):
    """Ours and the calibration of each round."""

    name: str
    sessions: int
    ours: list[Took] = []
    beside: list[Took] = []

    def told(self) -> dict[str, Any]:
        return {
            "case": self.name,
            "sessions": self.sessions,
            "wall_s": round(median(each.wall_s for each in self.ours), 3),
            "cpu_s": round(median(each.cpu_s for each in self.ours), 3),
            "mb": round(max(each.mb for each in self.ours), 1),
            "phase1_s": self.phase1(),
            "calibration_s": round(median(each.wall_s for each in self.beside), 3),
            "phase1_ratio": self.ratio(phase1=True),
            "ratio": self.ratio(phase1=False),
        }

    def phase1(self) -> float | None:
        found = [each.until_s for each in self.ours if each.until_s is not None]
        return round(median(found), 3) if found else None

    def ratio(self, *, phase1: bool) -> float | None:
        pairs = zip(self.ours, self.beside, strict=True)
        found = [
            (ours.until_s if phase1 else ours.wall_s) / beside.wall_s  # type: ignore[operator]
            for ours, beside in pairs
            if not phase1 or ours.until_s is not None
        ]
        return round(median(found), 2) if found else None


def measured(place: Path, sizes: list[int], rounds: int) -> list[dict[str, Any]]:
    cases: dict[str, Case] = {}

    def add(name: str, sessions: int, ours: Took, beside: Took) -> None:
        case = cases.setdefault(name, Case(name=name, sessions=sessions))
        case.ours.append(ours)
        case.beside.append(beside)

    for size in sizes:
        write_sessions(place / f"sessions-{size}", size)
    write_sessions(place / "sessions-big", 16, big=True)
    most = place / "sessions-256"
    write_sessions(most, 256)
    with Server(place) as server:
        full = place / "home-256"
        for _ in range(2):  # A start reads 128 at most.
            run(full, most, server)
        warm(place, server)
        for round_ in range(rounds):
            for name, sessions in [*((str(size), size) for size in sizes), ("big", 16)]:
                server.asked.write_text("")
                home = place / "home"
                shutil.rmtree(home, ignore_errors=True)
                ours = run(home, place / f"sessions-{name}", server)
                bodies = bodies_of(server, place)
                add(f"{name} sessions", sessions, ours, calibration(server, bodies))
            server.asked.write_text("")
            nothing = run(full, most, server)
            assert not server.asked.read_text(), "a run with nothing new asked a model"
            add("nothing new of 256", 256, nothing, calibration(server, one_body(place)))
            write_sessions(most, 1, first=1 + round_)
            again = most / f"rollout-{thread_id(1 + round_)}.jsonl"
            lines = again.read_text(encoding="utf-8").splitlines()
            now = datetime.fromtimestamp(time.time() - AGE_S / 2 - 1000, UTC)
            stamp = now.isoformat(timespec="milliseconds")[:-6] + "Z"
            more = message("user", "input_text", f"And again. FACT[round {round_} was built twice]")
            lines.append(json.dumps({"timestamp": stamp, "type": "response_item", "payload": more}))
            again.write_text("\n".join(lines) + "\n", encoding="utf-8")
            os.utime(again, (now.timestamp(), now.timestamp()))
            changed = run(full, most, server)
            bodies = bodies_of(server, place)
            assert bodies.read_text(), "the session that went on was not read"
            add("one of 256 changed", 256, changed, calibration(server, bodies))
    return [case.told() for case in cases.values()]


def warm(place: Path, server: Server) -> None:
    """Everything compiled and in the disk's cache, on both sides."""
    home = place / "home-warm"
    run(home, place / "sessions-big", server)
    bodies = bodies_of(server, place)
    one = place / "one.jsonl"
    one.write_text(bodies.read_text(encoding="utf-8").splitlines()[0] + "\n", encoding="utf-8")
    calibration(server, one)


def one_body(place: Path) -> Path:
    return place / "one.jsonl"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sessions", default="2,16,64,128")
    asked = parser.parse_args()
    sizes = [int(each) for each in asked.sessions.split(",")]
    with TemporaryDirectory() as place:
        figures = measured(Path(place), sizes, asked.rounds)
    told = {
        "date": f"{datetime.now(UTC):%Y-%m-%d %H:%M}",
        "load": os.getloadavg()[0],
        "codex_0.171.0": CODEX | {"mb": CODEX_MB, "date": "2026-11-29"},
        "figures": figures,
    }
    if asked.json:
        print(json.dumps(told, indent=1))
        return
    print(f"{told['date']}, load {told['load']:.1f}, {asked.rounds} rounds; seconds")
    for each in figures:
        codex = CODEX["fixed_s"] + CODEX["a_session_s"] * each["sessions"]
        print(
            f"{each['case']:20} wall {each['wall_s']:.2f} ({each['ratio']} x calibration),"
            f" phase 1 {each['phase1_s']} ({each['phase1_ratio']} x), processor"
            f" {each['cpu_s']:.2f}, {each['mb']:.0f} MB; calibration"
            f" {each['calibration_s']:.2f}; Codex {codex:.2f} s, {CODEX_MB} MB"
        )


if __name__ == "__main__":
    main()
