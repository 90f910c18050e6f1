"""A consolidation that comes to nothing: every limit, every refusal, every way of being stopped.

Whichever it is, its staging is gone, the home is as it was, what it cost is told, and the reason is
a code (`Asking` looks).
"""

import signal
import threading
import time
from itertools import count

import pytest
from msgspec.structs import replace
from threadbook.adapters.models import loop
from threadbook.adapters.models.consolidator import limits_for
from threadbook.adapters.models.loop import LEFT_OUT, Limits
from threadbook.application.ports import ConsolidationFailed
from threadbook.application.surroundings import Provider

from tests.adapters.models.consolidating import MODEL, STAGED, asking, only_chat, task
from tests.model_server import Reply, call, error, refusal, response
from tests.model_turns import FINISH, NEVER, wrote

PAGE = "x" * 18_000  # What a read gives.
READ = [("read", {"path": "raw_memories.md", "offset": None})]


def test_a_model_that_never_finishes_is_ended_after_forty_turns(tmp_path):
    with asking(tmp_path, NEVER, repeats=True) as (_, it):
        failed = it.fails()

    assert failed.reason == "failed_agent:turn_limit"
    assert (failed.tokens.calls, failed.tool_calls) == (40, {"list": 40})
    assert failed.stops is False


def test_who_finishes_in_the_last_turn_has_finished(tmp_path):
    with asking(tmp_path, NEVER, FINISH, turns=2) as (_, it):
        proposal = it.propose()

    assert proposal.files == STAGED


@pytest.mark.parametrize(
    ("version", "staged", "replies"),
    [
        ("v1", {"raw_memories.md": PAGE * 3 + "y"}, 43),
        ("v1", {"raw_memories.md": PAGE[:-1]}, 40),
        ("v2", {f"rollout_summaries/{at}.md": "x" for at in range(5)}, 45),
    ],
)
def test_who_has_more_to_read_gets_more_turns(tmp_path, version, staged, replies):
    with asking(tmp_path, NEVER, repeats=True, requests=40) as (_, it):
        failed = it.fails(task(memory_version=version, staged=staged))
        told = it.server.asked[0].evidence

    assert (failed.reason, failed.tokens.calls) == ("failed_agent:turn_limit", replies)
    assert f"- {replies} replies\n" in told


def test_requests_are_counted_with_those_that_failed(tmp_path):
    flaky = (Reply("busy", status=503), NEVER)

    with asking(tmp_path, *flaky * 5, requests=5) as (_, it):
        failed = it.fails()

    assert failed.reason == "failed_agent:request_limit"
    assert (failed.tokens.calls, failed.tool_calls) == (5, {"list": 2})
    assert failed.stops is False


def test_a_call_that_might_go_beyond_its_own_tokens_is_not_made(tmp_path):
    with asking(tmp_path, NEVER, repeats=True, tokens=8_000, max_output_tokens=1_000) as (_, it):
        failed = it.fails()

    assert failed.reason == "failed_agent:token_limit"
    assert 1 <= failed.tokens.calls < 40
    assert failed.tokens.input + failed.tokens.output <= 8_000
    assert failed.stops is False


def test_without_a_budget_nobody_is_asked(tmp_path):
    with asking(tmp_path, FINISH) as (_, it):
        failed = it.fails(task(may_spend=lambda most: False))

    assert it.server.asked == []
    assert (failed.reason, failed.stops) == ("failed_agent:budget", True)
    assert failed.tokens.calls == 0


def test_of_the_budget_is_reserved_what_the_next_call_may_cost_and_no_more(tmp_path):
    reserved: list[int] = []

    def may_spend(most):
        reserved.append(most)
        return True

    with asking(tmp_path, *[NEVER] * 9, FINISH, max_output_tokens=1_000) as (_, it):
        proposal = it.propose(task(may_spend=may_spend))

    spent = proposal.tokens.input + proposal.tokens.output
    assert spent == 1_200
    assert reserved[0] > 1_000
    assert all(most >= 0 for most in reserved)
    # What was spent before the last call, and that one; ten times the cap would empty any purse.
    assert spent - 120 + reserved[0] <= sum(reserved) < spent + reserved[0] + 1_000


def test_when_its_time_is_over_it_ends_in_the_middle_of_a_call(tmp_path):
    began = time.monotonic()

    with asking(tmp_path, NEVER, Reply(ends="hang", at_once=True), wall_s=0.5) as (_, it):
        failed = it.fails()

    assert failed.reason == "failed_agent:time_limit"
    assert time.monotonic() - began < 10
    assert failed.tokens.calls == 2
    assert failed.tokens.input > 1_000  # Nobody knows the price of the one that was given up.


def test_a_lost_lease_ends_it_within_a_second_and_the_server_is_hung_up_on(tmp_path):
    lost = threading.Event()
    ended: list[float] = []

    with asking(tmp_path, NEVER, Reply(ends="hang", at_once=True)) as (_, it):

        def lose():
            it.server.wait_for(2)
            ended.append(time.monotonic())
            lost.set()

        loser = threading.Thread(target=lose)
        loser.start()
        failed = it.fails(task(alive=lambda: not lost.is_set()))
        took_s = time.monotonic() - ended[0]
        loser.join()
        assert it.server.asked[1].gone.wait(5)

    assert took_s < 1
    assert failed.reason == "failed_agent:stopped"
    assert (failed.tokens.calls, failed.tool_calls) == (2, {"list": 1})


def test_who_is_lost_from_the_start_asks_nobody(tmp_path):
    with asking(tmp_path, FINISH) as (_, it):
        failed = it.fails(task(alive=lambda: False))

    assert it.server.asked == []
    assert failed.reason == "failed_agent:stopped"


def test_no_call_of_a_reply_is_done_once_the_lease_is_lost(tmp_path):
    asked_for = count(1)
    many = [wrote(f"skills/{at}.md", "x") for at in range(9)]

    with asking(tmp_path, many) as (_, it):
        failed = it.fails(task(alive=lambda: not it.server.asked or next(asked_for) < 5))

    assert failed.reason == "failed_agent:stopped"
    assert 0 < failed.tool_calls["write"] < 5


def test_a_person_who_interrupts_gets_the_interrupt_and_no_staging_is_left(tmp_path):
    with asking(tmp_path, Reply(ends="hang", at_once=True)) as (_, it):

        def interrupts():
            it.server.wait_for(1)
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

        threading.Thread(target=interrupts).start()
        with pytest.raises(KeyboardInterrupt):
            it.propose()
        assert it.server.asked[0].gone.wait(5)


@pytest.mark.parametrize(
    ("reply", "code", "stops"),
    [
        (Reply(response(refusal("I would rather not say MEMORY"))), "refused", False),
        ("content_filter", "content_filter", False),
        ("unauthorized", "key_refused", True),
        ("forbidden", "access_refused", True),
        ("insufficient_quota", "quota_used_up", True),
        (error(404, "no such model", code="model_not_found"), "no_such_endpoint_or_model", True),
        (error(400, "Invalid value MEMORY", param="input[3].id"), "http_400", False),
    ],
)
def test_what_no_second_try_would_mend_ends_it_at_once(tmp_path, reply, code, stops):
    with asking(tmp_path, NEVER, reply) as (_, it):
        failed = it.fails()

    assert (failed.reason, failed.stops) == (f"failed_agent:{code}", stops)
    assert (failed.tokens.model, failed.tokens.calls) == (MODEL, 2)
    assert failed.tokens.input >= 100


BUSY = Reply("upstream connect error", status=503)


@pytest.mark.parametrize("reply", [BUSY, "cut", "cut_at_once", "response_failed", "no_answer"])
def test_a_server_that_fails_twice_is_asked_a_third_time(tmp_path, reply):
    with asking(tmp_path, NEVER, reply, reply, [wrote("MEMORY.md", "x")], FINISH) as (turns, it):
        proposal = it.propose()

    assert turns.wrong == []
    assert proposal.files["MEMORY.md"] == "x"
    assert proposal.tokens.calls == 5


def test_words_that_break_off_are_no_answer(tmp_path):
    script = ("Now I am going to wr", [wrote("MEMORY.md", "x")], FINISH)

    with asking(tmp_path, *script, server=only_chat, style="no_completed") as (_, it):
        proposal = it.propose()

    assert proposal.files["MEMORY.md"] == "x"


def test_a_server_that_goes_on_failing_ends_it_and_the_next_run_may_try(tmp_path):
    with asking(tmp_path, NEVER, BUSY, repeats=True) as (_, it):
        failed = it.fails()

    assert (failed.reason, failed.stops) == ("failed_agent:http_503", False)
    assert failed.tokens.calls == 4


def test_failures_with_answers_between_them_are_no_series(tmp_path):
    with asking(tmp_path, *(BUSY, BUSY, NEVER) * 4, FINISH) as (_, it):
        proposal = it.propose()

    assert proposal.tokens.calls == 13


def test_who_is_told_to_come_back_much_later_leaves_that_to_the_next_run(tmp_path):
    later = error(429, "slow down", code="rate_limit_exceeded", headers={"retry-after": "900"})

    with asking(tmp_path, NEVER, later) as (_, it):
        failed = it.fails()

    assert (failed.reason, failed.retry_after_s) == ("failed_agent:rate_limited", 900)
    assert failed.tokens.calls == 2


def test_a_wait_ends_with_the_lease(tmp_path):
    soon = error(429, "slow down", code="rate_limit_exceeded", headers={"retry-after": "50"})
    began = time.monotonic()

    with asking(tmp_path, soon) as (_, it):
        failed = it.fails(task(alive=lambda: not it.server.asked))

    assert failed.reason == "failed_agent:stopped"
    assert time.monotonic() - began < 10


TOO_LONG = "context_length"


def test_what_has_grown_too_long_is_shortened_from_its_oldest_results_twice(tmp_path):
    long = {"raw_memories.md": PAGE * 6}
    seen: list[list[bool]] = []

    def look(turns):
        def served(asked):
            reply = turns(asked)
            seen.append([each == LEFT_OUT for each in turns.results])
            return reply

        return served

    script = (READ, READ, READ, READ, TOO_LONG, TOO_LONG, FINISH)
    reserved: list[int] = []

    def may_spend(most):
        reserved.append(most)
        return most >= 0

    with asking(tmp_path, *script, server=look) as (turns, it):
        proposal = it.propose(task(staged=STAGED | long, may_spend=may_spend))

    assert turns.wrong == []
    assert len(reserved) == 7
    assert 0 in reserved  # The shorter one costs less than what is reserved already.
    assert seen[4:] == [
        [False] * 4,
        [True, True, False, False],
        [True, True, True, False],
    ]
    assert proposal.files == STAGED | long


def test_what_is_too_long_a_third_time_comes_to_nothing(tmp_path):
    script = (READ, READ, READ, READ, TOO_LONG, TOO_LONG, TOO_LONG, FINISH)

    with asking(tmp_path, *script) as (_, it):
        failed = it.fails(task(staged=STAGED | {"raw_memories.md": PAGE * 6}))

    assert failed.reason == "failed_agent:context_too_long"
    assert failed.tokens.calls == 7


def test_what_is_too_long_without_a_result_is_so_for_good(tmp_path):
    with asking(tmp_path, TOO_LONG, FINISH) as (_, it):
        failed = it.fails()

    assert (failed.reason, failed.tokens.calls) == ("failed_agent:context_too_long", 1)


CUT = Reply(
    response(
        call("write", '{"path": "MEMORY.md", "content": "# Task Gro'),
        status="incomplete",
        incomplete_details={"reason": "max_output_tokens"},
    )
)


def test_a_reply_that_was_cut_is_not_done_and_smaller_steps_are_asked_for(tmp_path):
    with asking(tmp_path, CUT, CUT, [wrote("MEMORY.md", "x")], FINISH) as (turns, it):
        proposal = it.propose()
        told = it.server.asked[2].said("user")

    assert turns.wrong == []
    assert proposal.files["MEMORY.md"] == "x"
    assert proposal.tool_calls == {"write": 1, "finish": 1}
    assert [each.startswith("Your last reply was longer") for each in told] == [False, True, True]


def test_replies_that_are_cut_again_and_again_come_to_nothing(tmp_path):
    with asking(tmp_path, CUT, repeats=True) as (_, it):
        failed = it.fails()

    assert (failed.reason, failed.tokens.calls) == ("failed_agent:cut_by_length", 3)


def test_a_call_without_end_has_a_deadline_and_is_made_again(tmp_path):
    trickle = Reply(response("{"), ends="trickle")

    with asking(tmp_path, trickle, FINISH, deadline_s=0.5) as (_, it):
        proposal = it.propose()

    assert proposal.files == STAGED
    assert proposal.tokens.calls == 2
    assert proposal.tokens.input > 1_000


def test_the_limits_are_those_that_are_documented():
    paid = Provider(base_url="", extract_model="a", consolidation_model="b")

    assert Limits() == limits_for(paid) == (40, 120, 2_000_000, 1_800.0)
    assert limits_for(replace(paid, max_tokens_per_run=0)).tokens == 2_000_000
    assert limits_for(replace(paid, max_tokens_per_run=7_000_000)).tokens == 7_000_000
    assert (loop.SHORTENED_MAX, loop.POLL_S) == (2, 0.2)


@pytest.mark.parametrize(
    "script",
    [(NEVER,), (Reply(response(refusal("MEMORY"))),), (error(400, "MEMORY is not valid"),)],
)
def test_no_reason_holds_what_a_model_or_a_server_said(tmp_path, script):
    with asking(tmp_path, *script, repeats=True, turns=2) as (_, it):
        failed = it.fails()

    assert isinstance(failed, ConsolidationFailed)
    assert str(failed) == failed.reason
    assert "MEMORY" not in failed.reason


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ALL_PROXY", "socks5://127.0.0.1:1"),
        ("ALL_PROXY", "ftp://127.0.0.1:1"),
        ("ALL_PROXY", "http://[::1"),
    ],
)
def test_a_proxy_that_cannot_be_used_is_told_and_stops_the_run(tmp_path, monkeypatch, name, value):
    monkeypatch.setenv(name, value)

    with asking(tmp_path, FINISH) as (turns, it):
        failed = it.fails()

    assert (failed.reason, failed.stops) == ("failed_agent:environment_unusable", True)
    assert turns.said == []
