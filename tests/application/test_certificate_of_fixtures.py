"""Every session of the fixtures is forgotten and proven, one after the other, in one home."""

import pytest

from tests.application.homes import FIXTURES, HALF_A_DAY_LATER, HOUR_S, Home


@pytest.fixture
def known(tmp_path):
    home = Home(tmp_path, now=HALF_A_DAY_LATER)
    home.run([FIXTURES], backfill=-1)
    home.later(HOUR_S).run([FIXTURES], backfill=-1)
    yield home
    home.memory.close()


def test_every_forgetting_is_proven(known):
    ids = [line.thread_id for line in known.memory.threads()]

    proven = [known.memory.forget(thread_id, prove=True) for thread_id in ids]

    assert [each.verdict for each in proven] == ["clean"] * len(ids)
    assert len(ids) > 30
    assert len([each for each in proven if each.words.marks > 20]) > 15
