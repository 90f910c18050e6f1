"""What the server answers where something is not as it should be, asked without the protocol."""

import os
import re
import shutil
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from msgspec.structs import fields
from threadbook.adapters.cli.common import Context
from threadbook.adapters.cli.mcp import desk_of, folder_of, session_of_the_agent
from threadbook.adapters.mcp.desk import QUESTIONS
from threadbook.adapters.mcp.offers import OFFERS
from threadbook.application.ports import Failure
from threadbook.application.tools import Tools
from threadbook.domain.events import MemoryShown, NoteAdded
from threadbook.projections import shown

from tests.adapters.stores import dsn_beside
from tests.application.homes import FERN, MOSS, Home, Session, environment

A = Session(number=1)
B = Session(number=2, cwd=MOSS, says=("please never use tabs in this project, always spaces",))
SESSION = "019b7a00-00ff-7000-8000-0000000000ff"
NOTE = "2026-11-29T12-00-00-hint.md"
EVERY = {
    "list": {},
    "read": {"path": "MEMORY.md"},
    "search": {"queries": ["make"]},
    "search_ranked": {"query": "make check"},
    "add_ad_hoc_note": {"filename": NOTE, "note": "mind the gap"},
    "report_use": {"thread_ids": [A.id]},
}
READING = [name for name in EVERY if name not in ("add_ad_hoc_note", "report_use")]


@dataclass
class Asked:
    desk: object
    complaints: list = field(default_factory=list)

    def __call__(self, name, /, **arguments):
        return self.desk.answer(name, arguments or EVERY[name])

    def error(self, name, /, **arguments):
        answer = self(name, **arguments)
        assert answer.is_error, answer
        assert answer.structured is None
        return answer.text


@pytest.fixture(autouse=True)
def nobodys_settings(monkeypatch, tmp_path):
    for name in list(os.environ):
        if name.startswith(("THREADBOOK_", "CODEX_", "CLAUDE")):
            monkeypatch.delenv(name)
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "nobody"))


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    home = Home(tmp_path_factory.mktemp("made"))
    home.write(A, B)
    home.run()
    home.memory.close()
    return home.path


@pytest.fixture
def home(made, tmp_path):
    shutil.copytree(made, tmp_path / "home", symlinks=True)
    home = Home(tmp_path)
    yield home
    home.memory.close()


def at(home, cwd=FERN, *, session=SESSION, path=None, config=None):
    asked = Asked(None)
    context = Context(home=path or home.path, config=config, now=home.now)
    asked.desk = desk_of(context, str(cwd), session=session)
    asked.desk._complain = asked.complaints.append
    return asked


def test_every_tool_answers_with_what_its_schema_says(home):
    asked = at(home)
    for offer in OFFERS:
        answer = asked(offer.name)

        assert not answer.is_error, answer.text
        assert answer.structured.keys() == offer.output_schema["properties"].keys()
        assert set(offer.output_schema["required"]) == answer.structured.keys()


def test_what_may_be_sent_is_what_is_read(home):
    for offer in OFFERS:
        kind, _ = QUESTIONS[offer.name]
        schema = offer.input_schema

        assert set(schema["properties"]) == {each.name for each in fields(kind)}
        assert set(schema["required"]) == {each.name for each in fields(kind) if each.required}
        assert schema["additionalProperties"] is False


def test_names_are_such_as_every_client_and_model_takes():
    names = [offer.name for offer in OFFERS]

    assert names[:4] == ["add_ad_hoc_note", "list", "read", "search"]
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name) for name in names)
    assert len(set(names)) == len(names) <= 8


def test_the_form_of_a_notes_name_stands_in_its_schema():
    (offer,) = (each for each in OFFERS if each.name == "add_ad_hoc_note")
    filename = offer.input_schema["properties"]["filename"]

    assert "YYYY-MM-DDTHH-MM-SS" in filename["description"]
    assert re.search(filename["pattern"], NOTE)
    assert not re.search(filename["pattern"], "2026-11-29T12-00-00--.md")
    assert filename["maxLength"] == 128


def test_it_works_on_both_databases(database, tmp_path, monkeypatch):
    home = Home(tmp_path)
    if dsn := dsn_beside(home.path):
        monkeypatch.setenv("THREADBOOK_DATABASE", dsn)
    home.write(A, B)
    home.run()
    asked = at(home)
    before = home.position

    assert "make check" in asked("read").text
    assert asked("search_ranked").structured["results"][0]["threads"] == [A.id]
    assert asked("add_ad_hoc_note").structured["added"] is True
    assert asked("report_use").structured["counted"] == [A.id]
    assert {each.actor for each in home.log(after=before)} == {"agent:mcp"}
    home.memory.close()


@pytest.mark.parametrize("cwd", ["/", "/home/ann", "/root"])
def test_where_no_project_is_nobodys_memory_is_read(home, cwd):
    before = home.position
    asked = at(home, cwd)

    for name in EVERY.keys() - {"report_use"}:
        told = asked.error(name)
        assert f"{cwd} belongs to no project" in told
        assert "--cwd" in told
    assert asked("report_use").structured["counted"] == []
    assert home.position == before


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"THREADBOOK_USE_MEMORIES": "false"}, "use_memories is false in the settings"),
        ({"THREADBOOK_DEDICATED_TOOLS": "false"}, "dedicated_tools is false in the settings"),
        ({"THREADBOOK_INSIDE": "1"}, "a run of Threadbook's own"),
    ],
)
def test_memory_that_is_switched_off_is_offered_and_given_to_nobody(home, name, settings, why):
    asked = at(home)
    with environment(**settings):
        assert asked.desk.offers() == ()
        assert why in asked.desk.instructions()
        assert why in asked.error(name)
    assert asked.desk.offers() == OFFERS
    assert not asked(name).is_error
    assert any(why in each for each in asked.complaints)


@pytest.mark.parametrize(
    ("version", "named", "uris"),
    [
        ("v1", "MEMORY.md is the handbook.", ("memory://summary", "memory://MEMORY.md")),
        ("v2", "memory_summary.md names the session behind each line", ("memory://summary",)),
    ],
)
def test_an_agent_is_told_of_the_files_that_the_version_in_force_has(home, version, named, uris):
    asked = at(home)

    with environment(THREADBOOK_VERSION=version):
        assert named in asked.desk.instructions()
        assert "{" not in asked.desk.instructions()
        assert ("MEMORY.md" in asked.desk.instructions()) == (version == "v1")
        assert asked.desk.resources() == uris
    with environment(THREADBOOK_USE_MEMORIES="false"):
        assert asked.desk.resources() == ()


def test_a_project_may_switch_it_off_for_itself(home, tmp_path):
    project = tmp_path / "project"
    project.mkdir()
    asked = at(home, project)
    assert asked.desk.offers() == OFFERS

    (project / ".threadbook.toml").write_text("use_memories = false\n")

    assert asked.desk.offers() == ()
    assert "a .threadbook.toml of this project" in asked.error("list")
    (project / ".threadbook.toml").write_text("scope = 'global'\n")
    assert asked.desk.offers() == OFFERS
    assert "may not set `scope`" in asked.error("list")


@pytest.mark.parametrize("name", EVERY)
def test_settings_that_cannot_be_read_are_told_in_every_answer(home, name, tmp_path):
    config = tmp_path / "config.toml"
    asked = at(home, config=config)

    for text in ("version = 'v9'", "use_memories = maybe", "max_unused_day = 3"):
        config.write_text(text)
        assert str(config) in asked.error(name)
        assert asked.desk.offers() == OFFERS
        assert str(config) in asked.desk.instructions()


@pytest.mark.parametrize("name", [*READING, "report_use"])
def test_a_home_that_is_not_there_is_told_and_not_made(home, name, tmp_path):
    path = tmp_path / "nowhere"
    asked = at(home, path=path)

    told = asked.error(name)

    assert "threadbook run" in told
    assert not path.exists()


def test_a_note_makes_a_home_and_is_read_from_then_on(home, tmp_path):
    asked = at(home, path=tmp_path / "new")

    assert asked("add_ad_hoc_note").structured["added"] is True

    assert asked("search", queries=["mind the gap"]).structured["matches"]


@pytest.mark.parametrize("name", EVERY)
def test_a_damaged_store_is_told_and_the_next_question_finds_it_mended(home, name):
    home.memory.close()
    database = home.path / "threadbook.sqlite"
    sound = database.read_bytes()
    asked = at(home)

    database.write_bytes(b"no database at all" * 100)
    told = asked.error(name)
    database.write_bytes(sound)

    assert str(home.path) in told
    assert not asked(name).is_error
    home.memory = home.another()


def test_a_memory_whose_texts_are_sealed_on_this_machine_is_told(dsn, tmp_path, monkeypatch):
    home = Home(tmp_path)
    home.write(A)
    home.run()
    monkeypatch.setenv("THREADBOOK_DATABASE", dsn)
    asked = at(home, path=tmp_path / "other-machine")

    for name in EVERY:
        assert "keys.sqlite" in asked.error(name)
    assert "make check" in at(home)("read").text
    home.memory.close()


def test_a_mistake_of_ours_is_an_answer_and_a_person_is_told(home, monkeypatch):
    def broken(self, asked):
        raise ZeroDivisionError("for a test")

    monkeypatch.setattr(Tools, "list", broken)
    asked = at(home)

    assert "list failed (ZeroDivisionError)" in asked.error("list")
    assert asked.complaints == ["list failed: ZeroDivisionError: for a test"]


def test_a_session_is_recorded_where_it_is_known_and_counts_only_there(home):
    before = home.position
    blind = at(home, session=None)

    blind("read")
    blind("search_ranked")
    counted = blind("report_use").structured

    assert home.position == before
    assert counted == {"counted": [], "not_counted": {A.id: "no_session"}}
    assert "not counted" in blind.desk.instructions()
    assert "not counted" not in at(home).desk.instructions()

    summary = at(home)("list", path="rollout_summaries").structured["entries"][0]["path"]
    at(home)("read", path=summary)
    event = home.events(MemoryShown, after=before)[-1]
    assert (event.session_id, event.via, event.thread_ids) == (SESSION, "read", (A.id,))
    assert event.tokens > 10
    with home.memory.store.reading() as view:
        assert {row.thread_id for row in view.rows(shown, (SESSION,))} == {"", A.id}


def test_what_a_run_publishes_is_found_by_the_next_question(home):
    asked = at(home)
    words = {"search": {"queries": ["zirbelkiefer"]}, "search_ranked": {"query": "zirbelkiefer"}}
    before = [asked(name, **given).structured for name, given in words.items()]

    says = ("from now on always call the sauna zirbelkiefer",)
    home.write(Session(number=3, says=says))
    home.run([home.sessions])
    exact, ranked = (asked(name, **given).structured for name, given in words.items())

    assert not before[0]["matches"]
    assert not before[1]["results"]
    assert {match["path"] for match in exact["matches"]} >= {"MEMORY.md", "memory_summary.md"}
    assert ranked["results"][0]["threads"] == [Session(number=3).id]


def test_the_folder_may_be_written_from_home_and_one_that_is_gone_is_nobodys(
    home, tmp_path, monkeypatch
):
    gone = tmp_path / "gone"
    gone.mkdir()

    assert folder_of(Path("~/fern")) == str(tmp_path / "nobody" / "fern")
    assert folder_of(Path("fern")) == str(Path.cwd() / "fern")
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert "belongs to no project" in at(home, folder_of(None)).error("list")


def test_claude_code_says_which_session_it_is_and_codex_where_it_is_let():
    assert session_of_the_agent() is None
    with environment(CODEX_THREAD_ID="c", CLAUDE_CODE_SESSION_ID=""):
        assert session_of_the_agent() == "c"
    with environment(CODEX_THREAD_ID="c", CLAUDE_CODE_SESSION_ID="a"):
        assert session_of_the_agent() == "a"


# Notes


@pytest.mark.parametrize(
    "filename",
    [
        "../x.md",
        "/etc/2026-11-29T12-00-00-x.md",
        "2026-11-29T12-00-00-.md",
        "2026-11-29T12-00-00.md",
        "2026-11-29T12-00-00-x.txt",
        "2026-11-29T12-00-00-X.md",
        "2026-11-29T12-00-00-a_b.md",
        "2026-11-29T12-00-00-ü.md",
        "2026-11-29 12-00-00-x.md",
        "2026-11-2T12-00-00-x.md",
        "٢٠٢٦-11-29T12-00-00-x.md",
        f"2026-11-29T12-00-00-{'a' * 81}.md",
        "2026-11-29T12-00-00-x.md\n",
        "2026-11-29T12-00-00-x/y.md",
        "",
    ],
)
def test_a_note_that_is_not_named_as_notes_are_is_refused_with_the_form_that_they_have(
    home, filename
):
    told = at(home).error("add_ad_hoc_note", filename=filename, note="x")

    assert "filename" in told
    assert "YYYY-MM-DDTHH-MM-SS" in told
    assert home.events(NoteAdded) == []


@pytest.mark.parametrize(
    "filename",
    [
        NOTE,
        "9999-99-99T99-99-99-x.md",  # Only the shape counts, as in Codex.
        "2026-11-29T12-00-00--.md",
        f"2026-11-29T12-00-00-{'a' * 80}.md",
    ],
)
def test_a_note_is_kept_as_it_is_written(home, filename):
    text = "  two lines\nand no break at the end"
    asked = at(home)

    kept = asked("add_ad_hoc_note", filename=filename, note=text).structured

    assert kept["path"] == f"extensions/ad_hoc/notes/{filename}"
    assert asked("read", path=kept["path"]).structured["content"] == text
    assert (home.root(home.scope_of(A)) / kept["path"]).read_text() == text


def test_a_note_that_is_there_is_refused_and_the_same_words_are_kept_once(home):
    asked = at(home)
    asked("add_ad_hoc_note", filename=NOTE, note="mind the gap")

    again = asked("add_ad_hoc_note", filename="2026-11-29T13-00-00-x.md", note="mind the gap\n")
    told = asked.error("add_ad_hoc_note", filename=NOTE, note="another thing")

    assert again.structured == {
        "path": f"extensions/ad_hoc/notes/{NOTE}",
        "added": False,
        "secrets_hidden": 0,
    }
    assert NOTE in told
    assert "another filename" in told
    assert len(home.events(NoteAdded)) == 1


def test_a_secret_in_a_note_is_hidden_and_a_book_is_no_note(home):
    asked = at(home)

    kept = asked("add_ad_hoc_note", filename=NOTE, note="the key is AKIAIOSFODNN7EXAMPLE")
    told = asked.error("add_ad_hoc_note", filename=NOTE, note="x" * 20_000)

    assert kept.structured["secrets_hidden"] == 1
    assert "AKIA" not in asked("read", path=kept.structured["path"]).text
    assert "16384 is the most" in told


def test_a_note_is_of_its_project_only(home):
    asked = at(home)
    asked("add_ad_hoc_note", filename=NOTE, note="the gap is at pier nine")

    assert not at(home, MOSS)("search", queries=["pier nine"]).structured["matches"]
    assert asked("search", queries=["pier nine"]).structured["matches"]


# What lies in the folder


@pytest.fixture
def folder(home):
    """Where a person may leave anything; the outside has what nobody may read."""
    folder = home.root(home.scope_of(A))
    outside = home.folder / "outside"
    outside.mkdir()
    (outside / "secret.md").write_text("the canary is yellow")
    return folder


def outside(home):
    return home.folder / "outside"


def plant(folder):
    beside = folder / "beside"
    beside.mkdir()
    (beside / "plain.md").write_text("make check\n")
    secret = folder.parents[2].parent / "outside"
    (folder / "link.md").symlink_to(secret / "secret.md")
    (folder / "linked").symlink_to(secret, target_is_directory=True)
    (beside / "within.md").symlink_to("plain.md")
    os.mkfifo(folder / "pipe.md")
    (folder / "latin.md").write_bytes("Fehlermeldung für make check: \xfc".encode("latin-1"))
    (folder / "nul.md").write_bytes(b"make check\0")
    (folder / "huge.md").write_bytes(b"make check " * 200_000)
    (folder / ".hidden.md").write_text("make check")
    (folder / ".git" / "extra.md").write_text("make check")
    (folder / "unreadable.md").write_text("make check")


def test_links_pipes_and_what_is_hidden_are_neither_listed_nor_found(home, folder):
    plant(folder)
    asked = at(home)

    listed = {each["path"] for each in asked("list").structured["entries"]}
    beside = asked("list", path="beside").structured["entries"]
    found = asked("search", queries=["make check", "canary"]).structured
    ranked = asked("search_ranked", query="make check canary").structured

    assert not listed & {"link.md", "linked", "pipe.md", ".hidden.md", ".git"}
    assert {"beside", "latin.md", "huge.md"} <= listed
    assert [each["path"] for each in beside] == ["beside/plain.md"]
    assert found["skipped"] == ["huge.md", "latin.md", "nul.md"]
    assert ranked["skipped"] == ["huge.md", "latin.md", "nul.md"]
    seen = {each["path"] for each in [*found["matches"], *ranked["results"]]}
    assert "beside/plain.md" in seen
    assert not seen & {"link.md", "linked/secret.md", "beside/within.md", ".hidden.md", "pipe.md"}
    assert "canary" not in str(found["matches"]) + str(ranked["results"])


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("link.md", "link"),
        ("beside/within.md", "link"),
        ("linked/secret.md", "link"),
        ("linked", "link"),
        ("pipe.md", "neither a file nor a folder"),
        ("latin.md", "no UTF-8 text"),
        ("nul.md", "no text"),
        ("huge.md", "larger than 1 MiB"),
        (".hidden.md", "does not exist"),
        (".git/extra.md", "does not exist"),
        ("beside", "no file"),
        ("MEMORY.md/x", "file"),
        ("phase2_workspace_diff.md", "does not exist"),
    ],
)
def test_what_cannot_be_read_is_an_error_that_names_it(home, folder, path, told):
    plant(folder)

    answer = at(home).error("read", path=path)

    assert told in answer
    assert path.partition("/")[0] in answer
    assert "canary" not in answer


@pytest.mark.parametrize("name", READING)
@pytest.mark.parametrize("path", [None, "MEMORY.md", "secret.md"])
def test_a_memory_folder_that_is_a_link_is_not_followed_whatever_is_named(home, folder, name, path):
    folder.rename(folder.with_name("moved"))
    folder.symlink_to(outside(home), target_is_directory=True)

    arguments = EVERY[name] | ({"path": path} if path else {})
    told = at(home).error(name, **arguments)

    assert "link" in told
    assert "canary" not in told


def test_a_line_without_end_is_found_and_shown_in_part(home, folder):
    (folder / "long.md").write_text("x" * 900_000 + "needle" + "y" * 100_000)
    asked = at(home)

    (only,) = asked("search", queries=["needle"]).structured["matches"]
    read = asked("read", path="long.md").structured

    assert only["content_truncated"]
    assert "needle" in only["content"]
    assert len(only["content"]) == 16_000
    assert read["truncated"]
    assert len(read["content"]) < 80_100


def test_what_a_polluted_session_said_is_on_no_surface_from_then_on(home):
    asked = at(home)
    before = [asked(name).text for name in READING]
    summary = asked("list", path="rollout_summaries").structured["entries"][0]["path"]

    home.memory.pollute(A.id)

    after = [asked(name).text for name in READING]
    assert any("always run make check" in each for each in before)
    assert not any("always run make check" in each for each in after)
    assert "does not exist" in asked.error("read", path=summary)
    assert asked("search", queries=[A.id]).structured["matches"] == []


def test_paths_of_this_test_are_real(home, folder):
    plant(folder)

    assert Path(folder / "link.md").read_text() == "the canary is yellow"


def test_a_name_that_no_disk_would_have_is_of_nothing(home):
    for name in ("read", "list", "search"):
        told = at(home).error(
            name, path="a" * 300, **({"queries": ["x"]} if name == "search" else {})
        )

        assert "does not exist" in told


@pytest.mark.parametrize(
    ("name", "asked"),
    [
        ("search", {"queries": ["make"] * 10_000}),
        ("search", {"queries": ["make" * 10_000]}),
        ("search_ranked", {"query": "make " * 10_000}),
    ],
)
def test_what_is_asked_is_not_longer_than_what_may_be_answered(home, name, asked):
    told = at(home).error(name, **asked)

    assert "16000 is the most" in told
    assert len(told) < 1_000


def test_a_page_counts_the_queries_that_stand_beside_each_match(home):
    queries = list("make") * 1_000

    answer = at(home)("search", queries=queries)

    assert not answer.is_error
    assert len(answer.text) < 130_000


def test_a_book_is_not_even_looked_through_for_secrets(home, monkeypatch):
    monkeypatch.setattr("threadbook.application.notes.redacted", None)

    told = at(home).error("add_ad_hoc_note", filename=NOTE, note="a b" * 1_000_000)

    assert "3000000 bytes" in told


def test_a_mistake_of_ours_in_a_resource_is_told_and_a_person_is_told_too(home, monkeypatch):
    def mistaken(*_):
        raise ZeroDivisionError("secret words")

    asked = at(home)
    monkeypatch.setattr(Tools, "read", mistaken)

    with pytest.raises(Failure, match="threadbook doctor") as told:
        asked.desk.resource("memory://summary")

    assert "secret" not in str(told.value)
    assert "ZeroDivisionError" in asked.complaints[0]
