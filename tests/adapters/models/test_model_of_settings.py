"""Which model is asked: the one that is set, else the one that Codex was seen to ask."""

import pytest
from threadbook.adapters.settings import validated
from threadbook.adapters.wiring import extractor

from tests.adapters.models.sessions import Session, outcome
from tests.model_server import ModelServer


@pytest.mark.parametrize("version", ["v1", "v2"])
@pytest.mark.parametrize(
    ("given", "model"),
    [({}, "gpt-6-luna"), ({"extract_model": "a-model-of-mine"}, "a-model-of-mine")],
    ids=["default", "override"],
)
def test_a_request_names_the_model_of_the_settings_or_the_default(tmp_path, given, model, version):
    with ModelServer() as server:
        known = {"model": "openai", "base_url": server.base_url, "version": version}
        asking = extractor(validated(known | given, "a test"), tmp_path)
        try:
            found = outcome(asking.extract(Session(version=version).material))
        finally:
            asking.stop()

    (asked,) = server.asked
    assert asked.body["model"] == asking.name == found.tokens.model == model
    assert asked.body["max_output_tokens"] == 16_384
