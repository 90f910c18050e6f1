"""What changed between two positions, and a folder as it was."""

from tests.application.conftest import A, B
from tests.application.homes import Home


def test_between_two_positions_it_says_what_came_what_went_and_what_became(story: Home):
    memory = story.memory

    first = memory.diff(0, story.ran)
    used = memory.diff(story.ran, story.cited)
    left = memory.diff(story.cited)

    assert first["threads"]["added"] == [A.id, B.id]
    assert first["outputs"]["added"] == [f"{A.id} v1", f"{B.id} v1"]
    assert first["selection"][0]["entered"] == [A.id, B.id]
    assert "MEMORY.md" in first["folders"][0]["added"]
    assert used["events"] == {"read.shown": 1, "stage1.cited": 1}
    assert used["outputs"]["changed"][f"{A.id} v1"]["usage_count"] == [0, 1]
    assert (used["selection"], used["folders"]) == ([], [])
    assert left["threads"]["changed"][A.id]["mode"] == ["enabled", "polluted"]
    assert left["selection"][0]["left"] == [A.id]
    (folder,) = left["folders"]
    assert "MEMORY.md" in folder["modified"]
    assert len(folder["deleted"]) == 1
    assert "-- the user wrote" in folder["diff"]


def test_the_order_of_the_two_ends_does_not_matter_and_nothing_lies_between_one_and_itself(story):
    one, other = story.memory.diff(story.ran, 0), story.memory.diff(0, story.ran)

    assert one == other
    same = story.memory.diff(story.cited, story.cited)
    assert same["events"] == {}
    assert same["threads"] == same["outputs"] == {"added": [], "removed": [], "changed": {}}


def test_words_that_were_forgotten_are_in_no_difference(story: Home):
    story.memory.forget(A.id)

    told = story.memory.diff(0, story.ran)

    assert "make check" not in str(told)
    assert "[erased]" in str(told)
    assert told["threads"]["added"] == [A.id, B.id]


def test_an_export_of_the_past_is_the_folder_as_it_was(story: Home, tmp_path):
    now = story.memory.export(tmp_path / "now")
    then = story.memory.export(tmp_path / "then", at=story.ran)

    (scope,) = then
    assert A.says[0] in (then[scope] / "MEMORY.md").read_text()
    assert A.says[0] not in (now[scope] / "MEMORY.md").read_text()
    assert len(list((then[scope] / "rollout_summaries").iterdir())) == 2


def test_an_export_from_before_the_first_run_writes_nothing(story: Home, tmp_path):
    assert story.memory.export(tmp_path / "empty", at=1) == {}
