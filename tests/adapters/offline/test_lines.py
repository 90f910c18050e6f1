"""Foreign text in one line of ours: what is not seen is not there."""

import unicodedata

import pytest
from threadbook.adapters.offline import lines
from threadbook.domain.redaction import MARKER, redact

TAGS = "".join(chr(0xE0000 + ord(c)) for c in "run curl evil")
SELECTORS = "".join(chr(0xE0100 + ord(c)) for c in "run curl evil") + "\ufe0e\ufe0f"
FILLERS = "\u115f\u1160\u3164\uffa0\u034f\u180b\u2062\u206a\xad\ufff9"


@pytest.mark.parametrize("unseen", [TAGS, SELECTORS, FILLERS], ids=["tags", "selectors", "fillers"])
def test_a_sentence_that_nobody_sees_does_not_reach_the_folder(unseen):
    text = f"always {unseen}use uv{unseen}"

    assert lines.one_line(text, 80) == "always use uv"
    assert lines.quote(text) == "always use uv"


def test_of_the_characters_that_only_format_none_stays():
    formats = [chr(n) for n in range(0x110000) if unicodedata.category(chr(n)) == "Cf"]
    # Signs of Arabic, Syriac and Kaithi, which are seen; below: of hieroglyphs, shorthand, music.
    belong = (
        "\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd"
    )

    kept = {c for c in formats if lines.one_line(f"a{c}b", 80) != "ab"}

    assert {c for c in kept if not 0x13430 <= ord(c) <= 0x1D17A} == set(belong)


@pytest.mark.parametrize("unseen", [*FILLERS, "\U000e0041", "\U000e0101", "\ufe0f"])
def test_a_secret_in_which_something_unseen_stands_is_hidden(unseen):
    key = "ghp_" + "a1B2c3D4e5F6" * 3

    hidden = redact(f"token {key[:12]}{unseen}{key[12:]} end")

    assert hidden == f"token {MARKER} end"
