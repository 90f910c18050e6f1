"""README is held against the program: its commands, settings, snippets and CI."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec import to_builtins
from threadbook.adapters.cli import COMMANDS, threadbook
from threadbook.adapters.settings import CLAMPS, REASONS, Settings

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_table_of_commands_is_the_programs():
    rows = re.findall(r"^\| `threadbook (\w+)` \| (.*) \|$", README, re.M)

    assert rows == [(name, line) for name, (_, line) in COMMANDS.items()]


def test_every_command_has_help_that_begins_as_its_line_in_the_list():
    context = threadbook.make_context("threadbook", [], resilient_parsing=True)
    for name in threadbook.list_commands(context):
        command = threadbook.get_command(context, name)

        assert command.help, name
        assert all(option.help for option in command.params if option.param_type_name == "option")


def test_every_command_that_readme_tells_to_type_exists():
    told = re.findall(r"`(?:\.venv/bin/)?threadbook ([a-z]+)[^`]*`", README)

    assert set(told) == set(COMMANDS)


def test_the_table_of_settings_is_the_programs():
    rows = re.findall(r"^\| `(\w+)` \| `(.*)` \| (.*) \|$", README, re.M)

    defaults = to_builtins(Settings())
    assert rows == [(key, json.dumps(defaults[key]), reason) for key, reason in REASONS.items()]
    assert REASONS.keys() == defaults.keys()
    assert all(f"{low}-{high}" in REASONS[key] for key, (low, high) in CLAMPS.items())


SNIPPETS = re.findall(r"```python\n(.*?)```", README, re.S)
PRINTED = (
    r"6 sessions taught something; \S+ is the newest\n"
    r"Done. 1 session of project:gallery-[0-9a-f]{8} was of use\n"
    r"in: the memory folder was made from it\n"
    r"8 threads were known then\n",
    r"uses: \{'[0-9a-f-]{36}': 2, '[0-9a-f-]{36}': 1\}\n",
)


@pytest.mark.parametrize(("snippet", "printed"), list(zip(SNIPPETS, PRINTED, strict=True)))
def test_a_snippet_runs_as_it_stands(snippet, printed):
    ran = subprocess.run([sys.executable, "-c", snippet], capture_output=True, text=True)

    assert (ran.returncode, ran.stderr) == (0, "")
    assert re.fullmatch(printed, ran.stdout)


def test_ci_runs_the_test_command_of_readme_and_nothing_else():
    command = re.search(r"<!-- test command -->\n```\n(.*?)```\n<!-- end -->", README, re.S)[1]
    ci = (ROOT / ".ci" / "run").read_text(encoding="utf-8")

    assert "'/<!-- test command -->/,/<!-- end -->/p' README.md" in ci
    assert "pytest" not in ci
    installed = [word for word in shlex.split(command) if word.startswith(".venv/bin/")]
    assert installed[0] == ".venv/bin/pip"


def test_the_first_command_uses_what_it_installs():
    first = re.search(r"```\n(python3 -m venv .*?)\n```", README)[1]

    words = shlex.split(first)
    assert words[words.index(".venv/bin/threadbook") :] == [
        ".venv/bin/threadbook",
        "run",
        "--sample",
    ]
    assert ".venv/bin/pip" in words
