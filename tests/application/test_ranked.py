"""Ranked search over what a reading shows: results, their sources, and what is none of them."""

import msgspec
import pytest
from threadbook.adapters.ranking import Ranking
from threadbook.application.questions import EmptyQuery
from threadbook.application.ranked import RankedArguments, RankedSearch
from threadbook.application.reading import InvalidPath, NotFound

from tests.application.homes import thread_id
from tests.application.test_tools import reading

A, B = thread_id(1), thread_id(2)
DAY = "updated_at=2026-11-29T00:00:00+00:00"
FILES = {
    "MEMORY.md": f"""# Task Group: fern
scope: work in /srv/fern
applies_to: cwd=/srv/fern; reuse_rule=this project only

## Task 1: Mend the build, success

### rollout_summary_files
- rollout_summaries/2026-11-29T00-00-00-aaaa-build.md (cwd=/, rollout_path=/x, {DAY})

### keywords
- esbuild, bundle

## Task 2: Speed up the tests, success

### rollout_summary_files
- rollout_summaries/2026-11-29T00-00-00-bbbb.md (cwd=/, rollout_path=/y, {DAY})

### keywords
- xdist

## User preferences
- the user wrote "From now on always run make lint before you commit" [Task 1][Task 2]
[1 statement withheld]
""",
    "memory_summary.md": "v1\n\n## User preferences\n"
    '- in fern the user wrote "From now on always run make lint before you commit" [Task 1]\n',
    "raw_memories.md": "# Raw Memories\n\nalways run make lint before you commit\n",
    "rollout_summaries/2026-11-29T00-00-00-aaaa-build.md": f"thread_id: {A}\ncwd: /srv/fern\n\n"
    '# Mend the build\n\n- the user wrote "From now on always run make lint before you commit"\n'
    "- the bundler wants a newer node\n",
    "rollout_summaries/2026-11-29T00-00-00-bbbb.md": f"thread_id: {B}\n\n- pytest -n auto\n",
    "extensions/ad_hoc/notes/2026-11-29T00-00-00-hint.md": "ask Ann about the tunnel",
}


def asked(query, texts=FILES, search=None, **more):
    search = search or RankedSearch(Ranking)
    arguments = RankedArguments(query=query, **more)
    return msgspec.to_builtins(search.search(reading(texts), arguments))


def places(answer):
    return [(each["path"], each["start_line_number"]) for each in answer["results"]]


def test_a_statement_that_stands_in_several_files_is_one_result_with_all_its_sessions():
    (best,) = asked("lint before commit")["results"]

    assert (best["path"], best["start_line_number"], best["end_line_number"]) == (
        "MEMORY.md",
        22,
        22,
    )
    assert best["content"].startswith("- the user wrote")
    assert best["headings"] == "Task Group: fern / User preferences"
    assert best["threads"] == [A, B]
    assert best["score"] > 0
    assert {each["path"] for each in best["also"]} == {
        "memory_summary.md",
        "rollout_summaries/2026-11-29T00-00-00-aaaa-build.md",
    }


@pytest.mark.parametrize(
    ("query", "path", "threads"),
    [
        ("newer node for the bundler", "rollout_summaries/2026-11-29T00-00-00-aaaa-build.md", [A]),
        ("esbuild", "MEMORY.md", [A]),
        ("xdist", "MEMORY.md", [B]),
        ("Ann tunnel", "extensions/ad_hoc/notes/2026-11-29T00-00-00-hint.md", []),
    ],
)
def test_a_result_names_the_sessions_it_comes_from_as_far_as_the_files_say_it(query, path, threads):
    best = asked(query)["results"][0]

    assert (best["path"], best["threads"]) == (path, threads)


def test_what_is_withheld_is_no_result():
    assert asked("statement withheld")["results"] == []


def test_raw_memories_are_searched_by_whoever_names_them():
    assert "raw_memories.md" not in [path for path, _ in places(asked("lint commit"))]
    assert places(asked("lint commit", path="raw_memories.md")) == [("raw_memories.md", 3)]


def test_a_folder_or_a_file_narrows_the_search():
    assert {path for path, _ in places(asked("pytest lint", path="rollout_summaries"))} == {
        "rollout_summaries/2026-11-29T00-00-00-aaaa-build.md",
        "rollout_summaries/2026-11-29T00-00-00-bbbb.md",
    }
    with pytest.raises(NotFound):
        asked("lint", path=".git")
    with pytest.raises(InvalidPath):
        asked("lint", path="../x")


@pytest.mark.parametrize("query", ["", "  ", "--", "…"])
def test_a_question_without_a_word_is_an_error(query):
    with pytest.raises(EmptyQuery, match="query"):
        asked(query)


@pytest.mark.parametrize(("most", "given"), [(None, 10), (0, 1), (3, 3), (10**30, 50)])
def test_results_are_clamped(most, given):
    texts = {"a.md": "".join(f"- lint number {number:04} of eighty\n" for number in range(80))}

    assert len(asked("lint", texts, max_results=most)["results"]) == given


def test_a_huge_passage_is_shown_cut():
    (only,) = asked("lint", {"a.md": "lint " + "x" * 900_000})["results"]

    assert len(only["content"]) < 2_100
    assert "tokens truncated" in only["content"]


def test_the_index_is_made_again_when_a_text_has_changed_and_only_then():
    built = []

    def build(passages):
        built.append(1)
        return Ranking(passages)

    search = RankedSearch(build)

    for _ in range(2):
        asked("lint", {"a.md": "lint"}, search)
    assert len(built) == 1
    assert places(asked("lint", {"a.md": "x", "b.md": "lint"}, search)) == [("b.md", 1)]
    assert asked("lint", {"a.md": "x"}, search)["results"] == []
    assert len(built) == 3


V2 = {
    "memory_summary.md": f"""v1

## User Profile

## User preferences
- in fern the user wrote "From now on always run make lint before you commit"; thread_id={A}, {B}

## General Tips

## What's in Memory
### fern
#### 2026-11-29
- rollout_summaries/2026-11-29T00-00-00-aaaa-build.md — Mend the build: esbuild; thread_id={A}
  - failed: `pip install bundle` failed (no such wheel); afterwards `uv add bundle` passed
- speed up: xdist; thread_id=2026-11-29T00-00-00-bbbb.md
""",
    "rollout_summaries/2026-11-29T00-00-00-aaaa-build.md": f"thread_id: {A}\n\n# Mend it\n",
    "rollout_summaries/2026-11-29T00-00-00-bbbb.md": f"thread_id: {B}\n\n# Speed it up\n",
}


@pytest.mark.parametrize(
    ("query", "threads"),
    [("lint commit", [A, B]), ("esbuild", [A]), ("wheel", [A]), ("xdist", [B])],
)
def test_a_statement_of_v2_comes_from_the_sessions_that_it_or_its_parent_ends_with(query, threads):
    best = asked(query, V2)["results"][0]

    assert best["threads"] == threads


WISH = 'the user wrote "never use tabs in this project, always spaces"'
TOLD = "`make check` in the folder of the greeter"


def test_what_a_history_of_v2_labels_and_the_summary_of_all_repeats_is_one_result():
    files = {
        "memory_summary.md": f"v1\n\n## User preferences\n- in fern {WISH} (2026-11-29);"
        f" thread_id={A}, {B}\n",
        "rollout_summaries/2026-11-29T00-00-00-aaaa-tabs.md": f"thread_id: {A}\n\n# Indent it\n\n"
        f"- asked: {WISH}\n- stated as lasting: {WISH}\n- failed: {TOLD}\n- passed: {TOLD}\n",
    }

    wish, *others = asked("tabs spaces", files)["results"]
    runs = asked("check greeter", files)["results"][:2]

    assert wish["path"].startswith("rollout_summaries/")
    assert wish["threads"] == [A, B]
    assert "memory_summary.md" in {each["path"] for each in wish["also"]}
    assert not any(WISH in each["content"] for each in others)
    assert sorted(each["content"] for each in runs) == [f"- failed: {TOLD}", f"- passed: {TOLD}"]
