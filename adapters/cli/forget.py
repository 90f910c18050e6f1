"""`threadbook forget thread`: a session leaves for good, its words included."""

from typing import TYPE_CHECKING

import click
import msgspec

from .common import Context, Parts, options, say

if TYPE_CHECKING:
    from ...application.certificate import Certificate
    from ...application.reports import ForgetReport


@click.group(name="forget", cls=Parts)
def command() -> None:
    """Forget a session for good, its words included."""


@command.command(name="thread")
@options
@click.argument("thread_id", metavar="ID")
@click.option("--lift", is_flag=True, help="Let the session be read again; its words stay gone.")
@click.option(
    "--prove", is_flag=True, help="Then search every file of the home for its words, and certify."
)
@click.option("--yes", is_flag=True, help="Do not ask.")
def thread(context: Context, thread_id: str, lift: bool, prove: bool, yes: bool) -> None:
    """Forget a session: its words leave the database, the folder and the folder's git objects.

    Nothing brings it back until a person lifts it, at a terminal, with --lift. Its id, its times
    and the paths that name it stay in the log.

    --prove prints a certificate: what was looked for and where, what was found, and what cannot be
    seen from here. It reads every byte of the home, which takes minutes where that is very large.
    Exit code 3 when it is not proven. The words are known only until they are
    gone, so that only the forgetting itself can be proven in full.
    """
    from .confirm import agreed

    if lift and prove:
        raise click.UsageError("--prove is about a forgetting; leave out --lift")
    if lift:
        with context.open() as memory:
            confirmed = agreed(f"Let {thread_id} be read again?", yes=False)
            memory.lift(thread_id, confirmed=confirmed)
        context.show(
            {"thread_id": thread_id, "lifted": True},
            lambda: say(f"{thread_id} may be read again at the next run"),
        )
        return
    with context.open() as memory:
        confirmed = agreed(f"Forget {thread_id} for good?", yes=yes)
        if not prove:
            report = memory.forget(thread_id, confirmed=confirmed)
            context.show(msgspec.to_builtins(report), lambda: tell(report))
            return
        certificate = memory.forget(thread_id, prove=True, confirmed=confirmed)
    answer = msgspec.to_builtins(certificate) | {"proven": certificate.proven}
    context.show(answer, lambda: certify(certificate))
    if not certificate.proven:
        raise SystemExit(3)


def tell(report: "ForgetReport") -> None:
    if report.already:
        say(f"{report.thread_id} was already forgotten")
        return
    if not report.known:
        say(f"no session {report.thread_id} is known; should one turn up, it stays out")
        return
    say(f"{report.thread_id} is forgotten: {report.bodies_erased} texts erased")
    for root in report.roots:
        say(f"  written again without it: {root}")
    if report.pending:
        say(f"  not yet gone from the disk: {report.pending}")


def certify(certificate: "Certificate") -> None:
    tell(certificate.report)
    say()
    say(f"Certificate of {certificate.at}, for {certificate.database}")
    say(f"  {in_words(certificate)}")
    say(f"  looked for: {looked_for(certificate)}")
    searched = certificate.searched
    say(
        f"  looked in: {searched.files} files, {searched.bytes} bytes, and {searched.inflated}"
        " compressed streams in them, git objects among them"
    )
    places = ", ".join(f"{place} {count}" for place, count in sorted(searched.places.items()))
    say(f"    {places}")
    for each in certificate.found:
        where = "in its name" if each.in_name else f"at byte {each.offset}"
        if each.inside is not None:
            where += f" of what begins, compressed, at byte {each.inside}"
        named = "the session's id" if each.what == "id" else f"{each.size} bytes of its words"
        say(f"  FOUND: {each.file}, {where}: {named}")
    if certificate.more_found:
        say(f"  FOUND: {certificate.more_found} more")
    if certificate.texts_left:
        say(f"  FOUND: {certificate.texts_left} texts of it are still stored")
    if certificate.keys_left:
        say(f"  FOUND: {certificate.keys_left} erased texts could still be opened here")
    remarks = {
        "pending": certificate.pending,
        "could not be read": searched.unreadable,
        "what to do": certificate.advice,
    }
    for what, lines in remarks.items():
        for line in lines:
            say(f"  {what}: {line}")
    say("What stays on purpose:")
    for line in certificate.stays:
        say(f"  {line}")
    say("What nobody can see from here:")
    for line in certificate.not_covered:
        say(f"  {line}")


def in_words(certificate: "Certificate") -> str:
    match certificate.verdict:
        case "clean":
            return "Proven: no file of this home holds its words."
        case "words_unknown":
            return (
                "It was forgotten before, and its words are known no longer. No text of it is"
                " stored and no memory folder names it; its words could not be looked for."
            )
        case "pending":
            return "Not proven yet: the erasure is pending."
        case "found":
            return "Not proven: something of it is left."
        case "incomplete":
            return "Not proven: not everything could be done, or read."


def looked_for(certificate: "Certificate") -> str:
    words = certificate.words
    if not words.texts:
        return "its id in the memory folders; there were no words of it to look for"
    kinds = ", ".join(f"{kind} {count}" for kind, count in words.texts.items())
    return (
        f"the texts that were erased ({kinds}; {words.characters} characters), read before they"
        f" went: any {words.run_bytes} bytes in a row or a whole shorter line, and any"
        f" {words.word_bytes} letters of one word in names and search indexes. Of"
        f" {words.marks + words.marks_shared} runs of {words.word_bytes} bytes {words.marks_shared}"
        " also stand in what stays, and tell nothing"
    )
