"""Every kind of reply has its end: the open cases, and what else servers do, over real HTTP."""

import gzip
import json
import socket
import threading
import time
from contextlib import contextmanager, suppress

import pytest
from threadbook.application.ports import Extracted

from tests.adapters.models.sessions import Session, extractor, outcome, read, verdict
from tests.model_server import (
    BEHAVIOURS,
    CASES,
    STYLES,
    ModelServer,
    Reply,
    error,
    error_event,
    failed,
    message,
    response,
)

GOOD = {"raw_memory": "- a", "rollout_summary": "b", "rollout_slug": "c"}


def said(**more):
    return Reply(response(json.dumps(GOOD | more)))


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("case", CASES)
def test_each_open_case_ends_as_it_should_in_each_style(case, style):
    with ModelServer(case, style=style) as server:
        found = read(server)

    wanted = CASES[case]["verdict"]
    assert verdict(found) == ("store" if wanted == "fallback" else wanted)
    assert len(server.asked) == found.tokens.calls
    if style in ("sse", "json") and CASES[case]["http_status"] == 200:
        assert found.tokens.calls == 1
        assert (found.tokens.input, found.tokens.output) == (10, 20)
    assert found.tokens.model == "luna"


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("case", [name for name in CASES if CASES[name]["http_status"] == 200])
def test_chat_completions_end_alike(case, style):
    def only_chat(asked):
        return BEHAVIOURS["responses_api_404"] if asked.mode == "responses" else case

    with ModelServer(only_chat, style=style) as server:
        found = read(server)

    assert verdict(found) == CASES[case]["verdict"]
    assert [asked.mode for asked in server.asked] == ["responses", "chat_schema"]


@pytest.mark.parametrize(
    ("script", "kind", "reason", "stops"),
    [
        ("cut", "transient", "connection_lost", False),
        ("cut_at_once", "transient", "hung_up", False),
        ("hang", "transient", "deadline", False),
        ("hang_in_stream", "transient", "deadline", False),
        ("trickle", "transient", "deadline", False),
        ("unavailable", "transient", "http_503", False),
        ("unauthorized", "transient", "key_refused", True),
        ("forbidden", "transient", "access_refused", True),
        ("insufficient_quota", "transient", "quota_used_up", True),
        ("response_failed", "transient", "server_failed", False),
        ("error_event", "transient", "server_failed", False),
        ("content_filter", "refused", "content_filter", False),
        ("no_answer", "bad_reply", "no_answer", False),
        ("web_page", "transient", "no_api_reply", False),
        (failed("rate_limit_exceeded", "try again in 1.2s."), "transient", "rate_limited", False),
        (failed("insufficient_quota"), "transient", "quota_used_up", True),
        (failed("invalid_prompt"), "refused", "invalid_prompt", False),
        (error_event("insufficient_quota"), "transient", "quota_used_up", True),
        (Reply("not found", status=404), "transient", "no_such_endpoint_or_model", True),
        (error(404, code="model_not_found"), "transient", "no_such_endpoint_or_model", True),
        (error(400, "something else"), "bad_reply", "http_400", False),
        (error(402), "transient", "quota_used_up", True),
        (error(409), "transient", "http_409", False),
        (error(307, headers={"location": "/v2"}), "transient", "http_307_redirect", True),
        (
            error(429, "Request too large for luna", code="rate_limit_exceeded"),
            "too_long",
            "context_too_long",
            False,
        ),
        (said(rollout_slug=5), "bad_reply", "reply_schema:rollout_slug:string_type", False),
        (said(password="hunter2hunter2"), "bad_reply", "reply_schema:extra_forbidden", False),
        (Reply(response("[1]")), "bad_reply", "reply_not_an_object", False),
        (Reply(response('{"whole": ' + json.dumps(GOOD))), "bad_reply", "reply_not_json", False),
        (Reply(response("{}{}")), "bad_reply", "reply_has_several_objects", False),
        (Reply(response('{"a": NaN}')), "bad_reply", "reply_not_json", False),
        (Reply(response('{"a": 1, "a": 2}')), "bad_reply", "reply_names_a_field_twice", False),
        (Reply(response("[" * 10_000)), "bad_reply", "reply_not_json", False),
        (
            Reply(response("{", usage={"input_tokens": 5, "output_tokens": 2000})),
            "too_long",
            "cut_by_length",
            False,
        ),
    ],
    ids=str,
)
def test_what_else_a_server_does_has_its_reason(script, kind, reason, stops):
    with ModelServer(script) as server:
        found = read(server, deadline_s=0.5)

    assert (found.kind, found.reason, found.stops) == (kind, reason, stops)
    assert found.tokens.calls == len(server.asked)


@pytest.mark.parametrize(
    ("headers", "wait_s"),
    [
        ({"retry-after": "7"}, 7),
        ({"retry-after": "0.2"}, 1),
        ({"retry-after-ms": "2500", "retry-after": "9"}, 3),
        (
            {
                "date": "Sun, 29 Nov 2026 12:00:00 GMT",
                "retry-after": "Sun, 29 Nov 2026 12:01:30 GMT",
            },
            90,
        ),
        ({"retry-after": "Thu, 01 Jan 1970 00:00:00 GMT"}, 0),
        ({"retry-after": "99999999999"}, 86_400),
        ({"retry-after": "soon"}, None),
        ({}, None),
    ],
)
@pytest.mark.parametrize("status", [429, 503])
def test_the_stated_wait_is_kept(status, headers, wait_s):
    with ModelServer(error(status, headers=headers)) as server:
        found = read(server)

    assert (found.kind, found.retry_after_s) == ("transient", wait_s)


def test_a_wait_that_is_only_in_the_words_of_a_failed_response_is_kept():
    with ModelServer(failed("rate_limit_exceeded", "Please try again in 11.054s.")) as server:
        found = read(server)

    assert found.retry_after_s == 12


def test_who_is_hung_up_on_before_an_answer_asks_once_more():
    session = Session()
    with ModelServer(["derived", "cut_at_once", "derived"]) as server, extractor(server) as asking:
        outcome(asking.extract(session.material))
        found = outcome(asking.extract(session.material))

    assert verdict(found) == "store"
    assert found.tokens.calls == 2
    assert len(session.reserved) == len(server.asked) == 3


def test_what_nobody_listens_at_is_no_connection():
    with ModelServer() as server:
        base_url = server.base_url
    with extractor(server, base_url=base_url) as asking:
        found = outcome(asking.extract(Session().material))

    assert (found.kind, found.reason, found.stops) == ("transient", "no_connection", True)


@pytest.mark.parametrize(
    "base_url",
    [
        "http://[::1",
        "http://a b/v1",
        "http://",
        "http://127.0.0.1:99999",
        "http://a..b",
        "https://a/?k=v",
    ],
)
def test_an_address_that_is_none_ends_in_words(base_url):
    with ModelServer() as server:
        found = read(server, base_url=base_url)

    assert found.kind == "transient"


def test_only_the_final_message_is_the_answer_wherever_it_stands():
    last = message("I am done.", phase="commentary")
    final = message(json.dumps(GOOD), phase="final_answer")
    with ModelServer(Reply(response(final, last, "And so on."))) as server:
        found = read(server)

    assert found.rollout_summary == "b"


def test_a_refusal_beside_an_answer_is_a_refusal():
    no = message("") | {"content": [{"type": "refusal", "refusal": "I will not."}]}
    with ModelServer(Reply(response(json.dumps(GOOD), no))) as server:
        found = read(server)

    assert (found.kind, found.reason) == ("refused", "refused")


def test_a_line_separator_in_an_answer_breaks_no_event():
    odd = "one\u2028two\u2029three\u0085four\x0bfive"
    with ModelServer(said(rollout_summary=odd)) as server:
        found = read(server)
    # The server's JSON has the letters themselves.
    with ModelServer(
        Reply(response(json.dumps(GOOD | {"raw_memory": odd}, ensure_ascii=False)))
    ) as (server):
        other = read(server)

    assert found.rollout_summary == odd
    assert other.raw_memory == odd


def test_what_no_body_can_hold_goes():
    with ModelServer(said(raw_memory="a\ud800b\0c \U0001f33f")) as server:
        found = read(server)

    assert found.raw_memory == "a\ufffdbc \U0001f33f"


def test_nothing_that_a_model_or_a_server_wrote_gets_into_a_reason():
    word = "XYZZY-9137"
    scripts = [
        said(**{word: 1}),
        said(rollout_slug=[word]),
        Reply(response(word)),
        Reply(response('{"raw_memory": "' + word)),
        Reply(word, status=400),
        error(400, word, code=word, param=word),
        error(429, word, code=word),
        error(500, word, code=word),
        failed(word, word),
        error_event(word, word),
        Reply(response(status="incomplete", incomplete_details={"reason": word})),
        Reply(response(message("") | {"content": [{"type": "refusal", "refusal": word}]})),
    ]
    with ModelServer(list(scripts)) as server, extractor(server) as asking:
        for script in scripts:
            server.script = script
            found = outcome(asking.extract(Session().material))
            assert not isinstance(found, Extracted), script
            while found is not None:
                assert word not in f"{found!r} {found}", script
                found = found.__cause__ or (
                    None if found.__suppress_context__ else found.__context__
                )


def test_a_hanging_reply_holds_no_other():
    script = {"thread-a": "hang", "thread-b": "trickle"}
    with ModelServer(script) as server, extractor(server) as asking:
        slow = [asking.extract(Session(name).material) for name in script]
        begun = time.monotonic()
        others = [outcome(asking.extract(Session().material)) for _ in range(4)]
        took_s = time.monotonic() - begun

        assert not any(future.done() for future in slow)

    assert [verdict(found) for found in others] == ["store"] * 4
    assert took_s < 5


@pytest.mark.parametrize("how", ["stop", "cancel"])
@pytest.mark.parametrize("script", ["hang", "trickle"])
def test_whoever_is_stopped_ends_within_a_second_and_hangs_up(script, how):
    with ModelServer(script) as server, extractor(server, deadline_s=60) as asking:
        session = Session()
        futures = [asking.extract(session.material) for _ in range(3)]
        asked = server.wait_for(3)
        time.sleep(0.05)

        begun = time.monotonic()
        if how == "stop":
            asking.stop()
            ends = [outcome(future, 1) for future in futures]
        else:
            assert all(future.cancel() for future in futures)
        took_s = time.monotonic() - begun

        assert took_s < 1
        assert all(each.gone.wait(1) for each in asked)
    if how == "stop":
        for end, most in zip(ends, session.reserved, strict=True):
            assert (end.kind, end.reason) == ("transient", "stopped")
            assert end.tokens.calls == 1
            assert end.tokens.input + end.tokens.output == most


def test_what_is_asked_after_the_stop_ends_at_once_and_costs_nothing():
    with ModelServer() as server, extractor(server) as asking:
        asking.stop()
        asking.stop()
        never_begun = outcome(asking.extract(Session().material), 1)
    with ModelServer() as server, extractor(server) as asking:
        outcome(asking.extract(Session().material))
        asking.stop()
        later = outcome(asking.extract(Session().material), 1)

    for found in (never_begun, later):
        assert (found.reason, found.tokens.calls) == ("stopped", 0)


def test_a_stop_may_come_from_any_thread_while_sessions_are_handed_in():
    with ModelServer() as server, extractor(server) as asking:
        outcome(asking.extract(Session().material))
        futures = []
        stopper = threading.Timer(0.05, asking.stop)
        stopper.start()
        while stopper.is_alive():
            futures.append(asking.extract(Session().material))
            stopper.join(0.002)
        futures.append(asking.extract(Session().material))

        ends = [outcome(future, 2) for future in futures]

    assert all(isinstance(end, Extracted) or end.reason == "stopped" for end in ends)
    assert ends[-1].reason == "stopped"


def test_a_deadline_books_what_was_reserved():
    session = Session()
    with ModelServer("hang") as server:
        found = read(server, session, deadline_s=0.2)

    assert found.reason == "deadline"
    assert [found.tokens.input + found.tokens.output] == session.reserved


def test_the_share_that_a_provider_has_left_is_the_smallest_it_says():
    headers = {
        "x-ratelimit-limit-requests": "100",
        "x-ratelimit-remaining-requests": "80",
        "x-ratelimit-limit-tokens": "40000",
        "x-ratelimit-remaining-tokens": "12000",
    }
    script = [Reply(response(json.dumps(GOOD)), headers=headers)]
    with ModelServer(script) as server, extractor(server) as asking:
        before = asking.remaining_percent
        outcome(asking.extract(Session().material))
        after = asking.remaining_percent
        outcome(asking.extract(Session().material))  # It says nothing this time.

        assert (before, after, asking.remaining_percent) == (None, 30.0, 30.0)


@contextmanager
def endless(head):
    """A server that answers everybody with this head, and a body without end."""

    def pour(connection):
        with connection, suppress(OSError):
            connection.recv(1 << 16)
            connection.sendall(head.replace("\n", "\r\n").encode())
            while True:
                connection.sendall(b"x" * (1 << 16))
                poured.append(1 << 16)

    def accept():
        with suppress(OSError):
            while True:
                threading.Thread(target=pour, args=(listening.accept()[0],), daemon=True).start()

    poured = []
    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=accept, daemon=True).start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/v1", poured


def test_an_error_whose_body_has_no_end_is_known_by_its_beginning():
    with endless("HTTP/1.1 503 Busy\nconnection: close\n\n") as (base_url, poured):
        found = read(None, base_url=base_url, deadline_s=20)

    assert (found.reason, found.tokens.calls) == ("http_503", 1)
    assert sum(poured) < 64 << 20  # What sockets hold, and no gigabytes.


@pytest.mark.parametrize("packed", ["gzip, gzip", "zstd", "br"])
def test_an_answer_that_grows_without_measure_is_not_unpacked(packed):
    text = gzip.compress(gzip.compress(json.dumps(response(json.dumps(GOOD))).encode()))
    with ModelServer() as server:
        server.script = Reply(
            text.decode("latin-1"), headers={"content-encoding": packed}, style="json"
        )
        found = read(server)

    assert found.reason == "no_api_reply"
    assert set(server.asked[0].headers["accept-encoding"].split(", ")) == {"gzip", "deflate"}


def test_one_run_has_one_client_that_keeps_its_connection():
    with ModelServer() as server, extractor(server) as asking:
        for _ in range(5):
            outcome(asking.extract(Session().material))

    assert (len(server.asked), server.connections) == (5, 1)
