"""`threadbook install` and `uninstall` as a person types them, and what an agent then starts."""

import fcntl
import json
import os
import re
import shlex
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest
from threadbook.adapters.cli.hook import BUDGET_MS, ROOM
from threadbook.adapters.settings import Settings

from tests.application.homes import ROOT, Session

NOBODY = "neither Codex nor Claude Code was used here yet"


class User:
    """A user with both agents, in a folder; commands see nothing of whoever runs the tests."""

    def __init__(self, folder):
        self.folder = folder
        self.project = folder / "fern"
        for name in (".codex/sessions", ".claude", "fern/.git"):
            (folder / name).mkdir(parents=True)
        self.environment = {
            "HOME": str(folder),
            "PATH": os.environ["PATH"],
            "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]),
        }

    def threadbook(self, *args, code=0, **variables):
        done = subprocess.run(
            [sys.executable, "-m", "threadbook.adapters.cli", *map(str, args)],
            env=self.environment | variables,
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == code, done
        assert "Traceback" not in done.stderr
        return done.stdout if code == 0 else done.stderr

    def files(self):
        return {
            str(path.relative_to(self.folder)): path.read_bytes()
            for path in self.folder.rglob("*")
            if path.is_file() and ".local" not in path.parts
        }

    def hook(self, event, agent):
        """The command that an agent has in its settings for this end of a session."""
        file = {"codex": ".codex/hooks.json", "claude": ".claude/settings.json"}[agent]
        settings = json.loads((self.folder / file).read_bytes())
        [group] = settings["hooks"][event]
        [handler] = group["hooks"]
        return handler["command"]

    def starts(self, event, agent, said):
        """An agent starts its hook, through a shell and in the project's folder."""
        command = self.hook(event, agent).replace(" hook ", " hook --within 30000 ")
        return subprocess.run(
            ["/bin/sh", "-c", command],
            env=self.environment,
            cwd=self.project,
            input=json.dumps(said),
            capture_output=True,
            text=True,
            timeout=60,
        )


@pytest.fixture
def user(tmp_path):
    return User(tmp_path / "a user")


def test_it_prints_every_file_that_it_changed(user):
    told = user.threadbook("install")

    assert user.files().keys() == {
        ".codex/hooks.json", ".codex/config.toml", ".claude/settings.json", ".claude.json",
    }  # fmt: skip
    for name in user.files():
        assert f"{user.folder / name} made" in told
    assert "Start Codex anew" in told


def test_one_agent_may_be_named(user):
    user.threadbook("install", "claude")

    assert user.files().keys() == {".claude/settings.json", ".claude.json"}
    assert "nothing of ours" in user.threadbook("uninstall", "codex")


def test_programs_are_told_the_same(user):
    first = json.loads(user.threadbook("install", "--json"))
    again = json.loads(user.threadbook("--json", "install"))

    assert [each["agent"] for each in first["agents"]] == ["codex", "claude"]
    files = [file for each in first["agents"] for file in each["files"]]
    assert {file["path"] for file in files} == {str(user.folder / name) for name in user.files()}
    assert {file["done"] for file in files} == {"created"}
    assert {f["done"] for each in again["agents"] for f in each["files"]} == {"unchanged"}


def test_a_dry_run_shows_what_would_be_done(user):
    (user.folder / ".claude" / "settings.json").write_text('{\n  "model": "opus"\n}\n')
    before = user.files()

    told = user.threadbook("install", "--dry-run")

    assert user.files() == before
    assert f"{user.folder}/.claude/settings.json would be changed" in told
    assert '+    "SessionStart": [' in told
    assert not (user.folder / ".local").exists()


def test_uninstall_says_what_became_of_each_file(user):
    (user.folder / ".claude" / "settings.json").write_text('{"model": "opus"}')
    before = user.files()
    user.threadbook("install")

    told = user.threadbook("uninstall")

    assert user.files() == before
    assert "settings.json is as it was before" in told
    assert "config.toml removed, it held nothing else" in told
    assert "nothing of ours is there" in user.threadbook("uninstall")


def test_where_no_agent_was_used_there_is_nothing_to_do(tmp_path):
    user = User(tmp_path / "user")
    for name in (".codex", ".claude"):
        os.rename(user.folder / name, user.folder / f"{name}-not")

    assert NOBODY in user.threadbook("install")
    assert NOBODY in user.threadbook("uninstall")
    assert "start it once, or set CODEX_HOME" in user.threadbook("install", "codex", code=1)
    user.threadbook("install", "emacs", code=2)


def test_a_file_that_cannot_be_edited_is_told_in_one_line(user):
    path = user.folder / ".claude" / "settings.json"
    path.write_text("{\n  // mine\n}\n")
    before = user.files()

    told = user.threadbook("install", code=1)

    assert told.startswith(f"threadbook: {path} cannot be edited: line 2, column 3")
    assert told.count("\n") == 1
    assert user.files() == before


def test_settings_that_every_hook_would_stumble_over_are_refused(user):
    told = user.threadbook("install", "--config", "nowhere.toml", code=2)

    assert "no such settings file" in told
    assert user.files() == {}


def test_hooks_of_a_shared_memory_get_the_time_that_a_server_takes(user):
    (user.folder / "settings.toml").write_text('database = "postgresql://ann@nowhere/team"\n')

    user.threadbook("install", "--config", "settings.toml")

    for agent in ("codex", "claude"):
        for event in ("SessionStart", "SessionEnd"):
            assert shlex.split(user.hook(event, agent))[-2:] == ["--within", "1000"]


def test_the_agents_variables_are_followed_and_their_usual_folders_left(user, tmp_path):
    for name in ("x", "y"):
        (tmp_path / name).mkdir()
    elsewhere = {"CODEX_HOME": str(tmp_path / "x"), "CLAUDE_CONFIG_DIR": str(tmp_path / "y")}

    user.threadbook("install", **elsewhere)

    assert user.files() == {}
    assert {path.name for name in "xy" for path in (tmp_path / name).iterdir()} == {
        "hooks.json", "config.toml", "settings.json", ".claude.json",
    }  # fmt: skip
    user.threadbook("uninstall", **elsewhere)
    assert not list((tmp_path / "x").iterdir())
    assert not list((tmp_path / "y").iterdir())


def test_the_home_and_the_settings_that_were_given_are_carried_along(user):
    (user.folder / "settings.toml").write_text("")

    user.threadbook("install", "--home", "a memory", "--config", "settings.toml")

    given = ["--home", f"{user.folder}/a memory", "--config", f"{user.folder}/settings.toml"]
    assert shlex.split(user.hook("SessionStart", "claude"))[-6:] == [
        *given,
        "hook",
        "session-start",
    ]
    config = tomllib.loads((user.folder / ".codex" / "config.toml").read_text())
    assert config["mcp_servers"]["threadbook"]["args"][-5:] == [*given, "mcp"]
    assert (user.folder / "a memory" / "install" / "codex.json").exists()


def test_a_home_in_the_environment_is_carried_along(user):
    user.threadbook("install", "claude", THREADBOOK_HOME=str(user.folder / "memory"))

    assert f"--home '{user.folder}/memory'" in user.hook("SessionEnd", "claude")


def test_the_program_is_named_by_its_whole_path(user):
    user.threadbook("install")

    for agent in ("codex", "claude"):
        words = shlex.split(user.hook("SessionEnd", agent))
        assert Path(words[0]).is_absolute()
        assert os.access(words[0], os.X_OK)


# From installing to a session that knows what the last one learned.


@pytest.mark.parametrize("agent", ["codex", "claude"])
def test_the_next_session_knows_what_the_last_one_learned(user, agent):
    wish = "from now on always run make lint before you call something done"
    now = int(time.time())
    past = Session(number=1, cwd=str(user.project), says=(wish,), ended_at=now - 7 * 3600)
    last = Session(number=2, cwd=str(user.project), says=("hello",), ended_at=now)
    for each in (past, last):
        (user.folder / ".codex/sessions" / f"rollout-{each.id}.jsonl").write_text(each.text())
    user.threadbook("install")

    end = {
        "session_id": last.id,
        "transcript_path": str(user.folder / ".codex/sessions" / f"rollout-{last.id}.jsonl"),
        "cwd": str(user.project),
        "hook_event_name": "SessionEnd",
        "reason": "other",
    }
    over = user.starts("SessionEnd", agent, end)
    home = user.folder / ".local/share/threadbook"
    with open(home / "hooks.lock", "rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
    start = {"session_id": "s3", "cwd": str(user.project), "hook_event_name": "SessionStart",
             "source": "startup", "transcript_path": None}  # fmt: skip
    begun = user.starts("SessionStart", agent, start)
    elsewhere = user.starts("SessionStart", agent, start | {"cwd": "/"})

    assert (over.returncode, over.stdout, over.stderr) == (0, "", "")
    answer = json.loads(begun.stdout)["hookSpecificOutput"]
    assert answer.keys() == {"hookEventName", "additionalContext"}
    assert answer["hookEventName"] == "SessionStart"
    assert "make lint" in answer["additionalContext"]
    assert "make lint" not in elsewhere.stdout
    assert (begun.returncode, begun.stderr) == (0, "")
    assert not (home / "hooks.log").read_text()


def test_who_wants_no_memories_is_given_none(user):
    user.threadbook("install", "claude")
    user.environment["THREADBOOK_USE_MEMORIES"] = "false"

    begun = user.starts("SessionStart", "claude", {"cwd": str(user.project)})

    assert (begun.returncode, begun.stdout, begun.stderr) == (0, "", "")


# What README says of it.

README = (ROOT / "README.md").read_text(encoding="utf-8")
WALK = README.split("## Install\n")[1].split("\n## ")[0]


def test_the_commands_of_readmes_walk_are_those_that_are_tried_here(user):
    commands = WALK.split("```\n")[1].splitlines()

    assert commands == [".venv/bin/threadbook install", ".venv/bin/threadbook run"]
    for command in commands:
        assert user.threadbook(*command.split()[1:])


def test_readmes_numbers_are_the_programs():
    numbers = set(re.findall(r"(\d[\d,]*) (ms|characters)", WALK))

    assert numbers == {(str(BUDGET_MS), "ms"), (f"{ROOM:,}", "characters")}
    assert "six hours (`min_rollout_idle_hours`)" in WALK
    assert Settings().min_rollout_idle_hours == 6
    assert set(re.findall(r"`(use_memories|generate_memories) = false`", WALK)) == {
        "use_memories", "generate_memories",
    }  # fmt: skip
