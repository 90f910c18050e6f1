"""Looking back, and the shape of what programs are told."""

import pytest
from msgspec import to_builtins
from threadbook.adapters import inspection

from tests.application.conftest import A, B
from tests.application.homes import (
    DAY_S,
    HOUR_S,
    NOON,
    ROLLOUTS,
    Home,
    Session,
    used,
)

pytestmark = pytest.mark.usefixtures("database")  # On the file and on a server.


def chosen(past):
    return {line["thread_id"]: line["selected"] for line in past["selection"]}


def test_each_position_shows_what_was_then(story):
    memory = story.memory

    ranks = {
        name: {line["thread_id"]: line["rank"] for line in memory.at(position)["selection"]}
        for name, position in (("ran", story.ran), ("cited", story.cited))
    }

    assert ranks["ran"] == {B.id: 1, A.id: 2}
    assert ranks["cited"] == {A.id: 1, B.id: 2}
    assert chosen(memory.at(story.polluted)) == {B.id: True}
    assert [row["thread_id"] for row in memory.at(story.polluted)["recorded"]] == [A.id, B.id]
    assert [row["thread_id"] for row in memory.at(story.position)["recorded"]] == [B.id]


def test_nothing_was_before_the_first_event_and_now_is_the_end(story):
    empty = story.memory.at(0)

    assert empty == {
        "position": 0,
        "at": None,
        "threads": [],
        "jobs": [],
        "outputs": [],
        "selection": [],
        "recorded": [],
    }
    assert story.memory.at(10**9) == story.memory.at(story.position)
    assert story.memory.at(story.position) == story.memory.at()


def test_a_time_is_the_last_position_recorded_by_then(story):
    memory = story.memory

    assert memory.at(float(NOON))["position"] == story.ran
    assert memory.at(NOON + HOUR_S - 0.5)["position"] == story.ran
    assert memory.at(float(NOON + HOUR_S))["position"] == story.cited
    assert memory.at(NOON - 1.0)["position"] == 0


def test_explain_at_a_position_judges_at_the_time_it_was_recorded(story):
    story.later(100 * DAY_S)

    told = story.memory.explain(B.id, at=story.ran)

    assert told.at == NOON
    assert all(gate.passed for gate in told.gates)
    assert [gate.name for gate in story.memory.explain(B.id).gates if not gate.passed] == [
        "recent",
        "rank",
    ]


def test_looking_back_stores_nothing(story):
    before = story.position

    for position in range(before + 1):
        story.memory.at(position)

    assert story.position == before


def test_the_past_that_was_folded_is_the_past_that_was_followed(tmp_path):
    """At each position the fold anew shows what the tables held when that was the end."""
    home = Home(tmp_path)
    home.write(A, B)
    seen = {}

    def look():
        seen[home.position] = home.memory.at()

    home.memory.ingest([home.sessions])
    look()
    home.run()
    look()
    used(home.memory, [A.id], "s", 1)
    look()
    home.memory.set_mode(B.id, "disabled")
    look()
    home.run()
    look()

    assert {position: home.memory.at(position) for position in seen} == seen


# The keys that other programs rely on. A key may be added; none of these may go.


def keys(answer):
    return set(to_builtins(answer))


def test_keys_of_run(story):
    story.write(Session(number=3))
    report = to_builtins(story.run())

    assert set(report) >= {"ingested", "skipped_lines", "stage1", "phase2", "tokens", "waiting"}
    assert set(report["stage1"]) >= {"claimed", "succeeded", "no_output", "failed", "waiting"}
    (root,) = report["phase2"]
    assert set(root) >= {"version", "scope", "status", "added", "modified", "deleted"}
    assert root["version"] == "v1"


def test_keys_of_threads(story):
    (first, second) = to_builtins(story.memory.threads())

    assert set(first) >= {
        "thread_id",
        "source",
        "kind",
        "scope",
        "memory_mode",
        "updated_at",
        "stage1",
        "selected",
    }
    assert {first["stage1"], second["stage1"]} == {"succeeded"}
    assert first["updated_at"] == "2026-01-01T05:00:00Z"


def test_keys_of_explain(story):
    told = to_builtins(story.memory.explain(A.id))

    assert set(told) >= {"gates", "rank", "events", "waiting"}
    assert {frozenset(gate) for gate in told["gates"]} == {frozenset({"name", "pass", "why"})}


def test_keys_of_the_past(story):
    past = story.memory.at(story.ran)

    assert set(past) >= {"threads", "jobs", "outputs", "selection"}
    assert set(past["selection"][0]) >= {"thread_id", "rank", "reason", "selected"}
    assert "make check" in past["outputs"][0]["raw_memory"]


def test_keys_of_verify(story):
    assert set(to_builtins(story.memory.verify())) >= {"ok", "positions"}


def test_keys_of_status(story):
    told = story.memory.status()

    assert set(told) >= {"home", "head", "events", "threads", "roots", "stuck", "spend", "settings"}
    assert told["head"].split()[0] == str(told["events"]) == str(story.position)
    assert told["clock"] == "simulated"
    assert told["settings"]["history_days"]["value"] == 30
    assert all(setting["reason"] for setting in told["settings"].values())


NO_SESSIONS = {"history.jsonl", "session_index.jsonl"}


@pytest.mark.parametrize("name", sorted({p.name for p in ROLLOUTS.glob("*.jsonl")} - NO_SESSIONS))
def test_keys_of_inspect_rollout(name):
    told = inspection.rollout(ROLLOUTS / name, home=ROLLOUTS, now=None)

    assert set(told) >= {
        "thread",
        "records",
        "bad_lines",
        "skipped",
        "human_messages",
        "unfinished_tail",
        "polluting",
    }
    assert set(told["thread"]) >= {
        "thread_id",
        "source",
        "kind",
        "cwd",
        "scope",
        "started_at",
        "updated_at",
        "forked_from",
    }
    assert told["thread"]["kind"] in ("interactive", "exec", "subagent", "internal", "unknown")


def test_inspect_names_each_bad_line(tmp_path):
    path = tmp_path / "s.jsonl"
    lines = A.text().splitlines()
    path.write_text("\n".join([lines[0], "{broken", *lines[1:]]) + "\n")

    told = inspection.rollout(path, home=path.parent, now=None)

    (bad,) = told["bad_lines"]
    assert set(bad) == {"line", "offset", "reason"}
    assert (bad["line"], bad["offset"]) == (2, len(lines[0]) + 1)


def test_the_file_the_folder_and_the_memory_name_the_same_project(home):
    home.write(A)
    home.run()

    of_the_file = inspection.rollout(home.file(A), home=home.path, now=home.now)

    told = home.memory.explain(A.id).scope
    assert home.memory.scope("/srv/fern") == told
    assert of_the_file["thread"]["scope"] == told
