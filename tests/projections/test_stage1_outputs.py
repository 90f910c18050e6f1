"""stage1_outputs: modes, uses and ages follow the log, and the queries rank and prune by them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from threadbook.domain.events import (
    Cited,
    ForgettingLifted,
    MemoryModeSet,
    OutputWithdrawn,
    Phase2Succeeded,
    Selected,
    Stage1Succeeded,
    Stage1SucceededNoOutput,
    StoreReset,
    ThreadForgotten,
    ThreadPolluted,
    ThreadRescoped,
)
from threadbook.projections import citations, jobs, selection, stage1_outputs
from threadbook.projections.fold import fold

from tests.projections.histories import lawful, logs, times, unhurried
from tests.projections.specimens import find, plain, tables, value


@unhurried
@given(log=logs)
def test_usage_counts_follow_the_log(log):
    expected = {}
    for event in log:
        match event:
            case Stage1Succeeded(output_replaced=True):
                expected.setdefault((event.thread_id, event.memory_version), (0, None))
            case Cited() if (event.thread_id, event.memory_version) in expected:
                key = event.thread_id, event.memory_version
                late = None if event.used_at is None else max(event.used_at, expected[key][1] or 0)
                expected[key] = event.usage_count, event.at if late is None else late
            case OutputWithdrawn() | Stage1SucceededNoOutput(output_removed=True):
                expected.pop((event.thread_id, event.memory_version), None)
            case ThreadForgotten():
                expected = {key: n for key, n in expected.items() if key[0] != event.thread_id}
            case StoreReset():
                expected = {key: n for key, n in expected.items() if key[1] != event.memory_version}

    found = fold(stage1_outputs, log)

    assert {
        (row.thread_id, row.memory_version): (row.usage_count, row.last_usage) for row in found
    } == expected


@unhurried
@given(log=logs)
def test_an_output_has_the_mode_and_the_scope_that_was_said_last(log):
    mode, scope = {}, {}
    for event in log:
        match event:
            case Stage1Succeeded(output_replaced=True):
                mode[event.thread_id, event.memory_version] = event.memory_mode
                scope[event.thread_id, event.memory_version] = event.scope
            case ThreadPolluted() | MemoryModeSet():
                for version in ("v1", "v2"):
                    mode[event.thread_id, version] = getattr(event, "mode", "polluted")
            case ThreadRescoped():
                for version in ("v1", "v2"):
                    scope[event.thread_id, version] = event.scope

    for row in fold(stage1_outputs, log):
        key = row.thread_id, row.memory_version

        assert (row.memory_mode, row.scope) == (mode[key], scope[key])


@unhurried
@given(log=logs, thread_id=st.sampled_from(["t1", "t2", "t3"]))
def test_a_thread_whose_last_mode_is_polluted_has_no_enabled_output(log, thread_id):
    # A reading brings the mode of the transaction that records it: of a polluted thread, polluted.
    told, polluted = [], set()
    for event in [*log, plain(Stage1Succeeded, thread_id=thread_id)]:
        match event:
            case ThreadPolluted():
                polluted.add(event.thread_id)
            case MemoryModeSet():
                polluted.discard(event.thread_id)
            case Stage1Succeeded() if event.thread_id in polluted:
                event = plain(Stage1Succeeded, thread_id=event.thread_id, memory_mode="polluted")
        told.append(event)

    found = fold(stage1_outputs, told)

    assert not [row for row in found if row.thread_id in polluted and row.memory_mode == "enabled"]


@unhurried
@given(log=logs)
def test_a_forgotten_thread_has_no_output_no_job_and_no_citation(log):
    told = lawful(log)
    forgotten = set()
    for event in told:
        match event:
            case ThreadForgotten():
                forgotten.add(event.thread_id)
            case ForgettingLifted():
                forgotten.discard(event.thread_id)

    for thread_id in forgotten:
        assert not [row for row in fold(stage1_outputs, told) if row.thread_id == thread_id]
        assert not [row for row in fold(citations, told) if row.thread_id == thread_id]
        assert not [
            row for row in fold(jobs, told) if (row.kind, row.job_key) == (jobs.STAGE1, thread_id)
        ]


def test_a_threads_pollution_and_forgetting_reach_every_memory_version():
    written = [plain(Stage1Succeeded, memory_version=version) for version in ("v1", "v2")]

    polluted = [*written, plain(ThreadPolluted)]
    forgotten = [*polluted, plain(ThreadForgotten)]

    assert [row.memory_mode for row in fold(stage1_outputs, polluted)] == ["polluted", "polluted"]
    assert fold(stage1_outputs, forgotten) == []


def test_a_persons_word_on_the_mode_and_the_scope_reaches_every_memory_version():
    written = [plain(Stage1Succeeded, memory_version=version) for version in ("v1", "v2")]

    found = fold(
        stage1_outputs,
        [*written, plain(MemoryModeSet, mode="disabled"), plain(ThreadRescoped, scope="user")],
    )

    assert [(row.memory_mode, row.scope) for row in found] == [("disabled", "user")] * 2


def test_a_reading_that_replaced_nothing_leaves_the_row_as_it_was():
    newer = [plain(Stage1Succeeded, source_updated_at=9)]

    older = [*newer, plain(Stage1Succeeded, at=2, source_updated_at=3, output_replaced=False)]

    assert fold(stage1_outputs, older) == fold(stage1_outputs, newer)


def test_a_reading_without_output_that_removed_nothing_leaves_the_row_as_it_was():
    written = [plain(Stage1Succeeded)]

    told = [*written, plain(Stage1SucceededNoOutput, output_removed=False)]

    assert fold(stage1_outputs, told) == fold(stage1_outputs, written)


def test_a_newer_reading_keeps_the_uses_and_the_beginning_of_the_row():
    log = [
        plain(Stage1Succeeded, at=5),
        plain(Cited, at=7, usage_count=1),
        plain(Stage1Succeeded, at=9, raw_memory_ref="newer", source_updated_at=200),
    ]

    [row] = fold(stage1_outputs, log)

    assert (row.since, row.generated_at, row.usage_count, row.last_usage) == (5, 9, 1, 7)
    assert (row.raw_memory_ref, row.source_updated_at) == ("newer", 200)


def test_an_output_written_anew_after_its_removal_starts_without_uses():
    log = [
        plain(Stage1Succeeded, at=5),
        plain(Cited, at=7, usage_count=3),
        plain(OutputWithdrawn, at=8),
        plain(Stage1Succeeded, at=9),
    ]

    [row] = fold(stage1_outputs, log)

    assert (row.since, row.usage_count, row.last_usage) == (9, 0, None)


outputs = st.lists(
    st.builds(
        dict,
        thread_id=st.sampled_from([f"t{n}" for n in range(8)]),
        source_updated_at=times,
        counts_from=times,
        scope=st.sampled_from(["project:a", "project:b"]),
        memory_mode=st.sampled_from(["enabled", "enabled", "polluted"]),
        uses=st.one_of(st.none(), st.tuples(st.integers(1, 2), times)),
    ),
    unique_by=lambda output: output["thread_id"],
    max_size=8,
)


def written(drawn):
    log = []
    for output in drawn:
        of_output = {key: kept for key, kept in output.items() if key != "uses"}
        log.append(plain(Stage1Succeeded, **of_output))
        if output["uses"]:
            count, at = output["uses"]
            log.append(plain(Cited, thread_id=output["thread_id"], usage_count=count, at=at))
    return log


def rank(row):
    used = row.source_updated_at if row.last_usage is None else row.last_usage
    return row.usage_count, used, row.source_updated_at, row.thread_id


def age_key(row):
    return row.counts_from if row.last_usage is None else row.last_usage


@unhurried
@given(drawn=outputs, cutoff=times, most=st.integers(0, 5))
def test_both_ways_to_a_selection_find_the_best_recent_outputs_in_rank_order(drawn, cutoff, most):
    log = written(drawn)
    db = tables(log)
    every = [
        row
        for row in sorted(fold(stage1_outputs, log), key=rank, reverse=True)
        if row.memory_mode == "enabled" and age_key(row) >= cutoff
    ]
    of_root = [row for row in every if row.scope == "project:a"]
    asked = {"memory_version": "v1", "scope": "project:a", "cutoff": cutoff}
    asked_everywhere = {"memory_version": "v1", "cutoff": cutoff}

    for rest in (stage1_outputs.RANKED, stage1_outputs.RANKED_OF_FEW):
        assert find(db, stage1_outputs, rest, **asked, most=most) == of_root[:most]
    for rest in (stage1_outputs.RANKED_EVERYWHERE, stage1_outputs.RANKED_OF_FEW_EVERYWHERE):
        assert find(db, stage1_outputs, rest, **asked_everywhere, most=most) == every[:most]

    assert value(db, stage1_outputs.RECENT, **asked, enough=3) == min(len(of_root), 3)
    assert value(db, stage1_outputs.RECENT_EVERYWHERE, **asked_everywhere, enough=3) == min(
        len(every), 3
    )


@unhurried
@given(drawn=outputs, cutoff=times, picked=st.sets(st.sampled_from([f"t{n}" for n in range(8)])))
def test_an_output_outside_the_snapshot_is_recent_or_prunable_never_both(drawn, cutoff, picked):
    snapshot = tuple(
        Selected(thread_id=thread_id, source_updated_at=1, matched=True)
        for thread_id in sorted(picked)
    )
    log = [*written(drawn), plain(Phase2Succeeded, at=1, selected=snapshot)]
    db = tables(log)

    prunable = find(
        db, stage1_outputs, stage1_outputs.PRUNABLE, memory_version="v1", cutoff=cutoff, most=99
    )

    outside = [row for row in fold(stage1_outputs, log) if row.thread_id not in picked]
    assert {row.thread_id for row in prunable} == {
        row.thread_id for row in outside if age_key(row) < cutoff
    }
    assert prunable == sorted(
        prunable, key=lambda row: (age_key(row), row.source_updated_at, row.thread_id)
    )


def selected(db, cutoff):
    return find(
        db,
        stage1_outputs,
        stage1_outputs.RANKED,
        memory_version="v1",
        scope="project:a",
        cutoff=cutoff,
        most=9,
    )


def prunable(db, cutoff, most=9):
    return [
        row.thread_id
        for row in find(
            db,
            stage1_outputs,
            stage1_outputs.PRUNABLE,
            memory_version="v1",
            cutoff=cutoff,
            most=most,
        )
    ]


def test_an_output_exactly_as_old_as_the_cutoff_is_selected_and_not_pruned():
    db = tables([plain(Stage1Succeeded, counts_from=100)])

    assert [row.thread_id for row in selected(db, cutoff=100)] == ["t1"]
    assert prunable(db, cutoff=100) == []
    assert selected(db, cutoff=101) == []
    assert prunable(db, cutoff=101) == ["t1"]


def test_a_backfilled_output_ages_from_its_run_and_ranks_by_its_session():
    db = tables(
        [
            plain(Stage1Succeeded, thread_id="old", source_updated_at=5, counts_from=100),
            plain(Stage1Succeeded, thread_id="new", source_updated_at=50, counts_from=50),
        ]
    )

    assert [row.thread_id for row in selected(db, cutoff=50)] == ["new", "old"]
    assert [row.thread_id for row in selected(db, cutoff=51)] == ["old"]


@pytest.mark.parametrize(("matched", "pruned"), [(True, []), (False, ["t1"])])
def test_only_a_matched_snapshot_keeps_an_aged_output(matched, pruned):
    snapshot = (Selected(thread_id="t1", source_updated_at=100, matched=matched),)

    db = tables([plain(Stage1Succeeded), plain(Phase2Succeeded, selected=snapshot)])

    assert prunable(db, cutoff=999) == pruned


def test_a_snapshot_does_not_keep_an_output_written_anew_after_it():
    snapshot = (Selected(thread_id="t1", source_updated_at=100, matched=True),)
    consolidated = [plain(Stage1Succeeded, at=1), plain(Phase2Succeeded, at=5, selected=snapshot)]
    removed = [*consolidated, plain(Stage1SucceededNoOutput, at=6)]

    refreshed = tables([*consolidated, plain(Stage1Succeeded, at=7)])
    anew = tables([*removed, plain(Stage1Succeeded, at=7)])

    assert prunable(refreshed, cutoff=999) == []
    assert prunable(anew, cutoff=999) == ["t1"]
    assert len(find(refreshed, selection, selection.SELECTED, thread_id="t1")) == 1
    assert find(anew, selection, selection.SELECTED, thread_id="t1") == []


def test_pruning_takes_the_oldest_first_and_no_more_than_asked():
    db = tables(
        [
            plain(Stage1Succeeded, thread_id="b", counts_from=1, source_updated_at=1),
            plain(Stage1Succeeded, thread_id="a", counts_from=1, source_updated_at=1),
            plain(Stage1Succeeded, thread_id="c", counts_from=0),
            plain(Stage1Succeeded, thread_id="d", counts_from=2),
        ]
    )

    assert prunable(db, cutoff=3, most=3) == ["c", "a", "b"]


def test_a_polluted_output_is_pruned_like_any_other():
    db = tables([plain(Stage1Succeeded, memory_mode="polluted")])

    assert prunable(db, cutoff=101) == ["t1"]
