"""Recorded votes, replayed: every agent with features, while the first votes are flipped or a bad item is pushed."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import entr, log_expit

from fairduel.agents import AGENTS, ContextualAgent, DuelingAgent, KArmed
from fairduel.duel import Vector
from fairduel.errors import BadInputError
from fairduel.experiments.experiment import Curves, Entry, Experiment, Lines
from fairduel.experiments.paper_setup import Attack, paper_cell
from fairduel.simulation.cell import Cell
from fairduel.worlds.replay import Pairs, Recording, load

HORIZON = 3000
RUNS = 20
FLIPS = 150
MANY_FLIPS = 600
FOLDS = 10
"""Contexts are left out of the linear model in so many groups."""


NO_FLIPS = Attack(f"no attack, {FLIPS} flips feared", "none", budget=FLIPS)
FIRST_FLIPPED = Attack(f"the first {FLIPS} votes flipped", "greedy", budget=FLIPS)
PANELS = (
    NO_FLIPS,
    FIRST_FLIPPED,
    Attack(f"the first {MANY_FLIPS} votes flipped", "greedy", budget=MANY_FLIPS),
    Attack(f"a random item pushed by {FLIPS} flips", "misleading", {"target": "random"}, budget=FLIPS),
    Attack(f"the worst item pushed by {FLIPS} flips", "misleading", {"target": "worst"}, budget=FLIPS),
)
_WITH_FEATURES = [
    name for name, kind in AGENTS.items() if issubclass(kind, DuelingAgent) and not issubclass(kind, KArmed)
]
_PRACTICAL: dict[str, Mapping[str, Any]] = {
    "vacdb": {"norm_bound": 4.0},  # its ridge is 2^−2l κ, and at ‖θ‖ ≤ 17 that is no ridge any more
}
_OTHER_FORMS: dict[str, Mapping[str, Mapping[str, Any]]] = {
    "rcdb": {"C unknown": {"flip_budget": None}, "one-pass": {"estimator": "one-pass"}},
    "maxpairucb": {"one-pass": {"estimator": "one-pass"}},
}
CONTENDERS: tuple[tuple[str, str, Mapping[str, Any]], ...] = tuple(
    (name, words, settings)
    for name in _WITH_FEATURES
    for words, settings in {"practical": _PRACTICAL.get(name, {}), **_OTHER_FORMS.get(name, {})}.items()
)
"""Every agent with features: its name, its setting in words, and the setting."""
RADII = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
WITH_RADIUS = [name for name, kind in AGENTS.items() if issubclass(kind, ContextualAgent)]
"""Those whose radius means the same: β of β‖φ‖_Σ⁻¹ against estimated rewards."""


def replay(path: Path | None) -> list[Experiment]:
    """Declare the replay of the votes in a folder: the agents as they come, and how much their radius matters."""
    if path is None:
        raise BadInputError(
            "replay needs recorded votes: give --data a folder with votes.csv and features.npz, as made from a public "
            "set such as UKPConvArg1 (github.com/UKPLab/acl2016-convincing-arguments)."
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
        title=f"Recorded votes, replayed: {path.resolve().name}",
        question=f"Who finds the items that people like best in {HORIZON:,} recorded votes, if some are flipped?",
        entries=entries,
        views=[Curves("Cumulative regret by Borda score; the band is ± one standard error over the runs.")],
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
        title="Recorded votes: how much the radius matters",
        question="Would a rival with another radius do as well as RCDB, or better?",
        entries=entries,
        views=[Lines("Final regret against the radius (log-log).", "radius β", scale="log")],
        notes=[
            "The practical radii are √d for RCDB, half of it for RCDB-S and √(d log T) for the others, whatever the "
            "votes are like. Here all have the same one. No radius was chosen by these runs: the whole range is shown.",
        ],
    )


def _notes(recording: Recording) -> list[str]:
    arms = [len(context.items) for context in recording.contexts]
    sizes = f"{min(arms)} to {max(arms)}" if min(arms) < max(arms) else str(arms[0])
    pairs = sum(count * (count - 1) // 2 for count in arms)
    norm = float(np.linalg.norm(recording.parameter))
    tolerance = math.ceil(math.sqrt(HORIZON))
    filled = (
        f" Pairs without a vote: {recording.filled:,}; the linear model below answers there."
        if recording.filled
        else " Every pair has votes."
    )
    return [
        f"{recording.pairs.count.sum():,.0f} votes on {pairs:,} pairs in {len(arms)} contexts of {sizes} "
        f"items, d = {len(recording.parameter)}.{filled} A round shows a context drawn at random, and a "
        "duel is answered by one of the votes on that very pair, drawn at random; a tie by a coin.",
        "Regret is by Borda score, the chance to win a vote against another item of the context: 2·best − a − b. Half "
        f"of it, divided by {HORIZON:,}, is the Borda regret a duel.",
        f"No agent is tuned. RCDB and RCDB-S are told C, also where nobody attacks; 'C unknown' tolerates ⌈√T⌉ = "
        f"{tolerance}. All are told ‖θ‖ ≤ {math.ceil(norm)}, the norm {norm:.1f} of the linear model rounded up; "
        "VACDB, which makes of it the ridge of its estimates, is told 4.",
    ]


@dataclass(frozen=True)
class Fit:
    """How well chances of pairs agree with the votes on them."""

    accuracy: float
    """Share of the votes that are no ties and went to the likelier item."""
    log_loss: float
    """Mean −log of the chance that a vote had, in nats; a tie is half a vote for each."""
    pick: float
    """Borda score of the item that is on top, mean over the contexts."""


@dataclass(frozen=True)
class Misfit:
    """How far the votes are from P(i beats j) = σ((x_i − x_j)ᵀθ)."""

    linear: Fit
    """θ fitted to all votes, and judged on the same: the best that an agent could come to."""
    held_out: Fit | None
    """θ fitted to the other contexts; None where there is one only."""
    ceiling: Fit
    """The votes themselves: each pair has its own chance, each context its best item."""
    random_pick: float
    """Borda score of an item drawn at random."""

    def notes(self) -> list[str]:
        """What a reader of the regrets must know, in words."""
        held_out = ""
        if self.held_out is not None:
            held_out = (
                f" (on contexts that it has not seen {self.held_out.accuracy:.1%}, {self.held_out.log_loss:.3f} and "
                f"{self.held_out.pick:.3f})"
            )
        lost, spent = (2.0 * HORIZON * (self.ceiling.pick - pick) for pick in (self.linear.pick, self.random_pick))
        return [
            "The linear model, in which every agent here believes, is wrong. Fitted to all votes, it predicts "
            f"{self.linear.accuracy:.1%} of the decided votes, its log-loss is {self.linear.log_loss:.3f}, and its "
            f"top item has a Borda score of {self.linear.pick:.3f}{held_out}. If each pair had its own chance, these "
            f"would be {self.ceiling.accuracy:.1%}, {self.ceiling.log_loss:.3f} and {self.ceiling.pick:.3f}; with so "
            "few votes a pair that is too good to reach.",
            f"So an agent that knew the fitted θ from the start, and played its top item only, would still have a "
            f"regret of {lost:,.0f}. Random play has {spent:,.0f}.",
        ]


def misfit(recording: Recording) -> Misfit:
    """Measure how far the votes of a recording are from the linear model."""
    pairs, contexts = recording.pairs, recording.contexts
    of_context = [recording.parameter] * len(contexts)
    linear = _judge(recording, of_context)
    held_out = None
    if len(contexts) > 1:
        fold = np.arange(len(contexts)) % FOLDS
        fitted = [pairs.fit(fold[pairs.context] != number) for number in range(min(FOLDS, len(contexts)))]
        held_out = _judge(recording, [fitted[number] for number in fold])
    share = pairs.won / np.maximum(pairs.count, 1e-300)
    entropy = float(np.average(entr(share) + entr(1.0 - share), weights=pairs.count))
    ceiling = Fit(_accuracy(pairs, share - 0.5), entropy, float(np.mean([c.rewards.max() for c in contexts])))
    return Misfit(linear, held_out, ceiling, float(np.mean([c.rewards.mean() for c in contexts])))


def _judge(recording: Recording, parameters: list[Vector]) -> Fit:
    """Judge one θ for each context."""
    pairs = recording.pairs
    margins = np.einsum("pd,pd->p", pairs.difference, np.array(parameters)[pairs.context])
    loss = -(pairs.won * log_expit(margins) + (pairs.count - pairs.won) * log_expit(-margins))
    picks = [c.rewards[np.argmax(c.actions @ theta)] for c, theta in zip(recording.contexts, parameters, strict=True)]
    return Fit(_accuracy(pairs, margins), float(loss.sum() / pairs.count.sum()), float(np.mean(picks)))


def _accuracy(pairs: Pairs, margins: Vector) -> float:
    """Share of the decided votes that went to i where ``margins`` (p,) is above 0 and to j where it is below."""
    won, lost = pairs.won - 0.5 * pairs.tied, pairs.count - pairs.won - 0.5 * pairs.tied
    right = np.where(margins > 0.0, won, np.where(margins < 0.0, lost, 0.5 * (won + lost)))
    return float(right.sum() / (won + lost).sum())
