"""A long v2 session end to end, from the file to the messages of the prompt: what people and other
agents said and what was answered last outlives two hundred notes and everything tools printed."""

import json
import re

from threadbook.adapters import rollouts
from threadbook.domain.budget import pieces
from threadbook.domain.evidence import GAP, MESSAGE_BYTES, render

from .support import NOW_MS, item, meta, record, written

TOKENS = 20_000


def said(role, text, **more):
    return item("message", role=role, content=[{"type": "input_text", "text": text}], **more)


def asked(call_id, question, answer, **more):
    reply = json.dumps({"answers": {"q": {"answers": [answer]}}})
    return (
        item(
            "function_call",
            name="request_user_input",
            call_id=call_id,
            arguments=json.dumps({"question": question}),
            **more,
        ),
        item("function_call_output", call_id=call_id, output=reply),
    )


def session(folder):
    picture = {"type": "input_image", "image_url": "data:image/png;base64," + "iVBORw0KGgo" * 900}
    records = [
        said("user", "<environment_context><cwd>/srv/ferns</cwd></environment_context>" * 40),
        item("message", role="user", content=[{"type": "input_text", "text": "HUMAN-1"}, picture]),
        *asked("q1", "QUESTION-1", "ANSWER-1"),
        *asked("q2", "FOREIGN-QUESTION", "FOREIGN-ANSWER", namespace="mcp__survey"),
        record("inter_agent_communication", {"author": "/a", "content": "WORKER-1"}),
        said("assistant", "FINAL-1"),
    ]
    for n in range(200):
        records += [
            said("assistant", f"NOTE-{n:03} " + "n" * 600, phase="commentary"),
            item("function_call", name="shell", call_id=f"c{n}", arguments='{"cmd":"NOISE"}'),
            item("function_call_output", call_id=f"c{n}", output="NOISE " * 400),
        ]
    records += [said("user", "HUMAN-2"), said("assistant", "FINAL-2", phase="final_answer")]
    return written(folder, meta(), *records)


def test_human_words_answers_workers_and_finals_outlive_notes_and_the_noise_of_tools(tmp_path):
    path = session(tmp_path)

    evidence = render(rollouts.evidence(path, now_ms=NOW_MS), version="v2", tokens=TOKENS)

    text = evidence.text
    wanted = ("HUMAN-1", "QUESTION-1", "ANSWER-1", "WORKER-1", "FINAL-1", "HUMAN-2", "FINAL-2")
    assert [each for each in wanted if each not in text] == []
    lost = ("iVBOR", "<environment_context>", "NOISE", "FOREIGN-ANSWER")
    assert [each for each in lost if each in text] == []
    assert len(text.encode()) <= 4 * TOKENS


def test_rows_stand_in_the_order_of_the_session_and_the_newest_notes_are_those_that_fit(tmp_path):
    path = session(tmp_path)

    text = render(rollouts.evidence(path, now_ms=NOW_MS), version="v2", tokens=TOKENS).text

    wanted = ("HUMAN-1", "ANSWER-1", "WORKER-1", "FINAL-1", "HUMAN-2", "FINAL-2")
    assert [text.index(each) for each in wanted] == sorted(text.index(each) for each in wanted)
    notes = [int(n) for n in re.findall(r"NOTE-(\d+) n", text)]
    assert 10 < len(notes) < 200
    assert notes == list(range(200 - len(notes), 200))
    assert "[human user]\nAssistant question: " in text
    assert text.count(GAP) >= len(notes) - 1


def test_the_prompt_travels_in_messages_that_join_to_it(tmp_path):
    path = session(tmp_path)
    text = render(rollouts.evidence(path, now_ms=NOW_MS), version="v2", tokens=TOKENS).text

    messages = pieces(text, bytes_max=MESSAGE_BYTES)

    assert "".join(messages) == text
    assert len(messages) > 5
    assert all(len(each.encode()) < 9_000 for each in messages)
