"""artifacts: the published files, the last manifest and what people left in the folder."""

import json

from hypothesis import given
from threadbook.domain.events import (
    ArtifactsPublished,
    ConsolidationRequested,
    FolderEdited,
    Phase2Succeeded,
    RootRendered,
    Selected,
    Stage1Succeeded,
    StoreReset,
)
from threadbook.projections import artifacts, roots
from threadbook.projections.fold import fold

from tests.projections.histories import logs, unhurried
from tests.projections.specimens import plain, tables, value


def held(log):
    return {(row.kind, row.body_ref) for row in fold(artifacts, log)}


@unhurried
@given(log=logs)
def test_files_are_the_last_publication_and_the_manifest_the_last_rendering(log):
    files, manifest, edits = {}, {}, {}
    for event in log:
        match event:
            case ArtifactsPublished():
                root = event.memory_version, event.scope
                files[root] = set(event.files)
                if event.consolidator == "forget":
                    manifest.pop(root, None)
                    edits.pop(root, None)
            case RootRendered():
                manifest[event.memory_version, event.scope] = {event.manifest_ref}
            case FolderEdited():
                edits.setdefault((event.memory_version, event.scope), set()).add(event.body_ref)
            case StoreReset(memory_version=emptied):
                for told in (files, manifest, edits):
                    for root in [root for root in told if root[0] == emptied]:
                        del told[root]

    found = fold(artifacts, log)

    for kind, told in {"file": files, "manifest": manifest, "edit": edits}.items():
        assert {
            (row.memory_version, row.scope, row.body_ref) for row in found if row.kind == kind
        } == {(*root, ref) for root, refs in told.items() for ref in refs}


def test_a_publication_replaces_files_and_keeps_the_manifest_and_the_edits():
    log = [
        plain(ArtifactsPublished, files=("a", "b")),
        plain(RootRendered, manifest_ref="m"),
        plain(FolderEdited, body_ref="e", deleted=True),
        plain(ArtifactsPublished, files=("b", "c")),
    ]

    assert held(log) == {("file", "b"), ("file", "c"), ("manifest", "m"), ("edit", "e")}
    assert [row.deleted for row in fold(artifacts, log) if row.kind == "edit"] == [1]


def test_every_edit_is_kept_beside_the_others():
    log = [plain(FolderEdited, body_ref="first"), plain(FolderEdited, body_ref="second")]

    assert held(log) == {("edit", "first"), ("edit", "second")}


def test_what_a_forgetting_publishes_is_all_that_is_left_of_its_root():
    other = plain(ArtifactsPublished, scope="user", files=("z",))
    log = [
        other,
        plain(ArtifactsPublished, files=("a",)),
        plain(RootRendered),
        plain(FolderEdited),
        plain(ArtifactsPublished, files=("new",), consolidator="forget"),
    ]

    assert held(log) == {("file", "z"), ("file", "new")}


def test_a_text_published_again_is_one_row_of_the_newest_time():
    log = [plain(ArtifactsPublished, at=at, files=("a", "a")) for at in (1, 2)]

    [row] = fold(artifacts, log)

    assert row.at == 2


def test_a_version_has_the_roots_that_any_table_names_once_and_in_order():
    log = [
        plain(Stage1Succeeded, thread_id="t1", scope="project:o"),
        plain(Stage1Succeeded, thread_id="t2", scope="project:o"),
        plain(Stage1Succeeded, thread_id="t3", scope="project:b"),
        plain(Stage1Succeeded, thread_id="t4", scope="quarantine:t4"),
        plain(Stage1Succeeded, thread_id="t5", scope="project:z", memory_version="v2"),
        plain(ConsolidationRequested, thread_id=None, scope="project:j"),
        plain(
            Phase2Succeeded,
            scope="project:s",
            selected=(Selected(thread_id="t1", source_updated_at=1, matched=True),),
        ),
        plain(ArtifactsPublished, scope="project:a", files=("a",)),
        plain(ArtifactsPublished, scope="project:o", files=("o",)),
    ]

    def named(log, version="v1"):
        return json.loads(value(tables(log), roots.ROOTS, memory_version=version))

    expected = ["project:a", "project:b", "project:j", "project:o", "project:s"]
    assert named(log) == expected
    assert named(log, "v2") == ["project:z"]
    assert named([]) == []
