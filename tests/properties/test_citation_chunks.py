"""However a reply is cut on its way, it says and shows the same, and nothing too early."""

from hypothesis import event, given
from hypothesis import strategies as st
from threadbook.domain.citation import CLOSING, OPENING, Parser, parse

WORDS = st.sampled_from(
    [
        OPENING,
        CLOSING,
        OPENING[:7],
        CLOSING[:9],
        "<citation_entries>",
        "</citation_entries>",
        "<rollout_ids>",
        "</rollout_ids>",
        "<thread_ids>",
        "</thread_ids>",
        "<rollout_ids>\n019c0000-0000-7000-8000-000000000002\n</rollout_ids>",
        "<citation_entries>\nMEMORY.md:1-2|note=[]\n</citation_entries>",
        f"{OPENING}<thread_ids>\n1\n</thread_ids>{CLOSING}",
        "MEMORY.md:10-15|note=[why]",
        "MEMORY.md:10-",
        "019c0000-0000-7000-8000-000000000001",
        "019C0000-0000-7000-8000-000000000001",
        "019c0000-00",
        "\n",
        "\n",
        " ",
        "<",
        "</",
        "words",
    ]
)
REPLIES = st.one_of(
    st.lists(WORDS, max_size=24).map("".join),
    st.lists(st.one_of(WORDS, st.text(max_size=5)), max_size=12).map("".join),
)


@given(reply=REPLIES, sizes=st.lists(st.integers(0, 25), min_size=1, max_size=30))
def test_any_chunking_reads_as_the_whole(reply: str, sizes: list[int]) -> None:
    whole = parse(reply)
    event(f"says something: {bool(whole.entries or whole.ids_raw)}")
    event(f"unclosed: {reply.rfind(OPENING) > reply.rfind(CLOSING)}")
    parser = Parser()
    shown: list[str] = []

    at = 0
    for size in sizes:
        shown.append(parser.feed(reply[at : at + size]))
        at += size
        assert whole.visible.startswith("".join(shown))
    shown += (parser.feed(reply[at:]), parser.finish())

    assert parser.citation("".join(shown)) == whole


@given(reply=REPLIES)
def test_what_is_shown_stands_in_the_reply_in_this_order(reply: str) -> None:
    visible = iter(reply)

    assert all(letter in visible for letter in parse(reply).visible)


@given(before=st.text(max_size=20), answer=st.text(min_size=1, max_size=20))
def test_an_opening_tag_alone_takes_no_word_of_the_answer(before: str, answer: str) -> None:
    cited = parse(f"{before}{OPENING}{answer}.")

    assert cited.visible == f"{before}{answer}."
