"""Majority cycles (a beats b, b beats c, c beats a) against what one score per item predicts.

A triple counts if all three of its pairs have votes; it is a cycle if three strict majorities form a circle. Few votes
per pair give some cycles by chance, so the number is compared with votes simulated from the fitted model on the same
pairs. Scores are drawn from their posterior for each simulated file: votes simulated from the estimate itself would
have too few cycles, because estimates spread more than the true scores.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import linalg

from fairduel.duel import Matrix, Vector
from fairduel.votes.ranking.design_matrix import Pairs
from fairduel.votes.ranking.outcome_models import OutcomeModel, Outcomes, fit_outcomes, outcome_chances
from fairduel.votes.ranking.uncertainty import half, shrunken_fit
from fairduel.votes.votes import Mask, Votes, pair_sums
from fairduel.words import counted_noun

SIMULATIONS, FEWER_SIMULATIONS, FEW_ITEMS = 400, 50, 200
"""Number of simulated files; the second is for more items than the third."""
MOST_ITEMS = 1000
"""Only this many items, those with the most votes, are looked at."""
_LEVEL = 0.05


@dataclass(frozen=True, eq=False)
class Cycles:
    """Cycles found and predicted. Created by :func:`count_cycles`."""

    items: int
    """Items looked at."""
    triples: int
    """Triples of items whose three pairs all have votes."""
    found: int
    """Those that are majority cycles."""
    predicted: float
    """Mean number of cycles in simulated files."""
    low: float
    """2.5% quantile of that number."""
    high: float
    """97.5% quantile of that number."""
    p_value: float
    """Probability of as many, or of as clear, cycles if one score per item is right (both together)."""
    simulations: int
    strongest: tuple[str, str, str] | None
    """The cycle whose narrowest majority is clearest; each item beats the next."""

    @property
    def more_than_predicted(self) -> bool:
        """Whether there are more, or clearer, cycles than one score per item explains (5% level)."""
        return self.triples > 0 and self.p_value <= _LEVEL

    @property
    def sentence(self) -> str:
        """The finding in plain words."""
        if not self.triples:
            return "Cycles cannot be counted: no three items were all compared with each other."
        shares = [each / self.triples for each in (self.found, self.predicted, self.low, self.high)]
        counted = (
            f"{shares[0]:.1%} of {counted_noun(self.triples, 'triple')} are cycles; one score per item predicts "
            f"{shares[1]:.1%} ({shares[2]:.1%} to {shares[3]:.1%})"
        )
        if self.more_than_predicted:
            what = "more" if self.found > self.high else "clearer"
            return (
                f"Cycles: {what} than chance. {counted}, so one score per item does not describe these votes "
                f"completely: voters or contexts differ, or items counter each other (p = {self.p_value:.2g})."
            )
        return f"Cycles: no more than expected. {counted}."


def cyclic_triples(won: Matrix) -> tuple[int, int]:
    """Return the number of majority cycles and of triples fully compared, given wins of row over column (K, K).

    With A the matrix of strict majorities and M that of pairs with votes, they are tr(A³)/3 and tr(M³)/6.

    >>> cyclic_triples(np.array([[0, 2, 0], [0, 0, 3], [1, 0, 0]]))
    (1, 1)
    """
    return round(_cubed_trace(won > won.T) / 3.0), round(_cubed_trace(won + won.T > 0.0) / 6.0)


def clearness(won: Matrix) -> float:
    """Return the sum over all cycles of the product of their majorities, each in standard errors of a coin.

    >>> clearness(np.array([[0, 4, 0], [0, 0, 9], [1, 0, 0]]))
    6.0
    """
    return _cubed_trace(np.maximum(_majorities(won), 0.0)) / 3.0


def _cubed_trace(matrix: Matrix | Mask) -> float:
    small = matrix.astype(np.float32)  # twice as fast
    return float(np.sum((small @ small) * small.T, dtype=np.float64))


def _majorities(won: Matrix) -> Matrix:
    """Return (wins − losses)/√games of each pair, shape (K, K)."""
    games = won + won.T
    return np.divide(won - won.T, np.sqrt(games), out=np.zeros(won.shape), where=games > 0.0)


def count_cycles(votes: Votes, *, seed: int = 0, progress: Callable[[int], None] = lambda _: None) -> Cycles:
    """Count the cycles of votes, and how many one score per item predicts.

    Args:
        votes: The votes; a tie is half a win for each item.
        seed: Seed of the simulations.
        progress: Called with 1 after every tenth of the simulations.

    Returns:
        The number found, predicted, and the probability of as many.

    >>> circle = Votes.from_arrays("abc", [0, 1, 2] * 30, [1, 2, 0] * 30, [1] * 90)
    >>> found = count_cycles(circle)
    >>> found.found, found.triples, found.more_than_predicted
    (1, 1, True)
    """
    rng = np.random.default_rng(seed)
    chosen = _most_compared(votes)
    items = np.flatnonzero(chosen)
    place = np.cumsum(chosen) - 1
    kept = votes.select((votes.weight > 0.0) & chosen[votes.first] & chosen[votes.second])
    low, high = np.minimum(kept.first, kept.second), np.maximum(kept.first, kept.second)
    ordered = Votes.from_arrays(
        [votes.items[item] for item in items],
        place[low],
        place[high],
        np.where(kept.first < kept.second, kept.result, 1.0 - kept.result),
        weight=kept.weight,
    )
    outcomes = Outcomes.of(ordered)
    won = _wins(outcomes, outcomes.counts)
    found, triples = cyclic_triples(won)
    simulations = SIMULATIONS if len(items) <= FEW_ITEMS else FEWER_SIMULATIONS
    if not triples:
        return Cycles(len(items), 0, 0, 0.0, 0.0, 0.0, 1.0, 0, None)
    draw = _predictive(ordered, outcomes)
    simulated, clear = np.empty(simulations), np.empty(simulations)
    for number in range(simulations):
        drawn = _wins(outcomes, draw(rng))
        simulated[number], clear[number] = round(_cubed_trace(drawn > drawn.T) / 3.0), clearness(drawn)
        if (number + 1) % (simulations // 10) == 0:
            progress(1)
    rarer = min(int((simulated >= found).sum()), int((clear >= clearness(won)).sum()))
    return Cycles(
        len(items),
        triples,
        found,
        predicted=float(simulated.mean()),
        low=float(np.quantile(simulated, 0.025)),
        high=float(np.quantile(simulated, 0.975)),
        p_value=min(1.0, 2.0 * (1 + rarer) / (1 + simulations)),  # two tests
        simulations=simulations,
        strongest=_strongest(won, ordered.items) if found else None,
    )


def _most_compared(votes: Votes) -> Mask:
    """Return which items have the most votes, at most ``MOST_ITEMS``, shape (K,)."""
    games = np.bincount(np.concatenate([votes.first, votes.second]), minlength=len(votes.items))
    chosen = np.zeros(len(games), dtype=np.bool_)
    chosen[np.argsort(-games, kind="stable")[:MOST_ITEMS]] = True
    return chosen


def _wins(outcomes: Outcomes, counts: Matrix) -> Matrix:
    """Return the wins of row over column, shape (K, K), if outcomes had these ``counts`` (r, 3)."""
    won, lost = counts[:, 0] + 0.5 * counts[:, 1], counts[:, 2] + 0.5 * counts[:, 1]
    result = pair_sums(outcomes.first, outcomes.second, outcomes.items, won)
    return result + pair_sums(outcomes.second, outcomes.first, outcomes.items, lost)


def _predictive(votes: Votes, outcomes: Outcomes) -> Callable[[np.random.Generator], Matrix]:
    """Return a function that draws the counts (r, 3) of a file from the posterior predictive distribution."""
    decisive = votes.select(~votes.is_tie)
    has_ties = len(decisive) < len(votes)
    model: OutcomeModel = "davidson" if has_ties else "half"
    pairs, row, turned = Pairs.collapse(decisive.first, decisive.second, len(votes.items))
    won = np.where(turned, 1.0 - decisive.result, decisive.result)
    # decisive votes have the same log-odds in Davidson's model, so they show how much scores vary
    ridge = shrunken_fit(pairs, row, won, decisive.weight, np.ones(len(won))).ridge if len(won) else 1.0
    fitted = fit_outcomes(outcomes, model, ridge=ridge)
    point = np.append(fitted.scores, fitted.tie) if has_ties else fitted.scores
    spread = half(np.asarray(linalg.inv(fitted.hessian)))
    games = np.rint(outcomes.counts.sum(axis=1)).astype(np.int64)

    def draw(rng: np.random.Generator) -> Matrix:
        drawn = point + rng.normal(size=len(point)) @ spread
        chances = outcome_chances(model, outcomes.margins(drawn[: outcomes.items], 0.0), float(drawn[-1]))
        first = rng.binomial(games, chances[:, 0])
        left: Vector = np.clip(chances[:, 1] / np.maximum(1.0 - chances[:, 0], 1e-300), 0.0, 1.0)
        ties = rng.binomial(games - first, left)
        return np.stack([first, ties, games - first - ties], axis=1).astype(np.float64)

    return draw


def _strongest(won: Matrix, names: tuple[str, ...]) -> tuple[str, str, str]:
    """Return the cycle whose narrowest majority is clearest, in standard errors of a coin."""
    clear = _majorities(won)
    best, triple = 0.0, (0, 0, 0)
    for first in range(len(won)):
        after, before = np.flatnonzero(clear[first] > best), np.flatnonzero(clear[:, first] > best)
        if not after.size or not before.size:
            continue
        inner = np.minimum(clear[np.ix_(after, before)], np.minimum.outer(clear[first, after], clear[before, first]))
        if inner.max() > best:
            second, third = np.unravel_index(np.argmax(inner), inner.shape)
            best, triple = float(inner.max()), (first, int(after[second]), int(before[third]))
    one, two, three = triple
    return names[one], names[two], names[three]
