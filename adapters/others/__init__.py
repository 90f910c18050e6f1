"""others: folders in which other programs keep what they remember. They are only read.

Which program's a folder is, is seen by what lies in it. No link in it is followed, and nothing is
taken for text that is not; what is left out for that is told.
"""

from pathlib import Path

from ...application.foreign import ClaudeFolder, CodexFolder
from ...application.ports import Failure
from ...domain.refusals import Refused
from . import claude, codex

EXPECTED = (
    "give a Codex memories folder (raw_memories.md and rollout_summaries/, as in"
    " ~/.codex/memories), Claude Code's home or its projects folder (~/.claude), or a .jsonl that"
    " `threadbook export` wrote"
)


class WrongOption(Refused):
    code = "wrong_option"


class UnknownFolder(Failure):
    """Nothing that we know how to read."""


def found(folder: Path) -> CodexFolder | ClaudeFolder:
    """What the folder holds. Raises `UnknownFolder`, and `Failure` where it cannot be read."""
    try:
        place = folder.resolve(strict=True)
        if not place.is_dir():
            raise UnknownFolder(f"{folder} is no folder; {EXPECTED}")
        is_codex = codex.is_one(place) or codex.is_one(place / codex.IN_ITS_HOME)
        is_claude = claude.projects_of(place) is not None
        if is_codex and is_claude:
            raise UnknownFolder(f"{folder} could be Codex's or Claude Code's; {EXPECTED}")
        if is_codex:
            return codex.read(place if codex.is_one(place) else place / codex.IN_ITS_HOME)
        if is_claude:
            return claude.read(place)
        inside = [each for each in sorted(place.iterdir()) if codex.is_one(each)]
    except OSError as error:
        raise Failure(
            f"{error.filename or folder} cannot be read ({error.strerror}); check the path"
        ) from error
    if inside:  # As `threadbook export` writes several projects.
        named = ", ".join(map(str, inside))
        raise UnknownFolder(f"{folder} holds a memory a project; import each by itself: {named}")
    raise UnknownFolder(f"{folder} is no memory of another program; {EXPECTED}")
