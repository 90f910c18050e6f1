"""selection and progress: what the last success of each root was made from, and the largest."""

from hypothesis import given
from threadbook.domain.events import (
    Phase2Succeeded,
    Selected,
    Stage1Succeeded,
    StoreReset,
    ThreadForgotten,
    ThreadPolluted,
)
from threadbook.projections import progress, selection
from threadbook.projections.fold import fold

from tests.projections.histories import logs, unhurried
from tests.projections.specimens import find, plain, tables, value


def picked(*thread_ids, matched=True):
    return tuple(
        Selected(thread_id=thread_id, source_updated_at=100, matched=matched)
        for thread_id in thread_ids
    )


@unhurried
@given(log=logs)
def test_the_selection_is_the_last_success_of_each_root_since_its_reset(log):
    expected = {}
    for event in log:
        match event:
            case Phase2Succeeded():
                expected[event.memory_version, event.scope] = event
            case StoreReset():
                expected = {
                    root: s for root, s in expected.items() if root[0] != event.memory_version
                }

    found = fold(selection, log)

    assert {
        (*key(row), row.thread_id, row.source_updated_at, row.matched, row.selected_at)
        for row in found
    } == {
        (*root, read.thread_id, read.source_updated_at, read.matched, success.at)
        for root, success in expected.items()
        for read in success.selected
    }


def key(row):
    return row.memory_version, row.scope


@unhurried
@given(log=logs)
def test_progress_is_the_largest_success_of_a_version_since_its_reset(log):
    expected = {}
    for event in log:
        match event:
            case Phase2Succeeded():
                threads = {read.thread_id for read in event.selected}
                most = expected.get(event.memory_version, 0)
                expected[event.memory_version] = max(most, len(threads))
            case StoreReset():
                expected.pop(event.memory_version, None)

    found = fold(progress, log)

    assert {row.memory_version: row.max_thread_count for row in found} == expected


def test_a_smaller_success_does_not_lower_progress_and_a_reset_does():
    log = [plain(Phase2Succeeded, selected=picked("t1", "t2")), plain(Phase2Succeeded)]

    def most(log):
        return value(tables(log), progress.MAX_THREAD_COUNT, memory_version="v1")

    assert most(log) == 2
    assert most([*log, plain(StoreReset)]) == 0
    assert most([]) == 0


def test_the_snapshot_still_shows_a_thread_that_went_bad_since():
    log = [plain(Stage1Succeeded), plain(Phase2Succeeded, selected=picked("t1"))]

    later = [*log, plain(ThreadPolluted), plain(ThreadForgotten)]

    assert fold(selection, later) == fold(selection, log) != []


def test_an_empty_success_empties_the_snapshot_of_its_root_alone():
    log = [
        plain(Phase2Succeeded, scope="project:a", selected=picked("t1")),
        plain(Phase2Succeeded, scope="project:b", selected=picked("t1")),
        plain(Phase2Succeeded, scope="project:a"),
    ]

    assert [row.scope for row in fold(selection, log)] == ["project:b"]


def test_a_thread_is_selected_where_its_live_output_matched():
    log = [
        plain(Stage1Succeeded, memory_version="v1"),
        plain(Phase2Succeeded, scope="global", selected=picked("t1")),
        plain(Phase2Succeeded, scope="user", selected=picked("t1", matched=False)),
        plain(Phase2Succeeded, memory_version="v2", selected=picked("t1")),  # No output there.
    ]

    def roots(rest):
        return [key(row) for row in find(tables(log), selection, rest, thread_id="t1")]

    assert roots(selection.SELECTED) == [("v1", "global")]
    assert roots(selection.OF_THREAD) == [("v1", "global"), ("v1", "user"), ("v2", "project:a")]
