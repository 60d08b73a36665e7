"""FGTS.CDB: Feel-Good Thompson Sampling for contextual dueling bandits (Li 2024)."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import expit

from fairduel.action_sets import checked_actions
from fairduel.agents.parts.agent import Actions, DuelingAgent, Featured, Guarantee, check_difference
from fairduel.checks import boolean, ensure, integer, number_or_name, positive
from fairduel.core.estimators import Estimator
from fairduel.core.links import LOGISTIC, Link, as_link
from fairduel.core.selection import draw, pick
from fairduel.duel import Duel, Matrix, Outcome, Vector
from fairduel.errors import BadInputError

_FEEL_GOOD = {"theory": 1.0, "practical": 0.1}  # μ in units of √(d/T)
Density = Callable[[Matrix], tuple[Vector, Matrix]]
"""Maps chains (n, d) to their negative log densities (n,) and gradients (n, d)."""


def langevin(
    density: Density, chains: Matrix, root: Matrix, *, step_size: float, steps: int, rng: np.random.Generator
) -> Matrix:
    """Move each of the chains (n, d) by ``steps`` Metropolis-adjusted Langevin steps.

    ``root`` (d, d) is any R with RRᵀ close to the covariance: in y = R⁻¹θ a step is y − (h/2)∇ + √h·z with z standard
    normal. The acceptance test makes the density stationary for any R and h.
    """
    h = step_size
    values, gradients = density(chains)
    for _ in range(steps):
        normal = rng.standard_normal(chains.shape)
        moves = math.sqrt(h) * normal - 0.5 * h * (gradients @ root)
        proposals = chains + moves @ root.T
        new_values, new_gradients = density(proposals)
        backward = (0.5 * h * (new_gradients @ root) - moves) / math.sqrt(h)
        log_ratios = values - new_values + 0.5 * (np.sum(normal**2, axis=1) - np.sum(backward**2, axis=1))
        accepted = np.log(rng.random(len(chains))) < log_ratios
        values = np.where(accepted, new_values, values)
        chains = np.where(accepted[:, None], proposals, chains)
        gradients = np.where(accepted[:, None], new_gradients, gradients)
    return chains


@dataclass(frozen=True, slots=True, kw_only=True)
class FGTSDuel(Duel):
    """A duel between the actions of the two chains."""

    chain: int
    """The chain, 0 or 1, whose action comes first."""
    first_features: Vector = field(repr=False, compare=False)
    """Features of the first action, shape (d,)."""


@dataclass(kw_only=True, eq=False)
class FGTS(Featured, DuelingAgent[FGTSDuel]):
    """Draw two optimistic posterior samples of θ, and ask the best action of each against the other.

    Feel-Good Thompson Sampling for contextual dueling bandits (Li 2024); y_t = ±1 says who won::

        for t = 1 … T
            for j = 1, 2: θ^j ~ prior(θ) · exp(−Σ_{i<t} [η log(1 + e^{−y_i θᵀφ_i}) − μ max_x θᵀ(x − x_i^{3−j})])
            ask x_t^1 = argmax xᵀθ¹ against x_t^2 = argmax xᵀθ²

    The second term, the feel-good one, favours samples under which something better than the other chain's action
    x_i^{3−j} was available in round i. Each chain continues from round to round by preconditioned Metropolis-adjusted
    Langevin steps, which are exact in the limit.

    The rule comes from the abstract and general knowledge; the constants η, μ, the prior and the sampler are ours. If
    the actions change, the sum over rounds of max_x θᵀx is estimated from ``sets_kept`` rounds drawn uniformly from all
    rounds asked; if they stay the same, it is exact. The cost of a step grows with the number of distinct duels and
    action sets. The logistic link is required.

    Args:
        link: σ, which must be the logistic link.
        learning_rate: η, the weight of the likelihood.
        feel_good: μ. ``"theory"``: √(d/T), up to an unknown constant. ``"practical"``: a tenth of that. Or a number; 0
            is plain Thompson sampling.
        prior_scale: Standard deviation of the Gaussian prior of each coordinate of θ; ``None`` uses B.
        steps: Langevin steps of each chain per round.
        step_size: h, in units of the posterior covariance.
        sets_kept: How many rounds' action sets represent all rounds if they change.
        self_duels: Whether an action may duel itself; if not, the second chain plays its next best.

    >>> agent = FGTS(dimension=2, norm_bound=2.0, horizon=200, seed=0)
    >>> actions = np.array([[1.0, 0.0], [0.0, 1.0], [-0.6, 0.8]])
    >>> for _ in range(200):
    ...     duel = agent.ask(actions)
    ...     agent.tell(duel, Outcome.FIRST if duel.first <= duel.second else Outcome.SECOND)
    >>> agent.recommend(actions)
    0
    """

    title = "FGTS.CDB"
    guarantee = Guarantee("Li 2024", "contextual dueling bandits", "none", "Õ(d√T); no claim for C > 0", needs="B, T")

    link: Link | str = LOGISTIC
    learning_rate: float = 1.0
    feel_good: float | str = "practical"
    prior_scale: float | None = None
    steps: int = 5
    step_size: float = 1.0
    sets_kept: int = 64
    self_duels: bool = True

    _asks = FGTSDuel
    _memory = ("_chains", "_opponents", "_rounds")
    _parts = ("_estimator",)
    _resolved = ("feel_good", "prior_scale")

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_settings()
        self._prior_scale = self.norm_bound if self.prior_scale is None else self.prior_scale
        # The MAP of prior and weighted likelihood is the MLE with this ridge.
        self._ridge = 1.0 / (self._prior_scale**2 * self.learning_rate)
        self._estimator = Estimator("exact", self.dimension, ridge=self._ridge, link=LOGISTIC)
        self._rounds = 0
        self._opponents = np.zeros((2, self.dimension))  # Σ_t x_t^{3−j}, one row per chain
        self._offered: dict[bytes, int] = {}  # content of each set kept, and how many rounds it represents
        self._chains = self._prior_scale * self._rng.standard_normal((2, self.dimension))

    # ------------------------------------------------------------------ what users call

    def recommend(self, actions: Actions = None) -> int:
        """Return the index of the best action by the MAP estimate; the lowest index among equals."""
        return int(np.argmax(self._listed(actions) @ self.estimate))

    @property
    def estimate(self) -> Vector:
        """The MAP estimate of θ without the feel-good term, shape (d,)."""
        return self._map_estimate().copy()

    @property
    def chains(self) -> Matrix:
        """θ of the two chains, shape (2, d)."""
        return self._chains.copy()

    def posterior(self) -> Density:
        """Return the negative log density of each chain, up to a constant, and its gradient."""
        told = self._estimator.told
        differences, weights, wins = told.differences, told.weights, told.wins
        eta, mu, precision, rounds = self.learning_rate, self._feel_good, self._prior_scale**-2.0, self._rounds
        sets, shares = self._sets()

        def density(chains: Matrix) -> tuple[Vector, Matrix]:
            margins = differences @ chains.T  # (rows, 2)
            losses = weights @ np.logaddexp(0.0, margins) - wins @ margins
            values = 0.5 * precision * np.sum(chains**2, axis=1) + eta * losses
            gradients = precision * chains + eta * (weights[:, None] * expit(margins) - wins[:, None]).T @ differences
            if rounds:
                rewards = (sets.reshape(-1, self.dimension) @ chains.T).reshape(*sets.shape[:2], 2)
                values -= mu * (rounds * (shares @ rewards.max(axis=1)) - np.sum(chains * self._opponents, axis=1))
                for j, best in enumerate(rewards.argmax(axis=1).T):
                    gradients[j] -= mu * (rounds * (shares @ sets[np.arange(len(sets)), best]) - self._opponents[j])
            return values, gradients

        return density

    # ------------------------------------------------------------------ the rule

    def _ask(self, actions: Actions) -> FGTSDuel:
        table = self._listed(actions)
        self._keep(table)
        self._chains = langevin(
            self.posterior(), self._chains, self._root(), step_size=self.step_size, steps=self.steps, rng=self._rng
        )
        chosen = [pick(table @ theta, self._rng.random()) for theta in self._chains]
        if chosen[0] == chosen[1] and not self.self_duels:
            others = table @ self._chains[1]
            others[chosen[0]] = -np.inf
            chosen[1] = pick(others, self._rng.random())
        chain = int(self._rng.random() < 0.5)  # whose action comes first
        first, second = chosen[chain], chosen[1 - chain]
        difference = table[first] - table[second]
        return FGTSDuel(self._asked, first, second, difference, chain=chain, first_features=table[first].copy())

    def _tell(self, asked: FGTSDuel, answer: Outcome) -> None:
        self._opponents[1 - asked.chain] += asked.first_features
        self._opponents[asked.chain] += asked.first_features - asked.difference
        self._rounds += 1
        self._estimator.tell((asked.first, asked.second), asked.difference, weight=1.0, share=answer.first_share)

    def _root(self) -> Matrix:
        """Return R with RRᵀ the inverse Hessian at the MAP estimate, shape (d, d)."""
        self._map_estimate()
        return np.asarray(np.linalg.inv(np.linalg.cholesky(self.learning_rate * self._estimator.hessian)).T)

    def _map_estimate(self) -> Vector:
        return self._estimator.fitted(log_determinant=0.0)  # which only lazy estimates depend on

    @property
    def _feel_good(self) -> float:
        if not isinstance(self.feel_good, str):
            return self.feel_good
        return _FEEL_GOOD[self.feel_good] * math.sqrt(self.dimension / self._horizon_or(self._asked + 1))

    # ------------------------------------------------------------------ action sets

    def _keep(self, table: Matrix) -> None:
        """Add this round's set by reservoir sampling, so that every round so far is equally likely to be kept."""
        if self._asked >= self.sets_kept:
            if self._rng.random() * (self._asked + 1) >= self.sets_kept:
                return
            counts = np.array(list(self._offered.values()), dtype=np.float64)
            leaving = list(self._offered)[draw(counts, self._rng.random())]
            self._offered[leaving] -= 1
            if not self._offered[leaving]:
                del self._offered[leaving]
        content = table.tobytes()
        self._offered[content] = self._offered.get(content, 0) + 1

    def _sets(self) -> tuple[Matrix, Vector]:
        """Return the sets kept, shape (n, K, d), and the share of rounds that each represents, shape (n,).

        Smaller sets repeat their first action, which changes no maximum.
        """
        largest = max(map(len, self._offered), default=0)
        row = 8 * self.dimension  # bytes
        filled = [content + content[:row] * ((largest - len(content)) // row) for content in self._offered]
        sets = np.frombuffer(b"".join(filled)).reshape(len(filled), -1, self.dimension)
        counts = np.array(list(self._offered.values()), dtype=np.float64)
        return sets, counts / max(counts.sum(), 1.0)

    # ------------------------------------------------------------------ save and resume

    def state(self) -> dict[str, Any]:
        """Return the agent's whole state as nested dictionaries of JSON values and arrays."""
        tables = [np.frombuffer(content).reshape(-1, self.dimension).copy() for content in self._offered]
        return super().state() | {
            "sets": {str(i): table for i, table in enumerate(tables)},
            "set_counts": list(self._offered.values()),
        }

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        counts = state["set_counts"]
        tables = [checked_actions(state["sets"][str(i)], self.dimension) for i in range(len(counts))]
        self._offered = {
            table.tobytes(): integer("the count of a set", count, least=1)
            for table, count in zip(tables, counts, strict=True)
        }

    def _check_restored(self) -> None:
        super()._check_restored()
        integer("_rounds", self._rounds, least=self._estimator.outcomes)
        kept = sum(self._offered.values())
        ensure(kept <= self.sets_kept, f"it keeps the sets of {kept} rounds, more than {self.sets_kept}")

    def _check_pending(self, asked: FGTSDuel) -> None:
        super()._check_pending(asked)
        check_difference(asked, self.dimension)
        ensure(asked.chain in {0, 1}, f"{asked} belongs to no chain")
        ensure(asked.first_features.shape == (self.dimension,), f"{asked} does not fit {self.dimension} features")

    def _check_settings(self) -> None:
        self.learning_rate = positive("learning_rate", self.learning_rate)
        self.step_size = positive("step_size", self.step_size)
        self.feel_good = number_or_name("feel_good", self.feel_good, _FEEL_GOOD)
        self.prior_scale = None if self.prior_scale is None else positive("prior_scale", self.prior_scale)
        self.steps = integer("steps", self.steps, least=1)
        self.sets_kept = integer("sets_kept", self.sets_kept, least=1)
        self.self_duels = boolean("self_duels", self.self_duels)
        if str(as_link(self.link)) != "logistic":
            raise BadInputError(f"FGTS.CDB supports only the logistic link, not {self.link}.")
