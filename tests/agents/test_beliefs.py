"""The linear belief's compiled step against the plain one that every belief inherits."""

import importlib.util
import subprocess
import sys

import numpy as np
import pytest

from fairduel import BadInputError
from fairduel.agents import AGENTS
from fairduel.agents.parts.belief import Belief
from fairduel.simulation import Cell
from helpers.agents import answer, made, sphere

NAMES = ["rcdb", "rcdb-s", "maxinp", "colstim", "ginop", "hcw", "rcdp", "sceptic", "random-pairs"]


@pytest.mark.parametrize("self_duels", [True, False])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.filterwarnings("ignore::fairduel.LockInWarning")
def test_one_compiled_step_is_the_plain_step_of_any_belief(name, self_duels, monkeypatch):
    settings = {"self_duels": self_duels, "warmup": 5, **({"patience": 2} if name == "sceptic" else {})}
    fast, slow = (made(AGENTS[name], **settings) for _ in range(2))
    monkeypatch.setattr(slow.belief, "ask", lambda *args: Belief.ask(slow.belief, *args))
    rng = np.random.default_rng(0)
    for number in range(60):
        actions = sphere(rng)
        duel, twin = fast.ask(actions), slow.ask(actions)
        assert (duel.number, duel.first, duel.second) == (number, twin.first, twin.second)
        for field in ("difference", "weight", "width", "slope"):
            np.testing.assert_allclose(getattr(duel, field), getattr(twin, field), rtol=1e-9, atol=1e-12)
        outcome = answer(duel, rng.random())
        for agent, asked in ((fast, duel), (slow, twin)):
            if number % 10 == 9:
                agent.cancel(asked)
            else:
                agent.tell(asked, outcome)
    np.testing.assert_allclose(fast.information.matrix, slow.information.matrix, rtol=1e-9)
    np.testing.assert_allclose(fast.steering.matrix, slow.steering.matrix, rtol=1e-9)


def test_a_class_is_imported_when_it_is_asked_for():
    """By its name in the registry or in the package, or by a saved agent."""
    code = """
import sys
import fairduel
def imported():
    return {name.removeprefix("fairduel.agents.") for name in sys.modules if name.startswith("fairduel.agents.")}
assert not any(name in imported() for name in ("rcdb", "maxinp", "parts.contextual")), imported()
from fairduel.agents import AGENTS, KArmed
assert "rcdb" in AGENTS and len(list(AGENTS)) == len(AGENTS) > 20 and "rcdb" not in imported()
assert fairduel.RCDB is AGENTS["rcdb"] and "rcdb" in imported() and "maxinp" not in imported()
state = fairduel.RCDB(dimension=2, norm_bound=2.0, flip_budget=5).state()
state["agent"] = "fairduel.agents.maxinp:MaxInP"
state["settings"] = {name: state["settings"][name] for name in ("dimension", "norm_bound")}
assert type(fairduel.Agent.from_state(state)).__name__ == "MaxInP"
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_neural_rivals_are_found_by_name_but_are_not_among_the_names():
    assert AGENTS["ndb-ucb"].title == "NDB-UCB"
    assert not set(AGENTS.optional) & set(AGENTS)


@pytest.mark.skipif(importlib.util.find_spec("torch") is not None, reason="PyTorch is installed")
@pytest.mark.parametrize(
    "settings", [{"agent": "ndb-ucb"}, {"agent": "rcdb", "agent_settings": {"map": "neural"}}], ids=str
)
def test_without_pytorch_one_sentence_says_what_to_install(settings):
    with pytest.raises(BadInputError, match=r"^this needs torch: install it with  pip install 'fairduel\[neural\]'$"):
        Cell(attack="none", budget=0, horizon=10, **settings).run(0)
