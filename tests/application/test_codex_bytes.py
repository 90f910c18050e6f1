"""Codex's own rows, taken through the whole pipeline, leave Codex's own bytes in the folder."""

import json
import os

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
from tests.projections.test_folder import WRITTEN, fixture_outputs

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


def test_fourteen_rows_of_codex_leave_its_bytes(tmp_path):
    rows = fixture_outputs()
    newest = max(row.updated_at for row in rows)
    home = Home(tmp_path, now=newest + 7 * HOUR_S, scope="global")
    moved = written_sessions(home, rows)

    report = home.run_with(extractor=Telling(**{row.thread_id: says(row) for row in rows}))

    files = content(home.root())
    expected = {}
    for path in [WRITTEN / "raw_memories.md", *(WRITTEN / "rollout_summaries").iterdir()]:
        text = path.read_text()
        for before, after in moved.items():
            text = text.replace(before, after)
        expected[path.relative_to(WRITTEN).as_posix()] = text
    assert report.stage1.succeeded == len(rows) == 14
    assert len(expected) == 15
    assert {path: files[path] for path in expected} == expected
    assert set(files) - set(expected) == {"MEMORY.md", "memory_summary.md"}
    assert expected == inputs([moved_row(row, moved) for row in rows])
    assert home.memory.replay_verify() == []
    home.memory.close()


def moved_row(row, moved):
    return replace(row, rollout_path=moved[row.rollout_path])
