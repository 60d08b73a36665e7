"""Versatile-DB (Saha & Gaillard 2022): a duel as a game of two learners who do not trust the arms to stay the same."""

import math
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from fairduel.agents.base import Actions, DuelingAgent, KArmed
from fairduel.agents.guarantee import Guarantee
from fairduel.agents.tsallis import draw, tsallis_distribution
from fairduel.checks import ensure, positive
from fairduel.duel import Duel, Outcome, Vector
from fairduel.errors import unknown_name

Form = Literal["two-players", "one-learner"]


@dataclass(frozen=True, slots=True, kw_only=True)
class VersatileDuel(Duel):
    """A duel of the two players, with the probabilities by which they drew their arms."""

    player: int
    """Who drew the first arm: 0 or 1."""
    first_chance: float
    """p of the first arm, by the player who drew it."""
    second_chance: float
    """p of the second arm, by the other player."""


@dataclass(kw_only=True, eq=False)
class VersatileDB(KArmed, DuelingAgent[VersatileDuel]):
    """Each side of a duel is drawn by a learner of its own, Tsallis-INF, which pays 1 where its arm loses.

    ``form="two-players"`` is the algorithm; ``form="one-learner"`` its Remark 2: one learner draws both arms, and is
    charged the average of their losses. A tie and a self-duel cost both sides ½. It knows neither C nor T.

    The loss estimates are plain importance weights, loss/p, for which Zimmert & Seldin have η_t = 2/√t, the default.
    The source's proof uses 4/√t, their rate for reduced-variance estimates, and its theorem prints a regulariser whose
    sign is missing. p is that of the moment of asking: a late outcome counts as an early one would.

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
    """``"two-players"`` or ``"one-learner"``."""
    rate: float = 2.0
    """c of η_t = c/√t; 4 is that of the source's proof."""

    _asks = VersatileDuel
    _memory = ("_losses",)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.form not in get_args(Form):
            raise unknown_name("form", str(self.form), get_args(Form))
        self.rate = positive("rate", self.rate)
        self._losses = np.zeros((2 if self.form == "two-players" else 1, self.arms))  # L̂, a row for each learner

    def _check_restored(self) -> None:
        super()._check_restored()
        ensure((self._losses >= 0).all(), "_losses is below 0")

    def _check_pending(self, asked: VersatileDuel) -> None:
        super()._check_pending(asked)
        ensure(asked.player in {0, 1}, f"{asked} is of no player")
        chances = (asked.first_chance, asked.second_chance)
        ensure(all(0 < chance <= 1 + 1e-9 for chance in chances), f"{asked} has no probability")

    def _ask(self, actions: Actions) -> VersatileDuel:
        self._check_count(actions)
        distributions = self.distributions
        player = int(self._rng.random() < 0.5)  # who stands first
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
        """Index of the arm with the least estimated loss; the lowest index among equals."""
        self._check_count(actions)
        return int(np.argmin(self._losses.sum(axis=0)))

    @property
    def distributions(self) -> tuple[Vector, Vector]:
        """p of either player, shape (K,) each; one and the same with one learner."""
        rate = self.rate / math.sqrt(self._asked + 1)
        each = [tsallis_distribution(losses, rate) for losses in self._losses]
        return each[0], each[-1]
