"""Whatever a person makes of a published file, an agent can still consolidate: no edit asks of it
what cannot be, which would fail, and cost, at each run from then on."""

import pytest
from threadbook.application.ports import ConsolidationFailed
from threadbook.domain.events import FolderEdited

from tests.application.agents import Agent, honest
from tests.application.homes import DAY_S, HOUR_S, NOON, Session, content

A = Session(number=1)
B = Session(number=2, says=("please never use tabs in this project, always spaces",))
C = Session(number=3, says=("from now on always feed the kestrel",), ended_at=NOON + HOUR_S)

BLOCK = """
# Task Group: mine
scope: mine
applies_to: cwd=/x; reuse_rule=all

## Task 99: tea, success

### rollout_summary_files
- nowhere.md (cwd=/x, rollout_path=/y, updated_at=2026)

### keywords
- tea

## Reusable knowledge
- I like tea [Task 99]
"""
EDITS = {
    "a mark in front": ("memory_summary.md", lambda text: f"\ufeff{text}", None),
    "line ends": ("memory_summary.md", lambda text: text.replace("\n", "\r\n"), None),
    "no first line": ("memory_summary.md", lambda text: text.removeprefix("v1\n"), None),
    "no heading": ("memory_summary.md", lambda text: text.replace("## General Tips\n", ""), None),
    "a heading twice": (
        "memory_summary.md",
        lambda text: f"{text}## User Profile\n- tall\n",
        "tall",
    ),
    "above it": ("memory_summary.md", lambda text: f"my own\n{text}", "my own"),
    "anew": ("memory_summary.md", lambda _: "my own\n- mine\n", "- mine"),
    "emptied": ("memory_summary.md", lambda _: "", None),
    "a block": ("MEMORY.md", lambda text: f"{text}{BLOCK}", "I like tea"),
}


@pytest.fixture(params=["v1", "v2"])
def made(home, request):
    home.reopened(version=request.param).write(A, B)
    home.run_with(consolidator=Agent())
    return home.later(DAY_S)


@pytest.mark.parametrize(("path", "edit", "line"), EDITS.values(), ids=EDITS.keys())
def test_an_edit_of_any_kind_is_kept_and_costs_one_round(made, path, edit, line):
    if path == "MEMORY.md" and made.version == "v2":
        pytest.skip("v2 has no such file")
    file = made.root() / path
    file.write_bytes(edit(file.read_text()).encode())
    made.write(C)
    agent = Agent()

    (root,) = made.run_with(consolidator=agent).phase2

    assert (root.status, len(agent.tasks)) == ("succeeded", 1)
    assert root.edits == [path]
    assert len(made.events(FolderEdited)) == 1
    there = content(made.root())
    assert line is None or line in there[path]
    assert there["memory_summary.md"].startswith("v1\n")
    assert made.memory.replay_verify() == []


def test_an_edit_that_leaves_no_room_is_laid_aside_and_told(made):
    file = made.root() / "memory_summary.md"
    file.write_text(file.read_text() + "- mine, and much of it\n" * 300)
    made.write(C)
    agent = Agent()

    (root,) = made.run_with(consolidator=agent).phase2

    assert (root.status, len(agent.tasks)) == ("succeeded", 1)
    assert "much of it" not in agent.tasks[0].staged["memory_summary.md"]
    told, copy = root.edits
    assert told == "memory_summary.md"
    assert copy.endswith("memory_summary.md")
    with open(copy) as kept:
        assert kept.read().count("much of it") == 300
    assert made.memory.replay_verify() == []


def test_a_file_that_lay_there_before_the_first_publication_is_laid_aside(home):
    home.write(A, B)

    def fails(task):
        raise ConsolidationFailed("failed_agent")

    home.run_with(consolidator=Agent(fails))
    root = home.root(home.scope_of(A))
    root.mkdir(parents=True, exist_ok=True)
    (root / "MEMORY.md").write_text("# mine\n")
    (root / "memory_summary.md").write_text("mine\n")

    (report,) = home.later(DAY_S).run_with(consolidator=Agent(honest)).phase2

    assert report.status == "succeeded"
    assert [each.rpartition("-")[2] for each in report.edits] == ["MEMORY.md", "memory_summary.md"]
    assert content(root)["memory_summary.md"].startswith("v1\n")


def test_a_folder_in_a_files_place_is_laid_aside(made):
    file = made.root() / "memory_summary.md"
    file.unlink()
    file.mkdir()
    (file / "mine.md").write_text("my own\n")
    made.write(C)
    agent = Agent()

    (root,) = made.run_with(consolidator=agent).phase2

    assert (root.status, len(agent.tasks)) == ("succeeded", 1)
    assert "memory_summary.md/mine.md" not in agent.tasks[0].staged
    assert file.read_text().startswith("v1\n")
    assert [kept.read_text() for kept in made.path.rglob("*.edits/*/mine.md")] == ["my own\n"]


SKILL = "skills/check/SKILL.md"


def skilled(task):
    """It has a skill in the form that is asked for, with what a person has in it."""
    source = next(path for path in task.staged if path.startswith("rollout_summaries/"))
    mine = task.staged.get(SKILL, "---\nname: check\ndescription: how\n---\n\nRun it.\n")
    if not mine.startswith("---"):
        mine = f"---\nname: check\ndescription: another way\n---\n{mine}"
    if source not in mine:
        mine += f"\n## Sources\n- {source}\n"
    return {**honest(task), SKILL: mine}


@pytest.fixture
def with_skill(home):
    home.write(A, B)
    home.run_with(consolidator=Agent(skilled))
    home.later(DAY_S).write(C)
    (home.root() / SKILL).write_text("my own way\n")
    return home


def test_a_skill_that_a_person_wrote_anew_gets_its_form_and_its_sources_back(with_skill):
    agent = Agent(skilled)

    (root,) = with_skill.run_with(consolidator=agent).phase2

    assert (root.status, len(agent.tasks)) == ("succeeded", 1)
    text = content(with_skill.root())[SKILL]
    assert "my own way" in text
    assert "## Sources\n- rollout_summaries/" in text


def test_a_skill_that_a_person_changed_and_that_nobody_writes_any_more_is_laid_aside(with_skill):
    (root,) = with_skill.run().phase2

    assert root.status == "succeeded"
    assert SKILL not in content(with_skill.root())
    (copy,) = with_skill.path.rglob("*.edits/*SKILL.md")
    assert copy.read_text() == "my own way\n"
    assert str(copy) in root.edits
