"""What changes a memory after it was made: people, sessions that go on, age; and what does not."""

import pytest
from threadbook.domain.events import (
    ConsolidationRequested,
    OutputWithdrawn,
    Phase2Succeeded,
    ProjectLinked,
    Stage1Succeeded,
    ThreadRescoped,
)
from threadbook.domain.refusals import Forgotten, Refused, UnknownThread

from tests.application.homes import (
    DAY_S,
    FERN,
    HOUR_S,
    MOSS,
    NOON,
    Home,
    Interrupting,
    Session,
    Telling,
    content,
    show,
    used,
)
from tests.application.homes import bytes_of as every_byte

pytestmark = pytest.mark.usefixtures("database")  # On the file and on a server.

A = Session(number=1)
B = Session(number=2, says=("please never use tabs in this project, always spaces",))
C = Session(number=3, says=("from now on always write release notes in past tense",), cwd=MOSS)


def summaries(paths):
    return [path for path in paths if path.startswith("rollout_summaries/")]


def words(home, scope=None):
    return "".join(content(home.root(scope)).values())


def test_two_projects_never_mix(home):
    home.write(A, B, C)

    home.run()

    fern, moss = home.scope_of(A), home.scope_of(C)
    assert {fern, moss} == {home.scope_of(B), moss}
    assert "make check" in words(home, fern)
    assert "past tense" not in words(home, fern)
    assert "past tense" in words(home, moss)
    assert "make check" not in words(home, moss)
    read = {e.scope: [s.thread_id for s in e.selected] for e in home.events(Phase2Succeeded)}
    assert read == {fern: [A.id, B.id], moss: [C.id]}


def test_an_empty_folder_costs_nothing_and_starts_nothing(home):
    before = home.position

    report = home.run()

    assert home.position == before
    assert (report.sessions, report.phase2, report.waiting) == (0, [], {})
    assert not home.roots()
    assert not report.all_failed


def test_sessions_that_teach_nothing_start_no_consolidation(home):
    home.write(Session(number=1, says=("what is the time?",)))

    report = home.run()

    assert report.stage1.no_output == 1
    assert report.phase2 == []
    assert not [kind for kind in home.types() if kind.startswith("phase2")]
    assert not home.roots()


def test_no_diff_no_claim(home):
    home.write(A)
    home.run()
    before = home.position, every_byte(home.root())

    for hours in (0, 1, 24):
        report = home.later(hours * HOUR_S).run()
        assert report.phase2 == []

    assert (home.position, every_byte(home.root())) == before


def test_a_session_that_goes_on_is_read_again_and_replaces_what_it_said(home):
    home.write(A, B)
    home.run()
    grown = Session(
        number=1,
        says=(*A.says, "from now on always run make lint before you push"),
        ended_at=NOON + HOUR_S,
    )
    home.write(grown)

    early = home.later(2 * HOUR_S).run()
    late = home.later(6 * HOUR_S).run()

    assert (early.ingested, early.stage1.claimed, early.waiting) == (1, 0, {"idle": 1})
    assert (late.ingested, late.stage1.succeeded) == (0, 1)
    (root,) = late.phase2
    assert {"MEMORY.md", "raw_memories.md"} <= set(root.modified)
    assert "make lint" in words(home)
    readings = [e.source_updated_at for e in home.events(Stage1Succeeded) if e.thread_id == A.id]
    assert readings == [A.ended_at, grown.ended_at]
    assert home.selected() == {A.id, B.id}


def test_a_session_that_went_on_is_explained_by_its_old_output_and_by_what_it_waits_for(home):
    home.write(A)
    home.run()
    home.write(Session(number=1, says=(*A.says, "one more thing"), ended_at=NOON + HOUR_S))
    home.later(2 * HOUR_S).run()

    told = home.memory.explain(A.id)

    assert told.selected
    assert [gate.name for gate in told.gates][4:] == ["live_output", "recent", "rank"]
    assert "idle for 1 h" in " ".join(told.waiting)
    assert "the next run reads it" not in told.waiting


def test_a_second_reading_that_teaches_nothing_takes_the_first_away(home):
    home.write(A, B)
    home.run()
    home.write(Session(number=1, says=(*A.says, "thanks"), ended_at=NOON + HOUR_S))

    report = home.later(12 * HOUR_S).run_with(extractor=Telling(**{A.id: lambda *_: None}))

    assert report.stage1.no_output == 1
    (root,) = report.phase2
    assert len(summaries(root.deleted)) == 1
    assert {output.thread_id for output in home.outputs()} == {B.id}
    assert "make check" not in words(home)
    told = home.memory.explain(A.id)
    assert "taught nothing" in " ".join(told.waiting)


def test_pollution_reports_what_left_the_folder(home):
    home.write(A, B)
    home.run()

    assert home.memory.pollute(A.id, "web_search")
    assert not home.memory.pollute(A.id, "web_search")
    (root,) = home.run().phase2

    assert root.added == []
    assert root.modified == ["MEMORY.md", "memory_summary.md", "raw_memories.md"]
    assert len(root.deleted) == 1
    assert "make check" not in words(home)
    assert [output.memory_mode for output in home.outputs()] == ["polluted", "enabled"]


def test_pollution_lasts_through_every_later_reading(home):
    home.write(A)
    home.run()
    home.memory.pollute(A.id, "web_search")
    home.write(
        Session(number=1, says=(*A.says, "more"), ended_at=NOON + HOUR_S, memory_mode="enabled")
    )

    for _ in range(3):
        home.later(12 * HOUR_S).run()

    assert home.selected() == set()
    assert home.memory.threads()[0].memory_mode == "polluted"
    assert home.memory.threads()[0].stage1 == "succeeded"  # The reading from before.
    assert len(home.events(Stage1Succeeded)) == 1


def test_the_last_session_of_a_project_leaves_an_empty_memory_that_stays_quiet(home):
    home.write(A)
    home.run()

    home.memory.pollute(A.id, "web_search")
    (root,) = home.run().phase2
    quiet = home.position

    assert root.status == "succeeded"
    assert "make check" not in words(home)
    assert "No raw memories yet." in content(home.root())["raw_memories.md"]
    assert home.later(DAY_S).run().phase2 == []
    assert home.position == quiet


@pytest.mark.parametrize("way_in", ["now", "later"])
def test_outside_text_pollutes_where_the_setting_says_so(tmp_path, way_in):
    home = Home(tmp_path, disable_on_external_context=way_in == "now")
    home.write(Session(number=1, searched=True), B)
    home.run()

    if way_in == "later":
        assert home.selected() == {A.id, B.id}
        home.reopened(disable_on_external_context=True).run()

    assert home.selected() == {B.id}
    told = home.memory.explain(A.id)
    assert "polluted (web_search)" in told.verdict
    if way_in == "later":
        assert "make check" not in words(home)


def test_what_a_person_enabled_is_not_polluted_again_by_the_same_text(tmp_path):
    home = Home(tmp_path, disable_on_external_context=True)
    searched = Session(number=1, searched=True)
    home.write(searched)
    home.run()

    home.memory.set_mode(A.id, "enabled")
    home.run()
    stays = home.selected()
    more = Session(number=1, searched=True, says=(*A.says, "more"), ended_at=NOON + HOUR_S)
    home.write(more)
    home.later(12 * HOUR_S).run()

    assert stays == {A.id}
    assert home.selected() == set()


def test_disabling_takes_out_and_enabling_brings_back_without_reading_again(home):
    home.write(A, B)
    home.run()
    first = content(home.root())

    assert home.memory.set_mode(A.id, "disabled")
    out = home.run()
    without = content(home.root())
    assert home.memory.set_mode(A.id, "enabled")
    back = home.run()

    assert len(summaries(out.phase2[0].deleted)) == 1
    assert "make check" not in "".join(without.values())
    assert len(summaries(back.phase2[0].added)) == 1
    assert back.stage1.claimed == 0
    assert content(home.root()) == first


def test_a_mode_that_holds_already_is_no_event(home):
    home.write(A)
    home.run()
    before = home.position

    assert not home.memory.set_mode(A.id, "enabled")

    assert home.position == before


@pytest.mark.parametrize("mode", ["polluted", "on", ""])
def test_a_mode_that_nobody_sets_is_refused(home, mode):
    home.write(A)
    home.run()
    before = home.position

    with pytest.raises(Refused, match="use enabled or disabled"):
        home.memory.set_mode(A.id, mode)

    assert home.position == before


def test_what_nobody_knows_is_refused(home):
    for act in (
        lambda: home.memory.pollute(A.id),
        lambda: home.memory.set_mode(A.id, "disabled"),
        lambda: home.memory.set_scope(A.id, "project:x"),
        lambda: home.memory.explain(A.id),
    ):
        with pytest.raises(UnknownThread, match="threadbook threads"):
            act()


def test_what_was_forgotten_takes_no_other_word(home):
    home.write(A)
    home.run()
    home.memory.forget(A.id)

    for act in (
        lambda: home.memory.pollute(A.id),
        lambda: home.memory.set_mode(A.id, "enabled"),
        lambda: home.memory.set_scope(A.id, "project:x"),
    ):
        with pytest.raises(Forgotten, match="only a person can lift it"):
            act()
    assert used(home.memory, [A.id], "s", 1) == 0


def test_a_rescoped_session_moves_from_one_folder_to_the_other(home):
    home.write(A, B, C)
    home.run()
    fern, moss = home.scope_of(A), home.scope_of(C)

    assert home.memory.set_scope(A.id, moss)
    assert not home.memory.set_scope(A.id, moss)
    reports = {root.scope: root for root in home.run().phase2}

    assert len(summaries(reports[fern].deleted)) == 1
    assert len(summaries(reports[moss].added)) == 1
    assert "make check" not in words(home, fern)
    assert "make check" in words(home, moss)
    assert home.memory.explain(A.id).scope == moss
    assert home.memory.scope(A.id) == moss
    asked = [e.scope for e in home.events(ConsolidationRequested) if e.cause == "rescoped"]
    assert sorted(asked) == sorted([fern, moss])


def test_a_session_without_a_project_is_read_and_shown_to_nobody_until_it_has_one(home):
    lost = Session(number=4, cwd=None)
    home.write(lost)

    report = home.run()
    told = home.memory.explain(lost.id)
    home.memory.set_scope(lost.id, "project:garden")
    placed = home.later(60).run()

    assert report.stage1.succeeded == 1
    assert report.phase2 == []
    assert told.scope == f"quarantine:{lost.id}"
    assert not told.selected
    assert "threadbook scope" in told.verdict
    assert [root.scope for root in placed.phase2] == ["project:garden"]


def test_work_in_the_users_own_folder_is_no_project_wherever_that_is(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "people" / "dana"))
    home = Home(tmp_path)
    lost = Session(number=3, cwd=str(tmp_path / "people" / "dana"))
    home.write(lost)

    home.run()

    assert home.scope_of(lost) == f"quarantine:{lost.id}"
    assert home.roots() == []


def test_global_scope_reads_every_project_into_one_folder(tmp_path):
    home = Home(tmp_path, scope="global")
    home.write(A, B, C, Session(number=4, cwd=None))

    (root,) = home.run().phase2

    assert root.scope == "global"
    assert len(summaries(root.added)) == 4
    assert {gate.name for gate in home.memory.explain(C.id).gates if not gate.passed} == set()


def test_from_project_to_global_and_back_no_folder_is_left_behind_wrong(home):
    home.write(A, C)
    home.run()

    wide = home.reopened(scope="global").run()
    home.memory.pollute(A.id, "web_search")
    both = home.run()

    assert [root.scope for root in wide.phase2] == ["global"]
    assert {root.scope for root in both.phase2} == {"global", home.scope_of(A)}
    for root in home.roots():
        assert "make check" not in "".join(content(root).values()), root


def test_the_first_remote_of_a_folder_takes_its_threads_along(home, tmp_path):
    place = tmp_path / "garden"
    (place / ".git").mkdir(parents=True)
    (place / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    first = Session(number=1, cwd=str(place))
    home.write(first)
    home.run()
    before = home.scope_of(first)
    (place / ".git" / "config").write_text(
        '[remote "origin"]\n\turl = https://git.test/garden.git\n'
    )
    home.write(Session(number=2, cwd=str(place), says=B.says))

    report = home.later(60).run()

    after = home.scope_of(first)
    assert after != before
    assert len(home.events(ProjectLinked)) == 1
    assert [e.thread_id for e in home.events(ThreadRescoped)] == [first.id]
    assert {root.scope for root in report.phase2} == {before, after}
    assert "make check" not in words(home, before)
    assert "make check" in words(home, after)
    assert "spaces" in words(home, after)
    linked = next(each for each in home.log() if isinstance(each.event, ProjectLinked))
    moved = next(each for each in home.log() if isinstance(each.event, ThreadRescoped))
    assert moved.recorded_at_ms == linked.recorded_at_ms
    position = home.position
    assert home.run().phase2 == []
    assert home.position == position


def test_what_has_aged_leaves_the_folder_first_and_the_store_with_the_next_run(home):
    home.write(A)
    home.run()

    out = home.later(31 * DAY_S).run()
    gone = home.later(60).run()

    assert summaries(out.phase2[0].deleted)
    assert (out.pruned, gone.pruned) == (0, 1)
    assert gone.phase2 == []
    assert [e.reason for e in home.events(OutputWithdrawn)] == ["pruned"]
    assert home.outputs() == []
    assert home.later(60).run(backfill=-1).stage1.claimed == 0  # That it was read stays known.


def test_a_used_memory_stays_as_long_as_it_is_used(home):
    home.write(A, B)
    home.run()

    used(home.later(20 * DAY_S).memory, [A.id], "session", 1)
    home.later(20 * DAY_S).run()

    assert home.selected() == {A.id}


def test_only_the_best_fit(tmp_path):
    home = Home(tmp_path, max_raw_memories_for_consolidation=1)
    home.write(A, Session(number=2, says=B.says, ended_at=A.ended_at - HOUR_S))
    home.run()
    newest = home.selected()

    used(home.memory, [B.id], "session", 1)
    (root,) = home.run().phase2

    assert newest == {A.id}
    assert home.selected() == {B.id}
    assert len(summaries(root.added)) == len(summaries(root.deleted)) == 1
    told = home.memory.explain(A.id)
    assert told.rank == 2
    assert "only 1 are read" in told.verdict


def test_a_citation_counts_once_a_session_and_turn(home):
    home.write(A, B)
    home.run()

    counted = [
        used(home.memory, [A.id, A.id, B.id, "nobody"], "s1", 1),
        used(home.memory, [A.id], "s1", 1),
        used(home.memory, [A.id], "s1", 2),
        used(home.memory, [A.id], "s2", 1),
        used(home.memory, [], "s2", 1),
    ]

    assert counted == [2, 0, 1, 1, 0]
    assert [(o.thread_id, o.usage_count) for o in home.outputs()] == [(A.id, 3), (B.id, 1)]


def test_a_thread_forgotten_while_the_folder_is_made_is_not_published(home):
    home.write(A, B)
    cutting_in = Interrupting(lambda: home.another().forget(A.id))

    report = home.run_with(consolidator=cutting_in)

    assert "make check" not in words(home)
    assert "spaces" in words(home)
    assert [root.status for root in report.phase2] == ["succeeded"]
    assert home.selected() == {B.id}
    assert home.memory.replay_verify() == []


@pytest.mark.parametrize(
    "act",
    [
        lambda memory: memory.pollute(A.id, "web_search"),
        lambda memory: memory.set_mode(A.id, "disabled"),
        lambda memory: memory.set_scope(A.id, "project:elsewhere"),
    ],
    ids=["polluted", "disabled", "rescoped"],
)
def test_inputs_that_change_under_a_run_are_not_published_and_cost_no_try(home, act):
    home.write(A, B)
    cutting_in = Interrupting(lambda: act(home.another()))

    report = home.run_with(consolidator=cutting_in)

    fern = home.scope_of(B)
    assert cutting_in.worked >= 2
    assert [root.status for root in report.phase2 if root.scope == fern] == ["succeeded"]
    released = [each for each in home.log() if each.type == "phase2.lease_released"]
    assert [each.event.reason for each in released] == ["inputs_changed"]
    published = [e for e in home.events(Phase2Succeeded) if e.scope == fern]
    assert [[s.thread_id for s in e.selected] for e in published] == [[B.id]]
    assert "make check" not in words(home, fern)
    assert home.phase2_job(fern).retry_remaining == 3


def test_inputs_that_never_rest_are_left_to_the_next_run(home):
    home.write(A, B)
    modes = iter(["disabled", "enabled"] * 20)
    restless = Interrupting(lambda: home.another().set_mode(A.id, next(modes)), times=40)

    report = home.run_with(consolidator=restless)

    assert report.phase2 == [] or report.phase2[0].status == "succeeded"
    calm = home.run()
    assert calm.waiting == {}
    assert home.selected() in ({A.id, B.id}, {B.id})
    assert home.memory.replay_verify() == []


def test_a_session_read_anew_under_a_run_is_read_by_the_next(home):
    home.write(A, B)
    home.run()
    home.memory.set_mode(B.id, "disabled")
    grown = Session(
        number=1, says=(*A.says, "from now on always run make lint"), ended_at=NOON + HOUR_S
    )

    def reads_it_again():
        home.write(grown)
        other = home.another()
        around = other._around
        from threadbook.application import ingest, phase1

        found, _ = ingest.survey(around, [home.sessions])
        ingest.record(around, found, actor="pipeline", run_id=None)
        with other._workers.at_work(around.worker_id):
            phase1.run(around, run_id="other", backfill=None, sighted={}, waiting={})

    home.later(12 * HOUR_S).run_with(consolidator=Interrupting(reads_it_again))
    home.later(60).run()

    assert "make lint" in words(home)
    assert home.memory.explain(A.id).selected
    position = home.position
    assert home.run().phase2 == []
    assert home.position == position


def test_fern_and_fern_on_another_path_are_two_projects(home):
    home.write(A, Session(number=2, says=B.says, cwd=f"{FERN}-2"))

    home.run()

    assert len(home.roots()) == 2


def test_what_is_no_id_keeps_no_cited_thread_from_counting(home):
    home.write(A)
    home.run()

    show(home.memory._around, [A.id], "session")

    counted = home.memory.cited(["\ud800", "", "\0", None, 7, "x" * 100_000, A.id], "session", 1)

    assert counted == 1


def test_a_uuid_in_capitals_means_the_session_of_that_id(home):
    home.write(A)
    home.run()

    assert home.memory.explain(A.id.upper()).thread_id == A.id
    report = home.memory.forget(A.id.upper())

    assert (report.thread_id, report.known) == (A.id, True)
    assert not home.memory.explain(A.id).selected
