"""An agent consolidates: it works on a copy, is watched, and what it proposes is looked through."""

import _thread
import os
import time
from itertools import pairwise

import pytest
from msgspec.structs import replace
from threadbook.application import startup
from threadbook.application.asking import HEARTBEAT_S
from threadbook.application.ports import ConsolidationFailed
from threadbook.application.surroundings import Provider
from threadbook.domain.events import (
    ArtifactsPublished,
    FolderEdited,
    Phase2Failed,
    Phase2LeaseClaimed,
    Phase2LeaseReleased,
    Phase2LeaseRenewed,
    Phase2Succeeded,
)

from tests.application.agents import COST, Agent, honest, until_told, with_line
from tests.application.homes import DAY_S, HOUR_S, NOON, Session, bytes_of, content

A = Session(number=1)
B = Session(number=2, says=("please never use tabs in this project, always spaces",))
C = Session(number=3, says=("from now on always feed the kestrel",), ended_at=NOON + HOUR_S)
PAID = Provider(base_url="http://127.0.0.1", extract_model="m", consolidation_model="m")


def run(home, agent, *, consolidate=False, **policy):
    around = home.memory._around
    around = replace(
        around,
        consolidator=agent,
        policy=replace(
            around.policy,
            limits=replace(around.policy.limits, max_rollouts_per_startup=64),
            **policy,
        ),
    )
    with home.memory._workers.at_work(around.worker_id):
        return startup.run(around, [home.sessions], consolidate=consolidate, consented=True)


@pytest.fixture
def made(home):
    """A folder that an agent has made, a day ago."""
    home.write(A, B)
    home.agent = Agent()
    run(home, home.agent)
    home.first = content(home.root())
    return home.later(DAY_S)


def test_what_an_agent_proposes_is_published_with_what_it_cost_and_called(home):
    home.write(A, B)
    agent = Agent()

    (root,) = run(home, agent).phase2

    (published,) = home.events(ArtifactsPublished)
    assert root.status == "succeeded"
    assert (published.consolidator, published.prompt_digest) == ("gpt-6.1-terra", "d1")
    assert (published.tokens, published.tool_calls) == (COST, {"read": 2, "write": 1})
    (recorded,) = [each for each in home.log() if each.event == published]
    assert recorded.actor == "model:gpt-6.1-terra"
    assert content(home.root())["MEMORY.md"] == honest(agent.tasks[0])["MEMORY.md"]
    assert home.memory.replay_verify() == []
    assert run(home, agent).phase2 == []
    assert len(agent.tasks) == 1


def test_it_is_given_texts_and_a_page_of_changes_and_nothing_in_the_folder_moves(made):
    made.write(C)
    seen = {}

    def looks(task):
        seen["folder"] = content(made.root())
        return honest(task)

    agent = Agent(looks)
    run(made, agent)

    (task,) = agent.tasks
    assert made.agent.tasks[0].mode == "init"
    assert task.mode == "incremental"
    assert seen["folder"] == made.first
    assert task.staged["MEMORY.md"] == made.first["MEMORY.md"]
    assert "kestrel" in task.staged["raw_memories.md"]
    page = task.staged["phase2_workspace_diff.md"]
    (new,) = [path for path in task.staged if path not in made.first and "summaries" in path]
    assert f"## Status\n- M raw_memories.md\n- A {new}\n\n## Diff\n" in page
    assert "+from now on always feed the kestrel" in page or "kestrel" in page
    assert "kestrel" in content(made.root())["MEMORY.md"]


def test_a_note_is_staged_with_how_to_read_it(made):
    made.memory.note("buy milk", cwd=A.cwd)

    agent = Agent()
    run(made, agent)

    (note,) = [path for path in agent.tasks[0].staged if "/notes/" in path]
    assert agent.tasks[0].staged[note] == "buy milk"
    assert agent.tasks[0].staged["extensions/ad_hoc/instructions.md"]
    assert f"- A {note}" in agent.tasks[0].staged["phase2_workspace_diff.md"]


def test_nothing_new_costs_no_call_whatever_was_used_or_read_again(made):
    position = made.position

    assert run(made, made.agent).phase2 == []
    made.memory.replay_verify()

    assert len(made.agent.tasks) == 1
    assert made.position == position


def anew(task):
    return honest(replace(task, refused=()))


def test_what_is_refused_is_told_and_mended(made):
    made.write(C)
    agent = Agent(with_line("MEMORY.md", "- nobody said so"), anew)

    (root,) = run(made, agent).phase2

    first, second = agent.tasks
    assert first.refused == ()
    (told,) = second.refused
    assert told.startswith("MEMORY.md:")
    assert "- nobody said so" in second.staged["MEMORY.md"]
    assert root.status == "succeeded"
    assert "nobody" not in content(made.root())["MEMORY.md"]
    assert made.events(ArtifactsPublished)[-1].tokens.calls == 2 * COST.calls


def test_after_two_repairs_it_has_failed_and_the_folder_is_byte_for_byte(made):
    made.write(C)
    before = bytes_of(made.root())
    agent = Agent(with_line("MEMORY.md", "- nobody said so"))

    (root,) = run(made, agent).phase2

    (failed,) = made.events(Phase2Failed)
    assert len(agent.tasks) == 3
    assert (root.status, root.reason) == ("failed", "failed_invalid_artifacts")
    assert root.advice.startswith(agent.tasks[1].refused[0])
    assert (failed.tokens.calls, failed.retry_at) == (3 * COST.calls, int(made.now) + HOUR_S)
    assert bytes_of(made.root()) == before
    assert "failed_invalid_artifacts" in " ".join(made.memory.status()["stuck"])
    assert [path.name for path in made.path.rglob("*phase2_workspace_diff*")] == []


def test_a_person_is_told_the_first_of_many_that_were_refused_and_how_many_more(made):
    made.write(C)
    lines = "\n".join(["- " + "a " * 300, *["- nobody"] * 8])
    agent = Agent(lambda task: with_line("MEMORY.md", lines)(replace(task, refused=())))

    (root,) = run(made, agent).phase2

    *first, more = root.advice.split("\n")
    assert len(first) == 5
    assert all(len(each) <= 301 for each in first)
    assert int(more.split()[1]) >= len(agent.tasks[1].refused) - 5 > 0


def failing(**how):
    def act(task):
        raise ConsolidationFailed("failed_agent", tokens=COST, **how)

    return act


def test_a_server_that_says_when_is_asked_again_then(made):
    made.write(C)

    run(made, Agent(failing(retry_after_s=7)))

    assert made.events(Phase2Failed)[-1].retry_at == int(made.now) + 7
    made.later(8)
    assert run(made, Agent()).phase2[0].status == "succeeded"


def test_a_failure_that_stops_asks_for_no_other_folder(home):
    home.write(replace(A, cwd="/home/ann/one"), replace(B, cwd="/home/ann/two"))
    agent = Agent(failing(stops=True))

    report = run(home, agent)

    assert len(agent.tasks) == 1
    assert [root.status for root in report.phase2] == ["failed"]


# The lease.


def test_the_lease_is_renewed_every_90_seconds_while_an_agent_works(made):
    made.write(C)

    def slow(task):
        for beat in range(1, 4):
            made.later(HEARTBEAT_S)
            wait_for(lambda beat=beat: len(made.events(Phase2LeaseRenewed)) == beat)
        return honest(task)

    (root,) = run(made, Agent(slow)).phase2

    assert root.status == "succeeded"
    renewed = made.events(Phase2LeaseRenewed)
    assert [each.lease_until - each.at for each in renewed] == [3600] * 3
    assert [late.at - soon.at for soon, late in pairwise(renewed)] == [90] * 2


def wait_for(holds, seconds=20):
    until = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < until, "it has not come"
        time.sleep(0.01)


def test_an_agent_whose_lease_is_lost_is_ended_at_once_and_publishes_nothing(made):
    made.write(C)
    ended = []

    def overtaken(task):
        with made.another() as other:
            other.forget(A.id)
        try:
            until_told(task)
        finally:
            ended.append(time.monotonic())

    agent = Agent(overtaken, honest)
    began = time.monotonic()
    (root,) = run(made, agent).phase2

    assert ended[0] - began < 10
    assert root.status == "succeeded"
    assert A.id not in [each.thread_id for each in agent.tasks[1].outputs]
    assert "make check" not in str(content(made.root()))
    assert made.memory.replay_verify() == []


def test_a_run_that_is_stopped_ends_its_agent_and_gives_the_lease_back_with_what_it_cost(made):
    made.write(C)
    before = bytes_of(made.root())

    def stopped(task):
        _thread.interrupt_main()
        until_told(task)

    with pytest.raises(KeyboardInterrupt):
        run(made, Agent(stopped))

    (released,) = made.events(Phase2LeaseReleased)
    assert (released.reason, released.tokens) == ("stopped", COST)
    assert bytes_of(made.root()) == before
    assert run(made, Agent()).phase2[0].status == "succeeded"


# A person's hand.


def edit(home, old, new, path="MEMORY.md"):
    file = home.root() / path
    file.write_text(file.read_text().replace(old, new))


def test_an_edit_is_staged_named_and_kept(made):
    mine = made.first["MEMORY.md"] + "- my own line\n"
    (made.root() / "MEMORY.md").write_text(mine)
    agent = Agent()

    (root,) = run(made, agent).phase2

    (task,) = agent.tasks
    assert task.edited == ("MEMORY.md",)
    assert task.staged["MEMORY.md"] == mine
    assert "+- my own line" in task.staged["phase2_workspace_diff.md"]
    assert content(made.root())["MEMORY.md"] == mine
    assert root.edits == ["MEMORY.md"]
    assert len(made.events(FolderEdited)) == 1
    position = made.position
    assert run(made.later(DAY_S), agent).phase2 == []
    assert made.position == position


@pytest.mark.parametrize("later", [False, True])
def test_an_agent_may_not_drop_what_a_person_wrote_nor_bring_back_what_they_took_out(made, later):
    edit(made, '- the user wrote "please never use tabs', '- mine, and "please never use tabs')
    if later:
        run(made, Agent())
        made.later(DAY_S).write(C)

    agent = Agent(lambda task: honest(replace(task, edited=(), refused=())))
    (root,) = run(made, agent).phase2

    told = " ".join(agent.tasks[1].refused)
    assert root.reason == "failed_invalid_artifacts"
    assert "put it back word for word" in told
    assert "a person has taken out" in told


def test_a_person_who_goes_on_while_an_agent_works_is_heard(made):
    made.write(C)

    def meanwhile(task):
        edit(made, "# Task Group: ", "- written meanwhile\n# Task Group: ")
        return honest(task)

    agent = Agent(meanwhile, honest)
    (root,) = run(made, agent).phase2

    assert [each.reason for each in made.events(Phase2LeaseReleased)] == ["folder_edited"]
    assert made.events(Phase2LeaseReleased)[0].tokens == COST
    assert agent.tasks[1].edited == ("MEMORY.md",)
    assert root.status == "succeeded"
    assert "- written meanwhile\n" in content(made.root())["MEMORY.md"]
    assert "kestrel" in content(made.root())["MEMORY.md"]


@pytest.mark.parametrize("what", [b"\xff\x00", b"x" * (1 << 20) + b"\n"], ids=["bytes", "large"])
def test_an_edit_that_is_no_text_or_too_large_is_laid_aside_and_told(made, what):
    (made.root() / "MEMORY.md").write_bytes(what)

    (root,) = run(made, Agent()).phase2

    (kept,) = root.edits
    with open(kept, "rb") as file:
        assert file.read() == what
    assert content(made.root()) == made.first


def test_a_persons_own_file_is_shown_and_stays_theirs(made):
    stray = made.root() / "skills" / "mine" / "SKILL.md"
    stray.parent.mkdir(parents=True)
    stray.write_text("what I do by hand\n")

    def overwrites(task):
        return {**honest(task), "skills/mine/SKILL.md": "better\n"}

    agent = Agent(overwrites)
    (root,) = run(made, agent).phase2

    assert agent.tasks[0].staged["skills/mine/SKILL.md"] == "what I do by hand\n"
    assert root.status == "succeeded"
    assert stray.read_text() == "what I do by hand\n"


def test_a_secret_in_a_persons_own_file_is_given_to_nobody_new_or_long_known(made):
    secret = "ghp_a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    (made.root() / "own.md").write_text(f"my token is {secret}\n")
    made.write(C)
    agent = Agent()

    run(made, agent)
    made.later(DAY_S).write(Session(number=4, says=("from now on use ruff",), ended_at=C.ended_at))
    run(made, agent)

    assert ["own.md" in task.staged for task in agent.tasks] == [True, True]
    assert not any(secret in text for task in agent.tasks for text in task.staged.values())
    assert "own.md" not in agent.tasks[1].staged["phase2_workspace_diff.md"]
    assert secret in (made.root() / "own.md").read_text()


def test_inputs_that_an_agent_changes_or_deletes_are_as_they_were(made):
    made.write(C)

    def spoils(task):
        files = honest(task)
        return {
            path: "spoiled\n" if path == "raw_memories.md" else text
            for path, text in files.items()
            if not path.startswith("rollout_summaries/")
        }

    (root,) = run(made, Agent(spoils)).phase2

    assert root.status == "succeeded"
    assert "spoiled" not in str(content(made.root()))
    assert len([path for path in content(made.root()) if "summaries/" in path]) == 3


# What it costs and how often.


def test_a_folder_rests_six_hours_unless_a_person_asks(made):
    made.write(C)
    run(made, Agent())
    grown = Session(number=4, says=("always sing song 4",), ended_at=int(made.now) - 7 * HOUR_S)
    made.write(grown)
    agent = Agent()

    report = run(made.later(5 * HOUR_S), agent)

    assert (agent.tasks, report.waiting) == ([], {"cooldown": 1})
    (root,) = run(made, agent, consolidate=True).phase2
    assert root.status == "succeeded"
    assert made.events(Phase2LeaseClaimed)[-1].cooldown_waived == "person"


def test_a_run_consolidates_the_most_changed_folders_and_says_how_many_wait(home):
    for number in range(1, 6):
        cwd = f"/home/ann/p{number}"
        for each in range(number):
            says = (f"always sing {each}",)
            home.write(replace(A, number=10 * number + each, cwd=cwd, says=says))
    agent = Agent()

    report = run(home, agent, provider=PAID, max_roots_per_run=2)

    assert [len(task.outputs) for task in agent.tasks] == [5, 4]
    assert report.waiting == {"max_roots_per_run": 3}
    report = run(home, agent, provider=PAID, max_roots_per_run=2)
    assert [len(task.outputs) for task in agent.tasks[2:]] == [3, 2]
    assert report.waiting == {"max_roots_per_run": 1}


def test_ten_folders_that_need_nothing_take_no_ones_turn(home):
    for number in range(1, 6):
        home.write(replace(A, number=number, cwd=f"/home/ann/p{number}"))
    run(home, Agent(), provider=PAID, max_roots_per_run=9)
    home.later(DAY_S).write(replace(A, number=9, cwd="/home/ann/p5", ended_at=NOON + 1))
    agent = Agent()

    report = run(home, agent, provider=PAID, max_roots_per_run=1)

    assert len(agent.tasks) == 1
    assert report.waiting == {}


def test_resources_of_extensions_go_after_14_days(made):
    extension = made.root() / "extensions" / "wiki"
    (extension / "resources" / "deep").mkdir(parents=True)
    (extension / "instructions.md").write_text("read them\n")
    other = made.root() / "extensions" / "bare" / "resources"
    other.mkdir(parents=True)
    now = time.gmtime(made.now - 13.9 * DAY_S), time.gmtime(made.now - 14.1 * DAY_S)
    young, old = (f"{time.strftime('%Y-%m-%dT%H-%M-%S', each)}-x.md" for each in now)
    for folder in (extension / "resources", extension / "resources" / "deep", other):
        for name in (young, old, old.replace(".md", ".txt"), "plain.md"):
            (folder / name).write_text(f"{name}\n")
    agent = Agent()

    run(made, agent)

    gone = f"extensions/wiki/resources/{old}"
    assert gone not in agent.tasks[0].staged
    left = [path for path in content(made.root()) if old in path]
    assert left == [f"extensions/bare/resources/{old}", f"extensions/wiki/resources/deep/{old}"]
    assert f"extensions/wiki/resources/{young}" in agent.tasks[0].staged
    run(made.later(DAY_S), agent)
    assert (
        f"- D extensions/wiki/resources/{young}"
        in agent.tasks[1].staged["phase2_workspace_diff.md"]
    )


def test_an_old_resource_whose_name_is_none_of_ours_stays_and_stops_nothing(made):
    extension = made.root() / "extensions" / "wiki"
    (extension / "resources").mkdir(parents=True)
    (extension / "instructions.md").write_text("read them\n")
    stamp = time.strftime("%Y-%m-%dT%H-%M-%S", time.gmtime(made.now - 20 * DAY_S))
    old = extension / "resources" / f"{stamp}-about: this.md"
    old.write_text("old\n")

    report = run(made, Agent())

    assert [root.status for root in report.phase2] == ["succeeded"]
    assert old.exists()


def test_a_forgetting_writes_what_is_left_without_a_model(made):
    edit(made, "# Task Group: ", "- buy milk\n# Task Group: ")
    run(made, Agent())

    made.memory.forget(A.id)

    assert "make check" not in str(content(made.root()))
    assert "- buy milk\n" in content(made.root())["MEMORY.md"]
    assert made.events(ArtifactsPublished)[-1].consolidator == "forget"
    agent = Agent()
    assert run(made.later(DAY_S), agent).phase2[0].status in (
        "succeeded",
        "succeeded_no_workspace_changes",
    )
    assert made.memory.replay_verify() == []


def test_more_than_half_may_not_go_while_its_sources_are_there(home):
    says = [f"from now on always sing song {each} {'la' * each} aloud" for each in range(1, 9)]
    home.write(Session(number=1, says=tuple(says)))
    run(home, Agent())
    before = content(home.root())
    home.later(DAY_S).write(C)

    def destroys(task):
        files = honest(task)
        for path in ("MEMORY.md", "memory_summary.md"):
            lines = files[path].split("\n")
            kept = (line for line in lines if "sing song" not in line or "#" in line)
            files[path] = "\n".join(kept)
        return files

    agent = Agent(destroys)
    (root,) = run(home, agent).phase2

    assert root.reason == "failed_invalid_artifacts"
    assert "may remove no more than half" in agent.tasks[1].refused[0]
    assert content(home.root()) == before


def test_v2_is_proposed_as_one_file(home):
    home.reopened(version="v2")
    home.write(A, B)
    agent = Agent()

    (root,) = run(home, agent).phase2

    assert (root.status, root.version) == ("succeeded", "v2")
    assert "raw_memories.md" not in agent.tasks[0].staged
    assert not (home.root() / "MEMORY.md").exists()
    assert home.memory.replay_verify() == []


def test_succeeded_runs_leave_no_trace_of_staging(made):
    made.write(C)

    run(made, Agent())

    assert not [name for _, _, names in os.walk(made.path) for name in names if "diff" in name]
    assert len(made.events(Phase2Succeeded)) == 2
