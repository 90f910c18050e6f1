"""What only sessions said that are out of the memory is in no text that is read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from threadbook.domain.withholding import WITHHELD, Gone, withheld

FERN, MOSS = "019b7a00-0001-7000-8000-000000000001", "019b7a00-0002-7000-8000-000000000002"
FERN_FILE, MOSS_FILE = "2026-01-01T14-39-39-0001-fern.md", "2026-01-01T14-39-39-0002-moss.md"
FERN_GONE = Gone(ids=frozenset({FERN}), stems=frozenset({"2026-01-01T14-39-39-0001"}))


def source(file, thread_id):
    return (
        f"- rollout_summaries/{file} (cwd=/srv/x, rollout_path=/s.jsonl,"
        f" updated_at=2026-01-01T05:00:00+00:00, thread_id={thread_id})"
    )


HANDBOOK = f"""# Task Group: garden
scope: work in /srv/x
applies_to: cwd=/srv/x; reuse_rule=this project only

## Task 1: water the fern, success

### rollout_summary_files
{source(FERN_FILE, FERN)}

### keywords
- fern

## Task 2: comb the moss, success

### rollout_summary_files
{source(MOSS_FILE, MOSS)}

### keywords
- moss

## User preferences
- water at dawn [Task 1]
  - and never at noon
- comb on Sundays [Task 2]
- whisper [Task 1][Task 2]
"""
SUMMARY = """v1

## User Profile

## User preferences
- water at dawn (2026-01-01) [Task 1]
- whisper (2026-01-01) [Task 1][Task 2]

## General Tips

## What's in Memory
### fern
#### 2026-01-01
- water the fern: fern [Task 1]
  - desc: success [Task 1]
### moss
#### 2026-01-01
- comb the moss: moss [Task 2]
"""
POINTED = f"""v1

## User Profile

## User preferences
- in x the user wrote "water at dawn" (2026-01-01); thread_id={FERN}
- in x the user wrote "whisper" (2026-01-01); thread_id={FERN}, {MOSS}

## General Tips

## What's in Memory
### fern
#### 2026-01-01
- rollout_summaries/{FERN_FILE} — water the fern, success: fern; thread_id={FERN}
  - for this task: the user wrote "not at noon"
### moss
#### 2026-01-01
- rollout_summaries/{MOSS_FILE} — comb the moss, success: moss; thread_id={MOSS}
  - failed: `comb` failed (too wet)
"""
RAW = f"""# Raw Memories

## Thread `{FERN}`
cwd: /srv/x

water at dawn
## Thread `{MOSS}`
and this is still of the fern

## Thread `{MOSS}`
cwd: /srv/y

comb on Sundays
"""


def lines_of(path, text, gone=FERN_GONE):
    out = withheld(path, text, gone, handbook=HANDBOOK)
    assert out.count("\n") == text.count("\n")
    return out


def test_a_statement_goes_with_its_last_source_and_stays_with_any_other():
    out = lines_of("MEMORY.md", HANDBOOK)

    assert "water" not in out
    assert "noon" not in out
    assert FERN not in out
    assert "- fern" not in out
    assert "- comb on Sundays [Task 2]" in out
    assert "- whisper [Task 1][Task 2]" in out
    assert out.startswith("# Task Group: garden\nscope: work in /srv/x\n")
    assert out.split("\n")[4] == WITHHELD


def test_a_project_of_which_no_session_is_left_loses_its_name_too():
    both = Gone(ids=frozenset({FERN, MOSS}))

    out = lines_of("MEMORY.md", HANDBOOK, both)

    assert "garden" not in out
    assert "/srv/x" not in out
    assert "whisper" not in out
    assert "## User preferences" in out


def test_a_task_of_several_sessions_stays_with_the_last_of_them():
    shared = HANDBOOK.replace(
        source(FERN_FILE, FERN), f"{source(FERN_FILE, FERN)}\n{source(MOSS_FILE, MOSS)}", 1
    )

    out = lines_of("MEMORY.md", shared)

    assert "- water at dawn [Task 1]\n  - and never at noon" in out
    assert FERN not in out
    assert withheld("memory_summary.md", SUMMARY, FERN_GONE, handbook=shared) == SUMMARY


def test_a_heading_stays_while_anything_below_it_does():
    mixed = SUMMARY.replace("### moss\n", "")

    out = lines_of("memory_summary.md", mixed)

    assert "### fern\n" in out
    assert "#### 2026-01-01\n- comb the moss" in out


def test_the_summary_asks_the_handbook_what_a_task_is():
    out = lines_of("memory_summary.md", SUMMARY)

    assert "water" not in out
    assert "### fern" not in out
    assert "- whisper (2026-01-01) [Task 1][Task 2]" in out
    assert "### moss\n#### 2026-01-01\n- comb the moss: moss [Task 2]" in out


@pytest.mark.parametrize("handbook", ["", "rewritten by hand\n"])
def test_without_a_handbook_nobody_knows_whose_a_statement_is_and_it_goes(handbook):
    out = withheld("memory_summary.md", SUMMARY, FERN_GONE, handbook=handbook)

    assert "[Task" not in out
    assert "## User preferences" in out
    assert withheld("memory_summary.md", SUMMARY, Gone(), handbook=handbook) == SUMMARY


def test_a_statement_of_v2_goes_with_the_last_session_that_it_names_and_what_stands_under_it():
    out = withheld("memory_summary.md", POINTED, FERN_GONE)

    assert out.split("\n")[5:7] == [WITHHELD, POINTED.split("\n")[6]]
    assert "water" not in out
    assert "noon" not in out
    assert "### fern" not in out
    assert "### moss\n#### 2026-01-01\n- rollout_summaries/" in out
    assert "too wet" in out
    assert out.count(WITHHELD) == 5


@pytest.mark.parametrize(
    "other",
    ["nobody", "etc.", f"{MOSS}x", FERN.upper()],
)
def test_only_a_session_stands_up_for_a_statement_of_v2(other):
    text = POINTED.replace(f"{FERN}, {MOSS}", f"{FERN}, {other}")

    assert "whisper" not in withheld("memory_summary.md", text, FERN_GONE)


def test_a_session_stands_up_for_no_line_that_also_names_one_that_is_gone():
    text = f"- rollout_summaries/{FERN_FILE} — water the fern; thread_id={MOSS}\n"

    assert withheld("memory_summary.md", text, FERN_GONE) == f"{WITHHELD}\n"


def test_what_stands_under_a_line_that_names_the_session_in_other_words_goes_with_it():
    text = f"- water the fern (see {FERN_FILE})\n  - not at noon\n- comb the moss\n"

    out = withheld("memory_summary.md", text, FERN_GONE)

    assert out == f"{WITHHELD}\n{WITHHELD}\n- comb the moss\n"


def test_words_within_a_statement_of_v2_name_nobody_for_it():
    """What a person typed may look like the end of a line of ours."""
    said = f'"water; thread_id={MOSS}"'
    text = f"- in x the user wrote {said} (2026-01-01); thread_id={FERN}\n"

    assert withheld("memory_summary.md", text, FERN_GONE) == f"{WITHHELD}\n"


@pytest.mark.parametrize(
    "edited",
    [
        POINTED.replace(f"; thread_id={FERN}", ""),
        POINTED.replace("- in x the user wrote ", ""),
        POINTED.replace("water at dawn", "water\nat dawn").replace(f"; thread_id={FERN}\n", "\n"),
        POINTED.replace(f"rollout_summaries/{FERN_FILE} — ", "").replace(f"; thread_id={FERN}", ""),
        POINTED.replace("\n", "\r\n"),
    ],
)
def test_a_hand_that_took_the_sessions_off_a_statement_of_v2_has_not_made_it_its_own(edited):
    published = {"memory_summary.md": POINTED}

    out = withheld("memory_summary.md", edited, FERN_GONE, published=published)

    assert "water" not in out
    assert "not at noon" not in out
    assert "comb the moss" in out
    assert "too wet" in out


def test_a_section_of_the_raw_memories_ends_where_another_truly_begins():
    forged = RAW
    honest = RAW.replace(f"dawn\n## Thread `{MOSS}`", "dawn\n-")

    assert "and this is still" not in lines_of("raw_memories.md", forged)
    assert "comb on Sundays" not in lines_of("raw_memories.md", forged)
    assert "comb on Sundays" in lines_of("raw_memories.md", honest)
    assert "dawn" not in lines_of("raw_memories.md", honest)


def test_a_number_that_several_groups_use_means_its_own_groups_task():
    twice = HANDBOOK + HANDBOOK.replace("garden", "shed").replace(
        f"{source(FERN_FILE, FERN)}", source(MOSS_FILE, MOSS)
    )

    out = lines_of("MEMORY.md", twice)

    assert out.count("water at dawn [Task 1]") == 1
    assert "water" not in out.partition("# Task Group: shed")[0]


def test_a_number_that_could_mean_a_task_that_is_gone_is_not_told_in_the_summary():
    twice = HANDBOOK + HANDBOOK.replace("garden", "shed").replace(
        f"{source(FERN_FILE, FERN)}", source(MOSS_FILE, MOSS)
    )

    out = withheld("memory_summary.md", SUMMARY, FERN_GONE, handbook=twice)

    assert "water at dawn" not in out


@pytest.mark.parametrize("name", [FERN, FERN.upper(), FERN_FILE, "2026-01-01T14-39-39-0001.md"])
def test_without_our_grammar_a_line_goes_that_names_the_session_or_its_summary(name):
    text = f"the fern is watered at dawn, see {name}\nand the moss is combed\n"

    for path in ("MEMORY.md", "memory_summary.md", "skills/garden/SKILL.md"):
        assert lines_of(path, text) == f"{WITHHELD}\nand the moss is combed\n"


def test_notes_and_the_summaries_of_others_are_a_persons_and_stay():
    text = f"see {FERN}"

    assert lines_of("extensions/ad_hoc/notes/a.md", text) == text
    assert lines_of(f"rollout_summaries/{MOSS_FILE}", text) == text


def test_the_summary_of_such_a_session_is_known_by_its_name_or_by_what_it_says():
    assert FERN_GONE.is_summary(f"rollout_summaries/{FERN_FILE}", "")
    assert FERN_GONE.is_summary("rollout_summaries/renamed.md", f"thread_id: {FERN}\nx")
    assert not FERN_GONE.is_summary(f"rollout_summaries/{MOSS_FILE}", f"thread_id: {MOSS}\n")


@given(st.text(), st.sampled_from(["MEMORY.md", "memory_summary.md", "raw_memories.md", "x.md"]))
def test_any_text_keeps_its_lines_and_with_everybody_live_its_bytes(text, path):
    assert withheld(path, text, Gone(), handbook=text) == text
    out = withheld(path, text, FERN_GONE, handbook=text)
    assert out.count("\n") == text.count("\n")
