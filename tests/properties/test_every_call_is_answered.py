"""Whatever a model and its server do, each call gets its one result, each request is counted, and
nothing but a proposal comes of it.

The server is as strict as a real one (`Turns`): a request without a result, or with other words
than were said, is refused and noted.
"""

import tempfile
from pathlib import Path

from hypothesis import event, given, settings
from hypothesis import strategies as st
from threadbook.adapters.models.loop import LEFT_OUT
from threadbook.application.ports import ConsolidationFailed

from tests import model_server, model_turns
from tests.adapters.models.consolidating import STAGED, asking, only_chat, task
from tests.model_server import Reply, call, refusal, response
from tests.model_turns import FINISH, wrote

CACHED, CACHED_OTHERWISE = (
    each.USAGE["input_tokens_details"]["cached_tokens"] for each in (model_turns, model_server)
)
RAW = "what was said, " * 50
CUT = Reply(
    response(
        call("write", '{"path": "MEMO'),
        status="incomplete",
        incomplete_details={"reason": "max_output_tokens"},
    )
)
READ = ("read", {"path": "raw_memories.md", "offset": None})
CALLS = (
    wrote("MEMORY.md", "new\u2028\n"),
    wrote("skills/a/SKILL.md", "x"),
    wrote("../outside.md", "x"),
    wrote("raw_memories.md", "x"),
    ("write", '{"path": "MEMORY.md", "content": "\\ud800"}'),
    ("write", "no JSON"),
    ("read", {"path": "MEMORY.md", "offset": None}),
    ("read", {"path": ".git/config", "offset": None}),
    READ,
    ("search", {"text": "o", "path": None, "ignore_case": True, "start": None}),
    ("delete", {"path": "MEMORY.md"}),
    ("move", {"path": "MEMORY.md", "to": "skills/b.md"}),
    ("list", {"path": "", "start": -1}),
    ("shell", {"command": "true"}),
    ("", ""),
    ("finish", {"really": True}),
)
BUSY = Reply("upstream connect error", status=503)
MADE = st.lists(st.sampled_from(CALLS), min_size=1, max_size=4)
BROKEN = st.sampled_from([BUSY, "cut", "no_answer", "context_length", "response_failed", CUT])
ENDS = st.sampled_from(
    [FINISH, "Done.", Reply(response(refusal("no"))), "unauthorized", "content_filter"]
)


@settings(max_examples=25, deadline=None)
@given(
    begins=st.sampled_from([[], [[READ], [READ, READ], "context_length"]]),
    turns=st.lists(st.one_of(*[MADE] * 7, BROKEN), max_size=9),
    end=ENDS,
    is_chat=st.booleans(),
    lost_after=st.none() | st.integers(0, 30),
)
def test_each_call_has_its_one_result_and_each_request_its_price(
    begins, turns, end, is_chat, lost_after
):
    asked_for = iter(range(10_000))
    given_task = task(
        staged=STAGED | {"raw_memories.md": RAW},
        alive=lambda: lost_after is None or next(asked_for) < lost_after,
    )
    server = only_chat if is_chat else None

    with (
        tempfile.TemporaryDirectory() as folder,
        asking(Path(folder), *begins, *turns, end, server=server) as (played, it),
    ):
        try:
            made = it.propose(given_task)  # It looks whether anything is left, or was changed.
            event(f"left out: {sum(each == LEFT_OUT for each in played.results) > 0}")
            assert made.files.keys() >= STAGED.keys() - {"MEMORY.md"}
            assert made.files["raw_memories.md"] == RAW
            assert not any(path.startswith((".", "outside")) for path in made.files)
        except ConsolidationFailed as failed:
            made = failed
            event(failed.reason)
        requests = len(it.server.asked)

    assert played.wrong == []
    # One that was given up before it was sent has its price, too.
    assert requests <= made.tokens.calls <= requests + (lost_after is not None)
    assert all(count > 0 for count in made.tool_calls.values())
    if lost_after is None:
        answers = sum(item["type"] == "reasoning" for item in played.said)
        least = CACHED * answers
        assert least <= made.tokens.cached <= least + CACHED_OTHERWISE * (requests - answers)
