"""What a transcript's own final replies cite, in which turn, and whether it stood before."""

import pytest
from threadbook.adapters.rollouts import survey
from threadbook.adapters.rollouts.citing import IDS_MAX, TURNS_MAX
from threadbook.domain.session import CitedReply

from tests.adapters.rollouts.support import (
    ID,
    NOW_MS,
    OPEN,
    PARENT,
    claude,
    event,
    item,
    message,
    meta,
    written,
)

A = "019c0000-0000-7000-8000-000000000001"
B = "019c0000-0000-7000-8000-000000000002"


def citing(*ids):
    lines = "\n".join(ids)
    return f"Done.\n<oai-mem-citation><rollout_ids>\n{lines}\n</rollout_ids></oai-mem-citation>"


def cited(tmp_path, *records, name="session.jsonl"):
    return survey(written(tmp_path, *records, name=name), now_ms=NOW_MS).citations


def turns(tmp_path, *records):
    return [(each.turn, each.ids) for each in cited(tmp_path, *records)]


def said(text, *, phase=None, second=1):
    block = {"type": "output_text", "text": text}
    fields = {} if phase is None else {"phase": phase}
    return item("message", role="assistant", content=[block], second=second, **fields)


def call(call_id="c1"):
    return item("function_call", name="exec_command", arguments="{}", call_id=call_id)


def output(text, call_id="c1"):
    return item("function_call_output", call_id=call_id, output=text)


# Codex.


def test_the_last_message_of_each_turn_is_asked_and_its_turn_counted_from_one(tmp_path):
    found = cited(
        tmp_path,
        meta(),
        message("one"),
        said(citing(A), second=5),
        message("two"),
        said("nothing"),
        message("three"),
        said(citing(B, A.upper(), A), second=9),
    )

    assert [(each.turn, each.ids, each.at_ms) for each in found] == [
        (1, (A,), 1_777_881_605_000),
        (3, (B, A), 1_777_881_609_000),
    ]


def test_what_is_said_before_a_call_is_not_final(tmp_path):
    records = (meta(), message("one"), said(citing(A)), call(), output("fine"))

    assert turns(tmp_path, *records, said("Done.")) == []
    assert turns(tmp_path, *records, said(citing(B))) == [(1, (B,))]


@pytest.mark.parametrize(
    ("phase", "found"),
    [("commentary", []), ("final", [(1, (A,))]), ("final_answer", [(1, (A,))])],
)
def test_where_the_transcript_says_which_message_is_final_that_counts(tmp_path, phase, found):
    assert turns(tmp_path, meta(), message("one"), said(citing(A), phase=phase)) == found


def test_a_final_message_is_final_though_a_call_follows(tmp_path):
    records = (meta(), message("one"), said(citing(A), phase="final"), call(), output(""))

    assert turns(tmp_path, *records, said(citing(B))) == [(1, (A,))]


def test_only_the_agents_own_reply_cites(tmp_path):
    """O7, and every other place a block can stand in."""
    found = turns(
        tmp_path,
        meta(),
        message(citing(A)),
        message(citing(A), role="developer"),
        call(),
        output(citing(A)),
        item("agent_message", author="x", content=[{"type": "input_text", "text": citing(A)}]),
        event("agent_message", message=citing(A)),
        event("agent_reasoning", text=citing(A)),
        item("reasoning", summary=[{"type": "summary_text", "text": citing(A)}]),
        said("Done."),
    )

    assert found == []
    assert survey(OPEN / "injected_instructions.jsonl", now_ms=NOW_MS).citations == ()


def test_copied_history_cites_nothing_and_its_turns_are_not_counted(tmp_path):
    parent = meta(id=PARENT)

    found = turns(
        tmp_path,
        meta(forked_from_id=PARENT),
        parent,
        {**message("before the fork"), "timestamp": parent["timestamp"]},
        {**said(citing(A)), "timestamp": parent["timestamp"]},
        message("mine", second=9),
        said(citing(B), second=10),
    )

    assert found == [(1, (B,))]


@pytest.mark.parametrize(
    "source",
    [
        {"subagent": {"thread_spawn": {"parent_thread_id": PARENT, "depth": 1}}},
        {"internal": "memory_consolidation"},
    ],
)
def test_what_no_person_asked_for_uses_nothing(tmp_path, source):
    assert turns(tmp_path, meta(source=source), message("one"), said(citing(A))) == []


@pytest.mark.parametrize("name", ["rollout_ids", "rolloutIds", "thread_ids", "threadIds"])
def test_a_citation_that_codex_took_out_of_the_text_counts(tmp_path, name):
    noted = {"entries": [], name: [A.upper(), "no id", 7]}

    found = turns(
        tmp_path,
        meta(),
        message("one"),
        said("Done."),
        event("agent_message", message="Done.", memory_citation=noted),
    )

    assert found == [(1, (A,))]


def test_what_codex_noted_of_an_intermediate_message_does_not_count(tmp_path):
    noted = {"entries": [], "rollout_ids": [A]}
    aside = event("agent_message", message="First.", memory_citation=noted)
    commentary = {**aside, "payload": aside["payload"] | {"phase": "commentary"}}

    assert turns(tmp_path, meta(), message("one"), aside, call(), output(""), said("x")) == []
    assert turns(tmp_path, meta(), message("one"), commentary) == []


def test_what_codex_noted_of_copied_history_does_not_count(tmp_path):
    noted = {"entries": [], "rollout_ids": [A]}
    parent = meta(id=PARENT)
    copied = event("agent_message", message="x", memory_citation=noted)

    found = turns(
        tmp_path, meta(forked_from_id=PARENT), parent, copied | {"timestamp": parent["timestamp"]}
    )

    assert found == []


def test_a_block_and_its_note_are_one_citation(tmp_path):
    noted = {"entries": [], "rollout_ids": [A]}

    found = turns(
        tmp_path,
        meta(),
        message("one"),
        said(citing(A)),
        event("agent_message", message="Done.", memory_citation=noted),
    )

    assert found == [(1, (A,))]


def test_turns_that_were_taken_back_keep_their_number(tmp_path):
    found = turns(
        tmp_path,
        meta(),
        message("one"),
        said(citing(A)),
        event("thread_rolled_back", num_turns=1),
        message("another"),
        said(citing(A)),
    )

    assert found == [(1, (A,)), (2, (A,))]


def test_a_reason_for_refusing_a_call_begins_no_turn(tmp_path):
    use = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "rm x"}}
    refused = (
        "The user doesn't want to proceed with this tool use. The user provided the following"
        " reason for the rejection:  leave it"
    )
    result = {"type": "tool_result", "tool_use_id": "t1", "content": refused, "is_error": True}

    found = turns(
        tmp_path,
        claude("user", "one", uuid="u1"),
        claude("assistant", [use], uuid="a1"),
        claude("user", [result], uuid="u2"),
        claude("assistant", [{"type": "text", "text": citing(A)}], uuid="a2"),
    )

    assert found == [(1, (A,))]


# Claude Code.


def answered(text, *, uuid="a1", stop="end_turn", **fields):
    record = claude("assistant", [{"type": "text", "text": text}], uuid=uuid, **fields)
    record["message"]["stop_reason"] = stop
    return record


def test_claude_replies_cite_where_they_end_the_turn(tmp_path):
    found = turns(
        tmp_path,
        claude("user", "one", uuid="u1"),
        answered(citing(A), uuid="a1", stop="tool_use"),
        answered(citing(B), uuid="a2"),
        claude("user", "two", uuid="u2"),
        answered(citing(A), uuid="a3", stop=None),
    )

    assert found == [(1, (B,)), (2, (A,))]


def test_a_claude_side_chain_and_what_another_agent_says_cite_nothing(tmp_path):
    found = turns(
        tmp_path,
        claude("user", "one", uuid="u1"),
        answered(citing(A), uuid="a1", isSidechain=True),
        answered("Done.", uuid="a2"),
    )

    assert found == []


# Whether it stood before.


def stood(tmp_path, *records):
    (reply,) = cited(tmp_path, *records)
    return reply.stood_before


@pytest.mark.parametrize(
    "given",
    [
        (call(), output(f"thread_id: {A}")),
        (call(), output([{"type": "input_text", "text": f"thread_id: {A.upper()}"}])),
        (message(f"thread_id={A}", role="developer"),),
        (message(f"<environment_context>\n{A}\n</environment_context>\none"),),
        (item("custom_tool_call_output", call_id="c1", output=f"x {A}"),),
    ],
    ids=["tool", "tool blocks", "developer", "environment", "custom tool"],
)
def test_what_codex_or_a_tool_put_before_the_session_stood_before(tmp_path, given):
    assert stood(tmp_path, meta(), message("one"), *given, said(citing(A))) == (A,)


@pytest.mark.parametrize(
    "given",
    [
        (message(f"what was {A}?"),),
        (said(f"I will look at {A}"), call()),
        (item("function_call", name="exec_command", arguments=f'{{"cmd": "{A}"}}', call_id="c"),),
        (event("user_message", message=A),),
        (),
    ],
    ids=["typed", "said", "asked", "event", "nothing"],
)
def test_what_a_person_or_the_agent_wrote_is_no_memory_before_it(tmp_path, given):
    assert stood(tmp_path, meta(), message("one"), *given, said(citing(A))) == ()


def test_what_comes_after_the_reply_did_not_stand_before(tmp_path):
    later = (message("two"), call(), output(A), said(citing(A)))

    found = cited(tmp_path, meta(), message("one"), said(citing(A)), *later)

    assert [each.stood_before for each in found] == [(), (A,)]


@pytest.mark.parametrize(
    "given",
    [
        {"type": "attachment", "uuid": "x", "attachment": {"type": "hook", "content": [f"id {A}"]}},
        claude("user", [{"type": "tool_result", "tool_use_id": "t", "content": A}], uuid="x"),
        claude("user", f"<system-reminder>\n{A}\n</system-reminder>", uuid="x"),
        claude("user", f"see {A}", uuid="x", isMeta=True),
        {"type": "system", "subtype": "informational", "uuid": "x", "content": f"hook: {A}"},
    ],
    ids=["attachment", "tool", "reminder", "meta", "system"],
)
def test_what_claude_code_or_a_tool_put_before_the_session_stood_before(tmp_path, given):
    given = {"sessionId": "cccc0000-0000-4000-8000-000000000009"} | given
    own = claude("user", "one", uuid="u1")

    assert stood(tmp_path, own, given, answered(citing(A))) == (A,)
    typed = claude("user", f"look at {A}", uuid="u2")
    assert stood(tmp_path, own, typed, answered(citing(A))) == ()


def test_one_id_may_have_stood_before_and_another_not(tmp_path):
    (reply,) = cited(tmp_path, meta(), message("one"), call(), output(A), said(citing(A, B)))

    assert reply == CitedReply(turn=1, at_ms=reply.at_ms, ids=(A, B), stood_before=(A,))


def test_a_hostile_transcript_makes_us_hold_no_more_than_so_much(tmp_path):
    ids = [f"{n:08x}-0000-7000-8000-000000000001" for n in range(3 * IDS_MAX)]
    many = [meta()]
    for n in range(TURNS_MAX + 5):
        many += (message(f"turn {n}"), said(citing(A)))

    (reply,) = cited(tmp_path, meta(), message("one"), said(citing(*ids)))

    assert len(reply.ids) == IDS_MAX
    assert len(cited(tmp_path, *many)) == TURNS_MAX


def test_the_sessions_own_id_is_told_like_any_other(tmp_path):
    """That it counts nothing is for whoever counts."""
    assert turns(tmp_path, meta(), message("one"), said(citing(ID))) == [(1, (ID,))]
