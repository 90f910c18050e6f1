"""Fields: secrets are hidden in what a string says, and a torn string shows no half of one."""

import json

import pytest
from threadbook.domain.fields import (
    MARGIN,
    Torn,
    encoded,
    hidden,
    hidden_text,
    missing,
    plain,
    torn,
)

KEY = "sk-" + "a1B2" * 8
MARK = "[REDACTED_SECRET]"


@pytest.mark.parametrize(
    "text",
    [
        "call_1",
        "msg_01a22799-867f-7df0-8f6e-f85be8c772bb",
        "exec_command",
        '{"cmd": "ls -la\\n\\u00e9", "yield_time_ms": 10000}',
        '{"a" : [1, 2.50, null], "b":"x\\/y"}',
        '{"cmd": "echo \\"token count: 12\\""}',
        "{not json",
    ],
)
def test_what_holds_no_secret_stays_byte_for_byte(text):
    kept = hidden_text(text)

    assert kept == text


@pytest.mark.parametrize("layers", [0, 1, 2])
def test_a_secret_is_hidden_behind_layers_of_json_and_each_layer_is_still_json(layers):
    text = whole = f'export TOKEN="{KEY}"\nNEXT=1'
    for _ in range(layers):
        text = json.dumps({"cmd": text})

    kept = hidden_text(text)

    for _ in range(layers):
        kept = json.loads(kept)["cmd"]
    assert kept == whole.replace(KEY, MARK)


def test_a_name_says_what_its_value_is_in_arguments_and_in_a_tools_own_tree():
    text = hidden_text('{"user": "dana", "password": "hunter2hunter2"}')
    tree = hidden({"action": {"user": "dana", "password": "hunter2hunter2"}})

    assert json.loads(text) == {"user": "dana", "password": MARK}
    assert tree == {"action": {"user": "dana", "password": MARK}}


def test_a_long_string_is_held_by_its_ends_and_what_it_lacks_is_counted_as_json_writes_it():
    text = 'ü"\n' * 100_000

    held = torn({"a": [text], "b": "short"}, keep=100)

    [short] = held["a"]
    assert isinstance(short, Torn)
    assert held["b"] == "short"
    chars, size = missing(held)
    assert size + len(encoded(plain(held))) == len(encoded({"a": [text], "b": "short"}))
    assert chars == size - text.count("ü") + (short.head + short.tail).count("ü")


def test_a_secret_at_a_tear_leaves_no_half_of_itself():
    end = 100 + 2 * MARGIN
    for before in range(end - len(KEY) - 10, end + 2, 5):
        text = "x " * (before // 2) + f"TOKEN={KEY} " + "y " * 2 * end
        for value in (text, text[::-1].replace(KEY[::-1], KEY)):
            kept = hidden(torn(value, keep=100))

            assert "a1B2" not in kept
            assert kept.count(" chars truncated…") == 1
            assert kept.startswith(value[:100])
            assert kept.endswith(value[-100:])
