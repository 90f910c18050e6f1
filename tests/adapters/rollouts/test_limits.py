"""What Codex was told of its account, read from its rollouts, and what a run does about it."""

import json

import pytest
from msgspec.structs import replace
from threadbook.adapters import rollouts
from threadbook.application import startup
from threadbook.application.surroundings import Provider
from threadbook.domain.guard import RateLimits, Window

from tests.application.homes import NOON, Home, Session, rfc
from tests.application.test_reading_at_once import Later, asking, taught

HOUR_S = 3600


def told(at: int, limits: object) -> dict[str, object]:
    payload = {"type": "token_count", "info": None, "rate_limits": limits}
    return {"timestamp": rfc(at), "type": "event_msg", "payload": payload}


def used(percent: object, *, ends: int = NOON + HOUR_S) -> dict[str, object]:
    return {
        "limit_id": "codex",
        "primary": {"used_percent": percent, "window_minutes": 300, "resets_at": ends},
        "secondary": None,
        "rate_limit_reached_type": None,
    }


def write(home: Home, session: Session, *events: dict[str, object]) -> None:
    home.write(session)
    with home.file(session).open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(event) + "\n" for event in events)


@pytest.fixture
def home(tmp_path):
    made = Home(tmp_path)
    yield made
    made.memory.close()


ONE = Session(number=1)
AT = ONE.ended_at


@pytest.mark.parametrize(
    ("events", "found"),
    [
        ([], None),
        ([told(AT, {"limit_id": "codex", "primary": None, "secondary": None})], None),
        ([told(AT, "none")], None),
        ([told(AT, used("80"))], None),
        (
            [told(AT - 9, used(80.5)), told(AT - 5, used(12)), told(AT, None)],
            (AT - 5, Window(used_percent=12.0, resets_at=NOON + HOUR_S)),
        ),
        (
            [told(AT, {"primary": {"used_percent": 7, "resets_in_seconds": 60}})],
            (AT, Window(used_percent=7.0, resets_at=AT + 60)),
        ),
        ([told(NOON + 60, used(99))], None),
    ],
    ids=["none", "nothing said", "no table", "no number", "newest", "older form", "from tomorrow"],
)
def test_the_newest_that_was_said_counts(home, events, found):
    write(home, ONE, *events)

    read = rollouts.survey(home.file(ONE), now_ms=NOON * 1000).limits

    assert (read and (read[0] // 1000, read[1].primary)) == found


def test_a_provider_is_not_asked_while_codexs_account_has_little_left(home):
    write(home, ONE, told(AT, used(75.1)))
    home.write(Session(number=2))

    shut = asking(home, Later(taught))
    open_again = asking(home.later(2 * HOUR_S), Later(taught))

    assert (shut.stage1.claimed, shut.waiting) == (0, {"rate_limit": 2})
    assert open_again.stage1.succeeded == 2


def test_the_offline_model_asks_no_account(home):
    write(home, ONE, told(AT, used(100)))

    assert home.run().stage1.succeeded == 1


def test_of_several_sessions_the_one_that_was_told_last_counts(home):
    around = home.memory._around
    paid = Provider(base_url="http://127.0.0.1:1/v1", extract_model="m", consolidation_model="m")
    around = replace(around, policy=replace(around.policy, provider=paid))
    write(home, ONE, told(AT, used(90)))
    write(home, Session(number=2), told(AT - 60, used(5)))
    sightings, _ = startup.ingest.survey(around, [home.sessions])

    assert startup.is_spent(around, startup.ingest.by_thread(sightings))
    assert [type(each.limits[1]) for each in sightings] == [RateLimits, RateLimits]


def test_another_limit_that_was_told_later_does_not_hide_codexs_own(home):
    around = home.memory._around
    paid = Provider(base_url="http://127.0.0.1:1/v1", extract_model="m", consolidation_model="m")
    around = replace(around, policy=replace(around.policy, provider=paid))
    spent, other = used(90), used(5) | {"limit_id": "other"}
    write(home, ONE, told(AT - 90, spent), told(AT - 60, other))
    write(home, Session(number=2), told(AT, other))
    sightings, _ = startup.ingest.survey(around, [home.sessions])

    assert startup.is_spent(around, startup.ingest.by_thread(sightings))
