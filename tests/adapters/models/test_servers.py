"""What servers can do is found out once, and remembered."""

import json
import subprocess
import sys
import threading

import pytest
from threadbook.adapters.models.servers import FILE, KNOWN_S, Server, Servers
from threadbook.application.ports import ExtractionFailed

from tests.adapters.models.sessions import Session, extractor, outcome, read, verdict
from tests.application.homes import ROOT
from tests.model_server import BEHAVIOURS, ModelServer, Reply, error, response

GOOD = json.dumps({"raw_memory": "- a", "rollout_summary": "b", "rollout_slug": "c"})


def modes(server):
    return [asked.mode for asked in server.asked]


@pytest.mark.parametrize(
    ("script", "first", "then"),
    [
        ("derived", ["responses"], "responses"),
        ("schema_unsupported_400", ["responses", "chat_json"], "chat_json"),
        ("responses_api_404", ["responses", "chat_schema"], "chat_schema"),
        ("only_json_object", ["responses", "chat_schema", "chat_json"], "chat_json"),
        ("ignores_schema", ["responses", "chat_schema"], "chat_schema"),
        ("no_reasoning", ["responses", "responses"], "responses"),
        ("max_completion_tokens", ["responses", "chat_schema", "chat_schema"], "chat_schema"),
    ],
)
def test_a_server_is_asked_the_strongest_way_it_can_and_the_next_time_at_once(
    tmp_path, script, first, then
):
    with ModelServer(script) as server:
        with extractor(server, home=tmp_path) as asking:
            found = [outcome(asking.extract(Session().material)) for _ in range(2)]
        in_one_run = modes(server)
        server.asked.clear()
        found.append(read(server, home=tmp_path))  # Another run.

    assert [verdict(each) for each in found] == ["store"] * 3
    assert found[0].tokens.calls == len(first)
    assert in_one_run == [*first, then]
    assert modes(server) == [then]


def test_what_was_learned_outlives_the_process(tmp_path):
    code = (
        "import sys; from pathlib import Path; from types import SimpleNamespace as N\n"
        "from tests.adapters.models.sessions import read\n"
        "found = read(N(base_url=sys.argv[1]), home=Path(sys.argv[2]))\n"
        "assert found.rollout_summary.strip(), found\n"
    )
    with ModelServer("responses_api_404") as server:
        for _ in range(2):
            subprocess.run(
                [sys.executable, "-c", code, server.base_url, str(tmp_path)],
                cwd=ROOT,
                env={"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}", "PATH": ""},
                check=True,
                timeout=60,
            )

    assert modes(server) == ["responses", "chat_schema", "chat_schema"]
    assert (tmp_path / FILE).stat().st_mode & 0o777 == 0o600
    assert [each.name for each in tmp_path.iterdir()] == [FILE]


@pytest.mark.parametrize("content", [b"", b"{", b"\xff", b"[]", b'{"a b": {"mode": "telepathy"}}'])
def test_a_broken_file_is_as_good_as_none_and_is_written_anew(tmp_path, content):
    (tmp_path / FILE).write_bytes(content)

    with ModelServer("responses_api_404") as server:
        read(server, home=tmp_path)

    (kept,) = json.loads((tmp_path / FILE).read_text()).values()
    assert kept["mode"] == "chat_schema"


def test_a_file_that_cannot_be_written_costs_no_memory(tmp_path):
    with ModelServer("responses_api_404") as server:
        found = read(server, home=tmp_path / "nowhere")

    assert verdict(found) == "store"


def test_what_was_learned_counts_for_a_week_and_for_its_server_and_model(tmp_path):
    now = 1_000_000.0
    known = Servers(tmp_path, clock=lambda: now)
    known.learn("http://a/v1/", "gemma", Server(mode="chat_json"))

    def mode(base_url, model, at):
        return Servers(tmp_path, clock=lambda: at).of(base_url, model).mode

    assert mode("http://a/v1", "gemma", now + KNOWN_S - 1) == "chat_json"
    assert mode("http://a/v1", "gemma", now + KNOWN_S) == "responses"
    assert mode("http://a/v1", "gemma", now - 1) == "responses"
    assert mode("http://a/v1", "llama", now) == "responses"
    assert mode("http://b/v1", "gemma", now) == "responses"


def test_no_password_of_an_address_is_written(tmp_path):
    Servers(tmp_path).learn("http://me:hunter2@a/v1?key=sesame", "m", Server(mode="chat_json"))

    kept = (tmp_path / FILE).read_text()
    assert "hunter2" not in kept
    assert "sesame" not in kept
    assert "http://a/v1 m" in kept


def test_two_runs_learn_into_one_file(tmp_path):
    one, other = Servers(tmp_path), Servers(tmp_path)
    one.of("http://a", "m")
    other.of("http://a", "m")
    one.learn("http://a", "m", Server(mode="chat_json"))
    other.learn("http://b", "m", Server(mode="chat_schema"))

    assert Servers(tmp_path).of("http://a", "m").mode == "chat_json"
    assert Servers(tmp_path).of("http://b", "m").mode == "chat_schema"


def test_a_server_that_was_proven_is_not_doubted_for_one_bad_answer(tmp_path):
    with ModelServer(["derived", Reply(response("no object")), "derived"]) as server:
        found = [read(server, home=tmp_path) for _ in range(3)]

    assert modes(server) == ["responses"] * 3
    assert [verdict(each) for each in found] == ["store", "fail_retry", "store"]
    assert found[1].reason == "reply_not_json"


def test_prose_from_a_server_without_chat_is_a_bad_reply_and_settles_that_it_has_none(tmp_path):
    def script(asked):
        return Reply(response("no object")) if asked.mode == "responses" else error(404)

    with ModelServer(script) as server:
        first = read(server, home=tmp_path)
        second = read(server, home=tmp_path)

    assert (first.kind, first.reason) == (second.kind, second.reason)
    assert (first.kind, first.reason) == ("bad_reply", "reply_not_json")
    assert modes(server) == ["responses", "chat_schema", "responses"]
    assert (first.tokens.calls, first.tokens.output) == (2, 20)


def test_prose_at_its_cap_is_prose_and_no_cut_object(tmp_path):
    usage = {"input_tokens": 5, "output_tokens": 2_000}

    def script(asked):
        prose = Reply(response("this session was", usage=usage))
        return prose if asked.mode == "responses" else "derived"

    with ModelServer(script) as server:
        found = read(server, home=tmp_path)

    assert verdict(found) == "store"
    assert (found.tokens.calls, found.tokens.output) == (2, 2_020)


def test_an_object_that_was_cut_shows_as_well_that_a_server_knows_schemas(tmp_path):
    usage = {"input_tokens": 5, "output_tokens": 2_000}

    def script(asked):
        if asked.mode == "responses":
            return Reply(response("prose"))
        return Reply(response('{"rollout_summary": "and so', usage=usage))

    with ModelServer(script) as server:
        found = [read(server, home=tmp_path) for _ in range(2)]

    assert [each.reason for each in found] == ["cut_by_length"] * 2
    assert modes(server) == ["responses", "chat_schema", "chat_schema"]


def test_a_server_may_hang_up_before_each_of_the_ways_it_is_asked(tmp_path):
    script = ["cut_at_once", Reply("not found", status=404), "cut_at_once", "derived"]
    with ModelServer(script) as server:
        found = read(server, home=tmp_path)

    assert verdict(found) == "store"
    assert modes(server) == ["responses", "responses", "chat_schema", "chat_schema"]


def test_a_fallback_that_comes_to_nothing_is_not_remembered(tmp_path):
    with ModelServer(Reply("not found", status=404)) as server:
        found = read(server, home=tmp_path)
        server.script = "derived"
        server.asked.clear()
        later = read(server, home=tmp_path)

    assert (found.reason, found.stops, found.tokens.calls) == (
        "no_such_endpoint_or_model",
        True,
        2,
    )
    assert verdict(later) == "store"
    assert modes(server) == ["responses"]


def test_a_model_that_is_not_there_is_no_missing_endpoint():
    with ModelServer(error(404, code="model_not_found")) as server:
        found = read(server)

    assert found.stops
    assert modes(server) == ["responses"]


def test_a_fallback_is_as_strict_as_ever():
    def script(asked):
        if asked.mode == "responses":
            return BEHAVIOURS["schema_unsupported_400"]
        return "extra_field"

    with ModelServer(script) as server:
        found = read(server)

    assert (found.kind, found.reason) == ("bad_reply", "reply_schema:extra_forbidden")
    assert modes(server) == ["responses", "chat_json"]


def test_each_call_is_asked_for_beforehand_the_fallback_too():
    session = Session()
    session.is_spent = True  # What was reserved is gone.
    session.budget = 10_000
    with ModelServer("responses_api_404") as server:
        enough = read(server, session)
        session.budget = 5_000
        too_little = read(server, session)
        session.budget = 0
        nothing = read(server, session)

    assert verdict(enough) == "store"
    for found, calls in ((too_little, 1), (nothing, 0)):
        assert isinstance(found, ExtractionFailed)
        assert (found.kind, found.reason, found.stops) == ("transient", "budget", True)
        assert found.tokens.calls == calls
    assert len(server.asked) == 3


def test_eight_who_find_out_at_once_all_come_through(tmp_path):
    gate = threading.Event()

    def script(asked):
        if asked.mode == "responses":
            return Reply("not found", status=404, hold=gate)
        return "derived"

    with ModelServer(script) as server, extractor(server, home=tmp_path) as asking:
        futures = [asking.extract(Session().material) for _ in range(8)]
        server.wait_for(8)
        gate.set()

        assert [verdict(outcome(future)) for future in futures] == ["store"] * 8


def test_a_thought_in_front_of_an_answer_is_no_answer():
    def script(asked):
        return (
            Reply(response("<think>{maybe} {so}</think>\n" + GOOD))
            if asked.mode != "responses"
            else error(404)
        )

    with ModelServer(script) as server:
        found = read(server)

    assert found.rollout_summary == "b"
