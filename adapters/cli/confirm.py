"""Asking a person, where one is there to answer."""

import click

from ...domain.refusals import Refused
from ..actor import at_the_terminal


class NotConfirmed(Refused):
    code = "not_confirmed"

    def __init__(self) -> None:
        super().__init__("nothing was changed")


class NobodyToAsk(Refused):
    code = "nobody_to_ask"

    def __init__(self) -> None:
        super().__init__(
            "nothing was changed: there is nobody to ask here; say --yes if you mean it"
        )


def agreed(question: str, *, yes: bool) -> bool:
    """Whether a person has just said so. Elsewhere than at a terminal nobody is asked.

    `--yes` skips the question; it also means that no person confirmed the act here.
    """
    if yes or not at_the_terminal():
        return False
    if not click.confirm(question):
        raise NotConfirmed
    return True


def agreed_or_refused(question: str, *, yes: bool) -> bool:
    """The same for an act that is never done without a word: elsewhere it needs `--yes`."""
    if not yes and not at_the_terminal():
        raise NobodyToAsk
    return agreed(question, yes=yes)
