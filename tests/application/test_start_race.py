"""Two programs that start at once and read a part each, with a model that is paid and a rest of six
hours: the folder holds every output when both have ended."""

import json
import threading
from dataclasses import replace

import pytest
from threadbook.domain.events import Stage1LeaseClaimed

from tests.adapters.cli.commands import Commands
from tests.application.homes import Home, Session, content
from tests.model_server import ModelServer, derived

FACTS = ("run make check", "use spaces", "deploy on Mondays", "feed the kestrel")
SESSIONS = [
    Session(number=at, says=(f"from now on FACT[{fact}]",)) for at, fact in enumerate(FACTS, 1)
]


class Two:
    """Programs on one home, and a server whose answers of a kind can be held back."""

    def __init__(self, folder, server, monkeypatch, capsys, version):
        config = folder / "config.toml"
        config.write_text(f'scope = "global"\nversion = "{version}"\n')
        monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
        monkeypatch.setenv("THREADBOOK_BASE_URL", server.base_url)
        monkeypatch.setenv("THREADBOOK_MAX_ROLLOUTS_PER_STARTUP", "2")
        self.home = Home(folder, scope="global", version=version)
        self.server = server
        self.commands = Commands(self.home, monkeypatch, capsys)
        self.config = config
        self.readers, self.consolidators = threading.Event(), threading.Event()
        server.script = lambda asked: replace(
            derived(asked), hold=self.consolidators if asked.body.get("tools") else self.readers
        )

    def start(self):
        words = ("--sessions", self.home.sessions, "--model", "openai", "--yes", "--json")
        return self.commands.process("--config", self.config, "run", *words)

    def asked(self, *, tools):
        return sum(bool(each.body.get("tools")) == tools for each in self.server.asked)

    def wait_for(self, holds):
        for _ in range(3_000):
            if holds():
                return
            threading.Event().wait(0.01)
        raise AssertionError("it never came to that")

    def folder(self):
        return str(content(self.home.root()))


def ended(process):
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    return json.loads(out)


@pytest.fixture(params=["v1", "v2"])
def two(tmp_path, monkeypatch, capsys, request):
    with ModelServer() as server:
        two = Two(tmp_path, server, monkeypatch, capsys, request.param)
        yield two
        two.readers.set()
        two.consolidators.set()
        two.home.memory.close()


def test_two_that_read_a_part_each_leave_both_parts_in_the_folder(two):
    two.home.write(*SESSIONS)
    two.consolidators.set()
    processes = [two.start(), two.start()]
    two.wait_for(lambda: two.asked(tools=False) == 4)

    two.readers.set()
    reports = [ended(each) for each in processes]

    assert [each["stage1"]["succeeded"] for each in reports] == [2, 2]
    assert len({each.worker_id for each in two.home.events(Stage1LeaseClaimed)}) == 2
    assert all(fact in two.folder() for fact in FACTS)


def test_what_is_read_while_another_consolidates_is_in_the_folder_when_both_have_ended(two):
    two.home.write(*SESSIONS[:2])
    two.readers.set()
    first = two.start()
    two.wait_for(lambda: two.asked(tools=True) == 1)
    two.home.write(SESSIONS[2])

    second = two.start()
    two.wait_for(lambda: two.home.types().count("stage1.succeeded") == 3)
    two.consolidators.set()
    ended(first)
    ended(second)

    assert all(fact in two.folder() for fact in FACTS[:3])
