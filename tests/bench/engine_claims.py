"""One process that claims and gives back phase-1 jobs, for the bench to start several of.

    python tests/bench/engine_claims.py HOME CLAIMS SEED

Exclusive is what a file says that only one process can make: it is made after the claim is
committed and removed before the lease is given back. Prints claims, refusals, violations, errors.
"""

import os
import sys
from pathlib import Path
from random import Random

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]

from threadbook.application import state  # noqa: E402
from threadbook.domain import extraction  # noqa: E402
from threadbook.domain.events import extraction_stream  # noqa: E402
from threadbook.domain.refusals import Refused  # noqa: E402
from threadbook.projections import jobs  # noqa: E402

from tests.bench.engine_log import clock, open_store  # noqa: E402

JOBS = 40


def work(home: Path, wanted: int, seed: int) -> tuple[int, int, int, int]:
    store, random, now = open_store(home), Random(seed), int(clock())
    claims = refused = violations = errors = 0
    while claims < wanted:
        thread_id = f"t{random.randrange(JOBS)}"
        witness = home / f"witness-{thread_id}"
        token = f"{random.getrandbits(128):032x}"
        stream = extraction_stream("v1", thread_id)
        try:
            with store.writing(actor="pipeline") as tx:
                running = tx.value(
                    jobs.OTHERS_RUNNING, memory_version="v1", thread_id=thread_id, now=now
                )
                claimed = extraction.claim(
                    state.extraction(tx, "v1", thread_id),
                    watermark=now,
                    extractor="bench",
                    worker_id=str(seed),
                    ownership_token=token,
                    running_elsewhere=running,
                    running_cap=8,
                    again=True,
                    now=now,
                )
                tx.append(stream, claimed)
            claims += 1
            try:
                os.close(os.open(witness, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                violations += 1
            witness.unlink(missing_ok=True)
            with store.writing(actor="pipeline") as tx:
                job = state.extraction(tx, "v1", thread_id)
                given_back = extraction.release(
                    job, ownership_token=token, reason="stopped", now=now
                )
                tx.append(stream, given_back)
        except Refused:
            refused += 1
        except Exception as error:  # Whatever it is, a caller saw it: that is what is counted.
            print(f"{type(error).__name__}: {error}", file=sys.stderr)
            errors += 1
            if errors > 100:
                break
    return claims, refused, violations, errors


if __name__ == "__main__":
    print(*work(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])))
