"""Installing and taking it back: the person's bytes stay, ours come and go."""

import json
import os
import shlex
import stat
import tomllib
from concurrent.futures import ThreadPoolExecutor

import pytest
from msgspec.structs import replace
from threadbook.adapters.install import CannotInstall, install, places
from threadbook.adapters.install.entries import Entries
from threadbook.adapters.install.files import SIZE_MAX
from threadbook.adapters.install.turns import alone
from threadbook.application.ports import Failure

from tests.adapters.install.agents import HOME, PROGRAM, TOML_TEXTS, Agents, json_texts

CLAUDE = (".claude/settings.json", ".claude.json")
CODEX = (".codex/hooks.json", ".codex/config.toml")
KINDS = [
    *((name, kind, text) for name in (*CLAUDE, CODEX[0]) for kind, text in json_texts().items()),
    *((CODEX[1], kind, text) for kind, text in TOML_TEXTS.items()),
]


@pytest.fixture
def agents(tmp_path):
    return Agents(tmp_path / "user")


def commands(settings, event):
    return [hook["command"] for group in settings["hooks"][event] for hook in group["hooks"]]


def said(agents):
    """Everything that the agents' settings say, parsed."""

    def parsed(name, content):
        text = content.decode().removeprefix("\ufeff")
        if name.endswith(".toml"):
            return tomllib.loads(text)
        return json.loads(text) if text.strip() else {}

    return {name: parsed(name, content) for name, content in agents.files.items()}


def test_both_agents_are_given_hooks_and_the_server(agents):
    reports = agents.install(program=(*PROGRAM, *HOME))

    now = said(agents)
    for name in (CLAUDE[0], CODEX[0]):
        for event, word in (("SessionStart", "session-start"), ("SessionEnd", "session-end")):
            [command] = commands(now[name], event)
            assert shlex.split(command)[:5] == [*PROGRAM, *HOME, "hook", word]
    server = {"command": PROGRAM[0], "args": [*HOME, "mcp"]}
    assert now[CLAUDE[1]]["mcpServers"] == {"threadbook": {"type": "stdio", **server, "env": {}}}
    assert now[CODEX[1]]["mcp_servers"] == {"threadbook": server}
    start = now[CODEX[0]]["hooks"]["SessionStart"][0]["hooks"][0]
    assert shlex.split(start["command"])[-2:] == [
        "--room",
        str(4 * start["additionalContextLimit"]),
    ]
    assert [report.agent for report in reports] == ["codex", "claude"]
    assert {file.done for report in reports for file in report.files} == {"created"}
    assert now.keys() == {*CLAUDE, *CODEX}  # No AGENTS.md, no CLAUDE.md, nothing beside them.


@pytest.mark.parametrize(("name", "kind", "content"), KINDS, ids=lambda v: v if v else None)
def test_uninstall_gives_every_byte_back(agents, name, kind, content):
    if content is not None:
        agents.write(name, content)
    before, meant = agents.files, said(agents)

    agents.install()
    installed = agents.files
    agents.uninstall()

    assert agents.files == before, kind
    assert said(agents) == meant or kind == "no number"
    assert installed[name] != content
    assert not list(agents.home.rglob("*")), "nothing of it is kept"


@pytest.mark.parametrize(("name", "kind", "content"), KINDS, ids=lambda v: v if v else None)
def test_twice_is_once(agents, name, kind, content):
    if content is not None:
        agents.write(name, content)

    agents.install()
    once = agents.files
    again = agents.install()

    assert agents.files == once
    assert set(agents.done(again).values()) == {"unchanged"}


@pytest.mark.parametrize(("name", "kind", "content"), KINDS, ids=lambda v: v if v else None)
def test_a_program_that_moved_is_brought_up_to_date(agents, name, kind, content):
    if content is not None:
        agents.write(name, content)
    before = agents.files

    agents.install()
    agents.install(program=("/new/python", "-m", "threadbook.adapters.cli"))

    assert b"/opt/a venv" not in b"".join(agents.files.values())
    assert agents.files[name].count(b"threadbook.adapters.cli") in (1, 2)
    agents.uninstall()
    assert agents.files == before


def test_ours_come_behind_what_is_there(agents):
    agents.write(CLAUDE[0], json_texts()["same event"])

    agents.install("claude")

    first, ours = commands(said(agents)[CLAUDE[0]], "SessionStart")
    assert first == "echo hi"
    assert ours.endswith("hook session-start")


def test_indentation_is_the_files_own(agents):
    agents.write(CLAUDE[0], json_texts()["tabs"])
    agents.write(CLAUDE[1], json_texts()["one line"])
    agents.write(CODEX[1], TOML_TEXTS["windows"])

    agents.install()

    lines = agents.files[CLAUDE[0]].decode().splitlines()
    assert '\t\t"SessionStart": [' in lines
    assert '\t\t\t\t\t\t"type": "command",' in lines
    assert b"\n" not in agents.files[CLAUDE[1]]
    assert agents.files[CODEX[1]].count(b"\n") == agents.files[CODEX[1]].count(b"\r\n")


# A file that was edited since.


def edited_json(text):
    return text.replace("{", '{\n  "mine": [true],', 1)


def test_what_was_edited_since_stays_and_ours_goes(agents):
    agents.write(CLAUDE[0], json_texts()["same event"])
    agents.write(CODEX[1], TOML_TEXTS["comments"])
    agents.install()
    settings, config = agents.files[CLAUDE[0]].decode(), agents.files[CODEX[1]].decode()
    agents.write(CLAUDE[0], edited_json(settings))
    agents.write(CODEX[1], config.replace('"o"', '"p"') + '\n[projects."/x"]\ntrust = 1 # ok\n')

    reports = agents.uninstall()

    assert agents.files[CLAUDE[0]].decode() == edited_json(json_texts()["same event"].decode())
    rest = agents.files[CODEX[1]].decode()
    assert rest.replace("\n\n", "\n") == (
        TOML_TEXTS["comments"].decode().replace('"o"', '"p"') + '[projects."/x"]\ntrust = 1 # ok\n'
    ).replace("\n\n", "\n")
    assert agents.done(reports)["settings.json"] == "changed"


def test_an_agent_that_writes_its_file_between_two_installs_gets_its_bytes_back(agents):
    agents.write(CLAUDE[1], b'{\n  "n": 1,\n  "mcpServers": {},\n  "z": []\n}\n')
    agents.install()
    agents.write(CLAUDE[1], agents.files[CLAUDE[1]].replace(b'"n": 1', b'"n": 2'))

    agents.install()
    agents.uninstall()

    assert agents.files[CLAUDE[1]] == b'{\n  "n": 2,\n  "mcpServers": {},\n  "z": []\n}\n'


def test_a_file_written_anew_by_its_agent_loses_only_ours(agents):
    agents.write(CLAUDE[1], json_texts()["one line"])
    agents.write(CODEX[0], json_texts()["other event"])
    before = said(agents)
    agents.install()
    for name in (CLAUDE[1], CODEX[0]):
        value = said(agents)[name]
        agents.write(name, json.dumps({**value, "numStartups": 5}, indent=2))

    agents.uninstall()

    after = said(agents)
    for name in (CLAUDE[1], CODEX[0]):
        assert after[name] == {**before[name], "numStartups": 5}


def test_settings_below_our_table_go_with_it(agents):
    agents.install("codex")
    text = agents.files[CODEX[1]].decode()
    more = "startup_timeout_sec = 20\n\n[mcp_servers.threadbook.tools.read]\napproval = 1\n[z]\na=1"
    agents.write(CODEX[1], text + more)

    agents.uninstall("codex")

    assert said(agents)[CODEX[1]] == {"z": {"a": 1}}


def test_what_a_person_tuned_in_our_entry_survives_an_update(agents):
    agents.install()
    for name in (CLAUDE[0], CODEX[0]):
        tuned = agents.files[name].replace(b'"timeout": 5', b'"timeout": 9')
        agents.write(name, tuned.replace(b"hook session-end", b"hook session-end --within 9 | cat"))
    agents.write(CODEX[1], agents.files[CODEX[1]] + b"startup_timeout_sec = 20\n")

    agents.install(program=("/new/threadbook",))

    now = said(agents)
    assert now[CODEX[0]]["hooks"]["SessionStart"][0]["hooks"][0]["timeout"] == 9
    assert now[CODEX[1]]["mcp_servers"]["threadbook"] == {
        "command": "/new/threadbook", "args": ["mcp"], "startup_timeout_sec": 20,
    }  # fmt: skip
    assert commands(now[CLAUDE[0]], "SessionStart") == ["/new/threadbook hook session-start"]
    [end] = commands(now[CODEX[0]], "SessionEnd")
    assert end == "/new/threadbook hook session-end --within 9 | cat"
    agents.uninstall()
    assert agents.files == {}


def test_without_a_record_ours_is_known_by_what_it_says(agents):
    agents.write(CLAUDE[0], json_texts()["same event"])
    agents.write(CODEX[1], TOML_TEXTS["other servers"])
    before = said(agents)
    agents.install()
    for file in (agents.home / "install").iterdir():
        file.write_bytes(b"{ damaged")

    agents.uninstall()

    after = said(agents)
    assert after[CLAUDE[0]] == before[CLAUDE[0]]
    assert after[CODEX[1]] == before[CODEX[1]]


def test_an_entry_that_is_gone_leaves_nothing_to_do(agents):
    agents.write(CLAUDE[0], json_texts()["one line"])
    agents.install("claude")
    agents.write(CLAUDE[0], b"// mine now, and no JSON at all")
    (agents.folder / CLAUDE[1]).unlink()
    before = agents.files

    reports = agents.uninstall("claude")

    assert agents.done(reports) == {"settings.json": "nothing", ".claude.json": "nothing"}
    assert agents.files == before


def test_never_installed_is_nothing_to_take_out(agents):
    agents.write(CLAUDE[0], json_texts()["one line"])
    before = agents.files

    agents.uninstall()

    assert agents.files == before


# What cannot be done, and that nothing is done then.


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        (CLAUDE[0], b'{\n  // mine\n  "a": 1\n}', "line 2, column 3"),
        (CLAUDE[0], b'{"a": 1,}', "line 1"),
        (CLAUDE[0], b"[]", "no table of settings"),
        (CLAUDE[0], b'{"hooks": []}', "`hooks` is no table"),
        (CLAUDE[0], b'{"hooks": {"SessionStart": {}}}', "`hooks.SessionStart` is no list"),
        (CLAUDE[0], b'{"a": NaN}', "NaN is no JSON"),
        (CLAUDE[0], b'{"a": 1} {"b": 2}', "something stands behind the end"),
        (CLAUDE[0], b'{"a": "\xff"}', "not UTF-8"),
        (CLAUDE[0], b"[" * 100_000, "cannot be edited"),
        (CLAUDE[1], b'{"mcpServers": {"threadbook": {"command": "x"}}}', "another server"),
        (CODEX[0], b'{"hooks": nope}', "cannot be edited"),
        (CODEX[1], b"a = 1\na = 2\n", "cannot be edited"),
        (CODEX[1], b"mcp_servers = 1\n", "no table"),
        (CODEX[1], b'mcp_servers = { x = { command = "y" } }\n', "one a line"),
        (CODEX[1], b'[mcp_servers.threadbook]\nurl = "https://x"\n', "another server"),
    ],
    ids=lambda value: value[:20] if isinstance(value, str) else None,
)
def test_a_file_that_cannot_be_edited_is_refused_and_no_file_changes(agents, name, content, words):
    agents.write(name, content)
    before = agents.files

    with pytest.raises(CannotInstall, match=r"nothing was changed|then try again") as refused:
        agents.install()

    assert words in str(refused.value)
    assert str(agents.folder / name) in str(refused.value)
    assert agents.files == before
    assert not agents.home.exists()


def read_only(path):
    path.chmod(0o444)


def folder_instead(path):
    path.unlink()
    path.mkdir()


def too_large(path):
    with path.open("r+b") as file:
        file.truncate(SIZE_MAX + 1)


def fifo_instead(path):
    path.unlink()
    os.mkfifo(path)


def a_link_to_itself(path):
    path.unlink()
    path.symlink_to(path.name)


@pytest.mark.parametrize("name", [*CLAUDE, *CODEX])
@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (read_only, "is read-only for you; give yourself the right (chmod u+rw"),
        (folder_instead, "is a folder; move it away"),
        (too_large, "make it smaller"),
        (fifo_instead, "no plain file"),
        (a_link_to_itself, "cannot be read"),
    ],
)
def test_a_file_that_cannot_be_replaced_is_told_before_any_is_written(agents, name, spoil, words):
    path = agents.write(name, "")
    spoil(path)
    others = [each for each in (*CLAUDE, *CODEX) if each != name]

    with pytest.raises(CannotInstall) as refused:
        agents.install()

    assert words in str(refused.value)
    assert str(path) in str(refused.value)
    assert not any((agents.folder / each).exists() for each in others)
    assert not agents.home.exists()


def test_a_folder_that_is_read_only_is_told(agents):
    agents.write(CODEX[1], "a = 1\n")
    (agents.folder / ".codex").chmod(0o555)

    with pytest.raises(CannotInstall, match="is read-only for you"):
        agents.install()

    assert agents.files == {CODEX[1]: b"a = 1\n"}


def test_when_one_file_cannot_be_written_the_others_become_what_they_were(agents):
    agents.write(CLAUDE[0], json_texts()["same event"])
    before = agents.files
    agents.home.mkdir()
    (agents.home / "install").write_text("no folder")  # The record comes last, and fails.

    with pytest.raises((Failure, CannotInstall)):
        agents.install()

    assert agents.files == before


def test_when_the_last_file_fails_the_written_ones_are_put_back(agents):
    agents.write(CLAUDE[0], json_texts()["same event"])
    before = agents.files
    record = agents.home / "install" / "claude.json"
    record.mkdir(parents=True)

    with pytest.raises((Failure, CannotInstall)):
        agents.install()

    assert agents.files == before


def test_an_agent_that_was_never_used_is_told(tmp_path):
    (tmp_path / ".codex").mkdir()

    with pytest.raises(CannotInstall, match=r"Claude Code was not used here.*CLAUDE_CONFIG_DIR"):
        places(("claude",), environment={}, user=tmp_path)

    assert [each.agent for each in places((), environment={}, user=tmp_path)] == ["codex"]


def test_the_agents_own_variables_say_where_their_settings_are(tmp_path):
    for name in ("x", "y"):
        (tmp_path / name).mkdir()
    environment = {"CODEX_HOME": str(tmp_path / "x"), "CLAUDE_CONFIG_DIR": str(tmp_path / "y")}

    found = places((), environment=environment, user=tmp_path / "nobody")

    paths = [part.path.relative_to(tmp_path) for place in found for part in place.parts]
    assert [str(path) for path in paths] == [
        "x/hooks.json", "x/config.toml", "y/settings.json", "y/.claude.json",
    ]  # fmt: skip


# The file itself.


def test_a_link_stays_a_link_and_its_target_is_changed(agents):
    dotfiles = agents.folder / "dotfiles"
    dotfiles.mkdir()
    target = dotfiles / "claude-settings.json"
    target.write_bytes(json_texts()["tabs"])
    link = agents.folder / CLAUDE[0]
    link.symlink_to(os.path.relpath(target, link.parent))
    dangling = agents.folder / CODEX[0]
    dangling.symlink_to(dotfiles / "hooks.json")

    agents.install()

    assert link.is_symlink()
    assert b"threadbook" in target.read_bytes()
    assert (dotfiles / "hooks.json").is_file()
    agents.uninstall()
    assert link.is_symlink()
    assert dangling.is_symlink()
    assert target.read_bytes() == json_texts()["tabs"]
    assert [path.name for path in dotfiles.iterdir()] == ["claude-settings.json"]


def test_mode_and_owner_stay_and_new_files_are_the_owners_alone(agents):
    path = agents.write(CLAUDE[0], json_texts()["tabs"])
    path.chmod(0o640)
    if os.geteuid() == 0:
        os.chown(path, 1234, 4321)
    before = path.stat()

    agents.install()

    after = path.stat()
    assert (after.st_mode, after.st_uid, after.st_gid) == (
        before.st_mode, before.st_uid, before.st_gid,
    )  # fmt: skip
    made = [agents.folder / CLAUDE[1], *(agents.home / "install").iterdir()]
    assert {stat.S_IMODE(each.stat().st_mode) for each in made} == {0o600}
    assert stat.S_IMODE((agents.home / "install").stat().st_mode) == 0o700


def test_a_dry_run_shows_ours_and_changes_nothing(agents):
    agents.write(CLAUDE[1], b'{\n  "secret": "hunter2",\n  "n": 1\n}\n')
    before = agents.files

    reports = agents.install(dry_run=True)

    shown = "\n".join(file.diff for report in reports for file in report.files)
    assert "hook session-start" in shown
    assert "hunter2" not in shown
    assert agents.files == before
    assert not agents.home.exists()


def test_the_record_holds_nothing_of_the_persons(agents):
    agents.write(CLAUDE[1], b'{"oauth": "hunter2", "projects": {"/x": {"history": ["so"]}}}')

    agents.install()

    kept = b"".join(path.read_bytes() for path in (agents.home / "install").iterdir())
    assert b"hunter2" not in kept
    assert b"history" not in kept


def test_codex_hints_say_what_keeps_hooks_from_running(agents):
    agents.write(CODEX[1], b"[features]\nhooks = false\n[[hooks.Stop]]\n")

    [report] = agents.install("codex")

    assert any("[features] hooks = false" in note for note in report.notes)
    assert any("both" in note for note in report.notes)


@pytest.mark.parametrize(
    "command",
    [
        "echo threadbook hook session-start",
        "/usr/bin/my-threadbook hook session-start",
        "threadbook run",
        "threadbook 'unclosed",
        "python3 -m threadbookish hook session-start",
    ],
)
def test_what_only_looks_like_ours_is_not(agents, command):
    content = json.dumps({"hooks": {"SessionStart": [{"hooks": [{"command": command}]}]}})
    agents.write(CLAUDE[0], content)

    agents.install("claude")
    assert command in commands(said(agents)[CLAUDE[0]], "SessionStart")
    agents.write(CLAUDE[0], agents.files[CLAUDE[0]] + b"\n")
    agents.uninstall("claude")

    assert json.loads(agents.files[CLAUDE[0]]) == json.loads(content)


@pytest.mark.parametrize("late", [0, 1])
def test_a_file_that_changes_meanwhile_is_left_alone_and_written_ones_are_put_back(agents, late):
    names = CLAUDE
    for name in names:
        agents.write(name, b'{"a": 1}')
    [place] = agents.places("claude")

    def somebody_is_faster(draft, entries):
        place.parts[late].add(draft, entries)
        agents.write(names[late], b'{"a": 2}')

    parts = [
        replace(part, add=somebody_is_faster) if n == late else part
        for n, part in enumerate(place.parts)
    ]
    with pytest.raises(CannotInstall, match="changed by somebody else just now"):
        install([replace(place, parts=tuple(parts))], Entries(PROGRAM), home=agents.home)

    assert agents.files == {names[late]: b'{"a": 2}', names[1 - late]: b'{"a": 1}'}
    assert not agents.home.exists() or not list(agents.home.iterdir())


def test_many_at_once_leave_what_one_would_and_all_bytes_come_back(agents):
    agents.write(CLAUDE[0], b'{"a": 1}\n')
    agents.write(".codex/config.toml", b"a = 1\n")
    before = agents.files

    with ThreadPoolExecutor(4) as pool:
        for _ in range(4):
            acts = [pool.submit(act) for act in (agents.install, agents.uninstall) * 2]
            assert all(each.result() for each in acts)

    agents.uninstall()
    assert agents.files == before


def test_who_waits_too_long_is_told_who_is_at_it_and_changes_nothing(agents, monkeypatch):
    monkeypatch.setattr("threadbook.adapters.install.turns.WAIT_S", 0.05)
    before = agents.files

    with (
        alone([agents.folder / ".claude"]),
        pytest.raises(CannotInstall, match="by another program; try again"),
    ):
        agents.install()

    assert agents.files == before
