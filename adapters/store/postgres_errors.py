"""What psycopg says, as the store's own errors: one sentence each, with what to do.

Foreign errors become these at the edge, once, as SQLite's do in `errors.py`. The server's words are
passed on without the password that the DSN may have.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psycopg

from ...application.ports import Conflict
from ...projections.fold import RowDamaged
from .errors import StoreBusy, StoreDamaged, StoreError, StoreFull, StoreLost, StoreUnreadable
from .postgres_place import Place


class StoreUnreachable(StoreUnreadable):
    """No server answers."""


@contextmanager
def explained(place: Place, holder: Callable[[], str] = lambda: "") -> Iterator[None]:
    """Round a block: psycopg's errors leave it as ours."""
    try:
        yield
    except psycopg.errors.UniqueViolation as error:
        raise Conflict("it is already there; read again") from error
    except psycopg.Error as error:
        raise explain(error, place, holder) from error
    except RowDamaged as error:
        raise StoreDamaged(
            f"{place.name}: {error}; `threadbook replay --verify` shows what else differs,"
            " `threadbook replay --rebuild` makes the tables anew from the log"
        ) from error


def explain_connecting(error: psycopg.Error, place: Place) -> StoreError:
    """Before there is a session the server's codes do not reach us, only its words."""
    said = place.without_password(str(error))
    words = said.lower()
    if "authentication" in words or "password" in words or "pg_hba" in words:
        return StoreUnreadable(
            f"{place.name} does not let this user in ({said}); check the user's name, and the"
            " password in ~/.pgpass or PGPASSWORD"
        )
    if "role" in words and "does not exist" in words:
        return StoreUnreadable(
            f"{place.name}: there is no such user ({said}); have it made (createuser)"
        )
    if "database" in words and "does not exist" in words:
        return StoreUnreadable(
            f"{place.name}: there is no such database ({said}); make it first:"
            f" createdb {place.parameters.get('dbname', '')}"
        )
    if "too many" in words or "remaining connection slots" in words:
        return StoreBusy(f"{place.name} has no connection left ({said}); try again later")
    return StoreUnreachable(
        f"{place.name}: no server answers ({said}); check host and port, and that it runs,"
        " then run the command again"
    )


def explain(error: psycopg.Error, place: Place, holder: Callable[[], str]) -> StoreError:
    said = place.without_password(str(error))
    code = error.sqlstate or ""
    match code[:2], code:
        case _, "55P03" | "57014" | "40P01" | "40001":
            return StoreBusy(
                f"{place.name}: {holder() or 'another program'} holds the write lock;"
                " wait until it has finished, or stop it, then try again"
            )
        case "53", "53100":
            return StoreFull(
                f"{place.name} could not grow: the server's disk is full; nothing was stored:"
                " make room and run the command again"
            )
        case "53", _:
            return StoreBusy(f"{place.name} has no room for more work ({said}); try again later")
        case _, "25006":
            return StoreUnreadable(
                f"{place.name} may only be read ({said}); give the DSN of the primary server"
            )
        case "42", "42501":
            return StoreUnreadable(
                f"{place.name}: the user may not do that ({said}); GRANT CREATE on the database,"
                f" or make the schema for this user: CREATE SCHEMA {place.schema} AUTHORIZATION …"
            )
        case (("57" | "08" | "25"), _):
            return lost(place, said)
        case "", "" if isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
            return lost(place, said)
        case "XX" | "58", _:
            return StoreDamaged(
                f"{place.name} is damaged ({said}); nothing was changed: have the server looked at"
            )
        case _:
            return StoreDamaged(
                f"{place.name} holds something unexpected ({said}); `threadbook verify` checks the"
                " log, `threadbook replay --rebuild` makes the tables anew from it"
            )


def lost(place: Place, said: str) -> StoreLost:
    return StoreLost(
        f"{place.name}: the connection ended ({said}); run the command again: what had been stored"
        " by then stays, and doing it twice changes nothing"
    )
