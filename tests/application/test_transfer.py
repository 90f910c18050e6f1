"""The whole log leaves as JSON lines and comes back the same: positions, chain, rows, words."""

import errno
import json
import os
from contextlib import suppress
from hashlib import sha256

import pytest
from threadbook import Memory
from threadbook.adapters import wiring
from threadbook.adapters.store import StoreMismatch, chain, transfer
from threadbook.adapters.store.transfer import TransferError, write_log
from threadbook.projections.catalog import SYNCHRONOUS

from tests.application.homes import FERN, HOUR_S, MOSS, Session, content
from tests.application.planted import PLANTED, Planted, left_in

pytestmark = pytest.mark.usefixtures("database")  # Exported from the file and from a server.


@pytest.fixture
def lived(home):
    """Sessions, uses, outside text, a forgetting, and words in many scripts."""
    home.write(Planted(cwd=FERN), Session(number=2, cwd=MOSS), Session(number=3, cwd=FERN))
    home.run()
    home.later(HOUR_S).memory.pollute(Session(number=2).id, "web_search")
    home.memory.forget(Planted().id)
    home.later(HOUR_S).run()
    return home


@pytest.fixture
def exported(lived, tmp_path):
    lived.file = tmp_path / "log.jsonl"
    lived.end = lived.memory.export_log(lived.file)
    return lived


def imported(home, file, place):
    Memory.import_log(file, place, simulated=True, settings={"database": ""})
    return Memory.open(place, clock=lambda: home.now, settings={"database": ""})


def rows(memory):
    with memory.store.reading() as view:
        return {projection.NAME: view.rows(projection, ()) for projection in SYNCHRONOUS}


def words(memory):
    with memory.store.reading() as view:
        return sorted(view.bodies())


def lines_of(file):
    return [json.loads(line) for line in file.read_bytes().splitlines()]


def test_a_log_comes_back_with_the_same_chain_rows_and_words(exported, tmp_path):
    with imported(exported, exported.file, tmp_path / "new") as memory:
        assert memory.verify().ok
        assert memory.store.replay_verify() == []
        assert rows(memory) == rows(exported.memory)
        assert words(memory) == words(exported.memory)
        assert memory.store.head().chain == exported.memory.store.head().chain
        assert memory.store.erasures() == exported.memory.store.erasures()


def test_the_first_run_in_the_new_home_writes_the_same_folders(exported, tmp_path):
    with imported(exported, exported.file, tmp_path / "new") as memory:
        memory.run(sessions=[exported.sessions])

    for root in exported.roots():
        assert content(tmp_path / "new" / "memories" / "v1" / root.name) == content(root)


def test_what_was_forgotten_is_in_no_line_and_stays_forgotten(exported, tmp_path):
    text = exported.file.read_text()
    assert not [word for word in PLANTED.values() if word in text]

    with imported(exported, exported.file, tmp_path / "new") as memory:
        memory.run(sessions=[exported.sessions])

    assert left_in(tmp_path / "new", *PLANTED.values()) == []


def test_a_second_export_of_the_same_moment_differs_in_nothing_but_its_time(exported, tmp_path):
    with imported(exported, exported.file, tmp_path / "new") as memory:
        memory.export_log(tmp_path / "again.jsonl")

    first, again = lines_of(exported.file), lines_of(tmp_path / "again.jsonl")
    assert first[1:-1] == again[1:-1]
    assert (first[-1]["chain"], first[-1]["events"]) == (again[-1]["chain"], again[-1]["events"])


def test_an_export_is_private_and_replaces_nothing(exported):
    before = exported.file.read_bytes()

    with pytest.raises(TransferError, match="is there already"):
        exported.memory.export_log(exported.file)

    assert exported.file.stat().st_mode & 0o777 == 0o600
    assert exported.file.read_bytes() == before
    assert [p.name for p in exported.file.parent.glob(".*part")] == []


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
@pytest.mark.skipif(not hasattr(os, "O_TMPFILE"), reason="every file has a name here")
def test_who_is_killed_while_exporting_leaves_no_words_behind(lived, tmp_path, monkeypatch):
    folder = tmp_path / "out"
    folder.mkdir()
    seen = []

    def looked(store, out):
        told = write_log(store, out)
        seen.extend(os.listdir(folder))
        return told

    monkeypatch.setattr(transfer, "write_log", looked)

    lived.memory.export_log(folder / "log.jsonl")

    assert seen == []
    assert os.listdir(folder) == ["log.jsonl"]


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_where_no_file_has_two_names_or_none_an_export_is_whole_too(lived, tmp_path, monkeypatch):
    def refused(*_, **__):
        raise PermissionError(errno.EPERM, "Operation not permitted")

    folder = tmp_path / "stick"
    folder.mkdir()

    with monkeypatch.context() as patched:
        patched.delattr(os, "O_TMPFILE", raising=False)
        patched.setattr(os, "link", refused)
        lived.memory.export_log(folder / "log.jsonl")
    with pytest.raises(TransferError, match="is there already"):
        lived.memory.export_log(folder / "log.jsonl")

    assert os.listdir(folder) == ["log.jsonl"]
    assert (folder / "log.jsonl").stat().st_mode & 0o777 == 0o600
    with imported(lived, folder / "log.jsonl", tmp_path / "new") as memory:
        assert rows(memory) == rows(lived.memory)


def test_a_home_with_events_of_its_own_takes_in_no_other_log(exported, tmp_path):
    with imported(exported, exported.file, tmp_path / "new") as memory:
        position = memory.status()["events"]

    with pytest.raises(TransferError, match="choose another --home"):
        Memory.import_log(
            exported.file, tmp_path / "new", simulated=True, settings={"database": ""}
        )

    again = Memory.open(tmp_path / "new", clock=lambda: exported.now, settings={"database": ""})
    with again as memory:
        assert memory.status()["events"] == position


def cut(written):
    return written[: len(written) // 2]


def without_a_line(written):
    lines = written.split(b"\n")
    return b"\n".join(lines[:7] + lines[8:])


def with_another_actor(written):
    return written.replace(b'"actor":"pipeline"', b'"actor":"human:cli"', 1)


def with_another_word(written):
    at = written.rindex(b'"text":"') + len(b'"text":"')
    return written[:at] + b"x" + written[at:]


def of_a_later_format(written):
    return written.replace(b'"version":1', b'"version":2', 1)


DAMAGES = {
    "cut": (cut, "export"),
    "a line less": (without_a_line, "does not belong here"),
    "another actor": (with_another_actor, "was changed"),
    "another word": (with_another_word, "was changed"),
    "a later format": (of_a_later_format, "update it"),
    "empty": (lambda _: b"", "no last line"),
    "no json": (lambda _: b"# a page\n", ":1:"),
    "nested": (lambda _: b"[" * 100_000, ":1:"),
    "no end": (lambda written: written[: written.rindex(b'{"line":"end"')], "no last line"),
}


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_file_that_is_no_whole_log_leaves_the_home_new(exported, tmp_path, damage):
    harm, told = DAMAGES[damage]
    exported.file.write_bytes(harm(exported.file.read_bytes()))

    with pytest.raises(TransferError, match=told):
        imported(exported, exported.file, tmp_path / "new")

    with Memory.open(tmp_path / "new", clock=lambda: exported.now) as memory:
        assert [each.type for each in memory.log()] == ["store.opened"]
        memory.run(sessions=[exported.sessions])
        assert memory.verify().ok


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_an_imported_simulated_log_stays_simulated(exported, tmp_path):
    imported(exported, exported.file, tmp_path / "new").close()

    with pytest.raises(StoreMismatch, match="simulated"):
        Memory.open(tmp_path / "new")


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_no_room_leaves_no_half_a_file(exported, tmp_path):
    full = tmp_path / "no" / "such" / "folder" / "log.jsonl"

    with pytest.raises(TransferError, match="cannot be written"):
        exported.memory.export_log(full)

    assert not os.path.lexists(full.parent)


def forged(lines):
    """A file whose last line fits whatever stands before it, as somebody could write it."""
    last, rows, texts, written = chain.START, 0, 0, b""
    for line in lines[:-1]:
        if line["line"] == "event":
            data = json.dumps(line["data"], separators=(",", ":"))
            columns = [line[name] for name in chain.COLUMNS.split(", ")[:-1]]
            with suppress(OverflowError):
                last = chain.link(last, (*columns, data))
            rows += 1
        texts += line["line"] == "body"
        written += json.dumps(line, separators=(",", ":")).encode() + b"\n"
    end = {
        "events": rows,
        "bodies": texts,
        "chain": last.hex(),
        "digest": sha256(written).hexdigest(),
    }
    return written + json.dumps(lines[-1] | end).encode() + b"\n"


def at_event(**values):
    return lambda lines: lines[3].update(values)


def at_body(**values):
    return lambda lines: lines[-2].update(values)


def a_word_of_the_forgotten(lines):
    owner = f"thread:{Planted().id}"
    lines.insert(-1, {"line": "body", "ref": "a" * 32, "owner": owner, "text": "kestrel"})


def two_rows_in_one_place(lines):
    for line in lines[3:5]:
        line.update(stream="somebody's", version=1)


FORGERIES = {
    "a number that no database takes": (at_event(version=2**63), "version"),
    "a time behind all calendars": (at_event(recorded_at_ms=2**62), "recorded_at_ms"),
    "a time that runs backward": (at_event(recorded_at_ms=0), "does not belong here"),
    "two rows in one place": (two_rows_in_one_place, "already there"),
    "two texts of one ref": (lambda lines: lines[-2].update(ref=lines[-3]["ref"]), "already there"),
    "a text that counts as erased": (at_body(owner=""), "owner"),
    "a ref that is none": (at_body(ref="gone:1"), "ref"),
    "a word of the forgotten": (a_word_of_the_forgotten, "does not belong here"),
    "tables of a newer program": (lambda lines: lines[1]["data"].update(schema=99), "newer"),
    "a line behind the last": (lambda lines: lines.append(lines[-1]), "does not belong|behind"),
}


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_line_that_no_export_writes_is_refused_although_every_sum_is_right(
    exported, tmp_path, forgery
):
    harm, told = FORGERIES[forgery]
    lines = lines_of(exported.file)
    exported.file.write_bytes(forged(lines))
    imported(exported, exported.file, tmp_path / "sound").close()

    harm(lines)
    exported.file.write_bytes(forged(lines))

    with pytest.raises((TransferError, StoreMismatch), match=told):
        imported(exported, exported.file, tmp_path / "new")
    with Memory.open(tmp_path / "new", clock=lambda: exported.now) as memory:
        assert [each.type for each in memory.log()] == ["store.opened"]


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_an_import_that_was_killed_leaves_a_home_that_is_new(home, database, tmp_path):
    new = tmp_path / "new"
    wiring.open_store(new, clock=lambda: home.now, create=True, announce=False).close()

    with Memory.open(new, clock=lambda: home.now) as memory:
        assert [each.type for each in memory.log()] == ["store.opened"]

    with pytest.raises(StoreMismatch, match="simulated"):
        Memory.open(new)
