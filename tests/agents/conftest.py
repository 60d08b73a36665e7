import pytest

from fairduel.agents import AGENTS
from helpers.agents import FIVE


@pytest.fixture(params=[AGENTS[name] for name in FIVE], ids=FIVE)
def kind(request):
    """Each of the paper's five agents."""
    return request.param
