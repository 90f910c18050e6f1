"""The staging folder: private, read back as plain texts, and gone whatever happened in it."""

import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from threadbook.adapters.staging import folder as folder_module
from threadbook.adapters.staging.folder import remove, staged, sweep
from threadbook.application.ports import Failure

TEXTS = {"MEMORY.md": "mine\n", "skills/one/SKILL.md": "ünï\r\n", "raw_memories.md": ""}


def test_it_is_private_filled_read_back_and_gone(tmp_path):
    umask = os.umask(0o002)

    with staged(tmp_path / "home", TEXTS, owner="abc-1-x") as (staging, left_out):
        modes = {
            path.relative_to(tmp_path).parts[-1]: path.stat().st_mode & 0o777
            for path in [tmp_path / "home", *(tmp_path / "home").rglob("*")]
        }
        found = staging.files()
        where = staging.path
    os.umask(umask)

    assert found == (TEXTS, {})
    assert left_out == {}
    assert set(modes.values()) == {0o700, 0o600}
    assert all(mode == (0o600 if name.endswith(".md") else 0o700) for name, mode in modes.items())
    assert where.parent == tmp_path / "home" / "staging"
    assert list(where.parent.iterdir()) == []


def test_two_runs_have_two_folders(tmp_path):
    with staged(tmp_path, {}, owner="a") as (one, _), staged(tmp_path, {}, owner="a") as (two, _):
        assert one.path != two.path


def test_a_path_that_no_consolidator_could_use_is_left_out_and_told(tmp_path):
    files = {
        "../up.md": "x",
        "/etc/x": "x",
        ".hidden": "x",
        "a:b.md": "x",
        "half.md": "\ud800",
        "Ä.md": "one",
        "ä.md": "two",
        "fine.md": "x",
    }

    with staged(tmp_path / "home", files, owner="a") as (staging, left_out):
        found = staging.files()

    assert found.files == {"fine.md": "x", "Ä.md": "one"}
    assert set(left_out) == {"../up.md", "/etc/x", ".hidden", "a:b.md", "half.md", "ä.md"}
    assert [path.name for path in tmp_path.iterdir()] == ["home"]


def test_it_is_gone_also_when_the_work_in_it_fails(tmp_path):
    with pytest.raises(ZeroDivisionError), staged(tmp_path, TEXTS, owner="a"):
        raise ZeroDivisionError

    assert list((tmp_path / "staging").iterdir()) == []


def test_what_is_no_plain_text_file_is_told_and_never_followed(tmp_path):
    outside = tmp_path / "outside.md"
    outside.write_text("theirs")
    with staged(tmp_path / "home", {"MEMORY.md": "x"}, owner="a") as (staging, _):
        root = staging.path
        (root / "link.md").symlink_to(outside)
        (root / "folder").symlink_to(tmp_path)
        (root / "hard.md").hardlink_to(outside)
        (root / "two.md").write_text("x")
        (root / "twin.md").hardlink_to(root / "two.md")
        os.mkfifo(root / "pipe.md")
        (root / "latin.md").write_bytes(b"\xff")
        (root / "zero.md").write_bytes(b"a\0b")
        (root / "big.md").write_bytes(b"x" * 101)
        (root / "nul").write_text("a device's name")
        (root / "end.").write_text("x")
        (root / "memory.MD").write_text("x")
        (root / os.fsdecode(b"\xff.md")).write_text("x")
        (root / "skills" / "one").mkdir(parents=True)
        (root / "skills" / "one" / "SKILL.md").write_text("x")
        (root / "Skills").write_text("x")
        (root / ".git").mkdir()
        (root / ".git" / "config").write_text("x")
        deep = root.joinpath(*["d"] * 20)
        deep.mkdir(parents=True)
        (deep / "x.md").write_text("x")
        with socket.socket(socket.AF_UNIX) as made:
            here = os.getcwd()
            os.chdir(root)
            made.bind("socket.md")
            os.chdir(here)
        found = staging.files(bytes_file=100)

    assert set(found.files) == {"MEMORY.md", "Skills"}
    refused = {path: why.split(" (")[0].split(";")[0] for path, why in found.refused.items()}
    plain = "it is no plain file"
    assert refused.pop("/".join(["d"] * 16)) == plain
    assert refused.pop("nul").endswith("is a device's name on Windows")
    assert refused.pop("end.").endswith("ends a name with a dot or a space")
    assert refused.pop("\\udcff.md").endswith("half of one")
    assert refused == {
        **dict.fromkeys(["link.md", "folder", "hard.md", "two.md", "twin.md", "pipe.md"], plain),
        "socket.md": plain,
        "latin.md": "it is no UTF-8 text",
        "zero.md": "it is no text",
        "big.md": "it is larger than 100 bytes",
        "memory.MD": "it is the same as MEMORY.md on other systems",
        "skills/one/SKILL.md": "it is the same as Skills on other systems",
    }
    assert outside.read_text() == "theirs"


def test_more_than_a_memory_holds_is_not_read(tmp_path):
    with staged(tmp_path, {}, owner="a") as (staging, _):
        for n in range(20):
            (staging.path / f"{n:02}.md").write_text("x" * 10)

        by_count = staging.files(files=5)
        by_size = staging.files(bytes_total=55)

    assert len(by_count.files) == 5
    assert list(by_count.refused) == ["05.md"]
    assert len(by_size.files) == 5
    assert by_size.refused


def test_what_killed_runs_left_is_swept_and_what_lives_stays(tmp_path):
    code = """
import os, sys
from pathlib import Path
from threadbook.adapters.staging.folder import staged
with staged(Path(sys.argv[1]), {"MEMORY.md": "x"}, owner="dead-1-x") as (staging, _):
    print(staging.path, flush=True)
    os.kill(os.getpid(), 9)
"""
    root = Path(__file__).parents[3]
    killed = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": str(root / "src")},
        capture_output=True,
        text=True,
    )
    left = Path(killed.stdout.strip())
    assert (left / "MEMORY.md").read_text() == "x"

    with staged(tmp_path, TEXTS, owner="live-2-y") as (staging, _):
        gone = sweep(tmp_path, lambda owner: owner == "live-2-y")

        assert gone == [left.name]
        assert staging.files().files == TEXTS
    assert not left.exists()
    assert sweep(tmp_path / "nowhere", lambda owner: False) == []


def test_a_link_in_the_place_of_staging_is_refused(tmp_path):
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "theirs.dead").mkdir(parents=True)
    (tmp_path / "staging").symlink_to(elsewhere)

    with pytest.raises(Failure, match="symbolic link"), staged(tmp_path, TEXTS, owner="a"):
        pass
    with pytest.raises(Failure, match="symbolic link"):
        sweep(tmp_path, lambda owner: False)

    assert [path.name for path in elsewhere.iterdir()] == ["theirs.dead"]


def test_whatever_it_holds_it_can_be_removed_without_following(tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir(mode=0o755)
    (outside / "theirs.md").write_text("theirs")
    root = tmp_path / "staging" / "x.a"
    deep = root
    deep.mkdir(parents=True)
    for _ in range(60):
        deep = deep / "d"
        deep.mkdir()
        (deep / "f").write_text("x")
    (root / "link").symlink_to(outside)
    (root / "d" / "hard").hardlink_to(outside / "theirs.md")
    os.mkfifo(root / "d" / "pipe")
    (root / os.fsdecode(b"\xff")).write_text("x")

    remove(root)

    assert not root.exists()
    assert list((tmp_path / "staging").iterdir()) == []
    assert (outside / "theirs.md").read_text() == "theirs"
    assert outside.stat().st_mode & 0o777 == 0o755
    remove(root)  # It is gone already, and nobody minds.


def odd_modes(folder):
    """Made and removed by a user to whom modes mean something."""
    root = folder / "staging" / "x.a"
    for at, mode in enumerate([0o000, 0o100, 0o400, 0o500, 0o200, 0o300]):
        (root / str(at) / "below" / "more").mkdir(parents=True)
        (root / str(at) / "below" / "file").write_text("x")
        (root / str(at) / "below" / "file").chmod(0)
        (root / str(at) / "below").chmod(mode)
        (root / str(at)).chmod(mode)
    deep = root.joinpath("deep", *["d"] * 30)
    deep.mkdir(parents=True)
    for _ in range(30):
        deep.chmod(0)
        deep = deep.parent
    (folder / "outside").mkdir(mode=0o500)
    (root / "link").symlink_to(folder / "outside")
    root.chmod(0)
    with folder_module.Resolver(folder) as resolver:
        told = {path: entry.kind for path, entry in resolver.files()}
    remove(root)
    assert told[("staging", "x.a")] == "other"
    assert not root.exists()
    assert (folder / "outside").stat().st_mode & 0o777 == 0o500


def test_folders_that_cannot_be_entered_are_removed_all_the_same():
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        nobody = 65_534
        if os.geteuid() == 0:
            os.chown(folder, nobody, nobody)
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                if os.geteuid() == 0:
                    os.setgid(nobody)
                    os.setuid(nobody)
                odd_modes(folder)
                code = 0
            finally:
                if code:
                    import traceback

                    traceback.print_exc()
                os._exit(code)
        _, status = os.waitpid(pid, 0)

        assert os.waitstatus_to_exitcode(status) == 0
        assert sorted(path.name for path in folder.iterdir()) == ["outside", "staging"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root removes everything")
def test_what_cannot_be_removed_is_said(tmp_path):
    (tmp_path / "x.a").mkdir()
    tmp_path.chmod(0o500)

    with pytest.raises(Failure, match="remove it by hand"):
        remove(tmp_path / "x.a")
    tmp_path.chmod(0o700)
