"""One home of two projects and one server of each era for all tests of the protocol."""

import pytest

from tests.adapters.mcp.clients import ERAS, connected
from tests.application.homes import FERN, MOSS, Home, Session

A = Session(number=1)
CANARY = "always feed the canary before you push"
B = Session(number=2, cwd=MOSS, says=(f"from now on {CANARY}",))
SESSION = "019b7a00-00ff-7000-8000-0000000000ff"


@pytest.fixture(scope="package")
def home(tmp_path_factory):
    home = Home(tmp_path_factory.mktemp("mcp"))
    home.write(A, B)
    home.run()
    yield home
    home.memory.close()


@pytest.fixture(scope="package")
def clients(home, tmp_path_factory):
    """Both at once, on one home; neither has the settings of whoever runs the tests."""
    nobody = str(tmp_path_factory.mktemp("nobody"))
    first, second = ERAS
    at = ("--cwd", FERN, "--session", SESSION)
    with (
        connected(home, *at, era=first, HOME=nobody) as one,
        connected(home, *at, era=second, HOME=nobody) as other,
    ):
        yield {first: one, second: other}


@pytest.fixture(params=ERAS)
def asked(request, clients):
    return clients[request.param]
