"""The promise: installing puts ours between what is there, and uninstalling gives every byte back.

Texts are drawn as people's files are: any JSON or TOML, any layout, with comments where there may
be some, hooks and servers of others among them. Where a text cannot be added to, it is refused
and nothing changes. Reach was counted: all of 300 JSON texts and 399 of 400 TOML texts were
installed into, one was refused; of 300 edits in between nine in ten left TOML.
"""

import json
import tomllib
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import event, given, settings
from hypothesis import strategies as st
from threadbook.adapters.install import CannotInstall
from threadbook.adapters.install.entries import bare

from tests.adapters.install.agents import Agents

WORDS = st.text(max_size=6)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | WORDS
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=8,
)
HANDLERS = st.fixed_dictionaries({"type": st.just("command"), "command": WORDS})
GROUPS = st.fixed_dictionaries(
    {"hooks": st.lists(HANDLERS, max_size=2)}, optional={"matcher": WORDS}
)
EVENTS = st.sampled_from(["SessionStart", "SessionEnd", "Stop", "PreToolUse"])
SETTINGS = st.tuples(
    st.dictionaries(WORDS, VALUES, max_size=3),
    st.fixed_dictionaries(
        {},
        optional={
            "hooks": st.dictionaries(EVENTS, st.lists(GROUPS, max_size=2), max_size=3),
            "mcpServers": st.dictionaries(
                WORDS.filter(lambda name: name != "threadbook"), VALUES, max_size=2
            ),
        },
    ),
    st.permutations(range(5)),
).map(lambda drawn: shuffled({**drawn[0], **drawn[1]}, drawn[2]))


def shuffled(table, order):
    names = list(table)
    return {names[n]: table[names[n]] for n in order if n < len(names)}


@st.composite
def json_files(draw):
    value = draw(SETTINGS)
    indent = draw(st.sampled_from([None, 1, 2, 4, "\t", 0]))
    separators = draw(st.sampled_from([None, (",", ":"), (" ,  ", " : ")]))
    text = json.dumps(value, indent=indent, separators=separators, ensure_ascii=draw(st.booleans()))
    text = text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
    text = (
        draw(st.sampled_from(["", "\n", " "])) + text + draw(st.sampled_from(["", "\n", "\n\n "]))
    )
    newline = draw(st.sampled_from(["\n", "\r\n"]))
    mark = draw(st.sampled_from(["", "\ufeff"]))
    return (mark + text.replace("\n", newline)).encode()


BARE = st.text("abcXYZ019_-", min_size=1, max_size=4)
KEYS = BARE | BARE.map(lambda key: f'"{key} # = [x]"') | BARE.map(lambda key: f"'{key}.\"'")
TOML_SCALARS = st.sampled_from(
    ["1", "-0x1F", "1e9", "nan", "-inf", "true", "1979-05-27T07:32:00Z", "07:32:00", '""', "''",
     '"a # b \\" ]"', "'c # \" }'", '"""\n[mcp_servers.threadbook]\n""\\""""', "'''x = 1\n''y'''",
     '"""a"""""', "'''[[hooks.x]]'''", '"\\u00fc日本"']
)  # fmt: skip
TOML_VALUES = st.recursive(
    TOML_SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda many: f"[{', '.join(many)}]")
        | st.lists(inner, max_size=3).map(lambda many: "[ # one\n" + ",\n# }\n".join(many) + "\n]")
        | st.lists(st.tuples(BARE, inner.filter(lambda v: "\n" not in v)), max_size=2).map(
            lambda pairs: "{ " + ", ".join(f"{k}{n} = {v}" for n, (k, v) in enumerate(pairs)) + " }"
        )
    ),
    max_leaves=5,
)
LINES = st.one_of(
    st.tuples(KEYS, TOML_VALUES).map(lambda pair: f"{pair[0]} = {pair[1]}"),
    st.tuples(KEYS, KEYS, TOML_VALUES).map(lambda each: f"{each[0]} . {each[1]}={each[2]}"),
    st.tuples(KEYS, TOML_VALUES).map(lambda pair: f"  {pair[0]} = {pair[1]} # why"),
    KEYS.map(lambda key: f"[{key}]"),
    KEYS.map(lambda key: f"[ x . {key} ] # [y]"),
    KEYS.map(lambda key: f"[[many.{key}]]"),
    st.sampled_from(
        ["# [mcp_servers.threadbook]", "", "   ", "[mcp_servers.x]", "[mcp_servers]",
         "mcp_servers.y.command = 'z'", "[[hooks.Stop]]", "mcp_servers = { z = {} }"]
    ),
)  # fmt: skip


@st.composite
def toml_files(draw):
    """Lines one by one, each kept where the whole is still TOML."""
    text = ""
    for line in draw(st.lists(LINES, max_size=9)):
        try:
            tomllib.loads(text + line + "\n")
        except tomllib.TOMLDecodeError:
            continue
        text += line + "\n"
    if draw(st.booleans()):
        text = text.removesuffix("\n")
    newline = draw(st.sampled_from(["\n", "\r\n"]))
    mark = draw(st.sampled_from(["", "\ufeff"]))
    return (mark + text.replace("\n", newline)).encode()


def parsed(name, content):
    text = content.decode().removeprefix("\ufeff")
    if name.endswith(".toml"):
        return tomllib.loads(text)
    return json.loads(text) if text.strip() else {}


def come_and_go(name, content, agent):
    with TemporaryDirectory() as folder:
        agents = Agents(Path(folder) / "user")
        agents.write(name, content)
        before = agents.files
        try:
            agents.install(agent)
        except CannotInstall:
            event("refused")
            assert agents.files == before
            return None
        event("installed")
        after = agents.files[name]
        assert repr(bare(parsed(name, after))) == repr(bare(parsed(name, content)))
        assert b"threadbook" in after
        agents.uninstall(agent)
        assert agents.files == before
        return after


@settings(max_examples=60)
@given(json_files(), st.sampled_from([".claude/settings.json", ".claude.json"]))
def test_any_json(content, name):
    assert come_and_go(name, content, "claude") is not None


@settings(max_examples=100)
@given(toml_files())
def test_any_toml(content):
    come_and_go(".codex/config.toml", content, "codex")


@settings(max_examples=60)
@given(toml_files(), st.integers(0, 1 << 30))
def test_an_edited_toml_file_keeps_every_other_line(content, where):
    """The person's own line, wherever it is put, is there afterwards with all the others."""
    with TemporaryDirectory() as folder:
        agents = Agents(Path(folder) / "user")
        path = agents.write(".codex/config.toml", content)
        try:
            agents.install("codex")
        except CannotInstall:
            return
        lines = path.read_bytes().split(b"\n")
        at = where % (len(lines) + 1)
        mine = b"\n".join([*lines[:at], b"my_own_line = 1", *lines[at:]])
        try:
            meant = bare(parsed(".toml", mine))
        except tomllib.TOMLDecodeError:
            event("inside of a value")
            return
        path.write_bytes(mine)

        agents.uninstall("codex")

        rest = path.read_bytes()
        event("edited")
        inside = "my_own_line" in str(
            parsed(".toml", mine).get("mcp_servers", {}).get("threadbook")
        )
        assert inside or b"my_own_line = 1" in rest
        assert repr(bare(parsed(".toml", rest))) == repr(meant)
        theirs = [line for line in content.split(b"\n") if line.strip()]
        assert [line for line in theirs if line not in rest] == []


@settings(max_examples=60)
@given(json_files(), st.sampled_from([".claude/settings.json", ".claude.json"]))
def test_an_edited_json_file_keeps_every_other_byte(content, name):
    """The person's own member at the front is all that tells the file from what it was."""

    def with_mine(text):
        at = text.index(b"{") + 1
        return text[:at] + b'"my own": [1], ' + text[at:]

    with TemporaryDirectory() as folder:
        agents = Agents(Path(folder) / "user")
        path = agents.write(name, content)
        agents.install("claude")
        path.write_bytes(with_mine(path.read_bytes()))

        agents.uninstall("claude")

        rest = path.read_bytes()
        theirs = parsed(name, content)
        event("beside theirs" if theirs else "alone")
        if theirs:
            assert rest == with_mine(content)
        else:
            assert parsed(name, rest) == {"my own": [1]}
