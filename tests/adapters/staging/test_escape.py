"""Hostile calls and file names: nothing outside staging changes, and each ends in a clear error."""

import json
import os
import socket
import time
from itertools import count

import pytest
from threadbook.adapters.staging.box import RESULT_CHARS_MAX, TOOLS, Box, Limits
from threadbook.domain.path import DEPTH_MAX, names_of

from tests.adapters.staging.swapper import exchange, swapping

CANARY = "xanthippe"
RACE_S = 2.0
GIVEN_UP_S = 30.0
MET_MIN = 20
needs_exchange = pytest.mark.skipif(exchange() is None, reason="renameat2 is Linux's")


@pytest.fixture
def house(tmp_path):
    """A home with what must not be reached, and a staging folder in it."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.md").write_text(CANARY)
    (tmp_path / "MEMORY.md").write_text(CANARY)
    (tmp_path / "staging").mkdir(mode=0o700)
    root = tmp_path / "staging" / "box"
    root.mkdir(mode=0o700)
    (root / "MEMORY.md").write_text("mine\n")
    (root / "raw_memories.md").write_text("inputs\n")
    (root / "skills" / "Résumé").mkdir(parents=True)
    (root / "skills" / "Résumé" / "SKILL.md").write_text("skill\n")
    return tmp_path


def all_but(house, *left_out):
    """Every byte, name and mode below, without what lies in these folders."""
    seen = {}
    for folder, folders, files in os.walk(house):
        folders[:] = [each for each in folders if os.path.join(folder, each) not in left_out]
        for name in [*folders, *files]:
            path = os.path.join(folder, name)
            told = os.lstat(path)
            content = b""
            if name in files and os.path.isfile(path) and not os.path.islink(path):
                with open(path, "rb") as file:
                    content = file.read()
            seen[path] = (told.st_mode, told.st_nlink, told.st_ino, content)
    return seen


def call(box, tool, **arguments):
    return box.call(tool, json.dumps(arguments))


def each_tool(path):
    """Every tool with the path where it takes one."""
    return {
        "list": {"path": path, "start": None},
        "read": {"path": path, "offset": None},
        "search": {"text": "e", "path": path, "ignore_case": False, "start": None},
        "write": {"path": path, "content": "planted"},
        "replace": {"path": path, "old": "mine", "new": "yours"},
        "move": {"path": path, "to": "moved.md"},
        "delete": {"path": path},
    }


NAMES = {
    "the parent": "..",
    "a file beside": "../MEMORY.md",
    "two up": "../../outside/secret.md",
    "up in the middle": "skills/../../../outside/secret.md",
    "up at the end": "skills/..",
    "absolute": "/etc/passwd",
    "absolute, twice": "//etc/passwd",
    "the system's": "/proc/self/root/etc/passwd",
    "a descriptor": "/dev/fd/0",
    "backslashes": "..\\..\\outside\\secret.md",
    "a share": "\\\\server\\share\\x.md",
    "a drive": "C:/Windows/x.md",
    "a drive without a root": "c:x.md",
    "another stream of a file": "MEMORY.md:hidden",
    "a home": "~/x.md",
    "another's home": "~root/x.md",
    "git's folder": ".git/config",
    "git's hook": ".git/hooks/post-commit",
    "git's folder in capitals": "skills/.GIT/config",
    "git's folder on a Mac": ".g\u200cit/config",
    "git's short name": "git~1/config",
    "hidden": ".bashrc",
    "hidden below": "skills/.hidden/SKILL.md",
    "a desktop's": ".DS_Store",
    "here": "./MEMORY.md",
    "NUL": "MEMORY.md\0.txt",
    "a line break": "MEM\nORY.md",
    "a colour": "\x1b[31mMEMORY.md",
    "turned round": "MEMORY\u202edm.exe",
    "unseen": "MEMORY\u200b.md",
    "a byte order mark": "\ufeffMEMORY.md",
    "a line separator": "MEMORY\u2028.md",
    "half of a character": "MEMORY\ud800.md",
    "a device": "nul",
    "a device with an ending": "skills/CON.md",
    "a device with two endings": "com1.tar.gz",
    "a device with a raised digit": "lpt¹.md",
    "a device before a space": "aux .md",
    "the console": "conin$",
    "a dot at the end": "MEMORY.md.",
    "a space at the end": "MEMORY.md ",
    "a space for a name": "skills/ /x.md",
    "a name of 256 bytes": "x" * 256,
    "a name of 256 bytes in 128 letters": "ü" * 128,
    "a path of megabytes": "a" * 3_000_000,
    "very many names": "a/" * 100_000 + "x",
    "one name too deep": "/".join("d" * (DEPTH_MAX + 1)),
    "an empty name": "skills//x.md",
    "a slash at the end": "notes.md/",
    "a file for a folder": "MEMORY.md/x.md",
}


@pytest.mark.parametrize("path", NAMES.values(), ids=NAMES)
def test_no_tool_takes_a_hostile_path(house, path):
    root = house / "staging" / "box"
    before = all_but(house)
    with Box(root) as box:
        for tool, arguments in each_tool(path).items():
            answer = call(box, tool, **arguments)

            if tool in ("list", "search") and path == "notes.md/":
                continue  # A folder may be named with a slash; this one is not there.
            assert answer.startswith("error: "), (tool, answer)
            assert len(answer) < 800
            assert CANARY not in answer
            assert answer.isprintable()
        moved = call(box, "move", path="MEMORY.md", to=path)

    assert moved.startswith("error: ")
    assert all_but(house) == before


@pytest.mark.parametrize(
    "path", ["memory.md", "MEMORY.MD", "SKILLS/x.md", "skills/re\u0301sume\u0301/x.md",
             "skills/RÉSUMÉ/SKILL.md", "\u017fkills/x.md", "RAW_MEMORIES.md"],
)  # fmt: skip
def test_two_names_that_are_one_elsewhere_are_refused(house, path):
    before = all_but(house)
    with Box(house / "staging" / "box") as box:
        written = call(box, "write", path=path, content="planted")
        moved = call(box, "move", path="skills/Résumé/SKILL.md", to=path)

    for answer in (written, moved):
        assert answer.startswith("error: ")
        assert "only in upper case or accents" in answer or "made from the sessions" in answer
    assert all_but(house) == before


def link_to_a_file(root, outside):
    (root / "trap.md").symlink_to(outside / "secret.md")


def link_to_nothing(root, outside):
    (root / "trap.md").symlink_to(outside / "planted.md")


def link_to_itself(root, outside):
    (root / "trap.md").symlink_to("trap.md")


def link_within(root, outside):
    (root / "trap.md").symlink_to("MEMORY.md")


def second_name(root, outside):
    (root / "trap.md").hardlink_to(outside / "secret.md")


def pipe(root, outside):
    os.mkfifo(root / "trap.md")


def socket_(root, outside):
    here = os.getcwd()
    os.chdir(root)
    with socket.socket(socket.AF_UNIX) as made:
        made.bind("trap.md")
    os.chdir(here)


def folder(root, outside):
    (root / "trap.md").mkdir()
    (root / "trap.md" / "x").write_text("x")


def device(root, outside):
    try:
        os.mknod(root / "trap.md", 0o600 | 0o020000, os.makedev(1, 5))  # /dev/zero has no end.
    except PermissionError:
        pytest.skip("only root makes devices")


TRAPS = [link_to_a_file, link_to_nothing, link_to_itself, link_within, second_name, pipe, socket_,
         folder, device]  # fmt: skip


@pytest.mark.parametrize("trap", TRAPS)
def test_what_lies_in_the_place_of_a_file_is_left_alone(house, trap):
    root = house / "staging" / "box"
    trap(root, house / "outside")
    before = all_but(house)
    started = time.monotonic()
    with Box(root) as box:
        for tool in ("read", "write", "replace", "move", "delete"):
            answer = call(box, tool, **each_tool("trap.md")[tool])

            assert answer.startswith("error: 'trap.md' is no plain file"), answer
            assert "list shows what can be used" in answer
        onto = call(box, "move", path="MEMORY.md", to="trap.md")
        listed = call(box, "list", path=None, start=None)
        found = call(box, "search", text=CANARY, path=None, ignore_case=True, start=None)

    assert onto.startswith("error: there is already trap.md")
    assert ("trap.md" in listed) == (trap is folder)
    assert found == "0 finds"
    assert all_but(house) == before
    assert time.monotonic() - started < 10  # Nobody waited for a pipe.


def test_a_folder_that_is_a_link_is_not_entered(house):
    root = house / "staging" / "box"
    (root / "linked").symlink_to(house / "outside", target_is_directory=True)
    (root / "up").symlink_to("..", target_is_directory=True)
    before = all_but(house)
    with Box(root) as box:
        for path in ("linked/secret.md", "linked/new.md", "linked/new/new.md", "up/planted.md"):
            for tool, arguments in each_tool(path).items():
                answer = call(box, tool, **arguments)

                assert answer.startswith("error: "), (tool, answer)
                assert "links are not followed" in answer or "no folder" in answer
            assert call(box, "move", path="MEMORY.md", to=path).startswith("error: ")
        assert "linked" not in call(box, "list", path=None, start=None)

    assert all_but(house) == before


def test_a_staging_folder_that_is_a_link_opens_no_box(house):
    link = house / "staging" / "link"
    link.symlink_to(house / "outside", target_is_directory=True)

    with pytest.raises(Exception, match="cannot be opened"):
        Box(link)


CALLS = {
    "a shell": ("shell", '{"cmd": "cat /etc/passwd"}'),
    "a program": ("exec_command", '{"cmd": ["rm", "-rf", "/"]}'),
    "an agent of its own": ("collaboration.spawn_agent", '{"fork_turns": "none"}'),
    "a page": ("web_search", '{"query": "x"}'),
    "a tool's method": ("__init__", "{}"),
    "no name": ("", "{}"),
    "a name of megabytes": ("x" * 3_000_000, "{}"),
    "no JSON": ("write", "path=MEMORY.md"),
    "two objects": ("delete", '{"path": "MEMORY.md"}{"path": "MEMORY.md"}'),
    "a list": ("delete", '["MEMORY.md"]'),
    "a number": ("delete", '{"path": 1}'),
    "null": ("delete", '{"path": null}'),
    "a nested path": ("delete", '{"path": {"path": "MEMORY.md"}}'),
    "one too many": ("delete", '{"path": "MEMORY.md", "recursive": true}'),
    "one too few": ("write", '{"path": "MEMORY.md"}'),
    "a text for a truth": (
        "search",
        '{"text": "e", "path": null, "ignore_case": "yes", "start": null}',
    ),
    "half of a character in JSON": ("write", r'{"path": "x.md", "content": "\ud800"}'),
    "half of a character": ("write", '{"path": "x.md", "content": "\ud800"}'),
    "NUL in a text": ("write", r'{"path": "x.md", "content": "a\u0000b"}'),
    "endless nesting": ("write", '{"path":' * 100_000),
    "an endless number": ("read", '{"path": "MEMORY.md", "offset": ' + "9" * 100_000 + "}"),
    "a place before the beginning": ("read", '{"path": "MEMORY.md", "offset": -1}'),
    "a place behind the end": ("read", '{"path": "MEMORY.md", "offset": 99999999999999999999}'),
    "a page before the first": ("list", '{"path": null, "start": -1}'),
    "a blank search": (
        "search",
        '{"text": " ", "path": null, "ignore_case": true, "start": null}',
    ),
    "a replacement of nothing": ("replace", '{"path": "MEMORY.md", "old": "", "new": "x"}'),
    "an input's end": ("delete", '{"path": "raw_memories.md"}'),
    "an input's change": ("replace", '{"path": "raw_memories.md", "old": "inputs", "new": "x"}'),
    "an input's place": ("move", '{"path": "raw_memories.md", "to": "MEMORY2.md"}'),
    "a move among the inputs": ("move", '{"path": "MEMORY.md", "to": "rollout_summaries/x.md"}'),
    "a new input": ("write", '{"path": "rollout_summaries/x.md", "content": "x"}'),
    "a file for all inputs": ("write", '{"path": "rollout_summaries", "content": "x"}'),
    "a note of nobody's": ("write", '{"path": "extensions/ad_hoc/notes/x.md", "content": "x"}'),
    "the diff": ("write", '{"path": "PHASE2_workspace_diff.md", "content": "x"}'),
    "a move onto another": ("move", '{"path": "MEMORY.md", "to": "skills/Résumé/SKILL.md"}'),
    "a folder's move": ("move", '{"path": "skills", "to": "other"}'),
    "a folder's end": ("delete", '{"path": "skills"}'),
    "a file over a folder": ("write", '{"path": "skills", "content": "x"}'),
}


@pytest.mark.parametrize(("tool", "arguments"), CALLS.values(), ids=CALLS)
def test_no_hostile_call_is_obeyed(house, tool, arguments):
    before = all_but(house)
    with Box(house / "staging" / "box") as box:
        answer = box.call(tool, arguments)

        assert answer.startswith("error: ")
        assert 20 < len(answer) < 1_500
        assert box.calls == {tool if tool in TOOLS else "unknown": 1}
        assert box.done[0].refused
        assert box.bytes_written == 0
    assert all_but(house) == before


def test_a_gigabyte_is_not_written(house):
    root = house / "staging" / "box"
    before = all_but(house)
    arguments = '{"path": "big.md", "content": "'.ljust(1 << 30, "x")
    with Box(root) as box:
        answer = box.call("write", arguments)
        del arguments
        more = call(box, "write", path="big.md", content="x" * (box.limits.bytes_file + 1))

    assert answer.startswith("error: the arguments are too long; 1,048,576 are the most")
    assert more.startswith("error: the file would have 1,048,577 bytes")
    assert all_but(house) == before


def test_a_gigabyte_in_pieces_is_not_written_either(house):
    root = house / "staging" / "box"
    limits = Limits(bytes_total=10_000, bytes_file=3_000)
    with Box(root, limits) as box:
        for n in range(20):
            call(box, "write", path=f"{n}.md", content="x" * 3_000)
        grown = [call(box, "replace", path="0.md", old="x", new="xx") for _ in range(3)]

        assert box.bytes_written == 9_000
        assert sum(path.stat().st_size for path in root.glob("[0-9]*.md")) == 9_000
    assert all(answer.startswith("error: ") for answer in grown)


def test_a_file_does_not_grow_beyond_its_bound_by_replacing(house):
    with Box(house / "staging" / "box", Limits(bytes_file=100)) as box:
        answer = call(box, "replace", path="MEMORY.md", old="mine", new="ü" * 50)

        assert answer == "error: the file would have 101 bytes; 100 are the most; keep what a" + (
            " later session will need"
        )


def test_a_million_files_are_not_made(house):
    root = house / "staging" / "box"
    limits = Limits(files=20, calls=100, calls_turn=1_000)
    with Box(root, limits) as box:
        answers = [call(box, "write", path=f"a{n}/b{n}/{n}.md", content="") for n in range(1_000)]

        assert sum(not answer.startswith("error: ") for answer in answers) == 20
        assert sum(1 for path in root.rglob("*") if path.is_file()) == box.files == 23
        assert "20 more files than were given are the most; delete some" in answers[20]
        assert answers[-1] == "error: all 100 calls of this run are used; call finish"
        assert box.spent() == "calls"
        assert box.calls == {"write": 1_000}
        assert len(box.done) == limits.calls
        assert call(box, "finish").startswith("finished")
        assert box.finished


def test_a_million_calls_of_one_reply_are_not_made(house):
    with Box(house / "staging" / "box", Limits(calls_turn=3)) as box:
        answers = [call(box, "list", path=None, start=None) for _ in range(4)]
        box.next_turn()
        after = call(box, "list", path=None, start=None)

    assert [answer.startswith("error: ") for answer in answers] == [False, False, False, True]
    assert not after.startswith("error: ")


def test_nothing_is_done_when_the_time_is_over(house):
    clock = iter([0.0, 9.0, 10.0, 11.0, 12.0])
    with Box(house / "staging" / "box", Limits(wall_s=10.0), clock=lambda: next(clock)) as box:
        in_time = call(box, "write", path="x.md", content="in time")
        late = call(box, "write", path="x.md", content="late")
        told = box.spent()
        finished = call(box, "finish")
        text = (house / "staging" / "box" / "x.md").read_text()

    assert not in_time.startswith("error: ")
    assert late == "error: the 10 seconds of this run are over; call finish"
    assert told == "wall"
    assert finished.startswith("finished")
    assert text == "in time"


def test_nothing_is_done_after_the_end(house):
    with Box(house / "staging" / "box") as box:
        call(box, "finish")
        answer = call(box, "write", path="x.md", content="x")

    assert answer.startswith("error: the memory was finished")
    assert not (house / "staging" / "box" / "x.md").exists()


def test_no_answer_is_longer_than_a_model_is_given(house):
    root = house / "staging" / "box"
    (root / "one_line.md").write_text("ü" * 100_000)
    (root / "lines.md").write_text("".join(f"line {n} of e\n" for n in range(10_000)))
    for n in range(300):
        (root / f"{n:03}-{'x' * 200}.md").write_text("e")

    with Box(root) as box:
        for tool, path, text in (
            ("read", "one_line.md", "ü" * 100_000),
            ("read", "lines.md", (root / "lines.md").read_text()),
        ):
            got, offset = "", 0
            while offset < len(text):
                answer = call(box, tool, path=path, offset=offset)
                head, _, body = answer.partition("\n\n")
                assert len(answer) <= RESULT_CHARS_MAX
                assert head.startswith(
                    f"characters {offset} to {offset + len(body)} of {len(text)}"
                )
                got, offset = got + body, offset + len(body)
            assert got == text
        for tool, arguments, entries in (
            ("list", {"path": None}, 305),
            ("search", {"path": None, "text": "e", "ignore_case": True}, 10_301),
        ):
            got, start = [], 0
            while start < entries:
                box.next_turn()
                answer = call(box, tool, start=start, **arguments)
                assert len(answer) <= RESULT_CHARS_MAX
                lines = answer.split("\n")[1:]
                assert lines
                got += lines
                start = len(got)
            assert len(got) == len(set(got)) == entries


class Naive:
    """The advice that is given everywhere: resolve the path, look whether it begins right, go."""

    def __init__(self, root):
        self.root = str(root)

    def resolved(self, names):
        path = os.path.realpath(os.path.join(self.root, *names))
        if not path.startswith(self.root + os.sep):
            raise PermissionError(path)
        return path

    def read(self, names, most):
        with open(self.resolved(names), "rb") as file:
            return file.read(most)

    def write(self, names, content):
        path = self.resolved(names)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(content)
        return False

    def size(self, names):
        return 0

    def close(self):
        pass


def attacked(house, *, naive):
    """How often a box is led outside while another process swaps names under it; and the tries."""
    root, outside = house / "staging" / "box", house / "outside"
    (root / "race").mkdir()
    (root / "race" / "secret.md").write_text("mine")
    (root / "race-link").symlink_to(outside, target_is_directory=True)
    (root / "secret.md").write_text("mine")
    (root / "secret-link.md").symlink_to(outside / "secret.md")
    limits = Limits(calls=10**9, calls_turn=10**9, bytes_total=10**12, wall_s=1e9)
    escapes = {"read": 0, "planted": 0, "tries": 0, "answered": 0, "refused": 0}
    with (
        Box(root, limits) as box,
        swapping(root / "race", root / "race-link"),
        swapping(root / "secret.md", root / "secret-link.md"),
    ):
        opened = box.paths
        if naive:
            box.paths = Naive(root)
        started = time.monotonic()
        for n in count():
            tried_s = time.monotonic() - started
            if naive:
                reached = escapes["read"] and escapes["planted"]
            else:
                met = min(escapes["answered"], escapes["refused"])
                reached = tried_s > RACE_S and met > MET_MIN
            if reached or tried_s > GIVEN_UP_S:
                break
            for path in ("race/secret.md", "secret.md"):
                answer = call(box, "read", path=path, offset=None)
                escapes["read"] += CANARY in answer
                escapes["answered"] += "mine" in answer
                escapes["refused"] += answer.startswith("error: ")
            call(box, "write", path=f"race/planted-{n % 8}.md", content="planted")
            escapes["tries"] += 1
            escapes["planted"] += len(list(outside.glob("planted-*")))
        box.paths = opened
    return escapes


@needs_exchange
def test_another_process_that_swaps_links_leads_nobody_outside(house):
    outside = all_but(house, str(house / "staging"))

    seen = attacked(house, naive=False)

    assert (seen["read"], seen["planted"]) == (0, 0)
    assert all_but(house, str(house / "staging")) == outside
    # The attack was one: it was met in the one state and in the other.
    assert min(seen["answered"], seen["refused"]) > MET_MIN


@needs_exchange
def test_the_attack_would_lead_a_resolver_by_text_outside(house):
    seen = attacked(house, naive=True)

    assert seen["read"] > 0
    assert seen["planted"] > 0


@needs_exchange
def test_a_write_over_a_name_that_is_swapped_for_a_link_never_goes_through_it(house):
    root, outside = house / "staging" / "box", house / "outside"
    before = all_but(house, str(house / "staging"))
    (root / "target.md").write_text("mine")
    (root / "link").symlink_to(outside / "secret.md")
    limits = Limits(calls=10**9, calls_turn=10**9, bytes_total=10**12, wall_s=1e9)
    written = refused = 0
    started = time.monotonic()
    with Box(root, limits) as box, swapping(root / "target.md", root / "link"):
        while min(written, refused) <= MET_MIN and time.monotonic() - started < GIVEN_UP_S:
            answer = call(box, "write", path="target.md", content="w")
            written += answer.startswith("target.md has")
            refused += answer.startswith("error: ")
            # A write may have replaced the link; then it is laid again.
            (root / ".again").symlink_to(outside / "secret.md")
            os.replace(root / ".again", root / "link")
            (root / ".mine").write_text("mine")
            os.replace(root / ".mine", root / "target.md")

    assert min(written, refused) > MET_MIN
    assert all_but(house, str(house / "staging")) == before


@pytest.mark.parametrize(
    "path", ["MEMORY.md", "skills/a b/SKILL.md", "ünï/c.md", "d/" * (DEPTH_MAX - 1) + "x",
             "x" * 255, "console.md", "com10.md", "a~b.md", "-rf.md", "$(rm).md", "a'b\".md"],
)  # fmt: skip
def test_an_honest_name_is_taken_and_can_be_published(house, path):
    with Box(house / "staging" / "box") as box:
        answer = call(box, "write", path=path, content="x")

    assert not answer.startswith("error: ")
    assert names_of(path) == path.split("/")
