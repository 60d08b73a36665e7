"""Versatile-DB (Saha & Gaillard 2022): a duel as a game between two adversarial-bandit learners."""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from fairduel.agents.parts.agent import Actions, DuelingAgent, Guarantee, KArmed
from fairduel.checks import ensure, literal, positive
from fairduel.core.selection import draw
from fairduel.duel import Duel, Outcome, Vector
from fairduel.errors import ConvergenceError

_TOLERANCE = 1e-13
_MAX_STEPS = 200


def tsallis_distribution(losses: Vector, rate: float) -> Vector:
    """Return p(k) = 4/(η(L(k) − x))², shape (K,), with the x < min L for which Σp = 1.

    Newton's method starts from x = min L − 2/η, where the smallest loss alone has p = 1, and decreases to the solution
    without overshooting, because Σp is convex and increasing in x.

    Args:
        losses: L, shape (K,).
        rate: η.

    >>> tsallis_distribution(np.array([0.0, 0.0]), rate=1.0).round(6).tolist()
    [0.5, 0.5]
    """
    above = losses - losses.min()
    x = -2.0 / rate
    for _ in range(_MAX_STEPS):
        roots = 2.0 / (rate * (above - x))  # √p
        excess = float(roots @ roots) - 1.0
        if excess <= _TOLERANCE:
            return np.asarray(roots * roots)
        x -= excess / (rate * float(np.sum(roots**3)))
    raise ConvergenceError(f"the distribution over arms did not converge: Σp − 1 is still {excess:.2g}.")


Form = Literal["two-players", "one-learner"]


@dataclass(frozen=True, slots=True, kw_only=True)
class VersatileDuel(Duel):
    """A duel of the two players, with the probabilities of their draws."""

    player: int
    """The player, 0 or 1, who drew the first arm."""
    first_chance: float
    """Probability with which the first arm was drawn."""
    second_chance: float
    """Probability with which the second arm was drawn."""


@dataclass(kw_only=True, eq=False)
class VersatileDB(KArmed, DuelingAgent[VersatileDuel]):
    """Let two Tsallis-INF learners play each other: each draws one arm of the duel and pays 1 if it loses.

    Saha & Gaillard 2022, without knowing C or T; L̂_i are the estimated losses of player i::

        for t = 1 … T
            η ← rate/√t
            for i = +, −: p_i(k) ← 4/(η(L̂_i(k) − x_i))², with the x_i < min L̂_i for which Σ_k p_i(k) = 1
            draw k_+ from p_+ and k_− from p_−, and ask k_+ against k_−
            L̂_i(k_i) ← L̂_i(k_i) + loss_i/p_i(k_i), where loss_i is 1 if k_i lost, 0 if it won, ½ in a tie or self-duel

    Departures: the default rate is that of Zimmert & Seldin for these plain importance weights; the source's proof uses
    4, their rate for reduced-variance estimates. A late outcome is weighted by the p of the round in which it was
    asked.

    Args:
        form: ``"two-players"``, or ``"one-learner"`` as in Remark 2: one learner draws both arms and pays the average
            of their losses.
        rate: c of η_t = c/√t; 4 is that of the source's proof.

    >>> agent = VersatileDB(arms=3, seed=0)
    >>> for _ in range(500):
    ...     duel = agent.ask()
    ...     agent.tell(duel, Outcome.FIRST if duel.first >= duel.second else Outcome.SECOND)
    >>> agent.recommend()
    2
    """

    title = "Versatile-DB"
    guarantee = Guarantee(
        "Saha & Gaillard 2022", "K-armed dueling bandits", "weak", "Õ(C + Σ 1/Δ_i + √K)", needs="nothing", in_paper=True
    )

    form: Form = "two-players"
    rate: float = 2.0

    _asks = VersatileDuel
    _memory = ("_losses",)

    def __post_init__(self) -> None:
        super().__post_init__()
        literal("form", self.form, Form)
        self.rate = positive("rate", self.rate)
        self._losses = np.zeros((2 if self.form == "two-players" else 1, self.arms))  # L̂, one row per learner

    def _check_restored(self) -> None:
        super()._check_restored()
        ensure((self._losses >= 0).all(), "_losses is below 0")

    def _check_pending(self, asked: VersatileDuel) -> None:
        super()._check_pending(asked)
        ensure(asked.player in {0, 1}, f"{asked} belongs to no player")
        chances = (asked.first_chance, asked.second_chance)
        ensure(all(0 < chance <= 1 + 1e-9 for chance in chances), f"{asked} has no probability")

    def _ask(self, actions: Actions) -> VersatileDuel:
        self._check_count(actions)
        distributions = self.distributions
        player = int(self._rng.random() < 0.5)  # who comes first
        players = (player, 1 - player)
        arms = [draw(distributions[i], self._rng.random()) for i in players]
        chances = [float(distributions[i][arm]) for i, arm in zip(players, arms, strict=True)]
        return VersatileDuel(
            self._asked, arms[0], arms[1], player=player, first_chance=chances[0], second_chance=chances[1]
        )

    def _tell(self, asked: VersatileDuel, answer: Outcome) -> None:
        share = 0.5 if asked.is_self_duel else answer.first_share
        for i, arm, chance, paid in (
            (asked.player, asked.first, asked.first_chance, 1.0 - share),
            (1 - asked.player, asked.second, asked.second_chance, share),
        ):
            if self.form == "two-players":
                self._losses[i, arm] += paid / chance
            else:
                self._losses[0, arm] += 0.5 * paid / chance

    def recommend(self, actions: Actions = None) -> int:
        """Return the arm with the smallest estimated loss; the lowest index among equals."""
        self._check_count(actions)
        return int(np.argmin(self._losses.sum(axis=0)))

    @property
    def distributions(self) -> tuple[Vector, Vector]:
        """p of each player, shape (K,); identical with one learner."""
        rate = self.rate / math.sqrt(self._asked + 1)
        each = [tsallis_distribution(losses, rate) for losses in self._losses]
        return each[0], each[-1]
