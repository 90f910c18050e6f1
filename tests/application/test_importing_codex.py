"""A Codex memories folder comes in: every session of it, as a thread of ours with an output."""

import json
import shutil

import pytest
from threadbook.adapters.others import UnknownFolder, WrongOption, found
from threadbook.application.importing import READER
from threadbook.domain.events import (
    NoteAdded,
    NoteRemoved,
    Stage1LeaseClaimed,
    Stage1Succeeded,
    ThreadRegistered,
)
from threadbook.domain.refusals import Refused

from tests.application.homes import (
    DAY_S,
    FERN,
    FIXTURES,
    HALF_A_DAY_LATER,
    HOUR_S,
    MOSS,
    Home,
    Session,
    Telling,
    content,
)

CODEX = FIXTURES / "memory-base-v1"
RESOURCES = "extensions/external_agent_import/resources"


@pytest.fixture
def home(tmp_path):
    yield from opened(tmp_path)


@pytest.fixture
def single(tmp_path):
    """Of one folder for all, as Codex has it."""
    yield from opened(tmp_path, scope="global")


def opened(folder, **settings):
    home = Home(folder, now=HALF_A_DAY_LATER, **settings)
    yield home
    home.memory.close()


def inputs_of(folder):
    return {
        path: text
        for path, text in content(folder).items()
        if path == "raw_memories.md" or path.startswith("rollout_summaries/")
    }


def exported(home, folder, **options):
    home.memory.export(folder, **options)
    return folder


def taught(tmp_path, *sessions, name="old", **settings):
    """The folder of a home that has read these sessions, and its home."""
    (tmp_path / name).mkdir()
    old = Home(tmp_path / name, now=HALF_A_DAY_LATER, **settings)
    old.write(*sessions)
    old.run()
    return old


def session(number, **more):
    return Session(number=number, ended_at=HALF_A_DAY_LATER - DAY_S, **more)


def copied(tmp_path, name="codex"):
    return shutil.copytree(CODEX, tmp_path / name)


def test_a_real_codex_folder_comes_in_with_every_thread_and_leaves_its_bytes(single):
    report = single.memory.import_folder(CODEX)
    single.run()

    known = json.loads((FIXTURES / "memory-base-v1.stage1_outputs.json").read_text())
    assert sorted(report.imported) == sorted(row["thread_id"] for row in known)
    assert (report.left, report.left_out) == ({}, [])
    assert len(report.imported) == 14
    assert inputs_of(single.root()) == inputs_of(CODEX)
    assert single.selected() == set(report.imported)
    assert single.memory.replay_verify() == []


def test_what_is_exported_comes_back_byte_for_byte(tmp_path, single):
    branch = session(2, cwd=MOSS, repository_url="https://example.org/moss.git")
    old = taught(tmp_path, session(1), branch, session(3, cwd=None), scope="global")
    folder = exported(old, tmp_path / "out")
    old.memory.close()

    report = single.memory.import_folder(folder)
    single.run()

    assert len(report.imported) == 3
    assert inputs_of(single.root()) == inputs_of(folder)
    assert content(single.root())["MEMORY.md"] == content(folder)["MEMORY.md"]


@pytest.mark.usefixtures("database")
def test_on_both_databases_it_comes_in_is_rehearsed_and_is_erased(single):
    before = single.position
    single.memory.import_folder(CODEX, dry_run=True)
    assert single.position == before
    first = single.memory.import_folder(CODEX).imported[0]
    single.run()
    assert inputs_of(single.root()) == inputs_of(CODEX)

    single.memory.forget(first)

    assert first not in "".join(content(single.root()).values())
    assert single.memory.replay_verify() == []


def test_an_import_is_a_history_like_any_other(home):
    report = home.memory.import_folder(CODEX)

    thread_id = report.imported[0]
    (registered,) = (e for e in home.events(ThreadRegistered) if e.thread_id == thread_id)
    (claimed,) = (e for e in home.events(Stage1LeaseClaimed) if e.thread_id == thread_id)
    (done,) = (e for e in home.events(Stage1Succeeded) if e.thread_id == thread_id)
    assert (registered.kind, registered.tool, registered.mode) == (
        "interactive",
        "codex",
        "enabled",
    )
    assert registered.machine_id is None
    assert done.ownership_token == claimed.ownership_token
    assert (done.extractor, done.counts_from) == (READER, int(home.now))
    assert {each.actor for each in home.log(1)} == {"import"}
    assert home.memory.verify().ok


@pytest.mark.parametrize("place", ["/home/ann/.claude/projects", r"C:\Users\ann\.claude\projects"])
def test_where_a_transcript_lies_says_whose_it_is(tmp_path, home, place):
    folder = copied(tmp_path)
    for path in folder.rglob("*.md"):
        path.write_text(
            path.read_text().replace("/home/dev/codex/scen/base-v1/home/sessions", place)
        )

    home.memory.import_folder(folder)

    assert {each.tool for each in home.events(ThreadRegistered)} == {"claude"}
    assert len(home.events(ThreadRegistered)) == 14


def test_an_imported_thread_is_explained_cited_polluted_and_forgotten(home):
    first, second, *_ = home.memory.import_folder(CODEX).imported
    home.run()

    assert home.memory.explain(first).verdict.startswith("in: ")
    home.memory.pollute(first, "web_search")
    home.memory.forget(second)
    home.run()
    assert not home.selected() & {first, second}
    assert len(home.selected()) == 12
    told = "".join("".join(content(root).values()) for root in home.roots())
    assert first not in told
    assert second not in told


def test_each_project_of_the_folder_gets_its_own(tmp_path, home):
    old = taught(tmp_path, session(1), session(2, cwd=MOSS), scope="global")
    folder = exported(old, tmp_path / "out")
    old.memory.close()

    report = home.memory.import_folder(folder)
    home.run()

    fern, moss = home.scope_of(session(1)), home.scope_of(session(2))
    assert fern != moss
    assert home.root(fern).is_dir()
    assert home.root(moss).is_dir()
    assert session(2).id not in "".join(content(home.root(fern)).values())
    assert {each.what for each in report.left_out} == {"MEMORY.md", "memory_summary.md"}
    assert all("2 projects at once; --scope" in each.why for each in report.left_out)


def test_a_session_without_a_place_waits_in_quarantine(tmp_path, home):
    old = taught(tmp_path, session(1, cwd=None), scope="global")
    folder = exported(old, tmp_path / "out")
    old.memory.close()

    report = home.memory.import_folder(folder)

    assert report.imported == [session(1).id]
    assert home.scope_of(session(1)) == f"quarantine:{session(1).id}"
    assert home.roots() == []
    assert report.scopes == []


def test_importing_twice_changes_nothing(home):
    home.memory.import_folder(CODEX)
    before = home.position

    again = home.memory.import_folder(CODEX)

    assert home.position == before
    assert again.imported == []
    assert len(again.left["known"]) == 14


def test_what_is_known_as_well_or_better_stays(tmp_path, single):
    single.write(session(1))
    single.run()
    before = content(single.root())
    old = taught(tmp_path, session(1, says=("from now on never use tabs",)), scope="global")
    folder = exported(old, tmp_path / "out")
    old.memory.close()

    report = single.memory.import_folder(folder)
    single.run()

    assert report.left == {"known": [session(1).id]}
    files = content(single.root())
    assert {path: files[path] for path in before} == before


def test_a_session_that_taught_us_nothing_brings_what_a_model_made_of_it(tmp_path, single):
    single.write(session(1, says=("add a button",)), session(2))
    single.run()
    nothing = single.memory.explain(session(1).id)
    old = taught(tmp_path, session(1), session(2), scope="global")
    folder = exported(old, tmp_path / "out")
    old.memory.close()

    report = single.memory.import_folder(folder)
    again = single.memory.import_folder(folder)
    single.run()

    assert not nothing.selected
    assert report.imported == [session(1).id]
    assert report.left == {"known": [session(2).id]}
    assert again.imported == []
    assert single.memory.explain(session(1).id).selected
    assert "make check" in content(single.root())["MEMORY.md"]


def test_a_newer_reading_replaces_an_older_one(tmp_path, single):
    single.write(session(1))
    single.run()
    newer = Session(
        number=1, says=("from now on never use tabs",), ended_at=int(single.now) - 8 * HOUR_S
    )
    old = taught(tmp_path, newer, scope="global")
    folder = exported(old, tmp_path / "out")
    old.memory.close()

    report = single.memory.import_folder(folder)
    single.run(sessions=[tmp_path / "out"])

    assert report.imported == [newer.id]
    assert "never use tabs" in content(single.root())["MEMORY.md"]
    assert "make check" not in content(single.root())["raw_memories.md"]


def test_the_transcript_itself_is_read_only_when_it_has_gone_on(tmp_path, single):
    old = taught(tmp_path, session(1), scope="global")
    folder = exported(old, tmp_path / "out")
    old.memory.close()
    single.memory.import_folder(folder)
    single.write(session(1))

    assert single.run().stage1.claimed == 0
    (thread,) = (line for line in single.memory.threads())
    assert thread.thread_id == session(1).id
    later = Session(
        number=1, says=("always use spaces from now on",), ended_at=int(single.now) - 7 * HOUR_S
    )
    single.write(later)

    assert single.run().stage1.succeeded == 1
    (output,) = single.outputs()
    assert output.extractor == "offline"


def test_a_model_does_not_read_again_what_a_model_has_read(tmp_path, single):
    class Model(Telling):
        name = "gpt-6-luna"

    old = taught(tmp_path, session(1), scope="global")
    folder = exported(old, tmp_path / "out")
    old.memory.close()
    single.memory.import_folder(folder)
    single.write(session(1))

    assert single.run_with(extractor=Model()).stage1.claimed == 0
    assert single.run(again=True).stage1.succeeded == 1


def test_a_forgotten_thread_stays_out_and_so_does_what_was_made_from_it(tmp_path, single):
    old = taught(
        tmp_path, session(1), session(2, says=("please always keep it dry",)), scope="global"
    )
    folder = exported(old, tmp_path / "out")
    old.memory.close()
    single.memory.forget(session(1).id)

    rehearsed = single.memory.import_folder(folder, dry_run=True)
    report = single.memory.import_folder(folder)
    single.run()

    assert rehearsed.left_out == report.left_out
    assert report.left == {"forgotten": [session(1).id]}
    assert report.imported == [session(2).id]
    assert "make check" not in "".join(content(single.root()).values())
    assert {each.what for each in report.left_out} == {"MEMORY.md", "memory_summary.md"}


@pytest.mark.parametrize("rendered", [True, False])
def test_forgetting_takes_an_imported_handbook_that_was_made_from_the_thread(
    tmp_path, single, rendered
):
    old = taught(
        tmp_path, session(1), session(2, says=("please always keep it dry",)), scope="global"
    )
    folder = exported(old, tmp_path / "out")
    old.memory.close()
    if rendered:
        single.write(session(3, says=("never push to main please, from now on",)))
        single.run()
    single.memory.import_folder(folder)
    if rendered:
        assert f"{RESOURCES}/codex/MEMORY.md" in content(single.root())

    certificate = single.memory.forget(session(1).id, prove=True)

    assert certificate.proven, (certificate.verdict, certificate.found)
    single.run()
    assert not any(path.startswith(RESOURCES) for path in content(single.root()))
    assert "make check" not in "".join(content(single.root()).values())
    assert "keep it dry" in content(single.root())["MEMORY.md"]


def test_a_handbook_is_read_only_while_each_session_behind_it_may_be(tmp_path, single):
    old = taught(tmp_path, session(1), scope="global")
    folder = exported(old, tmp_path / "out")
    old.memory.close()
    single.memory.import_folder(folder)
    single.run()
    kept = f"{RESOURCES}/codex/MEMORY.md"
    assert "make check" in single.memory.read(kept, cwd=FERN).content

    single.memory.pollute(session(1).id, "web_search")

    with pytest.raises(Refused, match="does not exist"):
        single.memory.read(kept, cwd=FERN)
    single.run()
    assert kept not in content(single.root())
    single.memory.set_mode(session(1).id, "enabled")
    single.run()
    assert kept in content(single.root())


def test_the_handbook_of_one_project_is_kept_beside_it_and_given_to_nobody_unasked(tmp_path, home):
    old = taught(tmp_path, session(1))
    folder = exported(old, tmp_path / "out")
    old.memory.close()
    (folder / "MEMORY.md").write_text("the heron nests in the reeds\n")
    (folder / "skills" / "fish").mkdir(parents=True)
    (folder / "skills" / "fish" / "SKILL.md").write_text("how to fish\n")

    home.memory.import_folder(folder)
    home.run()

    scope = home.scope_of(session(1))
    at = f"{RESOURCES}/codex-{scope.replace(':', '-')}"
    files = content(home.root(scope))
    assert files[f"{at}/MEMORY.md"] == "the heron nests in the reeds\n"
    assert files[f"{at}/skills/fish/SKILL.md"] == "how to fish\n"
    assert json.loads(files[f"{at}/scope.json"])["threads"] == [session(1).id]
    assert "no instruction" in files["extensions/external_agent_import/instructions.md"]
    given = home.memory.context(FERN)
    assert given.state == "shown"
    assert "heron" not in given.text
    assert given.manifest.notes == 0
    assert "heron" in home.memory.read(f"{at}/MEMORY.md", cwd=FERN).content
    before = home.position
    home.run()
    assert home.position == before


def test_two_projects_handbooks_do_not_replace_each_other(tmp_path, home):
    for number, cwd, name in ((1, FERN, "a"), (2, MOSS, "b")):
        old = taught(tmp_path, session(number, cwd=cwd), name=f"old-{name}")
        home.memory.import_folder(exported(old, tmp_path / name))
        old.memory.close()
    home.run()

    for number in (1, 2):
        files = content(home.root(home.scope_of(session(number))))
        handbooks = [p for p in files if p.startswith(RESOURCES) and p.endswith("/MEMORY.md")]
        assert len(handbooks) == 1
        assert session(number).id in files[handbooks[0]]


def test_notes_keep_their_names_and_days(tmp_path, home):
    folder = copied(tmp_path)
    notes = folder / "extensions" / "ad_hoc" / "notes"
    notes.mkdir()
    (notes / "2026-11-20T10-00-00-tea.md").write_text("the harbour master wants tea\n")
    (notes / "2026-11-21T10-00-00-long.md").write_text("x" * 20_000)
    (notes / "con.md").write_text("a name that not every system takes\n")

    report = home.memory.import_folder(folder, scope="project:harbour")
    again = home.memory.import_folder(folder, scope="project:harbour")

    assert report.notes == ["extensions/ad_hoc/notes/2026-11-20T10-00-00-tea.md"]
    assert (again.notes, again.notes_known) == ([], 1)
    (added,) = (each for each in home.events(NoteAdded) if each.at < home.now)
    assert (added.scope, added.via) == ("project:harbour", "import")
    assert added.at == 1_795_168_800
    told = {each.what.rpartition("/")[2]: each.why for each in report.left_out}
    assert "16384 is the most" in told["2026-11-21T10-00-00-long.md"]
    assert "everywhere" in told["con.md"]


def test_notes_that_nobody_can_place_are_told(tmp_path, home):
    folder = copied(tmp_path)
    (folder / "extensions" / "ad_hoc" / "notes").mkdir()
    (folder / "extensions" / "ad_hoc" / "notes" / "tea.md").write_text("tea\n")
    raw = folder / "raw_memories.md"
    other = raw.read_text().replace("cwd: /home/dev/codex/repo/greeter", "cwd: /srv/heron", 1)
    raw.write_text(other)
    (first, *_) = sorted((folder / "rollout_summaries").iterdir())
    first.write_text(first.read_text().replace("/home/dev/codex/repo/greeter", "/srv/heron", 1))

    report = home.memory.import_folder(folder)

    assert len(report.imported) == 14
    assert "extensions/ad_hoc/notes/tea.md" in {each.what for each in report.left_out}
    assert home.events(NoteAdded) == []


def test_secrets_are_hidden_in_all_that_comes_in(tmp_path, home):
    secret = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"
    folder = copied(tmp_path)
    raw = folder / "raw_memories.md"
    raw.write_text(raw.read_text().replace("the mock broke", f"token {secret}"))
    for path in (folder / "rollout_summaries").iterdir():
        path.write_text(path.read_text().replace("the mock broke", f"token {secret}"))
    (folder / "MEMORY.md").write_text(f"use {secret}\n")

    report = home.memory.import_folder(folder, scope="project:greeter")
    home.run()

    assert report.secrets_hidden == 2
    assert not report.projects
    (folder / "raw_memories.md").write_text("# Raw Memories\n\nNo raw memories yet.\n")
    assert home.memory.import_folder(folder, scope="project:greeter").secrets_hidden == 1
    for path in (p for p in home.path.rglob("*") if p.is_file()):
        assert secret.encode() not in path.read_bytes(), path


def quoting(folder, at, quoted):
    """The folder, with these sections quoted in the words of the section at this place."""
    raw = folder / "raw_memories.md"
    head, *sections = raw.read_text().split("## Thread ")
    sections[at] += f"What I read:\n\n{''.join(f'## Thread {each}' for each in quoted(sections))}"
    sections[at] += "and that was all\n\n"
    raw.write_text("## Thread ".join([head, *sections]))
    return raw.read_text()


@pytest.mark.parametrize("at", [0, 6, 13])
@pytest.mark.parametrize(
    "quoted",
    [lambda all_: all_, lambda all_: all_[3:5], lambda all_: all_[8:9], lambda all_: all_[:13]],
    ids=["all", "two", "one", "but the last"],
)
def test_a_memory_that_quotes_others_is_one_memory(tmp_path, single, at, quoted):
    """Whoever read raw_memories.md in a session has its sections in that session's memory."""
    folder = copied(tmp_path)
    wanted = quoting(folder, at, quoted)

    report = single.memory.import_folder(folder)
    single.run()

    assert len(report.imported) == 14
    assert inputs_of(single.root())["raw_memories.md"] == wanted


def test_where_two_memories_quote_one_that_stands_between_them_both_are_whole(tmp_path, single):
    folder = copied(tmp_path)
    quoting(folder, 2, lambda all_: all_[7:8])
    wanted = quoting(folder, 12, lambda all_: all_[3:4])

    single.memory.import_folder(folder)
    single.run()

    assert inputs_of(single.root())["raw_memories.md"] == wanted


def test_what_nobody_can_tell_from_a_quotation_is_left_out_and_told(tmp_path, home):
    folder = copied(tmp_path)
    quoting(folder, 6, lambda all_: all_[7:8])
    quoting(folder, 9, lambda all_: all_[3:4])

    report = home.memory.import_folder(folder, dry_run=True)

    told = {each.what for each in report.left_out if "nobody can tell" in each.why}
    assert len(told) == 1
    assert len(report.imported) == 13


def test_a_summary_without_its_memory_is_told(tmp_path, home):
    folder = copied(tmp_path)
    first, second, *_ = sorted((folder / "rollout_summaries").iterdir())
    first.unlink()
    second.write_text("no header\n")
    (folder / "rollout_summaries" / "link.md").symlink_to(CODEX / "MEMORY.md")

    report = home.memory.import_folder(folder)

    assert len(report.imported) == 12
    whats = [each.what for each in report.left_out]
    assert len([what for what in whats if what.startswith("raw_memories.md: ")]) == 2
    assert f"rollout_summaries/{second.name}" in whats
    assert not any("link.md" in what for what in whats)


def test_a_dry_run_tells_what_would_come_in_and_keeps_nothing(home):
    before = home.position

    report = home.memory.import_folder(CODEX, scope="project:greeter", dry_run=True)

    assert len(report.imported) == 14
    assert report.projects[0].added == ["MEMORY.md", "memory_summary.md", "scope.json"]
    assert home.position == before
    assert report.dry_run


def test_a_codex_home_will_do_and_other_folders_say_what_is_expected(tmp_path, home):
    copied(tmp_path, name="memories")
    (tmp_path / "empty").mkdir()

    assert len(found(tmp_path).threads) == 14
    for path in (tmp_path / "empty", CODEX / "MEMORY.md"):
        with pytest.raises(UnknownFolder, match="give a Codex memories folder"):
            home.memory.import_folder(path)
    with pytest.raises(WrongOption, match="--project"):
        home.memory.import_folder(CODEX, projects=["x"])
    for scope in ("user", "global"):
        with pytest.raises(Refused, match="name one"):
            home.memory.import_folder(CODEX, scope=scope)


def test_a_folder_that_windows_has_converted_comes_in_with_the_same_words(tmp_path, single):
    folder = copied(tmp_path)
    for path in folder.rglob("*.md"):
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))

    assert len(single.memory.import_folder(folder).imported) == 14
    single.run()
    assert inputs_of(single.root()) == inputs_of(CODEX)


def test_a_session_of_a_time_that_is_not_yet_is_left(tmp_path, single):
    single.now -= 3 * DAY_S

    report = single.memory.import_folder(CODEX)

    assert set(report.left) == {"in_future"}
    assert len(report.left["in_future"]) + len(report.imported) == 14


def test_a_folder_of_several_memories_names_them(tmp_path, home):
    old = taught(tmp_path, session(1), session(2, cwd=MOSS))
    folder = exported(old, tmp_path / "out")
    old.memory.close()

    with pytest.raises(UnknownFolder, match="import each by itself: ") as told:
        home.memory.import_folder(folder)

    for inside in folder.iterdir():
        assert str(inside) in str(told.value)
        assert len(home.memory.import_folder(inside).imported) == 1


def test_a_project_that_wants_no_memory_is_registered_and_not_selected(tmp_path, single):
    cwd = tmp_path / "quiet"
    cwd.mkdir()
    (cwd / ".threadbook.toml").write_text("generate_memories = false\n")
    old = taught(tmp_path, session(1, cwd=str(tmp_path / "loud")), scope="global")
    folder = exported(old, tmp_path / "out")
    old.memory.close()
    for path in folder.rglob("*.md"):
        path.write_text(path.read_text().replace(str(tmp_path / "loud"), str(cwd)))

    single.memory.import_folder(folder)
    single.run()

    assert single.selected() == set()
    assert single.events(NoteRemoved) == []
