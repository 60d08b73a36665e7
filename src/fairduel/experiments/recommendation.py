"""The final recommendation: which agents still name the best action if lies come first, spread out or last."""

from fairduel.agents import AGENTS, ContextualAgent
from fairduel.experiments.experiment import Entry, Experiment, Shares
from fairduel.experiments.paper_setup import BUDGET, HORIZON, Attack, paper_cell

MANY = 200
AGENT_NAMES = tuple(
    name for name, kind in AGENTS.items() if issubclass(kind, ContextualAgent) and kind.estimator != "one-pass"
)
"""The agents that store votes."""
WAYS = {"by votes": "votes", "by its estimate": "estimate"}


def _attacks(self_duels: bool) -> list[Attack]:
    where = "self-duels" if self_duels else "people"
    return [
        Attack(f"{budget} lies {when}, {where}", "adversarial", settings, budget=budget)
        for budget in (BUDGET, MANY)
        for when, settings in {
            "first": {},
            "spread out": {"every": HORIZON // budget},
            "last": {"start": HORIZON - 2 * budget + 1},  # about every second outcome can be flipped
        }.items()
    ]


def recommendation() -> Experiment:
    """Declare the comparison of final recommendations."""
    entries = [
        Entry(
            paper_cell(agent, attack, {"recommend_by": how, "self_duels": self_duels}),
            words,
            attack.panel,
            is_reference=(agent, how) == ("rcdb", "votes"),
        )
        for self_duels in (False, True)
        for attack in _attacks(self_duels)
        for agent in AGENT_NAMES
        for words, how in WAYS.items()
    ]
    return Experiment(
        name="recommendation",
        title="The final recommendation under lies at any time",
        question=f"Which agents recommend the best action after {HORIZON} votes, some of them lies?",
        entries=entries,
        views=[Shares("Share of runs that recommend the best action (95% interval).")],
        notes=[
            f"The adversarial attack flips outcomes that agree with the model, at most {BUDGET} or {MANY}: from the "
            "first round on, in every n-th round, or in the last rounds. Agents that take a flip budget are told it.",
            "'people': no action is asked against itself. 'by votes': the recommendation counts all votes alike but "
            "sets aside up to two stretches that contradict the rest; 'by its estimate': it is that of the estimate "
            "that chooses duels. Both have the same duels.",
            "After lies at the start, agents that trust every outcome go on asking one or two pairs. Their votes then "
            "say little about all other actions, however one concludes from them.",
        ],
    )
