"""Joining: every memory root as one folder of Codex's layout, on request.

Inputs are those of all roots of one version, as far as each may be read, a session that two roots
hold once. The artifacts are made of them anew, offline: no root's own say anything of another's,
and what is out of the memory supports no line. The notes of all are beside them.
"""

from collections.abc import Iterable, Sequence

from ..projections.folder import inputs
from .ports import Consolidator, PhaseTwoOutput, Task, View
from .roots import Root, live, notes_of, texts, told_apart
from .surroundings import GLOBAL


def joined(view: View, roots: Sequence[Root], *, consolidator: Consolidator) -> dict[str, str]:
    """Path -> text of the folder."""
    version, outputs = roots[0].memory_version, union(view, roots)
    task = Task(memory_version=version, scope=GLOBAL, outputs=outputs)
    artifacts = consolidator.propose(task).files
    return notes(view, roots) | inputs(outputs, memory_version=version) | dict(artifacts)


def union(view: View, roots: Iterable[Root]) -> list[PhaseTwoOutput]:
    """In ascending thread id."""
    found: dict[str, PhaseTwoOutput] = {}
    for root in roots:
        found |= {output.thread_id: output for output in texts(view, live(view, root))}
    return [found[thread_id] for thread_id in sorted(found)]


def notes(view: View, roots: Iterable[Root]) -> dict[str, str]:
    """A note of a name that another project's has, too, is told apart by its ref."""
    found: dict[str, str] = {}
    for root in roots:
        for path, note in notes_of(view, root).items():
            if path in found and found[path] != note.text:
                path = told_apart(path, note.body_ref)
            found[path] = note.text
    return found
