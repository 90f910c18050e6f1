"""The spool hands out each line until somebody has come to a good end with it."""

import pytest
from threadbook.adapters.spool import Spool


def test_a_slow_taker_takes_away_nothing_that_was_left_since(tmp_path):
    spool = Spool(tmp_path)
    spool.leave(b"first")

    with spool.taking() as slow:
        with spool.taking() as quick:
            pass
        spool.leave(b"second")
        with pytest.raises(KeyboardInterrupt), spool.taking():
            raise KeyboardInterrupt

    assert (slow, quick) == ([b"first"], [b"first"])
    with spool.taking() as left:
        assert left == [b"second"]
    with spool.taking() as nothing:
        assert nothing == []
