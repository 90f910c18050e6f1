"""A folder that was written is read again as the outputs it was made from, whatever they say.

Words may hold headings, headers and whole sections of other sessions. What nobody can tell apart
is told; a session is never read with another's words and said to be whole.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import event, given
from hypothesis import strategies as st
from msgspec.structs import replace
from threadbook.adapters.others.codex import read
from threadbook.application.ports import PhaseTwoOutput
from threadbook.projections.folder import inputs

from tests.application.homes import thread_id

WORDS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=30)
LINES = st.lists(
    WORDS
    | st.sampled_from(
        [
            "",
            "## Thread `x`",
            f"## Thread `{thread_id(2)}`",
            "updated_at: 1",
            "cwd: /",
            "thread_id: x",
        ]
    ),
    min_size=1,
    max_size=4,
).map("\n".join)
SAID = LINES.filter(str.strip)
# The last are born at one moment, with one hash: only their slugs may tell their files apart.
IDS = (
    thread_id,
    lambda number: f"session-{number}",
    lambda number: f"019b7a00-0000-7000-8{number:03x}-000000000000",
)
SLUGS = (
    st.none() | st.text("abZ09 -_.é", max_size=70) | st.sampled_from(["0123abcd", "same", "a" * 60])
)


@st.composite
def outputs(draw):
    named = draw(st.sampled_from(IDS))
    slugs = draw(st.sampled_from([SLUGS, st.just("same")]))
    numbers = draw(st.lists(st.integers(0, 9), unique=True, max_size=5))
    return [
        PhaseTwoOutput(
            thread_id=named(number),
            updated_at=draw(st.integers(0, 4_000_000_000)),
            rollout_path=draw(WORDS),
            cwd=draw(WORDS),
            git_branch=draw(st.none() | WORDS),
            raw_memory=draw(SAID),
            rollout_summary=draw(SAID),
            rollout_slug=draw(slugs),
        )
        for number in numbers
    ]


def quoting(draw, kept):
    """One of them has read the file as it stood then, or a section of it, and went on."""
    written = inputs(kept)["raw_memories.md"]
    sections = ["## Thread " + each for each in written.split("## Thread ")[1:]]
    reader = draw(st.integers(0, len(kept) - 1))
    quoted = draw(st.sampled_from(sections) | st.just(written))
    kept = list(kept)
    kept[reader] = replace(
        kept[reader],
        updated_at=kept[reader].updated_at + 60,
        raw_memory=f"{kept[reader].raw_memory}\n{quoted}end",
    )
    return kept


def read_again(files):
    with TemporaryDirectory() as place:
        for path, text in files.items():
            file = Path(place) / path
            file.parent.mkdir(exist_ok=True)
            file.write_bytes(text.encode())
        return read(Path(place))


def as_output(thread):
    return PhaseTwoOutput(
        thread_id=thread.thread_id,
        updated_at=thread.updated_at,
        rollout_path=thread.rollout_path,
        cwd=thread.cwd or "",
        git_branch=thread.git_branch,
        raw_memory=thread.raw_memory,
        rollout_summary=thread.rollout_summary,
        rollout_slug=thread.rollout_slug,
    )


@given(outputs())
def test_what_was_written_is_what_is_read(kept):
    files = inputs(kept)

    found = read_again(files)

    assert found.left_out == ()
    assert inputs([as_output(each) for each in found.threads]) == files
    twins = sum(path.count("-") > 6 for path in files)
    event(f"{len(kept)} sessions, {'some' if twins else 'none'} of one name")


@given(outputs().filter(bool), st.data())
def test_a_session_that_has_read_the_file_is_one_session(kept, data):
    kept = quoting(data.draw, kept)
    files = inputs(kept)

    found = read_again(files)

    assert found.left_out == ()
    assert inputs([as_output(each) for each in found.threads]) == files
    event(f"{files['raw_memories.md'].count('## Thread ') - len(kept)} quoted")
