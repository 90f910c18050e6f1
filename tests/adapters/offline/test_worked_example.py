"""One session by hand, and the exact texts that must come of it."""

import json

import pytest
from threadbook.adapters.offline import OfflineConsolidator, OfflineExtractor
from threadbook.domain.artifact import problems
from threadbook.projections.folder import summary_file_name

from tests.adapters.offline.sessions import FERNS, Session, header, output, worked

SUMMARY = """\
# add a retry test for the uploader: success

Rollout context: /srv/ferns, branch main, 2026-11-20, 3 messages from the user, 5 commands (2 failed), 1 file changed.

## Task 1: add a retry test for the uploader

Outcome: success (last test run passed; the user wrote "thanks, that works")

Preference signals:
- the user wrote "no, please don't touch pyproject.toml"
- the user wrote "From now on always use uv in this repo, never plain pip"

Failures and how to do differently:
- `pip install responses` failed (exit 1: externally-managed-environment); afterwards `uv pip install responses` passed.
- `pytest tests/test_upload.py -q` failed (exit 1: ModuleNotFoundError: No module named 'responses'); it passed later in the same session.

Reusable knowledge:
- files changed: tests/test_upload.py
- `pytest -q` passed (exit 0: 41 passed)

References:
- [1] `uv pip install responses`
- [2] `pytest tests/test_upload.py -q`
"""  # noqa: E501

RAW = """\
---
description: asked "add a retry test for the uploader"; 2 preferences, 2 failures, 1 file changed
task: add a retry test for the uploader
task_group: ferns
task_outcome: success
cwd: /srv/ferns
keywords: uploader, tests/test_upload.py, uv pip install, pytest, externally-managed-environment
---

### Task 1: add a retry test for the uploader
task: add a retry test for the uploader
task_group: ferns
task_outcome: success

Preference signals:
- the user wrote "no, please don't touch pyproject.toml"
- the user wrote "From now on always use uv in this repo, never plain pip"

Reusable knowledge:
- `pytest -q` passed (41 passed) on 2026-11-20

Failures and how to do differently:
- `pip install responses` failed (externally-managed-environment); afterwards `uv pip install responses` passed

References:
- [1] tests/test_upload.py
"""  # noqa: E501

MEMORY = """\
# Task Group: ferns
scope: work in /srv/ferns
applies_to: cwd=/srv/ferns; reuse_rule=this project only

## Task 1: add a retry test for the uploader, success

### rollout_summary_files
- rollout_summaries/{first} (cwd=/srv/ferns, rollout_path=/home/dev/.codex/sessions/2026/11/20/rollout-ferns.jsonl, updated_at=2026-11-20T08:09:00+00:00, thread_id=01aa0000-0000-7000-8000-0000000000a1)

### keywords
- uploader, tests/test_upload.py, uv pip install, pytest

## Task 2: rename the greenhouse module, uncertain

### rollout_summary_files
- rollout_summaries/{second} (cwd=/srv/ferns, rollout_path=/home/dev/.codex/sessions/2026/11/20/rollout-ferns.jsonl, updated_at=2026-11-20T08:09:00+00:00, thread_id=01aa0000-0000-7000-8000-0000000000b2)

### keywords
- rename, greenhouse, module, src/greenhouse.py

## User preferences
- the user wrote "From now on always use uv in this repo, never plain pip" [Task 1]
- the user wrote "no, please don't touch pyproject.toml" [Task 1]

## Failures and how to do differently
- `pip install responses` failed (externally-managed-environment); afterwards `uv pip install responses` passed [Task 1]
"""  # noqa: E501

MEMORY_SUMMARY = """\
v1

## User Profile

## User preferences
- in ferns the user wrote "From now on always use uv in this repo, never plain pip" (2026-11-20) [Task 1]

## General Tips

## What's in Memory
### ferns
#### 2026-11-20
- add a retry test for the uploader: uploader, tests/test_upload.py, uv pip install, pytest [Task 1]
  - desc: success; 2 preferences, 2 failures, 1 file changed [Task 1]
  - learnings: `pip install responses` failed (externally-managed-environment); afterwards `uv pip install responses` passed [Task 1]
- rename the greenhouse module: rename, greenhouse, module, src/greenhouse.py [Task 2]
  - desc: uncertain; 1 file changed [Task 2]
"""  # noqa: E501

MUST_NOT_APPEAR = (
    "Never push",
    "httpx",
    "TLS",
    "because",
    "the fix is",
    "recommend",
    "extract",
)
OTHER = "01aa0000-0000-7000-8000-0000000000b2"


def extracted():
    return OfflineExtractor().extract(header(), worked().items)


def artifacts():
    other = Session().typed("rename the greenhouse module").edits("src/greenhouse.py")
    second = OfflineExtractor().extract(header(thread_id=OTHER), other.items)
    outputs = [output(OTHER, second), output(FERNS, extracted())]
    return OfflineConsolidator().consolidate(
        scope="project:ferns-0a1b2c3d", outputs=outputs, published={}
    )


def test_the_rollout_summary_is_the_worked_one_word_by_word():
    found = extracted()

    assert found.rollout_summary == SUMMARY


def test_the_raw_memory_and_the_slug_are_the_worked_ones():
    found = extracted()

    assert found.raw_memory == RAW
    assert found.rollout_slug == "add_a_retry_test_for_the_uploader"


def test_memory_md_is_the_worked_one_beside_another_session_of_the_project():
    files = artifacts()

    first = summary_file_name(FERNS, 1795853340, "add_a_retry_test_for_the_uploader")
    second = summary_file_name(OTHER, 1795853340, "rename_the_greenhouse_module")
    assert files["MEMORY.md"] == MEMORY.format(first=first, second=second)


def test_the_memory_summary_holds_what_lasts_and_an_index():
    files = artifacts()

    assert files["memory_summary.md"] == MEMORY_SUMMARY
    assert problems(files) == []


@pytest.mark.parametrize("words", MUST_NOT_APPEAR)
def test_what_no_person_said_appears_nowhere(words):
    found = extracted()
    texts = [found.rollout_summary, found.raw_memory, found.evidence, *artifacts().values()]

    assert not [text for text in texts if words.lower() in text.lower()]


def test_each_wish_stands_once_in_a_text():
    texts = [extracted().rollout_summary, extracted().raw_memory, *artifacts().values()]

    assert max(text.count("always use uv in this repo") for text in texts) == 1


def test_the_evidence_names_the_place_of_every_quote():
    evidence = json.loads(extracted().evidence)

    places = {item.line: item for item in worked().items}
    assert [e["kind"] for e in evidence] == ["task", "corrected", "said", "outcome"]
    for e in evidence:
        assert e["quote"] in places[e["line"]].text
        assert e["at_ms"] == places[e["line"]].at_ms


def test_the_same_session_gives_the_same_bytes():
    assert extracted() == extracted()
    assert artifacts() == artifacts()


def test_a_question_and_a_thank_you_give_nothing():
    session = Session().typed("what does the uploader do?").says("It uploads.").typed("thanks!")

    assert OfflineExtractor().extract(header(), session.items) is None
