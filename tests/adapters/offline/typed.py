"""Sentences as people type them to an agent, each with what a reader should take from it.

`take` is true where a person asked for something that lasts, or set an agent right in a way
that would still matter next week. Each is judged as a follow-up message unless `first` says that
it opens its session. Each set was written before the cues saw it; a cue that is made from one of
them must bring a new set with it.
"""

from typing import NamedTuple


class Typed(NamedTuple):
    text: str
    take: bool
    first: bool = False


FIRST = (
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

# Written after the cues, in the looser way in which people type, with traps in half of them. Seen
# for the first time, 12 of 23 hits were right and 12 of 23 found.
LOOSER = (
    Typed("hm the tests need redis running locally, docker compose up redis first", True),
    Typed("our CI only has node 18 so no top level await", True),
    Typed("pls dont use emojis in commit messages", True),
    Typed("for the last time: the config is read from /etc, not from the home directory", True),
    Typed("I told you the port is 5433", True),
    Typed("please always ask before running migrations", True),
    Typed("nope, you're looking at the wrong file, its src/legacy/auth", True),
    Typed("the customer id is a string, it has leading zeros", True),
    Typed("that's the old API, use v3", True),
    Typed("you must not log the email address", True),
    Typed("there's already a function for that in utils", True),
    Typed("let's not mock the database in integration tests", True),
    Typed("commit messages should be in imperative mood", True),
    Typed("Never write to the production bucket from a test", True, first=True),
    Typed("we never use default exports here", True),
    Typed("no need to support IE11 anymore", True),
    Typed("don't run the full suite, it takes 40 minutes, run only the package you changed", True),
    Typed("I'd rather have one big file than twenty small ones", True),
    Typed("it's called workspace in the UI, not project", True),
    Typed("Bitte keine neuen Abhängigkeiten einbauen", True),
    Typed("nein, das Feld heißt Kundennummer und nicht Kunden-ID", True),
    Typed("不要修改生成的文件", True),
    Typed("コメントは必ず英語で書いてください", True),
    Typed("hmm that's weird, it worked yesterday", False),
    Typed("now do the same for the orders page", False),
    Typed("make sure it works on mobile too and then commit", False),
    Typed("Don't commit yet, I want to look at it first", False),
    Typed("it isn't clear to me what this function does", False),
    Typed("use the second one", False),
    Typed("that already looks a lot better", False),
    Typed("I never understood how that works", False),
    Typed("you should see a file called notes.txt in the folder", False),
    Typed("wait, stop", False),
    Typed("I don't like the color, try something warmer", False),
    Typed("the button should be on the left", False),
    Typed("no wait, go back to the previous version", False),
    Typed("The README says that you should never expose the port", False),
    Typed("keep going", False),
    Typed("we don't have any data for that yet", False),
    Typed("actually let me check something first", False),
    Typed("every time I click save I get a 500", False),
    Typed("I want to add dark mode, always visible toggle in the header", False, first=True),
    Typed("users don't always have a phone number", False),
    Typed("whenever the queue is empty the worker crashes", False),
)

# Written after the cues had been mended for those. Seen for the first time, 17 of 32 hits were
# right and 17 of 19 found: the honest figure, on a set that is half traps. Nine cues were
# narrowed since.
TRAPS = (
    Typed("do not reformat files you didn't touch", True),
    Typed("the linter config lives in tools/, not in the root", True),
    Typed("You forgot the German translation again", True),
    Typed("please always use the logger and never print", True),
    Typed("we deploy on fridays only", True),
    Typed("no, the discount applies before tax", True),
    Typed("as I said, the endpoint is read only", True),
    Typed("that's not how we do error handling", True),
    Typed("from now on, one commit per change", True),
    Typed("avoid regexes for parsing html", True),
    Typed("why did you delete the tests?", True),
    Typed("I hate it when the output scrolls, keep it short", True),
    Typed("remember that the API key is rotated monthly", True),
    Typed("use pathlib rather than os.path", True),
    Typed("this table is append only", True),
    Typed("stop asking for confirmation", True),
    Typed("bitte nur englische Bezeichner verwenden", True),
    Typed("実装の前に必ず計画を見せて", True),
    Typed("以后不用写注释", True),
    Typed("make it a bit smaller", False),
    Typed("I don't want the modal to open on page load", False),
    Typed("stop the server", False),
    Typed("do it", False),
    Typed("don't you think that is too slow", False),
    Typed("it already worked before your change", False),
    Typed("we only need three columns", False),
    Typed("put the logo on the left, not in the center", False),
    Typed("you must be kidding", False),
    Typed("no, the other one please", False),
    Typed("be sure to check the second screenshot", False),
    Typed("actually the second option is better", False),
    Typed("never seen this error before", False),
    Typed("I just asked my colleague and he is fine with it", False),
    Typed("that is wrong in so many ways haha", False),
    Typed("also the footer is broken on mobile, not only the header", False),
    Typed("what if the user never logs in", False),
    Typed("undo that", False),
    Typed("yes please", False),
    Typed("let's not worry about performance", False),
    Typed("it's fine, not a big deal", False),
)
