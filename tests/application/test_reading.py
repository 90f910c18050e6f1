"""What a reader sees: the folder as it stands, else the log, and nothing that is out of memory."""

import os
import re
import textwrap

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from threadbook.adapters.workspace.tree import Tree
from threadbook.application import people, reading
from threadbook.application.reading import (
    InvalidPath,
    NotFile,
    NotFound,
    NotText,
    TooBig,
    open_reading,
    scope_to_read,
    texts_of,
)
from threadbook.application.roots import Root, gone, live, snapshot
from threadbook.domain.events import StoreReset
from threadbook.domain.withholding import WITHHELD

from tests.adapters.stores import DSN
from tests.application.homes import FERN, MOSS, Home, Session, content
from tests.postgres import server

A = Session(number=1, says=("from now on always run make check before you commit",))
B = Session(number=2, says=("please never use tabs in this project, always spaces",))
C = Session(number=3, says=("always write the zebra crossing in upper case",), cwd=MOSS)
A_WORDS, B_WORDS, C_WORDS = "make check", "tabs", "zebra"
WAYS_OUT = ("polluted", "disabled", "forgotten", "rescoped")


@pytest.fixture
def home(tmp_path):
    home = Home(tmp_path)
    home.write(A, B, C)
    home.run()
    yield home
    home.memory.close()


def read(home, cwd=FERN):
    around = home.memory._around
    with home.memory.store.reading() as view:
        return open_reading(around, view, scope_to_read(around, view, cwd))


def all_of(home, cwd=FERN):
    return "\n".join(f"{path}\n{text}" for path, text in texts_of(read(home, cwd)).items())


def leaves(home, session, how):
    memory = home.memory
    match how:
        case "polluted":
            memory.pollute(session.id)
        case "disabled":
            memory.set_mode(session.id, "disabled")
        case "forgotten":
            memory.forget(session.id)
        case "rescoped":
            memory.set_scope(session.id, "project:elsewhere")


def folder_of(home, cwd=FERN):
    return home.root(home.scope_of(A if cwd == FERN else C))


def test_what_is_read_is_the_folder_file_by_file(home):
    found = read(home)

    there = content(folder_of(home))
    assert texts_of(found) == there
    assert found.kind("") == "directory"
    assert found.kind("MEMORY.md") == "file"
    assert found.kind("rollout_summaries") == "directory"
    assert found.kind("nothing.md") is None
    assert [entry.path for entry in found.entries("")] == sorted(
        {path.partition("/")[0] for path in there}
    )
    summaries = found.entries("rollout_summaries")
    assert [found.threads_in(entry.path) for entry in summaries] == [(A.id,), (B.id,)]
    assert found.threads_in("MEMORY.md") == ()


def test_a_persons_change_is_read_before_any_run_and_other_files_of_theirs_too(home):
    (folder_of(home) / "MEMORY.md").write_text("mine")
    (folder_of(home) / "more.md").write_text("of mine")

    assert read(home).text("MEMORY.md") == "mine"
    assert read(home).text("more.md") == "of mine"


@pytest.mark.parametrize("how", ["missing", "never rendered here"])
def test_where_the_folder_is_not_as_rendered_the_log_is_read(home, how):
    whole = texts_of(read(home))

    if how == "missing":
        folder_of(home).rename(folder_of(home).with_name("away"))
    else:
        (home.path / "locks" / f"v1-{folder_of(home).name}.rendered").unlink()
        (folder_of(home) / "MEMORY.md").write_text("an older one")

    assert texts_of(read(home)) == whole


def test_what_was_published_is_read_before_the_folder_has_followed(home):
    def unwritten(version, scope):
        return Unwritten(home.memory._around.workspace(version, scope))

    home.write(Session(number=4, says=("always wear a helmet when you deploy this",)))

    home.run_with(workspace=unwritten)

    assert "helmet" not in (folder_of(home) / "MEMORY.md").read_text()
    assert "helmet" in read(home).text("MEMORY.md")
    assert read(home).rendered_position is not None


class Unwritten:
    """A folder whose writer ends before it has written anything."""

    def __init__(self, real):
        self.real = real

    def __getattr__(self, name):
        return getattr(self.real, name)

    def render(self, *_, **__):
        return {}

    def reset_baseline(self, now):
        pass

    def note_rendered(self, position):
        pass


@pytest.mark.parametrize("how", WAYS_OUT)
@pytest.mark.parametrize("source", ["folder", "log"])
def test_a_session_that_leaves_the_memory_is_read_by_nobody_before_any_run(home, how, source):
    if source == "log":
        folder_of(home).rename(folder_of(home).with_name("away"))
    assert A_WORDS in all_of(home)
    before = read(home).text("MEMORY.md").count("\n")

    leaves(home, A, how)

    after = all_of(home)
    assert A_WORDS not in after
    assert A.id not in after
    assert B_WORDS in after
    assert [read(home).threads_in(e.path) for e in read(home).entries("rollout_summaries")] == [
        (B.id,)
    ]
    if how != "forgotten":  # Its folder is written again at once.
        assert WITHHELD in read(home).text("MEMORY.md")
        assert read(home).text("MEMORY.md").count("\n") == before
    home.run()
    assert A_WORDS not in all_of(home)
    assert WITHHELD not in all_of(home)


def wrapped(text):
    return "\n".join(part for line in text.split("\n") for part in textwrap.wrap(line, 40) or [""])


HANDS = {
    "windows": lambda text: text.replace("\n", "\r\n"),
    "blanks at the ends": lambda text: text.replace("\n", "  \n"),
    "indented": lambda text: textwrap.indent(text, "    "),
    "wrapped": wrapped,
    "without marks": lambda text: re.sub(r" \[Task \d+\]", "", text),
    "renumbered": lambda text: re.sub(r"Task (\d)", r"Task 4\1", text),
    "without sources": lambda text: re.sub(r"(?m)^- rollout_summaries/.*\n", "", text),
    "quotes alone": lambda text: "\n".join(re.findall('"[^"]+"', text)),
}


@pytest.mark.parametrize("hand", HANDS)
@pytest.mark.parametrize("file", ["MEMORY.md", "memory_summary.md", "MEMORY.md.bak"])
def test_what_a_hand_has_changed_still_says_nothing_of_a_session_that_left(home, hand, file):
    written = folder_of(home) / file
    text = (folder_of(home) / file.removesuffix(".bak")).read_text()
    written.write_bytes(HANDS[hand](text).encode())
    before = re.sub(r"\s+", " ", read(home).text(file))

    leaves(home, A, "polluted")

    assert A_WORDS in before
    assert A_WORDS not in re.sub(r"\s+", " ", read(home).text(file))
    assert B_WORDS in read(home).text(file)
    assert len(read(home).text(file).split("\n")) == len(written.read_bytes().split(b"\n"))


def test_the_summary_of_a_withheld_session_cannot_be_told_from_one_that_never_was(home):
    (name,) = (e.path for e in read(home).entries("rollout_summaries") if "0001" in e.path)

    home.memory.pollute(A.id)

    found = read(home)
    assert found.kind(name) is None
    with pytest.raises(NotFound) as withheld:
        found.text(name)
    missing = "rollout_summaries/2020-01-01T00-00-00-aaaa-x.md"
    with pytest.raises(NotFound) as never:
        found.text(missing)
    assert str(withheld.value).replace(name, missing) == str(never.value)
    renamed = folder_of(home) / "rollout_summaries" / "renamed.md"
    (folder_of(home) / name).rename(renamed)
    assert A_WORDS not in all_of(home)


def test_a_session_that_comes_back_is_read_again_at_once(home):
    whole = all_of(home)

    home.memory.pollute(A.id)
    home.memory.set_mode(A.id, "enabled")

    assert all_of(home) == whole


def test_after_a_reset_nothing_is_read_whatever_lies_in_the_folder(home):
    with home.memory.store.writing(actor="application") as tx:
        tx.append("store", StoreReset(at=home.memory._around.now(), memory_version="v1"))

    assert (folder_of(home) / "MEMORY.md").exists()
    assert A_WORDS not in all_of(home)


def test_one_query_says_what_live_says_of_each_thread(home):
    for session, how in ((A, "polluted"), (C, "rescoped")):
        leaves(home, session, how)
    home.memory.forget(B.id)

    for scope in {home.scope_of(A), home.scope_of(C), "global"}:
        root = Root(memory_version="v1", scope=scope)
        with home.memory.store.reading() as view:
            rows = {row.thread_id for row in snapshot(view, root)}
            alive = {row.thread_id for row in live(view, root)}
            assert gone(view, root).ids == rows - alive


def test_codexs_single_folder_withholds_too(tmp_path):
    home = Home(tmp_path, scope="global")
    home.write(A, B, C)
    home.run()
    assert C_WORDS in all_of(home)

    home.memory.pollute(A.id)
    home.memory.set_scope(C.id, "project:elsewhere")

    assert A_WORDS not in all_of(home)
    assert C_WORDS in all_of(home)
    home.memory.close()


# Paths.


@pytest.mark.parametrize(
    "path", ["../MEMORY.md", "a/../MEMORY.md", "/etc/passwd", "a//b", "a\0b", ".."]
)
def test_a_path_that_leads_out_is_refused(home, path):
    for asked in (read(home).kind, read(home).text):
        with pytest.raises(InvalidPath):
            asked(path)


def test_what_is_hidden_is_not_there(home):
    folder = folder_of(home)
    (folder / ".secret.md").write_text("x")
    (folder / ".hidden").mkdir()
    (folder / ".hidden" / "a.md").write_text("x")
    (folder / "phase2_workspace_diff.md").write_text(f"- {A_WORDS}")
    (folder / "bell\x07.md").write_text("x")

    found = read(home)

    for path in (
        ".git/HEAD", ".git", ".secret.md", ".hidden/a.md", ".", "rollout_summaries/.x",
        "phase2_workspace_diff.md", "bell\x07.md",
    ):  # fmt: skip
        assert found.kind(path) is None
        with pytest.raises(NotFound):
            found.text(path)
    names = {entry.path for entry in found.entries("")}
    assert names == {"MEMORY.md", "memory_summary.md", "raw_memories.md", "rollout_summaries"}


def test_links_and_special_files_are_no_entries_and_are_refused_by_name(home, tmp_path):
    folder = folder_of(home)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "a.md").write_text("outside")
    (folder / "link.md").symlink_to(tmp_path / "outside" / "a.md")
    (folder / "away").symlink_to(tmp_path / "outside")
    os.mkfifo(folder / "pipe.md")

    found = read(home)

    assert not {"link.md", "away", "pipe.md"} & {entry.path for entry in found.entries("")}
    assert [found.kind(path) for path in ("link.md", "away", "pipe.md")] == [
        "link",
        "link",
        "other",
    ]
    with pytest.raises(InvalidPath, match="links are not followed"):
        found.text("link.md")
    for asked in (found.kind, found.text):
        with pytest.raises(InvalidPath, match="away"):
            asked("away/a.md")
        with pytest.raises(InvalidPath, match="MEMORY"):
            asked("MEMORY.md/a.md")
    with pytest.raises(NotFile):
        found.text("pipe.md")
    with pytest.raises(NotFile):
        found.text("rollout_summaries")
    with pytest.raises(NotFile):
        found.text("")
    assert found.entries("link.md") == found.entries("nothing") == []


def test_a_folder_that_is_a_link_is_refused_also_where_a_file_in_it_is_named(home):
    real = folder_of(home).rename(folder_of(home).with_name("real"))
    folder_of(home).symlink_to(real)

    with pytest.raises(InvalidPath, match="replace it by the folder itself"):
        read(home)
    tree = Tree(home.path, "v1", home.scope_of(A))
    for asked in (tree.kind, tree.names, tree.text):
        with pytest.raises(InvalidPath):
            asked("MEMORY.md" if asked != tree.names else "rollout_summaries")


@pytest.mark.parametrize(
    ("written", "error"),
    [(b"\xff\xfe", NotText), (b"a\0b", NotText), (b"x" * (1024 * 1024 + 1), TooBig)],
)
def test_what_is_no_text_of_ours_says_so(home, written, error):
    (folder_of(home) / "odd.md").write_bytes(written)

    with pytest.raises(error, match="odd"):
        read(home).text("odd.md")
    assert read(home).kind("odd.md") == "file"


def test_a_file_of_a_mebibyte_is_read(home):
    (folder_of(home) / "big.md").write_bytes(b"x" * 1024 * 1024)

    assert len(read(home).text("big.md")) == 1024 * 1024


def test_the_log_gives_the_same_answers_for_paths_that_are_none(home):
    folder_of(home).rename(folder_of(home).with_name("away"))
    found = read(home)

    with pytest.raises(InvalidPath):
        found.kind("MEMORY.md/a.md")
    with pytest.raises(NotFile):
        found.text("rollout_summaries")
    for path in ("", ".git/HEAD", "../x", "nothing.md"):
        with pytest.raises((NotFound, NotFile, InvalidPath)):
            found.text(path)


# Whose memory it is.


def test_another_projects_canary_is_on_no_surface_and_its_own_sees_it(home, tmp_path):
    assert C_WORDS not in all_of(home, FERN)
    assert C_WORDS in all_of(home, MOSS)
    assert C_WORDS not in home.memory.context(FERN).text
    assert C_WORDS in home.memory.context(MOSS).text
    written = home.memory.export(tmp_path / "out")
    for scope, folder in written.items():
        text = "".join(content(folder).values())
        assert (C_WORDS in text) == (scope == home.scope_of(C))


@pytest.mark.parametrize("cwd", ["/", "/home/ann", "/Users/ann", "relative", ""])
def test_where_nobody_knows_whose_memory_it_is_none_is_read(home, cwd):
    with pytest.raises(reading.AmbiguousScope, match="--cwd"):
        read(home, cwd)


def test_a_way_back_out_of_a_link_is_the_same_folder_on_every_surface(home, tmp_path):
    fern, moss = tmp_path / "fern", tmp_path / "moss"
    for folder, session in ((fern, A), (moss, C)):
        (folder / ".git").mkdir(parents=True)
        (folder / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
        home.write(replace(session, number=session.number + 50, cwd=str(folder)))
    (moss / "below").mkdir()
    (fern / "link").symlink_to(moss / "below")
    home.run()

    back = fern / "link" / ".."
    given = home.memory.context(back).text
    found = home.memory.search(["always"], cwd=back)

    assert A_WORDS in given
    assert C_WORDS not in given
    assert any(A_WORDS in match.content for match in found.matches)
    assert not any(C_WORDS in match.content for match in found.matches)


def test_export_leaves_out_what_a_reader_may_not_see(home, tmp_path):
    home.memory.pollute(A.id)

    written = home.memory.export(tmp_path / "out")

    text = "".join(content(written[home.scope_of(A)]).values())
    assert A_WORDS not in text
    assert B_WORDS in text
    assert WITHHELD in text


def test_it_is_the_same_on_postgresql(tmp_path):
    (tmp_path / DSN).write_text(server().dsn(tmp_path))
    home = Home(tmp_path)
    home.write(A, B)
    home.run()
    home.memory.note("use uv", cwd=FERN)
    assert A_WORDS in all_of(home)

    home.memory.pollute(A.id)

    assert A_WORDS not in all_of(home)
    assert B_WORDS in home.memory.context(FERN, "s").text
    assert "use uv" in home.memory.context(FERN, "s").text
    assert home.types().count("read.shown") == 2
    home.memory.close()


# Any of it, in any order.


@settings(max_examples=12, deadline=None)
@given(st.lists(st.tuples(st.sampled_from([A, B]), st.sampled_from(WAYS_OUT[:2])), max_size=3))
def test_after_any_acts_nobody_reads_a_session_that_is_out(tmp_path_factory, acts):
    home = Home(tmp_path_factory.mktemp("acts"))
    home.write(A, B)
    home.run()
    for session, how in acts:
        leaves(home, session, how)

    text = all_of(home) + home.memory.context(FERN).text

    for session, words in ((A, A_WORDS), (B, B_WORDS)):
        is_out = any(each is session for each, _ in acts)
        assert (words in text) == (not is_out)
    home.memory.close()


def test_what_is_read_is_what_people_set(home):
    assert people.set_mode(home.memory._around, A.id, "disabled", actor="application")
    assert A_WORDS not in all_of(home)
