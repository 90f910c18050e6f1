"""Where a shared memory is: a DSN, taken apart, and how it may be called in a message."""

from urllib.parse import unquote

import psycopg
from psycopg import conninfo

from .errors import StoreUnreadable

SCHEMA = "threadbook"
CONNECT_WAIT_S = 10


class Place:
    """A DSN taken apart. `?schema=NAME` is ours: several memories may share a database."""

    def __init__(self, dsn: str) -> None:
        address, _, query = dsn.partition("?")
        options = query.split("&") if query else []
        ours = [option for option in options if option.startswith("schema=")]
        self.schema = unquote(ours[-1].removeprefix("schema=")) if ours else SCHEMA
        rest = "&".join(option for option in options if option not in ours)
        try:
            self.parameters = conninfo.conninfo_to_dict(f"{address}?{rest}")
        except psycopg.Error:  # Its message may quote the password.
            raise StoreUnreadable(
                "the DSN cannot be read; write postgresql://user@host:5432/database?schema=name,"
                " with special characters percent-encoded, and the password in ~/.pgpass"
            ) from None
        self.parameters.setdefault("connect_timeout", CONNECT_WAIT_S)
        self.name = self._name()

    def _name(self) -> str:
        given = self.parameters
        user = f"{given['user']}@" if given.get("user") else ""
        port = f":{given['port']}" if given.get("port") else ""
        return (
            f"postgresql://{user}{given.get('host', '')}{port}/{given.get('dbname', '')}"
            f"?schema={self.schema}"
        )

    def without_password(self, message: str) -> str:
        for secret in ("password", "sslpassword"):
            if value := self.parameters.get(secret):
                message = message.replace(str(value), "***")
        return " ".join(message.split())
