"""What an agent has cost is counted though its folder's job was somebody else's by then."""

import pytest
from threadbook.application.ports import ConsolidationFailed
from threadbook.domain.events import ArtifactsPublished, Phase2Paid

from tests.application.agents import COST, Agent, honest, until_told
from tests.application.homes import DAY_S, HOUR_S, NOON, Session

A = Session(number=1)
B = Session(number=2, says=("please never use tabs in this project, always spaces",))
C = Session(number=3, says=("from now on always feed the kestrel",), ended_at=NOON + HOUR_S)


@pytest.fixture
def made(home):
    home.write(A, B)
    home.run_with(consolidator=Agent())
    return home.later(DAY_S)


def fails(task):
    raise ConsolidationFailed("failed_agent", tokens=COST)


@pytest.mark.parametrize("then", [until_told, honest, fails], ids=["told", "done", "failed"])
@pytest.mark.parametrize("act", ["forget", "reset"])
def test_who_lost_the_lease_to_a_forgetting_or_a_reset_records_what_it_cost(made, act, then):
    made.write(C)
    at = made.position

    def overtaken(task):
        with made.another() as other:
            other.forget(A.id) if act == "forget" else other.reset()
        return then(task)

    agent = Agent(overtaken, honest)
    made.run_with(consolidator=agent)

    (lost,) = made.events(Phase2Paid, at)
    published = [each for each in made.events(ArtifactsPublished, at) if each.tokens.calls]
    assert lost.tokens == COST
    assert len(agent.tasks) == 1 + len(published)
    assert made.memory.replay_verify() == []
    assert made.memory.verify().ok
