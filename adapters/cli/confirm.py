"""Asking a person, where one is there to answer."""

import click

from ..actor import at_the_terminal


def agreed(question: str, *, yes: bool) -> bool:
    """Whether a person has just said so. Elsewhere than at a terminal nobody is asked.

    `--yes` skips the question; it also means that no person confirmed the act here.
    """
    if yes or not at_the_terminal():
        return False
    click.confirm(question, abort=True)
    return True
