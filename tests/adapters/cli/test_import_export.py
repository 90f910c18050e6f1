"""`export` and `import` at the command line: who is asked, what is told, which exit code."""

import json
import shutil

import pytest

from tests.adapters.cli.commands import A, B
from tests.application.homes import FIXTURES, MOSS, Session, content

CODEX = FIXTURES / "memory-base-v1"


@pytest.fixture
def two_projects(commands):
    commands.home.write(Session(number=7, cwd=MOSS))
    commands.home.run()
    return commands


def claude_home(folder, *, cwd="/srv/fern", key="-srv-fern"):
    place = folder / "projects" / key
    (place / "memory").mkdir(parents=True)
    (place / "memory" / "MEMORY.md").write_text("index\n")
    if cwd:
        (place / "s.jsonl").write_text(json.dumps({"cwd": cwd}) + "\n")
    return folder


def test_joining_needs_a_yes_where_nobody_can_be_asked(two_projects, tmp_path):
    refused = two_projects("export", "--merge", tmp_path / "out")
    done = two_projects("export", "--merge", "--yes", tmp_path / "out")

    assert refused.code == 1
    assert "--yes" in refused.line
    assert done.code == 0
    assert content(tmp_path / "out")["raw_memories.md"].count("## Thread ") == 3


def test_a_time_before_the_first_folder_is_told_as_that(two_projects, tmp_path):
    done = two_projects("export", "--at", "2", tmp_path / "out")

    assert done.code == 0
    assert "no memory folder was written by then; `threadbook log`" in done.out


def test_joining_names_the_scopes_at_a_terminal(two_projects, tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr("threadbook.adapters.cli.confirm.at_the_terminal", lambda: True)
    monkeypatch.setattr("click.confirm", lambda question: asked.append(question))

    told = two_projects("export", "--merge", tmp_path / "out")

    assert told.code == 1
    assert not (tmp_path / "out").exists()
    (question,) = asked
    assert two_projects.home.scope_of(A) in question
    assert two_projects.home.scope_of(Session(number=7)) in question


def test_one_project_alone_has_nothing_to_join_and_nobody_is_asked(commands, tmp_path):
    assert commands("export", "--merge", tmp_path / "out").code == 0


def test_export_of_one_scope(two_projects, tmp_path):
    scope = two_projects.home.scope_of(A)

    told = two_projects("export", "--scope", scope, tmp_path / "out", "--json")
    wrong = two_projects("export", "--scope", "project:none", tmp_path / "none")

    assert told.json["roots"] == {scope: str(tmp_path / "out")}
    assert wrong.code == 1
    assert scope in wrong.line


@pytest.mark.parametrize(
    "args",
    [
        ("export", "--merge", "--scope", "project:x", "OUT"),
        ("export", "--yes", "OUT"),
        ("export", "--merge", "--yes", "log.jsonl"),
        ("export", "--scope", "project:x", "log.jsonl"),
        ("import", "--dry-run", "log.jsonl"),
        ("import", "--project", "x", "log.jsonl"),
    ],
)
def test_options_that_do_not_go_together_are_misuse(commands, args, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    assert commands(*args).code == 2
    assert list(tmp_path.glob("*.jsonl")) == []


def test_a_codex_folder_into_a_new_home(commands, tmp_path):
    home = ("--home", tmp_path / "new", "--now", "2026-11-30T02:00:00Z")

    rehearsed = commands.bare("import", CODEX, "--dry-run", *home)
    assert not (tmp_path / "new").exists()
    done = commands.bare("import", CODEX, *home)
    ran = commands.bare("run", "--sessions", commands.home.sessions, *home)
    threads = commands.bare("threads", "--json", *home)
    again = commands.bare("import", CODEX, *home)

    assert (rehearsed.code, done.code, ran.code, again.code) == (0, 0, 0, 0), done.err
    assert "14 sessions would be imported" in rehearsed.out
    assert "14 sessions imported" in done.out
    assert (
        "left out: MEMORY.md, memory_summary.md: it is of 2 projects at once; --scope" in done.out
    )
    assert "threadbook run" in done.out
    assert sum(each["selected"] for each in threads.json) == 14
    assert "14 left: known as they are, or better" in again.out


def test_claude_s_projects_are_told_one_by_one(commands, tmp_path):
    claude = claude_home(tmp_path / "claude")
    claude_home(claude, cwd=None, key="-nowhere")

    first = commands("import", claude)
    second = commands("import", claude, "--project", "-srv-fern")
    failed = commands("import", claude, "--project", "-nowhere")
    shutil.rmtree(claude / "projects" / "-srv-fern")
    gone = commands("import", claude)

    assert first.code == second.code == gone.code == 0
    assert "-srv-fern (project:" in first.out
    assert "2 added" in first.out
    assert "-nowhere: not imported: " in first.out
    assert "unchanged" in second.out
    assert failed.code == 3
    assert "no reliable cwd" in failed.out
    assert "-srv-fern: 2 removed" in gone.out


def test_what_cannot_be_imported_says_what_is_expected(commands, tmp_path):
    (tmp_path / "empty").mkdir()

    for path in (tmp_path / "empty", tmp_path / "missing", CODEX / "MEMORY.md"):
        told = commands("import", path)
        assert told.code == 3
        assert "Codex memories folder" in told.line or "check the path" in told.line
    assert commands("import", CODEX, "--project", "x").code == 1
    assert commands("import", CODEX, "--scope", "nonsense").code == 1


def test_an_imported_name_cannot_command_the_terminal(commands, tmp_path):
    claude = claude_home(tmp_path / "claude")
    (claude / "projects" / "-srv-fern" / "memory" / "a\x1b[2Jb.md").write_text("x\n")

    told = commands("import", claude)

    assert told.code == 0
    assert "\x1b" not in told.out


def test_the_two_sessions_of_the_home_are_still_there(commands):
    commands("import", CODEX)

    assert {A.id, B.id} <= {each["thread_id"] for each in commands("threads", "--json").json}
