"""A session that was not read: a person is told why, and what becomes of it."""

import re

import pytest
from threadbook.adapters.cli.reasons import FAILED, PROVIDER, failed, waiting

from tests.application.homes import ROOT

SOURCES = ("adapters/models", "application/ports.py")
ENDS = re.compile(
    r'(?:AnswerFailed|ExtractionFailed|Unfit|parsed|cls)\((?:[^"\n]*?,)?\s*"(\w+)"(?:, "(\w+)")?'
)
KINDS = {"transient", "bad_reply", "refused", "too_long", "source"}


def codes():
    """Every code that a reading ends with, as it is written where it ends."""
    files = [ROOT / SOURCES[1], *sorted((ROOT / SOURCES[0]).glob("*.py"))]
    found = set()
    for file in files:
        if file.name not in ("loop.py", "consolidator.py"):
            for first, second in ENDS.findall(file.read_text("utf-8")):
                found.add(second if first in KINDS else first)
    return found - {""}


def test_each_way_in_which_a_reading_fails_is_told_in_words():
    assert len(codes()) >= 28
    assert codes() <= FAILED.keys()


@pytest.mark.parametrize("code", FAILED)
def test_what_is_told_says_what_to_do_or_when_it_is_tried_again(code):
    line = failed(code)

    assert line != code
    assert "\n" not in line
    assert code in PROVIDER or "again" in line or "no session any more" in line


def test_which_field_does_not_fit_is_no_matter_of_a_persons():
    assert failed("reply_schema:rollout_slug:string_type") == failed("reply_not_json")


def test_a_code_that_nobody_put_in_words_is_told_as_it_is():
    assert failed("http_418") == "http_418"
    assert waiting("something_new") == "something_new"
