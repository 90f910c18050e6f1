"""A reply on standard input: `inspect citations`, and `cite`."""

import io
import json
import sys

import pytest

from tests.adapters.cli.commands import A, B
from tests.adapters.rollouts.support import message, meta, written
from tests.application.homes import show
from tests.domain.test_citation import EXPECTED, REPLIES

REPLY = "Answer.\n<oai-mem-citation>\n<rollout_ids>\n{}\n</rollout_ids>\n</oai-mem-citation>"


@pytest.fixture
def given(monkeypatch):
    def put(reply: str | bytes):
        content = reply if isinstance(reply, bytes) else reply.encode()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))

    return put


@pytest.mark.parametrize("name", REPLIES)
def test_inspect_citations_tells_the_open_cases_as_json(commands, given, name):
    given(REPLIES[name])

    told = commands.bare("inspect", "citations")

    expected = EXPECTED[name]
    entries = [{k: e[k] for k in ("path", "start", "end", "note")} for e in expected["entries"]]
    assert told.code == 0
    assert told.json == {
        "visible": expected["visible"],
        "entries": entries,
        "ids_raw": expected["ids_raw"],
        "usage_ids": expected["usage_ids"],
    }


def test_inspect_citations_takes_any_bytes(commands, given):
    given(b"\xff\x00\x1b[2J\r\n\xed\xa0\x80 <oai-mem-citation>")

    told = commands.bare("inspect", "citations", "--json")

    assert told.code == 0
    assert json.loads(told.out)["visible"] == "\ufffd\x00\x1b[2J\r\n\ufffd\ufffd\ufffd "
    assert "\x1b" not in told.out


def test_inspect_rollout_tells_what_a_session_cites(commands, tmp_path):
    said = REPLY.format(f"{A.id}\n{B.id}")
    path = written(
        tmp_path,
        meta(),
        message(A.id, role="developer"),
        message("x"),
        message(said, role="assistant"),
    )

    told = commands.bare("inspect", "rollout", path, "--json")
    people = commands.bare("inspect", "rollout", path)

    assert told.json["citations"] == [{"turn": 1, "ids": [A.id, B.id], "stood_before": [A.id]}]
    assert f"turn 1 cites {A.id}, {B.id}" in people.out


def test_cite_prints_the_visible_reply_and_counts(commands, given):
    show(commands.home.memory._around, [A.id], "s")
    given(REPLY.format(f"{A.id}\n{B.id}\nx"))

    told = commands("cite", "--session", "s", "--turn", "1")
    explained = commands("explain", A.id)

    assert told.code == 0
    assert told.out == "Answer.\n"
    assert told.err.splitlines() == [
        "x does not count: it is no session's id",
        f"{B.id} does not count: this session was not shown it",
    ]
    assert "cited once, last at" in explained.out


def test_cite_tells_programs_what_counted(commands, given):
    show(commands.home.memory._around, [A.id], "s")
    given(REPLY.format(A.id))

    told = commands("cite", "--session", "s", "--turn", "1", "--json")

    assert told.json == {"visible": "Answer.\n", "counted": [A.id], "not_counted": {}}


def test_cite_gives_a_program_the_reply_as_it_is(commands, given):
    given("a\x1b[1m\u200d\r\nb")

    assert commands("cite", "--session", "s", "--turn", "1").out == "a\x1b[1m\u200d\r\nb"


def test_cite_without_a_session_counts_nothing_says_so_and_needs_no_home(commands, given, tmp_path):
    given(REPLY.format(A.id))

    told = commands.bare("--home", tmp_path / "none", "cite")

    assert (told.code, told.out) == (0, "Answer.\n")
    assert told.err == "no session was named, so nothing counts; give --session and --turn\n"
    assert not (tmp_path / "none").exists()


def test_cite_shows_the_reply_also_where_it_cannot_be_counted(commands, given, tmp_path):
    given(REPLY.format(A.id))

    told = commands.bare("--home", tmp_path / "none", "cite", "--session", "s", "--turn", "1")

    assert told.code != 0
    assert told.out == "Answer.\n"
    assert "Traceback" not in told.err


def test_cite_asks_which_turn_it_is(commands, given):
    given("x")

    told = commands("cite", "--session", "s")

    assert told.code == 2
    assert "--turn N" in told.err


def test_cite_without_a_standard_input_shows_nothing(commands, monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)

    assert commands("cite", "--session", "s", "--turn", "1").out == ""
