"""`threadbook context` and `threadbook note`, as a hook and as a person call them."""

import io
import os
import sys

import pytest

from tests.adapters.cli.commands import A, B
from tests.application.homes import FERN, MOSS, bytes_of


def test_context_prints_what_a_session_is_given_and_records_it(commands):
    done = commands("context", "--cwd", FERN, "--session", "s1")

    assert done.code == 0
    assert done.out.startswith("<threadbook-memory>\n")
    assert "make check" in done.out
    assert done.err == ""
    shown = commands("log", "--stream", "session:s1", "--json").out
    assert '"read.shown"' in shown
    assert "agent:cli" in shown


def test_without_a_session_it_says_that_nothing_is_recorded(commands):
    done = commands("context", "--cwd", FERN)

    assert done.code == 0
    assert "make check" in done.out
    assert "--session" in done.line
    assert "read.shown" not in commands("log").out


def test_json_has_the_manifest_too(commands):
    told = commands("context", "--cwd", FERN, "--json").json

    assert told["state"] == "shown"
    assert "make check" in told["text"]
    assert told["manifest"]["omitted_lines"] == told["omitted"] == 0
    assert told["manifest"]["tokens"] == told["tokens"]
    assert len(told["manifest"]["digest"]) == 64
    assert told["manifest"]["scope"] == told["scope"]


def test_the_folder_is_this_one_unless_another_is_named(commands, tmp_path, monkeypatch):
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    commands("note", "use uv")

    assert "use uv" in commands("context").out
    assert "use uv" not in commands("context", "--cwd", FERN).out
    assert "use uv" in commands("context", "--cwd", ".").out


@pytest.mark.parametrize("cwd", ["/", "/home/ann"])
def test_where_the_project_is_not_clear_context_says_so_and_ends_well(commands, cwd):
    done = commands("context", "--cwd", cwd)

    assert done.code == 0
    assert "--cwd" in done.out
    assert "make check" not in done.out


def test_a_place_without_a_memory_is_told_how_to_begin_one_and_stays_without(commands, tmp_path):
    done = commands.bare("context", "--home", tmp_path / "nowhere", "--cwd", FERN)

    assert done.code == 0
    assert "threadbook note" in done.out
    assert not (tmp_path / "nowhere").exists()


def test_switched_off_it_says_so(commands, monkeypatch):
    monkeypatch.setenv("THREADBOOK_USE_MEMORIES", "false")

    done = commands("context", "--cwd", FERN)

    assert (done.code, done.out) == (
        0,
        "memory is switched off: use_memories is false in the settings;"
        " take that out to have it again\n",
    )


def test_a_budget_in_the_environment_counts(commands, monkeypatch):
    monkeypatch.setenv("THREADBOOK_CONTEXT_TOKENS", "100")
    commands("note", "word " * 200, "--cwd", FERN)

    told = commands("context", "--cwd", FERN, "--json").json

    assert told["tokens"] <= 100
    assert "left out for length" in told["text"]


# Notes.


def test_a_note_is_kept_and_read_by_the_next_session_of_that_project_alone(commands):
    done = commands("note", "use uv, not pip", "--cwd", FERN)

    assert done.code == 0
    assert "kept as extensions/ad_hoc/notes/" in done.out
    assert "-use-uv-not-pip.md" in done.out
    assert "use uv, not pip" in commands("context", "--cwd", FERN).out
    assert "use uv, not pip" not in commands("context", "--cwd", MOSS).out
    again = commands("note", "use uv, not pip", "--cwd", FERN, "--json").json
    assert again["added"] is False
    assert again["path"] in done.out


@pytest.mark.parametrize("args", [(), ("-",)])
def test_without_a_text_it_is_read_from_standard_input(commands, monkeypatch, args):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"use uv\nnot pip\n")))

    done = commands("note", *args, "--cwd", FERN)

    assert done.code == 0
    assert "- (2026-01-01) use uv\n  not pip\n" in commands("context", "--cwd", FERN).out


@pytest.mark.parametrize("stdin", ["closed", "no text"])
@pytest.mark.parametrize("language", ["C", "en_US.UTF-8"])
def test_what_is_no_note_on_standard_input_is_refused_in_any_language(
    commands, tmp_path, monkeypatch, stdin, language
):
    monkeypatch.setenv("LC_ALL", language)
    (tmp_path / "latin").write_bytes("größer".encode("latin-1"))
    process = commands.process(
        "note",
        "-",
        "--cwd",
        FERN,
        stdin=(tmp_path / "latin").open("rb"),
        preexec_fn=(lambda: os.close(0)) if stdin == "closed" else None,
    )

    out, err = process.communicate(timeout=60)

    assert (process.returncode, out) == (1, "")
    assert ("is empty" if stdin == "closed" else "is no text") in err


def test_a_secret_in_a_note_is_hidden_and_it_is_said(commands):
    token = "ghp_" + "a1B2" * 9

    done = commands("note", f"the token is {token}", "--cwd", FERN)

    assert "1 secret was hidden in it" in done.out
    assert not any(token.encode() in each for each in bytes_of(commands.home.path).values())


def test_a_note_may_be_named_and_taken_back(commands):
    name = "2026-01-01T12-00-00-use-uv.md"
    commands("note", "the lighthouse hums", "--cwd", FERN, "--filename", name)

    done = commands("note", "--remove", name, "--cwd", FERN)

    assert (done.code, done.out) == (0, f"{name} is gone, its words included\n")
    assert "lighthouse" not in commands("context", "--cwd", FERN).out
    assert not any(b"lighthouse" in each for each in bytes_of(commands.home.path).values())


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        (("note", "", "--cwd", FERN), 1, "the note is empty"),
        (("note", "x", "--cwd", "/"), 1, "belongs to no project"),
        (("note", "x", "--cwd", FERN, "--filename", "../x.md"), 1, "YYYY-MM-DDTHH-MM-SS"),
        (("note", "ab" * 9_000, "--cwd", FERN), 1, "16384 is the most"),
        (("note", "--remove", "2026-01-01T12-00-00-no.md", "--cwd", FERN), 1, "has no note"),
        (("note", "x", "--remove", "y"), 2, "--remove takes no text"),
    ],
)
def test_what_cannot_be_kept_says_what_to_do(commands, args, code, said):
    done = commands(*args)

    assert done.code == code
    assert said in done.err
    assert "Traceback" not in done.out + done.err


def test_a_note_makes_a_memory_where_there_is_none(commands, tmp_path):
    done = commands.bare("note", "use uv", "--home", tmp_path / "new", "--cwd", FERN)

    assert done.code == 0
    shown = commands.bare("context", "--home", tmp_path / "new", "--cwd", FERN)
    assert "use uv" in shown.out


def test_a_forgotten_session_is_not_in_the_context(commands):
    assert "tabs" in commands("context", "--cwd", FERN).out

    commands("forget", "thread", B.id, "--yes")

    assert "tabs" not in commands("context", "--cwd", FERN).out
    assert "make check" in commands("context", "--cwd", FERN).out
    assert A.id not in commands("context", "--cwd", FERN).out
