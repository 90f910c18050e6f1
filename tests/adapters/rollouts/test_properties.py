"""Promises of the readers that hold for every file."""

import json
import tempfile
from pathlib import Path

from hypothesis import event, example, given, settings
from hypothesis import strategies as st
from threadbook.adapters.rollouts import RolloutError, head, items, survey
from threadbook.domain.session import Human

from .support import MADE, NOW_MS, OPEN, ROLLOUTS, as_bytes, claude, message, meta

SAMPLES = [
    (OPEN / "unknown_record_types.jsonl").read_bytes(),
    (OPEN / "compacted.jsonl").read_bytes(),
    (OPEN / "forked_child.jsonl").read_bytes(),
    (OPEN / "claude_streaming_duplicates.jsonl").read_bytes(),
    (OPEN / "claude_unknown_record_types.jsonl").read_bytes(),
    (MADE / "claude_tools.jsonl").read_bytes(),
    (MADE / "bare_2025.jsonl").read_bytes(),
    (ROLLOUTS / "patch.jsonl").read_bytes(),
    (ROLLOUTS / "mcp.jsonl").read_bytes(),
]


def read(content):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "session.jsonl")
        path.write_bytes(content)
        return survey(path, now_ms=NOW_MS), list(items(path, now_ms=NOW_MS))


def summary(content):
    result, told = read(content)
    return result.records, result.human_messages, result.skipped, result.polluting, told


scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
names = st.sampled_from(
    [
        "type",
        "payload",
        "message",
        "content",
        "role",
        "text",
        "id",
        "call_id",
        "name",
        "arguments",
        "output",
        "item",
        "status",
        "source",
        "timestamp",
        "sessionId",
        "uuid",
        "input",
        "tool_use_id",
        "is_error",
        "metadata",
        "action",
        "command",
        "num_turns",
        "replacement_history",
        "images",
        "git",
        "history_base",
        "isSidechain",
    ]
)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=4)
)
words = st.sampled_from(
    [
        "session_meta",
        "response_item",
        "event_msg",
        "compacted",
        "turn_context",
        "message",
        "function_call",
        "function_call_output",
        "local_shell_call",
        "custom_tool_call",
        "web_search_call",
        "user",
        "assistant",
        "system",
        "item_completed",
        "user_message",
        "thread_rolled_back",
        "tool_use",
        "tool_result",
        "text",
        "input_text",
    ]
)


@st.composite
def twisted(draw):
    """A real session in which one value, anywhere, is something else."""
    sample = draw(st.sampled_from(SAMPLES)).splitlines()
    at = draw(st.integers(0, len(sample) - 1))
    place = record = json.loads(sample[at])
    for _ in range(draw(st.integers(0, 5))):
        inner = [value for value in _inside(place) if isinstance(value, dict | list) and value]
        if not inner:
            break
        place = draw(st.sampled_from(inner))
    keys = list(place) if isinstance(place, dict) else list(range(len(place)))
    place[draw(st.sampled_from(keys))] = draw(values | words)
    sample[at] = json.dumps(record).encode()
    return b"\n".join(sample) + b"\n"


def _inside(place):
    return place.values() if isinstance(place, dict) else place


noise = st.one_of(
    st.binary(max_size=200),
    twisted(),
    st.builds(
        lambda sample, at, cut: sample[:at] + cut + sample[at + len(cut) :],
        st.sampled_from(SAMPLES),
        st.integers(0, 3000),
        st.binary(min_size=1, max_size=12),
    ),
)


@settings(max_examples=300, deadline=None)
@given(noise)
@example(b"\x28\xb5\x2f\xfd")
@example(b"\x28\xb5\x2f\xfd\x00\x00")
def test_no_bytes_raise_anything_but_a_rollout_error(content):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "session.jsonl")
        path.write_bytes(content)

        try:
            result = survey(path, now_ms=NOW_MS)
        except RolloutError:
            event("refused")
            return
        told = list(items(path, now_ms=NOW_MS))

        event("read" if not result.bad_lines else "read with bad lines")
        assert head(path) is not None
        assert 0 <= result.resume_offset <= len(content)
        typed = [one.text for one in told if isinstance(one, Human) and not one.inherited]
        assert tuple(typed) == result.human_messages
        json.dumps([repr(one) for one in told], ensure_ascii=False).encode("utf-8")
        assert "\x00" not in "".join(typed)


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(SAMPLES), st.data())
def test_a_cut_loses_only_the_tail(whole, data):
    first_end = whole.index(b"\n")
    at = data.draw(st.integers(first_end, len(whole)))
    lines_whole = whole[:at].count(b"\n")

    try:
        cut, told = read(whole[:at])
    except RolloutError:
        event("nothing names the session yet")
        return
    full = read(whole)[1]

    event("tail" if cut.unfinished_tail else "between lines")
    assert cut.bad_lines == ()
    assert (
        told
        == [one for one in full if one.line <= lines_whole + (not cut.unfinished_tail)][: len(told)]
    )
    assert len(told) >= sum(one.line <= lines_whole for one in full)
    if cut.unfinished_tail:
        assert cut.resume_offset == whole.rindex(b"\n", 0, at) + 1


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(SAMPLES), st.data())
def test_what_stands_between_the_lines_changes_nothing_but_line_numbers(whole, data):
    lines = whole.rstrip(b"\n").split(b"\n")
    between = st.sampled_from(
        [b"\n", b"\r\n", b"\n\n", b"\n \t\r\n", b"\x00\x00\n", b"\n\x00\x00\x00"]
    )

    padded = data.draw(st.sampled_from([b"", b"\xef\xbb\xbf", b"\n", b"\x00"]))
    for line in lines:
        padded += line + data.draw(between)

    plain = summary(whole)
    result = summary(padded)
    assert result[:4] == plain[:4]
    assert [repr(one).split("at_ms")[1] for one in result[4]] == [
        repr(one).split("at_ms")[1] for one in plain[4]
    ]


texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00<"), max_size=40)


@settings(max_examples=150, deadline=None)
@given(st.lists(texts.filter(str.strip), max_size=6), st.booleans())
def test_what_a_person_typed_comes_back_word_for_word_in_file_order(typed, in_codex):
    typed = [f"so {text}".strip() for text in typed]  # Not by chance the harness's own beginning.
    if in_codex:
        records = [meta(), *(message(text, second=n) for n, text in enumerate(typed))]
    else:
        records = [
            claude("user", text, uuid=f"u{n}") for n, text in enumerate(["so it began", *typed])
        ]
        typed = ["so it began", *typed]

    result, _ = read(as_bytes(*records))

    assert list(result.human_messages) == typed
