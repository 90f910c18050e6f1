"""Claude Code's own memory comes in: each project's files, beside that project's memory alone."""

import json
import os
import shutil

import pytest
from hypothesis import given
from hypothesis import strategies as st
from threadbook.adapters.others import WrongOption, found
from threadbook.adapters.others.files import FILES_MAX
from threadbook.application.imported import FILE_BYTES_MAX, PROJECT_BYTES_MAX, is_key, is_portable
from threadbook.application.importing import InvalidKey
from threadbook.domain.events import ConsolidationRequested, NoteAdded, NoteRemoved
from threadbook.domain.path import names_of
from threadbook.domain.scope import place_key

from tests.application.homes import FERN, MOSS, NOON, Home, Session, content

RESOURCES = "extensions/external_agent_import/resources"
INSTRUCTIONS = "extensions/external_agent_import/instructions.md"


class Claude:
    """A home of Claude Code."""

    def __init__(self, folder):
        self.path = folder
        self.projects = folder / "projects"

    def project(self, key, *, cwd=None, sessions=None, **files):
        """Files are named with `__` for a slash, without their ending."""
        place = self.projects / key
        place.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            self.write(key, f"{name.replace('__', '/')}.md", text)
        told = sessions if sessions is not None else [cwd] if cwd else []
        for number, each in enumerate(told):
            self.session(key, f"{number}.jsonl", each, mtime=NOON + number)
        return place

    def write(self, key, path, text):
        file = self.projects / key / "memory" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def session(self, key, name, cwd, *, mtime):
        file = self.projects / key / name
        records = ["{half a line", "[1, 2]", json.dumps({"type": "summary"})]
        if cwd is not None:
            records.append(json.dumps({"type": "user", "cwd": cwd}))
        file.write_text("\n".join(records))
        os.utime(file, (mtime, mtime))


@pytest.fixture
def claude(tmp_path):
    return Claude(tmp_path / "claude")


@pytest.fixture
def home(tmp_path):
    home = Home(tmp_path)
    yield home
    home.memory.close()


def imported(home, claude, *keys, **options):
    return home.memory.import_folder(claude.path, projects=keys, **options)


def kept(home, cwd):
    """Path below `resources/` -> text, as a session in that folder may read it."""
    from threadbook.application import reading

    with home.memory.store.reading() as view:
        around = home.memory._around
        found = reading.open_reading(around, view, reading.scope_to_read(around, view, cwd))
        texts = reading.texts_of(found)
    return {
        path.removeprefix(f"{RESOURCES}/"): text
        for path, text in texts.items()
        if path.startswith(f"{RESOURCES}/") and not path.endswith("/scope.json")
    }


def by_key(report):
    return {each.key: each for each in report.projects}


def test_any_markdown_is_found_and_the_newest_session_says_where_the_project_lies(home, claude):
    claude.project("-fern", sessions=[MOSS, FERN], MEMORY="index\n", deep__er__topic="heron\n")
    claude.write("-fern", "UPPER.MD", "upper\n")
    claude.write("-fern", "notes.txt", "no markdown\n")

    report = imported(home, claude)

    assert kept(home, FERN) == {
        "-fern/MEMORY.md": "index\n",
        "-fern/UPPER.MD": "upper\n",
        "-fern/deep/er/topic.md": "heron\n",
    }
    assert kept(home, MOSS) == {}
    assert by_key(report)["-fern"].scope.startswith("project:fern-")
    assert {each.via for each in home.events(NoteAdded)} == {"import"}
    assert {each.actor for each in home.log(1)} == {"import"}


def test_a_name_decides_between_sessions_of_one_moment_and_relative_folders_say_nothing(
    home, claude
):
    claude.project("-fern", MEMORY="index\n")
    claude.session("-fern", "a.jsonl", MOSS, mtime=NOON)
    claude.session("-fern", "b.jsonl", FERN, mtime=NOON)
    claude.session("-fern", "c.jsonl", "relative", mtime=NOON + 1)

    imported(home, claude)

    assert kept(home, FERN)
    assert kept(home, MOSS) == {}


def test_no_file_needs_a_name_that_some_documentation_has(home, claude):
    claude.project("-fern", cwd=FERN, whatever="only this\n")

    imported(home, claude)

    assert kept(home, FERN) == {"-fern/whatever.md": "only this\n"}


def test_only_the_projects_that_are_named_come_in_and_what_changed_replaces_them_whole(
    home, claude
):
    claude.project("-fern", cwd=FERN, MEMORY="old\n", gone="gone\n", same="same\n")
    claude.project("-moss", cwd=MOSS, MEMORY="moss\n")
    imported(home, claude, "-fern")
    assert kept(home, MOSS) == {}
    claude.write("-fern", "MEMORY.md", "new\n")
    claude.write("-fern", "more.md", "more\n")
    (claude.projects / "-fern" / "memory" / "gone.md").unlink()

    done = by_key(imported(home, claude, "-fern"))["-fern"]

    assert kept(home, FERN) == {
        "-fern/MEMORY.md": "new\n",
        "-fern/more.md": "more\n",
        "-fern/same.md": "same\n",
    }
    assert (done.added, done.replaced, done.removed) == (["more.md"], ["MEMORY.md"], ["gone.md"])
    assert done.unchanged == 2  # same.md, and what scope.json says.
    removed = sorted(each.reason for each in home.events(NoteRemoved))
    assert removed == ["import_gone", "import_replaced"]


def test_what_is_as_it_was_is_no_event(home, claude):
    claude.project("-fern", cwd=FERN, MEMORY="index\n")
    imported(home, claude)
    before = home.position

    report = imported(home, claude)

    assert home.position == before
    assert report.projects[0].unchanged == 2


def test_a_project_that_fails_keeps_none_of_the_others_out(home, claude):
    claude.project("-fern", cwd=FERN, MEMORY="fern\n")
    claude.project("-nowhere", MEMORY="whose\n")
    claude.project("-home", cwd="/home/ann", MEMORY="home\n")

    report = imported(home, claude, "-nowhere", "-home", "-fern", "-never")

    found = by_key(report)
    assert kept(home, FERN) == {"-fern/MEMORY.md": "fern\n"}
    assert "no reliable cwd" in found["-nowhere"].failure
    assert "belongs to no project" in found["-home"].failure
    assert "there is no memory of -never" in found["-never"].failure
    assert found["-fern"].failure is None
    assert not report.all_failed


@pytest.mark.parametrize("key", ["/abs", "..", ".", "a/b", "", "a\\b", "c:", "~", "a\0b"])
def test_a_key_is_one_name(home, claude, key):
    claude.project("-fern", cwd=FERN, MEMORY="fern\n")

    with pytest.raises(InvalidKey):
        imported(home, claude, key)

    assert home.events(NoteAdded) == []


def test_links_are_passed_over_wherever_they_stand(home, claude, tmp_path):
    secret = tmp_path / "outside"
    secret.mkdir()
    (secret / "MEMORY.md").write_text("outside\n")
    claude.project("-fern", cwd=FERN, MEMORY="fern\n")
    memory = claude.projects / "-fern" / "memory"
    (memory / "link.md").symlink_to(secret / "MEMORY.md")
    (memory / "linked").symlink_to(secret)
    claude.project("-moss", cwd=MOSS)
    (claude.projects / "-moss" / "memory").symlink_to(secret)
    (claude.projects / "-linked").symlink_to(claude.projects / "-fern")
    (claude.projects / "-fern" / "z.jsonl").symlink_to(claude.projects / "-moss" / "0.jsonl")

    report = imported(home, claude)

    assert kept(home, FERN) == {"-fern/MEMORY.md": "fern\n"}
    assert kept(home, MOSS) == {}
    assert [each.key for each in report.projects] == ["-fern"]


@pytest.mark.parametrize(
    "at",
    [
        "extensions",
        "extensions/external_agent_import",
        INSTRUCTIONS,
        f"{RESOURCES}/-fern",
        f"{RESOURCES}/-fern/MEMORY.md",
        f"{RESOURCES}/-fern/scope.json",
    ],
)
def test_nothing_is_written_through_a_link_in_the_memory_folder(home, claude, tmp_path, at):
    home.write(Session(number=1))
    home.run()
    outside = tmp_path / "outside"
    outside.mkdir()
    target = outside / "file.md"
    target.write_text("mine\n")
    link = home.root() / at
    shutil.rmtree(link, ignore_errors=True)
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(target if link.suffix else outside)
    claude.project("-fern", cwd=FERN, MEMORY="fern\n")

    imported(home, claude)
    home.run()

    assert content(outside) == {"file.md": "mine\n"}
    assert not link.is_symlink()
    assert (home.root() / RESOURCES / "-fern" / "MEMORY.md").read_text() == "fern\n"


@pytest.mark.parametrize("rendered", [True, False])
def test_what_is_gone_there_goes_here_its_words_included(home, claude, rendered):
    if rendered:
        home.write(Session(number=1))
        home.run()
    claude.project("-fern", cwd=FERN, MEMORY="the heron nests in the reeds\n")
    claude.project("-moss", cwd=MOSS, MEMORY="moss\n")
    imported(home, claude)
    shutil.rmtree(claude.projects / "-fern")

    report = imported(home, claude)

    assert by_key(report)["-fern"].removed == ["MEMORY.md", "scope.json"]
    assert kept(home, FERN) == {}
    assert kept(home, MOSS) == {"-moss/MEMORY.md": "moss\n"}
    home.run()
    for file in (each for each in home.path.rglob("*") if each.is_file()):
        assert b"heron" not in file.read_bytes(), file


def test_what_another_home_of_claude_had_stays(home, claude, tmp_path):
    claude.project("-fern", cwd=FERN, MEMORY="fern\n")
    imported(home, claude)
    other = Claude(tmp_path / "other")
    other.project("-moss", cwd=MOSS, MEMORY="moss\n")

    report = imported(home, other)
    named = imported(home, other, "-fern")

    assert [each.key for each in report.projects] == ["-moss"]
    assert "from another folder" in named.projects[0].failure
    assert kept(home, FERN) == {"-fern/MEMORY.md": "fern\n"}


def test_a_project_that_was_renamed_moves_in_one_go(home, claude):
    claude.project("-old", cwd=FERN, MEMORY="fern\n")
    imported(home, claude)
    shutil.move(claude.projects / "-old", claude.projects / "-new")

    found = by_key(imported(home, claude))

    assert found["-old"].removed
    assert found["-new"].added
    assert kept(home, FERN) == {"-new/MEMORY.md": "fern\n"}


def test_a_project_that_moved_leaves_where_it_was(home, claude):
    claude.project("-fern", cwd=FERN, MEMORY="fern\n")
    imported(home, claude)
    claude.session("-fern", "9.jsonl", MOSS, mtime=NOON + 9)

    imported(home, claude)

    assert kept(home, FERN) == {}
    assert kept(home, MOSS) == {"-fern/MEMORY.md": "fern\n"}


def test_a_project_whose_sessions_are_gone_is_left_as_it_is(home, claude):
    claude.project("-fern", cwd=FERN, MEMORY="fern\n")
    imported(home, claude)
    (claude.projects / "-fern" / "0.jsonl").unlink()
    claude.write("-fern", "MEMORY.md", "newer\n")
    before = home.position

    report = imported(home, claude)

    assert home.position == before
    assert "what was imported before stays" in report.projects[0].failure
    assert report.all_failed
    assert kept(home, FERN) == {"-fern/MEMORY.md": "fern\n"}


def test_files_that_no_scope_stands_beside_go_when_nobody_knows_whose_they_are(home, claude):
    from threadbook.application.imported import keep
    from threadbook.domain.scope import project_of_place

    fern = project_of_place(place_key(FERN), machine_id=home.memory._around.machine_id)
    with home.memory.store.writing(actor="import") as tx:
        keep(tx, fern, f"{RESOURCES}/-fern/MEMORY.md", "whose\n", at=NOON)
    claude.project("-fern", MEMORY="fern\n")
    assert kept(home, FERN)

    report = imported(home, claude)

    assert report.projects[0].removed == ["MEMORY.md"]
    assert kept(home, FERN) == {}


def test_phase_2_is_asked_once_for_each_root_and_never_for_nothing(home, claude):
    for key, cwd in (("-fern", FERN), ("-fern-2", FERN), ("-moss", MOSS)):
        claude.project(key, cwd=cwd, MEMORY=f"{key}\n")

    imported(home, claude)
    asked = [each.scope for each in home.events(ConsolidationRequested)]
    imported(home, claude)

    assert sorted(asked) == sorted({each.scope for each in home.events(NoteAdded)})
    assert len(asked) == 2
    assert len(home.events(ConsolidationRequested)) == 2


def test_each_project_sees_its_own_and_no_session_is_given_them_unasked(home, claude):
    home.write(Session(number=1), Session(number=2, cwd=MOSS))
    home.run()
    claude.project("-fern", cwd=FERN, MEMORY="canary-fern\n")
    claude.project("-moss", cwd=MOSS, MEMORY="canary-moss\n")

    imported(home, claude)

    for cwd, own, other in ((FERN, "fern", "moss"), (MOSS, "moss", "fern")):
        found = home.memory.search([f"canary-{own}"], cwd=cwd)
        assert [each.path for each in found.matches] == [f"{RESOURCES}/-{own}/MEMORY.md"]
        assert home.memory.search([f"canary-{other}"], cwd=cwd).matches == []
        assert "canary" not in home.memory.context(cwd).text
        folder = content(home.root(home.scope_of(Session(number=1 if own == "fern" else 2))))
        assert f"canary-{own}" in folder[f"{RESOURCES}/-{own}/MEMORY.md"]
        assert "scope.json" in folder[INSTRUCTIONS]
        assert not any(f"canary-{other}" in text for text in folder.values())


def test_the_folder_and_the_log_agree_and_a_second_run_has_nothing_to_do(home, claude):
    home.write(Session(number=1))
    home.run()
    claude.project("-fern", cwd=FERN, MEMORY="fern\n")
    imported(home, claude)
    claude.write("-fern", "MEMORY.md", "newer\n")
    imported(home, claude)

    home.run()
    before = home.position
    home.run()

    assert home.position == before
    assert home.memory.replay_verify() == []
    assert (home.root() / RESOURCES / "-fern" / "MEMORY.md").read_text() == "newer\n"
    causes = {each.cause for each in home.events(ConsolidationRequested)}
    assert "import" in causes


def test_while_a_run_holds_the_folder_readers_see_the_import_and_the_next_run_writes_it(
    home, claude
):
    home.write(Session(number=1))
    home.run()
    claude.project("-fern", cwd=FERN, MEMORY="old\n")
    imported(home, claude)
    claude.write("-fern", "MEMORY.md", "new\n")
    around = home.memory._around
    (scope,) = {each.scope for each in home.events(NoteAdded)}

    with around.workspace("v1", scope).lock():
        report = imported(home, claude)

    assert len(report.waiting) == 1
    assert kept(home, FERN) == {"-fern/MEMORY.md": "new\n"}
    home.run()
    assert (home.root() / RESOURCES / "-fern" / "MEMORY.md").read_text() == "new\n"


def test_what_cannot_be_kept_is_told_and_keeps_nothing_else_out(home, claude):
    claude.project("-fern", cwd=FERN, MEMORY="fern\n", Memory="twin\n", empty=" \n")
    claude.write("-fern", "con.md", "a device\n")
    claude.write("-fern", "long.md", "x" * (FILE_BYTES_MAX + 1))
    claude.write("-fern", "ghp_16C7e42F292c6912E7710c838347Ae178B4a.md", "a secret name\n")
    claude.write("-fern", "latin.md", "x").write_bytes(b"\xe4\n")
    claude.write("-fern", "nul.md", "a\0b")
    os.mkfifo(claude.projects / "-fern" / "memory" / "pipe.md")

    report = imported(home, claude)

    assert kept(home, FERN) == {"-fern/MEMORY.md": "fern\n"}
    told = {each.what.removeprefix("-fern/"): each.why for each in report.left_out}
    assert "another file has its name" in told["Memory.md"]
    assert "empty" in told["empty.md"]
    assert "everywhere" in told["con.md"]
    assert "everywhere" in told["ghp_16C7e42F292c6912E7710c838347Ae178B4a.md"]
    assert str(FILE_BYTES_MAX) in told["long.md"]
    assert "UTF-8" in told["latin.md"]
    assert "no text" in told["nul.md"]
    assert "pipe.md" not in told


def test_where_a_folder_is_deeper_or_fuller_than_is_read_that_is_told(claude):
    claude.project("-deep", cwd=FERN, MEMORY="deep\n")
    claude.write("-deep", "/".join([*"abcdefghijklm", "lost.md"]), "lost\n")
    claude.project("-full", cwd=FERN)
    for number in range(FILES_MAX + 2):
        claude.write("-full", f"{number:05}.md", "x")

    deep, full = found(claude.path).projects

    assert deep.files == {"MEMORY.md": "deep\n"}
    assert [each.what for each in deep.left_out] == ["memory/a/b/c/d/e/f/g/h/i/j/k/l/m"]
    assert len(full.files) == FILES_MAX
    assert [each.what for each in full.left_out] == [f"memory/{FILES_MAX:05}.md"]


def test_a_project_brings_no_more_than_so_many_bytes_and_what_is_too_much_is_told(home, claude):
    most = PROJECT_BYTES_MAX // FILE_BYTES_MAX
    claude.project("-fern", cwd=FERN)
    for number in range(most + 1):
        claude.write("-fern", f"{number:03}.md", "word \n" * (FILE_BYTES_MAX // 6) + "x\n")

    report = imported(home, claude)

    [told] = report.left_out
    assert (told.what, len(report.projects[0].added)) == (f"-fern/{most:03}.md", most + 1)
    assert str(PROJECT_BYTES_MAX) in told.why


def test_secrets_in_files_are_hidden(home, claude):
    claude.project("-fern", cwd=FERN, MEMORY="use ghp_16C7e42F292c6912E7710c838347Ae178B4a\n")

    report = imported(home, claude)

    assert report.secrets_hidden == 1
    assert kept(home, FERN) == {"-fern/MEMORY.md": "use [REDACTED_SECRET]\n"}
    before = home.position
    imported(home, claude)
    assert home.position == before


def test_a_dry_run_tells_and_changes_nothing(home, claude):
    claude.project("-fern", cwd=FERN, MEMORY="fern\n")
    claude.project("-nowhere", MEMORY="whose\n")
    before = home.position

    report = imported(home, claude, dry_run=True)

    assert home.position == before
    assert by_key(report)["-fern"].added == ["MEMORY.md", "scope.json"]
    assert by_key(report)["-nowhere"].failure
    assert kept(home, FERN) == {}


def test_a_project_that_wants_no_memory_gets_none(home, claude, tmp_path):
    quiet = tmp_path / "quiet"
    quiet.mkdir()
    (quiet / ".threadbook.toml").write_text("generate_memories = false\n")
    claude.project("-quiet", cwd=str(quiet), MEMORY="quiet\n")

    report = imported(home, claude)

    assert "generate_memories is false" in report.projects[0].failure
    assert home.events(NoteAdded) == []


def test_the_single_folder_has_every_project_s_files(tmp_path, claude):
    home = Home(tmp_path, scope="global")
    home.write(Session(number=1))
    home.run()
    claude.project("-fern", cwd=FERN, MEMORY="fern\n")
    claude.project("-moss", cwd=MOSS, MEMORY="moss\n")
    claude.project("-home", cwd="/home/ann", MEMORY="home\n")

    imported(home, claude)

    files = content(home.root())
    assert {files[f"{RESOURCES}/{key}/MEMORY.md"] for key in ("-fern", "-moss", "-home")} == {
        "fern\n",
        "moss\n",
        "home\n",
    }
    assert [path for path in files if "instructions" in path] == [INSTRUCTIONS]
    home.memory.close()


def test_a_home_and_its_projects_folder_are_the_same(claude):
    claude.project("-fern", cwd=FERN, MEMORY="fern\n")

    assert found(claude.path) == found(claude.projects)


def test_one_folder_for_all_projects_is_told_and_not_followed(home, claude, tmp_path):
    (tmp_path / "all").mkdir()
    (tmp_path / "all" / "MEMORY.md").write_text("everybody's\n")
    claude.project("-fern", cwd=FERN, MEMORY="fern\n")
    settings = {"autoMemoryDirectory": str(tmp_path / "all")}
    (claude.path / "settings.json").write_text(json.dumps(settings))

    report = imported(home, claude)

    assert [each.what for each in report.left_out] == [str(tmp_path / "all")]
    assert kept(home, FERN) == {"-fern/MEMORY.md": "fern\n"}
    for broken in ("{", "[1]", '{"autoMemoryDirectory": 3}', "[" * 100_000):
        (claude.path / "settings.json").write_text(broken)
        assert imported(home, claude).left_out == []


def test_a_folder_of_ours_brings_along_what_it_had_imported(home, claude, tmp_path):
    claude.project("-fern", cwd=FERN, MEMORY="fern\n", deep__topic="heron\n")
    home.write(Session(number=1))
    home.run()
    imported(home, claude)
    home.memory.export(tmp_path / "out")
    (tmp_path / "two").mkdir()
    other = Home(tmp_path / "two")

    report = other.memory.import_folder(tmp_path / "out")
    other.run()

    assert report.imported == [Session(number=1).id]
    assert kept(home, FERN).items() <= kept(other, FERN).items()
    assert "-fern" in by_key(report)
    before = other.position
    other.memory.import_folder(tmp_path / "out")
    assert other.position == before
    other.memory.export(tmp_path / "again")
    assert (tmp_path / "again" / RESOURCES / "-fern").is_dir()
    assert len(list((tmp_path / "again" / RESOURCES).glob("codex*"))) == 1
    again = other.memory.import_folder(tmp_path / "again", dry_run=True)
    assert {each.failure for each in again.projects} == {None}
    other.memory.close()


def test_scope_is_no_option_for_it(home, claude):
    claude.project("-fern", cwd=FERN, MEMORY="fern\n")

    with pytest.raises(WrongOption, match="--scope"):
        imported(home, claude, scope="project:fern")


NAMES = st.text(
    st.sampled_from("aZ-_.~ :\\\0\n\u200b\u202eéßcon1gitGIT`*?|<>\"'"), min_size=0, max_size=12
) | st.sampled_from(
    ["con", "CON.md", "nul", "com1", ".git", "git~1", "a.", "a ", "x" * 200, "é" * 101]
)


@given(st.lists(NAMES, min_size=1, max_size=4).map("/".join))
def test_every_path_that_is_taken_is_one_that_a_folder_takes(path):
    if is_portable(path):
        assert names_of(path)
    assert not is_key(path) or "/" not in path
