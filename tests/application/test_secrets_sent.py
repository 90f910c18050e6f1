"""With a provider no secret leaves in a request, and none that a reply repeats comes in.

The server is a real one on loopback; its answer repeats every secret of the session.
"""

# ruff: noqa: E501 - what is sent reads better on one line.
import json

import pytest

from tests.application.homes import Home, Session
from tests.application.planted import left_in, said
from tests.application.test_secrets import CASES, CHUNK, KEY, VANISH, Leaky
from tests.model_server import ModelServer, Reply, response


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "no-key")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with ModelServer(repeating) as listening:
        yield listening


def repeating(asked):
    """What was asked for, made of every secret that there is."""
    texts = "\n".join(f"- {case['text']}" for case in CASES)
    typed = "\n".join(f'- the user wrote "{case["text"]}"' for case in CASES)
    told = {
        "raw_memory": f"### Task 1: deploy {KEY}\n\nPreference signals:\n{typed}\n\nReusable knowledge:\n{texts}\n- deploy stays\n",
        "rollout_summary": f"# {CASES[3]['text']}\n\n{texts}\n\n{KEY}\n- deploy stays\n",
        "rollout_slug": CASES[1]["text"],
    }  # fmt: skip
    known = asked.schema["properties"] if asked.schema else {}
    if "rollout_summary" not in known:
        return Reply(response(f"I have finished. {texts}"))
    return Reply(response(json.dumps({key: told[key] for key in known})))


@pytest.fixture
def asking(tmp_path, server):
    made = Home(tmp_path, model="openai", base_url=server.base_url)
    yield made
    made.memory.close()


def sent(server):
    """Every request: its body as JSON has it, and as the texts are that it holds."""
    return "\n".join(
        json.dumps(each.body, ensure_ascii=False) + "\n" + each.text for each in server.asked
    )


@pytest.mark.parametrize("filled", [False, True])
@pytest.mark.parametrize("version", ["v1", "v2"])
def test_no_secret_is_in_a_request_nor_in_the_home_when_the_reply_repeats_it(
    asking, server, filled, version
):
    session = Leaky(filled=filled)
    asking.write(session)
    home = asking.reopened(version=version)
    if filled:
        assert home.file(session).stat().st_size > CHUNK * len(CASES)

    report = home.run(consented=True)

    assert report.stage1.succeeded == 1
    assert server.asked
    assert [secret for secret in VANISH if secret in sent(server)] == []
    assert "[REDACTED_SECRET]" in sent(server)
    assert "deploy" in sent(server)
    assert left_in(home.path, *VANISH, KEY, whole=True) == []
    assert len(home.outputs()) == 1


def test_no_secret_in_a_sessions_path_folder_branch_or_name_is_in_a_request(asking, server):
    session = Session(number=1, cwd=f"/srv/{KEY}/fern")
    records = session.records()
    records[0]["payload"]["git"] = {"branch": f"feature/{KEY}"}
    folder = asking.sessions / f"of {KEY}"
    folder.mkdir()
    path = folder / f"rollout-{session.id}.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in records))
    home = asking.reopened(version="v2")

    home.run(consented=True)

    assert server.asked
    assert [n for n, each in enumerate(server.asked) if KEY in json.dumps(each.body)] == []
    assert "[REDACTED_SECRET]" in sent(server)


def test_a_secret_in_any_item_of_a_session_is_in_no_request(asking, server):
    kinds = [
        said(f"use {KEY}"),
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": KEY}]},
        {"type": "function_call", "name": "x", "call_id": "a", "arguments": json.dumps({"k": KEY})},
        {"type": "function_call_output", "call_id": "a", "output": KEY},
        {"type": "custom_tool_call", "name": "y", "call_id": "b", "input": KEY},
        {"type": "custom_tool_call_output", "call_id": "b", "output": f"{KEY} {KEY}"},
        {"type": "local_shell_call", "call_id": "c", "status": "completed",
         "action": {"type": "exec", "command": ["echo", KEY], "env": {"TOKEN": KEY}}},
        {"type": "web_search_call", "status": "completed", "action": {"type": "search", "query": KEY}},
        said("thanks"),
    ]  # fmt: skip
    session = Session(number=1)
    meta, last = session.records()[0], session.records()[-1]
    stamp = last["timestamp"]
    lines = [
        meta,
        *({"timestamp": stamp, "type": "response_item", "payload": k} for k in kinds),
        last,
    ]
    asking.file(session).write_text("".join(json.dumps(each) + "\n" for each in lines))

    asking.run(consented=True)

    assert server.asked
    assert KEY not in sent(server)
    assert sent(server).count("[REDACTED_SECRET]") >= 6
