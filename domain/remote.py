"""Remote: the address a project is fetched from, without what is secret or accidental in it.

One project is one remote, however it is written: `git@host:o/r.git`, `ssh://git@host/o/r` and
`https://token@host/o/r.git?x` are `host/o/r`. Credentials never leave this module. An address
that means something on one machine only (a path, a file URL) names no project.
"""

import re
from urllib.parse import SplitResult, urlsplit

DEFAULT_PORTS = {"http": 80, "https": 443, "ssh": 22, "git+ssh": 22, "ssh+git": 22, "git": 9418}
# `host:path`, as scp writes it. A host of one letter is a Windows drive; `word::address` hands the
# address to a helper program of git's and says nothing about a host.
SCP = re.compile(r"(?:[^@/\\]*@)?(?P<host>[^@:/\\]{2,}|\[[0-9A-Fa-f:.]+\]):(?P<path>(?!:)[^\\]*)")


def normalised(url: str | None) -> str | None:
    """`host/path`, or None where the address names no host."""
    text = (url or "").strip()
    if "://" in text:
        parts = split(text)
        if parts is None or parts.scheme.lower() == "file" or not parts.hostname:
            return None
        return joined(host_of(parts), parts.path)
    if (scp := SCP.fullmatch(text)) and not text.startswith(("/", ".", "~")):
        return joined(scp["host"].lower(), scp["path"])
    return None


def public_url(url: str | None) -> str | None:
    """The address as it was written, without userinfo, query and fragment."""
    text = (url or "").strip()
    if not text:
        return None
    if "://" in text:
        if split(text) is None:
            return None  # It cannot be told where a password would end.
        scheme, _, rest = text.partition("://")
        authority, slash, path = bare(rest).partition("/")
        return f"{scheme}://{authority.rpartition('@')[2]}{slash}{path}"
    if scp := SCP.fullmatch(text):
        return f"{scp['host']}:{bare(scp['path'])}"
    return text


def split(text: str) -> SplitResult | None:
    try:
        parts = urlsplit(text)
        _ = parts.port  # Read now, because a port that is no number raises only when it is read.
    except ValueError:
        return None
    return parts


def host_of(parts: SplitResult) -> str:
    host = (parts.hostname or "").rstrip(".")
    default = DEFAULT_PORTS.get(parts.scheme.lower())
    return host if parts.port in (None, default) else f"{host}:{parts.port}"


def joined(host: str, path: str) -> str | None:
    kept = "/".join(part for part in bare(path).split("/") if part)
    if kept.lower().endswith(".git"):
        kept = kept[: -len(".git")].rstrip("/")
    return f"{host}/{kept}" if kept else None


def bare(path: str) -> str:
    return re.split(r"[?#]", path, maxsplit=1)[0]
