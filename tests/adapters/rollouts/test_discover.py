"""Which files are sessions, compressed ones too, and what a listing reads of them."""

import os
import time
from pathlib import Path

import pytest
import zstandard
from threadbook.adapters import rollouts
from threadbook.adapters.rollouts import NotASession, RolloutError, Unreadable

from .support import ID, NOW_MS, as_bytes, claude, message, meta, written

SESSION = as_bytes(meta(), message("word"))


def compressed(content, **settings):
    return zstandard.ZstdCompressor(**settings).compress(content)


def found(*paths):
    return list(rollouts.discover(paths))


def put(folder, name, content=SESSION):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def test_a_codex_home_is_searched_where_its_sessions_lie(tmp_path):
    dated = put(tmp_path, f"sessions/2026/05/04/rollout-2026-05-04T08-00-00-{ID}.jsonl")
    flat = put(tmp_path, "sessions/old.jsonl")
    archived = put(tmp_path, "archived_sessions/rollout.jsonl.zst", compressed(SESSION))
    put(tmp_path, "log/session.jsonl")
    put(tmp_path, "history.jsonl", b'{"session_id":"x","ts":1,"text":"y"}\n')

    assert sorted(found(tmp_path)) == sorted([dated, flat, archived])


def test_a_claude_home_gives_its_sessions_and_their_sub_agents(tmp_path):
    session = as_bytes(claude("user", "words", uuid="u1"))
    own = put(tmp_path, "projects/-srv-ferns/one.jsonl", session)
    agent = put(tmp_path, "projects/-srv-ferns/one/subagents/agent-a1.jsonl", session)
    put(tmp_path, "projects/-srv-ferns/memory/note.md", b"x")
    put(tmp_path, "history.jsonl", session)

    assert found(tmp_path) == [own, agent]


def test_a_folder_is_asked_file_by_file_and_a_named_file_is_always_handed_on(tmp_path):
    session = put(tmp_path, "no-rollout-name.jsonl")
    other = put(tmp_path, "notes.jsonl", b'{"a": 1}\n')
    spoilt = put(tmp_path, f"rollout-2026-05-04T08-00-00-{ID}.jsonl", b'{"a": 1}\n')
    put(tmp_path, "session.txt")

    # What is called a session and is none is handed on too: reading it says what is wrong.
    assert found(tmp_path) == [session, spoilt]
    assert found(other, session, tmp_path) == [other, session, spoilt]
    with pytest.raises(NotASession):
        rollouts.survey(other, now_ms=NOW_MS)


def test_a_plain_file_hides_its_compressed_sibling(tmp_path):
    plain = put(tmp_path, "a.jsonl")
    put(tmp_path, "a.jsonl.zst", compressed(SESSION))
    alone = put(tmp_path, "b.jsonl.zst", compressed(SESSION))

    assert found(tmp_path) == [plain, alone]


def test_a_compressed_session_reads_like_the_plain_one(tmp_path):
    plain = put(tmp_path, "a.jsonl")
    frames = compressed(SESSION[:50]) + compressed(SESSION[50:])
    packed = put(tmp_path, "b.jsonl.zst", frames)

    one, two = (rollouts.survey(path, now_ms=NOW_MS) for path in (plain, packed))

    assert (one.records, one.human_messages, one.resume_offset) == (
        two.records,
        two.human_messages,
        two.resume_offset,
    )


def test_a_file_that_was_compressed_meanwhile_is_found_under_its_new_name(tmp_path):
    put(tmp_path, "a.jsonl.zst", compressed(SESSION))
    put(tmp_path, "b.jsonl")

    assert rollouts.head(tmp_path / "a.jsonl").thread_id == ID
    assert rollouts.head(tmp_path / "b.jsonl.zst").thread_id == ID


WIDE = zstandard.ZstdCompressionParameters(window_log=27)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (compressed(SESSION * 50)[:-3], "ends early"),
        (compressed(SESSION)[:3] + b"\xfd" + b"garbage" * 9, "is damaged"),
        (compressed(SESSION) + b"trailing", "is damaged"),
        (
            zstandard.ZstdCompressor(compression_params=WIDE).compress(os.urandom(100_000) * 400),
            "is damaged",
        ),
    ],
    ids=["cut", "garbage", "trailing", "wide window"],
)
def test_a_damaged_or_hostile_frame_is_refused_with_a_reason(tmp_path, content, why):
    path = put(tmp_path, "a.jsonl.zst", content)

    with pytest.raises(Unreadable, match=why):
        rollouts.survey(path, now_ms=NOW_MS)

    assert found(tmp_path) == [path]


def test_a_listing_reads_the_first_records_and_not_the_file(tmp_path):
    path = put(tmp_path, "a.jsonl")
    os.truncate(path, 50 * 1024**3)  # A hole: nothing is stored, and reading it would take long.
    no_session = put(tmp_path, "b.jsonl", b'{"a": 1}\n')
    os.truncate(no_session, 50 * 1024**3)

    started = time.monotonic()
    listed = found(tmp_path)

    assert listed == [path]
    assert time.monotonic() - started < 5


def test_a_head_names_the_session(tmp_path):
    head = rollouts.head(written(tmp_path, meta(source="exec", forked_from_id="p"), message("x")))

    assert (head.thread_id, head.tool, head.kind) == (ID, "codex", "exec")
    assert (head.cwd, head.forked_from, head.created_at_ms) == (
        "/srv/ferns",
        "p",
        1_777_881_600_000,
    )


def test_a_missing_path_a_closed_file_and_a_pipe_say_what_is_wrong(tmp_path):
    pipe = tmp_path / "pipe.jsonl"
    os.mkfifo(pipe)
    loop = tmp_path / "loop.jsonl"
    loop.symlink_to(loop)

    for path, why in ((tmp_path / "none", "no such file"), (loop, "symbolic links")):
        with pytest.raises(Unreadable, match=why):
            found(path)
    with pytest.raises(Unreadable, match="not a regular file"):
        rollouts.survey(pipe, now_ms=NOW_MS)
    with pytest.raises(RolloutError, match="not a regular file"):
        rollouts.survey(tmp_path, now_ms=NOW_MS)
    with pytest.raises(RolloutError, match=r"there is no such file; check the path"):
        rollouts.survey(tmp_path / "none.jsonl", now_ms=NOW_MS)


def test_a_name_that_is_not_utf8_is_refused_in_a_message_that_can_be_printed(tmp_path):
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.jsonl"))
    path.write_bytes(SESSION)

    assert found(tmp_path) == [path]
    with pytest.raises(Unreadable, match="not UTF-8") as refused:
        rollouts.survey(path, now_ms=NOW_MS)

    str(refused.value).encode("utf-8")


def test_the_homes_are_the_environment_s_or_the_user_s(tmp_path):
    for name in (".codex", ".claude", "elsewhere"):
        (tmp_path / name).mkdir()
    moved = {"CODEX_HOME": str(tmp_path / "elsewhere"), "CLAUDE_CONFIG_DIR": "/no/such/folder"}

    assert rollouts.default_sources({}, tmp_path) == [tmp_path / ".codex", tmp_path / ".claude"]
    assert rollouts.default_sources(moved, tmp_path) == [tmp_path / "elsewhere"]
    assert all(isinstance(path, Path) for path in rollouts.default_sources())
