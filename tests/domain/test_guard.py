import pytest
from threadbook.domain.guard import RateLimits, Window, allows

NOW = 1_800_000_000


def used(primary: float | None, secondary: float | None = None, **more) -> RateLimits:
    windows = [None if each is None else Window(used_percent=each) for each in (primary, secondary)]
    return RateLimits(limit_id="codex", primary=windows[0], secondary=windows[1], **more)


@pytest.mark.parametrize(
    ("told", "least", "allowed"),
    [
        ([], 25, True),
        ([used(None)], 100, True),
        ([used(89.9)], 10, True),
        ([used(89.9)], 11, False),
        ([used(74.9, 74.9)], 25, True),
        ([used(75.0, 75.0)], 25, True),
        ([used(75.1, 10)], 25, False),
        ([used(10, 75.1)], 25, False),
        ([used(100)], -5, True),
        ([used(0.1)], 250, False),
        ([used(1, reached=True)], 25, False),
        ([used(None, reached=True)], 25, False),
    ],
)
def test_every_window_must_have_the_least_left_and_exactly_that_is_enough(told, least, allowed):
    assert allows(told, min_remaining_percent=least, now=NOW) is allowed


def test_codexs_own_limit_counts_and_else_the_first():
    other = RateLimits(limit_id="other", primary=Window(used_percent=99))

    assert allows([other, used(10)], min_remaining_percent=25, now=NOW)
    assert not allows([other], min_remaining_percent=25, now=NOW)


def test_a_window_that_has_ended_is_full_again():
    spent = Window(used_percent=100, resets_at=NOW)

    assert allows([RateLimits(primary=spent, reached=True)], min_remaining_percent=25, now=NOW)
    assert not allows([RateLimits(primary=spent)], min_remaining_percent=25, now=NOW - 1)
