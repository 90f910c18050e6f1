import pytest
from threadbook.domain.eligibility import Limits, clamp, clamped, failed, gates, window_ms
from threadbook.domain.events import ThreadForgotten
from threadbook.domain.selection import Output
from threadbook.domain.thread import evolve

from tests.support import DAY_S, HOUR_S, NOON, registered

ALWAYS = ("not_forgotten", "memory_mode", "source_kind", "human_message")
LIMITS = Limits()


def asked(thread=None, output=None, *, limits=LIMITS, now=NOON, **more):
    return gates(thread or registered(), output, now=now, limits=limits, **more)


def shut(*arguments, **named):
    gate = failed(asked(*arguments, **named))
    return gate and gate.name


def why(name, *arguments, **named):
    return next(gate.why for gate in asked(*arguments, **named) if gate.name == name)


def active(seconds_ago, **facts):
    return registered(updated_at_ms=(NOON - seconds_ago) * 1000, **facts)


def output(**facts):
    known = {"thread_id": "t1", "source_updated_at": NOON, "counts_from": NOON}
    return Output(**known | facts)


def test_the_gates_stand_in_one_order():
    unread, read = asked(), asked(registered(), output())

    assert tuple(gate.name for gate in unread) == (*ALWAYS, "archived", "age", "idle")
    assert tuple(gate.name for gate in read) == (*ALWAYS, "live_output", "recent")


def test_a_rested_session_that_a_person_led_passes_them_all():
    assert shut() is None
    assert shut(registered(), output()) is None


def test_a_forgotten_session_stays_outside_with_or_without_an_output():
    gone = evolve(registered(), ThreadForgotten(at=NOON, thread_id="t1", reason="person"))

    assert shut(gone) == "not_forgotten"
    assert shut(gone, output()) == "not_forgotten"


@pytest.mark.parametrize("mode", ["disabled", "polluted"])
def test_any_mode_but_enabled_is_outside(mode):
    assert shut(registered(mode=mode)) == "memory_mode"
    assert shut(registered(mode=mode), output()) == "memory_mode"
    assert f"memory mode is {mode}" in why("memory_mode", registered(mode=mode))


@pytest.mark.parametrize(
    ("facts", "passes"),
    [
        ({"source": "cli"}, True),
        ({"source": "vscode"}, True),
        ({"source": '{"custom":"atlas"}'}, True),
        ({"source": '{ "custom" : "chatgpt" }'}, True),
        ({"source": '{"custom":"cli2"}'}, False),
        ({"source": "tracker"}, False),
        ({"source": '{"custom":' + "[" * 9_000 + "]" * 9_000 + "}"}, True),
        ({"source": ""}, True),
        ({"source": "exec", "kind": "exec"}, False),
        ({"source": '{"subagent":"review"}', "kind": "subagent"}, False),
        ({"source": "cli", "kind": "internal"}, False),
        ({"source": "cli", "kind": "unknown"}, False),
        ({"tool": "claude", "source": "sdk-cli"}, True),
        ({"tool": "claude", "source": "sidechain", "kind": "subagent"}, False),
    ],
)
def test_only_interactive_sessions_of_known_sources_are_read(facts, passes):
    assert shut(registered(**facts)) == (None if passes else "source_kind")


def test_no_list_of_sources_means_every_interactive_one():
    thread = registered(source="tracker")

    assert shut(thread, limits=Limits(allowed_sources=())) is None


def test_a_session_in_which_nobody_typed_teaches_nothing():
    assert shut(registered(preview_ref=None)) == "human_message"


def test_an_archived_session_is_not_read_but_its_output_stays_selectable():
    thread = registered(archived=True)

    assert shut(thread) == "archived"
    assert shut(thread, output()) is None


@pytest.mark.parametrize(
    ("ms_ago", "gate"),
    [
        (0, "idle"),
        (6 * HOUR_S * 1000 - 1, "idle"),
        (6 * HOUR_S * 1000, None),
        (10 * DAY_S * 1000, None),
        (10 * DAY_S * 1000 + 1, "age"),
    ],
)
def test_both_ends_of_the_window_belong_to_it_to_the_millisecond(ms_ago, gate):
    updated_at_ms = NOON * 1000 - ms_ago

    oldest, newest = window_ms(now=NOON, limits=LIMITS)

    assert shut(registered(updated_at_ms=updated_at_ms)) == gate
    assert (oldest <= updated_at_ms <= newest) is (gate is None)


def test_a_window_of_thirty_days_and_twelve_hours():
    limits = Limits(max_rollout_age_days=30, min_rollout_idle_hours=12)

    answers = [
        shut(active(ago), limits=limits)
        for ago in (HOUR_S, 12 * HOUR_S - 60, 12 * HOUR_S + 60, 31 * DAY_S)
    ]

    assert answers == ["idle", "idle", None, "age"]


def test_a_backfill_lifts_the_age_and_nothing_else():
    assert shut(active(400 * DAY_S), backfill=True) is None
    assert shut(active(HOUR_S), backfill=True) == "idle"
    assert window_ms(now=NOON, limits=LIMITS, backfill=True)[0] == 0


def test_no_days_at_all_let_nothing_in():
    limits = Limits(max_rollout_age_days=0)

    assert {shut(active(ago), limits=limits) for ago in (0, HOUR_S, DAY_S)} == {"age", "idle"}


def test_the_session_that_asks_is_not_idle():
    assert shut(current_thread="t1") == "idle"
    assert shut(current_thread="t2") is None


@pytest.mark.parametrize(
    ("written_ms_ago", "gate"),
    [
        (0, "idle"),
        (6 * HOUR_S * 1000 - 1, "idle"),
        (6 * HOUR_S * 1000, None),
        (-1, None),
    ],
)
def test_a_half_written_line_keeps_a_session_awake_unless_its_time_is_after_now(
    written_ms_ago, gate
):
    assert shut(unfinished_mtime_ms=NOON * 1000 - written_ms_ago) == gate


@pytest.mark.parametrize(
    ("facts", "passes"),
    [
        ({"counts_from": NOON - 30 * DAY_S}, True),
        ({"counts_from": NOON - 30 * DAY_S - 1}, False),
        ({"counts_from": 0, "last_usage": NOON - 30 * DAY_S}, True),
        ({"last_usage": NOON - 30 * DAY_S - 1}, False),
    ],
)
def test_an_output_is_recent_by_its_last_use_or_else_the_day_it_counts_from(facts, passes):
    assert shut(registered(), output(**facts)) == (None if passes else "recent")


def test_the_sentences_have_numbers():
    assert why("idle", active(2 * HOUR_S)) == "idle for 2 h; needs 6 h"
    assert why("idle", active(2 * HOUR_S + 300)) == "idle for 2 h 5 min; needs 6 h"
    assert "last active 12 d ago; at most 10 d are read" in why("age", active(12 * DAY_S))


def test_a_value_out_of_range_acts_as_the_nearer_end():
    wild = Limits(
        max_rollouts_per_startup=100_000,
        min_rollout_idle_hours=0,
        max_rollout_age_days=100_000,
        max_unused_days=-1,
        max_raw_memories_for_consolidation=0,
    )

    tame = clamped(wild)

    assert tame == Limits(
        max_rollouts_per_startup=128,
        min_rollout_idle_hours=1,
        max_rollout_age_days=90,
        max_unused_days=0,
        max_raw_memories_for_consolidation=1,
    )
    assert clamp("min_rollout_idle_hours", 1_000) == 48


def test_a_scan_takes_the_newest_that_pass_whatever_stands_before_them():
    """Upstream's startup claim: gates come before the limit of threads that are looked at."""
    threads = [
        active(HOUR_S, thread_id="young"),
        active(12 * HOUR_S, thread_id="current"),
        active(7 * HOUR_S, thread_id="ready"),
        active(31 * DAY_S, thread_id="old"),
        active(8 * HOUR_S, thread_id="disabled", mode="disabled"),
    ]

    passed = [thread for thread in threads if shut(thread, current_thread="current") is None]
    newest_first = sorted(passed, key=lambda thread: -thread.updated_at_ms)

    assert [thread.thread_id for thread in newest_first[:1]] == ["ready"]
    assert len(passed) == 1
