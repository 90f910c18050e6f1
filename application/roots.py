"""A memory root: which outputs it would be made from, what it was made from, what it published."""

from collections.abc import Iterable, Mapping, Sequence

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ..domain.events import Input
from ..domain.scope import has_root
from ..domain.selection import cutoff_at
from ..domain.withholding import Gone
from ..projections import artifacts, notes, selection, stage1_outputs, threads
from ..projections.folder import digest, inputs, is_input, summary_file_name
from ..projections.roots import ROOTS
from .ports import PhaseTwoOutput, View
from .surroundings import GLOBAL, Policy

NOTES = "extensions/ad_hoc/notes"
IMPORTS = "extensions/external_agent_import"
RESOURCES = f"{IMPORTS}/resources"
SCOPE_FILE = "scope.json"
ENOUGH = 4  # Times the limit: from so many recent outputs on, the walk by rank is the quick one.


class Root(Struct, frozen=True, kw_only=True):
    memory_version: str
    scope: str


def roots(view: View, policy: Policy) -> list[Root]:
    """Every root of today's setting that has something, and every folder that was published.

    A folder that is there is kept true, also after `scope` was set the other way.
    """
    version = policy.memory_version
    known: list[str] = msgspec.json.decode(view.value(ROOTS, memory_version=version))
    today = [GLOBAL] if policy.scope == GLOBAL else [s for s in known if s != GLOBAL]
    scopes = {scope for scope in today if has_root(scope)}
    scopes |= {row.scope for row in view.rows(artifacts, (version,)) if row.kind == "file"}
    return [Root(memory_version=version, scope=scope) for scope in sorted(scopes)]


def all_roots(view: View, policy: Policy) -> list[Root]:
    """Those of every version that is written, and of the one that is read."""
    return [root for one in by_version(policy) for root in roots(view, one)]


def by_version(policy: Policy) -> list[Policy]:
    versions = sorted({policy.memory_version, *policy.versions})
    return [replace(policy, memory_version=version) for version in versions]


def chosen(view: View, root: Root, policy: Policy, *, now: int) -> list[stage1_outputs.Row]:
    """What phase 2 would read now, in ascending thread id."""
    limit = policy.limits.max_raw_memories_for_consolidation
    asked = {
        "memory_version": root.memory_version,
        "cutoff": cutoff_at(now, max_unused_days=policy.limits.max_unused_days),
    }
    if root.scope == GLOBAL:
        count, few, many = (
            stage1_outputs.RECENT_EVERYWHERE,
            stage1_outputs.RANKED_OF_FEW_EVERYWHERE,
            stage1_outputs.RANKED_EVERYWHERE,
        )
    else:
        asked["scope"] = root.scope
        count, few, many = (
            stage1_outputs.RECENT,
            stage1_outputs.RANKED_OF_FEW,
            stage1_outputs.RANKED,
        )
    enough = ENOUGH * limit
    recent = view.value(count, enough=enough, **asked)
    found = view.find(stage1_outputs, few if recent < enough else many, most=limit, **asked)
    return sorted(found, key=lambda row: row.thread_id)


def chosen_inputs(rows: Iterable[stage1_outputs.Row]) -> tuple[Input, ...]:
    return tuple(
        Input(thread_id=row.thread_id, source_updated_at=row.source_updated_at) for row in rows
    )


def snapshot(view: View, root: Root) -> list[selection.Row]:
    return view.rows(selection, (root.memory_version, root.scope))


def is_unchanged(selected: Sequence[Input], rows: Sequence[selection.Row]) -> bool:
    """Whether the last success was made from exactly these inputs."""
    return [(each.thread_id, each.source_updated_at, 1) for each in selected] == [
        (row.thread_id, row.source_updated_at, row.matched) for row in rows
    ]


def texts(view: View, rows: Iterable[stage1_outputs.Row]) -> list[PhaseTwoOutput]:
    """The outputs with their words. One whose words are gone is left out."""
    outputs = []
    for row in rows:
        raw = view.body(row.raw_memory_ref)
        summary = view.body(row.rollout_summary_ref)
        thread = view.rows(threads, (row.thread_id,))
        if raw is None or summary is None or not thread:
            continue
        slug = view.body(row.rollout_slug_ref) if row.rollout_slug_ref else None
        outputs.append(
            PhaseTwoOutput(
                thread_id=row.thread_id,
                updated_at=row.source_updated_at,
                rollout_path=thread[0].rollout_path,
                cwd=thread[0].cwd or "",
                git_branch=thread[0].git_branch,
                raw_memory=raw,
                rollout_summary=summary,
                rollout_slug=slug,
            )
        )
    return outputs


def live(view: View, root: Root) -> list[stage1_outputs.Row]:
    """The outputs of the last success that may still be read: enabled, and of this root."""
    found = []
    for each in snapshot(view, root):
        for row in view.rows(stage1_outputs, (each.thread_id, root.memory_version)):
            if may_be_read(row, root):
                found.append(row)
    return found


def may_be_read(row: stage1_outputs.Row, root: Root) -> bool:
    """Whether a live output is enabled, and of this root."""
    return row.memory_mode == "enabled" and root.scope in (GLOBAL, row.scope)


def gone(view: View, root: Root) -> Gone:
    """The threads of the last success that may not be read any more: the others of `live`."""
    rows = view.find(
        selection, selection.GONE, memory_version=root.memory_version, scope=root.scope
    )
    stems = (summary_file_name(row.thread_id, row.source_updated_at, None) for row in rows)
    return Gone(
        ids=frozenset(row.thread_id for row in rows),
        stems=frozenset(stem.removesuffix(".md") for stem in stems),
    )


def published(view: View, root: Root) -> dict[str, str]:
    """Path -> text of the artifacts as the log has them."""
    files = {}
    for row in view.rows(artifacts, (root.memory_version, root.scope, "file")):
        body = view.body(row.body_ref)
        if body is not None:
            path, text = split(body)
            files[path] = text
    return files


def wanted(view: View, root: Root) -> dict[str, str]:
    """Everything the folder should hold: the inputs of the last success, what it published, and
    the notes of its scope."""
    files = {path: note.text for path, note in notes_of(view, root).items()}
    return files | texts_of_inputs(view, root) | published(view, root)


class Note(Struct, frozen=True, kw_only=True):
    body_ref: str
    text: str
    at: int


class ScopeFile(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is said beside imported files: where their project lies, what folder they came from, and
    which sessions they were made from, if any."""

    cwd: str | None = None
    source: str = ""
    threads: tuple[str, ...] = ()

    @classmethod
    def read(cls, text: str) -> "ScopeFile":
        """Empty where somebody has written something else into it."""
        try:
            return msgspec.json.decode(text, type=cls)
        except msgspec.DecodeError:
            return cls()


def notes_of(view: View, root: Root) -> dict[str, Note]:
    """Path -> note, oldest first, imported files among them. Codex's single folder has those of
    every project; where two have one name, the later is told apart by its ref."""
    asked = notes.EVERYWHERE if root.scope == GLOBAL else notes.OF_SCOPE
    found: dict[str, Note] = {}
    for row in view.find(notes, asked, scope=root.scope):
        kept = view.body(row.body_ref)
        if kept is not None:
            path, text = split(kept)
            if path in found:
                if is_imported(path) and found[path].text == text:
                    continue  # How to read such files is said once.
                path = told_apart(path, row.body_ref)
            found[path] = Note(body_ref=row.body_ref, text=text, at=row.at)
    return without_withheld(view, root, found)


def told_apart(path: str, ref: str) -> str:
    """Where two notes have one name, the later one's."""
    return f"{path.removesuffix('.md')}-{ref[:8]}.md"


def left_by_hand(found: Mapping[str, Note]) -> dict[str, Note]:
    """Those that somebody asked to remember: the others are another program's files."""
    return {path: note for path, note in found.items() if not is_imported(path)}


def without_withheld(view: View, root: Root, found: dict[str, Note]) -> dict[str, Note]:
    """Without the handbooks that were made from a session whose words may not be read any more:
    nobody can tell which of their statements are whose."""
    out = []
    for path, note in found.items():
        if path.startswith(f"{RESOURCES}/") and path.endswith(f"/{SCOPE_FILE}"):
            made_from = ScopeFile.read(note.text).threads
            if made_from and not may_stand(view, root, made_from):
                out.append(path.removesuffix(SCOPE_FILE))
    return {path: note for path, note in found.items() if not path.startswith(tuple(out))}


def may_stand(view: View, root: Root, thread_ids: Iterable[str]) -> bool:
    """Whether the words of all of these sessions may be read in this root."""
    for thread_id in thread_ids:
        rows = view.rows(threads, (thread_id,))
        if not rows or rows[0].forgotten or rows[0].mode != "enabled":
            return False
        if root.scope not in (GLOBAL, rows[0].scope):
            return False
    return True


def is_imported(path: str) -> bool:
    return path.startswith(f"{IMPORTS}/")


def imports_are_as_rendered(found: Mapping[str, Note], last: Mapping[str, str]) -> bool:
    """Whether the last render wrote the imported files as they are now: they come by it alone."""
    now = {path: digest(each.text.encode()) for path, each in found.items() if is_imported(path)}
    return now == {path: known for path, known in last.items() if is_imported(path)}


def texts_of_inputs(view: View, root: Root) -> dict[str, str]:
    return inputs(texts(view, live(view, root)), memory_version=root.memory_version)


def manifest(view: View, root: Root) -> dict[str, str] | None:
    """Path -> digest of the last render; None before the first, and after a forgetting."""
    for row in view.rows(artifacts, (root.memory_version, root.scope, "manifest")):
        body = view.body(row.body_ref)
        if body is not None:
            return manifest_of(body)
    return None


def manifest_of(body: str) -> dict[str, str]:
    return msgspec.json.decode(body, type=dict[str, str])


def manifest_body(digests: Mapping[str, str]) -> str:
    return msgspec.json.encode(dict(sorted(digests.items()))).decode()


def body(path: str, text: str) -> str:
    """A file as one body: its path, LF, its text."""
    return f"{path}\n{text}"


def split(kept: str) -> tuple[str, str]:
    path, _, text = kept.partition("\n")
    return path, text


def is_reworded(view: View, root: Root, outputs: Sequence[PhaseTwoOutput]) -> bool:
    """Whether the inputs are not, byte for byte, what the folder was last rendered with."""
    last = manifest(view, root) or {}
    today = inputs(outputs, memory_version=root.memory_version)
    rendered = {path for path in last if not is_artifact(path)}
    return rendered != today.keys() or any(
        digest(text.encode()) != last[path] for path, text in today.items()
    )


def is_artifact(path: str) -> bool:
    return not is_input(path)
