"""Bearer tokens as upstream's tests have them: which are hidden, and which prose is left alone."""

import pytest
from threadbook.domain.redaction import MARKER, redact


@pytest.mark.parametrize(
    ("before", "token"),
    [
        ("Authorization: Bearer ", "abcdefghijklmnop0123"),
        ("Authorization: bearer ", "abc.DEF_ghi~jkl+mno/pqr-stu012"),
        ("authorization: BEARER\t", "abcdefghijklmnop0123"),
        ("Bearer \t ", "abcdefghijklmnop0123"),
        ("Bearer ", "QWxhZGRpbjpvcGVuIHNlc2FtZQ0123=="),
        ("Bearer ", "sk-" + "aB3dE6gH9jK2" * 2),
    ],
)
@pytest.mark.parametrize("after", ["", "\nnext: line", '", "x": 1'])
def test_a_bearer_token_is_hidden_whatever_its_signs_case_spaces_and_padding(before, token, after):
    kept = redact(before + token + after)

    assert kept == before + MARKER + after


@pytest.mark.parametrize(
    "text",
    [
        "Bearer short",
        "Bearer abc123",
        "forbearer abcdefghijklmnop0123",
        "Bearer\nabcdefghijklmnopqrstuvw",
        "Bearer\u00a0abcdefghijklmnopqrstuvw",
        "the bearer of this letter may pass",
        "a bearer token is what the server asks for",
    ],
)
def test_prose_about_bearers_and_what_is_too_short_for_a_token_is_left(text):
    kept = redact(text)

    assert kept == text
