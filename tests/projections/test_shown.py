"""shown, citations, notes, places: what was in reach, what counted, what was said and linked."""

from hypothesis import given
from threadbook.domain.events import (
    Cited,
    MemoryShown,
    NoteAdded,
    NoteRemoved,
    ProjectLinked,
    StoreReset,
    ThreadForgotten,
)
from threadbook.projections import citations, notes, places, shown
from threadbook.projections.fold import fold

from tests.projections.histories import logs, unhurried
from tests.projections.specimens import find, plain, tables


@unhurried
@given(log=logs)
def test_a_session_was_shown_every_rendering_and_every_thread_it_was_given(log):
    told = [event for event in log if isinstance(event, MemoryShown)]

    found = {
        (row.session_id, row.memory_version, row.scope, row.thread_id, row.rendered_position)
        for row in fold(shown, log)
    }

    assert found == {
        (
            event.session_id,
            event.memory_version,
            event.scope,
            thread_id,
            event.rendered_position or 0,
        )
        for event in told
        for thread_id in ("", *event.thread_ids)
    }


def test_a_second_showing_of_the_same_thing_is_the_same_row_with_the_newer_time():
    log = [
        plain(MemoryShown, at=1, via="read", rendered_position=9, thread_ids=("t1",)),
        plain(MemoryShown, at=2, via="search", rendered_position=9, thread_ids=("t1",)),
    ]

    assert [(row.thread_id, row.via, row.at) for row in fold(shown, log)] == [
        ("", "search", 2),
        ("t1", "search", 2),
    ]


def test_reach_is_asked_by_the_thread_given_or_by_the_renderings_seen():
    log = [
        plain(MemoryShown, via="context", rendered_position=9),
        plain(MemoryShown, via="context", rendered_position=12),
        plain(MemoryShown, via="search", thread_ids=("t1", "t2")),
        plain(MemoryShown, session_id="s2", rendered_position=99, thread_ids=("t3",)),
    ]
    session = {"session_id": "s1", "memory_version": "v1"}

    def asked(rest, **values):
        return find(tables(log), shown, rest, **session, **values)

    assert [row.rendered_position for row in asked(shown.RENDERINGS)] == [9, 12]
    assert len(asked(shown.THREAD_GIVEN, thread_id="t1")) == 1
    assert asked(shown.THREAD_GIVEN, thread_id="t3") == []


@unhurried
@given(log=logs)
def test_a_citation_has_counted_until_its_thread_is_forgotten_or_its_version_emptied(log):
    expected = set()
    for event in log:
        match event:
            case Cited():
                expected.add((event.thread_id, event.memory_version, event.citation_id))
            case ThreadForgotten():
                expected = {key for key in expected if key[0] != event.thread_id}
            case StoreReset():
                expected = {key for key in expected if key[1] != event.memory_version}

    found = fold(citations, log)

    assert {(row.thread_id, row.memory_version, row.citation_id) for row in found} == expected


def test_citations_go_with_their_thread_in_every_version_and_with_their_version():
    log = [
        plain(Cited, thread_id=thread_id, memory_version=version)
        for thread_id in ("t1", "t2")
        for version in ("v1", "v2")
    ]

    def left(event):
        return [(row.thread_id, row.memory_version) for row in fold(citations, [*log, event])]

    assert left(plain(ThreadForgotten)) == [("t2", "v1"), ("t2", "v2")]
    assert left(plain(StoreReset)) == [("t1", "v2"), ("t2", "v2")]


def test_a_reset_keeps_the_notes_because_they_belong_to_no_version():
    log = [plain(NoteAdded, body_ref="n", via="cli"), plain(StoreReset, keep_notes=False)]

    assert [row.body_ref for row in fold(notes, log)] == ["n"]


def test_a_note_that_was_removed_has_no_row_and_the_others_stay():
    log = [plain(NoteAdded, body_ref=ref, via="cli") for ref in ("a", "b")]

    assert [row.body_ref for row in fold(notes, [*log, plain(NoteRemoved, body_ref="a")])] == ["b"]


def test_the_notes_of_a_scope_come_in_the_order_they_were_made():
    log = [
        plain(NoteAdded, at=2, body_ref="a", via="cli"),
        plain(NoteAdded, at=1, body_ref="b", via="mcp"),
        plain(NoteAdded, at=1, body_ref="c", via="file", scope="user"),
    ]

    found = find(tables(log), notes, notes.OF_SCOPE, scope="project:a")

    assert [(row.body_ref, row.via) for row in found] == [("b", "mcp"), ("a", "cli")]


def test_a_root_can_be_linked_to_two_remotes_and_both_are_known():
    log = [
        plain(ProjectLinked, at=1, scope="project:a", remote="example.org/a"),
        plain(ProjectLinked, at=2, scope="project:b", remote="example.org/b"),
    ]

    found = find(tables(log), places, places.OF_ROOT, root="/home/ann/a")

    assert [(row.scope, row.remote, row.linked_at) for row in found] == [
        ("project:a", "example.org/a", 1),
        ("project:b", "example.org/b", 2),
    ]
