"""What was erased can be opened by no key file that has followed, and everything else by each."""

import secrets
import shutil
import sqlite3
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st
from threadbook.adapters.store.keys import SCHEMA, KeyFile, above, bits_of, child, puncture

# Few bytes out of few values, so that paths meet: whole ones, and groups of them.
parts = st.sampled_from([0, 1, 2, 127, 128, 255])
paths = st.tuples(parts, parts).map(bytes)
erased = st.lists(st.one_of(paths, parts.map(lambda part: bytes([part]))), max_size=6)
EVERY = [bytes([a, b]) for a in (0, 1, 2, 127, 128, 255) for b in (0, 1, 2, 127, 128, 255)]


def tree(secret):
    db = sqlite3.connect(":memory:", isolation_level=None)
    for statement in SCHEMA:
        db.execute(statement)
    db.execute("INSERT INTO nodes VALUES ('', ?)", (secret,))
    return db


def key(db, path):
    found = above(db, bits_of(path))
    if found is None:
        return None
    place, node = found
    for bit in bits_of(path)[len(place) :]:
        node = child(node, bit)
    return node


@settings(max_examples=60, deadline=None)
@given(data=st.data(), gone=erased)
def test_a_key_is_gone_exactly_where_its_path_or_its_group_was_erased(data, gone):
    secret = secrets.token_bytes(32)
    before, one, other = tree(secret), tree(secret), tree(secret)

    for path in gone:
        puncture(one, bits_of(path))
    for path in data.draw(st.permutations(gone)):
        puncture(other, bits_of(path))

    for path in EVERY:
        wanted = None if any(path.startswith(each) for each in gone) else key(before, path)
        assert key(one, path) == key(other, path) == wanted
    nodes = {node for (node,) in one.execute("SELECT node FROM nodes")}
    for path in gone:  # No node on the way to it is left, from which it would follow again.
        bits, node = bits_of(path), secret
        for bit in bits:
            assert node not in nodes
            node = child(node, bit)
        assert node not in nodes


def test_the_bytes_of_an_erased_node_leave_the_file_and_a_copy_can_follow_later():
    with TemporaryDirectory() as folder:
        home, copy = Path(folder, "home"), Path(folder, "copy")
        home.mkdir()
        copy.mkdir()
        keys = KeyFile(home)
        assert keys.make("m") == keys.make("another") == "m"
        shutil.copy(keys.path, copy / "keys.sqlite")
        copied = KeyFile(copy)
        path, neighbour = bytes(12), bytes(11) + b"\x01"
        root = sqlite3.connect(keys.path).execute("SELECT node FROM nodes").fetchone()[0]
        known, kept = keys.key(path), keys.key(neighbour)
        assert root in keys.path.read_bytes()

        keys.erase([path], applied=3)

        assert root not in b"".join(file.read_bytes() for file in home.iterdir())
        assert (keys.key(path), keys.key(neighbour), keys.applied()) == (None, kept, 3)
        assert (copied.key(path), copied.applied()) == (known, 0)
        copied.erase([path], applied=3)
        assert (copied.key(path), copied.key(neighbour)) == (None, kept)
        assert (keys.path.stat().st_mode & 0o777) == 0o600
        keys.close()
        copied.close()
