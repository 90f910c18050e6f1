"""What each command answers, to people and to programs, and with which exit code."""

import builtins
import json

import pytest
from threadbook.adapters.cli import COMMANDS
from threadbook.adapters.cli.run import SAMPLE_FOLDER, print_report
from threadbook.application.reports import RunReport
from threadbook.domain.events import MemoryModeSet, ThreadPolluted, ThreadRescoped

from tests.adapters.cli.commands import A, B
from tests.application.homes import FERN, FIXTURES, HOUR_S, ROLLOUTS, Session, content

NEEDED = {  # What each command needs to be asked at all; the files are made by `arguments`.
    "run": ("--sessions", "SESSIONS"),
    "status": (),
    "threads": (),
    "explain": (A.id,),
    "diff": ("1",),
    "log": (),
    "mode": (A.id, "disabled"),
    "pollute": (A.id,),
    "scope": (A.id,),
    "forget": ("thread", A.id),
    "export": ("NEW",),
    "verify": (),
    "replay": (),
    "inspect": ("rollout", "FILE"),
    "cite": (),
    "list": ("--cwd", FERN),
    "read": ("--cwd", FERN, "MEMORY.md"),
    "search": ("--cwd", FERN, "make", "check"),
    "mcp": (),
    "install": (),
    "uninstall": (),
    "hook": ("session-end",),
    "doctor": (),
    "reset": ("--yes",),
    "import": ("CODEX",),
    "context": ("--cwd", FERN),
    "note": ("--cwd", FERN, "the harbour master wants tea"),
}

# An agent reads their output; what they say and when stands in tests of their own.
SPEAK_TO_AGENTS = {"hook", "mcp"}
# It wants a reply, and has tests of its own.
ELSEWHERE = {"cite"}
ANSWER = [name for name in COMMANDS if name not in SPEAK_TO_AGENTS | ELSEWHERE]


def arguments(name, home):
    files = {
        "SESSIONS": home.sessions,
        "NEW": home.folder / "exported",
        "CODEX": FIXTURES / "memory-base-v1",
        "FILE": home.file(A),
    }
    return [name, *(files.get(each, each) for each in NEEDED[name])]


def test_every_command_is_tried_here():
    assert NEEDED.keys() == COMMANDS.keys()


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_that_says_what_it_does(commands, name):
    told = commands.bare(name, "--help")

    assert told.code == 0
    assert "Usage: threadbook" in told.out
    assert len(told.out.splitlines()) > 4
    assert commands.bare(name, "-h").out == told.out


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_all_names_each_with_its_line(commands, name):
    told = commands.bare("--help")

    assert told.code == 0
    assert name in told.out
    assert COMMANDS[name][1].split(".")[0][:40] in told.out


def test_no_commands_module_hides_a_builtin():
    modules = {module for module, _ in COMMANDS.values()}

    assert not modules & set(dir(builtins))


def test_version(commands):
    told = commands.bare("--version")

    assert told.code == 0
    assert told.out.startswith("threadbook ")


@pytest.mark.parametrize("name", ANSWER)
def test_every_command_answers_people(commands, name):
    told = commands(*arguments(name, commands.home))

    assert told.code == 0, told.err
    assert told.out.strip()
    assert not told.out.lstrip().startswith(("{", "["))


@pytest.mark.parametrize("name", ANSWER)
def test_every_command_answers_programs_with_nothing_but_json(commands, name):
    told = commands("--json", *arguments(name, commands.home))

    assert told.code == 0
    assert told.err == ""
    assert isinstance(told.json, dict | list)


@pytest.mark.parametrize("name", ANSWER)
def test_global_options_stand_before_or_after_the_command(commands, name):
    home = commands.home
    options = commands.given("--json")

    after = commands.bare(*arguments(name, home), *options)

    assert after.code == 0, after.err
    assert isinstance(after.json, dict | list)


def test_the_later_of_two_homes_counts(commands, tmp_path):
    told = commands.bare("--home", tmp_path / "nowhere", "threads", *commands.given("--json"))

    assert len(told.json) == 2


def test_run_says_what_it_did_and_that_there_is_nothing_to_do(commands):
    commands.home.write(Session(number=3, says=("from now on always write tests first",)))

    first = commands("run", "--sessions", commands.home.sessions)
    second = commands("run", "--sessions", commands.home.sessions)

    assert first.code == second.code == 0
    assert "1 taught something" in first.out
    assert str(commands.home.root()) in first.out
    assert "every memory folder is up to date" in second.out


def test_a_folder_that_waits_is_not_told_as_up_to_date(capsys, tmp_path):
    waits = RunReport(run_id="r", sessions=1, waiting={"phase1_running": 1})
    rests = RunReport(run_id="r", sessions=1, waiting={"idle": 1})

    print_report(waits, tmp_path, sample=False)
    first = capsys.readouterr().out
    print_report(rests, tmp_path, sample=False)
    second = capsys.readouterr().out

    assert "up to date" not in first
    assert "every memory folder is up to date" in second


def test_run_without_sessions_shows_the_way(commands, tmp_path):
    (tmp_path / "empty").mkdir()

    told = commands("run", "--sessions", tmp_path / "empty")

    assert told.code == 0
    assert "threadbook run --sample" in told.out


def test_run_says_what_waits_and_why(commands):
    commands.home.write(Session(number=3, ended_at=int(commands.home.now) - HOUR_S))

    told = commands("run", "--sessions", commands.home.sessions)

    assert "1 waiting: still in use, or left only hours ago; a later run reads them" in told.out


def test_run_on_the_fixtures_has_the_keys_that_others_rely_on(commands):
    told = commands("run", "--sessions", ROLLOUTS, "--json").json

    assert set(told) >= {"ingested", "skipped_lines", "stage1", "phase2", "tokens", "waiting"}


def test_a_dry_run_before_the_first_run_makes_no_home(commands, tmp_path):
    told = commands.bare(
        "run", "--dry-run", "--home", tmp_path / "new", "--sessions", commands.home.sessions
    )

    assert told.code == 0
    assert "2 would be new or changed" in told.out.replace("2 sessions found, ", "")
    assert not (tmp_path / "new").exists()


def test_a_dry_run_puts_nothing_into_a_folder_that_has_no_memory_yet(commands, tmp_path):
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "letter.txt").write_text("mine")

    told = commands.bare(
        "run", "--dry-run", "--home", tmp_path / "new", "--sessions", commands.home.sessions
    )

    assert told.code == 0
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["letter.txt"]


@pytest.mark.parametrize(("kept", "why"), [("head", "ends at position 0"), ("keys.sqlite", "DSN")])
def test_a_dry_run_is_refused_where_the_run_would_be(commands, tmp_path, kept, why):
    (tmp_path / "new").mkdir()
    head = (commands.home.path / "head").read_bytes()
    (tmp_path / "new" / kept).write_bytes(head)

    told = commands.bare("run", "--dry-run", "--home", tmp_path / "new", "--sessions", tmp_path)

    assert told.code == 3
    assert why in told.line


def test_a_dry_run_of_the_sample_makes_no_home_where_a_database_is_set(
    commands, tmp_path, monkeypatch
):
    monkeypatch.setenv("THREADBOOK_DATABASE", "postgresql://nobody@localhost:1/none")

    told = commands.bare("run", "--dry-run", "--sample", "--home", tmp_path / "sample")

    assert told.code == 0
    assert not (tmp_path / "sample").exists()


def test_run_tells_of_a_kept_edit(commands):
    (commands.home.root() / "MEMORY.md").write_text("mine\n")

    told = commands("run", "--sessions", commands.home.sessions)

    assert "your edit was kept: MEMORY.md" in told.out
    assert "mine\n" in (commands.home.root() / "MEMORY.md").read_text()


def test_run_says_of_an_edit_that_was_laid_aside_where_it_lies_and_why_it_can_be(commands):
    memory_file = commands.home.root() / "MEMORY.md"
    memory_file.write_text(f"{memory_file.read_text()}\npassword = hunter2treesxyz\n")

    told = commands("run", "--sessions", commands.home.sessions)

    assert "your edit cannot go on as it is (a secret, " in told.out
    assert "0001-MEMORY.md" in told.out
    assert "your edit was kept" not in told.out


def test_the_sample_shows_its_first_lines_and_is_there_once(commands, tmp_path):
    first = commands.bare("run", "--sample", "--home", tmp_path / "sample")
    second = commands.bare("run", "--sample", "--home", tmp_path / "sample", "--json")
    given = commands.bare("context", "--home", tmp_path / "sample", "--cwd", SAMPLE_FOLDER)

    assert first.code == second.code == 0
    assert "memory_summary.md" in first.out
    assert "  v1" in first.out
    assert f"context --cwd {SAMPLE_FOLDER}" in first.out
    assert "Memory of project:gallery-" in given.out
    assert second.json["ingested"] == 0
    assert second.json["phase2"] == []


def test_the_sample_brings_its_own_sessions(commands):
    told = commands("run", "--sample", "--sessions", commands.home.sessions)

    assert told.code == 2
    assert "drop --sessions" in told.err


def test_explain_tells_each_gate_and_the_events(commands):
    told = commands("explain", A.id)

    assert "in: the memory folder was made from it" in told.out
    assert told.out.count("  pass  ") == 7
    assert "events: " in told.out


def test_explain_at_a_position_and_at_a_time(commands):
    past = commands("explain", A.id, "--at", "2", "--json").json
    now = commands("explain", A.id, "--at", "2026-01-01T12:00:00Z", "--json").json

    assert past["position"] == 2
    assert past["waiting"] == ["the next run reads it"]
    assert now["position"] == commands.home.position


def test_explain_before_the_first_event_knows_nobody(commands):
    assert commands("explain", A.id, "--at", "0").code == 1
    assert commands("explain", A.id, "--at", "2020-01-01").code == 1


def test_log_can_be_cut_to_a_stream_and_a_part(commands):
    whole = commands("log", "--json").json
    stream = commands("log", "--stream", f"thread:{A.id}", "--json").json
    part = commands("log", "--after", "3", "--limit", "2", "--json").json

    assert [entry["position"] for entry in whole] == list(range(1, commands.home.position + 1))
    assert set(whole[0]) >= {
        "position",
        "stream",
        "version",
        "type",
        "recorded_at_ms",
        "actor",
        "data",
    }
    assert [entry["type"] for entry in stream] == ["thread.registered"]
    assert stream[0]["data"]["thread_id"] == A.id
    assert [entry["position"] for entry in part] == [4, 5]
    assert json.dumps(whole).count("make check") == 0


def test_what_a_command_does_away_from_a_terminal_was_an_agent_s_doing(commands):
    commands("mode", A.id, "disabled")
    commands("mode", A.id, "enabled", "--yes")
    commands("pollute", A.id, "--cause", "web_search")
    commands("scope", B.id, "project:garden")

    acts = [
        each
        for each in commands.home.log()
        if isinstance(each.event, MemoryModeSet | ThreadPolluted | ThreadRescoped)
    ]
    assert [each.actor for each in acts] == ["agent:cli"] * 4


def test_commands_that_change_nothing_say_so_and_are_done(commands):
    first = commands("pollute", A.id)
    second = commands("pollute", A.id)
    same = commands("mode", B.id, "enabled", "--json")

    assert (first.code, second.code, same.code) == (0, 0, 0)
    assert "is now polluted" in first.out
    assert "was already polluted" in second.out
    assert same.json["changed"] is False


@pytest.mark.parametrize(
    ("args", "way"),
    [
        (("forget", A.id), "write `threadbook forget thread`"),
        (("inspect", "a.jsonl"), "write `threadbook inspect rollout` or"),
        (("scope", "/srv/ferns", "project:garden"), "only a session can be moved"),
    ],
)
def test_half_a_command_is_told_its_other_half(commands, args, way):
    done = commands(*args)

    assert done.code == 2
    assert way in done.err


def test_a_polluted_session_is_told_the_way_back_and_a_run_says_who_is_out(commands):
    told = commands("pollute", A.id)
    commands("forget", "thread", B.id)
    run = commands("run", "--sessions", commands.home.sessions)

    assert f"`threadbook mode {A.id} enabled` takes it back in" in told.out
    assert "1 left out for what they are: 1 forgotten (" in run.out


def test_only_a_person_lifts(commands):
    forgotten = commands("forget", "thread", A.id)
    lifted = commands("forget", "thread", A.id, "--lift")

    assert forgotten.code == 0
    assert lifted.code == 1
    assert "only a person" in lifted.line


@pytest.mark.parametrize(
    "args",
    [
        ("explain", "nobody"),
        ("mode", "nobody", "enabled"),
        ("pollute", "nobody"),
        ("scope", "019c0000-0000-7000-8000-00000000ffff"),
        ("scope", ""),
        ("scope", A.id, "no scope at all"),
        ("scope", A.id, "user/../x"),
        ("scope", A.id, "user"),
        ("scope", A.id, "global"),
    ],
)
def test_what_the_state_does_not_allow_is_refused(commands, args):
    before = commands.home.position

    told = commands(*args)
    for_programs = commands("--json", *args)

    assert told.code == for_programs.code == 1
    assert told.out == ""
    assert told.line.removeprefix("threadbook: ").strip() == for_programs.json["error"]
    assert commands.home.position == before


@pytest.mark.parametrize(
    ("args", "advice"),
    [
        (("runn",), "did you mean 'run'?"),
        (("thread",), "did you mean 'threads'?"),
        (("nonsense",), "there are run, status"),
        (("run", "--sesions", "x"), "--sessions"),
        (("run", "--backfill", "0"), "leave it out for all"),
        (("mode", A.id, "on"), "'enabled', 'disabled'"),
        (("mode", A.id), "enabled"),
        (("log", "--limit", "0"), "x>=1"),
        (("explain", A.id, "--at", "yesterday"), "2026-11-29T12:00:00Z"),
        (("--now", "noon", "status"), "2026-11-29T12:00:00Z"),
        (("replay", "--verify", "--rebuild"), "ask one"),
        (("export",), "DIR"),
        (("forget", "value"), "value"),
        (("forget", "thread"), "ID"),
    ],
)
def test_misuse_is_told_with_what_to_write_instead(commands, args, advice):
    told = commands(*args)
    for_programs = commands(*args, "--json")

    assert told.code == for_programs.code == 2
    assert advice in told.err
    assert "Usage: threadbook" in told.err
    assert told.out == ""
    assert advice in for_programs.json["error"] or "No such option" in for_programs.json["error"]


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("histroy_days = 3\n", "did you mean `history_days`?"),
        ("history_days = 'three'\n", "history_days"),
        ("scope = 'all'\n", "project, global"),
        ("[memories\n", "not valid TOML"),
    ],
)
def test_settings_that_cannot_be_used_are_misuse(commands, tmp_path, text, advice):
    file = tmp_path / "settings.toml"
    file.write_text(text)

    told = commands("status", "--config", file)

    assert told.code == 2
    assert advice in told.line
    assert str(file) in told.line


def test_settings_come_from_the_file_and_the_environment_beats_it(commands, tmp_path, monkeypatch):
    file = tmp_path / "settings.toml"
    file.write_text("history_days = 3\nmax_unused_days = 99999\n")

    from_file = commands("status", "--config", file, "--json").json["settings"]
    monkeypatch.setenv("THREADBOOK_HISTORY_DAYS", "5")
    from_both = commands("status", "--config", file, "--json").json["settings"]

    assert from_file["history_days"]["value"] == 3
    assert from_file["max_unused_days"]["value"] == 365
    assert from_both["history_days"]["value"] == 5


def test_replay_shows_a_moment(commands):
    told = commands("replay", "--until", commands.home.position, "--json").json

    assert set(told) >= {"threads", "jobs", "outputs", "selection"}
    assert {line["rank"] for line in told["selection"]} == {1, 2}
    assert all(line["reason"] for line in told["selection"])
    assert commands("replay", "--until", "2026-01-01T12:00:00Z").code == 0


def test_export_writes_the_folder_and_never_into_a_full_one(commands, tmp_path):
    first = commands("export", tmp_path / "out")
    again = commands("export", tmp_path / "out")

    assert first.code == 0
    assert content(tmp_path / "out") == content(commands.home.root())
    assert again.code == 1
    assert "new or empty" in again.line


def test_a_run_whose_every_job_failed_is_a_failure(commands):
    third = Session(number=3)
    commands.home.write(third)
    commands.home.memory.ingest([commands.home.sessions])
    commands.home.file(third).write_text("no session\n")

    told = commands("run", "--sessions", commands.home.sessions, "--json")

    assert told.code == 3
    assert told.json["stage1"]["failed"] == 1


def test_inspect_needs_no_home(commands):
    told = commands.bare("inspect", "rollout", commands.home.file(A), "--json")

    assert told.code == 0
    assert told.json["thread"]["thread_id"] == A.id


def test_inspect_says_the_scope_that_a_session_has_in_the_home(commands, monkeypatch):
    monkeypatch.setenv("HOME", str(commands.home.path.parent))
    tilde = f"~/{commands.home.path.name}"

    told = commands.bare("--home", tilde, "inspect", "rollout", commands.home.file(A), "--json")

    known = commands("scope", A.id, "--json").json
    assert told.json["thread"]["scope"] == known["scope"]


def test_a_home_keeps_to_one_kind_of_clock(commands):
    told = commands.bare("--home", commands.home.path, "status")

    assert told.code == 3
    assert "give --now" in told.line


COMMANDS_TERMINAL = "\x1b]0;owned\x07\x1b[2J\x9b31m\x7f\u202e\u200b\U000e0041"


def test_what_commands_a_terminal_is_shown_and_not_sent(commands):
    home = commands.home
    says = (f"{COMMANDS_TERMINAL}please fix the ferns, always use uv",)
    named = Session(number=7, says=says, cwd=f"/srv/{COMMANDS_TERMINAL}")
    home.write(named)
    (home.sessions / f"{COMMANDS_TERMINAL}.jsonl.zst").write_bytes(b"(\xb5/\xfdnot really")
    asked = [
        ("run", "--sessions", home.sessions),
        ("threads",),
        ("pollute", named.id, "--cause", COMMANDS_TERMINAL),
        ("explain", named.id),
        ("explain", COMMANDS_TERMINAL),
        ("inspect", "rollout", home.file(named)),
        (COMMANDS_TERMINAL,),
        ("log",),
        ("status",),
    ]

    answers = [commands(*args, *more) for args in asked for more in ((), ("--json",))]

    sent = "".join(answer.out + answer.err for answer in answers)
    assert not set(sent) & set(COMMANDS_TERMINAL) - set("]0;owned[2J31m")
    assert "\\u001b]0;owned" in sent
    inspected = answers[2 * asked.index(asked[5]) + 1].json
    assert inspected["human_messages"] == list(says)


def test_a_log_goes_out_to_a_file_and_into_a_new_home(commands, tmp_path):
    file, new = tmp_path / "log.jsonl", tmp_path / "new"

    out = commands("export", file)
    into = commands.bare("import", file, *commands.given("--json"), "--home", new)
    again = commands("import", file)

    assert (out.code, into.code) == (0, 0)
    assert "in the open" in out.out
    assert into.json["events"] == commands.home.position
    assert (again.code, "choose another --home" in again.line) == (3, True)
    assert commands("export", tmp_path / "b.jsonl", "--at", 3).code == 2


def test_status_and_export_tell_of_versions_where_there_are_several(commands, tmp_path):
    one = commands("status").out
    file = tmp_path / "both.toml"
    file.write_text("dual_write = true\n")
    commands("run", "--config", file)

    told = commands("status", "--config", file).out
    out = commands("export", tmp_path / "out", "--version", "v2", "--config", file)

    assert "version   " not in one
    not_yet = "2 sessions consolidated at once; not ready yet, at 20 it is"
    assert f"version   v1 is read and written; {not_yet}" in told
    assert f"version   v2 is written; {not_yet}" in told
    assert "(v1): 2 sessions" in told
    assert "(v2): 2 sessions" in told
    assert out.code == 0
    assert not (tmp_path / "out" / "MEMORY.md").exists()
    assert (tmp_path / "out" / "memory_summary.md").exists()
    assert commands("export", tmp_path / "log.jsonl", "--version", "v2").code == 2
