"""Every known shape of secret as a session: none of it reaches a model, wherever it stands and
wherever a cut falls."""

import json

import pytest
from threadbook.adapters import rollouts
from threadbook.domain.evidence import render

from tests.fixtures.secrets import further_shapes, open_shapes, third_shapes

from .support import NOW_MS, item, message, meta, written

GONE = [(case["text"], case["vanish"]) for case in open_shapes.cases() if case["vanish"]]
GONE += [(case.text, case.gone) for case in (*further_shapes.SECRETS, *third_shapes.SECRETS)]
HARMLESS = [case["text"] for case in open_shapes.cases() if not case["vanish"]]

PLACES = {
    "output": lambda text: item("function_call_output", call_id="c", output=text),
    "typed": lambda text: message(text),
    "said": lambda text: message(text, role="assistant"),
    "arguments": lambda text: item(
        "function_call", name="shell", call_id="c", arguments=json.dumps({"cmd": text})
    ),
    "command": lambda text: item(
        "local_shell_call", call_id="c", action={"type": "exec", "command": ["sh", "-c", text]}
    ),
}


def session(folder, place, texts):
    return written(folder, meta(), *[PLACES[place](text) for text in texts])


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("version", ["v1", "v2"])
def test_no_known_secret_reaches_a_model_wherever_it_stands(tmp_path, place, version):
    path = session(tmp_path, place, [text for text, _ in GONE])

    evidence = render(rollouts.evidence(path, now_ms=NOW_MS), version=version, tokens=180_880)

    said = "\n".join(strings(evidence.text))
    assert [part for _, gone in GONE for part in gone if part in said] == []
    assert evidence.omitted == 0


@pytest.mark.parametrize("aligned", [False, True])
@pytest.mark.parametrize("version", ["v1", "v2"])
def test_no_part_of_an_open_secret_reaches_a_model_wherever_the_cut_falls(
    tmp_path, version, aligned
):
    texts = [text for text, _ in GONE[:20]]
    path = session(tmp_path, "output", texts)
    shown = list(rollouts.evidence(path, now_ms=NOW_MS))

    for tokens in range(25, 1_400, 25):
        text = render(shown, version=version, tokens=tokens, aligned=aligned).text

        assert [part for _, gone in GONE[:20] for part in gone if part in text] == []


def test_what_only_looks_like_a_secret_reaches_a_model_as_it_is(tmp_path):
    path = session(tmp_path, "output", HARMLESS)

    evidence = render(rollouts.evidence(path, now_ms=NOW_MS), version="v1", tokens=180_880)

    assert [each["output"] for each in json.loads(evidence.text)] == HARMLESS


def strings(text):
    """All that is said in rows or an array, down through arguments that are JSON themselves."""
    for line in text.split("\n"):
        if line[:1] in "[{" and not line.startswith(("[human", "[assist", "[tool", "[harness")):
            yield from leaves(json.loads(line))


def leaves(value):
    if isinstance(value, str):
        yield value
        if value[:1] == "{":
            try:
                yield from leaves(json.loads(value))
            except ValueError:
                return
    elif isinstance(value, dict):
        for each in value.values():
            yield from leaves(each)
    elif isinstance(value, list):
        for each in value:
            yield from leaves(each)
