"""Events come out alike however the network has cut their bytes."""

import itertools

from hypothesis import example, given
from hypothesis import strategies as st
from threadbook.adapters.models.sse import Event, Events

# What other readers of lines take for an end of one.
ODD = ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c", "\r", "é", "🌿"]
LINES = st.text(st.sampled_from([*ODD, "a", ":", " ", "{"]), max_size=6).filter(
    lambda line: not line.endswith("\r")
)
EVENTS = st.lists(
    st.tuples(st.sampled_from(["", "message", "response.completed"]), st.lists(LINES, min_size=1)),
    max_size=4,
)


def read(contents):
    events = Events()
    found = [event for content in contents for event in events.feed(content)]
    return found + list(events.rest())


def cut(content, places):
    at = [0, *sorted(place % (len(content) + 1) for place in places), len(content)]
    return [content[start:end] for start, end in itertools.pairwise(at)]


@given(EVENTS, st.sampled_from(["\n", "\r\n"]), st.lists(st.integers(0, 999)), st.booleans())
@example([("", ["a\u2028b"])], "\n", [], False)
@example([("", ["a"]), ("", ["b"])], "\r\n", [7], True)
def test_an_event_is_what_was_sent_wherever_it_is_cut(sent, end, places, comments):
    text = ""
    for name, lines in sent:
        text += f": still here{end}" if comments else ""
        text += f"event: {name}{end}" if name else ""
        text += "".join(f"data: {line}{end}" for line in lines) + end

    found = read(cut(text.encode(), places))

    assert found == [Event(name, "\n".join(lines).encode()) for name, lines in sent]


def test_a_stream_that_ends_without_a_blank_line_has_its_last_event():
    assert read([b"data: [DO", b"NE]"]) == [Event("", b"[DONE]")]


def test_comments_ids_and_a_byte_order_mark_are_no_data():
    assert read([b"\xef\xbb\xbfid: 1\nretry: 5\n: x\n\ndata:a\ndata\n\n\n"]) == [Event("", b"a\n")]


def test_a_line_in_very_many_pieces_is_joined_once():
    events = Events()
    pieces = [b"data: ", *[b"x" * 64] * 50_000, b"\n\n"]

    found = [event for piece in pieces for event in events.feed(piece)]

    assert [len(event.data) for event in found] == [3_200_000]
