from threadbook.domain.events import Input, Selected
from threadbook.domain.selection import (
    Output,
    cutoff_at,
    inputs,
    is_prunable,
    prunable,
    rank,
    snapshot,
)

from tests.support import DAY_S, HOUR_S, NOON

CUTOFF = cutoff_at(NOON, max_unused_days=30)


def output(thread_id, read_at=NOON, **facts):
    return Output(thread_id=thread_id, source_updated_at=read_at, counts_from=read_at, **facts)


def chosen(*outputs, limit=256, cutoff=CUTOFF):
    return [each.thread_id for each in rank(outputs, cutoff=cutoff, limit=limit).chosen]


def order(*outputs, limit=256):
    return [each.output.thread_id for each in rank(outputs, cutoff=CUTOFF, limit=limit).entries]


def test_uses_come_first_then_the_last_use():
    often_long_ago = output("a", usage_count=5, last_usage=NOON - 10 * DAY_S)
    often_lately = output("b", usage_count=5, last_usage=NOON - DAY_S)
    once_just_now = output("c", usage_count=1, last_usage=NOON - HOUR_S)

    assert order(often_long_ago, often_lately, once_just_now) == ["b", "a", "c"]
    assert chosen(often_long_ago, often_lately, once_just_now, limit=1) == ["b"]


def test_an_output_that_was_never_used_ranks_by_its_reading():
    unused, used = output("a", NOON - HOUR_S), output("b", NOON - DAY_S, last_usage=NOON - 7200)

    assert order(used, unused) == ["a", "b"]


def test_when_an_output_was_written_plays_no_part():
    read_later, written_later = output("a", 200), output("b", 100)

    assert order(written_later, read_later)[0] == "a"
    assert "generated_at" not in Output.__struct_fields__


def test_ranking_goes_by_the_reading_even_where_age_counts_from_a_backfill():
    old = Output(thread_id="a", source_updated_at=5, counts_from=NOON)
    new = Output(thread_id="b", source_updated_at=9, counts_from=NOON - 1)

    assert order(old, new) == ["b", "a"]


def test_equal_use_is_decided_by_the_newer_reading_and_then_by_the_greater_id():
    used = {"usage_count": 1, "last_usage": NOON}

    assert order(output("a", NOON - 9, **used), output("b", NOON - 10, **used)) == ["a", "b"]
    assert order(output("a"), output("c"), output("b")) == ["c", "b", "a"]


def test_what_is_chosen_goes_by_thread_id_and_not_by_rank():
    a, b, c = output("a", NOON - 3), output("b", NOON - 2), output("c", NOON - 1)

    assert chosen(a, b, c, limit=2) == ["b", "c"]


def test_what_was_selected_before_has_no_better_rank():
    a = output("a", NOON - 3, selected=True)

    assert chosen(a, output("b", NOON - 2), output("c", NOON - 1), limit=2) == ["b", "c"]


def test_refreshed_outputs_rank_by_their_new_reading():
    refreshed = {"a": 102, "b": 101, "c": 103, "d": 104}

    outputs = [output(thread_id, read_at) for thread_id, read_at in refreshed.items()]

    assert chosen(*outputs, limit=2, cutoff=0) == ["c", "d"]


def test_the_last_use_counts_and_not_how_often():
    used_up = output("a", NOON - 31 * DAY_S, usage_count=9, last_usage=NOON - 31 * DAY_S)
    never_used = output("b", NOON - 2 * DAY_S)
    old_but_used = output("c", NOON - 50 * DAY_S, usage_count=1, last_usage=NOON - DAY_S)

    assert chosen(used_up, never_used, old_but_used) == ["b", "c"]


def test_one_old_use_counts_against_a_fresh_reading():
    """Codex's rule, kept: once an output was cited, only citations keep it."""
    assert chosen(output("a", NOON, usage_count=1, last_usage=CUTOFF - 1)) == []


def test_the_cutoff_itself_is_selectable_and_the_second_before_it_is_prunable():
    on_it, before_it = output("a", CUTOFF), output("b", CUTOFF - 1)

    assert chosen(on_it, before_it) == ["a"]
    assert prunable([on_it, before_it], cutoff=CUTOFF, limit=9) == (before_it,)


def test_a_mode_other_than_enabled_is_ranked_by_nobody():
    ranking = rank(
        [output("a"), output("b", mode="polluted"), output("c", mode="disabled")],
        cutoff=CUTOFF,
        limit=9,
    )

    assert [each.thread_id for each in ranking.chosen] == ["a"]
    assert {(each.output.thread_id, each.rank, each.reason) for each in ranking.entries} == {
        ("a", 1, "rank 1 of 1"),
        ("b", None, "memory mode is polluted"),
        ("c", None, "memory mode is disabled"),
    }


def test_a_polluted_thread_is_left_out_although_the_last_success_read_it():
    polluted = output("a", selected=True, mode="polluted")

    assert chosen(polluted, output("b")) == ["b"]


def test_who_is_left_out_is_told_why():
    ranking = rank(
        [output("a", NOON), output("b", NOON - 1), output("c", CUTOFF - 1)], cutoff=CUTOFF, limit=1
    )

    assert [(each.rank, each.chosen, each.reason) for each in ranking.entries] == [
        (1, True, "rank 1 of 2"),
        (2, False, "rank 2 of 2; only 1 are read"),
        (
            None,
            False,
            "counted from 2025-12-02 11:59:59Z, before the cutoff of 2025-12-02 12:00:00Z",
        ),
    ]


def test_a_limit_of_nothing_chooses_nothing():
    assert chosen(output("a"), limit=0) == []


def test_no_days_at_all_keep_only_what_is_from_this_second():
    cutoff = cutoff_at(NOON, max_unused_days=0)

    assert chosen(output("a", NOON), output("b", NOON - 1), cutoff=cutoff) == ["a"]


def test_more_outputs_than_one_page_of_codex_are_ranked_as_one():
    outputs = [output(f"{number:04}", NOON - number) for number in range(1_100)]

    assert chosen(*outputs, limit=513) == [f"{number:04}" for number in range(513)]


def test_pruning_takes_what_is_old_and_unselected_whatever_its_mode():
    old = CUTOFF - 1
    unused, used = output("a", old), output("b", NOON, last_usage=old)
    selected, fresh = output("c", old, selected=True), output("d", old, last_usage=NOON)
    polluted = output("e", old, mode="polluted")

    aged = prunable([unused, used, selected, fresh, polluted], cutoff=CUTOFF, limit=9)

    assert [each.thread_id for each in aged] == ["a", "e", "b"]


def test_pruning_takes_the_oldest_first_and_no_more_than_its_limit():
    outputs = [output("c", 3), output("a", 2), output("b", 2)]

    aged = prunable(outputs, cutoff=CUTOFF, limit=2)

    assert [each.thread_id for each in aged] == ["a", "b"]
    assert prunable(outputs, cutoff=CUTOFF, limit=0) == ()


def test_a_selected_output_is_prunable_once_a_success_leaves_it_out():
    assert not is_prunable(output("a", 1, selected=True), cutoff=CUTOFF)
    assert is_prunable(output("a", 1), cutoff=CUTOFF)


def test_a_success_marks_only_what_is_still_what_it_read():
    read = inputs([output("a", 100), output("b", 100), output("c", 100)])

    recorded = snapshot(read, held={"a": 100, "b": 101})

    assert read[0] == Input(thread_id="a", source_updated_at=100)
    assert recorded == (
        Selected(thread_id="a", source_updated_at=100, matched=True),
        Selected(thread_id="b", source_updated_at=100, matched=False),
        Selected(thread_id="c", source_updated_at=100, matched=False),
    )


def test_a_second_success_moves_the_mark_to_the_newer_reading():
    first = snapshot(inputs([output("a", 100)]), held={"a": 100})
    second = snapshot(inputs([output("a", 101)]), held={"a": 101})

    assert [(each.source_updated_at, each.matched) for each in (*first, *second)] == [
        (100, True),
        (101, True),
    ]
