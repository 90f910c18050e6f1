"""The command line sends what it tells, and no collector, and no package, is ever in its way."""

import json
import os
import socket
import subprocess
import sys
import time

import pytest
from opentelemetry.proto.metrics.v1.metrics_pb2 import AggregationTemporality
from threadbook.adapters import telemetry

from tests.adapters.cli.commands import MAIN
from tests.adapters.mcp.clients import connected, environment, words
from tests.adapters.telemetry.collector import Collector
from tests.application.homes import FERN, ROOT, rfc

SESSION = "019b7a00-00ff-7000-8000-0000000000ff"
HELLO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "t", "version": "1"},
}
SECONDS = 8.0  # For a busy machine; whoever waits for the exporter waits longer than that.
BLOCKED = (
    "import sys\n"
    "class Nowhere:\n"
    "    def find_spec(self, name, *_):\n"
    "        if name.partition('.')[0] in ('opentelemetry', 'mcp'):\n"
    "            raise ModuleNotFoundError(name)\n"
    "sys.meta_path.insert(0, Nowhere())\n"
)
LOADED = (
    "; print(*[name for name in sys.modules if name.startswith('opentelemetry')], file=sys.stderr)"
)


@pytest.fixture
def ran(home):
    """`ran("status", **variables)` is the command in a process of its own, on a home with a run."""
    home.run()
    return lambda *args, **more: command(home, *args, **more)


def command(home, *args, code=MAIN, said=b"", **variables):
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", code, "--home", home.path, "--now", rfc(home.now), *args],
        input=said,
        env=os.environ | {"PYTHONPATH": path} | variables,
        capture_output=True,
        timeout=60,
    )
    done.seconds = time.monotonic() - began
    return done


def test_a_command_sends_its_operations_before_it_ends(ran):
    with Collector() as collector:
        done = ran("search", "--cwd", FERN, "make", "check", **collector.variables)

        assert (done.returncode, done.stderr) == (0, b"")
        ((name, attributes),) = collector.spans()
        assert name == "search_memory"
        assert attributes["threadbook.operation"] == "search_ranked"
        (resource,) = collector.resources()
        assert resource["service.name"] == "threadbook"
        calls = collector.metrics()["threadbook.tool.calls"].sum
        delta = AggregationTemporality.AGGREGATION_TEMPORALITY_DELTA
        assert calls.aggregation_temporality == delta


def test_the_users_own_variables_hold(ran):
    with Collector() as collector:
        ran(
            "context",
            *("--cwd", FERN),
            OTEL_SERVICE_NAME="fern",
            OTEL_METRICS_EXPORTER="none",
            **collector.variables,
        )

        assert [each["service.name"] for each in collector.resources()] == ["fern"]
        assert collector.metrics() == {}


@pytest.mark.parametrize(
    "variables",
    [
        {"OTEL_SDK_DISABLED": "True"},
        {"OTEL_TRACES_EXPORTER": "none", "OTEL_METRICS_EXPORTER": "none"},
        {"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"},
    ],
    ids=str,
)
def test_nothing_is_sent_where_the_variables_say_so(ran, variables):
    with Collector() as collector:
        done = ran("list", "--cwd", FERN, **collector.variables, **variables)

        assert (done.returncode, done.stderr) == (0, b"")
        assert collector.bodies == []


def test_on_a_console_it_stays_out_of_the_answer(ran):
    done = ran("list", "--cwd", FERN, "--json", OTEL_TRACES_EXPORTER="console")

    assert json.loads(done.stdout)["entries"]
    assert b'"search_memory"' in done.stderr


def test_a_server_sends_what_it_was_asked(home):
    home.run()
    with Collector() as collector:
        at = ("--cwd", FERN, "--session", SESSION)
        with connected(home, *at, **collector.variables) as asked:
            asked.answer("search", queries=["make check"])
            asked.error("read", path="walrus.md")
        collector.wait(2)

        told = [each for each in collector.spans() if each[0] == "search_memory"]
        assert [each["threadbook.operation"] for _, each in told] == ["search", "read"]
        assert told[1][1]["error.type"] == "not_found"
        assert all(each["gen_ai.conversation.id"] == SESSION for _, each in told)
        assert not [path for path, body in collector.bodies if b"walrus" in body]
        assert not [path for path, body in collector.bodies if b"make check" in body]


def test_a_server_that_is_told_to_end_sends_first(home):
    home.run()
    with Collector() as collector:
        server = subprocess.Popen(
            words(home, "--cwd", FERN),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | environment(**collector.variables),
        )
        with server:
            listed = {"name": "list", "arguments": {}}
            for number, (method, more) in enumerate(
                [("initialize", HELLO), ("tools/call", listed)], start=1
            ):
                asked = {"jsonrpc": "2.0", "id": number, "method": method, "params": more}
                server.stdin.write(json.dumps(asked).encode() + b"\n")
                server.stdin.flush()
                assert json.loads(server.stdout.readline())["result"]
            server.terminate()

        assert server.returncode == 0
        assert "threadbook.tool.calls" in collector.metrics()
        assert [name for name, _ in collector.spans() if name == "search_memory"]


def test_a_hook_leaves_the_sending_to_another(ran):
    said = json.dumps({"session_id": SESSION, "cwd": FERN}).encode()
    hook = ("hook", "session-start", "--within", "20000")
    with Collector() as collector:
        done = ran(*hook, said=said, **collector.variables)
        collector.wait(2)

        assert (done.returncode, done.stderr) == (0, b"")
        assert b"additionalContext" in done.stdout
        ((name, attributes),) = collector.spans()
        assert (name, attributes["threadbook.operation"]) == ("search_memory", "context")
        assert attributes["gen_ai.conversation.id"] == SESSION


@pytest.fixture(params=["down", "silent"])
def nobody(request):
    """Variables of a collector that is not there, or that never answers."""
    if request.param == "silent":
        with Collector(answers=False) as collector:
            yield collector.variables
        return
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # Bound, and listening to nobody.
        yield {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{taken.getsockname()[1]}"}


def test_a_collector_that_answers_nobody_changes_no_command(ran, nobody):
    alone = ran("context", "--cwd", FERN, "--session", SESSION)
    sending = ran("context", "--cwd", FERN, "--session", SESSION, **nobody)

    assert (sending.returncode, sending.stdout) == (0, alone.stdout)
    assert sending.stderr == b""
    assert sending.seconds < alone.seconds + 0.5 + SECONDS


def test_no_hook_waits_for_a_collector_that_answers_nobody(ran, nobody):
    said = json.dumps({"session_id": SESSION, "cwd": FERN}).encode()

    done = ran("hook", "session-start", "--within", "20000", said=said, **nobody)

    assert b"additionalContext" in done.stdout
    assert done.seconds < telemetry.HAND_OVER_S  # What is left behind has not even given up.


@pytest.mark.parametrize(
    "args",
    [
        ("run",),
        ("status",),
        ("context", "--cwd", FERN, "--session", SESSION),
        ("search", "--cwd", FERN, "make"),
        ("note", "--cwd", FERN, "use uv"),
    ],
    ids=lambda args: args[0],
)
def test_without_the_packages_everything_works(ran, args):
    with Collector() as collector:
        done = ran(*args, code=f"{BLOCKED}{MAIN}", **collector.variables)

        assert (done.returncode, done.stderr) == (0, b"")
        assert collector.bodies == []


def test_where_nobody_asks_for_it_none_of_it_is_loaded(ran):
    code = f"import sys; from threadbook.adapters.cli import ended; ended(){LOADED}"

    done = ran("context", "--cwd", FERN, "--session", SESSION, code=code)

    assert done.stderr.strip() == b""


def test_where_nobody_asks_for_it_an_operation_loads_nothing_that_tells():
    code = (
        "import sys\n"
        "from threadbook.adapters.telemetry import watch\n"
        "with watch('read', {'path': 'MEMORY.md'}) as tell:\n"
        "    tell(None)\n"
        "print([n for n in sys.modules if 'opentelemetry' in n or 'telemetry.' in n])"
    )
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    env = os.environ | {"PYTHONPATH": path}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)

    assert (done.stdout, done.stderr) == ("[]\n", "")
