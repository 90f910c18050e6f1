"""Kept: what a memory version keeps of what an extractor said.

v1 keeps a raw memory and a summary, and needs both. v2 keeps a summary alone, and of a long one its
beginning and its end. White space says nothing in either: Codex keeps it.
"""

from msgspec.structs import replace

from ..domain.truncation import cut_middle_bytes
from .ports import Extracted

# Always under v2's 10,000 with the mark that says what is missing.
V2_SUMMARY_BYTES_MAX = 9_000


def kept(found: Extracted, memory_version: str) -> Extracted | None:
    """None where it is no output. Its secrets are gone already: a cut could part one from the word
    that gives it away."""
    if not found.rollout_summary.strip():
        return None
    if memory_version == "v2":
        summary = cut_middle_bytes(found.rollout_summary, bytes_max=V2_SUMMARY_BYTES_MAX)
        return replace(found, raw_memory="", rollout_summary=summary)
    return found if found.raw_memory.strip() else None
