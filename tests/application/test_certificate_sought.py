"""What is looked for: every piece of an erased text that tells, and none of what stays."""

import random
import tracemalloc

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from threadbook.application.sought import MARK_BYTES, RUN_BYTES, Sought, forms

WORDS = st.text(alphabet="abcdefgh äéß고사", min_size=1, max_size=12)
LINES = st.lists(WORDS, min_size=3, max_size=14).map(" ".join)
TEXTS = st.lists(LINES, min_size=1, max_size=4).map("\n".join)
NOISE = st.binary(max_size=40).filter(lambda noise: noise.lower() == noise)


def sought(*texts, stays=()):
    found = Sought(texts)
    for text in stays:
        found.strike(text)
    found.struck()
    return found


def eights(form):
    return {form[at : at + MARK_BYTES] for at in range(len(form) - MARK_BYTES + 1)}


@given(texts=TEXTS, stays=st.lists(TEXTS, max_size=3), noise=NOISE, data=st.data())
def test_whatever_piece_of_a_line_is_left_is_found_unless_it_is_in_what_stays(
    texts, stays, noise, data
):
    line = data.draw(st.sampled_from(texts.split("\n"))).strip()
    form = data.draw(st.sampled_from(sorted(set(forms(line)))))
    size = data.draw(st.integers(RUN_BYTES, max(RUN_BYTES, len(form))))
    at = data.draw(st.integers(0, max(0, len(form) - size)))
    piece = form[at : at + size]
    known = {eight for each in forms("\n".join(stays)) for eight in eights(each)}
    tells = bool(eights(piece) - known)
    whole = len(piece) >= RUN_BYTES

    found = list(sought(texts, stays=stays).runs(b"\x01" + noise + b"\x02" + piece + b"\x03"))

    event(f"tells: {tells}, as long as a run: {whole}")
    if tells and whole:
        first = 2 + len(noise)
        assert any(each.at <= first + size and each.at + each.size >= first for each in found)


@given(texts=TEXTS, stays=st.lists(TEXTS, min_size=1, max_size=3))
def test_a_text_that_stays_is_no_find(texts, stays):
    found = sought(texts, stays=stays)

    for form in forms("\n".join(stays)):
        assert list(found.runs(form, words=True)) == []


def test_a_short_line_is_found_whole_and_not_in_part():
    found = sought("mend the page\nof a kite")

    assert [run.size for run in found.runs(b"--mend the page--")] == [13]
    assert [run.size for run in found.runs(b"of a kite")] == [9]
    assert list(found.runs(b"--mend the pa--")) == []


def test_a_run_is_looked_for_from_twenty_four_bytes_on():
    found = sought("please feed the kestrel before noon on every day")
    run = b"feed the kestrel before noon"

    assert [each.size for each in found.runs(run[:RUN_BYTES])] == [RUN_BYTES]
    assert list(found.runs(run[: RUN_BYTES - 1])) == []


def test_in_an_index_eight_letters_of_one_word_are_enough_and_two_words_are_not():
    found = sought("the grumbelfinkenau is on it once more, again and again")

    assert list(found.runs(b"\x06elfinken\x01", words=True))
    assert list(found.runs(b"\x06elfinken\x01")) == []
    assert list(found.runs(b"is on it once", words=True)) == []


def test_a_word_is_found_without_its_accents_as_an_index_keeps_it():
    found = sought("never say úbérzwölfkántíg there")

    assert [run.size for run in found.runs(b"\x0fuberzwolfkantig\x01", words=True)] == [15]


@pytest.mark.parametrize("kilobytes", [200])
def test_what_is_looked_for_in_long_texts_fits_into_memory(kilobytes):
    chosen = random.Random(1)
    text = "\n".join(
        " ".join("".join(chosen.choices("abcdefghijklm", k=7)) for _ in range(12))
        for _ in range(kilobytes * 10)
    )
    tracemalloc.start()

    found = sought(text)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert list(found.runs(text[5_000:5_100].encode()))
    assert most < 800 * len(text)
