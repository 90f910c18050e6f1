"""Where the file lies: a folder that is ours, on a file system whose locks and memory maps hold.

SQLite's WAL needs shared memory and POSIX locks that all processes see. Network file systems and
the bridges of virtual machines (9p, drvfs: Windows drives under WSL) give neither, and lose data
without a word; they are refused before anything is written.
"""

import os
import sys
from pathlib import Path, PurePosixPath

from .errors import StoreUnreadable

REFUSED = {
    "9p",
    "drvfs",
    "nfs",
    "nfs3",
    "nfs4",
    "cifs",
    "smb",
    "smb2",
    "smb3",
    "smbfs",
    "afs",
    "afpfs",
    "ncpfs",
    "coda",
    "ceph",
    "lustre",
    "glusterfs",
    "gfs2",
    "ocfs2",
    "beegfs",
    "davfs",
    "webdav",
    "vboxsf",
    "vmhgfs",
    "prl_fs",
    "fuse.sshfs",
    "fuse.rclone",
    "fuse.s3fs",
    "fuse.davfs2",
    "fuse.glusterfs",
    "fuse.ceph",
    "fuse.cephfs",
    "fuse.vmhgfs-fuse",
    "fuse.gcsfuse",
    "fuse.smbnetfs",
}


def refuse_network(home: Path, mounts: str | None = None) -> None:
    """Raise `StoreUnreadable` where `home` lies on one; `mounts` is the system's table as text."""
    table = mount_table() if mounts is None else mounts
    kind = file_system_of(home.absolute() if mounts is not None else real(home), table)
    if kind in REFUSED:
        raise StoreUnreadable(
            f"{home} lies on a {kind} file system, where SQLite's locks do not hold;"
            " choose a folder on a local disk with --home (under WSL: inside the Linux home)"
        )


def real(home: Path) -> Path:
    """Without links. A loop of them, on which `resolve` gives up, is told when it is opened."""
    return Path(os.path.realpath(home))


def file_system_of(path: Path, table: str) -> str | None:
    """The type of the mount that a path is in: the longest mount point above it."""
    best: tuple[int, str | None] = (-1, None)
    for point, kind in mounts_in(table):
        if PurePosixPath(path).is_relative_to(point) and len(point.parts) >= best[0]:
            best = len(point.parts), kind
    return best[1]


def mounts_in(table: str) -> list[tuple[PurePosixPath, str]]:
    """Linux's /proc/self/mountinfo, or what `mount` prints on macOS."""
    found = []
    for line in table.splitlines():
        words = line.split()
        if " - " in line and len(words) > 6:
            kind = words[words.index("-") + 1]
            # A Windows drive is 9p for the kernel; its options say what is behind it.
            found.append((PurePosixPath(unescaped(words[4])), kind.lower()))
        elif " on /" in line and line.endswith(")"):
            point, _, options = line.partition(" on ")[2].rpartition(" (")
            found.append((PurePosixPath(point), options.split(",")[0].rstrip(")").lower()))
    return found


def unescaped(word: str) -> str:
    for escape, character in ((r"\040", " "), (r"\011", "\t"), (r"\012", "\n"), (r"\134", "\\")):
        word = word.replace(escape, character)
    return word


def mount_table() -> str:
    """The system's table, or nothing where it cannot be had: then nothing is refused."""
    try:
        if sys.platform == "linux":
            return Path("/proc/self/mountinfo").read_text(errors="replace")
        import subprocess  # Only here is it needed, and `status` has no time to load it.

        listed = subprocess.run(["/sbin/mount"], capture_output=True, text=True, check=False)
        return listed.stdout
    except OSError:
        return ""


def sync_folder(folder: Path) -> None:
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
