"""Every enabled output that is not selected is within the cutoff or prunable, and never both.

Times are drawn around the cutoff, where an off-by-one would keep something for ever or lose it.
"""

from hypothesis import event as reached
from hypothesis import given, settings
from hypothesis import strategies as st
from threadbook.domain.selection import Output, is_prunable, prunable, rank

CUTOFF = 1_000
times = st.integers(min_value=CUTOFF - 2, max_value=CUTOFF + 2)
facts = st.fixed_dictionaries(
    {
        "source_updated_at": times,
        "counts_from": times,
        "usage_count": st.integers(min_value=0, max_value=2),
        "last_usage": st.one_of(st.none(), times),
        "mode": st.sampled_from(["enabled", "enabled", "disabled", "polluted"]),
        "selected": st.booleans(),
    }
)
roots = st.lists(facts, max_size=8).map(
    lambda drawn: [Output(thread_id=f"t{place}", **each) for place, each in enumerate(drawn)]
)


@settings(deadline=None)
@given(outputs=roots)
def test_what_is_not_selected_is_within_the_cutoff_or_prunable_and_never_both(outputs):
    within = {each.thread_id for each in rank(outputs, cutoff=CUTOFF, limit=99).chosen}

    aged = {each.thread_id for each in prunable(outputs, cutoff=CUTOFF, limit=99)}

    for output in outputs:
        assert not (output.thread_id in within and output.thread_id in aged)
        if output.mode == "enabled" and not output.selected:
            reached("aged" if output.thread_id in aged else "within")
            assert output.thread_id in within or output.thread_id in aged
        if output.selected:
            assert not is_prunable(output, cutoff=CUTOFF)


@settings(deadline=None)
@given(outputs=roots, limit=st.integers(min_value=0, max_value=9))
def test_the_best_are_chosen_and_everybody_has_a_reason(outputs, limit):
    ranking = rank(outputs, cutoff=CUTOFF, limit=limit)

    ranked = [entry for entry in ranking.entries if entry.rank is not None]
    assert {entry.output.thread_id for entry in ranking.entries} == {
        output.thread_id for output in outputs
    }
    assert [entry.rank for entry in ranked] == list(range(1, len(ranked) + 1))
    assert [entry.chosen for entry in ranked] == [place < limit for place in range(len(ranked))]
    assert all(entry.reason for entry in ranking.entries)
    chosen = [output.thread_id for output in ranking.chosen]
    assert chosen == sorted(entry.output.thread_id for entry in ranked if entry.chosen)
    assert rank(reversed(outputs), cutoff=CUTOFF, limit=limit) == ranking
