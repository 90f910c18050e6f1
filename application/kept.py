"""Kept: what is kept of what an extractor said.

Nothing secret, and of what a model quotes only what somebody typed. v1 keeps a raw memory and a
summary, and needs both. v2 keeps a summary alone, and of a long one its beginning and its end.
White space says nothing in either: Codex keeps it.
"""

from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from ..domain.redaction import redact, redact_item
from ..domain.session import Human
from ..domain.truncation import cut_middle_bytes
from .ports import Extracted
from .quotes import checked
from .surroundings import Surroundings

# Always under v2's 10,000 with the mark that says what is missing.
V2_SUMMARY_BYTES_MAX = 9_000


def cleared(around: Surroundings, found: Extracted, source: Path) -> Extracted:
    """What an extractor said without the secrets in it; a model's quotes are looked up first.

    Of what the session says only a person's words are kept, so that only those are redacted.
    """
    found = replace(
        found,
        raw_memory=redact(found.raw_memory),
        rollout_summary=redact(found.rollout_summary),
        rollout_slug=redact(found.rollout_slug) if found.rollout_slug else None,
    )
    if found.prompt_digest is not None:
        items = around.rollouts.items(source, now_ms=int(around.clock() * 1000))
        found = checked(
            found, (redact_item(item) if isinstance(item, Human) else item for item in items)
        )
    return replace(found, evidence=redact_evidence(found.evidence) if found.evidence else None)


def redact_evidence(evidence: str) -> str:
    """Each quote by itself: a JSON text is no place to look for secrets in."""
    quotes = msgspec.json.decode(evidence, type=list[dict[str, Any]])
    for quote in quotes:
        quote["quote"] = redact(quote["quote"])
    return msgspec.json.encode(quotes).decode()


def kept(found: Extracted, memory_version: str) -> Extracted | None:
    """None where it is no output. Its secrets are gone already: a cut could part one from the word
    that gives it away."""
    if not found.rollout_summary.strip():
        return None
    if memory_version == "v2":
        summary = cut_middle_bytes(found.rollout_summary, bytes_max=V2_SUMMARY_BYTES_MAX)
        return replace(found, raw_memory="", rollout_summary=summary)
    return found if found.raw_memory.strip() else None
