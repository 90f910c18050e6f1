"""The proof of a forgetting: every file of the home was searched for the words that went.

The words are read in the transaction that erases them, because nobody knows them afterwards; they
stand in no certificate. What a text that stays says too is left out (`sought.py`). For a thread
that was forgotten before there are no words to look for, and the certificate says so: then it is
only checked that no text of the thread is stored and that no memory folder names it.

A certificate is of one home at one moment. What it cannot see stands in it.
"""

from collections import Counter
from collections.abc import Collection, Iterator
from datetime import UTC, datetime
from typing import Literal, Protocol

from msgspec import Struct, field
from msgspec.structs import replace

from ..domain.artifact import MEMORY, RAW_MEMORIES, SUMMARIES, SUMMARY
from ..domain.events import thread_stream
from ..domain.ids import UUID
from ..projections.folder import WORKSPACE_DIFF
from .forget import StillInTheFolder, erase, every_root, follow, refs_in, streams_of
from .ports import Left
from .reports import ForgetReport
from .roots import wanted
from .sought import MARK_BYTES, RUN_BYTES, Sought
from .surroundings import Surroundings

Kind = Literal["name", "file", "database", "index"]
FOUND_MAX = 100
MEMORIES = "memories/"
# What we name files and folders, whatever is in them.
OWN_NAMES = (MEMORIES, RAW_MEMORIES, SUMMARIES, WORKSPACE_DIFF, MEMORY, SUMMARY)

STAYS = (
    "in the log: the thread's id, its times, its mode and scope, the path of its session file, the"
    " folder and git branch it worked in, and that it was forgotten",
    "what other sessions said in the same words",
)
NOT_COVERED = (
    "the agent's own session file, which is not ours: delete it with the agent",
    "file system snapshots, the unused blocks of a disk (an SSD keeps them for a while), and swap",
    "backups, exports and copies outside of the home, also where a link in it leads to them",
    "what another program put into the home encrypted, encoded as in mails, or packed inside of"
    " something packed or of a database",
    "models and agents that were shown the words",
)


class Piece(Struct, frozen=True, kw_only=True):
    """Some bytes of the home. `inside`: where in the file the stream begins that they were
    compressed in; `at` then counts within it."""

    file: str
    kind: Kind
    at: int
    content: bytes
    inside: int | None = None


class Searched(Struct, kw_only=True):
    """`places`: files by the folder or file of the home that they are in."""

    files: int = 0
    bytes: int = 0
    inflated: int = 0
    places: dict[str, int] = field(default_factory=dict)
    unreadable: list[str] = field(default_factory=list)


class Sweep(Protocol):
    @property
    def searched(self) -> Searched: ...

    def schemas(self) -> Iterator[str]:
        """Words that stand in files because the program needs them there."""

    def pieces(self) -> Iterator[Piece]: ...


class Words(Struct, kw_only=True):
    """What was looked for, never the words themselves. `marks` are runs of eight bytes; those
    that also stand in texts that stay are not looked for."""

    texts: dict[str, int] = field(default_factory=dict)
    characters: int = 0
    marks: int = 0
    marks_shared: int = 0
    run_bytes: int = RUN_BYTES
    word_bytes: int = MARK_BYTES


class Found(Struct, frozen=True, kw_only=True):
    """`what`: words of the thread, or its id in a memory folder."""

    what: Literal["words", "id"]
    file: str
    offset: int
    size: int
    inside: int | None = None
    in_name: bool = False


class Certificate(Struct, kw_only=True):
    """`verdict`: `clean`; `words_unknown`, nothing is left as far as that can be told without
    them; `pending`, `found` or `incomplete`: it is not proven."""

    thread_id: str
    at: str
    database: str
    verdict: Literal["clean", "words_unknown", "pending", "found", "incomplete"]
    report: ForgetReport
    words: Words
    searched: Searched
    found: list[Found]
    more_found: int
    texts_left: int
    keys_left: int
    pending: list[str]
    failure: str | None
    stays: list[str]
    not_covered: list[str]
    advice: list[str]

    @property
    def proven(self) -> bool:
        return self.verdict in ("clean", "words_unknown")


def forget_and_prove(
    around: Surroundings, sweep: Sweep, thread_id: str, *, reason: str, actor: str, database: str
) -> Certificate:
    """Forget a thread as `forget` does, then look for it. A folder that could not be written is
    told in the certificate, as is what is pending."""
    texts: dict[str, str] = {}
    kinds: Counter[str] = Counter()

    def witness(ref: str, kind: str, text: str) -> None:
        kinds[kind] += ref not in texts
        texts[ref] = text

    report = erase(around, thread_id, reason=reason, actor=actor, witness=witness)
    failure = None
    try:
        follow(around, report, actor=actor)
    except StillInTheFolder as error:
        failure = str(error)
    left = around.store.left(thread_stream(thread_id))
    report.pending = left.pending[0] if left.pending else None

    sought = Sought(texts.values())
    for named in {thread_id, *UUID.findall("\n".join(texts.values()))}:
        # Ids stay, and which byte a table has beside one is chance.
        sought.strike("\n".join(f"{c}{named}{c}" for c in map(chr, range(1, 128))))
    id_tells, still = strike_what_stays(around, sweep, sought, thread_id, texts.keys())
    left = replace(left, texts=max(left.texts, still))
    found, more = look(sweep, sought, thread_id if id_tells else None)
    words = Words(
        texts=dict(sorted(kinds.items())),
        characters=sum(map(len, texts.values())),
        marks=len(sought.marks),
        marks_shared=sought.marks_of_all - len(sought.marks),
    )
    return Certificate(
        thread_id=thread_id,
        at=f"{datetime.fromtimestamp(around.now(), UTC):%Y-%m-%dT%H:%M:%SZ}",
        database=database,
        verdict=verdict(report, left, sweep.searched, found, failure),
        report=report,
        words=words,
        searched=sweep.searched,
        found=found,
        more_found=more,
        texts_left=left.texts,
        keys_left=left.keys,
        pending=left.pending,
        failure=failure,
        stays=list(STAYS),
        not_covered=[*NOT_COVERED, *left.elsewhere],
        advice=advice(left, sweep.searched, found, failure),
    )


def strike_what_stays(
    around: Surroundings, sweep: Sweep, sought: Sought, thread_id: str, erased: Collection[str]
) -> tuple[bool, int]:
    """Take out what the log, the texts and the folders say, all of which stay.

    Whether the thread's id in a folder would then tell of it, and how many texts there still are
    that should be erased.
    """
    still: set[str] = set()
    name = thread_id.lower()
    id_tells = len(name) >= MARK_BYTES  # Others may stand in anything.

    def stays(text: str) -> None:
        nonlocal id_tells
        sought.strike(text)
        id_tells = id_tells and name not in text.lower()

    with around.store.reading() as view:
        position, own = view.position, set(streams_of(view, thread_id))
        for root in every_root(view):
            for path, text in wanted(view, root).items():
                stays(f"{path}\n{text}")
    # The log only grows: a past of it holds up no erasure while we read on.
    with around.store.at(position) as view:
        for recorded in view.events():
            sought.strike(
                f"{recorded.stream}\n{recorded.type}\n{recorded.actor}\n{recorded.run_id}\n"
                f"{recorded.data}",
                is_json=True,
            )
            for _, ref in refs_in(recorded.event):
                kept = view.body(ref)
                if kept is None:
                    continue
                if ref in erased or recorded.stream in own:
                    still.add(ref)  # It should have gone, so that it is looked for.
                else:
                    stays(kept)
    for own_words in (*OWN_NAMES, *sweep.schemas()):
        sought.strike(own_words)
    sought.struck()
    return id_tells, len(still)


def look(sweep: Sweep, sought: Sought, thread_id: str | None) -> tuple[list[Found], int]:
    """What was found, up to a number, and how many more."""
    found: list[Found] = []
    more = 0
    ends: dict[tuple[str, str, int | None, bool], int] = {}
    for piece in sweep.pieces():
        for each in hits(piece, sought, thread_id):
            # Pieces overlap, so that what lies at a seam is seen twice.
            place = each.what, each.file, each.inside, each.in_name
            if each.offset < ends.get(place, 0):
                continue
            ends[place] = each.offset + each.size
            if len(found) < FOUND_MAX:
                found.append(each)
            else:
                more += 1
    return found, more


def hits(piece: Piece, sought: Sought, thread_id: str | None) -> Iterator[Found]:
    in_name = piece.kind == "name"
    in_folder = piece.file.startswith(MEMORIES)
    # Of a name elsewhere, or of git's own, the words are no session's.
    words = piece.kind == "index" or (in_name and in_folder and "/.git/" not in piece.file)
    for run in sought.runs(piece.content, words=words):
        yield Found(
            what="words",
            file=piece.file,
            offset=piece.at + run.at,
            size=run.size,
            inside=piece.inside,
            in_name=in_name,
        )
    if thread_id is not None and in_folder:
        name = thread_id.lower().encode()
        at = piece.content.lower().find(name)
        if at >= 0:
            yield Found(
                what="id",
                file=piece.file,
                offset=piece.at + at,
                size=len(name),
                inside=piece.inside,
                in_name=in_name,
            )


def verdict(
    report: ForgetReport,
    left: Left,
    searched: Searched,
    found: list[Found],
    failure: str | None,
) -> Literal["clean", "words_unknown", "pending", "found", "incomplete"]:
    if left.pending:
        return "pending"
    if found or left.texts or left.keys:
        return "found"
    if failure or searched.unreadable:
        return "incomplete"
    return "words_unknown" if report.already else "clean"


def advice(left: Left, searched: Searched, found: list[Found], failure: str | None) -> list[str]:
    given = []
    if left.pending:
        given.append(
            "end what holds the erasure up, then run `threadbook status`, which finishes it; the"
            " words themselves are known to this certificate only"
        )
    if failure:
        given.append(failure)
    if left.texts or left.keys:
        given.append(
            "texts that were erased are still stored, or their keys are: run `threadbook verify`,"
            " and `threadbook run`, which forgets again what a restored backup brought back"
        )
    if any(each.file.startswith(MEMORIES) for each in found):
        given.append(
            "in a memory folder: `threadbook run` writes our files and git objects again; a file"
            " of your own is yours to change or delete"
        )
    if any(not each.file.startswith(MEMORIES) for each in found) and not left.pending:
        given.append(
            "beside the folders: look at each place; a file that Threadbook does not need can be"
            " deleted; a database file is made anew, without what was deleted, by"
            " `sqlite3 FILE 'VACUUM; PRAGMA wal_checkpoint(TRUNCATE)'`"
        )
    if searched.unreadable:
        given.append("make the files readable that could not be read, and look at them")
    return given
