"""Publication: what a root holds from now on, whoever made it.

It is decided in one transaction that looks once more at everything it rests on: the lease, and that
every selected thread is still alive, enabled and of this root. Where it is not, nothing is
published, the lease is given back, and the root is claimed again with what is there now.
"""

from collections.abc import Mapping, Sequence

import msgspec
from msgspec import Struct

from ..domain import consolidation, selection
from ..domain.artifact import problems
from ..domain.carried import Carried, applied, written
from ..domain.events import (
    NO_TOKENS,
    ArtifactsPublished,
    Input,
    Tokens,
    consolidation_stream,
)
from ..projections import stage1_outputs
from . import state
from .edits import carried
from .lease import Claimed, give_back
from .ports import PhaseTwoOutput, Task, ToolUse, View, Writing
from .roots import Root, body, is_reworded, may_be_read
from .surroundings import Surroundings, Workspace


class Made(Struct, frozen=True, kw_only=True):
    """What a root is to hold. `left_out`: a person's files that could not be part of it."""

    consolidator: str
    files: Mapping[str, str]
    carried: Carried
    left_out: Mapping[str, str] = {}
    tokens: Tokens = NO_TOKENS
    tool_calls: Mapping[str, int] = {}
    tool_uses: Sequence[ToolUse] = ()
    prompt_digest: str | None = None


def with_carried(
    files: Mapping[str, str], kept: Carried, *, memory_version: str, consolidator: str
) -> Made:
    """The files with what a person did to them. Where that makes one unfit to be read as a
    memory, it is left out of it, and told."""
    with_all = {path: applied(kept, path, text) for path, text in files.items()}
    left_out: dict[str, str] = {}
    if problems(with_all, version=memory_version, grammar=False):
        for path, text in with_all.items():
            if problems({**files, path: text}, version=memory_version, grammar=False):
                left_out[path] = text
    still = {path: each for path, each in kept.files.items() if path not in left_out}
    return Made(
        consolidator=consolidator,
        files={path: files[path] if path in left_out else text for path, text in with_all.items()},
        carried=msgspec.structs.replace(kept, files=still),
        left_out=left_out,
    )


def set_aside(workspace: Workspace, left_out: Mapping[str, str]) -> list[str]:
    return [
        str(workspace.set_aside(path, text.encode("utf-8", "surrogatepass")))
        for path, text in sorted(left_out.items())
    ]


def rebuilt(
    around: Surroundings, root: Root, outputs: Sequence[PhaseTwoOutput]
) -> Mapping[str, str]:
    """The artifacts as they are written without a model, whoever wrote them last: at once, and out
    of nothing but these outputs."""
    writer = around.offline or around.consolidator
    task = Task(memory_version=root.memory_version, scope=root.scope, outputs=outputs)
    return writer.propose(task).files


def publish(
    around: Surroundings,
    tx: Writing,
    root: Root,
    claimed: Claimed,
    made: Made,
    *,
    run_id: str | None,
) -> str:
    """Record what the root holds from now on: the status, `inputs_changed` if it must not."""
    now, token = around.now(), claimed.lease.ownership_token
    stream = consolidation_stream(root.memory_version, root.scope)
    job = state.consolidation(tx, root.memory_version, root.scope)
    consolidation.require_lease(job, token)
    held = still_held(tx, root, claimed.inputs)
    if held.keys() != {each.thread_id for each in claimed.inputs}:
        give_back(tx, root, token, reason="inputs_changed", tokens=made.tokens, now=now)
        return "inputs_changed"
    # This worker's clock may lag behind that of whoever read the sessions. A success that looked
    # older than what it was made from would count as made from something else.
    now = max([now, *(row.since for row in held.values())])
    selected = selection.snapshot(
        claimed.inputs, held={each: row.source_updated_at for each, row in held.items()}
    )
    changed = dict(made.files) != dict(claimed.published)
    before = carried(tx, root, salt=made.carried.salt)
    # What calls have cost is recorded also where they changed nothing.
    if changed or made.carried.files != before.files or made.tokens.calls:
        tx.append(stream, publication(around, tx, root, made, run_id=run_id, now=now))
    no_changes = not changed and not is_reworded(tx, root, claimed.outputs)
    done = consolidation.succeed(
        job,
        ownership_token=token,
        completed_watermark=consolidation.completed_watermark(
            claimed.lease.input_watermark, claimed.inputs
        ),
        selected=selected,
        no_changes=no_changes,
        now=now,
    )
    tx.append(stream, done)
    return "succeeded_no_workspace_changes" if no_changes else "succeeded"


def publication(
    around: Surroundings,
    tx: Writing,
    root: Root,
    made: Made,
    *,
    run_id: str | None,
    now: int,
) -> ArtifactsPublished:
    owner = consolidation_stream(root.memory_version, root.scope)
    return ArtifactsPublished(
        at=now,
        memory_version=root.memory_version,
        scope=root.scope,
        run_id=run_id,
        consolidator=made.consolidator,
        prompt_digest=made.prompt_digest,
        files=tuple(tx.put(owner, body(path, text)) for path, text in sorted(made.files.items())),
        carried_ref=tx.put(owner, written(made.carried)) if made.carried.files else None,
        tokens=made.tokens,
        tool_calls=dict(made.tool_calls),
        tool_uses_ref=kept_uses(tx, root, made.tool_uses),
    )


def kept_uses(tx: Writing, root: Root, uses: Sequence[ToolUse]) -> str | None:
    """As a text that can be erased: whoever names a path may put words into it."""
    if not uses:
        return None
    owner = consolidation_stream(root.memory_version, root.scope)
    return tx.put(owner, msgspec.json.encode(uses).decode())


def still_held(view: View, root: Root, inputs: Sequence[Input]) -> dict[str, stage1_outputs.Row]:
    """By thread id, the outputs of the inputs that are still live, enabled and of this root."""
    return {
        each.thread_id: row
        for each in inputs
        for row in view.rows(stage1_outputs, (each.thread_id, root.memory_version))
        if may_be_read(row, root)
    }
