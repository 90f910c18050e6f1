"""What our own tools gave a session back is known by the call that asked for it."""

from threadbook.adapters.rollouts.echo import READ_BACK, WAITING_MAX, without_own
from threadbook.domain.session import Call, Output


def ours(call_id):
    return Call(line=1, call_id=call_id, name="mcp__threadbook__read", arguments="{}")


def other(call_id):
    return Call(line=1, call_id=call_id, name="mcp__maps__read", arguments="{}")


def result(call_id, text="words"):
    return Output(line=2, call_id=call_id, text=text)


def texts(items):
    return [each.text for each in without_own(items) if isinstance(each, Output)]


def test_calls_that_run_side_by_side_are_each_known_by_their_own_result():
    said = [ours("a"), other("b"), ours("c"), result("b"), result("c"), result("a"), result(None)]

    assert texts(said) == ["words", READ_BACK, READ_BACK, "words"]


def test_a_second_answer_to_a_call_of_ours_is_no_less_ours():
    assert texts([ours("a"), result("a"), result("a", "again")]) == [READ_BACK, READ_BACK]


def test_of_calls_that_never_get_a_result_the_newest_are_held():
    said = [ours(f"lost-{n}") for n in range(WAITING_MAX)] + [ours("new")]

    assert texts([*said, result("lost-0"), result("lost-1"), result("new")]) == [
        "words",
        READ_BACK,
        READ_BACK,
    ]
