"""What the store's queries select and prune is what the domain says, and together it is everything.

The rows are made by events, folded by the real store; a root's selection, the list to prune and
the ranking that explains both are three queries and one function, and they must draw the line
between an output's life and its end at the same second.
"""

import os
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import event as reached
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from threadbook.application import state
from threadbook.application.explain import ranking
from threadbook.application.roots import Root, chosen
from threadbook.application.surroundings import Policy
from threadbook.domain import selection
from threadbook.domain.eligibility import Limits
from threadbook.domain.events import (
    Cited,
    MemoryModeSet,
    Phase2Succeeded,
    Selected,
    Stage1Succeeded,
    Stage1SucceededNoOutput,
    ThreadPolluted,
    consolidation_stream,
    extraction_stream,
    thread_stream,
)
from threadbook.projections import selection as snapshots
from threadbook.projections import stage1_outputs

from tests.adapters.stores import NOON, open_store

DAYS = 30
CUTOFF = NOON - DAYS * 86_400
FERN, MOSS = "project:fern-1", "project:moss-2"
MEMORY_DISK = "/dev/shm" if os.path.isdir("/dev/shm") else None
ALL = 1 << 30

times = st.sampled_from([CUTOFF - 2, CUTOFF - 1, CUTOFF, CUTOFF + 1, NOON])
facts = st.fixed_dictionaries(
    {
        "scope": st.sampled_from([FERN, FERN, MOSS]),
        "source_updated_at": times,
        "counts_from": times,
        "cited_at": st.one_of(st.none(), times),
        "mode": st.sampled_from(["enabled", "enabled", "enabled", "disabled", "polluted"]),
        "in_the_last_success": st.booleans(),
        "matched": st.sampled_from([True, True, False]),
        "then": st.sampled_from(["nothing", "nothing", "read again", "removed", "written anew"]),
    }
)


def success(thread_id, drawn, *, at, source_updated_at, counts_from):
    return Stage1Succeeded(
        at=at,
        thread_id=thread_id,
        memory_version="v1",
        ownership_token="token",
        input_watermark=source_updated_at,
        source_updated_at=source_updated_at,
        raw_memory_ref="raw",
        rollout_summary_ref="summary",
        rollout_slug_ref=None,
        memory_mode="enabled",
        scope=drawn["scope"],
        output_replaced=True,
        counts_from=counts_from,
        extractor="offline",
    )


def nothing(thread_id, *, at):
    return Stage1SucceededNoOutput(
        at=at,
        thread_id=thread_id,
        memory_version="v1",
        ownership_token="token",
        input_watermark=at,
        output_removed=True,
        extractor="offline",
    )


def lived(tx, thread_id, drawn):
    """One output's life: read, cited, put into a mode, consolidated, and what came after."""
    stream = extraction_stream("v1", thread_id)
    read = {name: drawn[name] for name in ("source_updated_at", "counts_from")}
    tx.append(stream, success(thread_id, drawn, at=CUTOFF, **read))
    if drawn["cited_at"] is not None:
        cited = Cited(
            at=drawn["cited_at"],
            thread_id=thread_id,
            memory_version="v1",
            citation_id="s:1",
            usage_count=1,
        )
        tx.append(stream, cited)
    if drawn["mode"] == "polluted":
        event = ThreadPolluted(at=CUTOFF, thread_id=thread_id, cause="x", mode_before="enabled")
        tx.append(thread_stream(thread_id), event)
    elif drawn["mode"] == "disabled":
        event = MemoryModeSet(
            at=CUTOFF,
            thread_id=thread_id,
            mode="disabled",
            mode_before="enabled",
            reason="person",
        )
        tx.append(thread_stream(thread_id), event)


def consolidated(tx, scope, outputs):
    selected = tuple(
        Selected(
            thread_id=thread_id,
            source_updated_at=drawn["source_updated_at"],
            matched=drawn["matched"],
        )
        for thread_id, drawn in outputs.items()
        if drawn["in_the_last_success"] and drawn["scope"] == scope
    )
    done = Phase2Succeeded(
        at=NOON - 10,
        memory_version="v1",
        scope=scope,
        ownership_token="token",
        completed_watermark=0,
        last_success_watermark=0,
        selected=selected,
    )
    tx.append(consolidation_stream("v1", scope), done)


def went_on(tx, thread_id, drawn):
    stream = extraction_stream("v1", thread_id)
    later = {
        "at": NOON - 5,
        "source_updated_at": drawn["source_updated_at"] + 1,
        "counts_from": drawn["counts_from"],
    }
    match drawn["then"]:
        case "read again":
            tx.append(stream, success(thread_id, drawn, **later))
        case "removed":
            tx.append(stream, nothing(thread_id, at=NOON - 5))
        case "written anew":
            tx.append(stream, nothing(thread_id, at=NOON - 5))
            tx.append(stream, success(thread_id, drawn, **later))


@settings(max_examples=150, deadline=None)
@given(drawn=st.lists(facts, min_size=1, max_size=7), limit=st.integers(1, 4))
def test_what_is_enabled_is_selected_or_recent_or_prunable_and_the_queries_agree(drawn, limit):
    outputs = {f"t{number}": each for number, each in enumerate(drawn)}
    policy = Policy(limits=Limits(max_raw_memories_for_consolidation=limit, max_unused_days=DAYS))
    everything = replace(
        policy, limits=replace(policy.limits, max_raw_memories_for_consolidation=ALL)
    )
    with TemporaryDirectory(dir=MEMORY_DISK) as folder:
        store = open_store(Path(folder))
        with store.writing(actor="pipeline") as tx:
            for thread_id, each in outputs.items():
                lived(tx, thread_id, each)
            for scope in (FERN, MOSS):
                consolidated(tx, scope, outputs)
            for thread_id, each in outputs.items():
                went_on(tx, thread_id, each)

        with store.reading() as view:
            rows = view.find(stage1_outputs, stage1_outputs.OF_VERSION, memory_version="v1")
            selected = {
                row.thread_id
                for row in view.find(snapshots, snapshots.MATCHED, memory_version="v1")
            }
            prunable = view.find(
                stage1_outputs,
                stage1_outputs.PRUNABLE,
                memory_version="v1",
                cutoff=CUTOFF,
                most=ALL,
            )
            for scope in (FERN, MOSS, "global"):
                root = Root(memory_version="v1", scope=scope)
                held = [
                    state.output_of(row, selected=row.thread_id in selected)
                    for row in rows
                    if scope in ("global", row.scope)
                ]
                holds(view, root, policy, everything, held, {row.thread_id for row in prunable})
        known = [state.output_of(row, selected=row.thread_id in selected) for row in rows]
        in_order = selection.prunable(known, cutoff=CUTOFF, limit=ALL)
        assert [row.thread_id for row in prunable] == [each.thread_id for each in in_order]
        store.close()


def holds(view, root, policy, everything, held, prunable):
    recent = {row.thread_id for row in chosen(view, root, everything, now=NOON)}
    for output in held:
        here = output.thread_id in recent
        aged = output.thread_id in prunable
        assert not (here and aged)
        if output.mode == "enabled" and not output.selected:
            reached(f"not selected: {'recent' if here else 'prunable'}")
            assert here or aged
        if output.selected:
            reached("selected, and " + ("recent" if here else "past the cutoff"))
            assert not aged
        if selection.last_needed(output) == CUTOFF and output.mode == "enabled":
            reached("at the cutoff")
            assert here
        if output.mode != "enabled":
            reached(f"{output.mode}, and {'prunable' if aged else 'kept'}")
            assert not here
    told = selection.rank(
        held, cutoff=CUTOFF, limit=policy.limits.max_raw_memories_for_consolidation
    )
    read = [row.thread_id for row in chosen(view, root, policy, now=NOON)]
    assert read == [output.thread_id for output in told.chosen]
    explained = ranking(view, root.scope, policy, now=NOON)
    assert [(e.output.thread_id, e.rank, e.chosen) for e in explained.entries] == [
        (e.output.thread_id, e.rank, e.chosen) for e in told.entries if e.output.mode == "enabled"
    ]
    if len(told.chosen) < sum(entry.rank is not None for entry in told.entries):
        reached("more than fit")
