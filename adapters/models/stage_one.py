"""Stage one: the question that phase 1 asks of a session, in both versions, and its answer."""

from functools import cache
from hashlib import sha256

from ...domain.budget import pieces
from ...domain.evidence import MESSAGE_BYTES
from ...domain.redaction import redact
from ...domain.session import Header
from ...prompts import filled, prompt
from .questions import Question, Schema, message
from .schemas import STAGE_ONE, StageOneV1, fitted, strict

EFFORT = "low"


def question(
    header: Header, memory_version: str, evidence: str, *, model: str, tokens_max: int
) -> Question:
    # Places are ids in the log, and keep what stands in them; whoever is asked need not know it.
    values = {
        "rollout_path": one_line(redact(header.rollout_path)),
        "rollout_cwd": one_line(redact(header.cwd or "unknown")),
        "git_branch": one_line(redact(header.git_branch or "unknown")),
        "contents": evidence,
    }
    text = filled(f"stage_one_input_{memory_version}", values)
    # A half surrogate cannot be sent.
    text = text.encode("utf-8", "replace").decode()
    parts = [text] if memory_version == "v1" else pieces(text, bytes_max=MESSAGE_BYTES)
    return Question(
        model=model,
        instructions=prompt(f"stage_one_{memory_version}"),
        inputs=[message("user", part) for part in parts],
        schema=schema(memory_version),
        effort=EFFORT,
        tokens_max=tokens_max,
    )


def one_line(place: str) -> str:
    """A folder's name may hold a line's end, and behind it what looks like a person's row."""
    return "".join(sign if sign.isprintable() else "\ufffd" for sign in place)


@cache
def schema(memory_version: str) -> Schema:
    return strict(STAGE_ONE[memory_version], name=f"stage_one_{memory_version}")


@cache
def digest(memory_version: str) -> str:
    """What was asked, whoever was asked: instructions, the frame of the evidence, the schema."""
    from msgspec.json import encode

    asked = (
        prompt(f"stage_one_{memory_version}").encode(),
        prompt(f"stage_one_input_{memory_version}").encode(),
        encode(schema(memory_version).json),
    )
    return sha256(b"\0".join(asked)).hexdigest()


def texts(memory_version: str, text: str) -> tuple[str, str, str | None]:
    """Raw memory, summary and slug as an answer says them; an `Unfit` where it does not fit."""
    said = fitted(STAGE_ONE[memory_version], text)
    raw = said.raw_memory if isinstance(said, StageOneV1) else ""
    return storable(raw), storable(said.rollout_summary), storable(said.rollout_slug or "") or None


def storable(said: str) -> str:
    """Without what no body and no file can hold: NULs, half surrogates."""
    return said.encode("utf-16", "surrogatepass").decode("utf-16", "replace").replace("\0", "")
