"""Selection: which outputs of a memory root phase 2 reads, and which have aged out.

The ranking is Codex's, to the tie: uses, then the last use or else the reading, then the reading,
then the thread id. Selection and pruning meet at one cutoff: what is not older is selectable,
what is older is prunable, and nothing is both or neither. Everything here is a function of what
it is given, so that the same question can be asked of any moment.
"""

from collections.abc import Iterable, Mapping

from msgspec import Struct

from .events import Input, Mode, Selected
from .refusals import clock

DAY_S = 86_400


class Output(Struct, frozen=True, kw_only=True, gc=False):
    """What is known of one live output. `selected`: the root's last success was made from it."""

    thread_id: str
    source_updated_at: int
    counts_from: int
    usage_count: int = 0
    last_usage: int | None = None
    mode: Mode = "enabled"
    selected: bool = False


class Ranked(Struct, frozen=True, kw_only=True, gc=False):
    """`rank` counts from 1 among those that may be selected, and is None for the others."""

    output: Output
    rank: int | None
    chosen: bool
    reason: str


class Ranking(Struct, frozen=True, kw_only=True):
    """`entries` go by rank, then those without one; `chosen` goes by thread id, as files do."""

    entries: tuple[Ranked, ...]
    chosen: tuple[Output, ...]


def cutoff_at(now: int, *, max_unused_days: int) -> int:
    return now - max_unused_days * DAY_S


def last_needed(output: Output) -> int:
    """What ages an output: its last use, and before any the day that it counts from."""
    return output.counts_from if output.last_usage is None else output.last_usage


def rank(outputs: Iterable[Output], *, cutoff: int, limit: int) -> Ranking:
    """Every output with its place and reason, and those that fit."""
    best_first = sorted(outputs, key=merit, reverse=True)
    able = [output for output in best_first if is_selectable(output, cutoff=cutoff)]
    unable = [output for output in best_first if not is_selectable(output, cutoff=cutoff)]
    entries = [
        Ranked(
            output=output,
            rank=place,
            chosen=place <= limit,
            reason=f"rank {place} of {len(able)}"
            + ("" if place <= limit else f"; only {limit} are read"),
        )
        for place, output in enumerate(able, start=1)
    ]
    entries += [
        Ranked(output=output, rank=None, chosen=False, reason=why_not(output, cutoff=cutoff))
        for output in unable
    ]
    chosen = sorted(able[: max(limit, 0)], key=lambda output: output.thread_id)
    return Ranking(entries=tuple(entries), chosen=tuple(chosen))


def merit(output: Output) -> tuple[int, int, int, str]:
    used = output.source_updated_at if output.last_usage is None else output.last_usage
    return output.usage_count, used, output.source_updated_at, output.thread_id


def is_selectable(output: Output, *, cutoff: int) -> bool:
    return output.mode == "enabled" and last_needed(output) >= cutoff


def why_not(output: Output, *, cutoff: int) -> str:
    if output.mode != "enabled":
        return f"memory mode is {output.mode}"
    verb = "counted from" if output.last_usage is None else "last used"
    return f"{verb} {clock(last_needed(output))}, before the cutoff of {clock(cutoff)}"


def is_prunable(output: Output, *, cutoff: int) -> bool:
    """Older than the cutoff, and not in the last consolidation. The mode does not matter."""
    return last_needed(output) < cutoff and not output.selected


def prunable(outputs: Iterable[Output], *, cutoff: int, limit: int) -> tuple[Output, ...]:
    """The oldest first, at most `limit`."""
    aged = (output for output in outputs if is_prunable(output, cutoff=cutoff))
    oldest_first = sorted(
        aged, key=lambda output: (last_needed(output), output.source_updated_at, output.thread_id)
    )
    return tuple(oldest_first[: max(limit, 0)])


def inputs(chosen: Iterable[Output]) -> tuple[Input, ...]:
    return tuple(
        Input(thread_id=output.thread_id, source_updated_at=output.source_updated_at)
        for output in chosen
    )


def snapshot(read: Iterable[Input], *, held: Mapping[str, int]) -> tuple[Selected, ...]:
    """What a success records of what it read: `matched` where the output is still that reading.

    `held` is source_updated_at by thread id, of the outputs that are live at the success.
    """
    return tuple(
        Selected(
            thread_id=each.thread_id,
            source_updated_at=each.source_updated_at,
            matched=held.get(each.thread_id) == each.source_updated_at,
        )
        for each in read
    )
