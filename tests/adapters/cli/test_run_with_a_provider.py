"""`threadbook run --model openai --yes` to its end, whatever the server answers: what happened to
each session, what it cost, and what is tried again when."""

import json
import signal
import time

import pytest
from threadbook.adapters.models.stage_one import digest

from tests.adapters.cli.commands import Commands
from tests.application.homes import NOON, Home, Session, rfc
from tests.model_server import CASES, DERIVED, ModelServer
from tests.support import HOUR_S

KEY = "sk-proj-" + "Zq9Xw3Vt7" * 5
FALLS_BACK = {name for name, case in CASES.items() if case["verdict"] == "fallback"}
# Verdict -> the session's state, whether it is tried again, and how many tries it has then.
ENDS = {
    "store": ("succeeded", None, 3),
    "no_output": ("no_output", None, 3),
    "fail_retry": ("failed", 3_600, 2),
    "fail_final": ("failed", None, 0),
}
LAST_TRY_UNSPENT = {"rate_limited": 7}  # The wait that its reply states; it costs no try.


@pytest.fixture
def server():
    with ModelServer() as started:
        yield started


@pytest.fixture
def home(tmp_path, server, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("THREADBOOK_BASE_URL", server.base_url)
    monkeypatch.setenv("THREADBOOK_MAX_ROLLOUTS_PER_STARTUP", "128")
    monkeypatch.setenv("THREADBOOK_CONFIG", str(tmp_path / "config.toml"))
    (tmp_path / "config.toml").write_text('model = "openai"\n')
    made = Home(tmp_path)
    made.memory.close()
    return made


@pytest.fixture
def threadbook(home, monkeypatch, capsys):
    return Commands(home, monkeypatch, capsys)


def one_for_each(cases):
    """A session for each case, and the script that answers it so."""
    sessions = {
        name: Session(number=at, ended_at=NOON - 7 * HOUR_S - at)
        for at, name in enumerate(sorted(cases), start=1)
    }
    return sessions, {session.id: name for name, session in sessions.items()}


def run(threadbook, home, *more):
    return threadbook("run", "--yes", "--json", "--sessions", home.sessions, *more)


@pytest.mark.parametrize("style", ["sse", "json"])
def test_every_kind_of_reply_ends_right_and_status_says_how(server, home, threadbook, style):
    sessions, script = one_for_each(CASES.keys() - FALLS_BACK)
    home.write(*sessions.values())
    server.script, server.style = script, style

    told = run(threadbook, home)
    status = threadbook("status", "--json").json
    threads = {each["thread_id"]: each for each in threadbook("threads", "--json").json}
    log = threadbook("log", "--json").json

    assert told.code == 0, told.err
    for name, session in sessions.items():
        state, wait_s, tries = ENDS[CASES[name]["verdict"]]
        if name in LAST_TRY_UNSPENT:
            wait_s, tries = LAST_TRY_UNSPENT[name], 3
        assert threads[session.id]["stage1"] == state, name
        why = threadbook("explain", session.id, "--json").json
        if state == "failed":
            (event,) = events(log, session.id, "stage1.failed")
            assert event["prompt_digest"] == digest("v1"), name
            assert event["retry_remaining"] == tries, name
            assert event["retry_at"] == (None if wait_s is None else NOON + wait_s), name
            (line,) = [line for line in status["stuck"] if session.id in line]
            again = "no tries are left" if wait_s is None else rfc(NOON + wait_s)[:19]
            assert again in line, name
        assert why["spent"][0]["calls"] >= 1, name
        assert why["spent"][0]["model"] == "gpt-6-luna", name
    spent = sum(each["tokens"]["calls"] for each in every(log) if "tokens" in each)
    assert told.json["tokens"]["calls"] == spent
    assert any("phase1 gpt-6-luna" in line for line in status["spend"])
    assert status["budget"]["spent_today"] > 0
    assert KEY not in json.dumps([log, status]) + told.out


def every(log):
    return [each | each["data"] for each in log]


def events(log, thread_id, kind):
    return [
        each for each in every(log) if each.get("thread_id") == thread_id and each["type"] == kind
    ]


@pytest.mark.parametrize("case", sorted(FALLS_BACK))
def test_a_weaker_server_is_asked_in_its_own_way_and_remembered(server, home, threadbook, case):
    home.write(Session(number=1))
    server.script = case

    first = run(threadbook, home)
    once = [asked.mode for asked in server.asked]
    home.write(Session(number=2))
    second = run(threadbook, home)

    assert first.json["stage1"]["succeeded"] == second.json["stage1"]["succeeded"] == 1
    phase1 = [asked.mode for asked in server.asked if not asked.body.get("tools")]
    assert once[0] == "responses"
    assert "responses" not in phase1[1:]


def test_nothing_is_sent_without_a_word_and_the_word_is_asked_for_once(server, home, threadbook):
    home.write(Session(number=1))

    refused = threadbook("run", "--sessions", home.sessions)
    agreed = run(threadbook, home)
    home.write(Session(number=2))
    later = threadbook("run", "--json", "--sessions", home.sessions)

    assert refused.code == 1
    assert server.base_url in refused.line
    assert "--yes" in refused.line
    assert agreed.json["stage1"]["succeeded"] == later.json["stage1"]["succeeded"] == 1


def test_a_password_in_the_address_is_used_and_neither_shown_nor_recorded(
    server, home, threadbook, monkeypatch
):
    address = server.base_url.replace("//", "//fern:hunter2sesame@")
    monkeypatch.setenv("THREADBOOK_BASE_URL", address)
    home.write(Session(number=1))

    refused = threadbook("run", "--sessions", home.sessions)
    agreed = run(threadbook, home)
    told = [
        threadbook(*words).out for words in (["status"], ["status", "--json"], ["log", "--json"])
    ]

    assert agreed.json["stage1"]["succeeded"] == 1
    assert server.asked[0].headers["authorization"].startswith("Basic ")
    assert server.base_url in refused.line
    assert server.base_url in told[0]
    for said in (refused.err, agreed.out, *told):
        assert "hunter2" not in said
    for path in home.path.rglob("*"):
        assert not path.is_file() or b"hunter2" not in path.read_bytes(), path


@pytest.mark.parametrize(
    "address", ["http://127.0.0.1:99999/v1", "http://a/v1?key=sesame", "http:///v1", "http://a b/v"]
)
def test_an_address_that_is_none_is_told_before_anything_is_done(
    home, threadbook, monkeypatch, address
):
    monkeypatch.setenv("THREADBOOK_BASE_URL", address)
    monkeypatch.setenv("OPENAI_BASE_URL", address)

    of_ours = threadbook("status")
    monkeypatch.delenv("THREADBOOK_BASE_URL")
    home.write(Session(number=1))
    of_the_sdk = threadbook("run", "--yes", "--sessions", home.sessions)

    assert of_ours.code == 2
    assert "`base_url`" in of_ours.line
    assert "sesame" not in of_ours.line + of_the_sdk.out + threadbook("log", "--json").out
    assert of_the_sdk.code == 3
    assert "`base_url`" in of_the_sdk.out


def test_a_run_with_nothing_new_asks_nobody(server, home, threadbook):
    home.write(Session(number=1))
    run(threadbook, home)
    before = len(server.asked)

    again = run(threadbook, home)

    assert again.json["stage1"]["claimed"] == 0
    assert len(server.asked) == before > 0


def test_a_rehearsal_asks_nobody_and_needs_no_word(server, home, threadbook):
    home.write(Session(number=1), Session(number=2))

    told = threadbook("run", "--dry-run", "--json", "--sessions", home.sessions)

    assert told.json["stage1"]["claimed"] == 2
    assert not server.asked


def test_a_killed_key_is_said_in_words_and_the_others_wait(server, home, threadbook):
    home.write(*(Session(number=number) for number in range(1, 4)))
    server.script = "unauthorized"

    told = threadbook("run", "--yes", "--sessions", home.sessions)

    assert told.code == 3
    assert "OPENAI_API_KEY" in told.out
    assert "Traceback" not in told.out + told.err


def test_a_server_that_is_not_there_costs_no_try(server, home, threadbook, monkeypatch):
    monkeypatch.setenv("THREADBOOK_BASE_URL", "http://127.0.0.1:9/v1")
    home.write(*(Session(number=number) for number in range(1, 31)))

    told = threadbook("run", "--yes", "--sessions", home.sessions)
    failed = [e for e in every(threadbook("log", "--json").json) if e["type"] == "stage1.failed"]

    assert told.code == 3
    assert "cannot be reached" in told.out
    assert {(each["kind"], each["retry_remaining"]) for each in failed} == {("transient", 3)}
    assert len(failed) <= 16  # Those that were on their way; the others were not tried.


def test_a_run_in_a_process_of_its_own_gives_its_leases_back_when_it_is_stopped(
    server, home, threadbook
):
    home.write(*(Session(number=number) for number in range(1, 13)))
    server.script = "hang"

    process = threadbook.process("run", "--yes", "--sessions", home.sessions)
    server.wait_for(8, timeout_s=30)
    process.terminate()
    out, err = process.communicate(timeout=20)
    server.script = DERIVED
    after = run(threadbook, home)

    assert process.returncode not in (0, None)
    assert "Traceback" not in out + err
    released = [
        e for e in every(threadbook("log", "--json").json) if e["type"] == "stage1.lease_released"
    ]
    assert len(released) == 8
    assert all(each["tokens"]["calls"] == 1 for each in released)
    assert after.json["stage1"]["succeeded"] == 12


@pytest.mark.parametrize("numbers", [(signal.SIGINT,) * 3, (signal.SIGTERM, signal.SIGINT)])
def test_who_stops_a_run_twice_loses_no_lease_and_no_count(server, home, threadbook, numbers):
    home.write(*(Session(number=number) for number in range(1, 9)))
    server.script = "hang"

    process = threadbook.process("run", "--yes", "--sessions", home.sessions)
    server.wait_for(8, timeout_s=30)
    for number in numbers:
        process.send_signal(number)
        time.sleep(0.01)  # Signals that wait are one signal.
    out, err = process.communicate(timeout=20)

    released = [
        e for e in every(threadbook("log", "--json").json) if e["type"] == "stage1.lease_released"
    ]
    assert "Traceback" not in out + err
    assert sum(each["tokens"]["calls"] for each in released) == len(released) == 8


def test_a_run_that_failed_says_whom_to_ask_again_and_calls_no_folder_up_to_date(
    server, home, threadbook, monkeypatch
):
    monkeypatch.setenv("THREADBOOK_MAX_ROLLOUTS_PER_STARTUP", "1")
    home.write(*(Session(number=number) for number in range(1, 3)))
    server.script = "unauthorized"

    told = threadbook("run", "--model", "openai", "--yes", "--sessions", home.sessions)

    assert told.code == 3
    assert "refuses the key" in told.out
    assert "`threadbook run --model openai --backfill N`" in told.out
    assert "1 call to the provider: " in told.out
    assert "up to date" not in told.out


def test_a_folder_that_rests_is_told_so_with_how_not_to_wait(home, threadbook):
    home.write(Session(number=1))
    run(threadbook, home)
    home.write(Session(number=2))

    told = threadbook("run", "--yes", "--sessions", home.sessions)
    status = threadbook("status")

    assert "a folder rests for six hours" in told.out
    assert "behind, and rests until " in status.out
    assert "`threadbook run --consolidate`" in status.out


def test_a_killed_run_costs_no_session_that_waited_for_an_answer_a_try(server, home, threadbook):
    home.write(*(Session(number=number) for number in range(1, 13)))
    server.script = "hang"

    process = threadbook.process("run", "--yes", "--sessions", home.sessions)
    server.wait_for(8, timeout_s=30)
    process.kill()
    process.communicate(timeout=20)
    server.script = DERIVED
    after = run(threadbook, home)

    released = [
        e for e in every(threadbook("log", "--json").json) if e["type"] == "stage1.lease_released"
    ]
    assert len(released) == 8
    # The last that was claimed may have been in hand still.
    assert [each["reason"] for each in released].count("worker_gone") <= 1
    assert after.json["stage1"]["succeeded"] == 12
    assert not list((home.path / "workers").iterdir())


def test_without_a_key_nothing_is_sent_to_openai(home, threadbook, monkeypatch):
    monkeypatch.delenv("THREADBOOK_BASE_URL")
    monkeypatch.delenv("OPENAI_API_KEY")
    home.write(Session(number=1))

    told = threadbook("run", "--yes", "--sessions", home.sessions)

    assert told.code == 2  # As any setting that is wrong.
    assert "OPENAI_API_KEY" in told.line
    assert "base_url" in told.line
