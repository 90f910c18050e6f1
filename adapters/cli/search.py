"""`threadbook search`: what a project's memory says about something."""

from pathlib import Path

import click
import msgspec

from .common import Context, here, options, say


@click.command(name="search")
@options
@here
@click.argument("queries", metavar="QUERY…", nargs=-1, required=True)
@click.option("--exact", is_flag=True, help="Lines with any QUERY, letter for letter.")
@click.option("--all", "all_", is_flag=True, help="Lines with every QUERY, letter for letter.")
@click.option("--within-lines", type=int, metavar="N", help="Every QUERY within N lines.")
@click.option("-i", "--ignore-case", is_flag=True, help="Exact, but A and a are the same.")
@click.option("--normalized", is_flag=True, help="Exact, but only letters and digits count.")
@click.option("--context", "context_lines", type=click.IntRange(min=0), help="Lines around each.")
@click.option("--cursor", help="Exact: go on where the page before ended.")
@click.option("--path", help="Only this file or folder of the memory.")
@click.option("--max", "max_results", type=click.IntRange(min=1), help="At most so many.")
@click.option("--session", metavar="ID", help="Record that this session was given it.")
def command(
    context: Context,
    queries: tuple[str, ...],
    exact: bool,
    all_: bool,
    within_lines: int | None,
    ignore_case: bool,
    normalized: bool,
    context_lines: int | None,
    cursor: str | None,
    path: str | None,
    cwd: Path | None,
    max_results: int | None,
    session: str | None,
) -> None:
    """What a project's memory says about something: the statements that fit best, best first.

    With --exact and its kin, lines in order of path and number, as an agent's `search` finds them.
    """
    from ...domain.search import AllOnSameLine, AllWithinLines, AnyOf, MatchMode

    letters = exact or all_ or within_lines is not None or ignore_case or normalized
    if not letters and (cursor is not None or context_lines is not None):
        raise click.UsageError("--context and --cursor are for an exact search: add --exact")
    if not letters:
        with context.open() as memory:
            ranked = memory.search_ranked(
                " ".join(queries), path=path, max_results=max_results, cwd=cwd, session=session
            )

        def results() -> None:
            for each in ranked.results:
                say(f"{each.path}:{each.start_line_number}  {each.content.strip()}")
            if not ranked.results:
                say("nothing fits; --exact looks for the letters themselves")

        context.show(msgspec.to_builtins(ranked), results)
        return

    mode: MatchMode = AllOnSameLine() if all_ else AnyOf()
    if within_lines is not None:
        mode = AllWithinLines(within_lines)
    with context.open() as memory:
        answer = memory.search(
            queries,
            match_mode=mode,
            path=path,
            cursor=cursor,
            context_lines=context_lines or 0,
            case_sensitive=not ignore_case,
            normalized=normalized,
            max_results=max_results,
            cwd=cwd,
            session=session,
        )

    def lines() -> None:
        for each in answer.matches:
            for number, line in enumerate(each.content.split("\n"), each.content_start_line_number):
                say(f"{each.path}:{number}:{line}")
            if context_lines:
                say("--")
        if not answer.matches:
            say("nothing is found")
        if answer.next_cursor is not None:
            say(f"there are more: --cursor {answer.next_cursor}", err=True)

    context.show(msgspec.to_builtins(answer), lines)
