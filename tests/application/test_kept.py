"""What each memory version keeps of what was said about a session."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from threadbook.application.kept import cleared, kept
from threadbook.application.ports import Extracted
from threadbook.domain.truncation import size

from tests.fixtures.secrets import open_shapes

SECRETS = [case for case in open_shapes.cases() if case["verdict"] == "REDACT"]
BLANK = ("", " ", "\n\t ", "\u2003")


def said(raw, summary):
    return Extracted(raw_memory=raw, rollout_summary=summary, rollout_slug="a_slug")


@pytest.mark.parametrize("blank", BLANK)
def test_v1_needs_both_texts(blank):
    assert kept(said("raw", blank), "v1") is None
    assert kept(said(blank, "summary"), "v1") is None
    assert kept(said("raw", "summary"), "v1") == said("raw", "summary")


@pytest.mark.parametrize("raw", [*BLANK, "raw"])
def test_v2_needs_a_summary_and_keeps_no_raw_memory(raw):
    assert kept(said(raw, "summary"), "v2") == said("", "summary")
    for blank in BLANK:
        assert kept(said(raw, blank), "v2") is None


def test_v1_keeps_a_summary_of_any_length():
    long = "x" * 40_000

    assert kept(said("raw", long), "v1") == said("raw", long)


@pytest.mark.parametrize("length", [8_999, 9_000])
def test_v2_keeps_nine_thousand_bytes_as_they_are(length):
    assert kept(said("", "x" * length), "v2") == said("", "x" * length)


def test_v2_cuts_the_middle_out_of_a_longer_one():
    found = kept(said("", "a" * 5_000 + "b" * 5_000), "v2")

    assert found == said("", "a" * 4_500 + "…1000 chars truncated…" + "b" * 4_500)


@pytest.mark.parametrize("case", SECRETS, ids=lambda case: case["id"])
def test_of_a_secret_in_what_was_said_nothing_is_kept_but_the_words_round_it(case):
    text = f"key is {case['text']} keep it"
    said = Extracted(raw_memory=text, rollout_summary=text, rollout_slug=text)

    found = cleared(None, said, Path())

    for told in (found.raw_memory, found.rollout_summary, found.rollout_slug):
        assert told.startswith("key is ")
        assert told.endswith(" keep it")
        assert not [secret for secret in case["vanish"] if secret in told]


@given(st.text(alphabet="aé€😀", min_size=1, max_size=40), st.integers(1, 2_000))
def test_what_v2_keeps_is_always_under_ten_thousand_bytes(text, times):
    found = kept(said("", text * times), "v2")

    assert found is not None
    assert size(found.rollout_summary) < 10_000
