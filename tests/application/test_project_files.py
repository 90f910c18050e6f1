"""What a project's own file takes away holds for its sessions, whoever runs from wherever."""

import pytest

from tests.application.homes import MOSS, Session


@pytest.fixture
def project(tmp_path):
    root = tmp_path / "work" / "fern"
    (root / ".git").mkdir(parents=True)
    (root / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    return root


@pytest.fixture
def modes(home, project):
    """Thread -> mode after a run of one session in the project and one elsewhere."""

    def run(text, **given):
        (project / ".threadbook.toml").write_text(text)
        home.write(Session(number=1, cwd=str(project), **given), Session(number=2, cwd=MOSS))
        home.report = home.run()
        return {line.thread_id[9:13]: line.memory_mode for line in home.memory.threads()}

    return run


def test_a_project_that_wants_no_memory_has_none_and_the_others_have(home, modes):
    assert modes("generate_memories = false") == {"0001": "disabled", "0002": "enabled"}
    assert [row.thread_id[9:13] for row in home.outputs()] == ["0002"]


def test_a_project_may_keep_out_what_outside_text_has_touched(home, modes):
    text = "disable_on_external_context = true"

    assert modes(text, searched=True) == {"0001": "polluted", "0002": "enabled"}


def test_a_session_that_grew_by_outside_text_is_polluted_where_its_project_says_so(
    home, modes, project
):
    assert modes("")["0001"] == "enabled"
    home.later(3600)
    grown = Session(number=1, cwd=str(project), searched=True, ended_at=int(home.now) - 7 * 3600)

    (project / ".threadbook.toml").write_text("disable_on_external_context = true")
    home.write(grown)
    home.run()

    assert home.memory.explain(grown.id).selected is False
    assert {line.memory_mode for line in home.memory.threads()} == {"enabled", "polluted"}


def test_a_file_that_cannot_be_understood_keeps_its_projects_sessions_waiting(home, modes, project):
    assert modes("generate_memories = maybe") == {"0002": "enabled"}
    (told,) = home.report.unreadable
    assert str(project / ".threadbook.toml") in told

    assert modes("") == {"0001": "enabled", "0002": "enabled"}


def test_a_file_that_cannot_be_read_keeps_them_waiting_too(home, project):
    (project / ".threadbook.toml").mkdir()
    home.write(Session(number=1, cwd=str(project)), Session(number=2, cwd=MOSS))

    report = home.run()

    (told,) = report.unreadable
    assert f"{project / '.threadbook.toml'}: cannot be read" in told
    assert [line.thread_id[9:13] for line in home.memory.threads()] == ["0002"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("generate_memories = " + "1" * 5000, "characters"),
        (".".join("a" * 100_000) + " = 1", "characters"),  # Parsing it takes hours.
        ("x = " + "[" * 4000, "nested beyond reason"),
    ],
    ids=["number", "dots", "deep"],
)
def test_a_strangers_file_costs_a_run_no_time_and_no_traceback(home, modes, text, told):
    assert modes(text) == {"0002": "enabled"}

    assert [told in each for each in home.report.unreadable] == [True]


def test_a_run_in_a_project_reads_no_more_sources_than_its_file_leaves(home, project, tmp_path):
    home.write(Session(number=1), folder="near")
    home.write(Session(number=2), folder="far")
    home.reopened(sources=(str(home.sessions),))
    for text in ('sources = ["/nowhere"]', f'sources = ["{home.sessions}/near"]'):
        (project / ".threadbook.toml").write_text(text)
        home.memory.run(cwd=project)

    assert [line.thread_id[9:13] for line in home.memory.threads()] == ["0001"]

    home.memory.run(cwd=tmp_path)
    assert len(home.memory.threads()) == 2


def test_a_project_cannot_add_a_source(home, project, tmp_path):
    home.write(Session(number=1))
    home.reopened(sources=(str(tmp_path / "sessions" / "none"),))
    (tmp_path / "sessions" / "none").mkdir()
    (project / ".threadbook.toml").write_text(f'sources = ["{home.sessions}/../sessions"]')

    home.memory.run(cwd=project)

    assert home.memory.threads() == []
