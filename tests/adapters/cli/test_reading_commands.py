"""list, read and search at the command line: what a person sees, and a program gets."""

import pytest

from tests.adapters.cli.commands import A, B
from tests.application.homes import FERN

HERE = ("--cwd", FERN)


def test_list_shows_one_level_with_folders_marked(commands):
    told = commands("list", *HERE)

    assert told.out.splitlines() == [
        "MEMORY.md",
        "memory_summary.md",
        "raw_memories.md",
        "rollout_summaries/",
    ]
    assert len(commands("list", *HERE, "rollout_summaries").out.splitlines()) == 2


def test_list_goes_on_where_it_was_told_to(commands):
    first = commands("list", *HERE, "--max", "3")

    assert "there are more: --cursor 3" in first.err
    assert commands("list", *HERE, "--cursor", "3").out == "rollout_summaries/\n"


def test_read_prints_the_file_and_a_part_of_it(commands):
    whole = commands("read", *HERE, "memory_summary.md")
    one = commands("read", *HERE, "memory_summary.md", "--line", "1", "--lines", "1")

    assert whole.out.startswith("v1\n")
    assert "make check" in whole.out
    assert whole.err == ""
    assert one.out == "v1\n"
    assert "there is more of it" in one.err


def test_search_gives_what_fits_best_first_and_its_place(commands):
    told = commands("search", *HERE, "what", "runs", "before", "a", "commit?")

    place, _, statement = told.out.splitlines()[0].partition("  ")
    path, line = place.split(":")
    there = commands("read", *HERE, path, "--line", line, "--lines", "1")
    assert "always run make check" in statement
    assert there.out.strip() == statement


def test_a_search_that_finds_nothing_says_what_else_to_try(commands):
    assert "--exact" in commands("search", *HERE, "zirbelkiefer").out


@pytest.mark.parametrize(
    ("options", "finds"),
    [
        (("--exact", "MAKE CHECK"), False),
        (("-i", "MAKE CHECK"), True),
        (("--normalized", "make-check"), True),
        (("--all", "make check", "commit"), True),
        (("--all", "make check", "tabs"), False),
        (("--exact", "make check", "nothing of the kind"), True),
        (("--within-lines", "40", "make check", "tabs"), True),
    ],
)
def test_an_exact_search_is_asked_for_by_an_option(commands, options, finds):
    told = commands("search", *HERE, "--path", "MEMORY.md", *options)

    assert told.code == 0
    assert ("make check" in told.out) == finds
    assert ("nothing is found" in told.out) != finds


def test_an_exact_search_has_context_and_pages(commands):
    told = commands("search", *HERE, "--exact", "make check", "--context", "1", "--max", "1")

    assert len(told.out.splitlines()) == 4
    assert "there are more: --cursor 1" in told.err


def test_context_and_cursor_belong_to_an_exact_search(commands):
    told = commands("search", *HERE, "make", "--cursor", "1")

    assert told.code == 2
    assert "add --exact" in told.err


def test_programs_get_what_the_tools_give_agents(commands):
    assert commands("--json", "list", *HERE).json.keys() == {
        "path",
        "entries",
        "next_cursor",
        "truncated",
    }
    assert commands("--json", "read", *HERE, "MEMORY.md").json["start_line_number"] == 1
    assert commands("--json", "search", *HERE, "make").json["results"][0]["threads"] == [A.id]
    exact = commands("--json", "search", *HERE, "--exact", "tabs").json
    assert exact["matches"][0]["matched_queries"] == ["tabs"]
    assert B.id not in str(commands("--json", "list", *HERE).json)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("read", "../x"), "must stay within"),
        (("read", "gone.md"), "does not exist"),
        (("read", "MEMORY.md", "--line", "0"), "line_offset 0"),
        (("read", "MEMORY.md", "--line", "99999"), "behind the end"),
        (("list", "--cursor", "x"), "cursor 'x'"),
        (("search", " "), "no letter or digit"),
        (("read", "MEMORY.md", "--line", "-2"), "line_offset -2"),
        (("read", "MEMORY.md", "--lines", "-1"), "max_lines -1"),
        (("search", "--within-lines", "0", "x"), "line_count 0"),
        (("search", "--within-lines", "-3", "x"), "line_count -3"),
    ],
)
def test_what_is_refused_is_one_line_that_says_what_to_do(commands, words, told):
    answer = commands(words[0], *HERE, *words[1:])

    assert answer.code == 1
    assert told in answer.line


def test_where_there_is_no_project_there_is_no_memory(commands):
    for words in (("list",), ("read", "MEMORY.md"), ("search", "make"), ("search", "--exact", "m")):
        answer = commands(words[0], "--cwd", "/", *words[1:])

        assert answer.code == 1
        assert "belongs to no project" in answer.line


def test_what_a_session_was_given_is_recorded_for_it(commands):
    before = commands.home.position

    commands("read", *HERE, "MEMORY.md")
    assert commands.home.position == before
    commands("read", *HERE, "MEMORY.md", "--session", "s1")
    commands("search", *HERE, "make", "--session", "s1")

    assert commands.home.types(after=before) == ["read.shown", "read.shown"]


@pytest.mark.parametrize(
    "command",
    [("context",), ("list",), ("read", "MEMORY.md"), ("search", "make"), ("note", "use uv")],
)
def test_in_a_folder_that_is_gone_one_is_told_to_go_elsewhere(
    commands, tmp_path, monkeypatch, command
):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()

    told = commands(*command)

    assert (told.code, told.out) == (1, "")
    assert "not there any more" in told.err
    assert "--cwd" in told.err
