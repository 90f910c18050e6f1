"""A cited session counts as used once a session and turn, and only where it was in reach."""

import pytest
from threadbook.adapters.ranking import Ranking
from threadbook.application import citing
from threadbook.application.questions import ReadArguments
from threadbook.application.ranked import RankedArguments, RankedSearch
from threadbook.application.tools import Tools
from threadbook.domain.events import Cited, MemoryShown, session_stream

from tests.application.homes import DAY_S, FERN, HOUR_S, MOSS, Home, Session, show

A = Session(number=1)
B = Session(number=2, says=("please never use tabs in this project, always spaces",))
C = Session(number=3, says=("from now on always answer in German",), cwd=MOSS)
CITING = "019b7a00-00aa-7000-8000-0000000000aa"


def reply(*ids):
    lines = "\n".join(ids)
    return (
        f"Done.\n<oai-mem-citation>\n<rollout_ids>\n{lines}\n</rollout_ids>\n</oai-mem-citation>\n"
    )


def shown_context(home, session=CITING, *, position=None, scope=None):
    """What `context` records: the root as it stood, and no thread by name."""
    told = MemoryShown(
        at=home.memory._around.now(),
        session_id=session,
        via="context",
        memory_version="v1",
        scope=scope or home.scope_of(A),
        rendered_position=position or home.position,
    )
    with home.memory.store.writing(actor="application") as tx:
        tx.append(session_stream(session), told)


@pytest.fixture
def learned(home):
    home.write(A, B, C)
    home.run()
    return home


def test_a_thread_of_the_memory_that_a_session_was_shown_counts(learned):
    shown_context(learned)

    told = learned.memory.cite(reply(A.id, B.id), CITING, 1)

    assert told.visible == "Done.\n\n"
    assert told.counted == [A.id, B.id]
    assert told.not_counted == {}
    uses = {o.thread_id: (o.usage_count, o.last_usage) for o in learned.outputs()}
    assert uses[A.id] == uses[B.id] == (1, learned.now)
    assert uses[C.id] == (0, None)


def test_a_file_that_says_it_is_of_another_projects_session_brings_that_into_nobodys_reach(learned):
    tools = Tools(learned.memory._around, cwd=FERN, session=CITING, actor="agent:mcp")
    forged = learned.root(learned.scope_of(A)) / "rollout_summaries" / "forged.md"
    for named in (C.id, "my secret words"):
        forged.write_text(f"thread_id: {named}\n\nan answer in German\n")

        tools.read(ReadArguments(path="rollout_summaries/forged.md"))
        RankedSearch(Ranking).answer(tools, RankedArguments(query="answer German"))

    assert learned.memory.cite(reply(C.id), CITING, 1).not_counted == {C.id: "not_in_reach"}
    assert {given for each in learned.events(MemoryShown) for given in each.thread_ids} <= {
        A.id,
        B.id,
    }


@pytest.mark.parametrize("written", [A.id.upper(), f" {A.id}\n"])
def test_a_session_does_not_use_itself_however_its_id_is_written(learned, written):
    learned.memory.context(FERN, written)

    assert learned.memory.cite(reply(A.id), written, 1).not_counted == {A.id: "itself"}


def test_what_a_session_was_not_shown_does_not_count(learned):
    shown_context(learned)
    show(learned.memory._around, [C.id], "another session")

    told = learned.memory.cite(reply(C.id, A.id), CITING, 1)

    assert told.counted == [A.id]
    assert told.not_counted == {C.id: "not_in_reach"}


def test_a_thread_that_a_tool_gave_by_name_counts(learned):
    show(learned.memory._around, [C.id], CITING)

    told = learned.memory.cite(reply(C.id, A.id), CITING, 1)

    assert told.counted == [C.id]
    assert told.not_counted == {A.id: "not_in_reach"}


@pytest.mark.parametrize("later", [0, HOUR_S])
def test_in_reach_is_what_the_memory_was_made_from_when_it_was_shown(home, later):
    home.write(A)
    home.run()
    shown_context(home)
    home.write(B)
    home.later(later).run()

    early = home.memory.cite(reply(A.id, B.id), CITING, 1)
    shown_context(home)
    late = home.memory.cite(reply(B.id), CITING, 2)

    assert (early.counted, early.not_counted) == ([A.id], {B.id: "not_in_reach"})
    assert late.counted == [B.id]


@pytest.mark.parametrize("later", [0, HOUR_S])
def test_a_thread_that_has_left_the_memory_since_counts_while_its_output_lives(tmp_path, later):
    home = Home(tmp_path, max_raw_memories_for_consolidation=1)
    home.write(A)
    home.run()
    shown_context(home)
    home.write(Session(number=2, says=B.says, ended_at=A.ended_at + 60))
    home.later(HOUR_S).run()
    left = home.selected()
    home.later(later)
    shown_context(home)

    told = home.memory.cite(reply(A.id), CITING, 1)

    assert left == {B.id}
    assert told.counted == [A.id]
    home.memory.close()


def test_it_counts_once_a_thread_session_and_turn(learned):
    for session in (CITING, "s2"):
        shown_context(learned, session)

    told = [
        learned.memory.cite(reply(A.id, A.id, A.id.upper()), CITING, 1),
        learned.memory.cite(reply(A.id), CITING, 1),
        learned.memory.cite(reply(A.id), CITING.upper(), 1),
        learned.memory.cite(reply(A.id), CITING, 2),
        learned.memory.cite(reply(A.id), "s2", 2),
    ]

    assert [len(each.counted) for each in told] == [1, 0, 0, 1, 1]
    assert told[1].not_counted == told[2].not_counted == {A.id: "counted_before"}
    assert [each.citation_id for each in learned.events(Cited)] == [
        f"{CITING}:1",
        f"{CITING}:2",
        "s2:2",
    ]


def test_each_id_that_does_not_count_is_told_with_its_reason(learned):
    memory = learned.memory
    silent = Session(number=4, says=("hello",))
    learned.write(silent)
    learned.run()
    stranger = "019b7a00-0099-7000-8000-000000000099"
    everything = [A.id, B.id, C.id, silent.id, stranger, CITING]
    show(memory._around, everything, CITING)
    memory.pollute(A.id)
    memory.set_mode(B.id, "disabled")
    memory.forget(C.id)
    before = learned.position

    told = memory.cite(reply("nonsense", *everything), CITING, 1)

    assert told.counted == []
    assert told.not_counted == {
        "nonsense": "not_an_id",
        A.id: "polluted",
        B.id: "disabled",
        C.id: "forgotten",
        silent.id: "no_output",
        stranger: "unknown",
        CITING: "itself",
    }
    assert learned.position == before


def test_ids_alone_count_by_the_same_rule_however_they_are_written(learned):
    show(learned.memory._around, [A.id], CITING)

    assert learned.memory.cited([A.id.upper(), A.id, B.id], CITING, 1) == 1
    assert learned.memory.cited([A.id], CITING.upper(), 1) == 0


def test_a_session_of_the_store_does_not_count_its_own_memory(learned):
    shown_context(learned, A.id)

    told = learned.memory.cite(reply(A.id, B.id), A.id.upper(), 1)

    assert told.counted == [B.id]
    assert told.not_counted == {A.id: "itself"}


@pytest.mark.parametrize("session", [None, ""])
def test_without_a_session_nothing_counts(learned, session):
    before = learned.position

    told = learned.memory.cite(reply(A.id), session, 1)

    assert told.visible == "Done.\n\n"
    assert (told.counted, told.not_counted) == ([], {A.id: "no_session"})
    assert learned.position == before


def test_after_pollution_is_lifted_the_thread_counts_again(learned):
    shown_context(learned)
    learned.memory.pollute(A.id)
    learned.memory.set_mode(A.id, "enabled")

    assert learned.memory.cite(reply(A.id), CITING, 1).counted == [A.id]


def test_a_citing_reply_moves_the_thread_up_the_next_selection_and_explain_says_so(tmp_path):
    home = Home(tmp_path, max_raw_memories_for_consolidation=1)
    older = Session(number=2, says=B.says, ended_at=A.ended_at - HOUR_S)
    home.write(A, older)
    home.run()
    show(home.memory._around, [older.id], CITING)
    before = home.memory.explain(older.id)

    home.later(HOUR_S).memory.cite(reply(older.id), CITING, 1)

    after = home.memory.explain(older.id)
    assert (before.rank, after.rank) == (2, 1)
    assert (before.uses, after.uses) == (0, 1)
    assert (before.last_used_at, after.last_used_at) == (None, int(home.now))
    assert "in at the next run" in after.verdict
    home.run()
    assert home.selected() == {older.id}
    assert home.memory.explain(older.id, at=home.position).uses == 1
    home.memory.close()


def test_a_rank_among_many_showings_is_found_in_the_log(learned):
    """The walk through the log takes each showing at its own success."""
    positions = []
    for number in range(5, 9):
        learned.write(Session(number=number, says=(f"from now on always run step {number}",)))
        learned.later(60).run()
        positions.append(learned.position)
    with learned.memory.store.reading() as view:
        found = citing.made_from_then(view, "v1", learned.scope_of(A), positions[1:3])
        none = citing.made_from_then(view, "v1", learned.scope_of(A), [1])

    assert found == {A.id, B.id, *(Session(number=n).id for n in (5, 6, 7))}
    assert none == set()


def test_an_aged_thread_that_is_used_stays(learned):
    shown_context(learned)
    learned.later(20 * DAY_S).memory.cite(reply(A.id), CITING, 1)
    learned.later(20 * DAY_S).run()

    assert learned.selected() == {A.id}
