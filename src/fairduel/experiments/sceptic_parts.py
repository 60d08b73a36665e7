"""Sceptic without one of its parts at a time, each at several radii."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairduel.agents import Sceptic
from fairduel.agents.parts.round import Memory, Now, Plan
from fairduel.agents.parts.rules import is_doubted, symmetric
from fairduel.core.compiling import inlined
from fairduel.core.selection import View, pair_widths, pick, toughest_rival
from fairduel.experiments.comparing import group
from fairduel.experiments.experiment import Entry, Experiment, Lines, Results
from fairduel.experiments.paper_setup import ADVERSARIAL, BUDGET_UNKNOWN, GREEDY, MISLEADING, Attack, paper_cell
from fairduel.experiments.sentences import listed_few, with_interval
from fairduel.stats import Mean, jackknife

WHOLE = "complete"
OWN_RADIUS = 0.8
"""Sceptic's practical β."""
RADII = (0.4, OWN_RADIUS, 1.6)


@inlined
def per_regret(plan: Plan, now: Now, memory: Memory, seen: View, rng: np.random.Generator) -> tuple[int, int]:
    """Sceptic's rule with information per regret in place of squared regret."""
    rewards = seen.rewards
    leader = int(np.argmax(rewards))
    may_settle = plan.self_duels and not is_doubted(now, memory)
    if may_settle and toughest_rival(seen, now.radius, leader, True, rng.random()) == leader:
        return leader, leader
    costs = rewards[leader] - rewards + 0.5 * now.allowance
    worth = pair_widths(seen.gram) ** 2 / (costs.reshape((-1, 1)) + costs)
    chosen = pick(worth.ravel() / np.max(worth), rng.random())
    return chosen // rewards.size, chosen % rewards.size


@dataclass(kw_only=True, eq=False)
class BySymmetricRule(Sceptic):
    """Sceptic that asks RCDB's pair."""

    title = Sceptic.title
    _rule = staticmethod(symmetric)


@dataclass(kw_only=True, eq=False)
class PerRegret(Sceptic):
    """Sceptic that asks for information per regret."""

    title = Sceptic.title
    _rule = staticmethod(per_regret)


FORMS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    WHOLE: ("sceptic", {}),
    "all votes trusted alike": ("sceptic", {"growth": 0.0}),
    "prior of RCDB": ("sceptic", {"ridge": 0.25}),
    "pair of RCDB": (f"{__name__}:BySymmetricRule", {}),
    "regret not squared": (f"{__name__}:PerRegret", {}),
    "without the paper's weight": ("sceptic", {"trust": 1e9}),
}
"""Each form's agent and settings."""
PANELS = (
    Attack("no attack", "none", budget=0),
    GREEDY,
    ADVERSARIAL,
    MISLEADING,
    Attack("greedy, C = 100", "greedy", budget=100),
    Attack("misleading, C = 100", "misleading", {"target": "random"}, budget=100),
    Attack("adversarial from round 136 on", "adversarial", {"start": 136}),
)


def parts_of_sceptic() -> Experiment:
    """Sceptic without one of its parts at a time."""
    entries = [
        Entry(
            paper_cell(agent, attack, {**BUDGET_UNKNOWN, "radius": radius, **settings}),
            form,
            attack.panel,
            x=radius,
            is_reference=form == WHOLE,
        )
        for attack in PANELS
        for form, (agent, settings) in FORMS.items()
        for radius in RADII
    ]
    return Experiment(
        name="sceptic",
        title="What each part of Sceptic contributes",
        question="How much regret does Sceptic have without one of its parts?",
        entries=entries,
        conclude=_price_of_parts,
        views=[Lines("Final regret against the radius (log-log).", "radius β", scale="log")],
        notes=[
            "The paper's setup: hypercube, d = 5, ‖θ*‖ = 2, T = 2000, C = 45 unless a panel says otherwise. No form "
            "knows C. Everything that a form does not change keeps Sceptic's constants, except the radius.",
            "Sceptic's constants were chosen for the complete agent, which favours it. Each other form is judged at "
            "the best of three radii, chosen on these same runs, which favours the form.",
            "'All votes trusted alike': the first vote counts as much as the last. 'Prior of RCDB': λ = 1/B² in place "
            "of 320/(dB²). 'Pair of RCDB': (x_a + x_b)ᵀθ + β‖x_a − x_b‖ in place of information per squared regret.",
        ],
    )


def _price_of_parts(results: Results) -> list[str]:
    """How much regret each form of Sceptic has at its best radius, compared with the complete agent at its own."""
    forms = group(results.experiment.entries, lambda entry: entry.setting)
    whole = [entry for entry in forms.pop(WHOLE) if entry.x == OWN_RADIUS]
    ratios = {}
    for form, entries in forms.items():
        at_each = [_mean_ratio(results, same, whole) for same in group(entries, lambda entry: entry.x).values()]
        ratios[form] = min(at_each, key=lambda ratio: ratio.value)
    found = [
        f"Without one of its parts, Sceptic has this many times its regret (geometric mean over "
        f"{len(whole)} panels, best of {len(RADII)} radii): "
        + "; ".join(f"{form} {with_interval(ratio)}" for form, ratio in ratios.items())
        + "."
    ]
    idle = [form for form, ratio in ratios.items() if not ratio.low > 1.0]
    if idle:
        found.append(f"Not shown to reduce regret here: {listed_few([f'“{form}”' for form in idle])}.")
    return found


def _mean_ratio(results: Results, entries: Sequence[Entry], others: Sequence[Entry]) -> Mean:
    """The geometric mean over panels of the ratio of mean regrets; both have one entry per panel, in the same order."""
    runs = np.array([[results.regret(entry) for entry in same] for same in (entries, others)])
    return jackknife(
        lambda sample: float(np.exp(np.log(sample.mean(axis=-1)[0] / sample.mean(axis=-1)[1]).mean())), runs
    )
