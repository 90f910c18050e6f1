"""Text that somebody made to be slow costs no more than other text of its length."""

import time

import pytest
from threadbook.adapters import rollouts
from threadbook.adapters.rollouts.base import patched
from threadbook.domain.session import Human

from tests.adapters.rollouts.support import NOW_MS, claude, written

LENGTH = 300_000  # With work that grows by the square, hours.
SECONDS_MAX = 5


@pytest.mark.parametrize("blank", [" ", "\t", "\r"])
def test_blanks_in_the_name_of_a_patched_file(blank):
    began = time.process_time()

    changes = patched(f"*** Begin Patch\n*** Add File: a{blank * LENGTH}b\n*** End Patch")

    assert [len(change.path) for change in changes] == [LENGTH + 2]
    assert time.process_time() - began < SECONDS_MAX


def test_blanks_behind_the_name_of_a_patched_file_are_not_part_of_it():
    changes = patched("*** Begin Patch\r\n*** Update File: src/a b.py \t\r\n*** End Patch\r\n")

    assert [change.path for change in changes] == ["src/a b.py"]


def test_empty_lines_in_the_reason_for_a_refusal(tmp_path):
    told = (
        "The user doesn't want to proceed with this tool use. the user said:\n"
        f"Use uv.{chr(10) * LENGTH}Note: The user's next message may contain a correction."
    )
    result = {"type": "tool_result", "tool_use_id": "t1", "content": told, "is_error": True}
    path = written(tmp_path, claude("user", [result], uuid="u1"))
    began = time.process_time()

    items = list(rollouts.items(path, now_ms=NOW_MS))

    assert [item.text for item in items if isinstance(item, Human)] == ["Use uv."]
    assert time.process_time() - began < SECONDS_MAX
