"""A shell line read far enough to compare two of them: which program, which sub-command, masked
or not, a probe or not.

Nothing is evaluated. A line that this reader cannot take apart has no program and is compared by
its text alone, so that a wrong reading costs a sentence and never makes one up.
"""

import re

from msgspec import Struct

LINE_CHARS_MAX = 2_000


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# These prepare the shell and run nothing of their own.
_PREPARATION = _words("cd pushd popd export set source . exit")

# Words before the program that do not change what runs.
_WRAPPERS = frozenset({"sudo", "env", "time", "nice", "nohup", "command", "exec", "stdbuf"})
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_SUBCOMMANDS = {
    "apt": 1, "apt-get": 1, "brew": 1, "bun": 1, "bundle": 1, "cargo": 1, "conda": 1, "deno": 1,
    "dnf": 1, "docker": 1, "docker-compose": 1, "dotnet": 1, "gh": 2, "git": 1, "go": 1,
    "gradle": 1, "helm": 1, "just": 1, "kubectl": 1, "make": 1, "mise": 1, "mix": 1, "mvn": 1,
    "npm": 1, "pip": 1, "pip3": 1, "pnpm": 1, "poetry": 1, "swift": 1, "terraform": 1, "uv": 1,
    "yarn": 1,
}  # fmt: skip
# These sub-commands only lead to the one that matters (`npm run build`, `uv pip install`).
_LEADING = frozenset({"run", "pip", "compose", "exec", "tool", "x"})
# A program that starts another one: the next word says which.
_STARTERS = frozenset({"npx", "bunx", "pipx", "uvx"})
_PYTHON = re.compile(r"(?:.*/)?python[\d.]*$")

# The exit code of a pipeline is its last program's, and these hide what came before.
_MASKS = _words(
    "grep egrep rg head tail cat tee true sed awk sort uniq wc less more cut tr xargs jq echo"
    " printf :"
)
# Asked whether something is there or equal, these answer 1 for no; that is no failure.
_PROBES = _words(
    "grep egrep fgrep zgrep rg ag ack test [ [[ diff cmp which type command pgrep false"
)
# A look at a path that may not exist: `ls` and its like answer 1 or 2.
_LOOKS = _words("ls stat file readlink realpath")
_GIT_PROBES = _words("diff grep show-ref check-ignore merge-base ls-files rev-parse")

_TESTS = re.compile(
    r"(?:^|\s|/)(?:py\.?test|unittest|nose2|tox|nox|jest|vitest|mocha|ava|rspec|phpunit|ctest"
    r"|nextest|playwright test|test:?[\w:-]*)$|^make check$"
)
_CHECKS = re.compile(
    r"(?:^|\s|/)(?:mypy|pyright|ruff|flake8|pylint|black|isort|eslint|tsc|prettier|biome|clippy"
    r"|shellcheck|golangci-lint|vet|build[\w:-]*|check|lint[\w:-]*|type-?check|compile)$"
    r"|^(?:make|gradle|mvn|cmake|ninja|gcc|g\+\+|clang|rustc|javac)(?: \w+)?$"
)
_TOKEN = re.compile(
    r"""(?P<space>[ \t]+)|(?P<op>\|\||&&|\|&|;;|[|;\n]|(?<![<>])&(?!>))
    |(?P<word>(?:\\.|'[^']*'|"(?:\\.|[^"\\])*"|\$\((?:[^()]|\([^()]*\))*\)|`[^`]*`|[<>]&|&>|[^\s|;&'"`\\]|\$)+)""",
    re.VERBOSE | re.DOTALL,
)
_HEREDOC = re.compile(r"<<-?\s*(['\"]?)([A-Za-z_]\w*)\1[^\n]*\n.*?(?:^\s*\2\s*$|\Z)", re.M | re.S)
_SHELL = re.compile(r"^(?:\S*/)?(?:ba|z|da)?sh\s+-\w*c\s+(['\"])(.*)\1\s*$", re.DOTALL)

Words = tuple[str, ...]


class Command(Struct, frozen=True, kw_only=True, gc=False):
    """`steps` are the simple commands in order, without `cd`; `name` is program and sub-command
    of the last one, empty where the line could not be read. `each_counts` is true where `&&`
    stands between all of them, so that none can have failed in a line that passed."""

    steps: tuple[Words, ...] = ()
    name: Words = ()
    each_counts: bool = False
    masked: bool = False
    quiet: bool = False

    @property
    def is_test(self) -> bool:
        return bool(_TESTS.search(" ".join(self.name)))

    @property
    def is_check(self) -> bool:
        return bool(_CHECKS.search(" ".join(self.name)))


def read(line: str) -> Command:
    """
    >>> read("cd api && UV_LINK=1 uv pip install -q responses").name
    ('uv', 'pip', 'install')
    >>> read("pytest -q | tail -3").masked
    True
    """
    line = line[:LINE_CHARS_MAX].strip()
    if shell := _SHELL.match(line):
        line = shell[2]
    line = _HEREDOC.sub("<<\n", line)
    pieces = _pieces(line)
    if pieces is None:
        return Command(masked=True)
    steps: list[Words] = []
    last_operator = ""
    said_by_hand = False
    for operator, words in pieces:
        step = _program(words)
        # `exit 0` behind a command says nothing about the command.
        said_by_hand = step[:1] == ("exit",)
        if step and step[0] not in _PREPARATION:
            steps.append(step)
            last_operator = operator
    if not steps:
        return Command()
    last = steps[-1]
    return Command(
        steps=tuple(steps),
        name=_name(last),
        each_counts=all(operator == "&&" for operator, _ in pieces[1:]),
        masked=said_by_hand
        or (last_operator in ("|", "|&") and last[0] in _MASKS and "pipefail" not in line)
        or last_operator == "||"
        or (last_operator == ";" and last[0] in _MASKS and len(steps) > 1)
        or line.endswith("&"),
        quiet="2>/dev/null" in line.replace("2> /dev/null", "2>/dev/null"),
    )


def is_probe(command: Command, exit_code: int | None) -> bool:
    """Whether a failed command only asked a question, and the answer was no."""
    if command.quiet:
        return True
    if not command.steps:
        return False
    last = command.steps[-1]
    if last[0] in _LOOKS:
        return exit_code in (1, 2, None)
    if last[0] == "git" and len(last) > 1 and command.name[-1] in _GIT_PROBES:
        return exit_code in (1, None)
    return last[0] in _PROBES and exit_code in (1, None)


def answers(failed: Command, failed_text: str, passed: Command, passed_text: str) -> bool:
    """Whether the second may be told as what passed after the first had failed.

    Either both end in the same program and sub-command, or the words of the first end the second
    (`pip install x`, `uv pip install x`), or the first is a part of the second and each part of
    that passed (`make db`, `make db && pytest`). A success that is only a part of what failed tells
    nothing, and neither does one whose pipeline hides the exit code. A dropped `cd` is no part.
    """
    if passed.masked or not passed.name or not failed.name or passed_text == failed_text:
        return False
    if _within(passed.steps, failed.steps):
        return False
    x, y = failed.steps[-1], passed.steps[-1]
    if passed.each_counts and _among(failed.steps, passed.steps):
        return True
    return failed.name == passed.name or (len(x) < len(y) and y[-len(x) :] == x)


def _among(part: tuple[Words, ...], whole: tuple[Words, ...]) -> bool:
    return any(whole[i : i + len(part)] == part for i in range(len(whole) - len(part) + 1))


def _within(part: tuple[Words, ...], whole: tuple[Words, ...]) -> bool:
    """Whether the steps are a strict part of the others, step by step or word by word."""
    flat_part = [word for step in part for word in (*step, ";")][:-1]
    flat_whole = [word for step in whole for word in (*step, ";")][:-1]
    if len(flat_part) >= len(flat_whole):
        return False
    return any(
        flat_whole[i : i + len(flat_part)] == flat_part
        for i in range(len(flat_whole) - len(flat_part) + 1)
    )


def _pieces(line: str) -> list[tuple[str, list[str]]] | None:
    """(the operator before it, its words) of every simple command; None where a quote is open."""
    pieces: list[tuple[str, list[str]]] = []
    operator, words = "", list[str]()
    at = 0
    while at < len(line):
        if line[at] == "#" and (at == 0 or line[at - 1] in " \t\n;"):
            at = line.find("\n", at)
            if at < 0:
                break
            continue
        token = _TOKEN.match(line, at)
        if token is None:
            return None
        at = token.end()
        if word := token["word"]:
            words.append(word)
        elif token["op"]:
            if words:
                pieces.append((operator, words))
                operator, words = "", []
            op = ";" if token["op"] in ("\n", ";;") else token["op"]
            operator = op if pieces and (op != ";" or not operator) else operator
    if words:
        pieces.append((operator, words))
    return pieces


def _program(words: list[str]) -> Words:
    """The words from the program on, without redirections."""
    words = [word for word in words if not re.match(r"\d*[<>]|&>", word)]
    while words:
        word = words[0]
        if _ASSIGNMENT.match(word) or word in _WRAPPERS or word in ("(", "{", "!", "do", "then"):
            words = words[1:]
        elif word == "timeout":
            words = words[1:]
            while words and (words[0].startswith("-") or re.fullmatch(r"[\d.]+[smhd]?", words[0])):
                words = words[1:]
        else:
            break
    return tuple(word.strip("()") for word in words[:40])


def _name(step: Words) -> Words:
    program = step[0]
    if _PYTHON.match(program):
        if "-m" in step[1:]:
            at = step.index("-m")
            return (program, *step[at : at + 2], *_sub(step[at + 1], step[at + 2 :]))
        return (program, *_operands(step[1:])[:1])
    if program in _STARTERS:
        return (program, *_operands(step[1:])[:1])
    return (program, *_sub(program, step[1:]))


def _sub(program: str, rest: Words) -> Words:
    count = _SUBCOMMANDS.get(program, 0)
    operands = _operands(rest)
    if not count or not operands:
        return ()
    found = list(operands[:count])
    while found[-1] in _LEADING and len(operands) > len(found):
        found.append(operands[len(found)])
    return tuple(found)


def _operands(words: Words) -> Words:
    return tuple(word for word in words if not word.startswith("-"))
