"""What folding promises, whatever the table: places wide and narrow, and nothing left behind."""

import sqlite3

import pytest
from threadbook.domain.events import (
    Cited,
    OutputWithdrawn,
    Phase2Succeeded,
    Selected,
    Stage1LeaseClaimed,
    Stage1Succeeded,
    StoreReset,
    ThreadForgotten,
    ThreadPolluted,
)
from threadbook.projections import jobs, notes, selection, stage1_outputs
from threadbook.projections.catalog import SYNCHRONOUS
from threadbook.projections.fold import create, fold, follow, read, rebuild

from tests.projections.specimens import plain, tables


def picked(*thread_ids):
    return tuple(
        Selected(thread_id=thread_id, source_updated_at=100, matched=True)
        for thread_id in thread_ids
    )


def test_a_whole_key_holds_one_row_a_part_of_it_a_group_and_nothing_the_table():
    written = [
        plain(Stage1Succeeded, thread_id=thread_id, memory_version=version)
        for thread_id in ("t1", "t2")
        for version in ("v1", "v2")
    ]

    one = tables([*written, plain(OutputWithdrawn, thread_id="t1", memory_version="v1")])
    group = tables([*written, plain(ThreadForgotten, thread_id="t1")])
    table = tables([*written, plain(StoreReset, memory_version="v1")])

    def left(db):
        return [(row.thread_id, row.memory_version) for row in read(stage1_outputs, (), db)]

    assert left(one) == [("t1", "v2"), ("t2", "v1"), ("t2", "v2")]
    assert left(group) == [("t2", "v1"), ("t2", "v2")]
    assert left(table) == [("t1", "v2"), ("t2", "v2")]


def test_rows_are_found_in_key_order_whatever_order_they_came_in():
    log = [plain(Phase2Succeeded, selected=picked("t3", "t1", "t2"))]

    live = read(selection, ("v1", "project:a"), tables(log))

    assert [row.thread_id for row in live] == ["t1", "t2", "t3"]
    assert live == fold(selection, log)


def test_a_row_that_went_is_in_no_group():
    log = [plain(Stage1Succeeded), plain(OutputWithdrawn), plain(ThreadPolluted)]

    assert fold(stage1_outputs, log) == []


def test_a_row_that_went_and_came_back_is_in_its_group_again():
    first = [plain(Stage1Succeeded), plain(OutputWithdrawn)]

    log = [*first, plain(Stage1Succeeded), plain(ThreadPolluted)]

    assert [row.memory_mode for row in fold(stage1_outputs, log)] == ["polluted"]
    assert fold(stage1_outputs, [*log, plain(ThreadForgotten)]) == []


def test_a_snapshot_that_shrinks_leaves_nothing_of_the_longer_one():
    longer = plain(Phase2Succeeded, selected=picked("t1", "t2", "t3"))

    log = [longer, plain(Phase2Succeeded, selected=picked("t2"))]

    assert [row.thread_id for row in fold(selection, log)] == ["t2"]
    assert read(selection, (), tables(log)) == fold(selection, log)


def test_following_is_part_of_the_transaction_it_is_called_in():
    db = tables([])
    db.commit()

    for projection in SYNCHRONOUS:
        follow(projection, plain(Stage1LeaseClaimed), db)
    found = read(jobs, (), db)
    db.rollback()

    assert len(found) == 1
    assert read(jobs, (), db) == []


@pytest.mark.parametrize("projection", SYNCHRONOUS, ids=lambda projection: projection.NAME)
def test_a_rebuilt_table_has_the_indexes_of_a_new_one(projection):
    db = tables([])
    query = "SELECT name, sql FROM sqlite_schema WHERE tbl_name = ? ORDER BY name"
    new = db.execute(query, (projection.NAME,)).fetchall()

    rebuild(projection, [], db)

    assert db.execute(query, (projection.NAME,)).fetchall() == new


def test_a_rebuild_repairs_a_row_that_was_changed_by_hand():
    log = [plain(Stage1Succeeded), plain(Cited, usage_count=7)]
    db = tables(log)
    db.execute("UPDATE stage1_outputs SET usage_count = 99")
    db.execute("INSERT INTO notes VALUES ('made up', 'project:a', 'cli', 1)")

    rebuild(stage1_outputs, log, db)
    rebuild(notes, log, db)

    assert [row.usage_count for row in read(stage1_outputs, (), db)] == [7]
    assert read(notes, (), db) == []


def test_a_table_refuses_a_value_of_another_type():
    db = sqlite3.connect(":memory:")
    create(stage1_outputs, db)
    follow(stage1_outputs, plain(Stage1Succeeded), db)

    with pytest.raises(sqlite3.IntegrityError):
        db.execute("UPDATE stage1_outputs SET usage_count = 'often'")
