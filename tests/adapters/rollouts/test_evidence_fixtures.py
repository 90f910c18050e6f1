"""What the real program sent to its phase 1, and what we show of the same sessions: byte for byte
the same, but for the departures that are named here."""

import json

import pytest
from threadbook.adapters import rollouts
from threadbook.domain.budget import pieces
from threadbook.domain.evidence import MESSAGE_BYTES, render, token_limit
from threadbook.domain.redaction import MARKER

from .support import EXTRA, FIXTURES, NOW_MS, ROLLOUTS

WINDOW = 272_000
SENT = {
    (version, path.stem): json.loads(path.read_text(encoding="utf-8"))
    for version in ("v1", "v2")
    for path in sorted((FIXTURES / f"phase1-input-{version}").glob("*.json"))
}
# Which sessions we show otherwise, and why.
DEPARTURES = {
    ("v1", "extra-image"): "pictures are never shown; Codex sends the whole of them",
    ("v1", "secrets"): "more kinds of secrets are hidden",
    ("v2", "secrets"): "more kinds of secrets are hidden",
}
SECRETS_SENT = (
    "sk-test-ZZZZ",
    "sk-test-ABCD",
    "sk-proj-AbCd",
    "wJalrFAKE",
    "ghp_ABCD",
    "hunter2hunter2",
    "s3cretpw",
    "xoxb-1234",
    "MIIEFAKE",
)


def session(version, name):
    if name.startswith("extra-"):
        return EXTRA / f"{name.removeprefix('extra-')}-{version}.jsonl"
    return ROLLOUTS / f"{name}.jsonl"


def shown(version, name, tokens=None):
    return render(
        rollouts.evidence(session(version, name), now_ms=NOW_MS),
        version=version,
        tokens=tokens or token_limit(WINDOW),
    )


def test_nineteen_sessions_were_sent_in_each_version():
    assert [version for version, _ in SENT].count("v1") == 19
    assert [version for version, _ in SENT].count("v2") == 19
    assert DEPARTURES.keys() <= SENT.keys()


@pytest.mark.parametrize(("version", "name"), sorted(SENT.keys() - DEPARTURES.keys()))
def test_what_we_show_is_what_codex_sent(version, name):
    sent = SENT[version, name]["rendered"]

    evidence = shown(version, name)

    assert evidence.text == sent


def test_a_picture_of_a_v1_session_is_a_placeholder_and_the_rest_is_what_codex_sent():
    sent = json.loads(SENT["v1", "extra-image"]["rendered"])

    ours = json.loads(shown("v1", "extra-image").text)

    [at] = [n for n, item in enumerate(sent) if item != ours[n]]
    assert sent[at]["content"][1]["type"] == "input_image"
    sent[at]["content"][1] = {"type": "input_text", "text": "[image omitted]"}
    assert ours == sent


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_secrets_that_codex_sent_are_hidden_and_nothing_else_is_changed(version):
    sent = SENT[version, "secrets"]["rendered"]

    ours = shown(version, "secrets").text

    assert all(secret in sent and secret not in ours for secret in SECRETS_SENT)
    at = 0
    for part in ours.split(MARKER):
        at = sent.index(part, at) + len(part)
    assert sent[:20] == ours[:20]
    assert at == len(sent)


@pytest.mark.parametrize("name", sorted(name for version, name in SENT if version == "v2"))
def test_a_v2_prompt_travels_in_as_many_messages_as_codex_sent_each_within_8900_bytes(name):
    sent = SENT["v2", name]["user_message_bytes"]
    frame = sum(sent) - len(SENT["v2", name]["rendered"].encode())
    prompt = "x" * frame + shown("v2", name).text

    messages = pieces(prompt, bytes_max=MESSAGE_BYTES)

    assert "".join(messages) == prompt
    assert all(len(each.encode()) <= 8_900 for each in messages)
    if ("v2", name) not in DEPARTURES:
        assert [len(each.encode()) for each in messages] == sent


def test_the_output_of_6000_lines_is_cut_to_7904_bytes_of_its_row_and_that_is_told():
    evidence = shown("v2", "longout")

    [row] = [line for line in evidence.text.split("\n") if "chars truncated" in line]
    assert row.count("…2735 chars truncated…") == 1
    assert len(row.replace("…2735 chars truncated…", "").encode()) == 7_904
    assert (evidence.items, evidence.omitted) == (5, 1)
    assert evidence.omitted_bytes == 10_643 - len(row.encode())


def test_a_text_longer_than_the_window_of_an_unknown_model_is_cut_where_codex_was_seen_to(
    tmp_path,
):
    item = {"type": "message", "role": "user"}
    item["content"] = [{"type": "input_text", "text": "a" * 825_000}]
    meta = (ROLLOUTS / "trivial.jsonl").read_text(encoding="utf-8").splitlines()[0]
    path = tmp_path / "rollout.jsonl"
    path.write_text(
        f"{meta}\n{json.dumps({'type': 'response_item', 'payload': item})}\n", encoding="utf-8"
    )

    v1, v2 = (
        render(
            rollouts.evidence(path, now_ms=NOW_MS), version=version, tokens=token_limit(WINDOW)
        ).text
        for version in ("v1", "v2")
    )

    array = len(json.dumps([item], separators=(",", ":")))
    mark = f"…{-(-(array - 723_520) // 4)} tokens truncated…"
    assert mark in v1
    assert len(v1.replace(mark, "")) == 723_520
    mark = f"…{array - 2 - 9_904} chars truncated…"
    assert mark in v2
    assert len(v2.removeprefix("[human user]\n").replace(mark, "")) == 9_904
