"""A user's folder with both agents in it, and what stands in their settings."""

from pathlib import Path

from threadbook.adapters import install
from threadbook.adapters.install.entries import Entries

PROGRAM = ("/opt/a venv/bin/threadbook",)
HOME = ("--home", "/srv/memory")


class Agents:
    """`folder` is the user's home; nothing outside of it is looked at."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = folder / "memory"
        (folder / ".codex").mkdir(parents=True)
        (folder / ".claude").mkdir()

    def places(self, *agents):
        return install.places(agents, environment={}, user=self.folder)

    def install(self, *agents, program=PROGRAM, home=None, **options):
        return install.install(
            self.places(*agents), Entries(program), home=home or self.home, **options
        )

    def uninstall(self, *agents, **options):
        return install.uninstall(self.places(*agents), home=self.home, **options)

    @property
    def files(self):
        """Every file of theirs with its bytes; the memory's own are not among them."""
        return {
            str(path.relative_to(self.folder)): path.read_bytes()
            for path in sorted(self.folder.rglob("*"))
            if path.is_file() and not path.is_relative_to(self.home)
        }

    def write(self, name, content):
        path = self.folder / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def done(self, reports):
        return {Path(file.path).name: file.done for report in reports for file in report.files}


def json_texts(indent="  "):
    """Kinds of JSON settings that people have, by name."""
    i = indent
    group = '{"matcher": "startup", "hooks": [{"type": "command", "command": "echo hi"}]}'
    return {
        "absent": None,
        "empty": b"",
        "white space": b" \r\n\n",
        "braces": b"{}",
        "spread braces": b"{\n}\n",
        "one line": b'{"model": "opus", "env": {"A": "1"}}',
        "one line, tight": b'{"model":"opus","hooks":{"Stop":[]},"mcpServers":{}}',
        "other event": f'{{\n{i}"hooks": {{\n{i}{i}"Stop": [{group}]\n{i}}}\n}}\n'.encode(),
        "same event": (
            f'{{\n{i}"hooks": {{\n{i}{i}"SessionStart": [\n{i}{i}{i}{group}\n{i}{i}]\n{i}}},'
            f'\n{i}"model": "opus"\n}}\n'
        ).encode(),
        "empty tables": f'{{\n{i}"hooks": {{}},\n{i}"mcpServers": {{ }}\n}}\n'.encode(),
        "empty list": f'{{\n{i}"hooks": {{\n{i}{i}"SessionStart": [\n{i}{i}]\n{i}}}\n}}\n'.encode(),
        "other server": b'{\n  "mcpServers": {\n    "x": {"command": "y"}\n  },\n  "n": 1e2\n}\n',
        "windows": b'{\r\n  "a": 1,\r\n  "b": {\r\n    "c": []\r\n  }\r\n}\r\n',
        "mark": b'\xef\xbb\xbf{\n  "a": "\\u00fc"\n}\n',
        "no last newline": b'{\n    "a": 1\n}',
        "tabs": b'{\n\t"a": 1,\n\t"hooks": {\n\t\t"Stop": []\n\t}\n}\n',
        "odd": b'\n\n{ "a" :1\n,"b": [ 1,\n2 ] , "hooks" : {"SessionEnd" :[ ]\n}}  \n\n',
        "twice": b'{"hooks": {"Stop": []}, "hooks": {"SessionStart": []}}\n',
        "unicode": '{\n  "name": "Jörg \\ud83d 日本",\n  "threadbook": true\n}\n'.encode(),
    }


TOML_TEXTS = {
    "absent": None,
    "empty": b"",
    "white space": b"\n  \n",
    "comment only": b"# mine",
    "comments": b'# top\nmodel = "o" # why\n\n[features] # on\nhooks = true\n# last words\n',
    "no last newline": b'model = "o"\n[mcp_servers.x]\ncommand = "y"',
    "windows": b'model = "o"\r\n\r\n[projects."/srv/x"]\r\ntrust_level = "trusted"\r\n',
    "mark": b'\xef\xbb\xbfmodel = "o"\n',
    "tabs": b"[a]\n\tb = [\n\t\t1, # one\n\t\t2,\n\t]\n",
    "other servers": (
        b'[mcp_servers]\n[mcp_servers.x]\ncommand = "y"\n[mcp_servers.x.env]\nA = "1"\n'
    ),
    "dotted": b'mcp_servers.x.command = "y"\nnotify = ["say", "done"]\n',
    "strings": (
        b'a = \'\'\'\n[mcp_servers.threadbook]\n\'\'\'\nb = """x \\""" # no"""\nc = "it\'s"\n'
    ),
    "tables in a row": b'[[hooks.Stop]]\n[[hooks.Stop.hooks]]\ntype = "command"\ncommand = "z"\n',
    "no number": b"x = nan\ny = inf\nz = 1979-05-27T07:32:00Z\n",
    "quoted keys": b'["a.b"."c # d"]\n"e = f" = 1\n\'[g]\' = { h.i = [[], {}] }\n',
}
