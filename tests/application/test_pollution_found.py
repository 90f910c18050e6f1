"""Outside text found in a transcript: off by default, told whole, lasting, except from servers we
or a person answer for."""

import json

import pytest
from threadbook.adapters.settings import SettingsError, load, restriction
from threadbook.application.surroundings import ProjectFile
from threadbook.domain.events import ConsolidationRequested, ThreadPolluted, ThreadRegistered

from tests.application.homes import HOUR_S, NOON, Home, Session, content, rfc

A = Session(number=1)
B = Session(number=2, says=("please never use tabs in this project, always spaces",))


def calls(home, session, *servers, searched=False):
    """The session's file, with calls on these servers in it."""
    records = session.records()
    stamp = rfc(session.ended_at)
    for n, server in enumerate(servers):
        asked = {
            "type": "function_call",
            "namespace": f"mcp__{server}",
            "name": "get",
            "call_id": f"c{n}",
            "arguments": "{}",
        }
        given = {"type": "function_call_output", "call_id": f"c{n}", "output": "a page"}
        for payload in (asked, given):
            records.append({"timestamp": stamp, "type": "response_item", "payload": payload})
    if searched:
        payload = {"type": "web_search_call", "status": "completed"}
        records.append({"timestamp": stamp, "type": "response_item", "payload": payload})
    home.file(session).write_text("".join(json.dumps(each) + "\n" for each in records))


@pytest.fixture
def strict(tmp_path):
    home = Home(tmp_path, disable_on_external_context=True)
    yield home
    home.memory.close()


def modes(home):
    return {line.thread_id: line.memory_mode for line in home.memory.threads()}


def test_it_is_off_unless_somebody_asks_for_it(home):
    calls(home, A, "wiki", searched=True)

    home.run()

    assert modes(home) == {A.id: "enabled"}
    assert home.selected() == {A.id}


def test_every_trigger_is_told_and_the_first_is_the_cause(strict):
    calls(strict, A, "wiki", "docs", searched=True)

    strict.run()

    (event,) = strict.events(ThreadPolluted)
    assert (event.cause, event.mode_before) == ("mcp:wiki", "enabled")
    assert event.detail == "mcp:wiki, mcp:docs, web_search"
    assert [each.mode for each in strict.events(ThreadRegistered)] == ["enabled"]
    assert modes(strict) == {A.id: "polluted"}
    assert "polluted (mcp:wiki)" in strict.memory.explain(A.id).verdict
    assert strict.outputs() == []


def test_names_from_a_file_are_told_short_and_without_secrets(strict):
    key = "AKIA" + "IOSFODNN7" + "EXAMPLQ"
    calls(strict, A, key, "long" * 100, *(f"s{n}" for n in range(50)))

    strict.run()

    (event,) = strict.events(ThreadPolluted)
    assert key not in event.detail
    assert len(event.detail) < 2_000


def test_our_own_server_never_pollutes(strict):
    calls(strict, A, "threadbook")

    strict.run()

    assert modes(strict) == {A.id: "enabled"}


def test_a_trusted_server_does_not_pollute_and_another_does(tmp_path):
    home = Home(tmp_path, disable_on_external_context=True, trusted_mcp_servers=("wiki",))
    calls(home, A, "wiki")
    calls(home, B, "wiki", "docs")

    home.run()

    assert modes(home) == {A.id: "enabled", B.id: "polluted"}
    (event,) = home.events(ThreadPolluted)
    assert event.detail == "mcp:docs"
    home.memory.close()


@pytest.mark.parametrize(
    "written", ["trusted_mcp_servers = ['wiki', 'docs']", None], ids=["file", "environment"]
)
def test_servers_are_trusted_by_a_file_or_by_the_environment(tmp_path, written):
    file = tmp_path / "config.toml"
    file.write_text(written or "")
    environment = {} if written else {"THREADBOOK_TRUSTED_MCP_SERVERS": "wiki, docs"}

    assert load(file, environment=environment).trusted_mcp_servers == ("wiki", "docs")


def test_a_projects_own_file_trusts_nobody(tmp_path):
    project = ProjectFile(path="/srv/fern/.threadbook.toml", text="trusted_mcp_servers = ['wiki']")

    with pytest.raises(SettingsError, match="trusted_mcp_servers"):
        restriction([project])


def test_trust_does_not_lift_what_was_polluted_before(strict):
    calls(strict, A, "wiki")
    strict.run()

    strict.reopened(trusted_mcp_servers=("wiki",)).run()

    assert modes(strict) == {A.id: "polluted"}


def test_a_session_that_grew_is_judged_whole_and_its_folder_asked_for_again(strict):
    strict.write(A, B)
    strict.run()
    was = strict.position

    grown = Session(number=1, ended_at=NOON - 6 * HOUR_S - 1)
    calls(strict, grown, "wiki")
    strict.later(HOUR_S).run()

    assert modes(strict) == {A.id: "polluted", B.id: "enabled"}
    assert strict.selected() == {B.id}
    assert "polluted" in {each.cause for each in strict.events(ConsolidationRequested, after=was)}
    assert "make check" not in "".join(content(strict.root()).values())


def test_pollution_lasts_through_a_rebuild_and_whatever_the_transcript_says(strict):
    calls(strict, A, "wiki")
    strict.run()

    strict.memory.rebuild()
    strict.write(Session(number=1, memory_mode="enabled", ended_at=NOON - 6 * HOUR_S))
    strict.reopened(disable_on_external_context=False).later(HOUR_S).run()

    assert modes(strict) == {A.id: "polluted"}
    assert strict.memory.replay_verify() == []


def test_a_disabled_session_is_polluted_too(tmp_path):
    home = Home(tmp_path, disable_on_external_context=True, generate_memories=False)
    calls(home, A, "wiki")

    home.run()

    (event,) = home.events(ThreadPolluted)
    assert event.mode_before == "disabled"
    home.memory.close()
