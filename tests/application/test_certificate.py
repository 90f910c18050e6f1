"""`prove=True`: a certificate finds whatever an erasure left, and is clean where nothing is left.

Each step of the erasure is skipped once, and the certificate has to find what that leaves.
"""

import codecs
import gzip
import io
import json
import os
import random
import shutil
import sqlite3
import tarfile
import zipfile
import zlib

import pytest
import zstandard
from threadbook import Memory
from threadbook.adapters import sweep
from threadbook.adapters.store import bodies, dialect, erasures, sealing
from threadbook.adapters.store.keys import KeyFile
from threadbook.adapters.sweep.opened import HELD, PIECE_BYTES
from threadbook.adapters.workspace import Workspace
from threadbook.application.ports import Extracted
from threadbook.application.sought import RUN_BYTES

from tests.adapters.stores import ended, process
from tests.application.homes import HALF_A_DAY_LATER, ROLLOUTS, Home, Session, Telling, content
from tests.application.planted import PLANTED, Planted, left_in

pytestmark = pytest.mark.usefixtures("database")
on_the_file = pytest.mark.parametrize("database", ["sqlite"], indirect=True)
on_a_server = pytest.mark.parametrize("database", ["postgres"], indirect=True)

LOST = Planted()
KEPT = Session(number=2, says=("please never use tabs in this project, always spaces",))
SENTENCE = f"from now on always run {PLANTED['preference']} before you commit"


@pytest.fixture
def planted(home):
    home.write(LOST, KEPT)
    home.run()
    return home


def prove(home, thread_id=LOST.id):
    return home.memory.forget(thread_id, prove=True)


def places(certificate):
    return {each.file for each in certificate.found}


def left_words(home):
    return {each.partition(" in ")[0] for each in left_in(home)}


def into_the_file(home):
    db = sqlite3.connect(home.path / "threadbook.sqlite")
    busy, *_ = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    db.close()
    assert not busy


# Where nothing is left.


def test_a_forgetting_that_left_nothing_is_proven_and_says_where_it_looked(planted):
    certificate = prove(planted)

    assert (certificate.verdict, certificate.found) == ("clean", [])
    assert certificate.proven
    assert left_in(planted.path) == []
    files = [path for path in planted.path.rglob("*") if path.is_file()]
    assert certificate.searched.files == len(files)
    assert certificate.searched.places["memories"] > 5
    assert certificate.searched.inflated >= 5
    assert certificate.searched.bytes == sum(path.stat().st_size for path in files)
    texts = ("artifact", "evidence", "manifest", "preview", "raw_memory", "rollout_summary")
    assert set(texts) <= certificate.words.texts.keys()
    assert certificate.words.marks > 500


def test_a_certificate_holds_none_of_the_words(planted):
    told = repr(prove(planted)).lower()

    assert not [word for word in PLANTED.values() if word.lower() in told]


def test_what_others_say_in_the_same_words_is_no_find(home):
    shared = "please never push to the main branch without a review by somebody else"
    home.write(Planted(says=(shared,)), Session(number=2, says=(shared,)))
    home.run()

    certificate = prove(home)

    assert certificate.verdict == "clean"
    assert certificate.words.marks_shared > 50
    assert shared in "".join(content(home.root()).values())


@on_the_file
def test_words_that_the_program_itself_writes_into_files_are_no_find(home):
    home.write(KEPT)
    home.run()
    kept = content(home.root())
    heading = max(kept["raw_memories.md"].split(KEPT.says[0])[0].splitlines(), key=len)
    assert len(heading) > 2 * RUN_BYTES
    columns = "from now on always name it content_rowid and never content_sequence"
    names = "please never put it into the folder rollout_summaries of any memories"
    home.write(
        Session(number=3, says=(f"please always write {heading} over a list", columns, names))
    )
    home.run()
    index(home, "external", "nothing", *kept.values(), columns="content_sequence")

    certificate = prove(home, Session(number=3).id)

    assert (certificate.verdict, certificate.found) == ("clean", [])
    assert certificate.words.marks > 20


@on_the_file
def test_real_sessions_are_forgotten_one_after_the_other_without_a_false_find(tmp_path):
    home = Home(tmp_path, now=HALF_A_DAY_LATER)
    home.run([ROLLOUTS])
    known = [line.thread_id for line in home.memory.threads()]

    proven = [prove(home, thread_id) for thread_id in known]
    home.memory.close()

    assert [(each.verdict, each.found) for each in proven] == [("clean", [])] * len(known)
    assert len([each for each in proven if each.words.marks > 50]) >= 5


def test_a_thread_that_was_never_seen_has_no_words(home):
    certificate = prove(home, KEPT.id)

    assert certificate.verdict == "clean"
    assert not certificate.report.known
    assert certificate.words.texts == {}


def test_of_a_thread_that_was_forgotten_before_the_words_are_unknown_and_its_name_is_not(planted):
    planted.memory.forget(LOST.id)

    certificate = prove(planted)
    (planted.root() / "mine.md").write_text(f"see {LOST.id}\n")
    named = prove(planted)

    assert (certificate.verdict, certificate.proven) == ("words_unknown", True)
    assert certificate.words.texts == {}
    assert (named.verdict, named.proven) == ("found", False)
    assert [(each.what, each.offset) for each in named.found] == [("id", 4)]
    assert places(named) == {f"{planted.root().relative_to(planted.path)}/mine.md"}


# Each step of the erasure, skipped.


@on_the_file
def test_a_write_ahead_log_that_is_not_truncated_is_found(planted, monkeypatch):
    monkeypatch.setattr(erasures, "complete", lambda *_: True)

    certificate = prove(planted)

    assert certificate.verdict == "found"
    assert "threadbook.sqlite-wal" in places(certificate)


@on_the_file
def test_deleted_text_that_is_not_overwritten_is_found(planted, monkeypatch):
    into_the_file(planted)
    pragmas = [("secure_delete", "OFF", 0), *dialect.ON_EVERY_CONNECTION[1:]]
    monkeypatch.setattr(dialect, "ON_EVERY_CONNECTION", pragmas)
    planted.reopened()

    certificate = prove(planted)

    assert certificate.verdict == "found"
    assert places(certificate) >= {"threadbook.sqlite"}


def long_text(seed):
    """So long that it lies on many pages, and nothing of it comes twice."""
    chosen = random.Random(seed)
    words = ("".join(chosen.choices("abcdefghijklmnop", k=6)) for _ in range(6_000))
    return " ".join(words)


@on_the_file
@pytest.mark.parametrize("seed", range(3))
def test_a_text_that_is_cut_by_pages_is_found_on_each_of_them(home, monkeypatch, seed):
    def tell(header, items):
        return Extracted(
            raw_memory=long_text(seed), rollout_summary="a summary of it", rollout_slug=None
        )

    home.write(LOST)
    home.run_with(extractor=Telling(**{LOST.id: tell}))
    into_the_file(home)
    pragmas = [("secure_delete", "OFF", 0), *dialect.ON_EVERY_CONNECTION[1:]]
    monkeypatch.setattr(dialect, "ON_EVERY_CONNECTION", pragmas)
    home.reopened()

    certificate = prove(home)

    pages = {each.offset // 4096 for each in certificate.found if each.file.endswith(".sqlite")}
    assert len(pages) >= 9


def test_a_text_that_stays_in_the_database_is_found(planted, monkeypatch, database):
    where = (bodies, "erase") if database == "sqlite" else (sealing.SealedBodies, "erase")
    monkeypatch.setattr(*where, lambda *_: 0)

    certificate = prove(planted)

    assert certificate.verdict == "found"
    assert certificate.texts_left >= 8
    if database == "sqlite":
        assert "threadbook.sqlite" in {each.split("-")[0] for each in places(certificate)}


def test_a_roots_text_that_stays_in_the_database_is_found(planted, monkeypatch, database):
    where = bodies if database == "sqlite" else sealing.SealedBodies
    erase = where.erase
    monkeypatch.setattr(
        where, "erase", lambda *given: erase(*given[:-1], ())
    )  # By owner, and not by ref.

    certificate = prove(planted)

    assert certificate.verdict == "found"
    assert certificate.texts_left >= 3


@on_a_server
def test_a_key_that_is_not_cut_is_found(planted, monkeypatch):
    erase = KeyFile.erase
    monkeypatch.setattr(
        KeyFile, "erase", lambda self, paths, applied: erase(self, [], applied=applied)
    )

    certificate = prove(planted)

    assert certificate.verdict == "found"
    assert certificate.keys_left > 0


def test_a_git_object_that_stays_is_found_in_its_pack(planted, monkeypatch):
    monkeypatch.setattr(Workspace, "reset_baseline", lambda *_: None)

    certificate = prove(planted)

    assert certificate.verdict == "found"
    assert all("/.git/" in each for each in places(certificate))
    packed = [each for each in certificate.found if each.file.endswith(".pack")]
    assert {PLANTED["preview"], PLANTED["script"]} <= left_words(planted.path)
    assert len({each.inside for each in packed}) >= 4
    assert "threadbook run" in certificate.advice[0]


def test_a_file_of_the_folder_that_stays_is_found_by_its_words_and_by_its_name(
    planted, monkeypatch
):
    monkeypatch.setattr(Workspace, "remove", lambda *_: False)
    monkeypatch.setattr(Workspace, "prune_summaries", lambda *_: [])
    (summary,) = [
        path
        for path in planted.root().glob("rollout_summaries/*")
        if PLANTED["preview"] in path.read_text()
    ]

    certificate = prove(planted)

    found = [each for each in certificate.found if each.file.endswith(summary.name)]
    assert certificate.verdict == "found"
    assert {each.what for each in found} == {"words", "id"}
    assert {each.in_name for each in found} == {True, False}


def test_a_kept_edit_that_stays_is_found(planted, monkeypatch):
    memory_file = planted.root() / "MEMORY.md"
    # What is no text is laid beside the root.
    memory_file.write_bytes(f"{memory_file.read_text()}\nremember: {SENTENCE}\n".encode() + b"\xff")
    planted.run()
    monkeypatch.setattr(Workspace, "remove_edits", lambda *_: 0)

    certificate = prove(planted)

    assert certificate.verdict == "found"
    assert any(".edits/" in each for each in places(certificate))


def test_a_folder_that_cannot_be_written_is_told_with_what_lies_in_it(planted):
    root = planted.root()
    moved = root.rename(root.with_name("elsewhere"))
    root.symlink_to(moved)

    certificate = prove(planted)

    assert not certificate.proven
    assert "symbolic link" in certificate.failure
    assert certificate.failure in certificate.advice
    assert any(each.startswith("memories/v1/elsewhere/") for each in places(certificate))


@on_the_file
def test_an_erasure_that_an_old_reader_holds_up_is_pending_and_not_proven(planted):
    reader = sqlite3.connect(planted.path / "threadbook.sqlite", isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM bodies").fetchone()

    certificate = prove(planted)
    reader.close()
    later = prove(planted)

    assert (certificate.verdict, certificate.proven) == ("pending", False)
    assert f"process {os.getpid()}" in certificate.pending[0]
    assert certificate.found
    assert "threadbook status" in certificate.advice[0]
    assert (later.verdict, later.pending) == ("words_unknown", [])


# However it is written down.


def utf_16(text):
    return codecs.BOM_UTF16_LE + text.encode("utf-16-le")


def loose(text):
    return zlib.compress(b"blob %d\0" % len(text.encode()) + text.encode())


def zipped(text):
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.txt", "first")
        archive.writestr("b/c.txt", text)
    return written.getvalue()


def tarred(text, how):
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode=f"w:{how}") as archive:
        member = tarfile.TarInfo("a.txt")
        member.size = len(text.encode())
        archive.addfile(member, io.BytesIO(text.encode()))
    return written.getvalue()


WRITTEN = {
    "as it is": str.encode,
    "in capitals": lambda text: text.upper().encode(),
    "as JSON": lambda text: json.dumps({"text": f"{text}\nand so on"}).encode(),
    "as JSON in UTF-8": lambda text: json.dumps(text, ensure_ascii=False).encode(),
    "in UTF-16": utf_16,
    "in the middle of UTF-16": lambda text: b"\x01\x02\x03" + text.encode("utf-16-be"),
    "as a loose git object": loose,
    "behind other bytes, compressed": lambda text: os.urandom(5_000) + loose(text),
    "gzipped": lambda text: gzip.compress(text.encode()),
    "in a zip": lambda text: zipped(text),
    "in a tar, with bzip2": lambda text: tarred(text, "bz2"),
    "in a tar, with xz": lambda text: tarred(text, "xz"),
    "as zstd": lambda text: zstandard.compress(text.encode()),
    "as zstd, behind other bytes": lambda text: b"x" * 70_000 + zstandard.compress(text.encode()),
    "compressed and cut off": lambda text: zlib.compress(text.encode() + os.urandom(9_000))[:4_000],
    "behind a megabyte, over the seam": lambda text: (
        b"." * ((1 << 20) - RUN_BYTES // 2) + text.encode()[:RUN_BYTES]
    ),
    "24 bytes of it": lambda text: b"\x01" + text.encode()[-40:-16] + b"\x02",
}


@on_the_file
def test_a_home_may_be_named_as_seen_from_here(planted, monkeypatch):
    monkeypatch.chdir(planted.folder)
    here = Memory.open(planted.path.name, clock=lambda: planted.now, settings=planted.settings)

    with here:
        certificate = here.forget(LOST.id, prove=True)

    assert certificate.verdict == "clean"
    assert certificate.searched.files > 0


@on_the_file
@pytest.mark.parametrize("written", WRITTEN)
def test_a_leftover_is_found_however_it_is_written_down(planted, written):
    (planted.path / "leftover.tmp").write_bytes(WRITTEN[written](SENTENCE))

    certificate = prove(planted)

    assert places(certificate) == {"leftover.tmp"}
    assert certificate.advice


@on_the_file
@pytest.mark.parametrize("word", ["accents", "script", "quoted"])
@pytest.mark.parametrize("written", ["as it is", "as JSON", "as JSON in UTF-8", "in UTF-16"])
def test_words_that_are_no_ascii_are_found(planted, word, written):
    said = {
        "accents": f"please never say {PLANTED['accents']} in",
        "script": f"from now on always write {PLANTED['script']} in",
        "quoted": f"please never write {PLANTED['quoted']} in",
    }
    (planted.path / "leftover").write_bytes(WRITTEN[written](said[word]))

    assert places(prove(planted)) == {"leftover"}


@on_the_file
@pytest.mark.parametrize("kind", ["plain", "external"])
def test_a_full_text_index_is_found_to_keep_the_words_of_what_was_deleted(planted, kind):
    index(planted, kind, "\n".join(content(planted.root()).values()))

    certificate = prove(planted)

    assert {each.removesuffix("-wal") for each in places(certificate)} == {"search.sqlite"}
    assert any(each.size < RUN_BYTES for each in certificate.found)
    assert not certificate.proven


@on_the_file
def test_a_full_text_index_of_what_stays_is_no_find(home):
    home.write(KEPT)
    home.run()
    kept = "\n".join(content(home.root()).values())
    home.write(LOST)
    home.run()
    index(home, "plain", "nothing", *kept.splitlines())

    assert prove(home).verdict == "clean"


def index(home, kind, deleted, *texts, columns="id"):
    """As an index keeps it: terms in segments, those of deleted rows too."""
    db = sqlite3.connect(home.path / "search.sqlite", isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA secure_delete = ON")
    options = {"plain": "text", "external": "text, content='rows', content_rowid='id'"}
    db.execute(f"CREATE TABLE others ({columns} INTEGER)")
    db.execute("CREATE TABLE rows (id INTEGER PRIMARY KEY, text TEXT)")
    db.execute(f"CREATE VIRTUAL TABLE terms USING fts5({options[kind]})")
    for n, text in enumerate((deleted, *texts), start=1):
        db.execute("INSERT INTO rows VALUES (?, ?)", (n, text))
        db.execute("INSERT INTO terms (rowid, text) VALUES (?, ?)", (n, text))
    if kind == "external":
        db.execute("INSERT INTO terms (terms, rowid, text) VALUES ('delete', 1, ?)", (deleted,))
    else:
        db.execute("DELETE FROM terms WHERE rowid = 1")
    db.execute("DELETE FROM rows WHERE id = 1")
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()


@on_the_file
@pytest.mark.parametrize("place", ["copies/old.sqlite", "copy.of.the.file"])
def test_a_copy_of_the_database_that_holds_the_words_is_found(planted, place):
    into_the_file(planted)
    (planted.path / place).parent.mkdir(exist_ok=True)
    shutil.copy(planted.path / "threadbook.sqlite", planted.path / place)

    assert places(prove(planted)) == {place}


# The sweep itself.


@on_the_file
def test_sweeping_drops_no_lock_that_sqlite_holds_in_this_process(planted):
    mine = sqlite3.connect(planted.path / "threadbook.sqlite", isolation_level=None)
    mine.execute("BEGIN IMMEDIATE")
    list(sweep.Sweep(planted.path).schemas())
    assert list(sweep.Sweep(planted.path).pieces())

    (answer, *_) = ended(process(TRY_TO_WRITE, planted.path))

    assert answer == "locked"
    mine.execute("ROLLBACK")
    (answer, *_) = ended(process(TRY_TO_WRITE, planted.path))
    assert answer == "free"
    mine.close()


TRY_TO_WRITE = """
import sqlite3
import tarfile
db = sqlite3.connect(home / "threadbook.sqlite", isolation_level=None, timeout=0)
try:
    db.execute("BEGIN IMMEDIATE")
    print("free")
except sqlite3.OperationalError:
    print("locked")
"""


@on_the_file
def test_descriptors_of_databases_are_few_and_go_when_their_files_are_gone(tmp_path):
    for n in range(3):
        folder = tmp_path / f"a{n}"
        folder.mkdir()
        sqlite3.connect(folder / "x.sqlite").execute("CREATE TABLE t (a)").connection.close()
        for _ in range(3):
            list(sweep.Sweep(folder).pieces())
        shutil.rmtree(folder)
    list(sweep.Sweep(tmp_path).pieces())

    here = [key for key in HELD if os.fstat(HELD[key]).st_nlink == 0]
    assert here == []


@on_the_file
def test_a_big_file_is_read_in_pieces(tmp_path):
    with (tmp_path / "big").open("wb") as file:
        file.truncate(300 << 20)
        file.seek(299 << 20)
        file.write(b"the end")
    (tmp_path / "bomb.zst").write_bytes(zstandard.compress(bytes(200 << 20) + b"the end"))
    (tmp_path / "bomb.gz").write_bytes(gzip.compress(bytes(100 << 20) + b"the end", 1))

    sizes, ends = [], set()
    for piece in sweep.Sweep(tmp_path).pieces():
        sizes.append(len(piece.content))
        if b"the end" in piece.content:
            ends.add(piece.file)

    assert ends == {"big", "bomb.zst", "bomb.gz"}
    assert max(sizes) <= PIECE_BYTES + sweep.OVERLAP_BYTES


@on_the_file
def test_links_are_not_followed_and_pipes_not_waited_for(planted, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text(SENTENCE)
    (planted.path / "link").symlink_to(outside / "file")
    (planted.path / "folder").symlink_to(outside)
    os.mkfifo(planted.path / "pipe")

    assert prove(planted).verdict == "clean"


# What nobody can see.


@on_a_server
def test_on_a_server_the_certificate_names_what_the_server_keeps_and_who_still_has_keys(
    planted, tmp_path
):
    other = tmp_path / "other"
    (other / "home").mkdir(mode=0o700, parents=True)
    shutil.copy(tmp_path / "dsn", other / "dsn")
    shutil.copy(planted.path / "keys.sqlite", other / "home" / "keys.sqlite")
    late = Home(other)

    certificate = prove(planted)
    told = "\n".join(certificate.not_covered)
    late.reopened()
    later = prove(planted)
    late.memory.close()

    assert certificate.verdict == "clean"
    for each in ("write-ahead log", "replicas", "base backups", "VACUUM", "sealed", "keys.sqlite"):
        assert each in told
    assert late.memory.store.machine[:8] in told
    assert late.memory.store.machine[:8] not in "\n".join(later.not_covered)


@on_the_file
def test_on_the_file_nothing_is_said_of_servers(planted):
    told = "\n".join([*(certificate := prove(planted)).not_covered, *certificate.stays])

    assert "server" not in told
    for each in ("session file", "snapshots", "SSD", "backups", "paths", "times"):
        assert each in told or each.rstrip("s") in told
