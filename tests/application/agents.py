"""Agents for tests: real ones, which edit what they are given, by a script instead of a model."""

import re
from threading import Event

from threadbook.adapters.offline import OfflineConsolidator
from threadbook.application.ports import ConsolidationFailed, Proposal
from threadbook.domain.carried import Carried, applied, edited
from threadbook.domain.events import Tokens

COST = Tokens(model="gpt-6.1-terra", calls=2, input=100, output=10)


LACKS = re.compile(r"(\S+) lacks a line that a person wrote; .*?: (.*)")
TAKEN_OUT = re.compile(r"(\S+?):(\d+) is a line that a person has taken out")


def mended(task):
    """What is staged, with what was refused of it put right."""
    files = {path: text.split("\n") for path, text in task.staged.items()}
    for each in task.refused:
        if found := TAKEN_OUT.match(each):
            files[found[1]][int(found[2]) - 1] = None
    for each in task.refused:
        if found := LACKS.match(each):
            files[found[1]][-1:] = [found[2], ""]
    return {
        path: "\n".join(line for line in lines if line is not None) for path, lines in files.items()
    }


def honest(task):
    """What the offline model writes, with everything that a person did to the files."""
    if task.refused:
        return mended(task)
    made = OfflineConsolidator().propose(task).files
    files = dict(task.staged)
    for path, text in made.items():
        kept = edited(Carried(salt="s"), path, task.published.get(path, ""), files.get(path, ""))
        files[path] = applied(kept, path, text) if path in task.edited else text
    return files


class Agent:
    """It answers each round with the next of `rounds`, a function from the task to its files, and
    with the last of them from then on."""

    name = "gpt-6.1-terra"
    kind = "agent"

    def __init__(self, *rounds, unusable=None) -> None:
        self.rounds = rounds or (honest,)
        self.unusable = unusable or {}
        self.tasks = []

    def propose(self, task):
        self.tasks.append(task)
        act = self.rounds[min(len(self.tasks), len(self.rounds)) - 1]
        return Proposal(
            files=act(task),
            unusable=self.unusable,
            tokens=COST,
            tool_calls={"read": 2, "write": 1},
            prompt_digest="d1",
        )


def until_told(task, *, seconds=20):
    """Work on until the run says that it is enough, and tell what that has cost."""
    pause = Event()
    for _ in range(int(seconds / 0.02)):
        if not task.alive():
            raise ConsolidationFailed("failed_agent", tokens=COST)
        pause.wait(0.02)
    raise AssertionError("nobody has told it to end")


def with_line(path, line):
    """An honest agent that adds a line to a file."""

    def act(task):
        files = honest(task)
        return {**files, path: f"{files.get(path, '')}{line}\n"}

    return act
