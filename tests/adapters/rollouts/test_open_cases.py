"""The open cases O1 to O12: files that other readers stumbled over, with their right numbers."""

import json
import subprocess
import sys

import pytest
from threadbook.adapters.rollouts import head, items, survey
from threadbook.domain.session import Agent, Assistant, Call, Harness, Human, Output

from .support import NOW_MS, OPEN, PEAK

HOUR_MS = 3_600_000


def case(name, now_ms=NOW_MS):
    path = OPEN / f"{name}.jsonl"
    return survey(path, now_ms=now_ms), list(items(path, now_ms=now_ms))


def thread(n):
    return f"019c0000-0000-7000-8000-{n:012}"


def test_o1_a_line_still_being_written_is_a_tail_and_is_read_once_when_it_is_whole(tmp_path):
    read, told = case("truncated_last_line")
    whole = (OPEN / "truncated_last_line.jsonl").read_bytes()
    path = tmp_path / "live.jsonl"
    path.write_bytes(whole + b'ut off."}]}}\n')

    finished = survey(path, now_ms=NOW_MS)

    assert (read.records, read.bad_lines, read.unfinished_tail) == (3, (), True)
    assert read.resume_offset == whole.rindex(b"\n") + 1
    assert (read.header.thread_id, read.header.kind) == (thread(1), "interactive")
    assert "nursery port" not in repr(told)
    assert (finished.records, finished.unfinished_tail) == (4, False)
    assert finished.resume_offset == path.stat().st_size


def test_o2_a_half_surrogate_becomes_the_replacement_character_and_a_pair_stays():
    read, told = case("lone_surrogate")

    [output] = [one for one in told if isinstance(one, Output)]

    assert (read.records, read.bad_lines, read.header.thread_id) == (5, (), thread(2))
    assert output.text == "PRE\ufffdMID\ufffdPOST ok\U0001f33f"
    for one in told:
        repr(one).encode("utf-8")


MEASURE = f"""{PEAK}
import sys
from threadbook.adapters import rollouts
rollouts.survey(Path(sys.argv[1]), now_ms=1)
before = peak()
[_ for _ in rollouts.items(Path(sys.argv[2]), now_ms=1)]
print(peak() - before)
"""


def test_o3_a_huge_picture_is_a_placeholder_and_costs_less_than_four_times_its_line(tmp_path):
    path = tmp_path / "huge_line.jsonl"
    make = [sys.executable, str(OPEN / "huge_line_gen.py"), "--mb", "40", "--out", str(path)]
    subprocess.run(make, check=True)
    small = OPEN / "compacted.jsonl"
    measure = [sys.executable, "-c", MEASURE, str(small), str(path)]
    import_path = {"PYTHONPATH": ":".join(sys.path)}

    read = survey(path, now_ms=NOW_MS)
    told = list(items(path, now_ms=NOW_MS))
    peak = subprocess.run(measure, check=True, capture_output=True, env=import_path).stdout

    assert (read.records, read.bad_lines, read.skipped) == (5, (), {})
    assert read.human_messages == (
        "Marker ALDER-3 before the picture.",
        "Marker ALDER-3 beside the picture.",
        "Marker ALDER-3 after the picture: the seed bank lives on shelf 9.",
    )
    assert "iVBORw0KGgo" not in repr(told)
    assert [one.text for one in told if isinstance(one, Harness)] == ["[Image]"]
    assert int(peak) < 4 * 40 * 1024 * 1024
    assert head(path).thread_id == thread(3)


def test_o3_a_line_over_the_limit_is_oversized_and_the_others_are_read(tmp_path):
    path = tmp_path / "huge_line.jsonl"
    make = [sys.executable, str(OPEN / "huge_line_gen.py"), "--mb", "1", "--out", str(path)]
    subprocess.run(make, check=True)

    read = survey(path, now_ms=NOW_MS, line_limit=1024 * 1024)

    assert (read.records, read.bad_lines, read.skipped) == (3, (), {"oversized": 2})
    assert [text[15:21] for text in read.human_messages] == ["before", "after "]
    assert read.resume_offset == path.stat().st_size


def test_o4_what_a_fork_copied_is_no_second_witness():
    parent, _ = case("forked_parent")
    child, told = case("forked_child")

    assert (parent.records, child.records) == (5, 6)
    assert (parent.header.thread_id, child.header.thread_id) == (thread(4), thread(5))
    assert (parent.header.forked_from, child.header.forked_from) == (None, thread(4))
    assert child.header.created_at_ms == parent.header.created_at_ms + HOUR_MS
    assert parent.human_messages == (
        "The staging gate is called BIRCH-4.",
        "Parent continues alone: PARENT-ONLY-4.",
    )
    assert child.human_messages == ("In the fork: rename the gate to LARCH-4.",)
    assert [(one.line, one.inherited) for one in told] == [
        (3, True),
        (4, True),
        (5, False),
        (6, False),
    ]


def test_o5_a_sub_agent_has_a_parent_and_no_human():
    read, told = case("subagent_session")

    assert (read.records, read.header.thread_id, read.header.kind) == (5, thread(7), "subagent")
    assert read.header.parent == thread(6)
    assert json.loads(read.header.source)["subagent"]["thread_spawn"]["agent_nickname"] == "Moss"
    assert read.human_messages == ()
    assert [type(one) for one in told] == [Agent, Agent, Assistant]
    assert "HAZEL-6" in told[0].text
    assert told[0].inherited


def test_o6_a_compaction_s_copy_is_no_new_evidence():
    read, told = case("compacted")

    assert (read.records, read.header.thread_id) == (8, thread(8))
    assert read.human_messages == (
        "Use the CEDAR-8 mirror for packages.",
        "Also pin the mirror to revision 12.",
        "Done for today.",
    )
    assert "OPAQUE-8" not in repr(told)


def test_o6_without_the_lines_before_it_a_compaction_s_copy_is_all_there_is(tmp_path):
    lines = (OPEN / "compacted.jsonl").read_bytes().splitlines(keepends=True)
    path = tmp_path / "cut.jsonl"
    path.write_bytes(b"".join(lines[:1] + lines[3:]))

    read = survey(path, now_ms=NOW_MS)

    assert read.human_messages == (
        "Use the CEDAR-8 mirror for packages.",
        "Also pin the mirror to revision 12.",
        "Done for today.",
    )


def test_o7_a_page_s_words_stay_a_tool_s_output():
    read, told = case("injected_instructions")

    assert (read.records, read.header.thread_id) == (6, thread(9))
    assert read.human_messages == (
        "Read the page about fern rust and tell me the treatment.",
        "Good. I prefer short answers.",
    )
    assert [type(one) for one in told if "SUMAC-9" in repr(one)] == [Output]
    assert read.polluting == ("external_context",)


def test_o8_two_objects_on_one_line_are_both_read():
    read, told = case("claude_two_objects_one_line")

    assert (read.records, read.bad_lines) == (4, ())
    assert read.header.thread_id == "bbbb0000-0000-4000-8000-000000000010"
    assert (read.header.tool, read.header.kind) == ("claude", "interactive")
    assert read.human_messages[1] == "Next time keep the map under docs/map.md."
    assert [one.text for one in told if isinstance(one, Assistant)] == [
        "Documented. Marker ROWAN-10."
    ]


def test_o9_a_line_written_twice_counts_once_and_every_block_is_kept():
    read, told = case("claude_streaming_duplicates")

    assert (read.records, read.human_messages) == (6, ("Which tray holds the spores?",))
    assert [type(one) for one in told] == [Human, Assistant, Call, Output]
    assert "sig" not in repr(told)


def test_o10_unknown_kinds_are_skipped_one_by_one_and_counted_by_name():
    codex, told = case("unknown_record_types")
    claude, told_claude = case("claude_unknown_record_types")

    assert (codex.records, claude.records) == (10, 9)
    assert codex.header.thread_id == thread(12)
    assert claude.header.thread_id == "bbbb0000-0000-4000-8000-000000000012"
    assert codex.skipped == {
        "hologram_v9": 1,
        "quantum_call": 1,
        "input_smell": 1,
        "overseer": 1,
        "brand_new_event": 1,
        "event_msg without payload": 1,
        "record without type": 1,
    }
    assert claude.skipped == {
        "atis-latch": 1,
        "hovercraft": 1,
        "brand_new_subtype": 1,
        "new_block_kind": 1,
    }
    assert codex.human_messages == (
        "Keep the MAPLE-12 label.",
        "And MAPLE-12 again with trailing record.",
    )
    assert claude.human_messages == ("Prefer British spelling. Marker ELDER-12.",)
    assert "OVERSEER-12" not in repr(told)
    assert "QUEUED-12" not in repr(told_claude)


def test_o11_order_is_file_order_and_a_stamp_from_the_future_does_not_age_the_session():
    sane_ms = 1_772_528_760_000  # 2026-03-03T09:06:00Z
    read, told = case("clock_skew", now_ms=sane_ms + 12 * HOUR_MS)

    assert (read.records, len(read.human_messages)) == (10, 9)
    assert [text.rstrip(".")[-1] for text in read.human_messages] == list("abcdefghi")
    assert told[3].at_ms == 1_772_528_407_123  # 2026-03-03T09:00:07.123Z
    assert [one.at_ms for one in told[6:]] == [None, None, None]
    assert read.header.created_at_ms == 1_772_528_400_000
    assert read.header.updated_at_ms == sane_ms


def test_o11_without_a_stamp_the_clock_has_reached_the_file_s_time_counts(tmp_path):
    path = tmp_path / "future.jsonl"
    path.write_bytes((OPEN / "clock_skew.jsonl").read_bytes())
    long_ago_ms = 1_500_000_000_000

    header = survey(path, now_ms=long_ago_ms).header

    assert header.updated_at_ms == long_ago_ms


CWDS = [json.loads(line) for line in (OPEN / "windows_wsl_paths.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("line", CWDS, ids=lambda line: f"case {line['case']}")
def test_o12_the_working_folder_is_kept_as_it_was_written(tmp_path, line):
    path = tmp_path / "session.jsonl"
    path.write_text(json.dumps(line["first_line"]) + "\n")

    header = survey(path, now_ms=NOW_MS).header

    assert header.cwd == line["first_line"]["payload"].get("cwd")
    assert head(path).cwd == header.cwd
