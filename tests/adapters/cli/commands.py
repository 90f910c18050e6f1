"""A command of threadbook on a home, in this process or in one of its own."""

import io
import json
import os
import subprocess
import sys

from threadbook.adapters.cli import ended

from tests.application.homes import ROOT, Session, rfc

A = Session(number=1)
B = Session(number=2, says=("please never use tabs in this project, always spaces",))
MAIN = "from threadbook.adapters.cli import main; main()"


class Answer:
    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err

    @property
    def json(self):
        return json.loads(self.out)

    @property
    def line(self):
        """The one line that a failure is told in."""
        assert "Traceback" not in self.out + self.err
        assert self.err.startswith("threadbook: "), self.err
        assert self.err.count("\n") == 1, self.err
        return self.err


class Commands:
    """`commands("threads")` is `threadbook threads` on the home, at its time."""

    def __init__(self, home, monkeypatch, capsys):
        self.home, self.monkeypatch, self.capsys = home, monkeypatch, capsys
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO()))  # Nobody says anything.

    def given(self, *args):
        return ["--home", str(self.home.path), "--now", rfc(self.home.now), *map(str, args)]

    def __call__(self, *args):
        return self.bare(*self.given(*args))

    def bare(self, *args):
        """Without the home and the time."""
        self.capsys.readouterr()
        self.monkeypatch.setattr(sys, "argv", ["threadbook", *map(str, args)])
        code = ended()
        told = self.capsys.readouterr()
        return Answer(code, told.out, told.err)

    def process(self, *args, **options):
        options.setdefault("stdin", subprocess.DEVNULL)
        return subprocess.Popen(
            [sys.executable, "-c", MAIN, *self.given(*args)],
            env=os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])},
            stdout=options.pop("stdout", subprocess.PIPE),
            stderr=subprocess.PIPE,
            text=True,
            **options,
        )

    def alone(self, *args, **options):
        """In a process of its own."""
        process = self.process(*args, **options)
        out, err = process.communicate(timeout=60)
        return Answer(process.returncode, out, err)
