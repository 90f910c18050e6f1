"""ranking: SQLite's FTS5 as the index of a ranked search, in memory, by BM25.

What somebody asks is never FTS5's syntax: each word of it is quoted, and any of them may stand in a
passage. Words are compared by their English stems, without case and accents; that finds more than
whole words do, and costs words of other languages nothing (measured in
tests/adapters/test_ranking.py). In scripts that put no spaces between words each character is a
word, and those in a row must stand in a row.
"""

import re
import sqlite3
from collections.abc import Iterable, Sequence

from ..domain.passages import Passage

TOKENIZE = "porter unicode61 remove_diacritics 2"
# A passage's own words count most, then what it stands under, then the name of its file.
WEIGHTS = (1.0, 0.4, 0.2)
WORDS_MAX = 64  # Of a question; one that is longer is no question.
# Words of questions and not of answers. Where a folder is small such a word is rare, and a rare
# word weighs most; so they count only in a question that has no others.
_EMPTY_WORDS = """
a an and any are as at be by can could did do does for from had has have how i if in is it its may
me must my no not of on or our shall should so than that the their then there they this to us was we
were what when where which who why will with would you your
das dem den der die ein eine einen es für hat ich im ist mit nicht oder und von was welche wer wie
wir wo zu
"""
EMPTY_WORDS = frozenset(_EMPTY_WORDS.split())

_UNSPACED = re.compile(
    "([\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff])"
)
_UNSPACED_RUN = re.compile(f"{_UNSPACED.pattern}+")
_WORD = re.compile(r"[^\W_]+")


class Ranking:
    def __init__(self, passages: Iterable[Passage]) -> None:
        # Whichever thread asks: a server's calls come from several, one at a time.
        self._database = sqlite3.connect(":memory:", check_same_thread=False)
        self._database.execute(
            "CREATE VIRTUAL TABLE passages USING"
            f" fts5(text, headings, path, content='', tokenize='{TOKENIZE}')"
        )
        self._database.executemany(
            "INSERT INTO passages (rowid, text, headings, path) VALUES (?, ?, ?, ?)",
            (
                (number, spaced(each.text), spaced(each.headings), spaced(each.path))
                for number, each in enumerate(passages)
            ),
        )

    def best(self, query: str, *, limit: int) -> Sequence[tuple[int, float]]:
        asked = match_of(query)
        if not asked:
            return []
        return self._database.execute(
            "SELECT rowid, -bm25(passages, ?, ?, ?) FROM passages WHERE passages MATCH ?"
            " ORDER BY bm25(passages, ?, ?, ?), rowid LIMIT ?",
            (*WEIGHTS, asked, *WEIGHTS, limit),
        ).fetchall()

    def close(self) -> None:
        self._database.close()


def match_of(query: str) -> str:
    """
    >>> match_of('how to "lint" NEAR(x) OR 設定'), match_of("to be or not")
    ('"lint" OR "near" OR "x" OR "設 定"', '"to" OR "be" OR "or" OR "not"')
    """
    return " OR ".join(f'"{word}"' for word in words(query))


def words(query: str) -> list[str]:
    """Each once. What has no spaces inside is a word of its own even where it touches another."""
    apart = _UNSPACED_RUN.sub(r" \g<0> ", query)
    found = dict.fromkeys(" ".join(spaced(each).split()) for each in _WORD.findall(apart))
    return [each for each in found if each not in EMPTY_WORDS][:WORDS_MAX] or list(found)[
        :WORDS_MAX
    ]


def spaced(text: str) -> str:
    """Lone surrogates are no text that SQLite takes, and are found by nobody."""
    if text.isascii():
        return text.casefold()
    return _UNSPACED.sub(r" \1 ", text.casefold().encode("utf-8", "replace").decode())
