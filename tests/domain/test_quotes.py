"""Quotes: what a person typed is found in every disguise, and what nobody typed is not."""

# ruff: noqa: E501, RUF001 - a case reads better on one line, and in its own letters.
import re
import time

import pytest
from threadbook.domain.quotes import Spoken, Typed, negators, similarity

# Invented sentences as people type them, in sessions of seven.
SAID = (
    "please always run the migrations on a copy before you touch the orders table",
    "I don't want any snapshot tests in this repo, they rot",
    "keep commits small, one idea each, and never squash them",
    "no, the port is 5433 on staging and 5432 only on my laptop",
    "use British spelling in everything a customer reads",
    "when you rename a column also rename it in docs/schema.md",
    "the linter runs in CI, so don't run it after every edit",
    "from now on answer in three sentences or fewer",
    "we never mock the payment client; use the fake in tests/fakes",
    "make sure the retry delay is capped at 30 seconds",
    "stop adding comments that say what the next line does",
    "I prefer tables over bullet lists for comparisons",
    "don't upgrade numpy past 1.26, the plugin breaks",
    "write the changelog entry before the code, it keeps scope honest",
    "that isn't a bug, the API returns 204 without a body on purpose",
    "please ask before you delete anything under data/raw",
    "log lines should carry the request id and nothing about the user",
    "the nightly job starts at 02:15 UTC, not at midnight",
    "use pathlib everywhere, os.path only where speed was measured",
    "I'd rather have two plain functions than one with a flag",
    "every new endpoint needs a test for the empty answer",
    "do not touch the vendored folder, we patch it upstream",
    "for this project the default branch is trunk",
    "tell me what you left out, not only what you did",
    "keep the public functions sorted by name in api.py",
    "it should fail loudly when the config file has unknown keys",
    "you forgot the German translation again, it belongs to the same change",
    "never print secrets, not even in debug builds",
    "the fixture called fern_big takes 40 seconds, avoid it in unit tests",
    "use the word gardener for people and never the word user",
    "please rebase instead of merging trunk into the branch",
    "the designers want eight pixel steps, nothing in between",
    "ship the smallest thing that helps, polish on Friday",
    "error messages say what to do next and end with a full stop",
    "I want to see the failing test before the fix",
    "the cache key must include the locale and the currency",
    "bitte schreib die Kommentare im Code immer auf Englisch",
    "no emojis in commit messages, the old mail gateway chokes on them",
    "run make seed after every schema change or the demo is empty",
    "only the release manager pushes tags that begin with v",
    "we measure in milliseconds, and the chart shows the 95th percentile",
    "leave the TODO in parser.py alone, it documents a promise to a client",
)  # fmt: skip
SESSIONS = [SAID[at : at + 7] for at in range(0, len(SAID), 7)]


def spoken(session):
    return Spoken(Typed(text=text, line=line) for line, text in enumerate(session))


SPOKEN = [spoken(session) for session in SESSIONS]
CASES = [(SPOKEN[at // 7], text, at % 7) for at, text in enumerate(SAID)]


def curly(text):
    return f"“{text}”".replace("'", "’").replace(" - ", " — ").replace(",", " \u200b,")


def ellipsis(text):
    words = text.split()
    return " ".join([*words[:3], "...", *words[-3:]])


def truncated(text):
    return " ".join(text.split()[: max(4, len(text.split()) * 2 // 3)])


def typo(text):
    """Two letters of a long word change places. A slip in a `not` is another sentence."""
    word = next(
        word for word in re.findall(r"[a-z]{4,}", text) if word[1] != word[2] and not negators(word)
    )
    return text.replace(word, word[0] + word[2] + word[1] + word[3:], 1)


DISGUISES = {
    "same": lambda text: text,
    "curly": curly,
    "white space": lambda text: "\n   ".join(text.split(" ")),
    "upper case and signs": lambda text: f"{text.upper()}!!",
    "markdown": lambda text: re.sub(r"\b(\w{5,})\b", r"**\1**", text, count=2) + "_",
    "ellipsis": ellipsis,
    "truncated": truncated,
}


@pytest.mark.parametrize("disguise", DISGUISES)
def test_what_was_typed_is_found_exactly_in_every_disguise(disguise):
    change = DISGUISES[disguise]

    found = [(session.find(change(text)), at) for session, text, at in CASES]

    assert {verdict.found for verdict, _ in found} == {"exact"}
    assert all(verdict.typed.line == at for verdict, at in found)


def test_a_slip_of_the_fingers_is_near():
    found = [session.find(typo(text)).found for session, text, _ in CASES]

    assert set(found) == {"near"}


def test_no_paraphrase_is_found():
    paraphrases = (
        "the user asked to test migrations on a copied database first",
        "snapshot tests are not welcome in the repository because they go stale",
        "small single-purpose commits are preferred and squashing is forbidden",
        "staging listens on port 5433 whereas the laptop uses 5432",
        "customer-facing text follows British spelling",
        "docs/schema.md has to follow whenever columns get new names",
        "linting after each edit is unnecessary since CI does it",
    )

    found = [SPOKEN[0].find(text).found for text in paraphrases]

    assert set(found) == {"missing"}


def test_no_quote_is_found_in_another_session():
    others = [
        (SPOKEN[other].find(text).found, text)
        for at, text in enumerate(SAID)
        for other in range(len(SPOKEN))
        if other != at // 7
    ]

    assert len(others) >= 200
    assert [text for found, text in others if found != "missing"] == []


@pytest.mark.parametrize(
    ("typed", "quote"),
    [
        ("please keep the retry delay at 30 seconds here", "please keep the retry delay at 90 seconds here"),
        ("you should never push to the release branch", "you should ever push to the release branch"),
        ("don't run the slow tests after every edit", "do run the slow tests after every edit"),
        ("we can refuse tabs there", "use tabs"),
        ("he said that textbooks are fine", "text"),
        ("", "anything at all that somebody said"),
        ("use uv", ""),
        ("use uv", "... [REDACTED_SECRET] ..."),
    ],
)  # fmt: skip
def test_another_number_another_not_or_half_a_word_is_no_quote(typed, quote):
    assert spoken([typed]).find(quote).found == "missing"


@pytest.mark.parametrize(
    ("typed", "quote"),
    [
        ("log in with hunter [REDACTED_SECRET] and then run make", "log in with hunter ... then run make"),
        ("use the key sk-123 for staging only", "use the key [REDACTED_SECRET] for staging only"),
        ("first this. then a lot more of words. and at last that", "first this [...] at last that"),
        ("make fast / keep small", "make fast / keep small"),
        ("テストは必ず先に書いてください", "テストは必ず先に"),
        ("Ｆｕｌｌ width TEXT", "full width text"),
    ],
)  # fmt: skip
def test_pieces_in_order_and_other_scripts_are_found(typed, quote):
    assert spoken(["something else", typed]).find(quote).found == "exact"


def test_pieces_in_another_order_or_far_apart_are_not_found():
    session = spoken(["first this and at last that", "one fern " + "x " * 5_000 + "two ferns"])

    assert session.find("at last that ... first this").found == "missing"
    assert session.find("one fern ... two ferns").found == "missing"


def test_no_quote_reaches_over_two_messages():
    session = spoken(["always use tabs", "never use spaces in makefiles"])

    assert session.find("tabs never use spaces in makefiles").found != "exact"
    assert session.find("always use tabs ... in makefiles").found == "missing"


def test_the_first_message_that_has_it_is_its_place():
    session = Spoken(
        [Typed(text=text, line=line, at_ms=line * 10) for line, text in ((3, "a"), (5, "use uv"), (9, "use uv"))]
    )  # fmt: skip

    assert session.find("Use uv.").typed == Typed(text="use uv", line=5, at_ms=50)


@pytest.mark.parametrize(
    ("text", "count"),
    [("do not", 1), ("don't and won't", 2), ("can't", 1), ("nothing", 1), ("note the knot", 0),
     ("nicht ohne", 2), ("しないで", 1)],
)  # fmt: skip
def test_negators_are_counted(text, count):
    assert negators(text) == count


def test_what_is_alike_is_measured_as_the_shared_letters_of_all():
    assert similarity("abcd", "abcd") == 1
    assert similarity("abcd", "abxd") == pytest.approx(0.75)
    assert similarity("abcd", "") == 0
    assert similarity("abc", "xyz") == 0


def test_an_index_of_megabytes_is_made_and_searched_in_little_time():
    text = "\n".join(f"{said} number {at}" for at in range(200) for said in SAID)
    pages = [Typed(text=text, line=at) for at in range(8)]
    quotes = [truncated(said) for said in SAID] + [ellipsis(said) for said in SAID]
    missing = [f"nobody ever typed {said[::-1]}" for said in SAID]

    started = time.process_time()
    session = Spoken(pages)
    indexed = time.process_time()
    found = [session.find(quote).found for quote in quotes]
    searched = time.process_time()
    session.find(missing[0])
    again = time.process_time()
    none = [session.find(quote).found for quote in missing]
    ended = time.process_time()

    assert sum(len(each.text) for each in pages) > 4_500_000
    assert set(found) == {"exact"}
    assert set(none) == {"missing"}
    # Goals are 2.5 s for 5 MB and 8 ms a quote; a shared machine is allowed three times that.
    assert indexed - started < 7.5
    assert (searched - indexed) / len(quotes) < 0.024
    assert (ended - again) / len(missing) < 0.1
