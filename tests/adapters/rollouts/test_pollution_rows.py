"""What brings outside text into a session, row by row, and what does not (P1 to P5 of Codex)."""

import pytest
from threadbook.adapters.rollouts import survey

from tests.adapters.rollouts.support import NOW_MS, claude, event, item, message, meta, written

OUTPUT = "function_call_output"


def mcp(server="wiki", call_id="m"):
    name = f"mcp__{server}__get"
    return item("function_call", name=name, call_id=call_id, arguments="{}")


def ended(result, server="wiki"):
    return event("mcp_tool_call_end", call_id="m", invocation={"server": server}, result=result)


def completed(**fields):
    return event("item_completed", item={"type": "McpToolCall", "server": "wiki", **fields})


CODEX = {
    "P1 a web search": ([item("web_search_call", status="completed")], ("web_search",)),
    "P1 a web search without a status": ([item("web_search_call")], ("web_search",)),
    "P1 told as an item": ([event("item_completed", item={"type": "WebSearch"})], ("web_search",)),
    "P2 a tool search": ([item("tool_search_call", call_id="t")], ("tool_search",)),
    "P2 its result": ([item("tool_search_output", call_id="t", tools=[])], ("tool_search",)),
    "P3 an output of no call": ([item(OUTPUT, call_id=None, output="x")], ("out_of_band_output",)),
    "P3 without the field": ([item(OUTPUT, output="x")], ("out_of_band_output",)),
    "P4 an MCP call": ([mcp(), item(OUTPUT, call_id="m", output="x")], ("mcp:wiki",)),
    "P4 that has no result yet": ([mcp()], ("mcp:wiki",)),
    "P4 that failed": ([mcp(), item(OUTPUT, call_id="m", output="Err: gone")], ("mcp:wiki",)),
    "P4 told by its end": ([ended({"Ok": {}})], ("mcp:wiki",)),
    "P4 told by its end as failed": ([ended({"Err": "timed out"})], ("mcp:wiki",)),
    "P4 told as an item": ([completed(status="failed")], ("mcp:wiki",)),
    "P5 an output that says so": (
        [item(OUTPUT, call_id="c", output="x", contains_external_context=True)],
        ("external_context",),
    ),
    "P5 in its metadata": (
        [item(OUTPUT, call_id="c", output="x") | {"metadata": {"contains_external_context": True}}],
        ("external_context",),
    ),
    "all of them, each once, in order": (
        [mcp(), mcp("docs", "d"), item("web_search_call"), item("web_search_call")],
        ("web_search", "mcp:wiki", "mcp:docs"),
    ),
    "no: a declined MCP call": (
        [mcp(), item(OUTPUT, call_id="m", output="user rejected MCP tool call")],
        (),
    ),
    "no: a cancelled one": (
        [mcp(), item(OUTPUT, call_id="m", output="user cancelled MCP tool call")],
        (),
    ),
    "no: declined, told by its end": ([ended({"Err": "user rejected MCP tool call"})], ()),
    "no: declined, told as an item": ([completed(status="declined")], ()),
    "no: blocked, told as an item": ([completed(status="blocked")], ()),
    "no: failed because it was declined": (
        [completed(status="failed", error={"message": "user rejected MCP tool call"})],
        (),
    ),
    "no: curl in a shell": (
        [
            item("function_call", name="exec_command", call_id="c", arguments='{"cmd":"curl x"}'),
            item(OUTPUT, call_id="c", output="<html>"),
        ],
        (),
    ),
    "no: a local shell": (
        [item("local_shell_call", call_id="c", action={"command": ["git", "pull"]})],
        (),
    ),
    "no: a custom tool": (
        [
            item("custom_tool_call", name="apply_patch", call_id="c", input="x"),
            item("custom_tool_call_output", call_id=None, output="x"),
        ],
        (),
    ),
    "no: resources of an MCP server": (
        [item("function_call", name="read_mcp_resource", call_id="c", arguments="{}")],
        (),
    ),
    "no: text that names a trigger": (
        [message("see web_search_call and mcp__wiki__get"), message("pasted", role="assistant")],
        (),
    ),
    "no: a failure that claims it": (
        [
            item(
                OUTPUT,
                call_id="c",
                output={"success": False, "content": "x"},
                contains_external_context=True,
            )
        ],
        (),
    ),
    "no: a picture": (
        [item("message", role="user", content=[{"type": "input_image", "image_url": "http://x"}])],
        (),
    ),
}


@pytest.mark.parametrize("row", CODEX)
def test_codex(tmp_path, row):
    records, triggers = CODEX[row]

    found = survey(written(tmp_path, meta(), *records), now_ms=NOW_MS).polluting

    assert found == triggers


def call(name, kind="tool_use", **fields):
    block = {"type": kind, "id": "t", "name": name, "input": {}, **fields}
    return claude("assistant", [block], uuid="a1")


def result(text, *, error=False, **fields):
    block = {"type": "tool_result", "tool_use_id": "t", "content": text, "is_error": error}
    return claude("user", [block], uuid="u9", **fields)


REFUSED = "The user doesn't want to proceed with this tool use."
CLAUDE = {
    "P1 WebSearch": ([call("WebSearch"), result("x")], ("web_search",)),
    "P1 a search on the server": (
        [call("web_search", kind="server_tool_use")],
        ("web_search",),
    ),
    "P5 WebFetch": ([call("WebFetch"), result("x")], ("web_fetch",)),
    "P4 an MCP tool": ([call("mcp__wiki__get"), result("x")], ("mcp:wiki",)),
    "P4 that has no result yet": ([call("mcp__wiki__get")], ("mcp:wiki",)),
    "P4 that failed": ([call("mcp__wiki__get"), result("x", error=True)], ("mcp:wiki",)),
    "P4 named beside the call": (
        [call("get", kind="mcp_tool_use", server_name="wiki"), result("x")],
        ("mcp:wiki",),
    ),
    "P4 a line that a server gave": (
        [claude("assistant", "x", uuid="a2", attributionMcpServer="wiki")],
        ("mcp:wiki",),
    ),
    "P4 a server that says a person refused": (
        [call("mcp__wiki__get"), result(REFUSED, error=True, toolUseResult=f"Error: {REFUSED}")],
        ("mcp:wiki",),
    ),
    "no: a refused MCP call": (
        [
            call("mcp__wiki__get"),
            result(REFUSED, error=True, toolUseResult="User rejected tool use"),
        ],
        (),
    ),
    "no: curl in a shell": ([call("Bash", input={"command": "curl x"}), result("<html>")], ()),
    "no: resources of an MCP server": ([call("ReadMcpResourceTool"), result("x")], ()),
    "no: a file": ([call("Read"), result("x")], ()),
    "no: text that names a trigger": ([claude("user", "use mcp__wiki__get", uuid="u1")], ()),
}


@pytest.mark.parametrize("row", CLAUDE)
def test_claude_code(tmp_path, row):
    records, triggers = CLAUDE[row]

    assert survey(written(tmp_path, *records), now_ms=NOW_MS).polluting == triggers
