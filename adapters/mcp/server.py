"""server: the protocol, over standard input and output, by the official SDK.

Two eras of it are spoken, with a handshake and without; the SDK tells them apart. The low-level
server is used and not the SDK's own tools, because those pass over unknown arguments, turn "7" into
7, and put words of theirs before an error's. While it serves, only the protocol reaches standard
output; what a person should know goes to standard error.
"""

import logging
import os
import signal
import sys
from collections.abc import Callable
from importlib.metadata import version
from types import FrameType
from typing import Any

import anyio
import anyio.to_thread
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError

from ...application.ports import Failure
from ...domain.refusals import Refused
from .desk import Answer, Desk, shortened
from .heard import Heard
from .offers import OFFERS, RESOURCES, Offer

NAME = "threadbook"
MARKDOWN = "text/markdown"


def server(desk: Desk) -> "Server[Any]":
    names = {offer.name for offer in OFFERS}

    async def list_tools(_: Any, __: Any) -> types.ListToolsResult:
        offers = await anyio.to_thread.run_sync(desk.offers)
        return types.ListToolsResult(tools=[tool(offer) for offer in offers])

    async def call_tool(_: Any, asked: types.CallToolRequestParams) -> types.CallToolResult:
        if asked.name not in names:
            raise MCPError(
                code=types.INVALID_PARAMS,
                message=f"unknown tool {asked.name[:80]!r}; there are {', '.join(sorted(names))}",
            )
        answer = await anyio.to_thread.run_sync(desk.answer, asked.name, asked.arguments)
        return result(answer)

    async def list_resources(_: Any, __: Any) -> types.ListResourcesResult:
        uris = await anyio.to_thread.run_sync(desk.resources)
        return types.ListResourcesResult(resources=[resource(uri) for uri in uris])

    async def read_resource(
        _: Any, asked: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        uri = str(asked.uri)
        if uri not in RESOURCES:
            raise MCPError(
                code=types.INVALID_PARAMS,
                message=f"unknown resource {uri[:80]!r}; there are {', '.join(RESOURCES)}",
            )
        try:
            text = await anyio.to_thread.run_sync(desk.resource, uri)
        except (Refused, Failure) as error:
            raise MCPError(code=types.INTERNAL_ERROR, message=shortened(str(error))) from error
        contents = types.TextResourceContents(uri=uri, mime_type=MARKDOWN, text=text)
        return types.ReadResourceResult(contents=[contents])

    return Server(
        NAME,
        version=version("threadbook"),
        title="Threadbook",
        instructions=desk.instructions(),
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_read_resource=read_resource,
    )


def tool(offer: Offer) -> types.Tool:
    return types.Tool(
        name=offer.name,
        title=offer.title,
        description=offer.description,
        input_schema=offer.input_schema,
        output_schema=offer.output_schema,
        annotations=types.ToolAnnotations(
            title=offer.title,
            read_only_hint=offer.reads,
            # Whatever is added is added beside the rest, and the same thing twice is once.
            destructive_hint=False,
            idempotent_hint=True,
            open_world_hint=False,
        ),
    )


def resource(uri: str) -> types.Resource:
    offered = RESOURCES[uri]
    return types.Resource(
        uri=uri,
        name=offered.path,
        title=offered.title,
        description=offered.description,
        mime_type=MARKDOWN,
    )


def result(answer: Answer) -> types.CallToolResult:
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=answer.text)],
        structured_content=answer.structured,
        is_error=answer.is_error,
    )


def serve(desk: Desk, *, leave: Callable[[], None]) -> None:
    """Serve one client until it closes its end of either pipe, or until SIGTERM or Ctrl-C, which
    `leave` comes before."""

    def ended(number: int, _: FrameType | None) -> None:
        """End at once. The thread that waits for the client's next line cannot be told to stop,
        and nothing is lost: what a call had not committed is as if it had not been asked."""
        try:
            leave()
        finally:
            os._exit(0)

    logging.basicConfig(stream=sys.stderr, level=logging.ERROR)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGPIPE):
        signal.signal(number, ended)
    anyio.run(served, desk)


async def served(desk: Desk) -> None:
    serving = server(desk)
    async with stdio_server() as (reading, writing):
        heard = Heard(reading, writing)
        await serving.run(heard, writing, serving.create_initialization_options())
