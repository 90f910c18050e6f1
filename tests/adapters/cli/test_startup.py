"""What a command loads: the quick ones are quick because they load nothing heavy."""

import os
import subprocess
import sys

import pytest

from tests.adapters.cli.commands import A, B
from tests.application.homes import FERN, ROOT

HEAVY = {
    "openai",
    "pydantic",
    "psycopg",
    "dulwich",
    "mcp",
    "eventsourcing",
    "rich",
    "asyncio",
    "zstandard",
    "opentelemetry",
}
SCRIPT = """
import sys
from threadbook.adapters.cli import ended
sys.argv = ["threadbook", *sys.argv[1:]]
code = ended()
print("loaded", *sorted({name.partition(".")[0] for name in sys.modules}), file=sys.stderr)
sys.exit(code)
"""


def loaded(commands, *args):
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, *commands.given(*args)],
        stdin=subprocess.DEVNULL,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return set(done.stderr.split())


@pytest.mark.parametrize(
    "args",
    [
        ("status",),
        ("status", "--json"),
        ("threads",),
        ("log",),
        ("context", "--cwd", FERN, "--session", "s"),
        ("context", "--cwd", "/"),
        ("list", "--cwd", FERN),
        ("read", "--cwd", FERN, "MEMORY.md", "--session", "s"),
        ("search", "--cwd", FERN, "make", "check"),
        ("mcp", "--help"),
        ("explain", A.id),
        ("mode", B.id, "disabled"),
        ("pollute", B.id),
        ("cite", "--session", "s", "--turn", "1"),
        ("--help",),
        ("run", "--help"),
    ],
    ids=" ".join,
)
def test_nothing_heavy_is_loaded(commands, args):
    assert loaded(commands, *args) & HEAVY == set()


def test_a_quiet_run_loads_no_model_and_no_provider(commands):
    found = loaded(commands, "run", "--sessions", str(commands.home.sessions))

    assert found & {"openai", "pydantic", "psycopg", "mcp", "eventsourcing", "rich"} == set()


def test_the_public_name_loads_nothing_before_it_is_used():
    code = (
        "import sys, threadbook; "
        "print(*[m for m in sys.modules if m.startswith('threadbook')], 'msgspec' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])},
        capture_output=True,
        text=True,
    )

    assert done.stdout == "threadbook False\n"


def test_a_program_that_is_no_program_of_ours_ends_with_misuse(commands):
    done = commands.alone("nonsense")

    assert done.code == 2
    assert "Traceback" not in done.err
