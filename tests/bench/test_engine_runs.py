"""The bench of the engine runs, whatever it says: times are for people, and fail no test."""

import json
import os
import subprocess
import sys
from pathlib import Path

ENGINE = Path(__file__).with_name("engine.py")
ASKED_FOR = {
    "append_1",
    "append_100_chain",
    "append_100",
    "append_100_vs_library",
    "replay",
    "replay_vs_library",
    "rebuild",
    "rebuild_vs_library",
    "selection_ms",
    "selection_stale_ms",
    "load_1000_vs_library",
    "baseline_vs_git",
    "claims",
    "cold_start_ms",
    "rss_mb",
    "verify_events_per_s",
    "verify",
    "growth_open",
    "growth_claim",
    "growth_cite",
    "growth_select",
    "growth_explain",
    "growth_status",
    "growth_at",
}
MEMORY_DISK = "/dev/shm" if os.path.isdir("/dev/shm") else None


def test_every_figure_is_made_and_nothing_is_left_behind(tmp_path):
    folder = Path(MEMORY_DISK or tmp_path) / f"bench-{os.getpid()}"
    folder.mkdir()
    command = [sys.executable, str(ENGINE), "--events", "500", "--rounds", "1", "--json"]

    ran = subprocess.run(
        command, env={**os.environ, "TMPDIR": str(folder)}, capture_output=True, text=True
    )
    left = list(folder.iterdir())
    folder.rmdir()

    assert ran.returncode == 0, ran.stderr
    figures = json.loads(ran.stdout)["figures"]
    assert figures.keys() >= ASKED_FOR
    assert figures["claims"]["more"]["violations"] == figures["claims"]["more"]["errors"] == 0
    assert left == []
