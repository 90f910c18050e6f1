"""The fixture rollouts, from files to a memory folder: what is in, what is out, and why."""

import json

import pytest
from threadbook.domain.events import Phase2Succeeded, Stage1Succeeded, Stage1SucceededNoOutput
from threadbook.projections.folder import inputs

from tests.application.homes import (
    DAY_S,
    FIXTURES,
    HALF_A_DAY_LATER,
    ROLLOUTS,
    Home,
    content,
    used,
)

EXTRA = FIXTURES / "rollouts-extra"
OFTEN = ["not_forgotten", "memory_mode", "source_kind", "human_message"]
WITHOUT_OUTPUT = [*OFTEN, "archived", "age", "idle"]
WITH_OUTPUT = [*OFTEN, "live_output", "recent", "rank"]

# Only these teach: a patch that was applied, and a command that failed. The others hold passing
# commands, questions, thanks, and failures of the machine.
TEACHES = {"patch", "error"}
OTHERS = {
    "http500": "nothing",
    "interrupted": "nothing",
    "longout": "nothing",
    "mcp": "nothing",
    "overflow": "nothing",
    "resume": "nothing",
    "secrets": "nothing",
    "skill": "nothing",
    "tools": "nothing",
    "trivial": "nothing",
    "tui": "nothing",
    "unicode": "nothing",
    "exec": "source_kind",
}


def id_of(name: str, folder=ROLLOUTS) -> str:
    with (folder / f"{name}.jsonl").open() as file:
        for line in file:
            record = json.loads(line)
            if record.get("type") == "session_meta":
                return record["payload"]["id"]
    raise AssertionError(name)


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """One run over the fixtures, for the tests that only look at it."""
    home = Home(tmp_path_factory.mktemp("ran"), now=HALF_A_DAY_LATER)
    home.report = home.run([ROLLOUTS])
    yield home
    home.memory.close()


def own_home(tmp_path):
    home = Home(tmp_path, now=HALF_A_DAY_LATER)
    home.run([ROLLOUTS])
    return home


def test_the_run_ends_well(ran):
    report = ran.report

    assert report.sessions == report.ingested == 15
    assert (report.stage1.claimed, report.stage1.succeeded, report.stage1.no_output) == (14, 2, 12)
    assert (report.stage1.failed, report.unreadable, report.waiting) == (0, [], {})
    assert [root.status for root in report.phase2] == ["succeeded"]
    assert not report.all_failed


def test_the_folder_holds_what_the_two_sessions_taught(ran):
    files = content(ran.root())

    assert set(files) == set(ran.report.phase2[0].added)
    assert sum(path.startswith("rollout_summaries/") for path in files) == 2
    assert "changelog" in files["MEMORY.md"].lower()
    assert "ship.sh" in files["MEMORY.md"]
    assert files["memory_summary.md"].startswith("v1\n")


def test_a_second_run_stores_nothing_at_all(tmp_path):
    home = own_home(tmp_path)
    before, folder = home.position, content(home.root())

    report = home.later(60).run([ROLLOUTS])

    assert home.position == before
    assert content(home.root()) == folder
    assert (report.ingested, report.stage1.claimed, report.phase2) == (0, 0, [])


def test_the_log_and_the_tables_agree_with_each_other(ran):
    found = ran.memory.verify()

    assert found.ok
    assert found.positions == ()
    assert ran.memory.replay_verify() == []


def test_every_event_names_its_run_and_who_acted(ran):
    later = ran.log(after=1)

    assert {each.run_id for each in later} == {ran.report.run_id}
    assert {each.actor for each in later} == {"pipeline", "model:offline"}
    assert {each.type for each in later if each.actor == "model:offline"} == {
        "stage1.succeeded",
        "stage1.no_output",
        "phase2.requested",
    }


def test_each_session_was_claimed_once_and_ended_once(ran):
    ended = ran.events(Stage1Succeeded) + ran.events(Stage1SucceededNoOutput)

    assert len(ended) == len({each.thread_id for each in ended}) == 14
    assert {each.thread_id for each in ran.events(Stage1Succeeded)} == {
        id_of(name) for name in TEACHES
    }


@pytest.mark.parametrize("name", sorted(TEACHES))
def test_a_session_that_taught_is_in_and_says_since_which_event(ran, name):
    told = ran.memory.explain(id_of(name))

    assert told.selected
    assert told.verdict.startswith("in:")
    assert [gate.name for gate in told.gates] == WITH_OUTPUT
    assert all(gate.passed and gate.why for gate in told.gates)
    assert told.rank in (1, 2)
    assert told.waiting == []
    types = [ran.log()[position - 1].type for position in told.events]
    assert types[:2] == ["thread.registered", "stage1.lease_claimed"]
    assert types[-1] == "phase2.succeeded"


@pytest.mark.parametrize("name", sorted(OTHERS))
def test_a_session_that_taught_nothing_is_out_and_says_why(ran, name):
    told = ran.memory.explain(id_of(name))

    assert not told.selected
    assert told.rank is None
    assert [gate.name for gate in told.gates] == WITHOUT_OUTPUT
    shut = [gate.name for gate in told.gates if not gate.passed]
    if OTHERS[name] == "nothing":
        assert shut == []
        assert "taught nothing" in " ".join(told.waiting)
    else:
        assert shut == [OTHERS[name]]
        assert told.waiting == []
        assert next(gate.why for gate in told.gates if not gate.passed) in told.verdict


def test_every_fixture_session_is_in_one_of_the_two_lists(ran):
    lines = ran.memory.threads()

    assert {line.thread_id for line in lines} == {id_of(name) for name in [*TEACHES, *OTHERS]}
    assert {line.thread_id for line in lines if line.selected} == {id_of(n) for n in TEACHES}


@pytest.mark.parametrize("name", sorted([*TEACHES, *OTHERS]))
def test_before_it_was_read_a_session_waited_or_was_shut_out(ran, name):
    registered = next(
        each.position
        for each in ran.log()
        if each.type == "thread.registered" and each.event.thread_id == id_of(name)
    )

    told = ran.memory.explain(id_of(name), at=registered)

    assert told.position == registered
    assert told.events == [registered]
    assert not told.selected
    if OTHERS.get(name) == "source_kind":
        assert told.waiting == []
    else:
        assert told.waiting == ["the next run reads it"]


def test_between_its_reading_and_the_success_a_session_was_chosen_and_not_yet_in(ran):
    done = next(each.position for each in ran.log() if each.type == "phase2.succeeded")

    before = ran.memory.explain(id_of("patch"), at=done - 1)
    after = ran.memory.explain(id_of("patch"), at=done)

    assert not before.selected
    assert before.rank is not None
    assert "in at the next run" in before.verdict
    assert after.selected


def test_a_citation_raises_the_rank_and_costs_no_run(tmp_path):
    home = own_home(tmp_path)
    before = {name: home.memory.explain(id_of(name)).rank for name in TEACHES}
    second = max(TEACHES, key=before.__getitem__)

    counted = used(home.later(60).memory, [id_of(second)], "session", 3)

    told = home.memory.explain(id_of(second))
    assert counted == 1
    assert before[second] == 2
    assert told.rank == 1
    assert told.selected
    assert any("last cited" in gate.why for gate in told.gates)
    assert home.log()[told.events[-1] - 1].type == "stage1.cited"
    position = home.position
    assert home.run([ROLLOUTS]).phase2 == []
    assert home.position == position


def test_a_polluted_session_leaves_and_the_others_stay(tmp_path):
    home = own_home(tmp_path)
    was = home.position

    home.later(60).memory.pollute(id_of("patch"), "web_search")
    chosen = home.memory.explain(id_of("patch"))
    report = home.run([ROLLOUTS])

    assert "out at the next run" in chosen.verdict
    told = home.memory.explain(id_of("patch"))
    assert not told.selected
    assert [gate.name for gate in told.gates if not gate.passed] == ["memory_mode", "rank"]
    assert "polluted (web_search)" in told.verdict
    (root,) = report.phase2
    assert set(root.modified) == {"MEMORY.md", "memory_summary.md", "raw_memories.md"}
    assert root.added == []
    assert len(root.deleted) == 1
    assert "changelog" not in "".join(content(home.root()).values()).lower()
    assert home.memory.explain(id_of("error")).selected
    assert home.memory.explain(id_of("patch"), at=was).selected


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """What explain said of each session after the run, a citation, a pollution, and a run."""
    home = Home(tmp_path_factory.mktemp("told"), now=HALF_A_DAY_LATER)
    home.run([ROLLOUTS])
    names = sorted([*TEACHES, *OTHERS])
    moments = {}

    def look(moment):
        answers = {name: home.memory.explain(id_of(name)) for name in names}
        moments[moment] = home.position, answers

    look("ran")
    used(home.later(60).memory, [id_of(name) for name in names], "session", 1)
    look("cited")
    for name in names:
        home.later(60).memory.pollute(id_of(name), "web_search")
    look("polluted")
    home.later(60).run([ROLLOUTS])
    look("run again")
    moments["home"] = home
    yield moments
    home.memory.close()


@pytest.mark.parametrize("name", sorted([*TEACHES, *OTHERS]))
def test_each_session_says_why_before_and_after_a_citation_and_a_pollution(told, name):
    ran, cited, polluted, again = (
        told[moment][1][name] for moment in ("ran", "cited", "polluted", "run again")
    )

    assert (ran.selected, cited.selected) == (name in TEACHES, name in TEACHES)
    assert len(cited.events) - len(ran.events) == (name in TEACHES)
    assert not polluted.gates[1].passed
    assert "polluted (web_search)" in polluted.verdict
    assert polluted.selected == (name in TEACHES)
    assert polluted.verdict.startswith(
        "in, and out at the next run" if name in TEACHES else "out: "
    )
    assert not again.selected
    assert again.verdict.startswith("out: memory mode is polluted (web_search)")


@pytest.mark.parametrize("moment", ["ran", "cited", "polluted", "run again"])
@pytest.mark.parametrize("name", sorted([*TEACHES, *OTHERS]))
def test_each_moment_is_explained_later_as_it_was_then(told, name, moment):
    position, answers = told[moment]

    later = told["home"].memory.explain(id_of(name), at=position)

    assert (later.selected, later.rank, later.events) == (
        answers[name].selected,
        answers[name].rank,
        answers[name].events,
    )
    assert [(gate.name, gate.passed) for gate in later.gates] == [
        (gate.name, gate.passed) for gate in answers[name].gates
    ]
    assert later.position == position


def test_global_scope_is_one_root_with_all(tmp_path):
    home = Home(tmp_path, now=HALF_A_DAY_LATER, scope="global")

    report = home.run([ROLLOUTS, EXTRA])

    assert [root.scope for root in report.phase2] == ["global"]
    assert [root.name for root in home.roots()] == ["global"]
    assert home.selected() == {output.thread_id for output in home.outputs()}
    assert home.memory.replay_verify() == []


def test_the_folder_s_inputs_are_what_the_rows_give(ran):
    (scope,) = {row.scope for row in ran.events(Phase2Succeeded)}
    from threadbook.application.roots import Root, live, texts

    with ran.memory.store.reading() as view:
        root = Root(memory_version="v1", scope=scope)
        rows = texts(view, live(view, root))

    files = content(ran.root())
    assert {path: files[path] for path in inputs(rows)} == inputs(rows)
    assert set(files) - set(inputs(rows)) == {"MEMORY.md", "memory_summary.md"}


def test_no_secret_of_the_fixture_is_in_any_file_of_the_home(tmp_path):
    home = own_home(tmp_path)
    raw = (ROLLOUTS / "secrets.jsonl").read_text()
    planted = [word for word in ("AKIA", "ghp_", "xoxb-", "sk-test-") if word in raw]

    everything = b"".join(p.read_bytes() for p in home.path.rglob("*") if p.is_file())

    assert planted
    assert not [word for word in planted if word.encode() in everything]


def test_a_month_later_everything_has_aged_out(tmp_path):
    home = own_home(tmp_path)

    home.later(31 * DAY_S)
    first = home.run([ROLLOUTS])
    told = home.memory.explain(id_of("patch"))
    second = home.later(60).run([ROLLOUTS])

    assert first.pruned == 0  # What the last success was made from is not pruned under it.
    assert first.phase2[0].deleted
    assert [gate.name for gate in told.gates if not gate.passed] == ["recent", "rank"]
    assert second.pruned == 2
    assert second.phase2 == []
    assert not home.outputs()
    gone = home.memory.explain(id_of("patch"))
    assert "age" in [gate.name for gate in gone.gates if not gate.passed]
    assert "taught nothing" not in " ".join(gone.waiting)
