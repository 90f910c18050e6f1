"""What leaves as a folder: all roots, one of them, or all of them joined as Codex has its own."""

import json
from datetime import datetime

import pytest
from threadbook.adapters.export import NothingThere
from threadbook.application.notes import add_note
from threadbook.domain.artifact import SUMMARY_BYTES_MAX, problems
from threadbook.projections.folder import inputs

from tests.application.homes import (
    FIXTURES,
    HALF_A_DAY_LATER,
    HOUR_S,
    MOSS,
    Home,
    Session,
    content,
)

CODEX = FIXTURES / "memory-base-v1"
REED = "/srv/reed"
FERN_S = Session(number=1)
MOSS_S = Session(number=2, cwd=MOSS, says=("please never use tabs here, always spaces",))
REED_S = Session(number=3, cwd=REED, says=("from now on write dates as the ISO does",))


@pytest.fixture
def home(tmp_path):
    home = Home(tmp_path)
    home.write(FERN_S, MOSS_S, REED_S)
    home.run()
    yield home
    home.memory.close()


def merged(home, tmp_path, name="out", **options):
    home.memory.export(tmp_path / name, merge=True, **options)
    return content(tmp_path / name)


def note(home, session, text, filename):
    around, scope = home.memory._around, home.scope_of(session)
    return add_note(around, scope, filename=filename, text=text, via="cli", actor="application")


def is_codexs(files):
    """Codex's own checks, and its layout: names, header lines, sections in order."""
    assert problems(files, grammar=False) == []
    summaries = {path for path in files if path.startswith("rollout_summaries/")}
    assert files.keys() - summaries - {"raw_memories.md", "MEMORY.md", "memory_summary.md"} == set()
    assert len(files["memory_summary.md"].encode()) <= SUMMARY_BYTES_MAX
    raw = files["raw_memories.md"]
    named = [line[len("rollout_summary_file: ") :] for line in raw.split("\n") if is_named(line)]
    assert {f"rollout_summaries/{name}" for name in named} == summaries
    for path in summaries:
        keys = [line.partition(": ")[0] for line in files[path].split("\n\n")[0].split("\n")]
        assert keys[:4] == ["thread_id", "updated_at", "rollout_path", "cwd"]
        assert set(keys[4:]) <= {"git_branch"}
        assert datetime.fromisoformat(files[path].split("\n")[1].partition(": ")[2]).tzinfo
    return True


def is_named(line):
    return line.startswith("rollout_summary_file: ")


def test_the_joined_folder_is_one_that_codex_reads_as_its_own(home, tmp_path):
    files = merged(home, tmp_path)

    assert is_codexs(files)
    assert problems(files) == []
    for each in (FERN_S, MOSS_S, REED_S):
        assert f"## Thread `{each.id}`" in files["raw_memories.md"]
    for words in ("make check", "always spaces", "as the ISO does"):
        assert words in files["MEMORY.md"]
        assert words in files["memory_summary.md"]


def test_what_codex_wrote_itself_leaves_with_its_bytes(tmp_path):
    home = Home(tmp_path, now=HALF_A_DAY_LATER)
    home.memory.import_folder(CODEX)
    home.run()
    assert len(home.roots()) == 2

    files = merged(home, tmp_path)

    assert is_codexs(files)
    for path, text in content(CODEX).items():
        if path == "raw_memories.md" or path.startswith("rollout_summaries/"):
            assert files[path] == text
    assert len(files) == 14 + 3
    home.memory.close()


def test_the_single_folder_of_a_home_is_what_codex_reads(tmp_path):
    home = Home(tmp_path, scope="global")
    home.write(FERN_S, MOSS_S)
    home.run()

    home.memory.export(tmp_path / "out")

    assert is_codexs(content(tmp_path / "out"))
    assert content(tmp_path / "out") == content(home.root())
    assert content(tmp_path / "out") == merged(home, tmp_path, "joined")
    home.memory.close()


def test_nothing_that_is_out_of_the_memory_is_in_the_joined_folder(home, tmp_path):
    home.memory.pollute(FERN_S.id, "web_search")
    home.memory.forget(MOSS_S.id)

    files = merged(home, tmp_path)

    told = "".join(files.values())
    assert is_codexs(files)
    assert "as the ISO does" in told
    for gone in ("make check", "always spaces", FERN_S.id, MOSS_S.id, "withheld"):
        assert gone not in told


def test_a_session_that_two_roots_hold_is_there_once(home, tmp_path):
    home.reopened(scope="global").later(HOUR_S).run()

    files = merged(home, tmp_path)

    assert files["raw_memories.md"].count("## Thread ") == 3
    assert len(home.memory.exportable()) == 4


def test_the_notes_of_all_are_beside_them(home, tmp_path):
    name = "2026-01-01T12-00-00-tea.md"
    note(home, FERN_S, "fern wants tea", name)
    note(home, MOSS_S, "moss wants milk", name)

    files = merged(home, tmp_path)

    notes = {path: text for path, text in files.items() if path.startswith("extensions/")}
    assert sorted(notes.values()) == ["fern wants tea", "moss wants milk"]
    assert notes[f"extensions/ad_hoc/notes/{name}"] in notes.values()


def test_one_scope_alone(home, tmp_path):
    fern = home.scope_of(FERN_S)

    written = home.memory.export(tmp_path / "out", scope=fern)

    assert written == {fern: tmp_path / "out"}
    assert content(tmp_path / "out") == content(home.root(fern))
    assert "always spaces" not in "".join(content(tmp_path / "out").values())


def test_a_scope_that_nobody_has_is_told_with_those_there_are(home, tmp_path):
    with pytest.raises(NothingThere, match=home.scope_of(FERN_S)):
        home.memory.export(tmp_path / "out", scope="project:heron")

    assert not (tmp_path / "out").exists()


def test_the_past_can_be_joined_too(home, tmp_path):
    then = home.position
    home.later(HOUR_S).memory.pollute(FERN_S.id, "web_search")

    before = merged(home, tmp_path, "then", at=then)

    assert "make check" in before["MEMORY.md"]
    assert "make check" not in merged(home, tmp_path, "now")["MEMORY.md"]


def test_joining_nothing_writes_nothing(tmp_path):
    home = Home(tmp_path)

    assert home.memory.export(tmp_path / "out", merge=True) == {}
    assert not (tmp_path / "out").exists()
    home.memory.close()


def test_joined_inputs_are_written_as_any_are(home, tmp_path):
    from threadbook.application.joining import union
    from threadbook.application.roots import Root

    files = merged(home, tmp_path)

    with home.memory.store.reading() as view:
        roots = [Root(memory_version="v1", scope=s) for s in home.memory.exportable()]
        expected = inputs(union(view, roots))
    assert {path: files[path] for path in expected} == expected
    assert json.dumps(sorted(expected)) == json.dumps(
        sorted(files.keys() - {"MEMORY.md", "memory_summary.md"})
    )
