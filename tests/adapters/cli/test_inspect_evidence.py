"""`inspect evidence`: what a model would be shown of a session file."""

import json

import pytest

from tests.adapters.rollouts.support import FIXTURES, ROLLOUTS, message, meta, written


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_it_prints_what_codex_sent(commands, version):
    sent = json.loads((FIXTURES / f"phase1-input-{version}" / "tools.json").read_text("utf-8"))

    told = commands.bare("inspect", "evidence", ROLLOUTS / "tools.jsonl", "--version", version)

    assert told.code == 0
    assert told.out == sent["rendered"] + "\n"


def test_as_json_it_also_tells_what_is_missing_and_how_the_prompt_travels(commands):
    file = ROLLOUTS / "longout.jsonl"

    told = commands.bare("inspect", "evidence", "--version", "v2", file, "--json").json
    whole = commands.bare("inspect", "evidence", file, "--json").json

    assert told["text"].startswith("[harness context]\n")
    assert (told["version"], told["items"], told["omitted"]) == ("v2", 5, 1)
    assert told["omitted_bytes"] > 2_000
    assert told["messages"][0] in range(8_890, 8_901)
    assert sum(told["messages"]) == len(told["text"].encode())
    assert (whole["version"], whole["omitted"], len(whole["messages"])) == ("v1", 0, 1)


def test_a_file_that_is_no_session_or_not_there_is_told_with_what_to_do(commands, tmp_path):
    foreign = tmp_path / "notes.jsonl"
    foreign.write_text('{"hello": 1}\n', encoding="utf-8")

    missing = commands.bare("inspect", "evidence", tmp_path / "none.jsonl")
    no_session = commands.bare("inspect", "evidence", foreign)
    folder = commands.bare("inspect", "evidence", tmp_path)

    assert [each.code for each in (missing, no_session, folder)] == [3, 3, 3]
    assert "there is no such file; check the path" in missing.err
    assert "it holds no session; give a session file of Codex or Claude Code" in no_session.err
    assert "not a regular file; check the path" in folder.err


def test_a_third_version_is_misuse(commands):
    done = commands.bare("inspect", "evidence", ROLLOUTS / "tools.jsonl", "--version", "v3")

    assert done.code == 2
    assert "'v3' is not one of 'v1', 'v2'" in done.err


def test_a_terminal_is_sent_no_commands_by_a_session(commands, tmp_path):
    path = written(tmp_path, meta(), message("\x1b[2J\x9b31m water \x7f"))

    told = commands.bare("inspect", "evidence", path, "--version", "v2")

    assert "water" in told.out
    assert not {"\x1b", "\x9b", "\x7f"} & set(told.out)


def test_it_is_cut_to_the_window_that_is_set(commands, monkeypatch):
    file = ROLLOUTS / "tools.jsonl"
    whole = commands("inspect", "evidence", file, "--json").json
    monkeypatch.setenv("THREADBOOK_CONTEXT_WINDOW", "1000")

    cut = commands("inspect", "evidence", file, "--json").json

    assert whole["omitted"] == 0
    assert cut["omitted"] > 0
    assert len(cut["text"]) < len(whole["text"])
