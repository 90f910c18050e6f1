"""Every projection ends in the same rows: followed live, folded, rebuilt, or seen in the past."""

import sqlite3
from collections import Counter
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import json
from msgspec.structs import astuple
from threadbook.domain.events import AnyEvent
from threadbook.projections.catalog import SYNCHRONOUS
from threadbook.projections.fold import Table, create, fold, follow, plan, read, rebuild

from tests.projections.histories import logs, single_events, unhurried


def as_bytes(rows):
    """What is equal here is the same bytes: Python alone would take True for 1."""
    return [json.encode(row) for row in rows]


def folded(projection, log):
    return as_bytes(map(astuple, fold(projection, log)))


def stored(projection, db):
    columns = ", ".join(projection.Row.__struct_fields__)
    in_key_order = ", ".join(projection.KEY)
    return as_bytes(
        db.execute(f"SELECT {columns} FROM {projection.NAME} ORDER BY {in_key_order}").fetchall()
    )


def empty():
    db = sqlite3.connect(":memory:")
    for projection in SYNCHRONOUS:
        create(projection, db)
    return db


@unhurried
@given(log=logs, cut=st.data())
def test_following_folding_rebuilding_and_looking_back_agree_at_every_position(log, cut):
    db = empty()
    for position, event in enumerate(log, start=1):
        for projection in SYNCHRONOUS:
            follow(projection, event, db)

            assert stored(projection, db) == folded(projection, log[:position]), projection.NAME

    past = log[: cut.draw(st.integers(0, len(log)))]
    for projection in SYNCHRONOUS:
        assert as_bytes(read(projection, (), db)) == as_bytes(fold(projection, log))
        rebuild(projection, past, db)  # Over a table that holds more than the log tells.

        assert stored(projection, db) == folded(projection, past), projection.NAME


@unhurried
@given(log=logs, drawn=st.data())
def test_events_of_one_transaction_agree_whenever_their_rows_are_written(log, drawn):
    db = empty()
    for projection in SYNCHRONOUS:
        table = Table(projection, db)
        followed = [event for event in log if type(event) in plan(projection).followed]
        written_behind = drawn.draw(st.sets(st.integers(1, len(log))))
        for position, event in enumerate(followed, start=1):
            table.follow(event)
            place = projection.place(event)

            if len(place) == len(projection.KEY):
                row = table.row(place)
                found = [
                    each for each in fold(projection, followed[:position]) if is_at(place, each)
                ]
                assert as_bytes([row] if row else []) == as_bytes(found), projection.NAME
            if position in written_behind:
                table.write()
                assert stored(projection, db) == folded(projection, followed[:position])
        table.write()

        assert stored(projection, db) == folded(projection, log), projection.NAME


@unhurried
@given(log=logs, event=single_events)
def test_an_event_changes_nothing_outside_its_place(log, event):
    for projection in SYNCHRONOUS:
        if not isinstance(event, projection.FOLLOWS):
            continue
        place = projection.place(event)

        before, after = fold(projection, log), fold(projection, [*log, event])

        assert elsewhere(place, after) == elsewhere(place, before), projection.NAME


def is_at(place, row):
    return astuple(row)[: len(place)] == place


def elsewhere(place, rows):
    return [row for row in rows if not is_at(place, row)]


@unhurried
@given(log=logs, event=single_events)
def test_what_a_projection_does_not_follow_changes_none_of_its_rows(log, event):
    db = empty()
    for past in log:
        for projection in SYNCHRONOUS:
            follow(projection, past, db)
    before = {projection: stored(projection, db) for projection in SYNCHRONOUS}

    for projection in SYNCHRONOUS:
        if type(event) not in (get_args(projection.FOLLOWS) or (projection.FOLLOWS,)):
            follow(projection, event, db)

            assert stored(projection, db) == before[projection], projection.NAME


def test_the_logs_that_are_drawn_reach_every_event_and_fill_every_table():
    events, filled, changed = Counter(), Counter(), Counter()

    @settings(unhurried, max_examples=300, database=None, derandomize=True)
    @given(log=logs)
    def draw(log):
        events.update(map(type, log))
        for projection in SYNCHRONOUS:
            rows = fold(projection, log)
            filled[projection.NAME] += bool(rows)
            changed[projection.NAME] += bool(fold(projection, log[: len(log) // 2])) and bool(rows)

    draw()

    assert set(events) == set(get_args(AnyEvent))
    assert min(filled.values()) >= 20, filled
    assert min(changed.values()) >= 10, changed


@pytest.mark.parametrize("projection", SYNCHRONOUS, ids=lambda projection: projection.NAME)
def test_a_key_is_the_first_columns_of_the_row_and_the_tables_primary_key(projection):
    db = empty()

    columns = db.execute(f"PRAGMA table_info({projection.NAME})").fetchall()

    assert tuple(name for _, name, *_ in columns) == projection.Row.__struct_fields__
    assert (
        tuple(name for *_, name in sorted((pk, name) for _, name, _, _, _, pk in columns if pk))
        == projection.KEY
        == projection.Row.__struct_fields__[: len(projection.KEY)]
    )
