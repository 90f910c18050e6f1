"""A thread whose last mode event is ThreadPolluted is never selected, however it came about."""

from hypothesis import event as reached
from hypothesis import given, settings
from hypothesis import strategies as st
from threadbook.domain.eligibility import Limits, failed, gates
from threadbook.domain.events import MemoryModeSet, ThreadPolluted
from threadbook.domain.selection import Output, rank
from threadbook.domain.thread import change, evolve, follow_transcript, pollute, set_mode

from tests.support import NOON, header, registered

ACTS = {
    "a tool brings outside text": lambda thread: pollute(thread, cause="mcp", now=NOON),
    "a person enables": lambda thread: set_mode(thread, mode="enabled", reason="person", now=NOON),
    "a person disables": lambda thread: set_mode(
        thread, mode="disabled", reason="person", now=NOON
    ),
    "the transcript says enabled": lambda thread: follow_transcript(
        thread, memory_mode="enabled", now=NOON
    ),
    "the transcript says disabled": lambda thread: follow_transcript(
        thread, memory_mode="disabled", now=NOON
    ),
    "the transcript says polluted": lambda thread: follow_transcript(
        thread, memory_mode="polluted", now=NOON
    ),
    "it is read again": lambda thread: change(
        thread, header=header(memory_mode="enabled", archived=not thread.archived), now=NOON
    ),
}


@settings(deadline=None)
@given(acts=st.lists(st.sampled_from(sorted(ACTS)), max_size=8))
def test_a_thread_whose_last_mode_event_is_pollution_is_never_selected(acts):
    thread, modes = registered(), []
    for act in acts:
        event = ACTS[act](thread)
        if event is None:
            continue
        thread = evolve(thread, event)
        if isinstance(event, MemoryModeSet | ThreadPolluted):
            modes.append(event)

    output = Output(
        thread_id="t1", source_updated_at=NOON, counts_from=NOON, mode=thread.mode, usage_count=9
    )
    chosen = rank([output], cutoff=0, limit=9).chosen
    shut = failed(gates(thread, output, now=NOON, limits=Limits()))

    if modes and isinstance(modes[-1], ThreadPolluted):
        reached("polluted in the end")
        assert chosen == ()
        assert shut.name == "memory_mode"
    by_person = [act for act in acts if act.startswith("a person")]
    if "a tool brings outside text" in acts and not by_person:
        assert thread.mode == "polluted", "something but a person left pollution"
