"""Citations: the open cases, what Codex's own tests pin, and where we differ from it."""

import json
import time
from pathlib import Path

import pytest
from msgspec.structs import asdict
from threadbook.domain.citation import Citation, CitationEntry, Parser, parse

OPEN = Path(__file__).parent.parent / "fixtures" / "open"
REPLIES = {
    case["name"]: case["reply"]
    for case in map(json.loads, (OPEN / "citations_malformed.jsonl").read_text().splitlines())
}
EXPECTED = {
    case["name"]: case for case in json.loads((OPEN / "citations_expected.json").read_text())
}

A = "019c0000-0000-7000-8000-000000000001"
B = "019c0000-0000-7000-8000-000000000002"
PLACES = "<citation_entries>\nMEMORY.md:10-15|note=[why]\n</citation_entries>"
IDS = f"<rollout_ids>\n{A}\n</rollout_ids>"


def block(body: str) -> str:
    return f"<oai-mem-citation>{body}</oai-mem-citation>"


def in_chunks(reply: str, size: int) -> Citation:
    parser = Parser()
    shown = [parser.feed(reply[at : at + size]) for at in range(0, len(reply), size)]
    return parser.citation("".join(shown) + parser.finish())


@pytest.mark.parametrize("size", [0, 1, 2, 3, 7])
@pytest.mark.parametrize("name", REPLIES)
def test_an_open_case_reads_the_same_whole_and_in_chunks(name: str, size: int) -> None:
    expected = EXPECTED[name]

    cited = in_chunks(REPLIES[name], size) if size else parse(REPLIES[name])

    assert cited.visible == expected["visible"]
    wanted = [
        {key: each[key] for key in ("path", "start", "end", "note")} for each in expected["entries"]
    ]
    assert [asdict(entry) for entry in cited.entries] == wanted
    assert list(cited.ids_raw) == expected["ids_raw"]
    assert list(cited.usage_ids) == expected["usage_ids"]


def test_all_fourteen_open_cases_are_here() -> None:
    assert len(REPLIES) == 14
    assert REPLIES.keys() == EXPECTED.keys()


def test_the_beginning_of_a_tag_is_held_back_until_it_is_known_to_be_none() -> None:
    parser = Parser()

    shown = [
        parser.feed("one <oai-"),
        parser.feed("mem"),
        parser.feed("ory> two <oai"),
        parser.finish(),
    ]

    assert shown == ["one ", "", "<oai-memory> two ", "<oai"]


def test_a_tag_that_comes_in_two_chunks_is_a_tag() -> None:
    parser = Parser()

    shown = [
        parser.feed("one <oai-mem-cit"),
        parser.feed("ation>hidden</oai-mem-"),
        parser.feed("citation> two"),
    ]

    assert shown == ["one ", "", " two"]


def test_spaces_round_a_block_stay() -> None:
    assert parse(f"Hello {block('')} world").visible == "Hello  world"


def test_blocks_do_not_nest() -> None:
    cited = parse(f"a{block(f'x<oai-mem-citation>{IDS}')}b</oai-mem-citation>c")

    assert cited.visible == "ab</oai-mem-citation>c"
    assert cited.ids_raw == (A,)


def test_a_tag_in_other_letters_is_text() -> None:
    reply = "a <OAI-mem-citation>b</OAI-mem-citation>"

    assert parse(reply) == Citation(visible=reply)


def test_a_closed_block_that_says_nothing_is_hidden_all_the_same() -> None:
    assert parse(f"a{block('what is this')}") == Citation(visible="a")


def test_a_reply_that_is_only_a_block_shows_nothing() -> None:
    assert parse(block(IDS)).visible == ""


def test_an_older_name_counts_only_where_the_newer_one_is_not_closed() -> None:
    older = f"<thread_ids>\n{B}\n</thread_ids>"

    assert parse(block(older + IDS)).ids_raw == (A,)
    assert parse(block("<rollout_ids>" + older)).ids_raw == (B,)
    assert parse(block("<rollout_ids>\n</rollout_ids>" + older)).ids_raw == ()


def test_of_a_body_the_first_element_of_each_name_counts() -> None:
    cited = parse(block(IDS + f"<rollout_ids>{B}</rollout_ids>" + PLACES + PLACES))

    assert cited.ids_raw == (A,)
    assert len(cited.entries) == 1


@pytest.mark.parametrize(
    ("line", "entry"),
    [
        ("a|note=[b]:1-2|note=[c]", ("a|note=[b]", 1, 2, "c")),
        ("a:1:2-3|note=[]", ("a:1", 2, 3, "")),
        ("a:+1-+2|note=[c]", ("a", 1, 2, "c")),
        ("a:007-000000000000010|note=[c]", ("a", 7, 10, "c")),
        ("a:0-4294967295|note=[c]", ("a", 0, 4294967295, "c")),
        ("a:9-3|note=[c]", ("a", 9, 3, "c")),
        ("\u00a0a\u3000:\t1 - 2\r|note=[ c ]\r", ("a", 1, 2, "c")),
        (":1-2|note=[c]", ("", 1, 2, "c")),
        ("a:0-4294967296|note=[c]", None),
        ("a:1-2-3|note=[c]", None),
        ("a:-1-2|note=[c]", None),
        ("a:++1-2|note=[c]", None),
        ("a:1_0-2|note=[c]", None),
        ("a:\u0661-2|note=[c]", None),
        ("a:1|note=[c]", None),
        ("1-2|note=[c]", None),
        ("a:1-2|note=[c", None),
        ("a:1-2|note=[c] x", None),
        ("a:1-2 note=[c]", None),
        ("a:1-\x1c2|note=[c]", None),
    ],
)
def test_a_line_is_a_place_or_is_dropped(
    line: str, entry: tuple[str, int, int, str] | None
) -> None:
    cited = parse(block(f"<citation_entries>\n{line}\n</citation_entries>"))

    found = tuple((each.path, each.start, each.end, each.note) for each in cited.entries)
    assert found == (() if entry is None else (entry,))


def test_a_web_citation_is_text_and_claims_nothing() -> None:
    reply = f"a \ue200cite\ue202<rollout_ids>{A}</rollout_ids>\ue201"

    assert parse(reply) == Citation(visible=reply)


# An unclosed block: DESIGN 10 lets it hide nothing but itself.

PLACE = CitationEntry(path="MEMORY.md", start=10, end=15, note="why")


@pytest.mark.parametrize(
    ("behind", "visible", "ids"),
    [
        # Nothing but the block: it is closed at the end of the reply, and counts.
        ("", "", ()),
        (f"\n{PLACES}\n{IDS}\n\n", "", (A,)),
        # An answer that goes on.
        ("The answer.", "The answer.", ()),
        (" The answer.\n", " The answer.\n", ()),
        (f"\n{PLACES}\n{IDS}\n\nThe answer.", "\n\nThe answer.", (A,)),
        (f"The answer.\n{IDS}", "The answer.\n", (A,)),
        (f"{IDS} one <oai-mem-citation> two", " one  two", (A,)),
        # An element that nothing closes goes as far as its lines do, and says nothing.
        (f"\n<rollout_ids>\n{A}\n  {B}\nThe answer.\n{A}", f"\nThe answer.\n{A}", ()),
        ("\n<citation_entries>\nMEMORY.md:1-2|note=[x]\n\nSee a:1-2.", "\nSee a:1-2.", ()),
        (f"\n<citation_entries>\nMEMORY.md:1-2|note=[x]\n{IDS}", "", (A,)),
        (f"\n<rollout_ids>\n{A}</rollout_ids", "", ()),
        (f"{IDS}</rollout_ids>\n<thread_ids>", "", (A,)),
        # Cut off inside a line: scraps of the grammar go, words stay.
        ("\n<citation_entries>\nMEMORY.md:10-15|note=[why it", "", ()),
        ("\n<citation_entries>\nMEMORY.md:10", "", ()),
        ("\n<citation_entries>\nMEMORY.md", "\nMEMORY.md", ()),
        ("\n<citation_entries>\nLunch is at 12:30", "\nLunch is at 12:30", ()),
        (f"\n<rollout_ids>\n{A[:20]}", "", ()),
        ("\n<rollout_ids>\nadded", "\nadded", ()),
        (f"\n{IDS}\n</oai-mem-ci", "", (A,)),
        (f"\n{IDS}\n3 <", "\n3 <", (A,)),
    ],
)
def test_an_unclosed_block_hides_nothing_but_itself(
    behind: str, visible: str, ids: tuple[str, ...]
) -> None:
    cited = parse(f"Before.<oai-mem-citation>{behind}")

    assert cited.visible == f"Before.{visible}"
    assert cited.ids_raw == ids


def test_what_follows_an_unclosed_block_waits_for_the_end_of_the_reply() -> None:
    parser = Parser()

    shown = [parser.feed(f"one <oai-mem-citation>{IDS}"), parser.feed(" two"), parser.finish()]

    assert shown == ["one ", "", " two"]


@pytest.mark.parametrize(
    "hostile",
    [
        "<oai-mem-citation>" * 60_000,
        "<oai-mem-citation>" + "<citation_entries>" * 60_000,
        "<oai-mem-citation>" + "<citation_entries>\na:1-2|note=[" * 40_000,
        "<oai-mem-citation></oai-mem-citation>" * 30_000,
        "<oai-mem-citation><rollout_ids>" + "0\n" * 500_000,
        "<oai-mem-citation><citation_entries>" + "1:" * 500_000,
        "<oai-mem-citation><citation_entries>a:" + "0" * 500_000 + "1" * 500_000 + "-1|note=[]",
        "<oai-mem-citatio" * 60_000,
    ],
    ids=range(8),
)
@pytest.mark.parametrize("size", [0, 7])
def test_a_hostile_reply_of_a_megabyte_is_read_in_linear_time(hostile: str, size: int) -> None:
    began = time.process_time()

    if size:
        in_chunks(hostile, size)
    else:
        parse(hostile)

    assert time.process_time() - began < 5  # Quadratic would be minutes.
