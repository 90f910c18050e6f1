"""Upstream's scenarios of phase 2, with an agent that consolidates one folder for all projects, as
Codex does, in each version. What ours does otherwise on purpose is said in the test's name."""

import shutil
import subprocess
import sys
import time

import pytest
from msgspec.structs import replace
from threadbook.application import startup
from threadbook.domain import consolidation
from threadbook.domain.events import (
    ArtifactsPublished,
    FolderEdited,
    Phase2Failed,
    Phase2LeaseClaimed,
    Phase2Succeeded,
)

from tests.application.agents import Agent, honest
from tests.application.homes import DAY_S, HOUR_S, MOSS, Session, bytes_of, content
from tests.model_server import ModelServer
from tests.support import NOON

A = Session(number=1)
B = Session(number=2, says=("please never use tabs in this project, always spaces",), cwd=MOSS)
PAGE = "phase2_workspace_diff.md"
NOTE = "extensions/ad_hoc/notes/2026-11-29T00-00-00-mine.md"


@pytest.fixture(params=["v1", "v2"])
def empty(home, request):
    return home.reopened(scope="global", version=request.param)


@pytest.fixture
def made(empty):
    """A folder that an agent has made of both sessions, longer ago than it rests."""
    empty.write(A, B)
    run(empty, Agent())
    empty.first = content(empty.root())
    empty.quiet_at = empty.later(DAY_S / 2).position
    return empty


def run(home, agent, **limits):
    around = home.memory._around
    policy = around.policy
    limits = replace(policy.limits, **{"max_rollouts_per_startup": 64, **limits})
    around = replace(around, consolidator=agent, policy=replace(policy, limits=limits))
    with home.memory._workers.at_work(around.worker_id):
        return startup.run(around, [home.sessions], consented=True)


def listed(agent, number=-1):
    """What the page of an agent's task says of each path; `none` where it says that."""
    page = agent.tasks[number].staged[PAGE]
    status = page.partition("## Status\n")[2].partition("\n## Diff")[0]
    return [line.removeprefix("- ") for line in status.splitlines() if line]


def summary_of(home, session):
    (path,) = [
        path
        for path, text in content(home.root()).items()
        if path.startswith("rollout_summaries/") and session.id in text
    ]
    return path


def raw(home, status="M"):
    """What the page says of the raw memories, which v2 has not."""
    return [f"{status} raw_memories.md"] if home.version == "v1" else []


def clean(home):
    """Whether git itself finds the folder to be one commit without a parent, and nothing beside."""

    def git(*words):
        done = subprocess.run(
            ["git", *words], cwd=home.root(), capture_output=True, text=True, check=True
        )
        return done.stdout

    return (git("status", "--porcelain"), git("rev-list", "--count", "--all")) == ("", "1\n")


# The start.


def test_a_first_start_without_sessions_asks_nobody_and_starts_no_rest(empty):
    agent = Agent()

    first, before = run(empty, agent), empty.roots()
    empty.write(A)
    run(empty.later(60), agent)

    assert (first.phase2, before) == ([], [])
    assert empty.root().name == "global"
    assert [task.mode for task in agent.tasks] == ["init"]
    assert len(empty.events(Phase2Succeeded)) == 1


def test_a_second_start_at_once_asks_nobody_and_is_no_event(made):
    agent = Agent()

    assert run(made, agent).phase2 == []
    assert (agent.tasks, made.position) == ([], made.quiet_at)


@pytest.mark.parametrize(("hours", "asked"), [(1, 0), (3, 0), (5, 0), (5.99, 0), (6, 1)])
def test_what_is_new_waits_for_six_hours_after_a_success_to_the_second(empty, hours, asked):
    empty.write(A)
    run(empty, Agent())
    empty.write(B)
    agent = Agent()

    run(empty.later(hours * HOUR_S), agent)

    assert len(agent.tasks) == asked


def test_with_room_for_one_the_newer_takes_the_place_of_the_older_and_the_page_is_gone(empty):
    empty.write(A)
    run(empty, Agent(), max_raw_memories_for_consolidation=1)
    old = summary_of(empty, A)
    newer = replace(B, ended_at=int(empty.later(DAY_S).now) - 7 * HOUR_S)
    empty.write(newer)
    agent = Agent()

    run(empty, agent, max_raw_memories_for_consolidation=1)

    new = summary_of(empty, newer)
    assert listed(agent) == [*raw(empty), *sorted([f"D {old}", f"A {new}"], key=lambda s: s[2:])]
    assert "git_branch:" not in content(empty.root())[new]
    found = content(empty.root())
    assert not any(A.id in text for text in found.values())
    assert PAGE not in found
    assert clean(empty)


def test_old_names_of_a_summary_go_and_one_canonical_file_stays(made):
    for name in (f"{A.id}.md", summary_of(made, A).removesuffix(".md") + "-old_slug.md"):
        (made.root() / "rollout_summaries" / name.rpartition("/")[2]).write_text(f"{A.id}\n")
    (made.root() / "rollout_summaries" / "kept.txt").write_text("mine\n")

    run(made, Agent())

    found = content(made.root())
    assert found.pop("rollout_summaries/kept.txt") == "mine\n"
    assert found == made.first
    if made.version == "v1":
        (block,) = found["raw_memories.md"].split("## Thread ")[1:2]
        fields = [line.partition(":")[0] for line in block.splitlines()[1:5]]
        assert fields == ["updated_at", "cwd", "rollout_path", "rollout_summary_file"]
        assert f"rollout_summary_file: {summary_of(made, A).rpartition('/')[2]}\n" in block


# What happens to sessions.


def test_the_page_says_which_sessions_left_came_back_and_went_on(made):
    agent = Agent()
    one, other = summary_of(made, A), summary_of(made, B)

    made.memory.set_mode(A.id, "disabled")
    run(made, agent)
    made.later(DAY_S / 2).memory.set_mode(A.id, "enabled")
    run(made, agent)
    made.later(DAY_S / 2).memory.pollute(B.id, "web_search")
    run(made, agent)
    later = replace(
        A,
        says=(*A.says, "from now on always feed the kestrel"),
        ended_at=int(made.later(DAY_S / 2).now) - 7 * HOUR_S,
    )
    made.write(later)
    run(made, agent)

    assert [listed(agent, number) for number in range(4)] == [
        [*raw(made), f"D {one}"],
        [*raw(made), f"A {one}"],
        [*raw(made), f"D {other}"],
        [*raw(made), f"M {one}"],
    ]
    assert len(made.events(Phase2Succeeded)) == 5


def test_an_archived_session_stays_and_where_it_lies_now_is_news_of_the_next_consolidation(made):
    path = made.file(A)
    there = made.sessions / "archived_sessions" / path.name
    there.parent.mkdir()
    path.rename(there)
    agent = Agent()

    alone = run(made, agent).phase2
    made.memory.pollute(B.id, "web_search")
    run(made, agent)

    assert alone == []
    assert f"M {summary_of(made, A)}" in listed(agent)
    assert f"rollout_path: {there}\n" in content(made.root())[summary_of(made, A)]


def test_without_any_days_nothing_is_selected_and_forgetting_it_is_an_agents_work(made):
    gone = sorted(f"D {summary_of(made, each)}" for each in (A, B))
    agent = Agent()

    run(made, agent, max_unused_days=0)

    assert listed(agent) == [*raw(made), *gone]
    assert agent.tasks[0].outputs == ()
    found = content(made.root())
    assert not [path for path in found if path.startswith("rollout_summaries/")]
    assert "make check" not in str(found)
    if made.version == "v1":
        assert found["raw_memories.md"] == "# Raw Memories\n\nNo raw memories yet.\n"


# What a person does to the folder.


def linked(root):
    outside = root.parents[3] / "outside"
    outside.mkdir()
    (outside / "theirs.md").write_text("theirs\n")
    (root / "extensions").symlink_to(outside)


def written(path, text="mine\n"):
    def act(root):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)

    return act


def anew(task):
    """What an agent writes that takes a file's deletion for no statement about its lines."""
    return honest(replace(task, edited=()))


EDITS = {
    "a summary that is edited": (
        lambda root: (root / "memory_summary.md").open("a").write("- buy milk\n"),
        ["M memory_summary.md"],
    ),
    "a summary that is deleted": (
        lambda root: (root / "memory_summary.md").unlink(),
        ["D memory_summary.md"],
    ),
    "a note": (written(NOTE), [f"A {NOTE}"]),
    "a file beside ours": (written("stray.txt"), ["A stray.txt"]),
    "a session's file that is deleted": (
        lambda root: next((root / "rollout_summaries").glob("*.md")).unlink(),
        None,
    ),
    "a foreign file among them": (written("rollout_summaries/foreign.md"), None),
    "a link": (linked, None),
    "no baseline any more": (lambda root: shutil.rmtree(root / ".git"), None),
}


@pytest.mark.parametrize(("act", "page"), EDITS.values(), ids=EDITS.keys())
def test_what_a_person_did_is_on_the_page_or_mended_without_a_call(made, act, page):
    act(made.root())
    agent = Agent(anew if page and page[0].startswith("D ") else honest)

    run(made, agent)

    assert [listed(agent, number) for number in range(len(agent.tasks))] == ([page] if page else [])
    found = content(made.root())
    if not page:
        assert found == made.first
    elif page[0].startswith("A "):
        assert found.pop(page[0][2:]) == "mine\n"
    assert not [path for path in made.root().rglob("*") if path.is_symlink()]
    assert clean(made)
    assert run(made.later(DAY_S / 2), agent).phase2 == []
    outside = made.folder / "outside"
    assert not outside.exists() or bytes_of(outside) == {"theirs.md": b"theirs\n"}


def test_what_a_person_commits_in_the_folder_is_an_edit_all_the_same(made):
    path = made.root() / "memory_summary.md"
    path.write_text(path.read_text() + "- buy milk\n")
    for words in (["add", "--all"], ["commit", "--quiet", "--message", "mine"]):
        subprocess.run(
            ["git", "-c", "user.name=Ann", "-c", "user.email=ann@localhost", *words],
            cwd=made.root(),
            check=True,
        )
    agent = Agent()

    run(made, agent)

    assert len(made.events(FolderEdited)) == 1
    assert listed(agent) == ["M memory_summary.md"]
    assert "- buy milk\n" in path.read_text()
    assert clean(made)


def test_a_persons_own_way_to_read_notes_is_the_one_that_is_given(made):
    written("extensions/ad_hoc/instructions.md", "read them aloud\n")(made.root())
    made.memory.note("buy milk", cwd=A.cwd)
    agent = Agent()

    run(made, agent)

    assert agent.tasks[0].staged["extensions/ad_hoc/instructions.md"] == "read them aloud\n"
    found = content(made.root())["extensions/ad_hoc/instructions.md"]
    assert found == "read them aloud\n"


@pytest.mark.parametrize(
    ("given", "model"),
    [({}, "gpt-6.1-terra"), ({"consolidation_model": "a-model-of-mine"}, "a-model-of-mine")],
    ids=["default", "override"],
)
def test_the_model_of_the_settings_is_the_one_that_is_asked(empty, monkeypatch, given, model):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    empty.write(Session(number=5, says=("from now on FACT[run make check]",)))

    with ModelServer() as server:
        home = empty.reopened(model="openai", base_url=server.base_url, **given)
        (root,) = home.run(consented=True).phase2

    assert root.status == "succeeded"
    assert {each.body["model"] for each in server.asked if each.body.get("tools")} == {model}
    assert [each.consolidator for each in home.events(ArtifactsPublished)] == [model]


def test_the_page_is_made_against_what_the_log_published_last_whatever_the_baseline_says(made):
    shutil.copytree(made.root() / ".git", made.folder / "older")
    added = Session(number=3, says=("from now on always feed the kestrel",), ended_at=NOON)
    made.write(added)
    run(made, Agent())
    published = content(made.root())
    shutil.rmtree(made.root() / ".git")
    shutil.move(made.folder / "older", made.root() / ".git")
    agent = Agent()

    alone = run(made.later(DAY_S / 2), agent).phase2
    made.memory.pollute(B.id, "web_search")
    gone = summary_of(made, B)
    run(made, agent)

    assert alone == []
    assert [listed(agent, number) for number in range(len(agent.tasks))] == [
        [*raw(made), f"D {gone}"]
    ]
    assert agent.tasks[0].staged["memory_summary.md"] == published["memory_summary.md"]
    assert not made.events(FolderEdited)
    assert clean(made)


# An agent that fails.


BROKEN = {
    "nothing": lambda task: {},
    "no summary": lambda task: {
        path: text for path, text in honest(task).items() if path != "memory_summary.md"
    },
    "another first line": lambda task: {
        **honest(task),
        "memory_summary.md": honest(task)["memory_summary.md"].replace("v1", "v2", 1),
    },
}


@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN.keys())
def test_an_invalid_proposal_waits_an_hour_and_leaves_the_folder_and_a_good_one_follows(
    made, broken
):
    added = Session(number=3, says=("from now on always feed the kestrel",), ended_at=NOON)
    before = bytes_of(made.root())
    made.write(added)

    (failed,) = run(made, Agent(broken)).phase2
    job, there = made.phase2_job("global"), bytes_of(made.root())
    waits = Agent()
    run(made.later(consolidation.RETRY_DELAY_S - 1), waits)
    (done,) = run(made.later(1), Agent()).phase2

    assert failed.reason == "failed_invalid_artifacts"
    assert there == before
    assert (job.status, job.retry_remaining) == ("error", 2)
    assert job.retry_at == made.now
    assert waits.tasks == []
    assert done.status == "succeeded"
    assert "kestrel" in str(content(made.root()))


def test_what_is_read_during_the_wait_ends_it_and_the_tries_are_whole_again(made):
    made.write(Session(number=3, ended_at=NOON, says=("from now on always feed the kestrel",)))
    run(made, Agent(BROKEN["nothing"]))
    newer = int(made.later(60).now) - 7 * HOUR_S
    made.write(Session(number=4, ended_at=newer, says=("from now on always feed the heron",)))
    agent = Agent()

    (done,) = run(made, agent).phase2

    assert done.status == "succeeded"
    assert made.events(Phase2LeaseClaimed)[-1].retry_remaining == consolidation.RETRIES
    assert "heron" in str(content(made.root()))


LINKS = """
import os
from pathlib import Path
Path("extensions").rename("was") if Path("extensions").exists() else None
os.symlink({outside!r}, "extensions")
"""


@pytest.mark.parametrize("ending", ["", "raise SystemExit(1)\n"], ids=["completed", "failed"])
def test_a_link_that_an_agent_makes_fails_the_job_and_its_target_is_intact(made, tmp_path, ending):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "theirs.md").write_text("theirs\n")
    program = tmp_path / "mine"
    program.write_text(f"#!{sys.executable}\n{LINKS.format(outside=str(outside))}{ending}")
    program.chmod(0o755)
    before = bytes_of(made.root())
    made.write(Session(number=3, ended_at=NOON, says=("from now on always feed the kestrel",)))

    report = made.reopened(consolidator=(str(program),)).run()

    (failed,) = made.events(Phase2Failed)
    assert [each.status for each in report.phase2] == ["failed"]
    assert failed.reason == (
        "failed_agent:command_failed" if ending else "failed_invalid_artifacts"
    )
    assert failed.retry_at == made.now + consolidation.RETRY_DELAY_S
    assert bytes_of(made.root()) == before
    assert bytes_of(outside) == {"theirs.md": b"theirs\n"}
    assert list((made.path / "staging").iterdir()) == []


def test_resources_go_by_age_also_where_no_session_is_selected(made):
    extension = made.root() / "extensions" / "wiki"
    (extension / "resources").mkdir(parents=True)
    (extension / "instructions.md").write_text("read them\n")
    made.memory.pollute(A.id, "web_search")
    made.memory.pollute(B.id, "web_search")
    run(made, Agent())
    day = time.strftime("%Y-%m-%dT%H-%M-%S", time.gmtime(made.now))
    (extension / "resources" / f"{day}-x.md").write_text("a page\n")
    agent = Agent()

    run(made.later(DAY_S), agent)
    run(made.later(13 * DAY_S), agent)

    path = f"extensions/wiki/resources/{day}-x.md"
    assert [listed(agent, number) for number in range(2)] == [[f"A {path}"], [f"D {path}"]]
    assert agent.tasks[1].outputs == ()
    assert not (made.root() / path).exists()


def test_an_agents_publication_names_it_and_is_one_commit(made):
    assert {each.consolidator for each in made.events(ArtifactsPublished)} == {Agent.name}
    assert clean(made)
