"""Whole runs with a provider's model, or a command of the user's, in both phases: real HTTP, real
programs, and the folder that comes of it."""

import json
import signal
import sys

import pytest
from threadbook.domain.artifact import problems
from threadbook.domain.events import ArtifactsPublished, Phase2Failed, Phase2LeaseReleased

from tests.adapters.cli.commands import Commands
from tests.application.homes import MOSS, ROOT, Home, Session
from tests.model_server import DERIVED, ModelServer, Reply, call, refusal, response
from tests.model_turns import NEVER, outputs, wrote
from tests.support import DAY_S, HOUR_S

MODEL, READER = "gpt-6.1-terra", "gpt-6-luna"
SESSIONS = (
    Session(number=1, says=("from now on FACT[run make check before a commit]",)),
    Session(number=2, says=("please FACT[use spaces, never tabs]",)),
    Session(number=3, says=("here FACT[deploys happen on Mondays]",), cwd=MOSS),
)


@pytest.fixture(autouse=True)
def _key(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")


def providers_home(tmp_path, server, **settings):
    given = {"model": "openai", "base_url": server.base_url, "max_rollouts_per_startup": 8}
    home = Home(tmp_path, **(given | settings))
    home.write(*SESSIONS)
    return home


def careless(asked):
    """It writes a line without a source, and finishes."""
    given = outputs(asked)
    name, arguments = ("finish", {}) if given else wrote("MEMORY.md", "- trust me\n")
    return Reply(response(call(name, arguments, call_id=f"call_{len(given)}")))


def in_tools(script):
    """Sessions are read as ever; whoever has tools gets the script."""
    return lambda asked: script if asked.body.get("tools") else DERIVED


def folders(home, version="v1"):
    """Scope's name without its digest -> path -> text, of what is published."""
    above = home.path / "memories" / version
    return {
        root.name.rpartition("-")[0]: {
            path.relative_to(root).as_posix(): path.read_text()
            for path in sorted(root.rglob("*"))
            if path.is_file() and ".git" not in path.parts
        }
        for root in sorted(above.iterdir())
    }


def events(home, kind):
    return [each.event for each in home.memory.log() if isinstance(each.event, kind)]


def staging_left(home):
    there = home.path / "staging"
    return sorted(there.iterdir()) if there.exists() else []


@pytest.mark.parametrize("version", ["v1", "v2"])
@pytest.mark.parametrize("style", ["sse", "json"])
def test_a_run_builds_a_folder_a_project_from_what_the_model_says(tmp_path, version, style):
    with ModelServer(style=style) as server:
        home = providers_home(tmp_path, server, version=version)
        report = home.run(consented=True)

    assert [each.status for each in report.phase2] == ["succeeded", "succeeded"]
    made = folders(home, version)
    names = ["MEMORY.md", "memory_summary.md"] if version == "v1" else ["memory_summary.md"]
    for scope, said in (
        ("project-fern", ("run make check before a commit", "use spaces, never tabs")),
        ("project-moss", ("deploys happen on Mondays",)),
    ):
        artifacts = {name: made[scope][name] for name in names}
        assert problems(artifacts, version=version) == []
        assert all(fact in artifacts[name] for fact in said for name in names)
    assert staging_left(home) == []


def test_both_versions_are_built_where_both_are_written(tmp_path):
    with ModelServer() as server:
        home = providers_home(tmp_path, server, dual_write=True, scope="global")
        report = home.run(consented=True)

    assert [(each.version, each.status) for each in report.phase2] == [
        ("v1", "succeeded"),
        ("v2", "succeeded"),
    ]
    for version in ("v1", "v2"):
        text = (home.path / "memories" / version / "global" / "memory_summary.md").read_text()
        assert "deploys happen on Mondays" in text


def test_who_wrote_it_with_which_prompt_tools_and_tokens_is_in_the_log(tmp_path):
    with ModelServer() as server:
        home = providers_home(tmp_path, server)
        report = home.run(consented=True)
        asked = [each for each in server.asked if each.body.get("tools")]

    published = events(home, ArtifactsPublished)
    assert {each.consolidator for each in published} == {MODEL}
    assert {each.tokens.model for each in published} == {MODEL}
    assert sum(each.tokens.calls for each in published) == len(asked)
    assert all(each.tool_calls == {"read": 1, "write": 2, "finish": 1} for each in published)
    with home.memory.store.reading() as view:
        uses = json.loads(view.body(published[0].tool_uses_ref))
    assert [(use["tool"], use.get("path")) for use in uses] == [
        ("read", "raw_memories.md"),
        ("write", "MEMORY.md"),
        ("write", "memory_summary.md"),
        ("finish", None),
    ]
    assert all(use.keys() <= {"tool", "path", "bytes", "refused", "to"} for use in uses)
    assert min(use["bytes"] for use in uses[:3]) > 100
    assert len({each.prompt_digest for each in published}) == 1
    assert report.tokens.calls == len(server.asked)
    assert {each.body["model"] for each in asked} == {MODEL}
    assert all(each.headers["authorization"] == "Bearer sk-test" for each in server.asked)


def test_a_run_with_nothing_new_calls_nobody(tmp_path):
    with ModelServer() as server:
        home = providers_home(tmp_path, server)
        home.run(consented=True)
        before, asked = folders(home), len(server.asked)
        report = home.later(DAY_S / 2).run()

        assert len(server.asked) == asked
    assert report.tokens.calls == 0
    assert folders(home) == before


def test_a_session_more_is_one_folders_work(tmp_path):
    with ModelServer() as server:
        home = providers_home(tmp_path, server)
        home.run(consented=True)
        moss = folders(home)["project-moss"]
        home.later(DAY_S / 2)
        fact = "never push on a Friday"
        home.write(Session(number=4, says=(f"FACT[{fact}]",), ended_at=int(home.now) - 7 * HOUR_S))
        home.run()

    made = folders(home)
    assert fact in made["project-fern"]["MEMORY.md"]
    assert "run make check before a commit" in made["project-fern"]["MEMORY.md"]
    assert made["project-moss"] == moss


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        (Reply(response(refusal("no"))), "failed_agent:refused"),
        ("content_filter", "failed_agent:content_filter"),
        ("context_length", "failed_agent:context_too_long"),
        (careless, "failed_invalid_artifacts"),
        ("insufficient_quota", "failed_agent:quota_used_up"),
        ("unauthorized", "failed_agent:key_refused"),
    ],
)
def test_a_consolidation_that_fails_leaves_the_folder_as_it_was_and_says_why(
    tmp_path, script, reason
):
    with ModelServer() as server:
        home = providers_home(tmp_path, server)
        home.run(consented=True)
        before = folders(home)
        server.script = in_tools(script)
        home.later(DAY_S / 2)
        home.write(Session(number=4, says=("FACT[more]",), ended_at=int(home.now) - 7 * HOUR_S))
        report = home.run()

    assert [each.reason for each in report.phase2 if each.status == "failed"] == [reason]
    assert folders(home) == before
    assert [each.reason for each in events(home, Phase2Failed)] == [reason]
    assert all(each.tokens.calls for each in events(home, Phase2Failed))
    assert {each.prompt_digest for each in events(home, Phase2Failed)} == {
        each.prompt_digest for each in events(home, ArtifactsPublished)
    }
    assert staging_left(home) == []
    assert reason in json.dumps(home.memory.status())


def test_a_model_that_changes_nothing_has_consolidated(tmp_path):
    with ModelServer() as server:
        home = providers_home(tmp_path, server)
        home.run(consented=True)
        before = folders(home)
        server.script = in_tools(Reply(response("There is nothing to do.")))
        home.later(DAY_S / 2)
        home.write(Session(number=4, says=("FACT[more]",), ended_at=int(home.now) - 7 * HOUR_S))
        report = home.run()

    assert [each.status for each in report.phase2] == ["succeeded"]
    assert folders(home)["project-fern"]["MEMORY.md"] == before["project-fern"]["MEMORY.md"]


def test_what_was_refused_is_told_and_may_be_mended(tmp_path):
    def mends(asked):
        return DERIVED if "trust me" in asked.text or "Refused" in asked.evidence else careless

    with ModelServer(in_tools(lambda asked: mends(asked))) as server:
        home = providers_home(tmp_path, server, scope="global")
        report = home.run(consented=True)
        repairs = [each.evidence for each in server.asked if "Refused" in each.evidence]

    assert [each.status for each in report.phase2] == ["succeeded"]
    assert "- memory_summary.md is missing\n" in repairs[0]


def test_a_model_that_never_finishes_costs_its_turns_and_publishes_nothing(tmp_path):
    def never(asked):
        ((name, arguments),) = NEVER
        return Reply(response(call(name, arguments, call_id=f"call_{len(outputs(asked))}")))

    with ModelServer(in_tools(never)) as server:
        home = providers_home(tmp_path, server, scope="global")
        report = home.run(consented=True)

    (failed,) = events(home, Phase2Failed)
    assert (failed.reason, failed.tokens.calls) == ("failed_agent:turn_limit", 40)
    assert [each.status for each in report.phase2] == ["failed"]
    assert not events(home, ArtifactsPublished)
    assert staging_left(home) == []


def test_threadbook_run_with_the_model_and_a_yes_is_the_same_as_a_program(
    tmp_path, monkeypatch, capsys
):
    with ModelServer() as server:
        monkeypatch.setenv("THREADBOOK_BASE_URL", server.base_url)
        monkeypatch.setenv("THREADBOOK_MAX_ROLLOUTS_PER_STARTUP", "8")
        home = Home(tmp_path)
        home.write(*SESSIONS)
        commands = Commands(home, monkeypatch, capsys)
        home.memory.close()
        refused = commands("run", "--sessions", home.sessions, "--model", "openai")
        asked = len(server.asked)
        done = commands.alone("run", "--sessions", home.sessions, "--model", "openai", "--yes")

    assert (refused.code, asked) == (1, 0)
    assert done.code == 0, done.err
    home.memory = home.another()
    assert "deploys happen on Mondays" in folders(home)["project-moss"]["MEMORY.md"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_run_that_is_ended_in_a_call_leaves_the_folder_and_the_next_one_goes_on(
    tmp_path, monkeypatch, capsys, number
):
    with ModelServer() as server:
        monkeypatch.setenv("THREADBOOK_BASE_URL", server.base_url)
        home = providers_home(tmp_path, server, scope="global")
        home.run(consented=True)
        before = bytes_of(home)
        home.later(DAY_S / 2)
        home.write(Session(number=4, says=("FACT[more]",), ended_at=int(home.now) - 7 * HOUR_S))
        server.script, asked = in_tools("hang"), len(server.asked)
        process = Commands(home, monkeypatch, capsys).process(
            "--config", scoped(tmp_path), "run", "--sessions", home.sessions, "--model", "openai"
        )
        server.wait_for(asked + 2)
        at_work = staging_left(home)
        process.send_signal(number)
        process.communicate(timeout=30)
        after, left = bytes_of(home), staging_left(home)
        server.script = DERIVED
        home.run()

    assert len(at_work) == 1
    assert after == before
    assert left == ([] if number == signal.SIGTERM else at_work)
    assert staging_left(home) == []
    assert "- more [Task 4]" in (home.path / "memories/v1/global/MEMORY.md").read_text()
    if number == signal.SIGTERM:  # What it had cost, as far as anybody knows, is booked.
        (released,) = events(home, Phase2LeaseReleased)
        assert (released.reason, released.tokens.calls) == ("stopped", 1)


def bytes_of(home):
    root = home.path / "memories"
    return {path: path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


def scoped(tmp_path):
    file = tmp_path / "config.toml"
    file.write_text('scope = "global"\n')
    return file


COMMAND = """
import pathlib, sys
sys.path.insert(0, {root!r})
from tests.model_consolidates import THREAD, memory, summary
assert "Mode: " in sys.stdin.read()
raw = pathlib.Path("raw_memories.md").read_text()
threads = [(each["id"], each["rest"]) for each in THREAD.finditer(raw)]
pathlib.Path("MEMORY.md").write_text(memory(threads))
pathlib.Path("memory_summary.md").write_text(summary(threads))
"""


def command(tmp_path, text):
    program = tmp_path / "mine"
    program.write_text(f"#!{sys.executable}\n{text}")
    program.chmod(0o755)
    return (str(program), "--secret", "x")


def test_a_command_consolidates_what_a_model_has_read_and_only_the_reader_needs_consent(tmp_path):
    mine = command(tmp_path, COMMAND.format(root=str(ROOT)))

    with ModelServer() as server:
        home = providers_home(tmp_path, server, consolidator=mine)
        needed = home.memory.consent_needed()
        home.run(consented=True)
        models = {each.body["model"] for each in server.asked}

    assert needed.models == [READER]
    assert models == {READER}
    assert "deploys happen on Mondays" in folders(home)["project-moss"]["MEMORY.md"]
    assert {each.consolidator for each in events(home, ArtifactsPublished)} == {"command:mine"}
    assert "--secret" not in json.dumps([each.data for each in home.memory.log()])
    assert staging_left(home) == []


def test_a_command_consolidates_what_was_read_without_a_model_and_asks_nobody(tmp_path):
    mine = command(tmp_path, COMMAND.format(root=str(ROOT)))
    home = Home(tmp_path, consolidator=mine)
    home.write(Session(number=1), Session(number=2))

    report = home.run()

    assert home.memory.consent_needed() is None
    assert [each.status for each in report.phase2] == ["succeeded"]
    assert "make check" in folders(home)["project-fern"]["MEMORY.md"]
    assert {each.consolidator for each in events(home, ArtifactsPublished)} == {"command:mine"}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("raise SystemExit('MEMORY says no')", "failed_agent:command_failed"),
        ("import pathlib; pathlib.Path('MEMORY.md').unlink()", "failed_invalid_artifacts"),
        (None, "failed_spawn_agent"),
    ],
)
def test_a_command_that_fails_leaves_the_folder_as_it_was_and_says_why(tmp_path, text, reason):
    home = Home(tmp_path)
    home.write(Session(number=1))
    home.run()
    before = folders(home)
    mine = command(tmp_path, text) if text else ("no-such-command-here",)
    home.write(Session(number=2, says=("from now on always use spaces",)))

    report = home.later(DAY_S / 2).reopened(consolidator=mine).run()

    assert [each.reason for each in report.phase2] == [reason]
    assert folders(home) == before
    assert staging_left(home) == []
    assert reason in json.dumps(home.memory.status())
