"""Codex's own rows, taken through the whole pipeline, leave Codex's own bytes in the folder."""

import json
import os

import pytest
from msgspec.structs import replace
from threadbook.application.ports import Extracted
from threadbook.projections.folder import inputs

from tests.application.homes import (
    HOUR_S,
    Home,
    Session,
    Telling,
    content,
    thread_id,
)
from tests.projections.test_folder import fixture_outputs, written_inputs

NOBODY = 0


def session_of(row):
    """A session of that id, end and place; what was typed in it is nothing to the test."""
    return Session(number=NOBODY, cwd=row.cwd, ended_at=row.updated_at, source="vscode")


def says(row):
    return lambda header, items: Extracted(
        raw_memory=row.raw_memory,
        rollout_summary=row.rollout_summary,
        rollout_slug=row.rollout_slug,
    )


def written_sessions(home, rows):
    paths = {}
    for row in rows:
        session = session_of(row)
        records = session.records()
        if row.git_branch:
            records[0]["payload"]["git"] = {"branch": row.git_branch}
        text = "".join(json.dumps(each) + "\n" for each in records)
        path = home.sessions / f"rollout-{row.thread_id}.jsonl"
        path.write_text(text.replace(thread_id(NOBODY), row.thread_id))
        os.utime(path, (row.updated_at, row.updated_at))
        paths[row.rollout_path] = str(path)
    return paths


@pytest.mark.parametrize(
    ("version", "inputs_", "artifacts"),
    [("v1", 15, {"MEMORY.md", "memory_summary.md"}), ("v2", 14, {"memory_summary.md"})],
)
def test_fourteen_rows_of_codex_leave_its_bytes(tmp_path, version, inputs_, artifacts):
    rows = fixture_outputs(version)
    newest = max(row.updated_at for row in rows)
    home = Home(tmp_path, now=newest + 7 * HOUR_S, scope="global", version=version)
    moved = written_sessions(home, rows)

    report = home.run_with(extractor=Telling(**{row.thread_id: says(row) for row in rows}))

    files = content(home.root())
    expected = {}
    for path, text in written_inputs(version).items():
        for before, after in moved.items():
            text = text.replace(before, after)
        expected[path] = text
    assert report.stage1.succeeded == len(rows) == 14
    assert len(expected) == inputs_
    assert {path: files[path] for path in expected} == expected
    assert set(files) - set(expected) == artifacts
    assert expected == inputs([moved_row(row, moved) for row in rows], memory_version=version)
    assert home.memory.replay_verify() == []
    home.memory.close()


def moved_row(row, moved):
    return replace(row, rollout_path=moved[row.rollout_path])
