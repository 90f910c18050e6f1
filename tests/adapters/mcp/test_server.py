"""What an agent's client gets from a real `threadbook mcp`, in both eras of the protocol."""

import json
import os
import shlex
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from mcp.shared.exceptions import MCPError
from threadbook.adapters.mcp.offers import OFFERS, RESOURCES
from threadbook.domain.events import Cited, MemoryShown, NoteAdded

from tests.adapters.mcp.clients import environment, words
from tests.adapters.mcp.conftest import CANARY, SESSION, A, B
from tests.application.homes import FERN, MOSS

NOTE = "2026-11-29T12-00-00-{}.md"


def test_the_tools_are_offered_with_their_words_schemas_and_hints(asked):
    tools = asked.tools()

    assert [tool.name for tool in tools] == [offer.name for offer in OFFERS]
    assert len(tools) <= 8
    for tool, offer in zip(tools, OFFERS, strict=True):
        assert tool.title == offer.title
        assert tool.input_schema == offer.input_schema
        assert tool.output_schema == offer.output_schema
        hints = tool.annotations
        assert hints.read_only_hint == offer.reads
        assert (hints.destructive_hint, hints.idempotent_hint) == (False, True)
        assert hints.open_world_hint is False


def test_the_client_is_told_what_the_server_is_for(asked):
    assert asked.client.server_info.name == "threadbook"
    assert asked.client.server_info.version
    assert "search_ranked" in asked.client.instructions


def test_an_agent_finds_reads_and_notes(asked, home):
    listed = asked.answer("list")
    found = asked.answer("search_ranked", query="what to run before a commit")
    best = found["results"][0]
    read = asked.answer(
        "read", path=best["path"], line_offset=best["start_line_number"], max_lines=1
    )

    assert {"path": "MEMORY.md", "entry_type": "file"} in listed["entries"]
    assert listed["next_cursor"] is None
    assert "always run make check" in best["content"]
    assert best["threads"] == [A.id]
    assert read["content"].strip() == best["content"].strip()

    before = home.position
    name = NOTE.format(asked.client.protocol_version.replace("-", "") + "-hint")
    text = f"the port of the test server is 4711 ({asked.client.protocol_version})"
    kept = asked.answer("add_ad_hoc_note", filename=name, note=text)

    path = f"extensions/ad_hoc/notes/{name}"
    assert kept == {"path": path, "added": True, "secrets_hidden": 0}
    assert asked.answer("read", path=path)["content"] == text
    assert [each.via for each in home.events(NoteAdded, after=before)] == ["mcp"]
    assert {each.actor for each in home.log(after=before)} == {"agent:mcp"}


def test_the_answer_stands_as_text_too(asked):
    result = asked("search", queries=["make check"], max_results=1)

    (content,) = result.content
    assert json.loads(content.text) == result.structured_content
    assert result.structured_content["path"] is None


@pytest.mark.parametrize(
    ("tool", "arguments", "told"),
    [
        ("read", {"path": "../../../etc/passwd"}, "must stay within the memory folder"),
        ("read", {"path": "/etc/passwd"}, "must stay within the memory folder"),
        ("read", {"path": ".git/HEAD"}, "path '.git/HEAD' does not exist"),
        ("read", {"path": "gone.md"}, "path 'gone.md' does not exist"),
        ("read", {"path": "MEMORY.md", "lines": 3}, "unknown field `lines`"),
        ("read", {"path": "MEMORY.md", "max_lines": "3"}, "got `str` - at `$.max_lines`"),
        ("read", {}, "required field `path`"),
        ("list", {"cursor": "x"}, "cursor 'x' is no count"),
        ("search", {"query": "make"}, "unknown field `query`"),
        ("search", {"queries": []}, "queries is empty"),
        ("search_ranked", {"query": " "}, "query has no letter or digit"),
        ("add_ad_hoc_note", {"filename": "../x.md", "note": "x"}, "filename '../x.md' is not of"),
        ("add_ad_hoc_note", {"filename": NOTE.format("x"), "note": " "}, "the note is empty"),
        ("report_use", {"thread_ids": "x"}, "got `str` - at `$.thread_ids`"),
    ],
)
def test_what_is_refused_is_refused_in_words_that_name_it(asked, tool, arguments, told):
    assert told in asked.error(tool, **arguments)


def test_what_is_no_tool_is_an_error_of_the_protocol_that_names_those_there_are(asked):
    with pytest.raises(MCPError, match="unknown tool 'forget'; there are add_ad_hoc_note, list"):
        asked("forget", thread_id=A.id)


def test_nothing_that_is_offered_approves_forgets_or_changes_a_mode(asked):
    names = {tool.name for tool in asked.tools()}

    assert names == {
        "add_ad_hoc_note",
        "list",
        "read",
        "search",
        "search_ranked",
        "report_use",
    }


def test_another_projects_words_are_on_no_surface_and_its_own_server_has_them(asked, home):
    everything = [
        asked("search", queries=["canary"], case_sensitive=False),
        asked("search", queries=[B.id]),
        asked("search_ranked", query="feed push canary always"),
        asked("list", path="rollout_summaries"),
        asked("read", path="MEMORY.md"),
        asked("read", path="raw_memories.md"),
        asked("report_use", thread_ids=[B.id]),
    ]
    texts = [content.text for each in everything for content in each.content]
    texts += [asked.resource(uri) for uri in RESOURCES]

    assert not [text for text in texts if CANARY in text]
    assert everything[0].structured_content["matches"] == []
    assert everything[-1].structured_content["counted"] == []
    control = home.memory.search("canary", cwd=MOSS)
    assert {match.path for match in control.matches} >= {"MEMORY.md", "memory_summary.md"}


def test_the_summary_and_the_handbook_are_resources(asked):
    assert [resource.uri for resource in asked.resources()] == list(RESOURCES)
    assert asked.resource("memory://summary").startswith("v1\n")
    assert "# Task Group" in asked.resource("memory://MEMORY.md")
    with pytest.raises(MCPError, match="unknown resource"):
        asked.resource("memory://raw_memories.md")


def test_what_a_session_was_given_is_recorded_and_what_it_used_counts_once(clients, home):
    first, second = clients.values()
    before = home.position

    first.answer("search_ranked", query="make check")
    shown = home.events(MemoryShown, after=before)
    once = first.answer("report_use", thread_ids=[A.id, B.id, "no id"], turn=7)
    again = second.answer("report_use", thread_ids=[A.id], turn=7)

    assert [(each.session_id, each.via, each.thread_ids) for each in shown] == [
        (SESSION, "search", (A.id,))
    ]
    assert once == {
        "counted": [A.id],
        "not_counted": {B.id: "not_in_reach", "no id": "not_an_id"},
    }
    assert again == {"counted": [], "not_counted": {A.id: "counted_before"}}
    assert [each.thread_id for each in home.events(Cited, after=before)] == [A.id]


def test_a_server_sees_what_was_published_since_it_started(clients, home):
    path = home.root(home.scope_of(A)) / "MEMORY.md"
    before = {
        era: asked.answer("search", queries=["zirbelkiefer"]) for era, asked in clients.items()
    }

    text = path.read_text()
    path.write_text(text + "- zirbelkiefer\n")
    found = {
        era: asked.answer("search", queries=["zirbelkiefer"]) for era, asked in clients.items()
    }
    ranked = [asked.answer("search_ranked", query="zirbelkiefer") for asked in clients.values()]
    path.write_text(text)

    assert not any(each["matches"] for each in before.values())
    assert all(len(each["matches"]) == 1 for each in found.values())
    assert all(len(each["results"]) == 1 for each in ranked)


HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "by hand", "version": "0"},
    },
}


def started(home, *args, **variables):
    return subprocess.Popen(
        words(home, *args),
        env=environment(PATH="/usr/bin:/bin", HOME="/nowhere", **variables),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def said(process, message):
    process.stdin.write(json.dumps(message) + "\n")
    process.stdin.flush()
    return json.loads(process.stdout.readline())


def test_a_server_ends_when_its_client_is_gone(home):
    process = started(home, "--cwd", FERN)
    assert said(process, HELLO)["result"]["serverInfo"]["name"] == "threadbook"

    out, err = process.communicate(timeout=20)

    assert (process.returncode, out, err) == (0, "", "")


CLIENT = """
import subprocess, sys
server = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE)
server.stdin.write(sys.stdin.readline().encode())
server.stdin.flush()
sys.stdin.read()
"""


def test_a_client_that_is_killed_takes_its_server_along(home):
    client = subprocess.Popen(
        [sys.executable, "-c", CLIENT, *words(home, "--cwd", FERN)],
        env=environment(PATH="/usr/bin:/bin", HOME="/nowhere"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert said(client, HELLO)["result"]["instructions"]

    client.kill()

    # The server holds the other end of this pipe until it has ended.
    assert client.stdout.read() == ""
    assert client.wait() == -signal.SIGKILL


def test_a_client_that_listens_no_more_is_no_reason_for_a_traceback(home):
    process = started(home, "--cwd", FERN)
    said(process, HELLO)

    process.stdout.close()
    process.stdin.write(json.dumps(HELLO | {"id": 2, "method": "ping"}) + "\n")
    process.stdin.flush()

    assert process.wait(timeout=20) == 0
    assert process.stderr.read() == ""


def test_without_its_two_pipes_it_says_that_an_agent_starts_it(home):
    command = shlex.join(words(home, "--cwd", FERN))
    for closed in ("<&-", ">&-"):
        ran = subprocess.run(
            ["sh", "-c", f"{command} {closed}"],
            env=environment(PATH="/usr/bin:/bin", HOME="/nowhere"),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )

        assert ran.returncode == 2
        assert "an agent starts it" in ran.stderr
        assert "Traceback" not in ran.stderr


def test_two_clients_that_note_at_once_lose_nothing(clients, home):
    before = len(home.events(NoteAdded))

    def notes(era):
        return [
            clients[era].answer(
                "add_ad_hoc_note", filename=NOTE.format(f"{era}-{n}"), note=f"{era} says {n}"
            )["added"]
            for n in range(8)
        ]

    with ThreadPoolExecutor() as both:
        kept = list(both.map(notes, clients))

    assert kept == [[True] * 8] * 2
    assert len(home.events(NoteAdded)) == before + 16
    found = clients["legacy"].answer("search", queries=["auto says"], path="extensions")
    assert len(found["matches"]) == 8


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_server_that_is_told_to_end_ends_well_without_a_word(home, number):
    process = started(home, "--cwd", FERN)
    said(process, HELLO)

    process.send_signal(number)

    assert process.wait(timeout=20) == 0
    assert process.stderr.read() == ""


def test_what_is_no_message_of_the_protocol_ends_nothing(home):
    process = started(home, "--cwd", FERN)
    process.stdin.write("\n{}\n[1]\nnonsense\n\x00\n")

    answer = said(process, HELLO)
    while answer.get("id") != 1:
        answer = json.loads(process.stdout.readline())

    assert answer["result"]["instructions"]
    process.communicate(timeout=20)


INITIALIZED = json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}) + "\n"


@pytest.mark.parametrize(
    "params", [{"name": "search", "arguments": {"queries": ["\ud83d"]}}, {"name": "\ud83d"}]
)
def test_a_request_with_half_a_character_is_answered_under_its_own_id(home, params):
    process = started(home, "--cwd", FERN)
    said(process, HELLO)
    process.stdin.write(INITIALIZED)
    asked = {"jsonrpc": "2.0", "id": "7", "method": "tools/call", "params": params}

    told = said(process, asked)
    after = said(process, asked | {"params": {"name": "list", "arguments": {}}})

    assert told["id"] == after["id"] == "7"
    assert "half a character" in told["error"]["message"]
    assert after["result"]["structuredContent"]["entries"]
    process.communicate(timeout=20)


@pytest.mark.skipif(sys.platform == "darwin", reason="names there are UTF-8")
def test_a_folder_whose_name_is_no_text_ends_no_server(home):
    process = started(home, "--cwd", os.fsdecode(b"/home/\xff"))
    said(process, HELLO)
    process.stdin.write(INITIALIZED)
    asked = {"jsonrpc": "2.0", "id": 2, "method": "resources/read"}

    told = said(process, asked | {"params": {"uri": "memory://summary"}})
    again = said(process, asked | {"params": {"uri": "memory://MEMORY.md"}})
    _, err = process.communicate(timeout=20)

    assert "belongs to no project" in told["error"]["message"]
    assert "belongs to no project" in again["error"]["message"]
    assert (process.returncode, err) == (0, "")


def test_a_server_without_a_memory_starts_and_says_why_it_has_none(home, tmp_path):
    settings = tmp_path / "config.toml"
    settings.write_text("use_memories = maybe\n")
    process = started(home, "--cwd", FERN, "--config", settings)

    hello = said(process, HELLO)["result"]
    call = {"jsonrpc": "2.0", "id": 2, "method": "tools/call"}
    process.stdin.write(
        json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}) + "\n"
    )
    told = said(process, call | {"params": {"name": "list", "arguments": {}}})["result"]
    _, err = process.communicate(timeout=20)

    assert str(settings) in hello["instructions"]
    assert told["isError"]
    assert str(settings) in told["content"][0]["text"]
    assert str(settings) in err
    assert process.returncode == 0
