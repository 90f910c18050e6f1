"""Logs for tests to draw: every event that exists, over few enough names that they meet.

An event is built from its own fields, so one that is added to the log is drawn from that day on.
Beside single events, which may come in any order, there are the stories that a worker writes; half
of what is drawn is made of them, else a consolidation would hardly ever find an output.
"""

from types import NoneType, UnionType
from typing import Union, get_args, get_origin

from hypothesis import strategies as st
from msgspec import UNSET, UnsetType
from msgspec.structs import fields
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


def built(event, **given):
    drawn = {field.name: values(field.name, field.type) for field in fields(event)}
    return st.builds(event, **drawn | given)


single_events = st.one_of([built(event) for event in EVERY_EVENT])


@st.composite
def readings(draw):
    """A session is seen, claimed and read; perhaps it is cited, and perhaps it then goes bad."""
    about = {"thread_id": st.just(draw(thread_ids)), "memory_version": st.just(draw(versions))}
    of_thread = {"thread_id": about["thread_id"]}
    told = []
    if draw(st.booleans()):
        told.append(draw(built(ThreadRegistered, **of_thread)))
    told.append(draw(built(Stage1LeaseClaimed, **about)))
    ends = [
        built(Stage1Succeeded, **about, output_replaced=st.just(True)),
        built(Stage1Succeeded, **about, output_replaced=st.just(True)),
        built(Stage1Succeeded, **about),
        built(Stage1SucceededNoOutput, **about),
        built(Stage1Failed, **about),
    ]
    told.append(draw(st.one_of(ends)))
    told += draw(st.lists(built(Cited, **about), max_size=2))
    turns = [
        built(ThreadPolluted, **of_thread),
        built(MemoryModeSet, **of_thread),
        built(ThreadForgotten, **of_thread),
        built(ForgettingLifted, **of_thread),
    ]
    return told + draw(st.lists(st.one_of(turns), max_size=2))


@st.composite
def consolidations(draw):
    """A root is asked for, claimed, published, rendered; a person may have edited in it before."""
    root = {"memory_version": st.just(draw(versions)), "scope": st.just(draw(scopes))}
    steps = [ConsolidationRequested, Phase2LeaseClaimed, FolderEdited, ArtifactsPublished]
    if draw(st.booleans()):
        steps.remove(FolderEdited)
    told = [draw(built(step, **root)) for step in steps]
    told.append(draw(built(Phase2Succeeded, **root, selected=snapshots.filter(len))))
    return [*told, draw(built(RootRendered, **root))]


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
