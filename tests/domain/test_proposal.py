"""What of an agent's files keeps them from being published, by file and line."""

import time

import pytest
from threadbook.domain.carried import Carried, edited
from threadbook.domain.proposal import MEMORY_BYTES_MAX, artifacts, refusals
from threadbook.domain.redaction import redact

FILE = "rollout_summaries/2026-11-20T08-05-00-a1B2-backup.md"
MEMORY = f"""\
# Task Group: pottery
scope: the shop's server
applies_to: cwd=/srv/pottery; reuse_rule=this project only

## Task 4: write a backup script, success

### rollout_summary_files
- {FILE} (cwd=/srv/pottery, rollout_path=/s/r.jsonl, updated_at=2026-11-20, thread_id=a1)

### keywords
- backup, kiln.db

## Reusable knowledge
- `make backup` passed [Task 4]
"""
SUMMARY = """\
v1

## User Profile

## User preferences
- backups are made nightly [Task 4]

## General Tips

## What's in Memory
"""
SKILL = f"---\nname: back-up\ndescription: how\n---\n\n## Sources\n- {FILE}\n"
STAGED = {FILE: "a summary\n", "raw_memories.md": "raw\n", "phase2_workspace_diff.md": "page\n"}
GOOD = {**STAGED, "MEMORY.md": MEMORY, "memory_summary.md": SUMMARY}
SECRET = "ghp_" + "a1B2c3D4e5F6" * 3


def refused(files, *, version="v1", published=None, carried=None, own=(), unusable=None):
    return refusals(
        files,
        memory_version=version,
        staged={**STAGED, **(published or {})},
        unusable=unusable or {},
        threads={"a1"},
        published=published or {},
        carried=carried or Carried(salt="s"),
        own=own,
        redact=redact,
    )


def added(line, path="MEMORY.md"):
    return {**GOOD, path: f"{GOOD[path]}{line}\n"}


def test_what_keeps_to_the_form_is_taken():
    assert refused(GOOD) == []
    assert refused({**GOOD, "skills/back-up/SKILL.md": SKILL}) == []


WRONG = {
    "no source": (added("- nobody said so"), "MEMORY.md:15", "names no task"),
    "no such task": (added("- x [Task 9]"), "MEMORY.md:15", "no task 9"),
    "no source in the summary": (added("- x", "memory_summary.md"), "memory_summary.md", "no task"),
    "no summary": ({**STAGED, "MEMORY.md": MEMORY}, "memory_summary.md", "missing"),
    "no file": (
        added("- rollout_summaries/gone.md says so [Task 4]"),
        "MEMORY.md:15",
        "not in the folder",
    ),
    "no skill": (added("- see skills/gone/SKILL.md [Task 4]"), "MEMORY.md:15", "not in the folder"),
    "no session": (added("- thread_id=zz says so [Task 4]"), "MEMORY.md:15", "not among those"),
    "a secret": (added(f"- the token is {SECRET} [Task 4]"), "MEMORY.md:15", "secret"),
    "a secret name": ({**GOOD, f"skills/{SECRET}/SKILL.md": SKILL}, "name of a file", "secret"),
    "a large file": (
        added("- " + "x" * MEMORY_BYTES_MAX + " [Task 4]"),
        "MEMORY.md has",
        "the most",
    ),
    "a large summary": (
        added("- " + "x" * 10_000 + " [Task 4]", "memory_summary.md"),
        "memory_summary.md",
        "the most",
    ),
    "a stranger": ({**GOOD, "notes.txt": "x"}, "notes.txt", "no file of this memory"),
    "no page": ({**GOOD, "skills/back-up/scripts/x.py": "x"}, "skills/back-up", "no SKILL.md"),
    "no front matter": ({**GOOD, "skills/x/SKILL.md": FILE}, "skills/x/SKILL.md", "front matter"),
    "another name": ({**GOOD, "skills/x/SKILL.md": SKILL}, "skills/x/SKILL.md", "front matter"),
    "no source of a skill": (
        {**GOOD, "skills/back-up/SKILL.md": SKILL.replace(FILE, "me")},
        "skills/back-up/SKILL.md",
        "names no source",
    ),
    "a long skill": (
        {**GOOD, "skills/back-up/SKILL.md": SKILL + "x\n" * 501},
        "skills/back-up/SKILL.md",
        "500 lines",
    ),
    "a skill's bad path": ({**GOOD, "skills/A b/x": "x"}, "skills/A b/x", "no file of a skill"),
}


@pytest.mark.parametrize(("files", "where", "why"), WRONG.values(), ids=WRONG.keys())
def test_what_is_wrong_is_said_with_its_place(files, where, why):
    told = refused(files)

    assert any(where in each and why in each for each in told)
    assert SECRET not in " ".join(told)


def test_what_is_no_text_is_refused_where_it_would_be_published():
    told = refused(GOOD, unusable={"skills/x/y": "it is a link", "raw_memories.md": "it is a link"})

    assert told == ["skills/x/y cannot be published: it is a link"]


def test_v2_has_one_file_whose_lines_name_sessions():
    summary = SUMMARY.replace(" [Task 4]", "; thread_id=a1")

    assert refused({**STAGED, "memory_summary.md": summary}, version="v2") == []
    gone = refused({**STAGED, "memory_summary.md": summary.replace("=a1", "=zz")}, version="v2")
    assert {each[:19] for each in gone} == {"memory_summary.md:6"}
    (memory,) = refused({**GOOD, "memory_summary.md": summary}, version="v2")
    assert memory.startswith("MEMORY.md is no file of this memory")


def test_a_path_of_the_project_itself_is_no_source():
    assert refused(added("- `cat src/skills/x.md extensions/a.md` passed [Task 4]")) == []


@pytest.mark.parametrize("path", ["nowhere.md", "MEMORY.md", "raw_memories.md"])
def test_a_task_rests_on_what_was_read_and_on_nothing_else(path):
    told = refused({**GOOD, "MEMORY.md": MEMORY.replace(FILE, path)})

    assert told == [f"MEMORY.md:8 names {path}, which is no source: it was not read"]


def test_a_persons_line_needs_no_source_and_must_stay():
    carried = edited(Carried(salt="s"), "MEMORY.md", MEMORY, f"{MEMORY}- mine\n")

    assert refused(added("- mine"), carried=carried) == []
    assert refused(GOOD, carried=carried) == [
        "MEMORY.md lacks a line that a person wrote; put it back word for word: - mine"
    ]


def test_a_line_that_a_person_took_out_stays_out():
    without = MEMORY.replace("- `make backup` passed [Task 4]\n", "")
    carried = edited(Carried(salt="s"), "MEMORY.md", MEMORY, without)

    assert refused(GOOD, carried=carried) == [
        "MEMORY.md:14 is a line that a person has taken out; leave it out"
    ]


SAID = ("uv builds wheels", "ruff checks names", "the gate opens at dawn", "kilns cool for days")
SONGS = "\n".join(f'- the user wrote "{each}" [Task 4]' for each in SAID)


@pytest.mark.parametrize(("left", "is_refused"), [(0, True), (1, True), (2, False), (4, False)])
def test_more_than_half_may_not_go_at_once(left, is_refused):
    published = {"MEMORY.md": MEMORY.replace("- `make backup` passed [Task 4]", SONGS)}
    still = "\n".join(SONGS.split("\n")[:left]) or "- something else entirely [Task 4]"
    files = {**GOOD, "MEMORY.md": MEMORY.replace("- `make backup` passed [Task 4]", still)}

    assert bool(refused(files, published=published)) is is_refused


def test_what_has_lost_its_sources_may_go_and_what_is_said_otherwise_is_still_said():
    published = {
        "MEMORY.md": MEMORY.replace("- `make backup` passed [Task 4]", SONGS),
    }
    gone = {"MEMORY.md": published["MEMORY.md"].replace("thread_id=a1", "thread_id=zz")}
    otherwise = f"- {', and '.join(SAID)} [Task 4]"
    files = {**GOOD, "MEMORY.md": MEMORY.replace("- `make backup` passed [Task 4]", otherwise)}

    assert refused(GOOD, published=gone) == []
    assert refused(files, published=published) == []


def test_only_artifacts_are_published_and_a_persons_file_stays_theirs():
    files = {**GOOD, "skills/mine/SKILL.md": "x"}

    found = artifacts(files, memory_version="v1", own={"skills/mine/SKILL.md"})

    assert found == {"MEMORY.md": MEMORY, "memory_summary.md": SUMMARY}


def test_what_a_file_cannot_do_without_may_come_back_and_what_it_says_may_not():
    carried = edited(Carried(salt="s"), "MEMORY.md", MEMORY, "")
    reworded = MEMORY
    for old, new in (
        ("pottery\nscope: the", "kilns\nscope: that"),
        ("4: write", "4: have"),
        ("- backup", "- copies"),
        ("`make backup` passed", "copies are made by make"),
    ):
        reworded = reworded.replace(old, new)

    assert len(refused(GOOD, carried=carried)) == 5
    assert refused({**GOOD, "MEMORY.md": reworded}, carried=carried) == []


OWN_BLOCK = """
# Task Group: mine
scope: mine
applies_to: cwd=/x; reuse_rule=all

## Task 9: tea, success

### rollout_summary_files
- nowhere.md (cwd=/x, rollout_path=/y, updated_at=2026)

### keywords
- backup, kiln.db

## Reusable knowledge
- I like tea [Task 9]
"""


@pytest.mark.parametrize("where", ["before", "after"])
def test_a_persons_whole_block_takes_no_heading_from_anybody_else(where):
    with_mine = MEMORY + OWN_BLOCK if where == "after" else f"{OWN_BLOCK}\n{MEMORY}"
    carried = edited(Carried(salt="s"), "MEMORY.md", MEMORY, with_mine)

    assert refused({**GOOD, "MEMORY.md": with_mine}, carried=carried) == []
    assert len(refused({**GOOD, "MEMORY.md": with_mine})) == 1


def test_an_agent_is_told_a_part_of_what_is_wrong_a_thousand_times():
    told = refused({**GOOD, "MEMORY.md": MEMORY + "- nobody said so\n" * 10_000})

    assert len(told) < 50
    assert told[-1] == "and 9,960 more like these"


@pytest.mark.parametrize(
    "line",
    ["- " + "[Task 4]" * 20_000 + "x", "- a.md (cwd=" + ", rollout_path=, updated_at=" * 8_000],
    ids=["marks", "fields"],
)
def test_a_line_of_any_length_is_looked_through_soon(line):
    began = time.monotonic()

    assert refused(added(line))
    assert time.monotonic() - began < 5


def test_what_is_too_large_is_not_looked_through_any_further():
    told = refused({**GOOD, "MEMORY.md": "- x\n" * 2_000_000})

    assert [each.partition(" has")[0] for each in told] == ["MEMORY.md"]
