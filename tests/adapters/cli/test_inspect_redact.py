"""`inspect redact`: standard input without its secrets, and every other byte as it was."""

import json
import os
import subprocess
import sys

import pytest
from threadbook.domain.redaction import MARKER

from tests.application.homes import ROOT
from tests.fixtures.secrets import further_shapes

KEY = "sk-proj-" + further_shapes.some("filter", 40)


def redacted(given: bytes, *options: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "threadbook.adapters.cli", "inspect", "redact", *options],
        input=given,
        capture_output=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (b"", b""),
        (b"nothing to hide\r\n\x1b[31mred\x1b[0m no end", None),
        (
            b"\xff\xfe key " + KEY.encode() + b"\r\n\xc3",
            f"\ufffd\ufffd key {MARKER}\r\n\ufffd".encode(),
        ),
        (f"\ufeffschlüssel: {KEY}".encode(), f"\ufeffschlüssel: {MARKER}".encode()),
    ],
    ids=["nothing", "no secret", "no utf-8", "a byte order mark"],
)
def test_a_program_gets_its_input_without_the_secrets_and_nothing_else(given, told):
    done = redacted(given)

    assert done.returncode == 0
    assert done.stdout == (given if told is None else told)
    assert done.stderr == b""


def test_a_large_input_is_filtered_to_its_end():
    lines = [f"{n} ran the tests, {'all passed' if n % 1000 else KEY}\n" for n in range(60_000)]
    given = "".join(lines)

    done = redacted(given.encode())

    assert done.returncode == 0
    assert done.stdout.decode() == given.replace(KEY, MARKER)


def test_as_json_it_says_how_many_were_hidden():
    done = redacted(f"a {KEY} b {KEY[:-1]}9 \x1b[0m".encode(), "--json")

    told = json.loads(done.stdout)
    assert told == {
        "text": f"a {MARKER} b {MARKER} \x1b[0m",
        "secrets_hidden": 2,
    }
    assert b"\x1b" not in done.stdout
