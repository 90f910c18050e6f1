"""Many processes on one memory, killed and back again: whatever they did, the memory is sound.

What it is made of is drawn from one number, which is told when it fails: with RACE_SEED=<number>
the same racers do the same and die at the same places, as far as the machine lets them: it decides
who comes first. `python tests/bench/race.py` goes on for as long as one likes.
"""

import os
import random
from collections import Counter

import pytest

from tests.application.race import Race
from tests.application.race_checks import held_against
from tests.postgres import server

chance = random.SystemRandom()
ENOUGH = 3  # Races, after which it would be no chance any more that nobody lost a lease.


@pytest.mark.parametrize(
    ("database", "machines", "racers", "lives"),
    [("sqlite", 1, 6, 3), ("postgres", 1, 4, 3), ("postgres", 2, 6, 2)],
)
def test_what_racing_processes_leave_is_sound_wherever_they_are_killed(
    tmp_path, database, machines, racers, lives
):
    given = os.environ.get("RACE_SEED")
    reached = Counter()
    for at in range(1 if given else ENOUGH):
        seed = int(given) if given else chance.randrange(1_000_000)
        dsn = server().dsn() if database == "postgres" else None
        race = Race(
            tmp_path / str(at), seed, dsn=dsn, machines=machines, racers=racers, lives=lives
        )

        try:
            race.run()

            reached += held_against(race)
        except BaseException as error:
            error.add_note(f"again: RACE_SEED={seed} pytest {os.environ['PYTEST_CURRENT_TEST']}")
            raise
        if lost_leases(reached):
            break
    assert given or (reached["killed"] >= 2 and lost_leases(reached)), reached


def lost_leases(reached):
    return sum(n for what, n in reached.items() if "taken over" in what or "for the dead" in what)
