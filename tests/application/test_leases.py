"""Two workers, dead workers, and models that fail: nothing twice, nothing lost, nothing half."""

import subprocess
import sys
import threading

import pytest
from msgspec.structs import replace
from threadbook.adapters.offline import OfflineConsolidator
from threadbook.adapters.workers import Workers
from threadbook.application import claims, lease, phase1
from threadbook.application.explain import thread_lines
from threadbook.application.ports import ConsolidationFailed, ExtractionFailed, Failure, Proposal
from threadbook.application.roots import Root
from threadbook.domain.events import (
    ArtifactsPublished,
    Phase2Failed,
    Phase2LeaseClaimed,
    Phase2LeaseReleased,
    Phase2Succeeded,
    Stage1Failed,
    Stage1LeaseClaimed,
    Stage1LeaseReleased,
    Stage1Succeeded,
    Tokens,
)

from tests.application.homes import (
    HOUR_S,
    Home,
    Interrupting,
    Session,
    Telling,
    bytes_of,
    content,
)
from tests.application.leases import walked

pytestmark = pytest.mark.usefixtures("database")  # On the file and on a server.

A = Session(number=1)
B = Session(number=2, says=("please never use tabs in this project, always spaces",))


class Failing:
    name = "offline"
    kind = "offline"

    def __init__(self, reason="failed_agent"):
        self.reason = reason

    def propose(self, task):
        raise ConsolidationFailed(self.reason)


class Writing:
    """A consolidator that returns these files."""

    name = "offline"
    kind = "offline"

    def __init__(self, **files):
        self.files = files

    def propose(self, task):
        files = {**OfflineConsolidator().propose(task).files, **self.files}
        return Proposal(files={path: text for path, text in files.items() if text is not None})


BAD = {
    "no handbook": Writing(**{"MEMORY.md": None}),
    "no summary": Writing(**{"memory_summary.md": None}),
    "another schema": Writing(**{"memory_summary.md": "v2\nsomething\n"}),
    "white space before": Writing(**{"memory_summary.md": " v1\n"}),
    "a failure": Failing(),
}


def claim_phase2(home, *, worker_id, scope, lease_from=None):
    """A claim that nobody finishes, as a killed or slow worker leaves it."""
    from msgspec.structs import replace

    around = replace(home.memory._around, worker_id=worker_id)
    with home.memory.store.writing(actor="pipeline") as tx:
        return lease.claim(around, tx, Root(memory_version="v1", scope=scope))


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD.keys())
def test_a_consolidation_that_fails_leaves_the_folder_byte_for_byte(home, bad):
    home.write(A)
    home.run()
    before = bytes_of(home.root())
    home.write(B)

    report = home.later(60).run_with(consolidator=bad)

    (root,) = report.phase2
    reason = "failed_agent" if isinstance(bad, Failing) else "failed_invalid_artifacts"
    assert (root.status, root.reason) == ("failed", reason)
    assert (root.added, root.modified, root.deleted) == ([], [], [])
    assert bytes_of(home.root()) == before
    assert [e.reason for e in home.events(Phase2Failed)] == [reason]
    assert len(home.events(ArtifactsPublished)) == 1
    (told,) = home.memory.status()["roots"]
    assert told["state"].startswith(f"failed ({reason})")
    assert reason in " ".join(home.memory.status()["stuck"])
    assert reason in " ".join(home.memory.explain(B.id).waiting)
    assert home.selected() == {A.id}


def test_a_first_consolidation_that_fails_leaves_no_folder_and_says_why(home):
    home.write(A)

    report = home.run_with(consolidator=Failing())

    assert not report.all_failed  # The session was read.
    assert home.roots() == []
    (told,) = home.memory.status()["roots"]
    assert told["state"].startswith("failed (failed_agent)")


def test_a_failure_waits_an_hour_and_new_input_ends_the_wait(home):
    home.write(A)
    home.run_with(consolidator=Failing())

    waits = home.later(HOUR_S - 1).run()
    again = home.later(1).run_with(consolidator=Failing())
    home.write(B)
    at_once = home.later(60).run()

    assert (waits.phase2, waits.waiting) == ([], {"backoff": 1})
    assert [root.status for root in again.phase2] == ["failed"]
    assert [root.status for root in at_once.phase2] == ["succeeded"]
    assert home.selected() == {A.id, B.id}
    assert again.all_failed


def test_a_dead_worker_s_consolidation_is_given_back_and_done_at_once(home):
    home.write(A)
    home.memory.ingest([home.sessions])
    home.run_with(consolidator=Failing())
    home.later(HOUR_S)
    dead = home.memory._workers.name("deaddead")
    claim_phase2(home, worker_id=dead, scope=home.scope_of(A))

    report = home.run()

    assert [root.status for root in report.phase2] == ["succeeded"]
    assert [e.reason for e in home.events(Phase2LeaseReleased)] == ["stopped"]


def test_a_worker_of_another_machine_keeps_its_lease_until_it_ends(home):
    home.write(A)
    home.run_with(consolidator=Failing())
    home.later(HOUR_S)
    claim_phase2(home, worker_id="00000000-1-elsewhere", scope=home.scope_of(A))
    waited = []

    def sleep(seconds):
        waited.append(seconds)
        if len(waited) == 3:
            home.later(HOUR_S)

    report = home.run_with(sleep=sleep)

    assert len(waited) == 3
    assert [root.status for root in report.phase2] == ["succeeded"]
    assert home.events(Phase2LeaseReleased) == []
    assert home.events(Phase2LeaseClaimed)[-1].taken_over_from is not None


def gone(home, where):
    """A worker that will not come back: killed here, or of another machine and out of time."""
    if where == "here":
        return home.memory._workers.name("deaddead"), lambda: None
    return "anothermachine-1-deaddead", lambda: home.later(HOUR_S)


@pytest.mark.parametrize("where", ["here", "elsewhere"])
def test_the_lease_of_who_is_gone_ends_although_nobody_may_claim_the_session(home, where):
    worker_id, out_of_time = gone(home, where)
    home.write(A)
    home.memory.ingest([home.sessions])
    around = replace(home.memory._around, worker_id=worker_id)
    with home.memory.store.writing(actor="pipeline") as tx:
        claims.claim(around, tx, A.id, backfill=False, unfinished_mtime_ms=None)
    home.memory.pollute(A.id)

    out_of_time()
    home.run()

    [released] = home.events(Stage1LeaseReleased)
    assert (released.reason, released.retry_remaining) == ("worker_gone", 2)
    assert home.memory.status()["stuck"] == []
    assert walked(home.log()) == {"stage1 given back for the dead": 1}
    home.memory.set_mode(A.id, "enabled")
    assert home.run().stage1.succeeded == 1


@pytest.mark.parametrize("where", ["here", "elsewhere"])
def test_the_lease_of_who_is_gone_ends_although_the_root_needs_nothing(home, where):
    worker_id, out_of_time = gone(home, where)
    home.write(A)
    home.run()
    claim_phase2(home, worker_id=worker_id, scope=home.scope_of(A))

    out_of_time()
    report = home.run()

    assert report.phase2 == []
    assert home.memory.status()["stuck"] == []
    assert home.phase2_job(home.scope_of(A)).status == "pending"


def test_a_live_worker_is_waited_for_and_its_work_is_enough(home):
    home.write(A, B)
    other = home.another()
    entered, go_on = threading.Event(), threading.Event()

    def work():
        def stop():
            entered.set()
            assert go_on.wait(30)

        home.run_with(consolidator=Interrupting(stop), memory=other)

    first = threading.Thread(target=work)
    first.start()
    assert entered.wait(30)
    polls = []

    def sleep(seconds):
        polls.append(seconds)
        go_on.set()
        first.join(30)

    report = home.run_with(sleep=sleep)
    first.join(30)

    assert polls
    assert report.phase2 == []
    assert len(home.events(Phase2Succeeded)) == 1
    assert home.selected() == {A.id, B.id}


def test_a_root_whose_session_somebody_is_reading_is_left_to_them(home):
    home.write(A, B)
    seen = []

    def while_b_is_read(header, items):
        other = home.run_with(memory=home.another())
        seen.append((other.waiting, other.phase2))
        from threadbook.adapters.offline import OfflineExtractor

        return OfflineExtractor().extract(header, items)

    report = home.run_with(extractor=Telling(**{A.id: while_b_is_read}))

    ((waiting, phase2_of_other),) = seen
    assert waiting == {"running": 1, "phase1_running": 1}
    assert phase2_of_other == []
    assert [root.status for root in report.phase2] == ["succeeded"]
    assert home.selected() == {A.id, B.id}
    assert len(home.events(Stage1Succeeded)) == 2


def test_a_lease_that_was_lost_records_nothing_and_the_run_looks_again(home):
    home.write(A)
    scope = []

    def takes_over():
        home.later(2 * HOUR_S)
        scope.append(home.scope_of(A))
        claim_phase2(home, worker_id=home.memory._workers.name("thief"), scope=scope[0])

    report = home.run_with(consolidator=Interrupting(takes_over))

    assert [root.status for root in report.phase2] == ["succeeded"]
    assert len(home.events(ArtifactsPublished)) == 1
    tokens = [e.ownership_token for e in home.events(Phase2LeaseClaimed)]
    assert len(set(tokens)) == 3
    assert home.events(Phase2Succeeded)[0].ownership_token == tokens[-1]


def test_what_offline_has_read_waits_for_a_model_and_says_so(home):
    home.write(A)
    home.run()
    policy = home.memory._around.policy

    with home.memory.store.reading() as view:
        (offline,) = thread_lines(view, policy, extractor="offline", now=int(home.now))
        (model,) = thread_lines(view, policy, extractor="gpt-6-luna", now=int(home.now))

    assert (offline.stage1, model.stage1) == ("succeeded", "waiting")


def test_a_failed_reading_waits_and_spends_a_try_and_leaves_the_rest_alone(home):
    home.write(A, B)

    report = home.run_with(extractor=Telling(**{A.id: fails("bad_reply", "no_json")}))
    waits = home.later(60).run()
    told = home.memory.explain(A.id)
    again = home.later(HOUR_S).run()

    assert (report.stage1.failed, report.stage1.succeeded) == (1, 1)
    assert waits.waiting == {"backoff": 1}
    (failed,) = home.events(Stage1Failed)
    assert (failed.reason, failed.retry_remaining) == ("no_json", 2)
    assert "it failed (no_json)" in " ".join(told.waiting)
    assert again.stage1.succeeded == 1
    assert home.selected() == {A.id, B.id}


def test_a_run_says_what_its_calls_cost_those_that_failed_included(home):
    class Billed(Telling):
        def extract(self, material):
            if material.header.thread_id == B.id:
                raise ExtractionFailed("refused", "refused", tokens=cost(calls=1, input=70))
            return replace(super().extract(material), tokens=cost(calls=2, output=9))

    home.write(A, B)

    first = home.run_with(extractor=Billed())
    second = home.later(60).run()

    assert first.tokens == cost(calls=3, input=70, output=9)
    assert second.tokens == Tokens()


def test_what_another_run_spends_meanwhile_is_that_runs_cost(home):
    inner = []

    class Billed(Telling):
        def extract(self, material):
            return replace(super().extract(material), tokens=cost(calls=2))

    class Interrupted(Telling):
        def extract(self, material):
            if not inner:
                with home.another() as other:
                    inner.append(home.run_with(extractor=Billed(), memory=other))
            return replace(super().extract(material), tokens=cost(calls=1))

    home.write(A, B)

    outer = home.run_with(extractor=Interrupted())

    assert (outer.stage1.succeeded, outer.tokens) == (1, cost(calls=1))
    assert (inner[0].stage1.succeeded, inner[0].tokens) == (1, cost(calls=2))


def cost(**counts):
    return Tokens(model="gpt-6-luna", **counts)


def test_three_failures_close_a_session_until_it_goes_on_and_that_is_seen(home):
    home.write(A)
    failing = Telling(**{A.id: fails("bad_reply", "no_json")})

    for _ in range(3):
        home.run_with(extractor=failing)
        home.later(2 * HOUR_S)
    closed = home.run_with(extractor=failing)
    stuck = home.memory.status()["stuck"]
    home.write(Session(number=1, says=(*A.says, "more"), ended_at=int(home.now) - 7 * HOUR_S))
    more = home.later(60).run()

    assert closed.waiting == {"retry_exhausted": 1}
    assert len(failing.read) == 3
    assert stuck == [
        f"thread {A.id}: no_json 2:00:00 ago, and no tries are left; it is read again when the"
        " session goes on, or with `threadbook run --again`"
    ]
    assert (more.stage1.claimed, more.stage1.succeeded) == (1, 1)


def test_a_transient_failure_spends_no_try(home):
    home.write(A)

    for _ in range(5):
        home.run_with(extractor=Telling(**{A.id: fails("transient", "server_error")}))
        home.later(HOUR_S)

    assert [e.retry_remaining for e in home.events(Stage1Failed)] == [3] * 5
    assert home.run().stage1.succeeded == 1


def fails(kind, reason):
    def fail(header, items):
        raise ExtractionFailed(kind, reason)

    return fail


@pytest.mark.parametrize("stop", [KeyboardInterrupt, RuntimeError], ids=["person", "mistake"])
def test_a_run_that_is_stopped_gives_both_kinds_of_lease_back(home, stop):
    home.write(A)

    def stops(*_):
        raise stop

    with pytest.raises(stop):
        home.run_with(extractor=Telling(**{A.id: stops}))
    given = home.events(Stage1LeaseReleased)
    with pytest.raises(stop):
        home.run_with(consolidator=Interrupting(stops))

    assert [e.reason for e in given] == ["stopped"]
    assert [e.reason for e in home.events(Phase2LeaseReleased)] == ["stopped"]
    report = home.run()
    assert [root.status for root in report.phase2] == ["succeeded"]


def test_a_reading_whose_lease_was_lost_is_nobody_s(home):
    home.write(A)

    def forgets(header, items):
        home.another().forget(A.id)
        from threadbook.adapters.offline import OfflineExtractor

        return OfflineExtractor().extract(header, items)

    report = home.run_with(extractor=Telling(**{A.id: forgets}))

    assert (report.stage1.succeeded, report.phase2) == (0, [])
    assert home.outputs() == []
    assert home.events(Stage1Succeeded) == []
    assert "make check" not in "".join(
        p.read_bytes().decode("latin-1") for p in home.path.rglob("*") if p.is_file()
    )


def test_the_mode_that_counts_is_the_one_when_the_reading_ends(home):
    home.write(A)

    def pollutes(header, items):
        home.another().pollute(A.id, "web_search")
        from threadbook.adapters.offline import OfflineExtractor

        return OfflineExtractor().extract(header, items)

    report = home.run_with(extractor=Telling(**{A.id: pollutes}))

    assert [o.memory_mode for o in home.outputs()] == ["polluted"]
    assert report.phase2 == []
    assert home.selected() == set()


def test_runs_of_one_object_follow_each_other(home):
    home.write(A, B)
    runs = [threading.Thread(target=home.run) for _ in range(4)]

    for each in runs:
        each.start()
    for each in runs:
        each.join(60)

    claims = [e.thread_id for e in home.events(Stage1LeaseClaimed)]
    assert sorted(claims) == [A.id, B.id]
    assert len(home.events(Phase2Succeeded)) == 1
    assert home.selected() == {A.id, B.id}


def test_a_run_that_others_could_not_see_says_so_and_does_nothing(home):
    (home.path / "workers").write_text("a file")
    home.write(A)
    before = home.position

    with pytest.raises(Failure, match="workers") as failed:
        home.run()

    assert "check the folder" in str(failed.value)
    assert home.position == before


def test_a_worker_is_alive_for_as_long_as_its_block_or_its_process(tmp_path):
    workers = Workers(tmp_path, "0123456789abcdef")
    name = workers.name("one")

    with workers.at_work(name):
        inside = workers.is_alive(name)
    script = (
        "import sys, time; from pathlib import Path;"
        "from threadbook.adapters.workers import Workers;"
        f"w = Workers(Path({str(tmp_path)!r}), '0123456789abcdef');"
        "cm = w.at_work('01234567-1-two'); cm.__enter__(); print('in', flush=True);"
        "sys.stdin.read()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "in\n"
    there = workers.is_alive("01234567-1-two")
    process.kill()
    process.wait(30)

    assert inside
    assert not workers.is_alive(name)
    assert there
    assert not workers.is_alive("01234567-1-two")
    assert workers.is_alive("fedcba98-1-other")  # Of another machine nothing is known.
    with workers.at_work(name):
        pass
    assert list((tmp_path / "workers").iterdir()) == []


def test_what_a_worker_had_in_hand_is_known_when_it_is_gone(tmp_path):
    workers = Workers(tmp_path, "0123456789abcdef")
    name = workers.name("one")

    before = workers.had_in_hand(name)
    workers.take_in_hand(name, "nobody is at work")
    with workers.at_work(name):
        at_first = workers.had_in_hand(name)
        workers.take_in_hand(name, A.id)
        then = workers.had_in_hand(name)
        workers.take_in_hand(name, "")
        at_last = workers.had_in_hand(name)

    assert (before, at_first, then, at_last) == (None, None, A.id, "")
    assert workers.had_in_hand(name) is None


def test_who_comes_second_by_the_same_name_is_seen_as_alive(tmp_path):
    workers = Workers(tmp_path, "0123456789abcdef")
    name = workers.name("one")
    inside, leave, seen = threading.Event(), threading.Event(), []

    def second():
        with workers.at_work(name):
            inside.set()
            leave.wait(30)

    with workers.at_work(name):
        thread = threading.Thread(target=second)
        thread.start()
    assert inside.wait(30)
    seen.append(workers.is_alive(name))
    leave.set()
    thread.join(30)

    assert seen == [True]


def test_phase1_claims_nothing_of_what_is_up_to_date(home):
    home.write(A)
    home.run()

    report = phase1.run(home.memory._around, run_id="r", backfill=None, sighted={}, waiting={})

    assert report.claimed == 0
    assert isinstance(home, Home)
    assert content(home.root())
