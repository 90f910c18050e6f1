"""Words that nothing points to any longer go after `history_days`, and never a word in use."""

import pytest
from threadbook.domain.events import BodiesErased

from tests.application.homes import DAY_S, HOUR_S, NOON, Home, Session, content, used

pytestmark = pytest.mark.usefixtures("database")  # On the file and on a server.

A = Session(number=1)
B = Session(number=2, says=("please never use tabs in this project, always spaces",))
WORDS = "make check"
GROWN = Session(
    number=1, says=("from now on always run make lint before you push",), ended_at=NOON + HOUR_S
)


def erased(home):
    return sum(event.count for event in home.events(BodiesErased))


def reasons(home):
    return {event.reason for event in home.events(BodiesErased)}


def on_disk(home, words):
    return any(words.encode() in p.read_bytes() for p in home.path.rglob("*") if p.is_file())


def words_at(home, position):
    past = home.memory.at(position)
    return {row["thread_id"]: row["raw_memory"] for row in past["outputs"]}


def replaced(home):
    home.write(GROWN)
    home.later(12 * HOUR_S).run()


def polluted(home):
    home.later(12 * HOUR_S).memory.pollute(A.id, "web_search")
    home.run()


def pruned(home):
    home.later(31 * DAY_S).run()
    home.later(60).run()
    assert [o.thread_id for o in home.outputs()] == []


@pytest.mark.parametrize("change", [replaced, polluted], ids=["replaced", "polluted"])
def test_what_left_stays_readable_in_the_past_for_the_days_that_are_set(home, change):
    home.write(A, B)
    home.run()
    then = home.position
    change(home)

    home.later(29 * DAY_S).run()
    before = words_at(home, then)
    # The run at the end of the days erases; whatever aged out of the folder meanwhile is B's.
    used(home.memory, [B.id], "s", 1)
    home.later(2 * DAY_S).run()
    after = words_at(home, then)

    assert WORDS in before[A.id]
    assert after[A.id] == "[erased]"
    assert "history_days" in reasons(home)
    assert not on_disk(home, WORDS) or change is polluted  # Its preview is still in use.


def test_what_was_pruned_goes_as_late(home):
    home.write(A)
    home.run()
    then = home.position
    pruned(home)

    home.later(29 * DAY_S).run()
    before = words_at(home, then)
    home.later(2 * DAY_S).run()

    assert WORDS in before[A.id]
    assert words_at(home, then)[A.id] == "[erased]"


def test_with_a_history_of_no_days_what_a_run_replaced_goes_in_that_run(tmp_path):
    home = Home(tmp_path, history_days=0)
    home.write(A)
    home.run()
    then = home.position

    replaced(home)

    assert words_at(home, then)[A.id] == "[erased]"
    assert "make lint" in words_at(home, home.position)[A.id]
    assert not on_disk(home, WORDS)


@pytest.mark.parametrize("days", [0, 30])
def test_never_a_word_in_use_goes(tmp_path, days):
    home = Home(tmp_path, history_days=days)
    home.write(A, B)
    home.run()

    for month in range(1, 8):
        used(home.later(20 * DAY_S).memory, [A.id, B.id], "s", month)
        home.run()
        home.memory.set_mode(B.id, "disabled" if month % 2 else "enabled")
        home.run()

    home.memory.set_mode(B.id, "enabled")
    home.run()
    now = words_at(home, home.position)
    assert WORDS in now[A.id]
    assert "spaces" in now[B.id]
    text = "".join(content(home.root()).values())
    assert WORDS in text
    assert "spaces" in text
    assert home.memory.replay_verify() == []
    assert home.run().phase2 == []


def test_what_is_erased_is_still_counted_explained_and_verified(home):
    home.write(A, B)
    home.run()
    then = home.position
    replaced(home)
    used(home.later(31 * DAY_S).memory, [A.id, B.id], "s", 1)
    home.run()

    assert erased(home) > 0
    assert home.memory.verify().ok
    assert home.memory.replay_verify() == []
    assert home.memory.explain(A.id, at=then).selected
    assert home.memory.explain(A.id).selected or home.memory.explain(A.id).gates


def test_a_young_log_erases_nothing(home):
    home.write(A)
    home.run()
    replaced(home)

    assert home.events(BodiesErased) == []


def test_after_the_words_of_pollution_went_there_is_no_output_left_to_enable(home):
    home.write(A, B)
    home.run()
    polluted(home)
    used(home.later(20 * DAY_S).memory, [A.id, B.id], "s", 1)
    home.later(11 * DAY_S).run()

    home.memory.set_mode(A.id, "enabled")
    report = home.run()

    told = home.memory.explain(A.id)
    assert {o.thread_id for o in home.outputs()} == {B.id}
    assert not told.selected
    assert "last active 31 d ago" in told.verdict
    assert report.phase2 == []
    assert WORDS not in "".join(content(home.root()).values())


def test_what_was_enabled_again_in_time_keeps_its_words(home):
    home.write(A, B)
    home.run()
    polluted(home)
    home.later(20 * DAY_S).memory.set_mode(A.id, "enabled")
    used(home.memory, [A.id, B.id], "s", 1)

    home.later(25 * DAY_S).run()

    assert home.selected() == {A.id, B.id}
    assert WORDS in "".join(content(home.root()).values())
