"""What sessions cite in their transcripts counts when they are read, and once, whoever counts."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from threadbook.application.citing import surplus
from threadbook.domain.events import Cited

from tests.application.homes import DAY_S, FERN, HOUR_S, NOON, Home, Session, rfc, show

A = Session(number=1)
B = Session(number=2, says=("please never use tabs in this project, always spaces",))
CITING = Session(number=9, says=("hello",)).id


def block(*ids):
    lines = "\n".join(ids)
    return f"Done.\n<oai-mem-citation><rollout_ids>\n{lines}\n</rollout_ids></oai-mem-citation>"


def item(kind, at, **fields):
    return {"timestamp": rfc(at), "type": "response_item", "payload": {"type": kind, **fields}}


def said(role, text, at):
    return item("message", at, role=role, content=[{"type": "input_text", "text": text}])


def transcript(home, *turns, given=(), ended_at=NOON - 7 * HOUR_S, thread_id=CITING, name="citing"):
    """A session of a turn a list of cited ids, that was given a memory naming `given` at first."""
    began = ended_at - 600
    meta = {"id": thread_id, "timestamp": rfc(began), "source": "cli", "cwd": FERN}
    records = [{"timestamp": rfc(began), "type": "session_meta", "payload": meta}]
    records.append(said("developer", f"Memory: {' '.join(given)}", began + 1))
    for number, ids in enumerate(turns, start=1):
        records.append(said("user", f"hello {number}", began + 10 * number))
        records.append(said("assistant", block(*ids), began + 10 * number + 5))
    path = home.sessions / f"rollout-{name}.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in records))
    return began


def uses(home):
    return {each.thread_id: each.usage_count for each in home.outputs() if each.usage_count}


def test_a_reply_counts_when_its_transcript_is_read_and_as_of_when_it_was_said(home):
    home.write(A, B)
    home.run()
    began = transcript(home, [A.id, B.id], [A.id], given=[A.id])

    home.later(HOUR_S).run()

    assert uses(home) == {A.id: 2}
    assert [(each.citation_id, each.used_at) for each in home.events(Cited)] == [
        (f"{CITING}:1", began + 15),
        (f"{CITING}:2", began + 25),
    ]
    assert home.memory.explain(A.id).last_used_at == began + 25
    assert home.memory.replay_verify() == []


def test_a_session_and_what_it_cites_may_be_found_by_the_same_run(home):
    home.write(A)
    transcript(home, [A.id], given=[A.id])

    home.run()
    position = home.position

    assert uses(home) == {A.id: 1}
    home.run()
    assert home.position == position


def test_what_it_was_shown_by_us_is_in_reach_without_standing_in_the_transcript(home):
    home.write(A, B)
    home.run()
    show(home.memory._around, [A.id], CITING)
    transcript(home, [A.id, B.id])

    home.run()

    assert uses(home) == {A.id: 1}


def test_reading_again_and_growing_count_nothing_twice(home):
    home.write(A)
    home.run()
    transcript(home, [A.id], given=[A.id])
    home.run()
    home.memory.ingest([home.sessions])
    transcript(home, [A.id], [A.id], [], given=[A.id], ended_at=NOON - 6 * HOUR_S)

    home.later(HOUR_S).run()
    home.run()

    assert uses(home) == {A.id: 2}


@pytest.mark.parametrize("first", [0, 1], ids=["counts from 0", "counts from 1"])
def test_what_was_counted_live_is_not_counted_again_whichever_way_turns_are_numbered(home, first):
    home.write(A)
    home.run()
    show(home.memory._around, [A.id], CITING)
    live = [home.memory.cite(block(A.id), CITING, first + n).counted for n in range(2)]
    transcript(home, [A.id], [A.id], [A.id], given=[A.id])

    home.run()

    assert live == [[A.id], [A.id]]
    assert uses(home) == {A.id: 3}


def test_a_live_count_after_the_reading_finds_its_turn_counted(home):
    home.write(A)
    home.run()
    show(home.memory._around, [A.id], CITING)
    transcript(home, [A.id], given=[A.id])
    home.run()

    told = home.memory.cite(block(A.id), CITING, 1)

    assert told.not_counted == {A.id: "counted_before"}
    assert uses(home) == {A.id: 1}


@pytest.mark.parametrize("act", ["pollute", "disable", "forget"])
def test_what_is_out_of_memory_is_not_used(home, act):
    home.write(A, B)
    home.run()
    transcript(home, [A.id, B.id], given=[A.id, B.id])
    match act:
        case "pollute":
            home.memory.pollute(A.id)
        case "disable":
            home.memory.set_mode(A.id, "disabled")
        case "forget":
            home.memory.forget(A.id)

    home.run()

    assert uses(home) == {B.id: 1}


def test_a_session_does_not_use_itself_nor_what_nobody_knows(home):
    stranger = "019b7a00-0099-7000-8000-000000000099"
    ids = [CITING, stranger]
    transcript(home, ids, given=ids)

    home.run()

    assert home.events(Cited) == []


def test_a_forgotten_session_uses_nothing(home):
    home.write(A)
    home.run()
    home.memory.forget(CITING)
    transcript(home, [A.id], given=[A.id])

    home.run()

    assert uses(home) == {}


def test_an_old_use_does_not_make_a_memory_young(tmp_path):
    """Nor does one found late take the place of a later one."""
    home = Home(tmp_path)
    home.write(A)
    home.run()
    show(home.memory._around, [A.id], "live")
    home.later(DAY_S).memory.cite(block(A.id), "live", 1)
    latest = int(home.now)
    transcript(home, [A.id], given=[A.id])

    home.run()

    assert uses(home) == {A.id: 2}
    assert home.memory.explain(A.id).last_used_at == latest
    assert home.memory.replay_verify() == []
    home.memory.close()


def test_a_use_that_only_a_transcript_tells_keeps_an_aged_memory_from_being_pruned(tmp_path):
    home = Home(tmp_path, max_raw_memories_for_consolidation=1)
    newer = Session(number=2, says=B.says, ended_at=A.ended_at + 60)
    home.write(A, newer)
    home.run()
    home.later(31 * DAY_S)
    transcript(home, [A.id], given=[A.id], ended_at=int(home.now) - 7 * HOUR_S)

    home.run()

    assert A.id in {each.thread_id for each in home.outputs()}
    home.memory.close()


def test_a_skewed_stamp_is_no_use_in_the_future(home):
    home.write(A)
    home.run()
    transcript(home, [A.id], given=[A.id], ended_at=NOON + 300 * DAY_S)

    home.run()

    assert home.memory.explain(A.id).last_used_at == int(home.now)


def test_a_dry_run_counts_nothing(home):
    home.write(A)
    home.run()
    transcript(home, [A.id], given=[A.id])
    before = home.position

    home.run(dry_run=True)

    assert home.position == before


@settings(max_examples=200)
@given(
    cited=st.lists(st.integers(0, 8), unique=True),
    counted=st.sets(st.integers(0, 8)),
)
def test_never_more_counts_than_there_are_turns(cited, counted):
    new = surplus(map(str, cited), {str(each) for each in counted})

    assert not {*new} & {str(each) for each in counted}
    assert len(counted) + len(new) == max(len(cited), len(counted))
