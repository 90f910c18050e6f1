"""Which passages a question finds first: a made folder of statements, and questions about them in
other words, held against a bound that was measured."""

import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st
from threadbook.adapters.ranking import Ranking, match_of
from threadbook.domain.passages import Passage

STATEMENTS = [
    'the user wrote "From now on always run make lint before you call something done"',
    'the user wrote "Never change gallery.json without asking me, the print shop reads the sizes"',
    'the user wrote "No, please don\'t round in the handler, prices stay whole cents"',
    "`pip install weasyprint` failed (externally-managed-environment); `uv pip install` passed",
    "the staging database is reset every night at two, so no data there lasts",
    "deployments go through the blue cluster first; the green one follows an hour later",
    'the user wrote "use webp for thumbnails and keep jpg for the downloads"',
    "`alembic upgrade head` failed: cannot drop table vouchers because other objects depend on it",
    "the integration tests need a running Redis; `make services` starts it",
    'the user wrote "commit messages in the imperative, and no ticket numbers in the first line"',
    "feature flags live in config/flags.toml and are read once at the start of the process",
    "the mobile client caches answers for ten minutes, so a change is seen late",
    "`npm run build` ran out of memory; NODE_OPTIONS=--max-old-space-size=4096 helped",
    'the user wrote "do not add a dependency without telling me its licence"',
    "time stamps are stored in UTC and shown in the reader's time zone",
    "invoices are numbered without gaps; a cancelled one keeps its number",
    "the search page is slow because the index on orders.customer_id is missing",
    'the user wrote "Bitte schreibe Fehlermeldungen immer auf Deutsch und in ganzen Sätzen"',
    "die Rechnungen werden nachts als PDF erzeugt und am Morgen verschickt",
    "die Schriftgröße der Überschriften steht in styles/schrift.css",
    "배포 전에 항상 통합 테스트를 실행한다",
    "사용자는 주석을 한국어로 쓰기를 원한다",
    "本番環境の設定は config/production.toml にある",
    "エラーメッセージは日本語で書くこと",
    "caching of thumbnails is keyed by the hash of the original file",
    "the release branch is cut on Thursdays and is frozen until Monday",
    'the user wrote "always ask before you delete files, also generated ones"',
    "passwords for the test accounts are in the team's vault, never in the repository",
    "the parser keeps comments, because the formatter writes them back",
    "retries of the payment provider are idempotent through the header Idempotency-Key",
    "logs older than thirty days are removed by a job that runs on the first of the month",
    "the import of CSV files accepts semicolons, because the office exports them so",
    "screenshots in the documentation are made by scripts/shots.py at 1280 pixels",
    "the coupon table must stay for one release after the code stops using it",
    'the user wrote "prefer small pull requests; more than 400 lines are split"',
    "accessibility checks run with axe in the browser tests",
    "the worker reads at most five messages at once, since the queue redelivers after a minute",
    "type checking is strict in src and loose in scripts",
    "the old API answers with XML when no Accept header is sent",
    "localised strings are extracted with `make messages`",
]
QUESTIONS = [
    ("how do I check style before finishing", None),  # Lint is another word: nobody finds it.
    ("running the linter", 0),
    ("may I edit gallery.json", 1),
    ("rounding of prices", 2),
    ("installing weasyprint", 3),
    ("does staging data persist over night", 4),
    ("deploying to the cluster", 5),
    ("thumbnail format", 6),
    ("dropping a table in a migration", 7),
    ("which service must run for the integration test", 8),
    ("commit message style", 9),
    ("where is a feature flag configured", 10),
    ("node build out-of-memory", 12),
    ("adding dependencies licence", 13),
    ("timezone of timestamps time zone", 14),
    ("slow search missing indexes", 16),
    ("Fehlermeldung auf Deutsch", 17),
    ("Rechnung PDF", 18),
    ("schriftgrosse überschrift", 19),
    ("통합 테스트 배포", 20),
    ("設定 本番", 22),
    ("deleting generated files", 26),
    ("idempotency of payment retry", 29),
    ("coupon tables after a release", 33),
]


def found_by(tokenize, monkeypatch):
    monkeypatch.setattr("threadbook.adapters.ranking.TOKENIZE", tokenize)
    ranking = of(STATEMENTS)
    return {
        question
        for question, wanted in QUESTIONS
        if wanted in [number for number, _ in ranking.best(question, limit=5)]
    }


def of(texts, headings=""):
    return Ranking(
        Passage(path=f"{at}.md", start=1, end=1, text=text, headings=headings)
        for at, text in enumerate(texts)
    )


def test_questions_in_other_words_find_their_statement_among_the_first_five(monkeypatch):
    asked = {question for question, wanted in QUESTIONS if wanted is not None}

    assert found_by("porter unicode61 remove_diacritics 2", monkeypatch) == asked


def test_stems_and_accents_are_worth_what_they_cost(monkeypatch):
    whole_words = found_by("unicode61 remove_diacritics 2", monkeypatch)
    accents = found_by("porter unicode61 remove_diacritics 0", monkeypatch)
    letters = found_by("trigram", monkeypatch)

    assert (len(whole_words), len(accents), len(letters)) == (21, 22, 21)


def test_the_words_of_a_passage_count_more_than_what_it_stands_under():
    ranking = Ranking(
        [
            Passage(path="a.md", start=1, end=1, text="something else", headings="lint"),
            Passage(path="b.md", start=1, end=1, text="run lint first", headings="tools"),
            Passage(path="lint.md", start=1, end=1, text="again else", headings="tools"),
        ]
    )

    assert [number for number, _ in ranking.best("lint", limit=5)] == [1, 0, 2]


def test_words_that_only_ask_do_not_weigh_unless_there_are_no_others():
    ranking = of(["reuse applies to this", "run lint before a commit", "lint the commit"])

    assert [n for n, _ in ranking.best("what to lint before a commit", limit=5)] == [1, 2]
    assert [n for n, _ in ranking.best("to", limit=5)] == [0]


def test_equals_keep_the_order_of_the_text():
    ranking = of(["run lint"] * 5)

    assert [number for number, _ in ranking.best("lint", limit=3)] == [0, 1, 2]


@pytest.mark.parametrize(
    "query",
    [
        "lint*",
        '"lint',
        "lint AND NOT lint",
        "NEAR(lint lint, 9)",
        "text:lint",
        "{text path} : lint",
        "^lint",
        "-lint",
        "lint'); DROP TABLE passages; --",
        "lint\0lint",
        "(lint",
    ],
)
def test_what_is_asked_is_words_and_never_a_query_language(query):
    ranking = of(["run lint", "something else"])

    assert [number for number, _ in ranking.best(query, limit=5)] == [0]


@given(st.text(max_size=40))
def test_any_text_may_be_asked(query):
    ranking = of(["run lint", "설정 設定 ßü", "\ud800 lone"])

    assert len(ranking.best(query, limit=5)) <= 3
    ranking.close()


def test_the_control_would_have_been_a_query_language():
    database = sqlite3.connect(":memory:")
    database.execute("CREATE VIRTUAL TABLE t USING fts5(text)")

    with pytest.raises(sqlite3.OperationalError):
        database.execute("SELECT * FROM t WHERE t MATCH ?", ('"lint',)).fetchall()


def test_a_question_without_words_finds_nothing_and_one_without_end_is_cut():
    ranking = of(["run lint"])

    assert ranking.best("… --", limit=5) == []
    assert ranking.best(" ".join(f"w{n}" for n in range(9_999)) + " lint", limit=5) == []


def test_scripts_without_spaces_are_found_by_characters_in_a_row():
    ranking = of(["本番環境の設定は別にある", "設備を定める"])

    assert [number for number, _ in ranking.best("設定", limit=5)] == [0]
    assert match_of("日本語test") == '"日 本 語" OR "test"'
