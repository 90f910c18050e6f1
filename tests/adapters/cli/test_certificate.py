"""`threadbook forget thread ID --prove`: a page for people, an object for programs, an end code."""

from tests.adapters.cli.commands import A, B


def test_a_certificate_says_what_was_looked_for_and_where_and_what_nobody_can_see(commands):
    told = commands("forget", "thread", A.id, "--prove")

    assert told.code == 0
    assert "Proven: no file of this home holds its words." in told.out
    for each in ("looked for: the texts", "raw_memory 1", "looked in: ", "git objects"):
        assert each in told.out
    assert "What stays on purpose:" in told.out
    assert "What nobody can see from here:" in told.out
    assert "make check" not in told.out


def test_a_program_gets_the_certificate_as_an_object(commands):
    certificate = commands("forget", "thread", A.id, "--prove", "--json").json
    again = commands("forget", "thread", A.id, "--prove", "--json").json

    assert (certificate["verdict"], certificate["proven"]) == ("clean", True)
    assert certificate["report"]["bodies_erased"] > 0
    assert certificate["found"] == certificate["pending"] == []
    assert certificate["not_covered"]
    assert (again["verdict"], again["proven"]) == ("words_unknown", True)


def test_of_a_session_that_was_forgotten_before_it_says_what_cannot_be_told(commands):
    commands("forget", "thread", A.id)

    told = commands("forget", "thread", A.id, "--prove")

    assert told.code == 0
    assert "was already forgotten" in told.out
    assert "its words are known no longer" in told.out


def test_what_is_found_is_named_with_what_to_do_and_fails(commands):
    (commands.home.path / "leftover.txt").write_text(f"say {B.says[0]}")

    told = commands("forget", "thread", B.id, "--prove")

    assert told.code == 3
    assert "Not proven" in told.out
    assert "FOUND: leftover.txt, at byte 3: 53 bytes of its words" in told.out
    assert "what to do: " in told.out


def test_a_lift_is_nothing_to_prove(commands):
    told = commands("forget", "thread", A.id, "--lift", "--prove")

    assert told.code == 2
    assert "leave out --lift" in told.err
