"""Files become threads: what waits, what is read again, what a missing or doubled file means."""

import os
import shutil

import pytest
from msgspec.structs import replace
from threadbook.adapters.rollouts import NotASession, Unreadable
from threadbook.application.claims import candidates
from threadbook.domain.events import (
    Stage1Failed,
    ThreadChanged,
    ThreadRegistered,
    thread_stream,
)

from tests.application.homes import (
    DAY_S,
    FIXTURES,
    HOUR_S,
    NOON,
    Home,
    Session,
    Telling,
    content,
    thread_id,
)

A = Session(number=1)
B = Session(number=2, says=("please never use tabs in this project, always spaces",))


def test_an_unfinished_tail_waits_while_somebody_may_still_be_writing(home):
    home.write(A)
    with home.file(A).open("a") as file:
        file.write('{"timestamp": "2026-01-01T05')
    os.utime(home.file(A), (NOON - HOUR_S, NOON - HOUR_S))

    waits = home.run()
    told = waits.waiting, waits.stage1.claimed, waits.stage1.waiting
    read = home.later(6 * HOUR_S).run()

    assert told == ({"idle": 1}, 0, 1)
    assert read.stage1.succeeded == 1
    assert read.waiting == {}


def test_a_session_that_ended_just_now_waits_and_says_for_what(home):
    home.write(Session(number=1, ended_at=NOON - HOUR_S))

    report = home.run()
    told = home.memory.explain(A.id)

    assert (report.waiting, report.stage1.waiting) == ({"idle": 1}, 1)
    assert [line.stage1 for line in home.memory.threads()] == ["waiting"]
    assert told.verdict == "out: idle for 1 h; needs 6 h"


def test_a_session_that_is_too_old_says_how_to_read_it(home):
    home.write(Session(number=1, ended_at=NOON - 12 * DAY_S))

    report = home.run()
    told = home.memory.explain(A.id)

    assert (report.waiting, report.stage1.claimed) == ({"age": 1}, 0)
    assert [line.stage1 for line in home.memory.threads()] == ["none"]
    assert "threadbook run --backfill" in told.verdict


@pytest.mark.parametrize(
    ("ended_at", "read"),
    [
        (NOON - 6 * HOUR_S, True),
        (NOON - 6 * HOUR_S + 1, False),
        (NOON - 10 * DAY_S, True),
        (NOON - 10 * DAY_S - 1, False),
    ],
)
def test_both_ends_of_the_window_are_inside_it(home, ended_at, read):
    home.write(Session(number=1, ended_at=ended_at))

    assert home.run().stage1.claimed == read


def test_a_backfill_reads_every_older_session_and_counts_them_from_that_day(home):
    old = Session(number=1, ended_at=NOON - 200 * DAY_S)
    home.write(old, B)

    report = home.run(backfill=-1)
    month = home.later(29 * DAY_S).run()

    assert (report.stage1.succeeded, report.waiting) == (2, {})
    assert [(o.source_updated_at, o.counts_from) for o in home.outputs()] == [
        (old.ended_at, NOON),
        (B.ended_at, NOON),
    ]
    assert month.pruned == 0
    assert home.selected() == {A.id, B.id}
    home.later(2 * DAY_S).run()
    assert home.selected() == set()


def test_a_backfill_of_n_reads_the_newest_n_of_the_older_ones_and_tells_of_the_rest(home):
    older = [Session(number=n, ended_at=NOON - (20 + n) * DAY_S) for n in range(1, 6)]
    home.write(*older, Session(number=9, says=B.says))

    first = home.run(backfill=2)
    second = home.run(backfill=2)

    assert first.stage1.claimed == 3
    assert first.waiting == {"age": 3}
    assert second.stage1.claimed == 2
    assert second.waiting == {"age": 1}
    assert {o.thread_id for o in home.outputs()} == {
        *(session.id for session in older[:4]),
        Session(number=9).id,
    }


def test_a_backfill_keeps_every_other_gate(home):
    home.write(
        Session(number=1, ended_at=NOON - 200 * DAY_S, source="exec"),
        Session(number=2, ended_at=NOON - HOUR_S),
    )

    assert home.run(backfill=-1).stage1.claimed == 0


def test_a_dry_run_stores_nothing_and_says_what_a_run_then_does(home):
    home.write(
        A,
        B,
        Session(number=3, ended_at=NOON - HOUR_S),
        Session(number=4, ended_at=NOON - 20 * DAY_S),
        Session(number=5, source="exec"),
    )
    before = home.position

    said = home.run(dry_run=True)
    after = home.position, home.roots(), home.outputs()
    done = home.run()

    assert after == (before, [], [])
    assert said.dry_run
    assert said.phase2 == []
    for name in ("sessions", "ingested", "waiting", "pruned", "skipped_lines"):
        assert getattr(said, name) == getattr(done, name), name
    assert (said.stage1.claimed, said.stage1.waiting) == (2, 1)
    assert (done.stage1.claimed, done.stage1.waiting) == (2, 1)


def test_a_dry_run_knows_what_is_being_read_and_what_failed(home):
    home.write(A)
    home.run_with(extractor=Telling(**{A.id: fails}))

    said = home.run(dry_run=True)

    assert (said.stage1.claimed, said.waiting) == (0, {"backoff": 1})


def fails(header, items):
    from threadbook.application.ports import ExtractionFailed

    raise ExtractionFailed("bad_reply", "no_json")


def test_of_two_files_with_one_id_the_longer_one_counts(home):
    short = Session(number=1, says=("what is the time?",))
    home.write(A, folder="b")
    grown = Session(number=1, says=("what is the time?", *A.says))
    home.write(short, folder="a")
    home.write(grown, folder="c")

    report = home.run()

    assert report.sessions == 1
    (row,) = home.events(ThreadRegistered)
    assert "/c/" in row.rollout_path
    assert report.stage1.succeeded == 1


def test_an_older_copy_elsewhere_changes_nothing(home):
    grown = Session(number=1, says=(*A.says, "thanks"), ended_at=NOON - 7 * HOUR_S)
    home.write(grown)
    home.run()
    before = home.position
    copy = home.folder / "copy"
    copy.mkdir()
    (copy / "old.jsonl").write_text(Session(number=1, ended_at=NOON - 9 * HOUR_S).text())

    home.run([copy])

    assert home.position == before


def test_what_an_older_copy_says_of_the_memory_mode_is_not_asked(home):
    home.write(Session(number=1, memory_mode="disabled"))
    home.run()
    before = home.position
    copy = home.folder / "copy"
    copy.mkdir()
    older = Session(number=1, memory_mode="enabled", ended_at=NOON - 9 * HOUR_S)
    (copy / "old.jsonl").write_text(older.text())

    home.run([copy])

    assert home.position == before


def test_a_copy_beside_the_file_changes_nothing_until_the_file_is_gone(home):
    home.write(A, folder="first")
    home.run()
    before = home.position
    home.write(A, folder="second")

    home.run()
    beside = home.position
    shutil.rmtree(home.sessions / "first")
    home.run()

    assert beside == before
    (changed,) = home.events(ThreadChanged)
    assert "/second/" in changed.rollout_path
    assert home.position > before
    assert home.run().ingested == 0


def test_a_session_is_known_with_the_machine_that_has_its_file(home):
    home.write(A)

    home.run()

    (event,) = home.events(ThreadRegistered)
    assert event.machine_id == (home.path / "machine").read_text().strip()


def test_a_session_that_moved_is_found_where_it_is(home):
    home.write(A)
    home.run()
    archive = home.sessions / "archived_sessions"
    archive.mkdir()
    shutil.move(home.file(A), archive / home.file(A).name)

    report = home.later(60).run()

    (changed,) = home.events(ThreadChanged)
    assert changed.archived is True
    assert "archived_sessions" in changed.rollout_path
    assert report.stage1.claimed == 0
    assert home.selected() == {A.id}  # What was read before it was archived stays.


def test_an_archived_session_that_was_not_read_is_not(home):
    home.write(A, folder="archived_sessions")

    report = home.run()

    assert report.stage1.claimed == 0
    assert "archived" in home.memory.explain(A.id).verdict


def test_a_missing_rollout_deletes_nothing_and_says_nothing(home):
    home.write(A, B)
    home.run()
    before = home.position, content(home.root())
    home.file(A).unlink()

    report = home.later(60).run()

    assert (home.position, content(home.root())) == before
    assert report.waiting == {}
    assert home.selected() == {A.id, B.id}


def test_a_rollout_that_is_gone_before_it_was_read_waits_for_it_without_an_event(home):
    home.write(A)
    home.memory.ingest([home.sessions])
    home.file(A).unlink()
    before = home.position

    report = home.run()
    told = home.position
    home.write(A)
    back = home.run()

    assert told == before
    assert report.waiting == {"source_missing": 1}
    assert not report.all_failed
    assert back.stage1.succeeded == 1


def test_a_rollout_that_turned_into_something_else_is_closed_until_it_goes_on(home):
    home.write(A)
    home.memory.ingest([home.sessions])
    home.file(A).write_text("no session\n")

    report = home.run()
    again = home.later(2 * HOUR_S).run()

    (failed,) = home.events(Stage1Failed)
    assert (failed.kind, failed.reason) == ("source", "source_is_no_session")
    assert report.all_failed
    assert again.waiting == {"retry_exhausted": 1}
    assert "no tries are left" in " ".join(home.memory.explain(A.id).waiting)
    assert "source_is_no_session" in " ".join(home.memory.status()["stuck"])
    assert [line.stage1 for line in home.memory.threads()] == ["failed"]


def test_a_path_that_is_not_there_is_said_so_and_nothing_is_stored(home):
    before = home.position

    with pytest.raises(Unreadable, match="no such file"):
        home.run([home.folder / "nowhere"])

    assert home.position == before


def test_a_named_file_that_is_no_session_is_told_and_the_others_are_read(home):
    home.write(A)
    other = home.folder / "notes.jsonl"
    other.write_text('{"note": 1}\n')

    report = home.run([other, home.sessions])

    assert len(report.unreadable) == 1
    assert str(other) in report.unreadable[0]
    assert report.stage1.succeeded == 1
    assert issubclass(NotASession, Exception)


def test_bad_lines_are_counted_and_cost_only_themselves(home):
    lines = A.text().splitlines()
    home.file(A).write_text("\n".join([lines[0], "{broken", '"half', *lines[1:]]) + "\n")
    os.utime(home.file(A), (A.ended_at, A.ended_at))

    report = home.run()

    assert sum(report.skipped_lines.values()) == 2
    assert report.stage1.succeeded == 1


def test_every_file_of_the_open_cases_is_read_or_named(home):
    report = home.run([FIXTURES / "open", FIXTURES / "made"])

    assert report.stage1.failed == 0
    assert report.sessions > 10
    assert home.memory.replay_verify() == []
    before = home.position
    assert home.run([FIXTURES / "open", FIXTURES / "made"]).ingested == 0
    assert home.position == before


def test_new_sessions_are_disabled_where_the_setting_says_so_and_old_ones_stay(tmp_path):
    home = Home(tmp_path)
    home.write(A)
    home.run()
    home.write(B)

    home.reopened(generate_memories=False).run()

    modes = {line.thread_id: line.memory_mode for line in home.memory.threads()}
    assert modes == {A.id: "enabled", B.id: "disabled"}
    assert home.selected() == {A.id}


def test_ingest_alone_extracts_nothing(home):
    home.write(A)

    report = home.memory.ingest([home.sessions])

    assert (report.sessions, report.ingested) == (1, 1)
    assert home.types()[1:] == ["thread.registered"]
    assert home.memory.explain(A.id).waiting == ["the next run reads it"]


def test_a_preview_is_redacted_and_no_event_holds_a_word_of_it(home):
    secret = "ghp_" + "a1B2" * 9
    home.write(Session(number=1, says=(f"my token is {secret}, please always use it",)))

    home.run()

    assert secret.encode() not in b"".join(
        p.read_bytes() for p in home.path.rglob("*") if p.is_file()
    )
    assert all("my token" not in each.data for each in home.log())


def test_of_very_many_sessions_the_oldest_is_read_too(home):
    """Codex looks at its newest 5,000, for what more would cost; reading offline costs nothing."""
    home.write(Session(number=1))
    home.run()
    (one,) = home.events(ThreadRegistered)
    ids = [thread_id(number) for number in range(2, 5_003)]

    with home.memory.store.writing(actor="pipeline") as tx:
        for each in ids:
            tx.append(thread_stream(each), replace(one, thread_id=each))

    with home.memory.store.reading() as view:
        found = candidates(home.memory._around, view, backfill=None)
    assert {row.thread_id for row in found} == {one.thread_id, *ids}
