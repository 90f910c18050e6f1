"""spend: every token of every attempt, on the day and in the phase it was used."""

from datetime import UTC, datetime
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import fields
from threadbook.domain.events import AnyEvent, Stage1Failed, Stage1Succeeded, Tokens
from threadbook.projections import spend
from threadbook.projections.fold import fold

from tests.projections.histories import logs, unhurried
from tests.projections.specimens import find, plain, tables, value


@unhurried
@given(log=logs)
def test_no_token_is_lost_or_counted_twice(log):
    spent = [event.tokens for event in log if isinstance(getattr(event, "tokens", 0), Tokens)]

    found = fold(spend, log)

    for column in ("calls", "input", "cached", "output", "reasoning"):
        assert sum(getattr(row, column) for row in found) == sum(
            getattr(tokens, column) for tokens in spent
        )


def test_every_event_that_carries_a_models_tokens_is_counted():
    carrying = {
        event
        for event in get_args(AnyEvent)
        if any(field.type is Tokens for field in fields(event))
    }

    assert set(get_args(spend.FOLLOWS)) == carrying


@unhurried
@given(at=st.integers(-(10**9), 4 * 10**9))
def test_a_day_is_the_date_in_utc(at):
    assert spend.day(at) == datetime.fromtimestamp(at, UTC).date().isoformat()


@pytest.mark.parametrize(("at", "day"), [(86_399, "1970-01-01"), (86_400, "1970-01-02")])
def test_a_day_begins_at_midnight_utc(at, day):
    tokens = Tokens(model="luna", calls=1, input=10)

    [row] = fold(spend, [plain(Stage1Succeeded, at=at, tokens=tokens)])

    assert row.day == day


def test_a_failed_attempt_is_added_to_what_the_day_has_cost():
    log = [
        plain(Stage1Succeeded, tokens=Tokens(model="luna", calls=1, input=10, cached=8, output=2)),
        plain(
            Stage1Failed,
            kind="bad_reply",
            retry_at=None,
            tokens=Tokens(model="luna", calls=2, input=5, output=1, reasoning=1),
        ),
    ]
    db = tables(log)

    [row] = find(db, spend, spend.SINCE, day="1970-01-01")

    assert row == spend.Row(
        day="1970-01-01",
        phase="phase1",
        model="luna",
        calls=3,
        input=15,
        cached=8,
        output=3,
        reasoning=1,
    )
    assert value(db, spend.TOKENS_OF_DAY, day="1970-01-01") == 18
    assert value(db, spend.TOKENS_OF_DAY, day="1970-01-02") == 0


def test_an_attempt_that_called_nobody_leaves_no_row():
    assert fold(spend, [plain(Stage1Succeeded)]) == []
