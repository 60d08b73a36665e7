"""Replay of recorded votes: agents with features, while the first votes are flipped or a bad item is promoted."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import entr, log_expit

from fairduel.agents import AGENTS, ContextualAgent, DuelingAgent, KArmed, RandomPairs
from fairduel.duel import Vector
from fairduel.errors import BadInputError
from fairduel.experiments.comparing import group, in_each_panel, lowest_in_each_panel, placed
from fairduel.experiments.experiment import Curves, Entry, Experiment, Lines, Results
from fairduel.experiments.paper_setup import BUDGET_UNKNOWN, Attack, paper_cell
from fairduel.experiments.sentences import listed_few, title_of, with_error
from fairduel.experiments.tuning import PRE_TUNED, is_searched
from fairduel.simulation.cell import Cell, takes_budget
from fairduel.stats import mean
from fairduel.worlds.replay import RecordedPairs, Recording, load

HORIZON = 3000
FLIPS = 150
MANY_FLIPS = 600
FOLDS = 10
"""Number of groups of contexts in cross-validation of the linear model."""


NO_FLIPS = Attack(f"no attack, C = {FLIPS} assumed", "none", budget=FLIPS)
FIRST_FLIPPED = Attack(f"first {FLIPS} votes flipped", "greedy", budget=FLIPS)
PANELS = (
    NO_FLIPS,
    FIRST_FLIPPED,
    Attack(f"first {MANY_FLIPS} votes flipped", "greedy", budget=MANY_FLIPS),
    Attack(f"random item promoted by {FLIPS} flips", "misleading", {"target": "random"}, budget=FLIPS),
    Attack(f"worst item promoted by {FLIPS} flips", "misleading", {"target": "worst"}, budget=FLIPS),
)
_WITH_FEATURES = [
    name for name, kind in AGENTS.items() if issubclass(kind, DuelingAgent) and not issubclass(kind, KArmed)
]
_PRACTICAL: dict[str, Mapping[str, Any]] = {
    "vacdb": {"norm_bound": 4.0},  # its ridge is 2^−2l κ, which vanishes at ‖θ‖ ≤ 17
}
_OTHER_FORMS: dict[str, Mapping[str, Mapping[str, Any]]] = {
    "rcdb": {"one-pass": {"estimator": "one-pass"}},
    "maxpairucb": {"one-pass": {"estimator": "one-pass"}},
}
CONTENDERS: tuple[tuple[str, str, Mapping[str, Any]], ...] = tuple(
    (name, words, settings)
    for name in _WITH_FEATURES
    for words, settings in {
        "practical": _PRACTICAL.get(name, {}),
        **({"C unknown": BUDGET_UNKNOWN} if takes_budget(name) else {}),
        **({"pre-tuned, C unknown": {**PRE_TUNED, **BUDGET_UNKNOWN}} if is_searched(name) else {}),
        **_OTHER_FORMS.get(name, {}),
    }.items()
)
"""Every agent with features: its name, its setting in words, and its settings."""
RADII = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
WITH_RADIUS = [
    name for name, kind in AGENTS.items() if issubclass(kind, ContextualAgent) and not issubclass(kind, RandomPairs)
]
"""The agents whose radius means the same: β of β‖φ‖, added to estimated rewards."""


def replay_experiments(path: Path | None) -> list[Experiment]:
    """Declare the replay of the votes in a folder: untuned agents, and the influence of their radius."""
    if path is None:
        raise BadInputError(
            "replay needs recorded votes; set --data to a folder with votes.csv and features.npz, for example made "
            "from UKPConvArg1 (github.com/UKPLab/acl2016-convincing-arguments)."
        )
    return [_untuned(path), _by_radius(path)]


def _cell(path: Path, attack: Attack, agent: str, settings: Mapping[str, Any]) -> Cell:
    world = {"path": str(path), "missing": "model"}
    return paper_cell(agent, attack, settings, horizon=HORIZON, world="replay", world_settings=world)


def _untuned(path: Path) -> Experiment:
    recording = load(path, missing="model")
    entries = [
        Entry(
            _cell(path, attack, agent, settings),
            words,
            attack.panel,
            is_reference=(agent, words) == ("rcdb", "practical"),
        )
        for attack in PANELS
        for agent, words, settings in CONTENDERS
    ]
    return Experiment(
        name="replay",
        title=f"Replay of recorded votes: {path.resolve().name}",
        question=f"Which agent finds the items people like best within {HORIZON:,} recorded votes if some are flipped?",
        entries=entries,
        conclude=lowest_in_each_panel,
        runs=20,
        views=[Curves("Cumulative Borda regret (mean ± one standard error).")],
        notes=[*_notes(recording), *misfit(recording).notes()],
    )


def _by_radius(path: Path) -> Experiment:
    entries = [
        Entry(
            _cell(path, attack, agent, {"radius": radius}),
            "radius given",
            attack.panel,
            x=radius,
            is_reference=agent == "rcdb",
        )
        for attack in (NO_FLIPS, FIRST_FLIPPED)
        for radius in RADII
        for agent in WITH_RADIUS
    ]
    return Experiment(
        name="replay-radius",
        title="Replay of recorded votes: influence of the radius",
        question="Would another agent beat RCDB with a different radius?",
        entries=entries,
        conclude=in_each_panel(_at_best_radius),
        views=[Lines("Final regret against the radius (log-log).", "radius β", scale="log")],
        notes=[
            "The practical radii are 0.8 for Sceptic, 0.1 for RCDP-UCB, √d for RCDB and GINOP, √d/2 for RCDB-S and "
            "HCW, and √(d log T) for the others, independent of the votes. Here all agents use the same radius, and "
            "the whole range is shown.",
        ],
    )


def _at_best_radius(results: Results, entries: list[Entry]) -> list[str]:
    """Which agent is lowest when each has its best radius."""
    agents = group(entries, lambda entry: entry.cell.agent).values()
    best = placed(results, [min(same, key=lambda entry: results.regret(entry).mean()) for same in agents])
    names = [f"{title_of(entry.cell.agent)} (radius {entry.x:g})" for entry in (best.lowest, *best.tied)]
    tied = f", but not significantly lower than {listed_few(names[1:])}" if best.tied else ""
    regret = with_error(mean(results.regret(best.lowest)))
    return [f"at the best radius of each agent, chosen on these same runs, {names[0]} is lowest with {regret}{tied}."]


def _notes(recording: Recording) -> list[str]:
    arms = [len(context.items) for context in recording.contexts]
    sizes = f"{min(arms)} to {max(arms)}" if min(arms) < max(arms) else str(arms[0])
    pairs = sum(count * (count - 1) // 2 for count in arms)
    norm = float(np.linalg.norm(recording.parameter))
    tolerance = math.ceil(math.sqrt(HORIZON))
    filled = (
        f" Pairs without votes: {recording.filled:,}, answered by the linear model described below."
        if recording.filled
        else " Every pair has votes."
    )
    return [
        f"{recording.pairs.count.sum():,.0f} votes on {pairs:,} pairs in {len(arms)} contexts of {sizes} "
        f"items, d = {len(recording.parameter)}.{filled} Each round shows a random context, and a duel is answered by "
        "a random vote on that very pair; a tie is decided by a coin flip.",
        "Regret is measured in Borda scores, the probability of winning a vote against another item of the context: "
        f"2·best − a − b. Divided by {2 * HORIZON:,}, it is the usual Borda regret per duel, best − (a + b)/2.",
        "No agent is tuned. Agents that take a flip budget know C, even without an attack; where C is unknown they "
        f"tolerate ⌈√T⌉ = {tolerance} flips, and Sceptic 2√T. All know ‖θ‖ ≤ {math.ceil(norm)}, the norm "
        f"{norm:.1f} of the linear model rounded up, "
        "except VACDB, which derives its ridge from the bound and is given 4.",
    ]


@dataclass(frozen=True)
class ModelFit:
    """How well predicted win probabilities agree with the votes."""

    accuracy: float
    """Share of the decided votes (no ties) that went to the likelier item."""
    log_loss: float
    """Mean negative log-likelihood per vote, in nats; a tie is half a vote for each item."""
    pick: float
    """Borda score of the top-ranked item, averaged over the contexts."""


@dataclass(frozen=True)
class Misfit:
    """How far the votes are from P(i beats j) = σ((x_i − x_j)ᵀθ)."""

    linear: ModelFit
    """θ fitted to all votes and evaluated on them: the best an agent could achieve."""
    held_out: ModelFit | None
    """θ fitted to the other contexts; ``None`` if there is only one."""
    ceiling: ModelFit
    """The votes themselves: a separate probability per pair, and the best item of each context."""
    random_pick: float
    """Borda score of a random item."""

    def notes(self) -> list[str]:
        """Return what readers must know to judge the regrets."""
        held_out = ""
        if self.held_out is not None:
            held_out = (
                f" (on unseen contexts: {self.held_out.accuracy:.1%}, {self.held_out.log_loss:.3f} and "
                f"{self.held_out.pick:.3f})"
            )
        lost, spent = (2.0 * HORIZON * (self.ceiling.pick - pick) for pick in (self.linear.pick, self.random_pick))
        return [
            "The linear model, which all agents here assume, is wrong. Fitted to all votes, it predicts "
            f"{self.linear.accuracy:.1%} of the decided votes, its log-loss is {self.linear.log_loss:.3f}, and its "
            f"top item has a Borda score of {self.linear.pick:.3f}{held_out}. With a separate probability per pair, "
            f"these would be {self.ceiling.accuracy:.1%}, {self.ceiling.log_loss:.3f} and {self.ceiling.pick:.3f}, "
            "which is out of reach with so few votes per pair.",
            f"An agent that knew the fitted θ from the start and played only its top item would still have a regret "
            f"of {lost:,.0f}; random play has {spent:,.0f}.",
        ]


def misfit(recording: Recording) -> Misfit:
    """Measure how far recorded votes are from the linear model."""
    pairs, contexts = recording.pairs, recording.contexts
    of_context = [recording.parameter] * len(contexts)
    linear = _evaluate(recording, of_context)
    held_out = None
    if len(contexts) > 1:
        fold = np.arange(len(contexts)) % FOLDS
        fitted = [pairs.fit(fold[pairs.context] != number) for number in range(min(FOLDS, len(contexts)))]
        held_out = _evaluate(recording, [fitted[number] for number in fold])
    share = pairs.won / np.maximum(pairs.count, 1e-300)
    entropy = float(np.average(entr(share) + entr(1.0 - share), weights=pairs.count))
    ceiling = ModelFit(_accuracy(pairs, share - 0.5), entropy, float(np.mean([c.rewards.max() for c in contexts])))
    return Misfit(linear, held_out, ceiling, float(np.mean([c.rewards.mean() for c in contexts])))


def _evaluate(recording: Recording, parameters: list[Vector]) -> ModelFit:
    """Evaluate one θ per context."""
    pairs = recording.pairs
    margins = np.einsum("pd,pd->p", pairs.difference, np.array(parameters)[pairs.context])
    loss = -(pairs.won * log_expit(margins) + (pairs.count - pairs.won) * log_expit(-margins))
    picks = [c.rewards[np.argmax(c.actions @ theta)] for c, theta in zip(recording.contexts, parameters, strict=True)]
    return ModelFit(_accuracy(pairs, margins), float(loss.sum() / pairs.count.sum()), float(np.mean(picks)))


def _accuracy(pairs: RecordedPairs, margins: Vector) -> float:
    """Share of the decided votes that the signs of ``margins``, shape (p,), predict; a zero counts half."""
    won, lost = pairs.won - 0.5 * pairs.tied, pairs.count - pairs.won - 0.5 * pairs.tied
    right = np.where(margins > 0.0, won, np.where(margins < 0.0, lost, 0.5 * (won + lost)))
    return float(right.sum() / (won + lost).sum())
