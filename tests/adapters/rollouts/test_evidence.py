"""What of a session a model may be shown: which records, whose they are, and what never."""

import json
import subprocess
import sys

import pytest
from threadbook.adapters import rollouts
from threadbook.domain.evidence import render

from .support import MADE, NOW_MS, OPEN, PEAK, claude, event, item, message, meta, record, written

VERSIONS = ("v1", "v2")
LARGE = 180_880


def evidence(path, version="v1", tokens=LARGE, **more):
    return render(
        rollouts.evidence(path, now_ms=NOW_MS), version=version, tokens=tokens, **more
    ).text


def array(folder, *records):
    return json.loads(evidence(written(folder, meta(), *records)))


def said(folder, *records):
    return [
        part["text"]
        for each in array(folder, *records)
        for part in each.get("content", [])
        if "text" in part
    ]


def answer(phase):
    return item("message", role="assistant", phase=phase, content=[])


def parts(*texts, role="user"):
    content = [{"type": "input_text", "text": text} for text in texts]
    return item("message", role=role, content=content)


AGENTS_MD = (
    "# AGENTS.md instructions for /srv/ferns\n\n<INSTRUCTIONS>\nNever push.\n</INSTRUCTIONS>"
)
AGENTS_MD_NOW = "  # agents.md INSTRUCTIONS\n<INSTRUCTIONS>Never push.</instructions>\n"
SKILL = "<skill>\n<name>notes</name>\nWrite notes.\n</skill>"
ENVIRONMENT = "<environment_context>\n<cwd>/srv/ferns</cwd>\n</environment_context>"
NOTIFICATION = '<subagent_notification>{"agent":"a1","status":"done"}</subagent_notification>'


@pytest.mark.parametrize(
    ("text", "is_left_out"),
    [
        (AGENTS_MD, True),
        (AGENTS_MD_NOW, True),
        (SKILL, True),
        (ENVIRONMENT, False),
        (NOTIFICATION, False),
        ("Please read # AGENTS.md instructions and say what is in it", False),
    ],
)
def test_instructions_and_skills_are_left_out_and_the_environment_and_notifications_are_not(
    tmp_path, text, is_left_out
):
    texts = said(tmp_path, parts(text))

    assert texts == ([] if is_left_out else [text])


def test_a_message_keeps_its_other_parts_and_lines_of_the_program_are_passed_over(tmp_path):
    texts = said(
        tmp_path,
        parts(AGENTS_MD, ENVIRONMENT),
        parts(AGENTS_MD_NOW),
        parts(SKILL),
        parts(NOTIFICATION),
        record("security_risk_score", {"score": 3}),
        record("world_state", {"full": True}),
        record("turn_context", {"cwd": "/srv"}),
        event("task_started"),
        parts("the rules of the house", role="developer"),
        item("reasoning", summary=[], encrypted_content="AAAA"),
        message("Done.", role="assistant"),
    )

    assert texts == [ENVIRONMENT, NOTIFICATION, "Done."]


CONTROL = (
    record("token_usage_record", {"usage": {}}),
    record("retained_context", {"x": 1}),
    record("inter_agent_communication_metadata", {"x": 1}),
    record("realtime_item", {"type": "message"}),
    event("token_count", info={}),
    item("compaction", encrypted_content="AAAA"),
    item("compaction_trigger"),
    item("context_compaction", encrypted_content="AAAA"),
    item("ghost_snapshot", ghost_commit={}),
    item("image_generation_call", result="iVBOR", status="completed"),
    item("additional_tools", tools=[]),
    item("configuration_update"),
)


@pytest.mark.parametrize("version", VERSIONS)
def test_control_records_add_nothing_and_leave_no_gap(tmp_path, version):
    bare = (message("Water the ferns."), message("Watered.", role="assistant"))
    (tmp_path / "with").mkdir()

    without = evidence(written(tmp_path, meta(), *bare), version)
    among = written(tmp_path / "with", meta(), *CONTROL, bare[0], *CONTROL, bare[1], *CONTROL)

    assert evidence(among, version) == without
    assert "omitted" not in without


def test_of_a_human_and_a_final_message_v2_shows_exactly_two_labelled_lines_each(tmp_path):
    records = (message("Water the ferns."), message("Watered.", role="assistant"))

    text = evidence(written(tmp_path, meta(), *records), "v2")

    assert text == (
        '[human user]\n{"type":"message","role":"user","content":'
        '[{"type":"input_text","text":"Water the ferns."}]}\n'
        '[assistant final]\n{"type":"message","role":"assistant","content":'
        '[{"type":"output_text","text":"Watered."}]}'
    )


def test_a_key_in_a_tools_output_is_hidden_before_it_is_shown_to_anybody(tmp_path):
    key = "sk-" + "a1B2" * 8

    text = evidence(
        written(tmp_path, meta(), item("function_call_output", call_id="c", output=f"key {key}"))
    )

    assert key not in text
    assert json.loads(text)[0]["output"] == "key [REDACTED_SECRET]"


def test_what_agents_say_to_each_other_is_an_agents_message_plain_or_encrypted_in_order(tmp_path):
    between = {"author": "/root", "recipient": "/root/a", "other_recipients": []}
    path = written(
        tmp_path,
        meta(),
        record("inter_agent_communication", {**between, "content": "count the ferns"}),
        record("inter_agent_communication_metadata", {"trigger_turn": True}),
        record("inter_agent_communication", {**between, "content": "", "encrypted_content": "QQ"}),
        item("agent_message", author="/root/a", content=[{"type": "input_text", "text": "nine"}]),
        item("agent_message", content=[{"type": "encrypted_content", "encrypted_content": "QQ"}]),
    )

    told = json.loads(evidence(path))
    rows = evidence(path, "v2")

    assert [each["type"] for each in told] == ["agent_message"] * 4
    assert [each["content"][0]["text"] for each in told] == [
        "count the ferns",
        "[encrypted content omitted]",
        "nine",
        "[encrypted content omitted]",
    ]
    assert "QQ" not in rows
    assert rows.count("[other agent]\n") == 4


@pytest.mark.parametrize(
    ("records", "label"),
    [
        ((parts(ENVIRONMENT),), "harness context"),
        ((parts("<turn_aborted>it was</turn_aborted>"),), "harness context"),
        ((parts(NOTIFICATION),), "other agent"),
        ((parts("Message Type: X\nTask name: t\nSender: s\nPayload:\nhello"),), "other agent"),
        ((parts('{"author":"/a","recipient":"/b","content":"hello"}'),), "other agent"),
        ((parts("Please"),), "human user"),
        ((parts(ENVIRONMENT, "Please"),), "human user"),
        ((answer("commentary"),), "assistant commentary"),
        ((answer("final_answer"),), "assistant final"),
        ((item("web_search_call", action={"type": "search", "query": "ferns"}),), "tool"),
        ((item("local_shell_call", action={"command": ["ls"]}),), "tool"),
        ((item("custom_tool_call", call_id="c", name="n", input="i"),), "tool"),
        ((item("tool_search_call", call_id="c", arguments={"query": "q"}),), "tool"),
        ((item("tool_search_output", call_id="c", tools=[]),), "tool"),
    ],
)  # fmt: skip
def test_each_item_stands_under_the_label_of_who_speaks(tmp_path, records, label):
    text = evidence(written(tmp_path, meta(), *records), "v2")

    assert text.startswith(f"[{label}]\n{{")
    assert text.count("\n") == 1


def test_pictures_and_sounds_are_never_shown_wherever_they_stand(tmp_path):
    picture = "iVBORw0KGgo" + "A1b2" * 100
    url = f"data:image/png;base64,{picture}"
    path = written(
        tmp_path,
        meta(),
        item(
            "message",
            role="user",
            content=[
                {"type": "input_image", "image_url": url, "detail": "high"},
                {"type": "input_audio", "data": "QUJD" * 50},
                {"type": "input_text", "text": f"see {url}"},
            ],
        ),
        item(
            "function_call_output",
            call_id="a",
            output=[
                {"type": "input_image", "image_url": url},
                {"type": "input_text", "text": "beside"},
            ],
        ),
        item("function_call_output", call_id="b", output=json.dumps({"data": picture})),
    )

    for version in VERSIONS:
        text = evidence(path, version)
        assert "iVBOR" not in text
        assert "QUJD" not in text
        assert text.count("[image omitted]") == 3
        assert "[audio omitted]" in text
        assert "beside" in text


def test_encrypted_content_of_any_item_is_gone_and_a_users_status_too(tmp_path):
    call = item("function_call", call_id="c", name="shell", arguments="{}", encrypted_content="QQ")
    typed = item("message", role="user", status="completed", content="Water the ferns.")

    told = array(tmp_path, call, typed)

    assert told[0] == {"type": "function_call", "call_id": "c", "name": "shell", "arguments": "{}"}
    assert told[1] == {
        "type": "message",
        "role": "user",
        "content": [{"type": "input_text", "text": "Water the ferns."}],
    }


FENCED = "<threadbook-memory>\nThey like ferns.\n</threadbook-memory>"
BANNER = (
    "========= MEMORY_SUMMARY BEGINS =========\nThey like ferns.\n"
    "========= MEMORY_SUMMARY ENDS ========="
)


@pytest.mark.parametrize("memory", [FENCED, BANNER])
def test_memory_that_was_given_to_the_session_is_not_shown_to_a_model(tmp_path, memory):
    texts = said(tmp_path, parts(memory), parts(f"{memory}\nWater the moss."))
    [output] = array(tmp_path, item("function_call_output", call_id="c", output=f"a\n{memory}\nb"))

    assert texts == ["Water the moss."]
    assert output["output"] == "a\n[memory]\nb"


@pytest.mark.parametrize("memory", [FENCED, BANNER])
def test_memory_inside_of_what_a_hook_put_there_is_taken_out_of_it(tmp_path, memory):
    texts = said(tmp_path, parts(f"<hook_context>\nIt rains.\n{memory}\n</hook_context>"))

    assert texts == ["<hook_context>\nIt rains.\n[memory]\n</hook_context>"]


def test_of_claude_codes_sessions_our_memory_and_our_tools_results_are_not_shown(tmp_path):
    call = {"type": "tool_use", "id": "c", "name": "mcp__threadbook__read", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "c", "content": "They like ferns."}
    path = written(
        tmp_path,
        claude("user", f"<system-reminder>\nIt rains.\n{FENCED}\n</system-reminder>", uuid="1"),
        claude("user", f"{FENCED}\nWater the moss.", uuid="2"),
        claude(
            "assistant",
            [{"type": "thinking", "thinking": "FERNS", "signature": "S"}, call],
            uuid="3",
        ),
        claude("user", [result], uuid="4"),
        claude("assistant", "Watered.", uuid="5"),
    )

    text = evidence(path, "v2")

    assert "ferns" not in text.lower()
    assert [each for each in ("It rains", "moss", "Watered.", "[memory]") if each not in text] == []


def test_what_our_own_tools_gave_is_not_shown_to_a_model(tmp_path):
    call, output = array(
        tmp_path,
        item(
            "function_call", call_id="c", name="read", namespace="mcp__threadbook", arguments="{}"
        ),
        item("function_call_output", call_id="c", output="They like ferns."),
    )

    assert call["name"] == "read"
    assert output["output"] == "[memory]"


@pytest.mark.parametrize("version", VERSIONS)
def test_turns_that_were_taken_back_are_not_shown(tmp_path, version):
    path = written(
        tmp_path,
        meta(),
        message("Water the ferns."),
        message("Watered.", role="assistant"),
        message("Paint them blue."),
        item("function_call", call_id="c", name="shell", arguments='{"cmd":"paint"}'),
        item("function_call_output", call_id="c", output="blue"),
        message("And the pots."),
        event("thread_rolled_back", num_turns=2),
        message("Water the moss."),
    )

    text = evidence(path, version)

    assert [each for each in ("ferns", "Watered", "moss") if each not in text] == []
    assert [each for each in ("Paint", "blue", "pots") if each in text] == []


def test_a_typed_message_of_which_only_the_event_is_there_is_shown_once_in_its_place(tmp_path):
    texts = said(
        tmp_path,
        event("user_message", message="Water the ferns."),
        message("Watered.", role="assistant"),
        event("user_message", message="Water the moss."),
        message("Water the moss."),
        message("Watered too.", role="assistant"),
        event("user_message", message="Thanks."),
    )

    assert texts == ["Water the ferns.", "Watered.", "Water the moss.", "Watered too.", "Thanks."]


def test_lines_that_a_fork_copied_are_not_shown(tmp_path):
    copied = meta(id="019d0000-0000-7000-8000-0000000000aa")

    texts = said(
        tmp_path, copied, message("Of the parent.", second=0), message("Of the fork.", second=5)
    )

    assert texts == ["Of the fork."]


def test_half_surrogates_and_nul_are_gone_and_names_are_kept_in_their_order(tmp_path):
    call = item("function_call", name="shell", arguments="TEXT", call_id="c")
    line = json.dumps(call).replace("TEXT", r"a\udc88\u0000b").encode()
    path = written(tmp_path, meta())
    path.write_bytes(path.read_bytes() + line + b"\n")

    [told] = rollouts.evidence(path, now_ms=NOW_MS)

    assert list(told.item) == ["type", "name", "arguments", "call_id"]
    assert told.item["arguments"] == "a\ufffdb"


def nested(levels):
    found = "x"
    for _ in range(levels):
        found = {"a": [found]}
    return found


@pytest.mark.parametrize("version", ["v1", "v2"])
@pytest.mark.parametrize("levels", [30, 300, 450])
def test_what_is_nested_beyond_reason_is_cut_and_the_rest_is_shown(tmp_path, levels, version):
    path = written(
        tmp_path,
        meta(),
        message("Before."),
        item("function_call", name="f", call_id="c", arguments=nested(levels)),
        item("function_call_output", call_id="c", output=nested(levels)),
        item("custom_tool_call", name="f", call_id="d", input=[nested(levels)]),
        record("inter_agent_communication", {"author": "a", "content": nested(levels)}),
        message("Behind."),
    )

    text = evidence(path, version)

    assert "Before." in text
    assert "Behind." in text
    assert text.count('"type":"function_call') == 2
    assert ("[nested too deep]" in text) == (levels > 30)


# Claude Code.


def test_claude_codes_transcripts_become_the_same_items():
    told = list(rollouts.evidence(MADE / "claude_tools.jsonl", now_ms=NOW_MS))
    text = evidence(MADE / "claude_tools.jsonl", "v2")

    kinds = {each.item["type"] for each in told}
    assert kinds == {"message", "agent_message", "function_call", "function_call_output"}
    assert {each.whose for each in told} == {"person", "agent", "harness", None}
    assert "Mend the watering plan." in text
    assert "signature" not in text
    assert "iVBOR" not in text
    calls = [each.item["call_id"] for each in told if each.item["type"] == "function_call"]
    results = [each.item["call_id"] for each in told if "output" in each.item]
    assert set(results) <= set(calls)


def test_of_a_call_of_claude_codes_its_exit_code_failure_and_place_in_the_answer_are_told(tmp_path):
    call = {"type": "tool_use", "id": "c", "name": "Bash", "input": {"command": "make"}}
    failure = {"type": "tool_result", "tool_use_id": "c", "content": "Exit code 2\nno rule"}
    path = written(
        tmp_path,
        claude("user", "Make it.", uuid="1"),
        claude("assistant", [{"type": "text", "text": "I make it."}, call], uuid="2"),
        claude("user", [failure | {"is_error": True}], uuid="3"),
        claude("user", "[Request interrupted by user]", uuid="4"),
        claude("assistant", "Done.", uuid="5"),
    )
    lines = [json.loads(line) for line in path.read_bytes().splitlines()]
    lines[1]["message"]["stop_reason"] = "tool_use"
    lines[4]["message"]["stop_reason"] = "end_turn"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")

    typed, note, made, result, stopped, done = json.loads(evidence(path))

    assert (note["phase"], done["phase"]) == ("commentary", "final_answer")
    assert made["arguments"] == '{"command":"make"}'
    assert result == {
        "type": "function_call_output",
        "call_id": "c",
        "output": "Exit code 2\nno rule",
        "success": False,
    }
    assert typed["content"][0]["text"] == "Make it."
    assert stopped["content"][0]["text"] == "<turn_aborted>"


def test_lines_that_a_claude_code_session_copied_are_not_shown(tmp_path):
    forked = {"forkedFrom": {"sessionId": "cccc0000-0000-4000-8000-0000000000ff"}}
    path = written(
        tmp_path, claude("user", "Old.", uuid="1", **forked), claude("user", "New.", uuid="2")
    )

    told = [part["content"][0]["text"] for part in json.loads(evidence(path))]

    assert told == ["New."]


def test_what_the_program_marks_as_not_the_users_stands_under_no_persons_label(tmp_path):
    passed = {"content_item_metadata": [{"provenance": {"type": "harness", "hook": False}}]}
    content = [{"type": "input_text", "text": "It rains."}]
    metadata = {"internal_chat_message_metadata_passthrough": passed}
    path = written(tmp_path, meta(), item("message", role="user", content=content, **metadata))

    text = evidence(path, "v2")

    assert text.startswith("[harness context]\n")


@pytest.mark.parametrize(
    ("source", "label"),
    [
        ({"subagent": {"thread_spawn": {"parent_thread_id": "x"}}}, "other agent"),
        ({"internal": "memory_consolidation"}, "harness context"),
        ("exec", "human user"),
    ],
)
def test_a_task_that_an_agent_or_the_program_set_is_no_persons(tmp_path, source, label):
    path = written(tmp_path, meta(source=source), message("Count the ferns."))

    text = evidence(path, "v2")

    assert text.startswith(f"[{label}]\n")


# The open cases: what must reach a model of each, and what must not.


CASES = {
    "lone_surrogate": (("WILLOW-2", "PRE\ufffdMID\ufffdPOST ok\U0001f33f"), ()),
    "forked_parent": (("PARENT-ONLY-4",), ()),
    "forked_child": (("LARCH-4",), ("The staging gate is called",)),
    "compacted": (("CEDAR-8", "revision 12"), ("OPAQUE-8", "Summary so far")),
    "injected_instructions": (("I prefer short answers",), ()),
    "claude_two_objects_one_line": (("ROWAN-10", "docs/map.md"), ()),
    "claude_streaming_duplicates": (("ASPEN-11",), ('"signature"',)),
    "unknown_record_types": (("MAPLE-12",), ("OVERSEER-12", "input_smell", "quantum")),
    "claude_unknown_record_types": (("ELDER-12",), ("QUEUED-12",)),
    "truncated_last_line": (("make check-ferns",), ("nursery port",)),
    "clock_skew": (tuple(f"YEW-13{each}" for each in "abcdefghi"), ()),
}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("aligned", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_of_an_open_case_what_must_reach_a_model_does_and_what_must_not_does_not(
    name, version, aligned
):
    reach, keep_out = CASES[name]

    text = evidence(OPEN / f"{name}.jsonl", version, aligned=aligned)

    assert [each for each in reach if each not in text] == []
    assert [each for each in keep_out if each in text] == []


def test_o6_what_a_compaction_repeats_is_shown_once_and_alone_it_is_used(tmp_path):
    lines = (OPEN / "compacted.jsonl").read_bytes().splitlines(keepends=True)
    path = tmp_path / "compacted.jsonl"
    path.write_bytes(lines[0] + b"".join(lines[3:]))

    whole, rest = evidence(OPEN / "compacted.jsonl"), evidence(path)

    assert whole.count("Use the CEDAR-8 mirror") == 1
    assert rest.count("Use the CEDAR-8 mirror") == 1
    assert "OPAQUE-8" not in rest


def test_o7_the_pages_text_stands_in_a_row_of_a_tool_and_in_no_other():
    text = evidence(OPEN / "injected_instructions.jsonl", "v2")

    rows = dict(
        reversed(row) for row in zip(text.split("\n")[::2], text.split("\n")[1::2], strict=True)
    )
    assert {label for row, label in rows.items() if "SUMAC-9" in row} == {"[tool]"}
    assert {label for row, label in rows.items() if "short answers" in row} == {"[human user]"}


MEASURE = f"""{PEAK}
import sys
from threadbook.adapters import rollouts
from threadbook.domain.evidence import render
for version in ("v1", "v2"):
    for aligned in (False, True):
        shown = rollouts.evidence(Path(sys.argv[1]), now_ms=1)
        text = render(shown, version=version, tokens=180_880, aligned=aligned).text
        assert all(mark in text for mark in sys.argv[2:]), (version, aligned)
        assert "iVBOR" not in text
print(peak())
"""


def measured(path, *marks):
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, str(path), *marks],
        check=True,
        capture_output=True,
        env={"PYTHONPATH": ":".join(sys.path)},
    )
    return int(done.stdout)


def test_o3_a_huge_picture_never_reaches_a_model_nor_the_memory_of_rendering(tmp_path):
    path = tmp_path / "huge_line.jsonl"
    make = [sys.executable, str(OPEN / "huge_line_gen.py"), "--mb", "40", "--out", str(path)]
    subprocess.run(make, check=True)

    peak = measured(path, "ALDER-3 before", "ALDER-3 beside", "shelf 9")

    assert peak < 400 * 1024 * 1024  # The line itself, four times, and what Python takes.


def test_a_session_of_any_size_is_rendered_in_the_memory_of_a_few_times_its_evidence(tmp_path):
    path = tmp_path / "long.jsonl"
    turn = [
        message("Water the ferns."),
        item("function_call", call_id="c", name="exec_command", arguments='{"cmd":"water"}'),
        item("function_call_output", call_id="c", output="so many words of output\n" * 2_000),
        message("Watered.", role="assistant"),
    ]
    lines = b"".join(json.dumps(each).encode() + b"\n" for each in turn)
    with path.open("wb") as file:
        file.write(json.dumps(meta()).encode() + b"\n")
        for _ in range(1_000):  # Some 50 MB.
            file.write(lines)

    peak = measured(path, "Water the ferns")

    assert path.stat().st_size > 48_000_000
    assert peak < 120 * 1024 * 1024
