"""Reading beside a program that is still writing."""

import re
import subprocess
import sys
from itertools import pairwise

import pytest
from threadbook.adapters.rollouts import RolloutError, survey

from .support import NOW_MS, OPEN

NUMBER = re.compile(r"LIVE-(\d+) 🌿 고사리")


def play(path, *settings):
    command = [sys.executable, str(OPEN / "concurrent_writer.py"), "--out", str(path)]
    return subprocess.Popen([*command, *settings], stdout=subprocess.DEVNULL)


def test_every_record_of_a_live_session_is_seen_once_and_in_order(tmp_path):
    path = tmp_path / "live.jsonl"
    writer = play(path, "--records", "15", "--delay", "0.06")
    readings = []

    while writer.poll() is None or not readings:
        try:
            readings.append(survey(path, now_ms=NOW_MS))
        except RolloutError:  # Not even its first record is there yet.
            continue
    readings.append(survey(path, now_ms=NOW_MS))

    tails = 0
    for earlier, later in pairwise(readings):
        assert later.human_messages[: len(earlier.human_messages)] == earlier.human_messages
        assert later.resume_offset >= earlier.resume_offset
        tails += earlier.unfinished_tail
    for read in readings:
        numbers = [int(NUMBER.fullmatch(text)[1]) for text in read.human_messages]
        assert numbers == list(range(1, len(numbers) + 1))
        assert read.bad_lines == ()
    assert tails > 0
    assert len(readings[-1].human_messages) == 15


@pytest.mark.parametrize("killed_at", [1, 4])
def test_a_writer_killed_inside_a_record_leaves_a_tail_behind_the_last_whole_one(
    tmp_path, killed_at
):
    path = tmp_path / "killed.jsonl"

    play(path, "--records", "6", "--delay", "0.003", "--kill-at", str(killed_at)).wait()
    read = survey(path, now_ms=NOW_MS)

    assert len(read.human_messages) == killed_at - 1
    assert (read.unfinished_tail, read.bad_lines) == (True, ())
    assert read.resume_offset == path.read_bytes().rindex(b"\n") + 1
