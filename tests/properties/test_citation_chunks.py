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


words = st.text(st.characters(exclude_characters="<"), min_size=1, max_size=20)


@given(before=words, answer=words)
def test_an_opening_tag_alone_takes_no_word_of_the_answer(before: str, answer: str) -> None:
    cited = parse(f"{before}{OPENING}{answer}.")

    assert cited.visible == f"{before}{answer}."


paths = st.text("abcXYZ09_.-/:| []é", min_size=1, max_size=12).filter(
    lambda path: path == path.strip() and "|note=[" not in path
)
notes = st.text("abc [] |:=é-", max_size=12).filter(
    lambda note: note == note.strip() and "|note=[" not in note
)
numbers = st.integers(0, 2**32 - 1)
ids = st.uuids().map(str)
prose = st.text("abc .\n<>", max_size=20)


@given(
    places=st.lists(st.tuples(paths, numbers, numbers, notes), max_size=4),
    cited=st.lists(ids, max_size=4, unique=True),
    before=prose,
    after=prose,
)
def test_what_is_written_as_the_grammar_has_it_is_read_as_it_was_meant(
    places, cited, before, after
):
    lines = "".join(f"{path}:{a}-{b}|note=[{note}]\n" for path, a, b, note in places)
    body = f"<citation_entries>\n{lines}</citation_entries>\n<rollout_ids>\n" + "".join(
        f"{each.upper()}\n" for each in cited
    )

    read = parse(f"{before}{OPENING}\n{body}</rollout_ids>\n{CLOSING}{after}")

    assert read.visible == before + after
    assert [(e.path, e.start, e.end, e.note) for e in read.entries] == places
    assert list(read.usage_ids) == cited
