"""What evidence promises of any file: rendering never fails, and what a person typed and did not
take back is in it.

Files are real sessions in which a value, some bytes or everything is something else.
"""

import json
import tempfile
from pathlib import Path

from hypothesis import event, given, settings
from threadbook.adapters import rollouts
from threadbook.adapters.rollouts import RolloutError
from threadbook.domain.evidence import render
from threadbook.domain.redaction import MARKER
from threadbook.domain.session import Human, RolledBack

from tests.adapters.rollouts.support import NOW_MS
from tests.adapters.rollouts.test_properties import noise


@given(noise)
@settings(max_examples=250, deadline=None)
def test_any_file_has_evidence_and_all_that_people_typed_stands_in_it(content):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "session.jsonl")
        path.write_bytes(content)
        try:
            told = list(rollouts.items(path, now_ms=NOW_MS))
        except RolloutError:
            event("refused")
            return
        shown = list(rollouts.evidence(path, now_ms=NOW_MS))

    texts = {
        (version, aligned): render(shown, version=version, tokens=100_000, aligned=aligned).text
        for version in ("v1", "v2")
        for aligned in (False, True)
    }
    said = "\n".join(strings(json.loads(texts["v1", False])))
    typed = standing(told)
    event(f"typed: {min(len(typed), 3)}")
    assert json.loads(texts["v1", True]) == json.loads(texts["v1", False])
    assert texts["v2", True] == texts["v2", False]
    for text in texts.values():
        text.encode("utf-8")
    if MARKER not in said:
        assert [line for text in typed for line in text.split("\n") if line not in said] == []
    people = [each for each in shown if each.whose == "person"]
    assert len(people) >= len(typed)


def standing(told):
    """The texts of the turns that were not taken back."""
    turns = [[]]
    for item in told:
        if isinstance(item, RolledBack):
            del turns[max(1, len(turns) - item.turns) :]
        elif isinstance(item, Human):
            if item.via == "message":
                turns.append([])
            if not item.inherited:
                turns[-1].append(item.text)
    return [text for turn in turns for text in turn]


def strings(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from strings(each)
