"""Races of processes that are killed, one after the other, and how often they came to what matters.

    python tests/bench/race.py [--seconds N] [--database sqlite|postgres] [--machines N]
                               [--racers N] [--lives N] [--seed N] [--json]

The first race that leaves something behind ends it, with its seed and with its folder as it is;
`--seed` runs that one alone.
"""

import argparse
import json
import os
import random
import shutil
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]

from tests.application.race import Race  # noqa: E402
from tests.application.race_checks import held_against  # noqa: E402
from tests.postgres import server  # noqa: E402


def main() -> int:
    asked = arguments()
    for name in [name for name in os.environ if name.startswith("THREADBOOK_")]:
        del os.environ[name]
    reached: Counter[str] = Counter()
    until = time.monotonic() + asked.seconds
    with tempfile.TemporaryDirectory() as nobody:
        os.environ["HOME"] = os.environ["XDG_CONFIG_HOME"] = nobody
        while True:
            seed = asked.seed if asked.seed is not None else random.randrange(1_000_000)
            folder = Path(tempfile.mkdtemp(prefix=f"race-{seed}-"))
            try:
                reached += one(folder, seed, asked)
            except Exception:
                traceback.print_exc()
                print(f"--seed {seed} failed; what it left is in {folder}", file=sys.stderr)
                return 1
            shutil.rmtree(folder)
            reached["races"] += 1
            if asked.seed is not None or time.monotonic() > until:
                break
    if asked.json:
        print(json.dumps(dict(sorted(reached.items())), indent=1))
    else:
        for what, count in sorted(reached.items()):
            print(f"{count:>8}  {what}")
    return 0


def one(folder: Path, seed: int, asked: argparse.Namespace) -> Counter[str]:
    dsn = server().dsn() if asked.database == "postgres" else None
    race = Race(
        folder / "race",
        seed,
        dsn=dsn,
        machines=asked.machines if dsn else 1,
        racers=asked.racers,
        lives=asked.lives,
    )
    race.run()
    return held_against(race)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--database", choices=["sqlite", "postgres"], default="sqlite")
    parser.add_argument("--machines", type=int, default=2, help="homes, with postgres")
    parser.add_argument("--racers", type=int, default=6)
    parser.add_argument("--lives", type=int, default=6, help="of each racer")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
