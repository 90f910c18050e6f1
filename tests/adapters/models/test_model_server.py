"""The tests' own model server: what other tests stand on, asked by a plain HTTP client."""

import http.client
import json
import subprocess
import sys
import time

import pytest

from tests.application.homes import ROOT
from tests.model_server import BEHAVIOURS, CASES, STYLES, ModelServer, Reply, response


def ask(server, path="/v1/responses", text="FACT[make check]", **more):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    key = "input" if path.endswith("responses") else "messages"
    body = {key: [{"role": "user", "content": text}], "stream": True} | more
    connection.request("POST", path, json.dumps(body), {"content-type": "application/json"})
    answer = connection.getresponse()
    return answer.status, answer.headers["content-type"], answer.read().decode()


def test_a_derived_answer_is_made_of_what_was_sent_and_always_the_same():
    with ModelServer() as server:
        first, second = ask(server), ask(server)
        other = ask(server, text='{"type":"input_text","text":"please run \\"tox\\""}')

    assert first == second
    assert "make check" in first[2]
    assert 'please run \\\\\\"tox\\\\\\"' in other[2]
    assert [asked.evidence for asked in server.asked[:2]] == ["FACT[make check]"] * 2


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("path", ["/v1/responses", "/v1/chat/completions"])
@pytest.mark.parametrize("case", CASES)
def test_every_case_is_served_in_every_style_by_both_endpoints(case, path, style):
    with ModelServer(case, style=style) as server:
        status, kind, body = ask(server, path)

    assert status == CASES[case]["http_status"] or (case in BEHAVIOURS and status == 200)
    if status == 200:
        assert kind == ("application/json" if style == "json" else "text/event-stream")
        whole = "[DONE]" in body or "event: response." in body.rpartition("output_item")[2]
        assert whole == (style in ("sse", "no_item_added"))


def test_a_script_answers_by_turn_and_by_what_a_request_holds():
    with ModelServer({"thread-1": ["rate_limited", "unavailable"]}) as server:
        of_one = [ask(server, text="thread-1")[0] for _ in range(3)]
        of_another = ask(server, text="thread-2")[0]

    assert of_one == [429, 503, 200]
    assert of_another == 200


def test_the_waiting_time_of_a_case_is_a_real_header():
    with ModelServer("rate_limited") as server:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
        connection.request("POST", "/v1/responses", "{}")
        answer = connection.getresponse()

    assert answer.headers["retry-after"] == "7"
    assert json.loads(answer.read()) == {
        "error": {"message": "slow down", "type": "rate_limit_error"}
    }


def test_one_connection_carries_many_requests():
    with ModelServer(Reply(response("{}"))) as server:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
        for _ in range(3):
            connection.request("POST", "/v1/responses", '{"stream": true}')
            assert connection.getresponse().read()

    assert (len(server.asked), server.connections) == (3, 1)


def test_as_a_program_it_tells_its_port_and_ends_with_its_input(tmp_path):
    port_file, kept = tmp_path / "port", tmp_path / "asked.jsonl"
    program = subprocess.Popen(
        [sys.executable, "-m", "tests.model_server", "--port-file", port_file, "--asked", kept],
        cwd=ROOT,
        stdin=subprocess.PIPE,
    )
    try:
        until = time.monotonic() + 10
        while not port_file.exists() and time.monotonic() < until:
            time.sleep(0.01)
        connection = http.client.HTTPConnection("127.0.0.1", int(port_file.read_text()))
        connection.request("POST", "/v1/responses", '{"input": [], "stream": true}')
        status = connection.getresponse().status
    finally:
        program.communicate(timeout=10)

    assert status == 200
    assert program.returncode == 0
    assert json.loads(kept.read_text())["path"] == "/v1/responses"
