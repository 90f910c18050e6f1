"""Files for the readers' tests."""

import json
from pathlib import Path
from typing import Any

FIXTURES = Path(__file__).parents[2] / "fixtures"
ROLLOUTS = FIXTURES / "rollouts"
EXTRA = FIXTURES / "rollouts-extra"
OPEN = FIXTURES / "open"
MADE = FIXTURES / "made"

# For a program that tells how much memory it has used, in bytes.
PEAK = """
import resource
from pathlib import Path
def peak():
    try:
        # The kernel's own mark begins anew with a program; getrusage's may be the parent's.
        lines = Path("/proc/self/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) * 1024
    except FileNotFoundError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
"""

NOW_MS = 1_796_000_000_000  # After every sane stamp of the fixtures.
ID = "019d0000-0000-7000-8000-000000000001"
PARENT = "019d0000-0000-7000-8000-0000000000aa"


def meta(**fields: Any) -> dict[str, Any]:
    payload = {
        "id": ID,
        "timestamp": "2026-05-04T08:00:00.000Z",
        "cwd": "/srv/ferns",
        "source": "cli",
    }
    return record("session_meta", payload | fields, second=0)


def record(kind: str, payload: dict[str, Any], *, second: int = 1) -> dict[str, Any]:
    at = f"2026-05-04T08:{second // 60:02}:{second % 60:02}.000Z"
    return {"timestamp": at, "type": kind, "payload": payload}


def message(text: str, *, role: str = "user", second: int = 1) -> dict[str, Any]:
    block = {"type": "output_text" if role == "assistant" else "input_text", "text": text}
    return record(
        "response_item", {"type": "message", "role": role, "content": [block]}, second=second
    )


def event(kind: str, *, second: int = 1, **fields: Any) -> dict[str, Any]:
    return record("event_msg", {"type": kind, **fields}, second=second)


def item(kind: str, *, second: int = 1, **fields: Any) -> dict[str, Any]:
    return record("response_item", {"type": kind, **fields}, second=second)


def claude(kind: str, content: Any, *, uuid: str, second: int = 1, **fields: Any) -> dict[str, Any]:
    return {
        "type": kind,
        "uuid": uuid,
        "sessionId": "cccc0000-0000-4000-8000-000000000009",
        "cwd": "/srv/ferns",
        "timestamp": f"2026-05-04T08:00:{second:02}.000Z",
        "message": {"role": kind, "content": content},
        **fields,
    }


def as_bytes(*records: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(one, ensure_ascii=False).encode() + b"\n" for one in records)


def written(folder: Path, *records: dict[str, Any], name: str = "session.jsonl") -> Path:
    path = folder / name
    path.write_bytes(as_bytes(*records))
    return path
