"""Two memory versions out of the same sessions: each a store of its own, one of them is read."""

import re

import pytest
from msgspec.structs import replace
from threadbook.adapters.offline import OfflineConsolidator
from threadbook.application import reset
from threadbook.application.ports import ConsolidationFailed, Extracted, Proposal
from threadbook.domain.artifact import problems
from threadbook.domain.events import (
    Cited,
    ConsolidationRequested,
    Phase2Succeeded,
    Stage1LeaseClaimed,
    StoreReset,
)
from threadbook.domain.withholding import WITHHELD
from threadbook.projections import jobs

from tests.application.homes import (
    DAY_S,
    FERN,
    FIXTURES,
    HALF_A_DAY_LATER,
    HOUR_S,
    MOSS,
    NOON,
    ROLLOUTS,
    Home,
    Session,
    Telling,
    content,
    used,
)
from tests.application.planted import PLANTED, Planted, left_in

LOST = Planted()
KEPT = Session(number=2, says=("please never use tabs in this project, always spaces",))
KEPT_WORDS = "never use tabs"
HANDBOOK = {"MEMORY.md", "memory_summary.md", "raw_memories.md"}


@pytest.fixture
def both(tmp_path):
    home = Home(tmp_path, dual_write=True)
    home.write(LOST, KEPT)
    home.report = home.run()
    yield home
    home.memory.close()


@pytest.fixture
def second(tmp_path):
    home = Home(tmp_path, version="v2")
    home.write(LOST, KEPT)
    home.report = home.run()
    yield home
    home.memory.close()


def summary(home, version="v2"):
    return content(home.root(version=version))["memory_summary.md"]


def read(home, path="memory_summary.md"):
    return home.memory.read(path, cwd=FERN).content


def is_sound(home):
    return home.memory.verify().ok and home.memory.replay_verify() == []


def rows_of(home, version):
    return [row for row in home.outputs() if row.memory_version == version]


def phase2_jobs(home):
    with home.memory.store.reading() as view:
        return view.rows(jobs, (jobs.PHASE2,))


def bodies(home, *refs):
    with home.memory.store.reading() as view:
        return [view.body(ref) for ref in refs]


# A root of v2.


def test_v2_is_consolidated_without_a_handbook(second):
    files = content(second.root())

    top = {path for path in files if "/" not in path}
    assert top == {"memory_summary.md"}
    assert {path.partition("/")[0] for path in files} - top == {"rollout_summaries"}
    assert problems(files, version="v2") == []
    assert [each.status for each in second.report.phase2] == ["succeeded"]
    assert not (second.path / "memories" / "v1").exists()
    assert is_sound(second)


def test_the_summary_names_the_session_of_each_statement_and_its_file_exactly(second):
    told = summary(second)

    files = content(second.root())
    pointed = re.findall(r"^- (rollout_summaries/\S+) — .*; thread_id=(\S+)$", told, re.M)
    assert sorted(thread_id for _, thread_id in pointed) == sorted([LOST.id, KEPT.id])
    for path, thread_id in pointed:
        assert files[path].startswith(f"thread_id: {thread_id}\n")
    wishes = told.partition("## User preferences\n")[2].partition("\n\n")[0].splitlines()
    assert len(wishes) == 5
    assert all(re.search(r"; thread_id=[0-9a-f-]{36}$", line) for line in wishes)


def test_v2_keeps_no_raw_memory(second):
    (row, _) = rows_of(second, "v2")

    raw, history = bodies(second, row.raw_memory_ref, row.rollout_summary_ref)

    assert raw == ""
    assert "\n- stated as lasting: the user wrote " in history


def test_the_order_in_which_sessions_come_changes_no_byte(second, tmp_path):
    (tmp_path / "other").mkdir()
    other = Home(tmp_path / "other", version="v2", scope="global")
    for session in (KEPT, LOST):
        other.write(session)
        other.run()
    second.reopened(scope="global").run()

    told = content(other.root("global"))

    theirs = content(second.root("global"))
    assert told["memory_summary.md"] == theirs["memory_summary.md"]
    assert told.keys() == theirs.keys()
    other.memory.close()


def test_nothing_new_is_no_event_and_no_work(second):
    before = second.position

    report = second.later(HOUR_S).run()

    assert report.phase2 == []
    assert second.position == before


def test_a_session_in_v2_is_given_the_summary_by_v2s_prompt(second):
    given = second.memory.context(FERN, "session")

    assert given.manifest.version == "v2"
    assert KEPT_WORDS in given.text
    assert "MEMORY.md" not in given.text


@pytest.mark.parametrize(
    ("raw", "told", "kept"),
    [("", "summary", True), (" ", "summary", True), ("raw", "", False), ("raw", " \n", False)],
)
def test_a_summary_alone_decides_whether_there_is_an_output(tmp_path, raw, told, kept):
    home = Home(tmp_path, version="v2")
    home.write(KEPT)
    said = Extracted(raw_memory=raw, rollout_summary=told, rollout_slug="a")

    report = home.run_with(extractor=Telling(**{KEPT.id: lambda header, items: said}))

    assert (report.stage1.succeeded, report.stage1.no_output) == (int(kept), int(not kept))
    assert len(home.outputs()) == kept
    home.memory.close()


def test_a_long_summary_is_cut_in_the_middle_and_stored_under_ten_thousand_bytes(tmp_path):
    home = Home(tmp_path, version="v2")
    home.write(KEPT)
    said = Extracted(raw_memory="", rollout_summary="# a\n" + "ü" * 9_000, rollout_slug=None)

    home.run_with(extractor=Telling(**{KEPT.id: lambda header, items: said}))

    (row,) = home.outputs()
    (kept,) = bodies(home, row.rollout_summary_ref)
    assert kept.startswith("# a\nüü")
    assert kept.endswith("üü")
    assert "…4502 chars truncated…" in kept
    assert len(kept.encode()) < 10_000
    assert [each.status for each in home.run().phase2] == []
    home.memory.close()


def test_a_secret_goes_before_the_cut_that_would_part_it_from_its_name(tmp_path):
    home = Home(tmp_path, version="v2")
    home.write(KEPT)
    secret = "hunter2hunter2hunter2"
    told = "x" * 4_490 + f" password={secret} " + "y" * 6_000
    said = Extracted(raw_memory="", rollout_summary=told, rollout_slug=None)

    home.run_with(extractor=Telling(**{KEPT.id: lambda header, items: said}))

    (row,) = home.outputs()
    (kept,) = bodies(home, row.rollout_summary_ref)
    assert "chars truncated" in kept
    assert "hunter" not in kept
    home.memory.close()


# Both at once.


def test_dual_write_extracts_and_consolidates_into_independent_stores(both):
    report = both.report

    assert (report.stage1.claimed, report.stage1.succeeded) == (4, 4)
    assert [(each.version, each.status) for each in report.phase2] == [
        ("v1", "succeeded"),
        ("v2", "succeeded"),
    ]
    first, second = (content(both.root(version=version)) for version in ("v1", "v2"))
    assert first.keys() >= HANDBOOK
    assert second.keys() & HANDBOOK == {"memory_summary.md"}
    assert first["memory_summary.md"] != second["memory_summary.md"]
    for version in ("v1", "v2"):
        assert {row.thread_id for row in rows_of(both, version)} == {LOST.id, KEPT.id}
        assert KEPT_WORDS in summary(both, version)
    tokens = [each.ownership_token for each in both.events(Stage1LeaseClaimed)]
    assert len(set(tokens)) == 4
    assert is_sound(both)


def test_with_v2_in_force_dual_write_runs_v2_alone(tmp_path):
    home = Home(tmp_path, version="v2", dual_write=True)
    home.write(KEPT)

    report = home.run()

    assert [each.version for each in report.phase2] == ["v2"]
    assert not (home.path / "memories" / "v1").exists()
    home.memory.close()


def test_a_session_is_given_what_the_version_in_force_says(both):
    assert "[Task 1]" in read(both)
    assert both.memory.context(FERN, "session").manifest.version == "v1"

    both.reopened(version="v2")

    assert "; thread_id=" in read(both)
    assert both.memory.context(FERN, "session").manifest.version == "v2"


def test_a_version_that_is_written_later_reads_every_session_for_itself(tmp_path):
    home = Home(tmp_path)
    home.write(LOST, KEPT)
    home.run()
    v1 = content(home.root())

    report = home.reopened(dual_write=True).run()

    assert report.stage1.claimed == 2
    assert [each.version for each in report.phase2] == ["v2"]
    assert content(home.root()) == v1
    home.memory.close()


def test_one_version_fails_and_waits_and_the_other_goes_on(tmp_path):
    class Failing(OfflineConsolidator):
        def propose(self, task):
            if task.memory_version == "v2":
                raise ConsolidationFailed("failed_agent")
            return super().propose(task)

    home = Home(tmp_path, dual_write=True)
    home.write(LOST, KEPT)

    report = home.run_with(consolidator=Failing())

    assert [(each.version, each.status) for each in report.phase2] == [
        ("v1", "succeeded"),
        ("v2", "failed"),
    ]
    ended = {row.memory_version: row for row in phase2_jobs(home)}
    assert (ended["v1"].status, ended["v1"].retry_at) == ("done", None)
    assert (ended["v2"].status, ended["v2"].retry_at) == ("error", NOON + HOUR_S)
    assert KEPT_WORDS in summary(home, "v1")
    soon = home.later(HOUR_S - 1).run()
    assert (soon.phase2, soon.waiting) == ([], {"backoff": 1})
    assert [each.version for each in home.later(1).run().phase2] == ["v2"]
    home.memory.close()


def test_one_version_reads_a_session_in_vain_and_the_other_keeps_it(both):
    third = Session(number=3, says=("from now on always sort imports",), ended_at=NOON - 6 * HOUR_S)
    both.write(third)
    said = Extracted(raw_memory=" ", rollout_summary="a history", rollout_slug=None)

    report = both.run_with(extractor=Telling(**{third.id: lambda header, items: said}))

    assert (report.stage1.no_output, report.stage1.succeeded) == (1, 1)
    assert [row.memory_version for row in both.outputs() if row.thread_id == third.id] == ["v2"]
    assert both.run().stage1.claimed == 0
    assert is_sound(both)


def test_each_version_has_a_running_cap_of_its_own(tmp_path):
    home = Home(tmp_path, dual_write=True)
    home.write(LOST, KEPT)
    policy = home.memory._around.policy
    limits = replace(policy.limits, running_cap=1)

    report = home.run_with(policy=replace(policy, limits=limits))

    assert (report.stage1.succeeded, report.waiting) == (4, {})
    home.memory.close()


def test_notes_are_a_persons_and_are_read_in_every_version(both):
    both.memory.note("say linnet", cwd=FERN)
    both.later(HOUR_S).run()

    for version in ("v1", "v2"):
        assert "say linnet" in "".join(content(both.root(version=version)).values())


# What takes a session out takes it out of both.


def test_a_use_counts_in_the_version_that_was_read(both):
    assert used(both.memory, [KEPT.id], "session", 1) == 1

    (event,) = both.events(Cited)
    assert event.memory_version == "v1"
    uses = {row.memory_version: row.usage_count for row in both.outputs() if row.usage_count}
    assert uses == {"v1": 1}


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_a_pollution_is_out_of_sight_at_once_and_asks_both_versions(both, version):
    both.reopened(version=version)
    after = both.position

    both.memory.pollute(LOST.id, "web_search")

    asked = both.events(ConsolidationRequested, after=after)
    assert {each.memory_version for each in asked} == {"v1", "v2"}
    told = read(both)
    assert not [word for word in PLANTED.values() if word in told]
    assert WITHHELD in told
    assert KEPT_WORDS in told
    both.later(HOUR_S).reopened(version="v1", dual_write=True).run()
    for each in ("v1", "v2"):
        assert "Zwickelbornstedt" not in "".join(content(both.root(version=each)).values())
        assert KEPT_WORDS in summary(both, each)


def test_a_mode_is_of_the_session_and_holds_in_both(both):
    both.memory.set_mode(LOST.id, "disabled", confirmed=True)
    both.later(HOUR_S).run()
    out = {each: summary(both, each) for each in ("v1", "v2")}
    both.memory.set_mode(LOST.id, "enabled", confirmed=True)
    both.later(HOUR_S).run()

    for version in ("v1", "v2"):
        assert "Zwickelbornstedt" not in out[version]
        assert "Zwickelbornstedt" in summary(both, version)
    assert both.report.stage1.claimed == 4
    assert len(both.events(Stage1LeaseClaimed)) == 4


@pytest.mark.usefixtures("database")  # A server seals an empty text, too.
@pytest.mark.parametrize("dual", [False, True])
def test_a_forgotten_session_is_in_no_file_of_the_home(tmp_path, dual):
    home = Home(tmp_path, **({"dual_write": True} if dual else {"version": "v2"}))
    home.write(LOST, KEPT)
    home.run()
    assert left_in(home.path) != []

    certificate = home.memory.forget(LOST.id, prove=True)

    assert (certificate.verdict, left_in(home.path)) == ("clean", [])
    assert KEPT_WORDS in summary(home)
    assert is_sound(home)
    home.later(DAY_S).run()
    assert left_in(home.path) == []
    home.memory.close()


def test_what_a_hand_changed_in_v2_is_withheld_with_its_session(second):
    path = second.root() / "memory_summary.md"
    path.write_text(re.sub(r"; thread_id=\S+$", "", path.read_text(), flags=re.M))

    second.memory.pollute(LOST.id, "web_search")

    told = read(second)
    assert not [word for word in PLANTED.values() if word in told]
    assert KEPT_WORDS in told


def test_what_a_person_did_to_the_summary_of_v2_stays_done(second):
    path = second.root() / "memory_summary.md"
    kept = [line for line in path.read_text().split("\n") if KEPT_WORDS not in line]
    at = kept.index("## User preferences") + 1
    path.write_text("\n".join([*kept[:at], "- my own words", *kept[at:]]))
    again = Session(number=3, says=KEPT.says, ended_at=KEPT.ended_at + DAY_S)
    second.write(again)

    second.later(DAY_S).run()

    told = summary(second)
    wishes = told.partition("## User preferences\n")[2].partition("\n## General Tips")[0]
    assert "- my own words" in wishes
    assert KEPT_WORDS not in wishes
    assert "Zwickelbornstedt" in wishes
    assert again.id in told
    assert is_sound(second)


def test_what_a_person_repeated_of_a_forgotten_session_goes_from_v2_with_it(second):
    path = second.root() / "memory_summary.md"
    sentence = f"- always run {PLANTED['preference']} before you commit"
    path.write_text(f"{path.read_text()}{sentence}\n- call the garden gate blue\n")
    second.later(HOUR_S).run()
    assert sentence in summary(second)

    certificate = second.memory.forget(LOST.id, prove=True)

    assert (certificate.verdict, left_in(second.path)) == ("clean", [])
    assert "- call the garden gate blue" in summary(second)
    assert is_sound(second)


def test_a_reset_of_one_version_leaves_the_other(both):
    kept = content(both.root(version="v1"))

    report = reset.reset(both.memory._around, versions=["v2"], actor="application")

    assert (report.versions, report.outputs) == (("v2",), 2)
    assert rows_of(both, "v2") == []
    assert content(both.root(version="v1")) == kept
    assert content(both.root(version="v2")) == {}
    assert {row.memory_version for row in both.outputs()} == {"v1"}
    assert is_sound(both)
    again = both.later(HOUR_S).run()
    assert again.stage1.claimed == 2
    assert [each.version for each in again.phase2] == ["v2"]


@pytest.mark.parametrize("settings", [{"dual_write": True}, {"dual_write": False}])
def test_a_reset_empties_every_version_also_one_that_is_written_no_more(both, settings):
    both.reopened(**settings)

    report = both.memory.reset()

    assert report.versions == ("v1", "v2")
    assert (report.outputs, report.jobs) == (4, 6)
    assert [each.memory_version for each in both.events(StoreReset)] == ["v1", "v2"]
    learned = [word for kind, word in PLANTED.items() if kind != "preview"]
    assert left_in(both.path, *learned) == []
    assert content(both.path / "memories") == {}
    assert is_sound(both)


# Whether it is fit to be read.


def test_status_says_of_each_version_whether_it_is_ready(both):
    told = both.memory.status()["versions"]

    assert told == [
        {
            "version": version,
            "read": version == "v1",
            "written": True,
            "consolidated_threads": 2,
            "ready": False,
        }
        for version in ("v1", "v2")
    ]
    assert {each["version"] for each in both.memory.status()["roots"]} == {"v1", "v2"}


@pytest.mark.parametrize(("threads", "ready"), [(19, False), (20, True)])
def test_a_version_is_ready_when_one_consolidation_covered_twenty_threads(tmp_path, threads, ready):
    home = Home(tmp_path, version="v2")
    home.write(
        *(Session(number=n, says=(f"from now on use tool {n}",)) for n in range(1, threads + 1))
    )
    home.run()

    (told,) = home.memory.status()["versions"]

    assert (told["consolidated_threads"], told["ready"]) == (threads, ready)
    # The largest one counts, also when threads have gone since.
    home.memory.set_mode(Session(number=1).id, "disabled", confirmed=True)
    home.later(HOUR_S).run()
    (told,) = home.memory.status()["versions"]
    assert (told["consolidated_threads"], told["ready"]) == (threads, ready)
    assert len(home.events(Phase2Succeeded)) == 2
    home.memory.close()


def test_many_sessions_leave_a_summary_of_v2_within_its_limit_that_says_what_is_missing(tmp_path):
    home = Home(tmp_path, version="v2")
    home.write(
        *(
            Session(
                number=n,
                says=(f"from now on always run checker number {n} before you commit " + "x" * 150,),
                ended_at=NOON - 7 * HOUR_S - n * 600,
            )
            for n in range(1, 61)
        )
    )

    home.run()

    told = summary(home)
    assert 8_500 < len(told.encode()) <= 9_500
    assert re.search(
        r"\n\(\d+ lines left out for length; rollout_summaries/ holds all\.\)\n$", told
    )
    assert problems({"memory_summary.md": told}, version="v2") == []
    home.memory.close()


def test_the_fixture_sessions_make_both_folders(tmp_path):
    home = Home(tmp_path, now=HALF_A_DAY_LATER, scope="global", dual_write=True)

    report = home.run([ROLLOUTS])

    assert [(each.version, each.status) for each in report.phase2] == [
        ("v1", "succeeded"),
        ("v2", "succeeded"),
    ]
    stems = [
        {path.partition("/")[2] for path in content(home.root(version=v)) if "/" in path}
        for v in ("v1", "v2")
    ]
    assert stems[0] == stems[1]
    assert len(stems[0]) == 2
    home.memory.close()


# What else knows of versions.


def test_a_run_that_is_stopped_gives_back_the_leases_of_both_versions(tmp_path):
    class Stopped(OfflineConsolidator):
        def propose(self, task):
            if task.memory_version == "v2":
                raise KeyboardInterrupt
            return super().propose(task)

    home = Home(tmp_path, dual_write=True)
    home.write(KEPT)

    with pytest.raises(KeyboardInterrupt):
        home.run_with(consolidator=Stopped())

    ended = {row.memory_version: row.status for row in phase2_jobs(home)}
    assert ended == {"v1": "done", "v2": "pending"}
    assert [each.version for each in home.run().phase2] == ["v2"]
    home.memory.close()


def test_what_comes_in_while_v2_is_in_force_has_its_summary_alone(tmp_path):
    home = Home(tmp_path, now=HALF_A_DAY_LATER, version="v2", scope="global")

    report = home.memory.import_folder(FIXTURES / "memory-base-v1")
    home.run()

    assert len(report.imported) == 14
    assert {bodies(home, row.raw_memory_ref)[0] for row in home.outputs()} == {""}
    files = content(home.root())
    assert files.keys() & HANDBOOK == {"memory_summary.md"}
    assert len([path for path in files if path.startswith("rollout_summaries/")]) == 14
    assert problems({"memory_summary.md": files["memory_summary.md"]}, version="v2") == []
    home.memory.close()


def test_folders_of_v2_are_joined_as_one_of_v2(tmp_path):
    home = Home(tmp_path, version="v2")
    home.write(KEPT, Session(number=3, cwd=MOSS, says=("from now on always sort imports",)))
    home.run()

    home.memory.export(tmp_path / "out", merge=True)

    files = content(tmp_path / "out")
    assert files.keys() & HANDBOOK == {"memory_summary.md"}
    assert KEPT_WORDS in files["memory_summary.md"]
    assert "sort imports" in files["memory_summary.md"]
    assert problems(files, version="v2") == []
    home.memory.close()


def test_either_version_can_be_exported_and_the_one_that_is_read_is_without_a_word(both, tmp_path):
    both.memory.export(tmp_path / "read")
    both.memory.export(tmp_path / "v2", version="v2")

    assert content(tmp_path / "read") == content(both.root(version="v1"))
    assert content(tmp_path / "v2") == content(both.root(version="v2"))


def test_the_words_of_a_polluted_session_leave_both_versions_when_their_days_are_over(tmp_path):
    home = Home(tmp_path, dual_write=True, history_days=0)
    home.write(LOST, KEPT)
    home.run()

    home.memory.pollute(LOST.id, "web_search")
    home.later(HOUR_S).run()

    learned = [word for kind, word in PLANTED.items() if kind != "preview"]
    assert left_in(home.path, *learned) == []
    assert {row.thread_id for row in home.outputs()} == {KEPT.id}
    home.memory.close()


def test_what_a_session_was_shown_of_v2_is_in_reach_of_what_it_cites(second):
    second.memory.context(FERN, "session")

    assert second.memory.cited([KEPT.id], "session", 1) == 1

    (event,) = second.events(Cited)
    assert event.memory_version == "v2"


@pytest.mark.parametrize("broken", ["", "v1\n", "x" * 10_000])
def test_a_summary_that_v2_cannot_take_is_not_published_and_the_folder_stays(second, broken):
    class Useless(OfflineConsolidator):
        def propose(self, task):
            files = dict(super().propose(task).files)
            told = files["memory_summary.md"]
            return Proposal(
                files={"memory_summary.md": told + broken if broken[:1] == "x" else broken}
            )

    before = content(second.root())
    second.write(Session(number=3, says=("from now on always sort imports",)))

    report = second.run_with(consolidator=Useless())

    assert [each.reason for each in report.phase2] == ["failed_invalid_artifacts"]
    assert content(second.root()) == before
    assert [each.status for each in second.later(HOUR_S).run().phase2] == ["succeeded"]


def test_the_past_and_what_changed_since_know_both(both):
    then = both.position
    both.memory.pollute(LOST.id, "web_search")
    both.later(HOUR_S).run()

    ranked = both.memory.at(then)["selection"]
    assert {(each["memory_version"], each["thread_id"]) for each in ranked} == {
        (version, each.id) for version in ("v1", "v2") for each in (LOST, KEPT)
    }
    changed = both.memory.diff(then)["folders"]
    assert [each["version"] for each in changed] == ["v1", "v2"]
