"""Notes: kept once, without secrets, in the log and in the folder, and gone when they go."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from threadbook.application import notes, reading
from threadbook.application.notes import BYTES_MAX, add_note, is_filename, named, remove_note
from threadbook.application.surroundings import FolderUnusable
from threadbook.domain.events import NoteAdded, NoteRemoved
from threadbook.domain.refusals import Refused
from threadbook.domain.scope import folder_name

from tests.adapters.test_places import CONFIG, repository
from tests.application.homes import FERN, MOSS, Home, Session, bytes_of

NAME = "2026-01-01T12-00-00-use-uv.md"
PATH = f"extensions/ad_hoc/notes/{NAME}"
SCOPE = "project:fern-0badcafe"


@pytest.fixture
def home(tmp_path):
    home = Home(tmp_path)
    home.write(Session(number=1))
    home.run()
    yield home
    home.memory.close()


def scope_of(home, cwd=FERN):
    with home.memory.store.reading() as view:
        return reading.scope_to_read(home.memory._around, view, cwd)


def add(home, text, *, filename=None, cwd=FERN):
    scope = scope_of(home, cwd)
    around = home.memory._around
    return add_note(around, scope, filename=filename, text=text, via="cli", actor="application")


def read(home, cwd=FERN):
    with home.memory.store.reading() as view:
        around = home.memory._around
        found = reading.open_reading(around, view, reading.scope_to_read(around, view, cwd))
    folder = "extensions/ad_hoc/notes"
    return {each.path: found.text(each.path) for each in found.entries(folder)}


def test_a_note_is_in_the_folder_at_once_and_the_next_run_keeps_it(home):
    receipt = add(home, "use uv, not pip\n", filename=NAME)

    assert receipt.path == PATH
    assert receipt.added
    assert receipt.in_folder
    file = home.root() / PATH
    assert file.read_text() == "use uv, not pip\n"
    assert file.stat().st_mode & 0o777 == 0o600
    home.run()
    assert file.read_text() == "use uv, not pip\n"
    assert read(home) == {PATH: "use uv, not pip\n"}
    assert home.memory.replay_verify() == []
    before = home.position
    home.run()
    assert home.position == before


def test_a_note_before_any_session_waits_in_the_log_for_the_folder(tmp_path):
    home = Home(tmp_path)

    assert not add(home, "use uv", filename=NAME).in_folder
    assert read(home) == {PATH: "use uv"}

    home.write(Session(number=1))
    home.run()
    assert (home.root() / PATH).read_text() == "use uv"
    home.memory.close()


def test_while_somebody_holds_the_folder_the_note_is_read_from_the_log(home):
    scope = scope_of(home)
    workspace = home.memory._around.workspace("v1", scope)

    with workspace.lock():
        assert not add(home, "use uv", filename=NAME).in_folder
        assert not (home.root() / PATH).exists()
        assert read(home) == {PATH: "use uv"}

    home.run()
    assert (home.root() / PATH).read_text() == "use uv"


def test_the_same_text_is_one_note_however_it_is_called(home):
    first = add(home, "use uv", filename=NAME)
    before = home.position

    again = add(home, "  use uv\n")

    assert (again.added, again.path) == (False, first.path)
    assert home.position == before
    assert add(home, "use uv", cwd=MOSS).added


def test_another_text_needs_another_name_also_where_only_the_folder_has_it(home):
    add(home, "use uv", filename=NAME)
    (home.root() / PATH.replace("uv", "mine")).write_text("a person's own")

    for name in (NAME, NAME.replace("uv", "mine")):
        with pytest.raises(notes.NoteExists, match="another filename"):
            add(home, "use pip", filename=name)


def test_no_secret_is_kept_and_a_note_has_a_most(home):
    token = "ghp_" + "a1B2" * 9

    receipt = add(home, f"the token is {token}\r\nuse it", filename=NAME)

    assert receipt.secrets_hidden == 1
    assert read(home) == {PATH: "the token is [REDACTED_SECRET]\nuse it"}
    assert not any(token.encode() in each for each in bytes_of(home.path).values())
    add(home, "ab" * (BYTES_MAX // 2))
    with pytest.raises(notes.NoteTooLong, match="16385 bytes"):
        add(home, "ab" * (BYTES_MAX // 2) + "c")


@pytest.mark.parametrize("text", ["", " \n\t", "\r\n"])
def test_an_empty_note_is_refused(home, text):
    with pytest.raises(notes.EmptyNote):
        add(home, text)


@pytest.mark.parametrize("text", ["a\0b", "a\ud800"])
def test_what_is_no_text_is_refused(home, text):
    with pytest.raises(notes.NoteNotText):
        add(home, text)


@pytest.mark.parametrize(
    ("filename", "fits"),
    [
        ("2026-99-99T99-99-99-a.md", True),
        ("2026-01-01T00-00-00--.md", True),
        (f"2026-01-01T00-00-00-{'a' * 80}.md", True),
        (f"2026-01-01T00-00-00-{'a' * 81}.md", False),
        ("2026-01-01T00-00-00-.md", False),
        ("2026-01-01T00-00-00.md", False),
        ("2026-01-01T00-00-00-A.md", False),
        ("2026-01-01T00-00-00-a.txt", False),
        ("2026-01-01T00-00-00-a.md\n", False),
        ("2026-01-01 00-00-00-a.md", False),
        ("२०२६-01-01T00-00-00-a.md", False),
        ("../2026-01-01T00-00-00-a.md", False),
        ("2026-01-01T00-00-00-a/b.md", False),
        ("notes/2026-01-01T00-00-00-a.md", False),
        ("", False),
    ],
)
def test_a_filename_is_a_time_and_words_and_nothing_else(home, filename, fits):
    assert is_filename(filename) == fits
    if not fits:
        with pytest.raises(notes.InvalidFilename, match="YYYY-MM-DDTHH-MM-SS"):
            add(home, "x", filename=filename)


@given(st.text(), st.integers(0, 4_000_000_000))
def test_a_name_that_is_made_fits_and_is_free(text, now):
    first = named(text, set(), now=now)

    second = named(text, {first}, now=now)

    assert is_filename(first)
    assert is_filename(second)
    assert first != second


def test_a_note_that_is_removed_is_gone_from_the_log_the_folder_and_its_baseline(home):
    add(home, "the lighthouse hums at night", filename=NAME)
    home.run()
    around = home.memory._around

    remove_note(around, scope_of(home), NAME, reason="asked", actor="application")

    assert read(home) == {}
    assert not (home.root() / PATH).exists()
    assert not any(b"lighthouse" in each for each in bytes_of(home.path).values())
    assert [each.reason for each in home.events(NoteRemoved)] == ["asked"]
    assert home.memory.replay_verify() == []
    with pytest.raises(notes.NoSuchNote, match="threadbook list"):
        remove_note(around, scope_of(home), NAME, reason="asked", actor="application")


def test_a_note_goes_from_a_folder_that_no_run_has_written_yet_too(tmp_path):
    home = Home(tmp_path)
    (home.path / "memories" / "v1" / folder_name(scope_of(home))).mkdir(parents=True)
    assert add(home, "use uv, not pip", filename=NAME).in_folder
    [file] = home.path.glob(f"memories/v1/*/{PATH}")

    remove_note(home.memory._around, scope_of(home), NAME, reason="asked", actor="application")

    assert not file.exists()
    assert read(home) == {}


def test_a_note_written_or_changed_with_an_editor_is_recorded_by_the_next_run(home):
    token = "ghp_" + "a1B2" * 9
    folder = home.root() / "extensions" / "ad_hoc" / "notes"
    folder.mkdir(parents=True)
    (folder / "any-name.md").write_text(f"use uv, token {token}")

    home.run()

    assert home.events(NoteAdded)[-1].via == "file"
    assert (folder / "any-name.md").read_text() == "use uv, token [REDACTED_SECRET]"
    (folder / "any-name.md").write_text("use pip after all")
    home.run()
    with home.memory.store.reading() as view:
        root = reading.Root(memory_version="v1", scope=scope_of(home))
        kept = notes.notes_of(view, root)
    assert [note.text for note in kept.values()] == ["use pip after all"]
    assert not list(home.root().with_name(f"{home.root().name}.edits").glob("*"))
    before = home.position
    home.run()
    assert home.position == before


def test_what_cannot_be_a_note_stays_its_authors_file(home):
    folder = home.root() / "extensions" / "ad_hoc" / "notes"
    folder.mkdir(parents=True)
    (folder / "long.md").write_text("ab" * BYTES_MAX)
    (folder / "bytes.md").write_bytes(b"\xff\xfe")

    home.run()

    assert home.events(NoteAdded) == []
    assert len((folder / "long.md").read_text()) == 2 * BYTES_MAX
    assert (folder / "bytes.md").read_bytes() == b"\xff\xfe"


def test_forgetting_a_session_keeps_the_notes(home):
    add(home, "use uv", filename=NAME)
    home.run()

    home.memory.forget(Session(number=1).id)

    assert (home.root() / PATH).read_text() == "use uv"
    assert read(home) == {PATH: "use uv"}


def test_a_note_for_nobody_is_refused(home):
    with pytest.raises(Refused, match="no project"):
        add_note(home.memory._around, "quarantine:x", text="use uv", via="cli", actor="application")


def test_codexs_single_folder_has_the_notes_of_every_project(tmp_path):
    home = Home(tmp_path)
    for cwd in (FERN, MOSS):
        add(home, f"of {cwd}", filename=NAME, cwd=cwd)
    home.reopened(scope="global")

    found = read(home)

    assert sorted(found.values()) == [f"of {FERN}", f"of {MOSS}"]
    assert PATH in found
    home.memory.close()


def test_a_note_goes_with_its_project_when_that_is_given_a_remote(tmp_path):
    bare = "[core]\n\tbare = false\n"
    project = repository(tmp_path / "fern", bare)
    home = Home(tmp_path)
    home.write(Session(number=1, cwd=str(project)))
    home.run()
    add(home, "use uv", filename=NAME, cwd=str(project))
    before = scope_of(home, str(project))
    home.run()

    (project / ".git" / "config").write_text(CONFIG)
    home.write(Session(number=2, cwd=str(project)))
    home.run()

    assert scope_of(home, str(project)) != before
    assert read(home, str(project)) == {PATH: "use uv"}
    assert not (home.root(before) / PATH).exists()
    assert (home.root(scope_of(home, str(project))) / PATH).read_text() == "use uv"
    assert len(home.events(NoteRemoved)) == 0
    assert [each.via for each in home.events(NoteAdded)] == ["cli", "cli"]
    home.memory.close()


def test_a_note_that_cannot_be_taken_out_of_the_folder_is_not_half_gone(home):
    add(home, "use uv", filename=NAME)
    around = home.memory._around
    impatient = replace(around, workspace=lambda *which: Impatient(around.workspace(*which)))

    with around.workspace("v1", scope_of(home)).lock(), pytest.raises(FolderUnusable):
        remove_note(impatient, scope_of(home), NAME, reason="asked", actor="application")

    assert read(home) == {PATH: "use uv"}


class Impatient:
    """A folder for whose lock nobody waits."""

    def __init__(self, real):
        self.real = real

    def __getattr__(self, name):
        return getattr(self.real, name)

    def lock(self, **given):
        return self.real.lock(**{**given, "wait_s": 0})


def test_a_note_taken_back_while_this_folder_was_away_is_not_adopted_from_it(home):
    add(home, "use uv", filename=NAME)
    home.run()
    root = home.root()
    root.rename(root.with_name("away"))
    remove_note(home.memory._around, scope_of(home), NAME, reason="asked", actor="application")
    root.with_name("away").rename(root)

    home.run()

    assert read(home) == {}
    assert not (root / PATH).exists()
    assert len(home.events(NoteAdded)) == 1
