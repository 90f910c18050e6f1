"""The SDK's own client of a real `threadbook mcp` process, for tests that are not asynchronous."""

import os
import sys
from contextlib import contextmanager

from anyio.from_thread import start_blocking_portal
from mcp import Client, StdioServerParameters, stdio_client

from tests.adapters.cli.commands import MAIN
from tests.application.homes import ROOT, rfc

ERAS = ("auto", "legacy")  # Without a handshake, as the newest protocol has it, and with one.


class Asked:
    """`asked("read", path="MEMORY.md")` is the tool's result."""

    def __init__(self, portal, client):
        self.portal, self.client = portal, client

    def __call__(self, name, /, **arguments):
        return self.portal.call(lambda: self.client.call_tool(name, arguments))

    def answer(self, name, /, **arguments):
        result = self(name, **arguments)
        assert not result.is_error, result.content
        return result.structured_content

    def error(self, name, /, **arguments):
        result = self(name, **arguments)
        assert result.is_error, result.structured_content
        (content,) = result.content
        return content.text

    def tools(self):
        return self.portal.call(self.client.list_tools).tools

    def resources(self):
        return self.portal.call(self.client.list_resources).resources

    def resource(self, uri):
        (contents,) = self.portal.call(self.client.read_resource, uri).contents
        return contents.text


def words(home, *args):
    """The command line of a server on a home, at its time."""
    options = ["--home", str(home.path), "--now", rfc(home.now)]
    return [sys.executable, "-c", MAIN, *options, "mcp", *map(str, args)]


def environment(**more):
    return {"PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]), **more}


@contextmanager
def connected(home, *args, era="auto", **variables):
    command, *rest = words(home, *args)
    parameters = StdioServerParameters(command=command, args=rest, env=environment(**variables))
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(Client(stdio_client(parameters), mode=era)) as client,
    ):
        yield Asked(portal, client)
