"""A command of the user's as the consolidator: real programs, good ones and bad ones."""

import json
import os
import signal
import sys
import time
from pathlib import Path

import pytest
from threadbook.adapters.actor import INSIDE_A_RUN
from threadbook.adapters.staging import command
from threadbook.adapters.staging.command import Bounds, Ended, environment, run

PROMPT = "Fold the sessions into MEMORY.md.\n" * 5_000  # More than a pipe holds.


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "staging"
    made.mkdir(mode=0o700)
    return made


def ran(folder, code, **more) -> Ended:
    more.setdefault("environment", environment(os.environ))
    return run([sys.executable, "-c", code], folder, more.pop("prompt", PROMPT), **more)


def is_alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    try:
        # One that has ended and that nobody has waited for is no longer at work.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return Path("/proc/self").exists() is False  # Gone, or a system that does not say.


def gone(pid):
    until = time.monotonic() + 10
    while is_alive(pid):
        assert time.monotonic() < until, f"process {pid} is still at work"
        time.sleep(0.01)
    return True


def test_a_good_command_reads_the_prompt_and_works_in_the_folder(folder):
    code = """
import os, sys
text = sys.stdin.read()
open("MEMORY.md", "w").write(f"{len(text)} {os.getcwd()}")
print("thinking about your secrets")
"""

    ended = ran(folder, code)

    assert ended.is_done
    assert (ended.reason, ended.status, ended.tail) == ("done", 0, "")
    assert (folder / "MEMORY.md").read_text() == f"{len(PROMPT)} {folder}"
    assert (folder / "MEMORY.md").stat().st_mode & 0o777 == 0o600
    assert ended.output_bytes == len("thinking about your secrets\n")


def test_its_environment_is_what_it_needs_what_was_named_and_the_mark_of_a_run(folder):
    given = {
        "PATH": f"relative:{os.environ['PATH']}:",
        "HOME": "/home/ann",
        "LANG": "C.UTF-8",
        "OPENAI_API_KEY": "sk-named",
        "AWS_SECRET_ACCESS_KEY": "not named",
        "PYTHONPATH": "/not/named",
        command.INSIDE: "0",
    }
    code = "import json, os; json.dump(dict(os.environ), open('environment.json', 'w'))"

    ended = ran(folder, code, environment=environment(given, also=["OPENAI_API_KEY", "NOT_SET"]))

    assert ended.is_done
    seen = json.loads((folder / "environment.json").read_text())
    seen.pop("LC_CTYPE", None)  # Python sets it for itself where there is no locale.
    assert seen == {
        "PATH": os.environ["PATH"],
        "HOME": "/home/ann",
        "LANG": "C.UTF-8",
        "OPENAI_API_KEY": "sk-named",
        "THREADBOOK_INSIDE": "1",
    }
    assert command.INSIDE == INSIDE_A_RUN


def test_one_that_fails_shows_its_last_lines_without_secrets(folder):
    code = """
import sys
for n in range(100_000): print("line", n)
print("x" * 1000, flush=True)
print("token ghp_0123456789abcdefghijABCDEFGHIJ012345", file=sys.stderr)
sys.exit(7)
"""

    ended = ran(folder, code)

    assert (ended.reason, ended.status) == ("failed", 7)
    lines = ended.tail.split("\n")
    assert len(lines) == command.TAIL_LINES
    assert "line 99999" in lines
    assert "ghp_" not in ended.tail
    assert "[REDACTED_SECRET]" in lines[-1]
    assert max(map(len, lines)) <= command.LINE_CHARS_MAX
    assert "by hand" in ended.advice


def test_what_stands_before_the_kept_end_is_not_shown_in_part(folder):
    code = (
        f"print('ghp_0123456789abcdefghijABCDEFGHIJ012345' * {command.TAIL_BYTES // 20}); exit(1)"
    )

    ended = ran(folder, code)

    assert ended.tail == ""


def test_one_that_hangs_is_ended_with_all_it_started_and_soon(folder):
    code = """
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
open("pids", "w").write(f"{os.getpid()} {child.pid}")
time.sleep(600)
"""

    ended = ran(folder, code, bounds=Bounds(wall_s=1.0))

    assert (ended.reason, ended.status) == ("timeout", None)
    assert ended.seconds < 1.0 + command.GRACE_S + 5
    assert "took too long" in ended.advice
    assert all(gone(int(pid)) for pid in (folder / "pids").read_text().split())


def test_a_lost_lease_ends_it_at_once(folder):
    code = "import os, time; open('pid', 'w').write(str(os.getpid())); time.sleep(600)"

    ended = ran(folder, code, cancelled=lambda: bool((folder / "pid").exists()))

    assert ended.reason == "cancelled"
    assert ended.seconds < 10


def test_a_grandchild_that_stays_is_ended_and_its_hold_on_the_output_is_not_waited_for(folder):
    code = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
open("pid", "w").write(str(child.pid))
"""

    ended = ran(folder, code)

    assert ended.is_done
    assert ended.seconds < 20
    assert gone(int((folder / "pid").read_text()))


def test_one_that_leaves_the_group_is_not_waited_for(folder):
    code = """
import subprocess, sys
child = subprocess.Popen(
    [sys.executable, "-c", "import time; time.sleep(30)"], start_new_session=True
)
open("pid", "w").write(str(child.pid))
"""

    ended = ran(folder, code)

    assert ended.is_done
    assert ended.seconds < 20
    os.kill(int((folder / "pid").read_text()), signal.SIGKILL)  # Ours to end: this test's own.


@pytest.mark.parametrize(
    ("code", "bounds"),
    [
        # As a file with a hole, which fills no real disk in a test.
        ("open('big', 'w').truncate(1 << 30); import time; time.sleep(600)", Bounds()),
        (
            "for n in range(300): open(f'{n}', 'w')\nimport time; time.sleep(600)",
            Bounds(folder_files=200),
        ),
        ("open('big', 'w').truncate(1 << 30)", Bounds()),
    ],
)
def test_one_that_fills_the_folder_is_ended(folder, code, bounds):
    ended = ran(folder, code, bounds=bounds)

    assert ended.reason == "too_much"
    assert ended.seconds < 20


def test_one_that_reads_nothing_and_closes_everything_is_done(folder):
    ended = ran(folder, "import os; [os.close(n) for n in range(3)]")

    assert (ended.reason, ended.status) == ("done", 0)


def test_one_that_a_signal_ended_is_told_as_such(folder):
    ended = ran(folder, "import os; os.kill(os.getpid(), 11)")

    assert (ended.reason, ended.status) == ("killed", -11)


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        ([], "no command is given"),
        ([""], "no command is given"),
        (["no-such-command-anywhere"], "install it, or give its whole path"),
        (["./run.sh"], "relative"),
        (["/etc/passwd"], "cannot be started"),
        (["/"], "cannot be started"),
        ([sys.executable, "a\0b"], "cannot be started"),
        ([sys.executable, "x" * 10_000_000], "cannot be started"),
    ],
)
def test_what_cannot_be_started_is_said_and_raises_nothing(folder, argv, said):
    ended = run(argv, folder, PROMPT, environment=environment(os.environ))

    assert (ended.reason, ended.status) == ("not_started", None)
    assert said in ended.advice


def test_a_folder_that_is_gone_is_said(folder):
    folder.rmdir()

    ended = ran(folder, "pass")

    assert ended.reason == "not_started"
    assert "is not there; run it again" in ended.advice


def test_whatever_stops_us_stops_it(folder):
    code = "import os, time; open('pid', 'w').write(str(os.getpid())); time.sleep(600)"

    def stop():
        if (folder / "pid").exists() and (folder / "pid").read_text():
            raise KeyboardInterrupt
        return False

    with pytest.raises(KeyboardInterrupt):
        ran(folder, code, cancelled=stop)

    assert gone(int((folder / "pid").read_text()))
