import json
import re
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from pathlib import Path

import pytest
from threadbook.adapters import sample
from threadbook.adapters.offline import OfflineExtractor
from threadbook.adapters.rollouts import items, survey
from threadbook.adapters.sample import MADE_UP_PASSWORD, NotASampleFolder, write_sample
from threadbook.application.ports import Extracted
from threadbook.domain.redaction import redact_header, redact_item
from threadbook.domain.session import Human, Survey

NOW = 1_798_000_000.25
NOW_MS = 1_798_000_000_250
HOUR_S = 3600
ID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"


@pytest.fixture
def written(tmp_path: Path) -> list[Path]:
    return write_sample(tmp_path / "sample", now=NOW)


def records(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def times(path: Path) -> list[datetime]:
    return [datetime.fromisoformat(record["timestamp"]) for record in records(path)]


def meta(path: Path) -> dict:
    return records(path)[0]["payload"]


def rollouts(written: list[Path]) -> list[Path]:
    return [path for path in written if path.name.startswith("rollout-")]


def fork(written: list[Path]) -> dict:
    [found] = [meta(path) for path in rollouts(written) if "forked_from_id" in meta(path)]
    return found


def contents(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {
        path.relative_to(folder).as_posix(): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_the_same_now_gives_the_same_bytes_and_times(tmp_path):
    write_sample(tmp_path / "one", now=NOW)

    write_sample(tmp_path / "two", now=NOW)

    assert contents(tmp_path / "one") == contents(tmp_path / "two")


def test_the_newest_session_ended_exactly_twelve_hours_ago(written):
    ended = max(max(times(path)) for path in written)

    assert ended == datetime.fromtimestamp(NOW, UTC) - timedelta(hours=12)


def test_every_file_was_last_changed_when_its_session_ended_and_is_its_owners(written):
    for path in written:
        ended = max(times(path))

        assert path.stat().st_mtime_ns == round(ended.timestamp() * 1000) * 1_000_000
        assert path.stat().st_mode & 0o077 == 0


def test_all_sessions_are_young_enough_to_be_read_and_each_goes_forward_in_time(written):
    for path in written:
        stamps = times(path)

        assert stamps == sorted(stamps)
        assert stamps[0] > datetime.fromtimestamp(NOW, UTC) - timedelta(days=10)


def test_files_lie_as_the_two_programs_lay_them(written, tmp_path):
    places = [path.relative_to(tmp_path / "sample").as_posix() for path in written]

    codex = rf"codex/sessions/(\d{{4}})/(\d\d)/(\d\d)/rollout-\1-\2-\3T\d\d-\d\d-\d\d-{ID}\.jsonl"
    claude = rf"claude/projects/-home-sam-gallery/{ID}\.jsonl"
    assert sum(bool(re.fullmatch(codex, place)) for place in places) == 5
    assert sum(bool(re.fullmatch(claude, place)) for place in places) == 3
    for path in rollouts(written):
        assert path.stem.endswith(meta(path)["id"])
        assert path.name[8:27] == meta(path)["timestamp"][:19].replace(":", "-")


def test_the_id_of_a_codex_thread_carries_the_time_at_which_it_started(written):
    for path in rollouts(written):
        started = datetime.fromisoformat(meta(path)["timestamp"])

        carried_ms = int(meta(path)["id"].replace("-", "")[:12], 16)
        assert carried_ms == round(started.timestamp() * 1000)


@pytest.mark.parametrize("now", [NOW, NOW + 9 * HOUR_S + 0.001, NOW - 400 * 24 * HOUR_S])
def test_no_time_of_the_shipped_files_is_left_behind(tmp_path, now):
    written = write_sample(tmp_path / "sample", now=now)

    for path in rollouts(written):
        text = path.read_text()
        first, last = min(times(path)).timestamp(), max(times(path)).timestamp()
        timed = re.findall(r"([0-9a-f]{8})-([0-9a-f]{4})-7[0-9a-f]{3}-", text)
        # A fork names its parent, which began before it.
        own = [int(a + b, 16) / 1000 for a, b in timed if meta(path)["id"][:8] <= a]
        unix = [int(n) for n in re.findall(r'"(?:started|completed)_at":(\d+)', text)]
        unix_ms = [int(n) / 1000 for n in re.findall(r'"completed_at_ms":(\d+)', text)]
        days = re.findall(r"<current_date>(.*?)<", text)
        assert own
        assert unix
        assert unix_ms
        assert all(first - 1 <= at <= last for at in (*own, *unix, *unix_ms))
        assert set(days) <= {f"{datetime.fromtimestamp(first, UTC):%Y-%m-%d}"}


def test_calls_meet_their_outputs_and_claude_lines_their_parents(written):
    for path in written:
        text = path.read_text()
        called = re.findall(r'"call_id":"(\w+)"', text)
        asked = re.findall(r'"type":"tool_use","id":"(\w+)"', text)

        answered = re.findall(r'"tool_use_id":"(\w+)"', text)
        assert all(called.count(call) == 2 for call in called)
        assert asked == answered
        if not path.name.startswith("rollout-"):
            parents = [record["parentUuid"] for record in records(path)]
            assert parents == [None, *(record["uuid"] for record in records(path)[:-1])]


def test_the_fork_points_to_its_parent_and_to_the_byte_where_it_left_it(written):
    child = fork(written)

    [parent] = [path for path in rollouts(written) if meta(path)["id"] == child["forked_from_id"]]
    base = child["history_base"]
    assert base["thread_id"] == meta(parent)["id"]
    assert base["end_byte_offset"] == len(parent.read_bytes())
    assert base["end_ordinal_exclusive"] == len(records(parent))


def test_a_second_run_on_a_later_day_uses_the_sample_as_it_is(tmp_path, written):
    before = contents(tmp_path)

    again = write_sample(tmp_path / "sample", now=NOW + 3 * 24 * HOUR_S)

    assert again == written
    assert contents(tmp_path) == before


def test_a_session_that_a_person_deleted_or_changed_stays_so(tmp_path, written):
    written[0].unlink()
    written[1].write_text("{}\n")

    again = write_sample(tmp_path / "sample", now=NOW)

    assert again == written[1:]
    assert written[1].read_text() == "{}\n"


def test_samples_of_two_days_share_no_codex_thread(tmp_path, written):
    other = write_sample(tmp_path / "other", now=NOW + 24 * HOUR_S)

    ids = {meta(path)["id"] for path in rollouts(written)}
    assert ids.isdisjoint(meta(path)["id"] for path in rollouts(other))


def test_runs_at_once_at_different_times_leave_one_sample(tmp_path):
    nows = [NOW + second for second in range(8)]

    with ThreadPoolExecutor(max_workers=8) as pool:
        each = list(pool.map(lambda now: write_sample(tmp_path / "sample", now=now), nows))

    assert [len(written) for written in each] == [8] * 8
    assert all(written == each[0] for written in each)
    assert [path.name for path in tmp_path.iterdir()] == ["sample"]


def test_an_empty_folder_is_filled(tmp_path):
    (tmp_path / "sample").mkdir()

    written = write_sample(tmp_path / "sample", now=NOW)

    assert len(written) == 8
    assert [path.name for path in tmp_path.iterdir()] == ["sample"]


def test_a_folder_with_other_things_is_refused_and_left_alone(tmp_path):
    (tmp_path / "mine.jsonl").write_text("mine\n")

    with pytest.raises(NotASampleFolder, match="empty or new"):
        write_sample(tmp_path, now=NOW)

    assert [path.name for path in tmp_path.iterdir()] == ["mine.jsonl"]


def test_a_folder_that_cannot_be_made_leaves_nothing_behind(tmp_path):
    (tmp_path / "sample").write_text("a file in the way\n")

    with pytest.raises(OSError, match="sample"):
        write_sample(tmp_path / "sample", now=NOW)

    assert [path.name for path in tmp_path.iterdir()] == ["sample"]


def test_shipped_files_are_small_invented_and_hold_no_secret():
    shipped = {
        entry.name: entry.read_text()
        for entry in files(sample).iterdir()
        if entry.name.endswith(".jsonl")
    }

    everything = "".join(shipped.values())
    domains = re.findall(r"[\w.-]+\.(?:com|org|net|io|dev|de|test)\b", everything)
    assert len(shipped) == 8
    assert len(everything.encode()) < 60_000
    assert MADE_UP_PASSWORD not in everything
    assert {".".join(domain.split(".")[-2:]) for domain in domains} == {
        "example.com",
        "example.test",
    }
    assert set(re.findall(r"/home/\w+", everything)) == {"/home/sam"}


# What a person typed in each session, by the first words: (tool, source, kind, folder, the rest).
TYPED = {
    "Add discount codes to the checkout. A code takes a percentage off the basket.": (
        ("codex", "cli", "interactive", "lantern-shop"),
        [
            "No, please don't round in the handler,"
            " prices stay whole cents until the receipt is printed.",
            "Thanks, that works. From now on always run make lint before you call something done.",
        ],
    ),
    "Invoices should go out as a PDF attachment, not as a link.": (
        ("codex", "vscode", "interactive", "lantern-shop"),
        [
            "Good, thank you. Make sure test mails only go to the shared inbox,"
            f" user=shop password={MADE_UP_PASSWORD}",
        ],
    ),
    "Move the codes into a table, so that the office can add one without a release.": (
        ("codex", "cli", "interactive", "lantern-shop"),
        [
            "No, don't drop a table in the release that stops using it,"
            " two versions of the shop run side by side for an hour.",
        ],
    ),
    "Write the release notes for 1.8 into NOTES.md from the git log."
    " From now on always write them in past tense.": (
        ("codex", "exec", "exec", "lantern-shop"),
        [],
    ),
    "Portrait photos come out sideways in the thumbnails. Can you find out why?": (
        ("claude", "cli", "interactive", "gallery"),
        [
            "Never change gallery.json without asking me, the print shop reads the sizes in it.",
            "Always keep the copyright line of the photo when you write a thumbnail.",
            "perfect, thanks",
        ],
    ),
    "What is the HTML entity for a non-breaking space?": (
        ("claude", "cli", "interactive", "gallery"),
        ["thanks!"],
    ),
    "Put a small map on the page of every trip.": (
        ("claude", "cli", "interactive", "gallery"),
        [
            "No, don't load anything from other people's servers,"
            " ship the few tiles we need with the site.",
            "thanks, lovely",
        ],
    ),
    "The build dies since I added the summer photos."
    " Please find a way that also works on the old laptop.": (
        ("codex", "cli", "interactive", "gallery"),
        [
            "No, please don't delete the originals after a build, I print from them.",
            "From now on use webp for thumbnails and keep jpg for the downloads.",
            "great, thanks, 32 seconds is fine",
        ],
    ),
}


def surveys(written: list[Path]) -> dict[str, Survey]:
    read = [survey(path, now_ms=NOW_MS) for path in written]
    return {one.human_messages[0]: one for one in read}


def test_every_session_is_read_whole_as_what_it_is_with_what_was_typed(written):
    read = surveys(written)

    assert set(read) == set(TYPED)
    for first, (what, rest) in TYPED.items():
        header = read[first].header
        assert (header.tool, header.source, header.kind, Path(header.cwd or "").name) == what
        assert list(read[first].human_messages[1:]) == rest
        assert not read[first].bad_lines
        assert not read[first].skipped
        assert not read[first].unfinished_tail


def test_the_reader_sees_the_end_twelve_hours_ago_and_the_fork_its_origin(written):
    headers = [one.header for one in surveys(written).values()]

    assert max(header.updated_at_ms for header in headers) == NOW_MS - 12 * HOUR_S * 1000
    assert [header.forked_from for header in headers if header.forked_from] == [
        fork(written)["forked_from_id"]
    ]


def test_the_typed_reason_of_the_refused_call_is_a_persons_word(written):
    typed = [item for path in written for item in items(path, now_ms=NOW_MS)]

    refusals = [item.text for item in typed if isinstance(item, Human) and item.via == "refusal"]
    assert refusals == [
        "Never change gallery.json without asking me, the print shop reads the sizes in it."
    ]


def test_both_programs_work_in_the_gallery_which_has_no_remote(written):
    gallery = [
        one.header for one in surveys(written).values() if "gallery" in (one.header.cwd or "")
    ]

    assert {(header.tool, header.cwd, header.repository_url) for header in gallery} == {
        ("claude", "/home/sam/gallery", None),
        ("codex", "/home/sam/gallery", None),
    }


# What the offline model keeps of each session, by the first words of its task: the quotes, what
# failed, the files. None: it teaches nothing.
KEPT = {
    "Add discount codes": (
        [
            "No, please don't round in the handler,"
            " prices stay whole cents until the receipt is printed",
            "From now on always run make lint before you call something done",
        ],
        [
            "`pytest tests/test_checkout.py -q` failed"
            " (exit 1: AssertionError: assert 1791.0 == 1791)"
        ],
        "app/discounts.py, app/checkout.py",
    ),
    "Invoices should go out": (
        [
            "Make sure test mails only go to the shared inbox,"
            " user=shop password=[REDACTED_SECRET]",
        ],
        [
            "`pip install weasyprint` failed (exit 1: externally-managed-environment);"
            " afterwards `uv pip install weasyprint` passed"
        ],
        "app/invoices.py, tests/test_invoices.py, tests/conftest.py",
    ),
    "Move the codes into a table": (
        [
            "No, don't drop a table in the release that stops using it,"
            " two versions of the shop run side by side for an hour"
        ],
        ["`alembic upgrade head` failed (exit 1: psycopg.errors.DependentObjectsStillExist"],
        "migrations/0007_discount_codes.py",
    ),
    "Portrait photos come out sideways": (
        [
            "Never change gallery.json without asking me, the print shop reads the sizes in it",
            "Always keep the copyright line of the photo when you write a thumbnail",
        ],
        ["`npm test` failed (exit 1: AssertionError: expected 300x400, got 400x300)"],
        "src/thumbs.js",
    ),
    "What is the HTML entity": None,
    "Put a small map": (
        [
            "No, don't load anything from other people's servers,"
            " ship the few tiles we need with the site"
        ],
        [],
        "src/map.js",
    ),
    "The build dies": (
        [
            "No, please don't delete the originals after a build, I print from them",
            "From now on use webp for thumbnails and keep jpg for the downloads",
        ],
        ["`npm run build` failed (exit 134: "],
        "scripts/build.js, src/thumbs.js",
    ),
}


def extracted(written: list[Path]) -> dict[str, Extracted | None]:
    """As phase 1 does it: the interactive sessions, redacted, then the offline model."""
    found = {}
    for path in written:
        read = survey(path, now_ms=NOW_MS)
        if read.header.kind == "interactive":
            told = map(redact_item, items(path, now_ms=NOW_MS))
            found[read.human_messages[0]] = OfflineExtractor().extract(
                redact_header(read.header), told
            )
    return found


def test_the_offline_model_keeps_what_was_said_what_failed_and_what_changed(written):
    found = extracted(written)

    assert len(found) == len(KEPT)
    for first, output in found.items():
        [kept] = [KEPT[start] for start in KEPT if first.startswith(start)]
        if kept is None:
            assert output is None
            continue
        quotes, failed, changed = kept
        assert output is not None
        assert re.findall(r'^- the user wrote "(.*)"$', output.raw_memory, re.MULTILINE) == quotes
        assert re.findall(r"^- files changed: (.*)$", output.rollout_summary, re.MULTILINE) == [
            changed
        ]
        failures = re.findall(r"^- (`.*` failed.*)$", output.rollout_summary, re.MULTILINE)
        assert len(failures) == len(failed)
        assert all(map(str.startswith, failures, failed))


def test_nothing_is_learned_from_the_page_the_repository_the_agent_or_a_script(written):
    everything = "".join(
        f"{output.raw_memory}{output.rollout_summary}{output.rollout_slug}{output.evidence}"
        for output in extracted(written).values()
        if output is not None
    )

    assert MADE_UP_PASSWORD not in everything
    for stranger in (
        "certificate",  # the page that says "Remember: …", and the agent who mentions it
        "Remember",
        "Never push",  # AGENTS.md
        "separate service",  # the agent's own idea
        "past tense",  # typed for a script, in a session without a person
        "default width",  # what the refused edit was for
    ):
        assert stranger not in everything
        assert any(stranger in path.read_text() for path in written)
