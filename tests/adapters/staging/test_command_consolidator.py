"""A command of the user's consolidates: what it is told, what it may see, what is read back."""

import os
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest
from threadbook.adapters.staging.command import Bounds
from threadbook.adapters.staging.consolidator import CommandConsolidator
from threadbook.adapters.staging.folder import sweep
from threadbook.application.ports import ConsolidationFailed, Task
from threadbook.domain.events import Tokens

STAGED = {
    "MEMORY.md": "# Task Group: pottery\n",
    "raw_memories.md": "# Raw Memories\n",
    "extensions/ad_hoc/instructions.md": "Notes are data.\n",
}


def task(**more) -> Task:
    given = {"memory_version": "v1", "scope": "global", "outputs": (), "staged": STAGED}
    return Task(**(given | more))


@pytest.fixture
def home(tmp_path):
    published = tmp_path / "home" / "memories" / "v1" / "global" / "MEMORY.md"
    published.parent.mkdir(parents=True)
    published.write_text("published\n")
    yield tmp_path / "home"
    left = [path for path in (tmp_path / "home").rglob("*") if not path.is_dir()]
    assert left == [published]
    assert published.read_text() == "published\n"


def asked(home: Path, code: str, **more) -> CommandConsolidator:
    return CommandConsolidator(
        [sys.executable, "-c", code], home=home, owner=lambda: nullcontext("w1"), **more
    )


def failed(consolidator: CommandConsolidator, given: Task | None = None) -> ConsolidationFailed:
    with pytest.raises(ConsolidationFailed) as raised:
        consolidator.propose(given or task())
    return raised.value


def test_it_works_on_what_is_staged_and_what_it_leaves_is_the_proposal(home):
    code = """
import os, pathlib
memory = pathlib.Path("MEMORY.md")
memory.write_text(memory.read_text() + "- more\\n")
pathlib.Path("skills/a").mkdir(parents=True)
pathlib.Path("skills/a/SKILL.md").write_text("a skill\\n")
pathlib.Path("raw_memories.md").unlink()
pathlib.Path(".git").mkdir()
pathlib.Path(".git/config").write_text("[core]")
os.symlink("/etc/passwd", "passwd.md")
pathlib.Path("odd.md").write_bytes(b"\\xff")
"""
    consolidator = asked(home, code)

    proposal = consolidator.propose(task())

    assert proposal.files == {
        "MEMORY.md": "# Task Group: pottery\n- more\n",
        "extensions/ad_hoc/instructions.md": "Notes are data.\n",
        "skills/a/SKILL.md": "a skill\n",
    }
    assert sorted(proposal.unusable) == ["odd.md", "passwd.md"]
    assert proposal.tokens == Tokens(model=consolidator.name, calls=0)
    assert proposal.prompt_digest is not None


def test_it_is_told_everything_on_its_input(home):
    code = "import sys; open('told.md', 'w').write(sys.stdin.read())"
    refused = ("MEMORY.md:3: no source",)

    told = asked(home, code).propose(task(edited=("MEMORY.md",), refused=refused)).files["told.md"]

    assert told.startswith("# Keeping the memory folder")
    assert "Mode: init." in told
    assert "- MEMORY.md\n" in told
    assert "- extensions/ad_hoc/instructions.md\n" in told
    assert "- MEMORY.md:3: no source\n" in told
    assert "working directory" in told
    assert "30 minutes" in told


def test_it_is_given_the_variables_that_are_named_and_no_others(home, monkeypatch):
    monkeypatch.setenv("POTTERY_KEY", "k")
    monkeypatch.setenv("OTHER_KEY", "o")
    code = "import os; open('seen.md', 'w').write('\\n'.join(os.environ))"

    seen = asked(home, code, variables=["POTTERY_KEY"]).propose(task()).files["seen.md"].split()

    assert {"POTTERY_KEY", "THREADBOOK_INSIDE"} <= set(seen)
    assert "OTHER_KEY" not in seen


@pytest.mark.parametrize(
    ("argv", "name"),
    [
        (["/usr/local/bin/codex", "exec", "--api-key", "sk-1"], "command:codex"),
        (["claude", "-p"], "command:claude"),
    ],
)
def test_its_name_is_the_commands_and_nothing_of_its_arguments(home, argv, name):
    consolidator = CommandConsolidator(argv, home=home, owner=lambda: nullcontext("w1"))

    assert (consolidator.name, consolidator.kind) == (name, "agent")


@pytest.mark.parametrize(
    ("code", "bounds", "reason"),
    [
        ("print('MEMORY'); raise SystemExit(3)", Bounds(), "failed"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", Bounds(), "killed"),
        ("import time; time.sleep(60)", Bounds(wall_s=0.3), "timeout"),
        ("open('big', 'wb').write(bytes(9999))", Bounds(folder_bytes=999), "too_much"),
    ],
)
def test_one_that_does_not_end_well_proposes_nothing_and_says_why_in_a_code(
    home, code, bounds, reason
):
    error = failed(asked(home, code, bounds=bounds))

    assert error.reason == f"failed_agent:command_{reason}"
    assert error.stops is False
    assert error.tokens.calls == 0


def test_what_it_said_last_and_what_to_do_are_the_cause_for_a_person_to_read(home):
    error = failed(asked(home, "raise SystemExit('no login; run login first')"))

    assert "no login; run login first" in str(error.__cause__)
    assert "run the command by hand" in str(error.__cause__)


def test_one_that_is_not_there_stops_the_run_and_says_what_to_do(home):
    consolidator = CommandConsolidator(
        ["no-such-command-here"], home=home, owner=lambda: nullcontext("w1")
    )

    error = failed(consolidator)

    assert (error.reason, error.stops) == ("failed_spawn_agent", True)
    assert "no command no-such-command-here on the PATH" in str(error.__cause__)


@pytest.mark.parametrize(
    "code",
    [
        "import os, shutil; shutil.rmtree(os.getcwd())",
        "import os; here = os.getcwd(); os.rename(here, here + '.x'); os.symlink('/etc', here)",
        "import os; here = os.getcwd(); os.rename(here, here + '.x'); open(here, 'w').close()",
    ],
    ids=["removed", "a link", "a file"],
)
def test_one_that_takes_its_folder_away_has_failed_and_ends_no_run(home, code):
    error = failed(asked(home, code))
    sweep(home, lambda owner: False)  # As the next run does.

    assert (error.reason, error.stops) == ("failed_agent:folder_gone", False)
    assert error.tokens.model.startswith("command:")
    assert "cannot be opened" in str(error.__cause__)


def test_it_is_ended_with_the_lease(home, tmp_path):
    began = tmp_path / "began"
    code = f"open({str(began)!r}, 'w').close(); import time; time.sleep(60)"

    error = failed(asked(home, code), task(alive=lambda: not began.exists()))

    assert error.reason == "failed_agent:command_cancelled"
    assert os.path.exists(began)
