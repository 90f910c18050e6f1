"""Logs for tests to draw: every event that exists, over few enough names that they meet.

An event is built from its own fields, so one that is added to the log is drawn from that day on.
Beside single events, which may come in any order, there are the stories that a worker writes; half
of what is drawn is made of them, else a consolidation would hardly ever find an output.
"""

from types import NoneType, UnionType
from typing import Union, get_args, get_origin

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from msgspec import UNSET, UnsetType
from msgspec.structs import fields, replace
from threadbook.domain.events import (
    AnyEvent,
    ArtifactsPublished,
    Cited,
    ConsolidationRequested,
    FolderEdited,
    ForgettingLifted,
    Input,
    MemoryModeSet,
    Phase2LeaseClaimed,
    Phase2Succeeded,
    RootRendered,
    Selected,
    Stage1Failed,
    Stage1LeaseClaimed,
    Stage1Succeeded,
    Stage1SucceededNoOutput,
    ThreadForgotten,
    ThreadPolluted,
    ThreadRegistered,
    ThreadRescoped,
    Tokens,
)

EVERY_EVENT = get_args(AnyEvent)

DAY_S = 86_400
times = st.one_of(st.integers(0, 9), st.sampled_from([DAY_S - 1, DAY_S, DAY_S + 1]))
thread_ids = st.sampled_from(["t1", "t2", "t3"])
versions = st.sampled_from(["v1", "v2"])
scopes = st.sampled_from(["global", "project:a"])
refs = st.sampled_from(["r1", "r2", "r3", "r4"])
counts = st.integers(0, 3)
words = st.sampled_from(["", "null", "1", "wörter", "two\nlines"])

tokens = st.one_of(
    st.just(Tokens()),
    st.builds(
        Tokens,
        model=st.sampled_from(["luna", "terra"]),
        calls=counts,
        input=counts,
        cached=counts,
        output=counts,
        reasoning=counts,
    ),
)
snapshots = st.lists(
    st.builds(Selected, thread_id=thread_ids, source_updated_at=times, matched=st.booleans()),
    max_size=3,
    unique_by=lambda selected: selected.thread_id,
).map(tuple)
inputs = st.lists(st.builds(Input, thread_id=thread_ids, source_updated_at=times), max_size=2)

BY_FIELD = {
    "at": times,
    "thread_id": thread_ids,
    "memory_version": versions,
    "scope": scopes,
    "session_id": st.sampled_from(["s1", "s2"]),
    "citation_id": st.sampled_from(["s1:1", "s1:2"]),
    "files": st.lists(refs, max_size=3).map(tuple),
    "thread_ids": st.lists(thread_ids, max_size=2).map(tuple),
    "tool_calls": st.just({}),
    "consolidator": st.sampled_from(["offline", "model:terra", "forget"]),
}
BY_TYPE = {
    int: times,
    str: words,
    bool: st.booleans(),
    NoneType: st.none(),
    UnsetType: st.just(UNSET),
    Tokens: tokens,
    tuple[Selected, ...]: snapshots,
    tuple[Input, ...]: inputs.map(tuple),
    tuple[str, ...]: st.lists(words, max_size=2).map(tuple),
}


def values(name, kind):
    if kind is not Tokens and name in BY_FIELD:
        drawn = BY_FIELD[name]
        return st.one_of(st.none(), drawn) if NoneType in get_args(kind) else drawn
    if name.endswith("_ref") and str in (kind, *get_args(kind)):
        optional = [BY_TYPE[part] for part in get_args(kind) if part is not str]
        return st.one_of(*optional, refs)
    if get_origin(kind) in (Union, UnionType):
        return st.one_of([values("", part) for part in get_args(kind)])
    return BY_TYPE[kind] if kind in BY_TYPE else st.from_type(kind)


def built(event):
    return st.builds(
        event, **{field.name: values(field.name, field.type) for field in fields(event)}
    )


ANY = {event: built(event) for event in EVERY_EVENT}
single_events = st.one_of(list(ANY.values()))


def told(draw, events, **about):
    """Any one of these events, about this thread or this root."""
    event = draw(st.one_of([ANY[kind] for kind in events]) if len(events) > 1 else ANY[events[0]])
    return replace(event, **{key: about[key] for key in about if key in event.__struct_fields__})


ENDS = (Stage1Succeeded, Stage1Succeeded, Stage1SucceededNoOutput, Stage1Failed)
TURNS = (ThreadPolluted, MemoryModeSet, ThreadRescoped, ThreadForgotten, ForgettingLifted)


@st.composite
def readings(draw):
    """A session is claimed and read; perhaps it is cited; then something happens to it."""
    about = {"thread_id": draw(thread_ids), "memory_version": draw(versions)}
    replaced = draw(st.sampled_from([True, True, True, False]))
    story = [told(draw, [ThreadRegistered], **about)] if draw(st.booleans()) else []
    story.append(told(draw, [Stage1LeaseClaimed], **about))
    story.append(told(draw, ENDS, **about, output_replaced=replaced))
    story += [told(draw, [Cited], **about) for _ in range(draw(st.integers(0, 2)))]
    return story + [told(draw, TURNS, **about) for _ in range(draw(st.integers(1, 2)))]


@st.composite
def consolidations(draw):
    """A root is asked for, claimed, published, rendered; a person may have edited in it before."""
    root = {"memory_version": draw(versions), "scope": draw(scopes)}
    steps = [ConsolidationRequested, Phase2LeaseClaimed, FolderEdited, ArtifactsPublished]
    steps += [Phase2Succeeded, RootRendered]
    if draw(st.booleans()):
        steps.remove(FolderEdited)
    return [told(draw, [step], **root) for step in steps]


logs = st.lists(
    st.one_of(readings(), consolidations(), single_events.map(lambda event: [event])),
    min_size=6,  # Hypothesis likes short lists, and in a short log nothing meets.
    max_size=14,
).map(lambda parts: [event for part in parts for event in part])


def lawful(log):
    """The log without what no command would append: anything of a thread after its end."""
    ended = set()
    kept = []
    for event in log:
        thread_id = getattr(event, "thread_id", None)
        match event:
            case ForgettingLifted():
                ended.discard(thread_id)
            case ConsolidationRequested():  # About a root; the thread is only the occasion.
                pass
            case _ if thread_id in ended:
                continue
            case ThreadForgotten():
                ended.add(thread_id)
        kept.append(event)
    return kept


# A busy machine is no reason to fail: what these properties promise has nothing to do with time.
unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
