"""A real server, if there is one: any that speaks OpenAI's protocol, with any model.

    THREADBOOK_TEST_BASE_URL=http://127.0.0.1:8080/v1 THREADBOOK_TEST_MODEL=gemma \\
        python -m pytest tests/adapters/models/test_local_server.py

What is tested is the protocol, not the model: the smallest one writes nonsense, and in the right
form. One request at a time, a low cap, a long deadline: such servers have one slot and no hurry.
`THREADBOOK_TEST_KEY` is for those that want a key.
"""

import json
import os

import pytest
from threadbook.adapters.models.calls import Calls
from threadbook.adapters.models.extractor import OpenAIExtractor
from threadbook.adapters.models.questions import Question, message
from threadbook.adapters.models.schemas import STAGE_ONE, fitted, is_one_object
from threadbook.adapters.models.servers import FILE, Servers
from threadbook.adapters.models.stage_one import schema
from threadbook.adapters.models.wire import Wire
from threadbook.application.ports import Extracted
from threadbook.application.surroundings import Provider

from tests.adapters.models.sessions import Session, outcome

BASE_URL = os.environ.get("THREADBOOK_TEST_BASE_URL", "")
MODEL = os.environ.get("THREADBOOK_TEST_MODEL", "default")
KEY = os.environ.get("THREADBOOK_TEST_KEY") or "none"
DEADLINE_S = 300.0
CAP = 200

pytestmark = pytest.mark.skipif(
    not BASE_URL,
    reason="no model server was given: set THREADBOOK_TEST_BASE_URL (and _MODEL, _KEY) to test one",
)


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_a_session_comes_to_an_end_that_its_future_tells(tmp_path, version):
    asking = OpenAIExtractor(
        Provider(
            base_url=BASE_URL,
            extract_model=MODEL,
            consolidation_model=MODEL,
            context_window=2_000,
            max_output_tokens=CAP,
        ),
        home=tmp_path,
        api_key=KEY,
        deadline_s=DEADLINE_S,
    )
    session = Session("From now on run make check-ferns before every commit.", version=version)

    try:
        found = outcome(asking.extract(session.material), 3 * DEADLINE_S)
    finally:
        asking.stop()

    # A small model may write until its cap; that is an end, too.
    print(found.tokens, getattr(found, "reason", "an output"))
    assert isinstance(found, Extracted) or found.kind in ("too_long", "bad_reply"), found.reason
    assert found.tokens.calls > 0
    assert found.tokens.output > 0


def test_a_short_question_gets_an_object_of_its_schema_however_the_server_is_asked(tmp_path):
    servers = Servers(tmp_path)
    wire = Wire(base_url=BASE_URL, api_key=KEY, servers=servers, deadline_s=DEADLINE_S)
    calls = Calls(at_end=wire.close)
    question = Question(
        model=MODEL,
        instructions="You answer with one JSON object, and with short texts.",
        inputs=[message("user", "Name a colour in rollout_summary and a fruit in rollout_slug.")],
        schema=schema("v2"),
        effort="low",
        tokens_max=CAP,
    )

    async def ask():
        return await wire.ask(question, fits=is_one_object)

    try:
        first = calls.start(ask, stopped=AssertionError).result(3 * DEADLINE_S)
        second = calls.start(ask, stopped=AssertionError).result(3 * DEADLINE_S)
    finally:
        calls.stop()

    for answer in (first, second):
        assert fitted(STAGE_ONE["v2"], answer.text)
        assert 0 < answer.tokens.output <= CAP * answer.tokens.calls
    assert second.tokens.calls == 1
    (kept,) = json.loads((tmp_path / FILE).read_text()).values()
    print(kept)
    assert kept["proven"]
