"""One story on the file and on PostgreSQL: the same events, the same rows, the same folders."""

import re

import pytest
from threadbook.projections.catalog import SYNCHRONOUS

from tests.adapters.stores import DSN
from tests.application.homes import HALF_A_DAY_LATER, HOUR_S, ROLLOUTS, Home, Session, content, used
from tests.postgres import server

SESSIONS = [
    Session(
        number=n,
        says=(f"from now on always run make check-{n} before you commit",),
        cwd="/srv/fern" if n < 5 else "/srv/moss",
        ended_at=HALF_A_DAY_LATER - (7 + n) * HOUR_S,
    )
    for n in range(1, 7)
]
ISSUED = re.compile(
    r"[0-9a-f]{8}-\d+-[0-9a-f]{8}"  # A worker.
    r"|[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}"  # A token or a run.
    r"|\b[0-9a-f]{32}\b"  # A text.
)


class Numbered:
    """What is drawn at random, as the number of its first appearance."""

    def __init__(self):
        self.known = {}

    def __call__(self, text):
        return ISSUED.sub(
            lambda found: f"#{self.known.setdefault(found[0], len(self.known))}", text
        )


def told(home):
    """Everything that was lived through, at every step."""
    memory, steps = home.memory, []
    steps.append(home.run([ROLLOUTS, home.sessions]).stage1)
    first, second, third = (session.id for session in SESSIONS[:3])
    steps.append(used(memory, [first, second], session="s", turn=1))
    steps.append(used(memory, [first], session="s", turn=1))
    steps.append(memory.pollute(second))
    steps.append(memory.set_mode(third, "disabled"))
    home.later(HOUR_S)
    steps.append([(root.scope, root.status) for root in home.run([ROLLOUTS, home.sessions]).phase2])
    steps.append(memory.forget(first).bodies_erased)
    home.later(HOUR_S)
    steps.append([(root.scope, root.status) for root in home.run([ROLLOUTS, home.sessions]).phase2])
    return steps


def everything(home):
    number = Numbered()
    log = [
        (each.stream, each.version, each.type, each.recorded_at_ms, each.actor,
         number(each.data), number(each.run_id or ""))
        for each in home.log()
    ]  # fmt: skip
    pasts = [number(repr(as_it_was(home, at))) for at in range(0, home.position, 7)]
    return log, rows(home, number), pasts, folders(home)


def rows(home, number):
    with home.memory.store.reading() as view:
        return {
            projection.NAME: sorted(number(repr(row)) for row in view.rows(projection, ()))
            for projection in SYNCHRONOUS
        }


def as_it_was(home, position):
    return {name: found for name, found in home.memory.at(position).items() if name != "recorded"}


def folders(home):
    return {root.name: content(root) for root in home.roots()}


@pytest.fixture
def on_both(tmp_path):
    """Two homes of one machine, so that also what names the machine is the same."""
    homes = []
    for name, dsn in (("file", None), ("server", server().dsn())):
        folder = tmp_path / name
        (folder / "home").mkdir(parents=True)
        (folder / "home" / "machine").write_text("5eed" * 8 + "\n")
        if dsn is not None:
            (folder / DSN).write_text(dsn)
        homes.append(Home(folder, now=HALF_A_DAY_LATER))
        homes[-1].sessions = tmp_path / "sessions"
        homes[-1].write(*SESSIONS)
    yield homes
    for home in homes:
        home.memory.close()


def test_a_story_leaves_the_same_events_rows_pasts_and_folders_on_both(on_both):
    on_file, on_server = on_both

    steps = told(on_server)
    assert steps == told(on_file)
    assert steps[0].succeeded > 5
    assert steps[1:5] == [2, 0, True, True]
    assert steps[6] > 5

    for found, wanted in zip(everything(on_server), everything(on_file), strict=True):
        assert found == wanted
    for home in on_both:
        assert home.memory.verify().ok
        assert home.memory.replay_verify() == []
        home.memory.rebuild()
        assert home.memory.replay_verify() == []
    status = on_server.memory.status()
    assert (status["sealed"], status["erasures_pending"]) == (None, [])
    assert status["database"].startswith("postgresql://")
