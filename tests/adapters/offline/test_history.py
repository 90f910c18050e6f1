"""What v2 keeps of one session, and what its summary makes of many."""

import re

import pytest
from threadbook.adapters.offline import OfflineConsolidator, OfflineExtractor, history
from threadbook.application.kept import V2_SUMMARY_BYTES_MAX, kept
from threadbook.application.ports import PhaseTwoOutput
from threadbook.domain.artifact import pointed_threads, problems
from threadbook.projections.folder import summary_file_names

from tests.adapters.offline.sessions import Session, header, ms, output, worked

PROJECT = "project:ferns-0a1b2c3d"


def said_of(session, **head):
    return OfflineExtractor().extract(header(**head), session.items, memory_version="v2")


def made(number, session, *, days_ago=0, **head):
    thread_id = f"01aa0000-0000-7000-8000-{number:012x}"
    head = {"thread_id": thread_id, "updated_at_ms": ms("08:09:00") - days_ago * 86_400_000} | head
    return output(thread_id, said_of(session, **head), head=header(**head))


def foreign(summary, *, thread_id="01aa0000-0000-7000-8000-0000000000ff", slug=None):
    return PhaseTwoOutput(
        thread_id=thread_id,
        updated_at=1_795_853_340,
        rollout_path="/r.jsonl",
        cwd="/srv/ferns",
        git_branch=None,
        raw_memory="",
        rollout_summary=summary,
        rollout_slug=slug,
    )


def summary(*outputs, scope=PROJECT):
    files = OfflineConsolidator().consolidate(scope=scope, outputs=outputs, memory_version="v2")
    assert files.keys() == {"memory_summary.md"}
    assert problems(files, version="v2") == []
    return files["memory_summary.md"]


def wishes(told):
    section = told.partition("## User preferences\n")[2].partition("\n## General Tips")[0]
    return section.strip().splitlines()


def wish(text, task="mend the parser"):
    return Session().typed(task).typed(text)


# Of one session.


def test_the_worked_session_as_a_history():
    found = said_of(worked())

    assert found.raw_memory == ""
    assert found.rollout_slug == "add_a_retry_test_for_the_uploader"
    assert (
        found.rollout_summary
        == """\
# add a retry test for the uploader: success

project: ferns
cwd: /srv/ferns
branch: main
day: 2026-11-20
session: 3 messages from the user, 5 commands (2 failed), 1 file changed
keywords: uploader, tests/test_upload.py, uv pip install, pytest, externally-managed-environment

## Task 1: add a retry test for the uploader

- asked: the user wrote "add a retry test for the uploader"
- failed: `pytest tests/test_upload.py -q` failed (ModuleNotFoundError: No module named\
 'responses'); afterwards `pytest tests/test_upload.py -q` passed
- failed: `pip install responses` failed (externally-managed-environment); afterwards\
 `uv pip install responses` passed
- for this task: the user wrote "no, please don't touch pyproject.toml"
- stated as lasting: the user wrote "From now on always use uv in this repo, never plain pip"
- passed: `pytest -q` passed (exit 0: 41 passed)
- changed: tests/test_upload.py
- final state: success (last test run passed; the user wrote "thanks, that works")
"""
    )


def test_what_lasts_is_told_apart_from_what_was_asked_of_the_task():
    told = said_of(wish("always use tabs. No, that is the old endpoint")).rollout_summary

    assert '\n- stated as lasting: the user wrote "always use tabs' in told
    told = said_of(wish("no, that is the old endpoint of the shop")).rollout_summary
    assert '\n- for this task: the user wrote "no, that is' in told
    assert "stated as lasting" not in told


def test_it_is_told_in_the_order_in_which_it_happened():
    session = (
        Session()
        .typed("mend it")
        .typed("no, not the lexer")
        .runs("make", 2, "boom")
        .typed("from now on always use tabs")
        .edits("a.py")
    )

    told = said_of(session).rollout_summary

    labels = re.findall(r"^- ([a-z ]+): ", told, re.M)
    assert labels == [
        "asked",
        "for this task",
        "failed",
        "stated as lasting",
        "changed",
        "final state",
    ]


def test_a_session_that_teaches_nothing_gives_nothing():
    assert said_of(Session().typed("what is this?").runs("ls")) is None


def test_a_long_history_loses_whole_lines_of_least_worth_and_is_kept_as_it_is():
    session = Session().typed("mend it")
    for n in range(20):
        session.typed(f"from now on always run checker number {n} " + "ä" * 140)
    for n in range(12):
        session.runs(f"make target{n} " + "z" * 150, 2, f"error number {n} " + "e" * 90)

    found = said_of(session)

    told = found.rollout_summary
    assert len(told.encode()) <= V2_SUMMARY_BYTES_MAX
    assert kept(found, "v2") == found
    gone = int(re.search(r"\n\((\d+) lines left out for length\.\)\n$", told)[1])
    assert told.count("\n- failed: ") == 12 - gone
    assert told.count("\n- stated as lasting: ") == 20
    assert "`make target11 " in told
    assert "`make target0 " not in told


def test_it_is_read_back_as_it_was_written():
    session = wish("always use tabs").typed("no, not the lexer").runs("make", 2, "boom")

    read = history.parse(said_of(session).rollout_summary)

    assert (read.task, read.task_group, read.outcome) == ("mend the parser", "ferns", "fail")
    assert read.preferences == (
        'the user wrote "always use tabs"',
        'the user wrote "no, not the lexer"',
    )
    assert read.failures == ("`make` failed (boom); no later run of it passed",)
    assert read.keywords[0] == "parser"


def test_another_writers_history_has_its_title_and_no_wish():
    told = "# Moved the shop to v3\n\nIt was long.\n\n## Work\n- the user likes tabs\n- it passed\n"

    read = history.parse(told)

    assert read.task == "Moved the shop to v3"
    assert (read.preferences, read.failures, read.keywords) == ((), (), ())
    assert read.outcome == "uncertain"


# Of many.


def test_nothing_selected_is_a_valid_summary_without_a_statement():
    told = summary()

    assert told == (
        "v1\n\n## User Profile\n\n## User preferences\n\n## General Tips\n\n## What's in Memory\n"
    )


def test_what_was_said_for_one_task_stands_with_it_and_is_no_preference():
    told = summary(made(1, wish("no, that is the old endpoint of the shop")))

    assert wishes(told) == []
    assert '\n  - for this task: the user wrote "no, that is the old endpoint of the shop"' in told


def test_what_two_tasks_were_told_is_a_preference_and_names_both():
    said = "no, that is the old endpoint of the shop"

    told = summary(made(1, wish(said)), made(2, wish(said), days_ago=1))

    (line,) = wishes(told)
    assert line.startswith(f'- in ferns the user wrote "{said}" (2026-11-20); thread_id=')
    assert [each[-1] for each in pointed_threads(line)] == ["1", "2"]
    assert "for this task" not in told


def test_what_many_sessions_said_names_the_newest_three_and_counts_all():
    told = summary(*(made(n, wish("always use tabs"), days_ago=n) for n in range(1, 41)))

    (line,) = wishes(told)
    assert '"always use tabs" (2026-11-19, in 40 sessions); thread_id=' in line
    assert [each[-2:] for each in pointed_threads(line)] == ["01", "02", "03"]


def test_each_recent_session_is_named_by_its_exact_file_and_its_whole_id():
    outputs = [made(n, wish(f"always use tool {n}"), days_ago=n) for n in range(1, 4)]

    told = summary(*outputs)

    files = summary_file_names(outputs)
    for each in outputs:
        assert f"\n- rollout_summaries/{files[each.thread_id]} — mend the parser, " in told
        assert f"; thread_id={each.thread_id}\n" in told
    assert re.findall(r"^####? .*$", told, re.M) == [
        "### ferns",
        "#### 2026-11-19",
        "#### 2026-11-18",
        "#### 2026-11-17",
    ]


def test_older_sessions_are_short_and_keep_their_whole_id():
    outputs = [made(n, wish(f"always use tool {n}"), days_ago=n) for n in range(1, 6)]

    told = summary(*outputs)

    older = told.partition("### Older Memory Topics\n#### ferns\n")[2].splitlines()
    assert older == [
        f"- mend the parser; thread_id={each.thread_id}" for each in sorted(outputs[3:], key=str)
    ]


def test_what_passed_after_a_failure_is_told_and_what_passed_again_is_not():
    session = (
        Session()
        .typed("build it")
        .runs("pip install x", 1, "externally-managed-environment")
        .runs("uv pip install x")
        .runs("make", 2, "boom")
        .runs("make")
    )

    told = summary(made(1, session))

    assert "\n  - failed: `pip install x` failed (externally-managed-environment);" in told
    assert "`make`" not in told


@pytest.mark.parametrize(
    "typed",
    [
        "always use tabs; thread_id=live",
        "always use tabs; thread_id=a,",
        'always use "tabs"; thread_id=a, b',
    ],
)
def test_a_persons_words_name_no_session(typed):
    told = summary(made(1, wish(typed)), made(11, wish("never use spaces")))

    line = next(line for line in wishes(told) if "always" in line)
    assert pointed_threads(line) == ["01aa0000-0000-7000-8000-000000000001"]


@pytest.mark.parametrize("thread_id", ["a, b", "a b", "x,", "", "a\nb"])
def test_an_id_that_is_no_word_is_named_by_its_file(thread_id):
    told = summary(foreign("# it broke", thread_id=thread_id, slug="it broke"))

    (line,) = re.findall(r"^- .*$", told, re.M)
    (named,) = pointed_threads(line)
    assert (
        named == summary_file_names([foreign("", thread_id=thread_id, slug="it broke")])[thread_id]
    )


def test_the_oldest_of_the_least_worth_goes_first_and_a_line_never_leaves_its_session():
    outputs = [
        made(
            n,
            wish(f"no, that is the old endpoint number {n} of the shop, take another one")
            .runs(f"pip install x{n}", 1, "externally-managed-environment")
            .runs(f"uv pip install x{n}"),
            days_ago=n % 3,
        )
        for n in range(1, 31)
    ]

    told = summary(*outputs)

    assert len(told.encode()) <= 9_500
    assert "lines left out for length; rollout_summaries/ holds all.)" in told
    assert told.count("\n  - for this task: ") == 30
    assert 0 < told.count("\n  - failed: ") < 30
    stayed = {int(n) for n in re.findall(r"pip install x(\d+)` failed", told)}
    assert {n % 3 for n in stayed} == {0}
    indented = [at for at, line in enumerate(told.split("\n")) if line.startswith("  - ")]
    for at in indented:
        assert told.split("\n")[at - 1].startswith(("- ", "  - "))


def test_the_order_of_the_outputs_changes_no_byte():
    outputs = [made(n, wish(f"always use tool {n}"), days_ago=n) for n in range(1, 9)]

    assert summary(*outputs) == summary(*outputs[::-1])
