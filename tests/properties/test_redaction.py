"""What redaction promises of any text: hidden once is hidden for good, nothing else is touched,
and where the text is cut into windows makes no difference.

Texts are drawn from pieces of real shapes: labels, separators, secrets, code, markers, colours
and the borders between them, so that most of them hold a secret and many hold a near miss.
"""

# ruff: noqa: E501 - a row of pieces belongs on one line.

import json

from hypothesis import event, example, given, settings
from hypothesis import strategies as st
from threadbook.domain.redaction import MARKER, RULES, found, merged, redact, redacted

from tests.fixtures.secrets import further_shapes, open_shapes
from tests.fixtures.secrets.examples import filled

SHAPES = [case["text"] for case in open_shapes.cases()]
SHAPES += [case.text for case in (*further_shapes.SECRETS, *further_shapes.LOOKALIKES)]
SHAPES += [filled(rule.example, rule.name).text for rule in RULES]
SHAPES += [filled(rule.counter, rule.name).text for rule in RULES]

PIECES = [
    *("password", "DB_PASSWORD", "token", "clientSecret", "api_key", "Passwort", "Cookie: ", "pass"),
    *("=", ": ", " is ", ":\n  ", "=>", " | ", '": "', "\\\": \\\"", "://", "@", "&", ";", ",", "\uff1a"),
    *('"', "'", "`", "\\", "\\n", "\n", " ", "-", "_", ".", "(", ")", "<", ">", "{", "}", "$", "%3D"),
    *("sk-", "ghp_", "eyJ", "AKIA", "xoxb-1", "SG.", "--", "-----BEGIN RSA PRIVATE KEY-----", "-----"),
    *("curl -u dana:", "echo ", " | sudo -S ls", "mysql -p", "Bearer ", "basic ", "sshpass -p "),
    *(MARKER, "[REDACTED", "\x1b[31m", "\u200b", "\u0130", "\0", "name", "value", "session_id"),
    *(further_shapes.word("piece"), further_shapes.some("piece", 40), "0a1b2c3d" * 4, "hunter2"),
]  # fmt: skip

pieces = st.one_of(st.sampled_from(PIECES), st.sampled_from(SHAPES), st.text(max_size=6))
texts = st.lists(pieces, max_size=12).map("".join)


def between_markers(hidden: str) -> list[str]:
    return hidden.split(MARKER)


@given(texts)
@example("curl -u dana:mongodb+srv://dana:" + further_shapes.some("url", 16) + "@c0.example.test/f")
@settings(max_examples=800, deadline=None)
def test_a_second_pass_changes_nothing(text):
    hidden, count = redacted(text)
    event(f"hidden: {min(count, 3)}")

    again = redacted(hidden)

    assert again == (hidden, 0)


@given(texts)
@settings(max_examples=400, deadline=None)
def test_what_is_not_hidden_stays_in_place(text):
    hidden = redact(text)

    at = 0
    for kept in between_markers(hidden):
        at = text.find(kept, at) + len(kept)
        assert at >= len(kept), f"{kept!r} is not from the text"
    assert hidden.startswith(between_markers(hidden)[0])
    assert text.endswith(between_markers(hidden)[-1])


@given(texts, st.integers(min_value=1, max_value=40))
@settings(max_examples=400, deadline=None)
def test_windows_make_no_difference(text, window):
    whole = merged(list(found(text, RULES, [(0, len(text))], window=len(text) + 1)))
    event(f"secrets: {min(len(whole), 3)}")

    cut = merged(list(found(text, RULES, [(0, len(text))], window=window)))

    assert cut == whole


@given(
    st.sampled_from(further_shapes.SECRETS),
    st.integers(min_value=0, max_value=400),
    st.sampled_from(["x", "\n", "ab c"]),
)
@settings(max_examples=60, deadline=None)
def test_a_secret_across_the_border_of_a_real_window_is_found(case, before, filler):
    start = 64 * 1024 - before
    padding = (filler * start)[: start - 1] + "\n"

    hidden = redact(padding + case.text)

    assert hidden.startswith(padding)
    assert not [part for part in case.gone if part in hidden]


records = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), texts),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(["password", "api_key", "auth", "cmd", "note", "secret", "Cookie"]),
            inner,
            max_size=4,
        ),
    ),
    max_leaves=8,
)


def shape(record):
    match record:
        case dict():
            return {key: shape(inner) for key, inner in record.items()}
        case list():
            return [shape(inner) for inner in record]
        case str():
            return str
        case _:
            return record


@given(records, st.booleans(), st.sampled_from([None, 2]))
@example(["set password=", 12345678, "x"], True, None)
@example("mysql -p\x1b[31m", True, None)
@settings(max_examples=500, deadline=None)
def test_json_keeps_its_shape(record, ascii_only, indent):
    text = json.dumps(record, ensure_ascii=ascii_only, indent=indent)

    hidden, count = redacted(text)
    event(f"hidden: {min(count, 3)}")

    assert shape(json.loads(hidden, strict=False)) == shape(json.loads(text))
