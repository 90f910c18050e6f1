"""A session learns nothing from its own memory: what it was given, read, and said of it."""

import json

import pytest
from threadbook.adapters.rollouts import items
from threadbook.adapters.rollouts.echo import READ_BACK
from threadbook.domain.session import Human

from tests.application.homes import FERN, HOUR_S, NOON, Home, Session, rfc

TAUGHT = "from now on always run make heron before you commit"
A = Session(number=1, says=(TAUGHT,))
ECHO = Session(number=9).id
CLAUDE_ECHO = "019b7a00-00cc-7000-8000-0000000000cc"
ASKED = "where is the parser?"
NEW = "please never use tabs in this project, always spaces"
READ = f'- in fern the user wrote "{TAUGHT}"\nPreference signals: when asked, user said heron'


def reply(text):
    cited = f"<oai-mem-citation><rollout_ids>\n{A.id}\n</rollout_ids></oai-mem-citation>"
    return f"Memory says: {TAUGHT}.\n{text}\n{cited}"


def codex(context, typed):
    """Every place in which Codex can hold what we gave it."""

    def item(kind, **fields):
        return {"type": "response_item", "payload": {"type": kind, **fields}}

    def said(role, text):
        kind = "output_text" if role == "assistant" else "input_text"
        return item("message", role=role, content=[{"type": kind, "text": text}])

    def asked(call_id, name, arguments, output, **more):
        yield item("function_call", name=name, call_id=call_id, arguments=arguments, **more)
        yield item("function_call_output", call_id=call_id, output=output)

    meta = {"id": ECHO, "timestamp": rfc(NOON - 8 * HOUR_S), "source": "cli", "cwd": FERN}
    yield {"type": "session_meta", "payload": meta}
    yield said("developer", context)
    yield said("user", context)
    yield said("user", f"<hook_context>\n{context}\n</hook_context>")
    yield said("user", typed)
    yield {"type": "event_msg", "payload": {"type": "user_message", "message": typed}}
    tool = json.dumps({"content": READ, "path": "MEMORY.md"})
    yield from asked("c1", "read", "{}", tool, namespace="mcp__threadbook")
    yield from asked("c2", "mcp__threadbook__search", "{}", tool)
    for n, command in enumerate(
        ("threadbook read MEMORY.md", "cd x && threadbook --json search h")
    ):
        yield from asked(f"s{n}", "exec_command", json.dumps({"cmd": command}), READ)
    yield from asked("s8", "exec_command", json.dumps({"cmd": "threadbook context"}), context)
    yield from asked("s9", "exec_command", json.dumps({"cmd": "cat hook.log"}), context)
    yield said("assistant", reply("Done."))


def claude(context, typed):
    """And Claude Code."""

    def line(kind, content, **fields):
        message = {"role": kind, "content": content}
        if kind == "assistant":
            message["stop_reason"] = "end_turn"
        return {"type": kind, "cwd": FERN, "message": message, **fields}

    def asked(call_id, name, given, output):
        use = {"type": "tool_use", "id": call_id, "name": name, "input": given}
        yield line("assistant", [use])
        yield line("user", [{"type": "tool_result", "tool_use_id": call_id, "content": output}])

    yield line("user", typed)
    yield {"type": "attachment", "attachment": {"type": "hook_success", "content": context}}
    yield line("user", f"<system-reminder>\nSessionStart hook: {context}\n</system-reminder>")
    yield line("user", f"<session-start-hook>{context}</session-start-hook>")
    yield line("user", context)
    yield line("user", context, isMeta=True)
    yield from asked("t1", "mcp__threadbook__read", {"path": "MEMORY.md"}, READ)
    yield from asked("t2", "Bash", {"command": "threadbook read MEMORY.md"}, READ)
    yield line("assistant", [{"type": "text", "text": reply("Done.")}])


def write(home, agent, typed=ASKED):
    session = ECHO if agent is codex else CLAUDE_ECHO
    context = home.memory.context(FERN, session=session).text
    assert TAUGHT in context
    stamp = rfc(NOON - 7 * HOUR_S)
    records = [{"timestamp": stamp, **each} for each in agent(context, typed)]
    if agent is claude:
        records = [
            each | {"sessionId": CLAUDE_ECHO, "uuid": f"u{n}"} for n, each in enumerate(records)
        ]
    path = home.sessions / f"rollout-{agent.__name__}.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in records))
    return path


@pytest.fixture
def learned(home):
    home.write(A)
    home.run()
    return home


@pytest.mark.parametrize("agent", [codex, claude])
def test_a_session_that_only_saw_and_repeated_memory_teaches_nothing(learned, agent):
    write(learned, agent)

    report = learned.run()

    assert (report.stage1.claimed, report.stage1.no_output) == (1, 1)
    assert [(each.thread_id, each.usage_count) for each in learned.outputs()] == [(A.id, 1)]


@pytest.mark.parametrize("agent", [codex, claude])
def test_what_a_person_typed_beside_it_is_learned_and_nothing_of_it(learned, agent):
    """The control: the same session does teach when a person says something that lasts."""
    write(learned, agent, typed=NEW)

    learned.run()

    with learned.memory.store.reading() as view:
        (new,) = [each for each in learned.outputs() if each.thread_id != A.id]
        words = [
            view.body(ref)
            for ref in (new.raw_memory_ref, new.rollout_summary_ref, new.evidence_ref)
            if ref
        ]
    assert "never use tabs" in words[0]
    assert all("heron" not in each for each in words)


@pytest.mark.parametrize("agent", [codex, claude])
def test_nothing_of_it_is_a_persons_word_or_a_tools(learned, agent):
    path = write(learned, agent)

    found = list(items(path, now_ms=int(NOON * 1000)))

    assert [each.text for each in found if isinstance(each, Human)] == [ASKED]
    outputs = [each for each in found if type(each).__name__ == "Output"]
    assert outputs
    assert all("heron" not in each.text for each in outputs)
    assert READ_BACK in {each.text for each in outputs}


def test_a_command_that_only_names_us_keeps_its_output(tmp_path):
    home = Home(tmp_path)
    home.write(A)
    home.run()
    path = write(home, codex)
    text = path.read_text().replace("threadbook read MEMORY.md", "pip install threadbook && cat x")
    path.write_text(text)

    found = [each for each in items(path, now_ms=int(NOON * 1000)) if hasattr(each, "exit_code")]

    assert any("heron" in each.text for each in found)
    home.memory.close()
