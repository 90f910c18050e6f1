"""Doctor: what is wrong is found and told with what to do; what is right is told too."""

import os
import time
from functools import partial

import pytest
from threadbook import Memory
from threadbook.adapters import hook_log
from threadbook.adapters.canary import round_trip
from threadbook.adapters.care import doctor
from threadbook.adapters.checkup import home_findings
from threadbook.adapters.offline import OfflineConsolidator
from threadbook.application.doctor import findings
from threadbook.application.ports import Proposal
from threadbook.domain.events import STORE_STREAM, NoteAdded

from tests.application.homes import DAY_S, NOON, Session
from tests.application.steps import failing

SECRET = "ghp_" + "a1B2" * 9


@pytest.fixture
def asked(home):
    """What is found, by kind: the level and the words of each."""

    def ask(kind):
        with home.memory.store.reading() as view:
            told = [*home_findings(home.path), *findings(home.memory._around, view)]
        return [(each.level, each.told) for each in told if each.what == kind]

    return ask


@pytest.fixture
def learned(home):
    home.write(Session(number=1))
    home.run()
    return home


def test_of_a_home_that_is_well_everything_that_was_looked_at_is_told_as_fine(learned, asked):
    for kind in ("stuck", "lag", "unread", "secrets", "permissions", "disk"):
        assert {level for level, _ in asked(kind)} == {"fine"}, kind


def test_a_session_that_nobody_reads_is_told_with_its_age(home, asked):
    home.write(Session(number=1))
    home.memory.ingest([home.sessions])
    soon = asked("unread")

    home.later(3 * DAY_S)

    assert [level for level, _ in soon] == ["fine"]
    ((level, told),) = asked("unread")
    assert (level, "1 known sessions wait" in told, "3 days" in told) == ("warning", True, True)


def test_a_folder_that_is_behind_is_told_and_becomes_a_warning_after_a_day(home, asked):
    class Useless(OfflineConsolidator):
        def propose(self, task):
            return Proposal(files={})

    home.write(Session(number=1))
    home.run_with(consolidator=Useless())
    soon = asked("lag")

    home.later(2 * DAY_S)

    assert [level for level, _ in soon] == ["fine"]
    ((level, told),) = asked("lag")
    assert (level, "2 days" in told) == ("warning", True)
    assert "is behind" in told
    assert "failed_invalid_artifacts" in told


def test_a_stuck_job_is_told_with_what_happens_next(home, asked):
    home.write(Session(number=1))
    home.run_with(extractor=failing())

    ((level, told),) = asked("stuck")

    assert level == "warning"
    assert "no_json" in told


def test_a_file_that_others_may_read_is_an_error(learned, asked):
    (learned.path / "threadbook.sqlite").chmod(0o644)
    in_a_closed_home = asked("permissions")
    learned.path.chmod(0o755)

    found = asked("permissions")

    assert [level for level, _ in in_a_closed_home] == ["fine"]
    assert [(level, told.partition(" ")[0]) for level, told in found] == [
        ("error", str(learned.path)),
        ("error", str(learned.path / "threadbook.sqlite")),
    ]
    assert all("chmod" in told for _, told in found)


def test_many_findings_of_a_kind_are_a_few_and_a_number(learned, asked):
    learned.path.chmod(0o755)
    for number in range(8):
        (learned.path / f"own{number}").touch(mode=0o644)

    told = [words for _, words in asked("permissions")]

    assert len(told) == 6
    assert told[-1] == "and 4 more like it"


def test_a_secret_in_a_file_is_told_by_its_line_and_is_not_repeated(learned, asked):
    file = learned.root() / "own.md"
    file.write_text(f"one\ntwo\ntoken {SECRET}\n")
    file.chmod(0o600)

    found = [told for level, told in asked("secrets") if level == "error"]

    assert [told.partition(" ")[0] for told in found] == [f"{file}:3"]
    assert SECRET not in str(found)


def test_a_secret_in_a_stored_text_is_told_by_where_it_belongs(learned, asked):
    with learned.memory.store.writing(actor="application") as tx:
        ref = tx.put(STORE_STREAM, f"extensions/ad_hoc/notes/a.md\n{SECRET}")
        tx.append(STORE_STREAM, NoteAdded(at=int(NOON), scope="project:a", body_ref=ref, via="cli"))

    found = [told for level, told in asked("secrets") if level == "error"]

    assert len(found) == 1
    assert found[0].startswith("a note of project:a")
    assert SECRET not in found[0]


def test_a_folder_that_has_another_remote_than_its_first_is_told(home, asked, tmp_path):
    project = tmp_path / "fern"
    (project / ".git").mkdir(parents=True)
    (project / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    config = project / ".git" / "config"
    config.write_text('[remote "origin"]\n\turl = https://example.org/fern.git\n')
    home.write(Session(number=1, cwd=str(project)))
    home.memory.ingest([home.sessions])
    before = asked("remotes")

    config.write_text('[remote "origin"]\n\turl = https://ann:pw@example.org/moss.git\n')

    assert before == []
    ((level, told),) = asked("remotes")
    assert (level, "example.org/moss" in told, "pw" in told) == ("warning", True, False)


def test_a_projects_file_that_nobody_understands_is_told_once(home, asked, tmp_path):
    project = tmp_path / "fern"
    (project / "src").mkdir(parents=True)
    (project / ".git").mkdir()
    (project / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    home.write(Session(number=1, cwd=str(project)), Session(number=2, cwd=str(project / "src")))
    home.memory.ingest([home.sessions])
    before = asked("project")

    (project / ".threadbook.toml").write_text('model = "other"\n')

    assert before == []
    ((level, told),) = asked("project")
    assert level == "warning"
    assert "may not set `model`" in told
    assert "not read" in told


def test_what_hooks_could_not_do_is_told_for_a_day_and_with_the_way_out(learned, asked):
    before = asked("hooks")
    hook_log.note(learned.path, "session-start", "the store is busy")
    (other,) = asked("hooks")
    hook_log.note(learned.path, "session-start", "it took longer than 180 ms and gave up")
    (slow,) = asked("hooks")

    log = learned.path / hook_log.NAME
    os.utime(log, (time.time() - 2 * DAY_S,) * 2)

    assert before == []
    assert other[0] == slow[0] == "warning"
    assert "a line of the last day" in other[1]
    assert "the store is busy; mend" in other[1]
    assert "2 lines" in slow[1]
    assert "--within" in slow[1]
    assert asked("hooks") == []


def test_a_home_that_is_not_there_is_one_finding(tmp_path):
    (found,) = home_findings(tmp_path / "none")

    assert (found.level, found.what) == ("error", "home")
    assert "threadbook run" in found.told


@pytest.fixture
def canary(tmp_path):
    """What a made-up session finds on its way, under these settings."""

    def send(**settings):
        place = tmp_path / "canary"
        place.mkdir()
        opened = partial(Memory.open, settings={"database": "", **settings})
        return [(each.level, each.told) for each in round_trip(place, opened, now=time.time())]

    return send


def test_a_made_up_session_goes_the_whole_way(canary):
    ((level, told),) = canary()

    assert (level, "shown to the next one, and forgotten" in told) == ("fine", True)


@pytest.mark.parametrize("switch", ["use_memories", "generate_memories"])
def test_what_a_person_switched_off_is_told_and_is_no_fault(canary, switch):
    ((level, told),) = canary(**{switch: False})

    assert (level, f"`{switch} = false`" in told) == ("warning", True)


def test_where_nothing_is_shown_the_made_up_session_finds_it(canary):
    ((level, told),) = canary(max_rollout_age_days=0)

    assert (level, "is not shown" in told) == ("error", True)


@pytest.mark.parametrize(
    "text",
    ["min_rollout_idle_hours = 48", "max_rollout_age_days = 0", "max_unused_days = 0",
     "context_tokens = 100", 'scope = "global"'],
)  # fmt: skip
def test_a_persons_own_measure_is_no_fault_of_the_memory(learned, tmp_path, text):
    config = tmp_path / "config.toml"
    config.write_text(text)

    found = doctor(learned.path, clock=lambda: learned.now, config=config)

    assert [each.told for each in found if each.level == "error"] == []


@pytest.mark.parametrize("text", ['model = "openai"', 'consolidator = ["touch", "{mark}"]'])
def test_looking_for_what_is_wrong_asks_no_provider_and_starts_no_command(learned, tmp_path, text):
    mark, config = tmp_path / "started", tmp_path / "config.toml"
    config.write_text(text.replace("{mark}", str(mark)))

    found = doctor(learned.path, clock=lambda: learned.now, config=config)

    assert [each.level for each in found if each.what == "canary"] == ["fine"]
    assert not mark.exists()


def test_runs_that_are_refused_until_somebody_agrees_are_told(learned, tmp_path):
    config = tmp_path / "config.toml"
    config.write_text('model = "openai"\nbase_url = "http://127.0.0.1:9/v1"')

    def told():
        found = doctor(learned.path, clock=lambda: learned.now, config=config)
        return [each.told for each in found if each.what == "consent"]

    (before,) = told()
    nothing = tmp_path / "nothing"
    nothing.mkdir()
    with Memory.open(learned.path, clock=lambda: learned.now, config=config) as memory:
        memory.run(sessions=[nothing], consented=True)

    assert "127.0.0.1" in before
    assert "`threadbook run` asks" in before
    assert told() == []


def test_a_log_that_failed_verify_takes_nothing_and_doctor_says_so(learned):
    (learned.path / "verify-failed").write_text("{}")

    told = doctor(learned.path, clock=lambda: learned.now)

    assert [("verify" in each.told, each.level) for each in told if each.what == "store"] == [
        (True, "error")
    ]


def test_a_file_in_a_homes_place_is_no_missing_home(tmp_path):
    (tmp_path / "home").write_text("a letter")

    (found,) = home_findings(tmp_path / "home")

    assert (found.level, "no folder" in found.told) == ("error", True)


def test_a_way_that_breaks_is_told_with_what_broke_it(canary, tmp_path):
    (tmp_path / "a-file").write_text("in a home's place")
    place = tmp_path / "canary"
    place.mkdir()

    def opened(home):
        return Memory.open(tmp_path / "a-file", settings={"database": ""})

    (found,) = round_trip(place, opened, now=time.time())

    assert found.level == "error"
    assert "could not go the whole way" in found.told
