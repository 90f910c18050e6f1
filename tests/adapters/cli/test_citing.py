"""A reply on standard input: `inspect citations`."""

import io
import json
import sys

import pytest

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
