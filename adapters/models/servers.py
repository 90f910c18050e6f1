"""Servers: what each can do, as far as it was found out, so that a run does not ask it twice.

A cache: one file in the home, 0600, and a broken one is as good as none. What was learned counts
for a week: a server may have been upgraded meanwhile. It is kept for a server and a model, because
proxies ask different servers for different models.
"""

import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ...domain.address import shown

FILE = "servers.json"
KNOWN_S = 7 * 86_400

# How an object is asked for, from the strongest to the weakest: by the Responses API with a schema,
# by chat completions with a schema, by chat completions with the schema in words.
Mode = Literal["responses", "chat_schema", "chat_json"]


class Server(Struct, frozen=True, kw_only=True):
    """`proven`: the mode gave an object once. `without`: fields of a request that it refused.
    `cap`: what chat completions call the most that a reply may have."""

    mode: Mode = "responses"
    proven: bool = False
    without: tuple[str, ...] = ()
    cap: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    learned_at: int = 0


class Servers:
    def __init__(self, home: Path | None, *, clock: Callable[[], float] = time.time) -> None:
        """None: what is learned is forgotten with the process."""
        self._path = None if home is None else home / FILE
        self._clock = clock
        self._lock = Lock()
        self._known: dict[str, Server] | None = None

    def of(self, base_url: str, model: str) -> Server:
        with self._lock:
            known = self._read().get(key(base_url, model), Server())
        return known if self._is_fresh(known) else Server()

    def learn(self, base_url: str, model: str, server: Server) -> None:
        """Keep it, in the file too where that can be: a cache that cannot be written costs a
        question, and no memory."""
        with self._lock:
            known = self._read()
            if replace(known.get(key(base_url, model), Server()), learned_at=0) == replace(
                server, learned_at=0
            ):
                return
            # Another run may have written meanwhile.
            known = self._known = self._from_file() | known
            known[key(base_url, model)] = replace(server, learned_at=int(self._clock()))
            if self._path is not None:
                with suppress(OSError):
                    write(self._path, known)

    def _is_fresh(self, server: Server) -> bool:
        return 0 <= self._clock() - server.learned_at < KNOWN_S

    def _read(self) -> dict[str, Server]:
        if self._known is None:
            self._known = self._from_file()
        return self._known

    def _from_file(self) -> dict[str, Server]:
        if self._path is None:
            return {}
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=dict[str, Server])
        except (OSError, msgspec.DecodeError):  # Also one that fits no `Server`.
            return {}


def write(path: Path, known: dict[str, Server]) -> None:
    text = msgspec.json.format(msgspec.json.encode(known), indent=2)
    beside = path.with_name(f"{path.name}.{os.getpid()}.new")
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    with open(os.open(beside, flags, 0o600), "wb") as file:
        file.write(text + b"\n")
    os.replace(beside, path)


def key(base_url: str, model: str) -> str:
    """Without what of an address is a secret."""
    return f"{shown(base_url).rstrip('/')} {model}"
