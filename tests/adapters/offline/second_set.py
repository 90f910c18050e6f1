"""Sentences written before the cue lists were tuned, each with what a reader should take from it.

`take` is true where a person asked for something that lasts, or set an agent right in a way
that would still matter next week. Each is judged as a follow-up message unless `first` says that
it opens its session.
"""

from typing import NamedTuple


class Typed(NamedTuple):
    text: str
    take: bool
    first: bool = False


SENTENCES = (
    # Lasting wishes.
    Typed("Always run the linter before you commit.", True),
    Typed("From now on write commit messages in English", True),
    Typed("never force-push to a shared branch", True),
    Typed("Please make sure the changelog is updated with every feature", True),
    Typed("In this project we only support Python 3.12 and up.", True),
    Typed("I prefer small functions over comments", True),
    Typed("remember to regenerate the client after changing the schema", True),
    Typed("Keep in mind that the staging database is shared", True),
    Typed("I don't want any new dependencies", True),
    Typed("by default use pnpm here, not npm", True, first=True),
    Typed("whenever you touch the parser, rerun the fuzz corpus", True),
    Typed("we use tabs in this codebase", True),
    Typed("Ab jetzt bitte immer auf Deutsch antworten.", True),
    Typed("bitte keine Kommentare im Code", True),
    Typed("今後はテストを先に書いてください", True),
    Typed("以后请用中文回答", True),
    # Corrections.
    Typed("no, that's the old endpoint, the new one is /v2/items", True),
    Typed("That is not a bug, the API returns 204 on purpose", True),
    Typed("it already validates the input, you don't need a second check", True),
    Typed("I said use the existing helper, not write a new one", True),
    Typed("you forgot to close the connection", True),
    Typed("don't edit generated files", True),
    Typed("use the factory instead of calling the constructor", True),
    Typed("stop adding docstrings everywhere", True),
    Typed("wrong branch, work on develop", True),
    # Not for keeping.
    Typed("add a button to the settings page", False),
    Typed("can you always show the sidebar?", False),
    Typed("thanks, looks good", False),
    Typed("it's still not working", False),
    Typed("I'd like to add a search box", False),
    Typed("we should probably look at caching at some point", False),
    Typed("should I never call this from a thread?", False),
    Typed("ok, go on", False),
    Typed("no", False),
    Typed("run the tests again", False),
    Typed("The docs say you must always call close()", False),
    Typed("    raise ValueError('never reached')", False),
    Typed("2026-11-20 08:01:02 ERROR always retrying connection", False),
    Typed("what does `never` mean in TypeScript", False),
    Typed("make the header blue and the footer green", False),
    Typed("the login page doesn't load since yesterday", False),
    Typed("> always squash before merging", False),
    Typed("let's go with the second option", False),
    Typed("don't worry about it", False),
    Typed("never mind", False),
    Typed("I want to understand how the scheduler works", False),
    Typed("Reply with exactly OK, no other text", False),
    Typed("fix the bug where users can never log out", False, first=True),
    Typed("don't change the public API, just speed up the inner loop", False, first=True),
)
