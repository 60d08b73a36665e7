import pytest

from fairduel.agents import AGENTS
from helpers.agents import FIVE

NAMES = [*FIVE, "ginop"]


@pytest.fixture(params=[AGENTS[name] for name in NAMES], ids=NAMES)
def kind(request):
    """Each of the paper's five agents, and one that explores by the Hessian."""
    return request.param
