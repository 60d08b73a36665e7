"""Predictions of votes by fits that saw neither the voter nor the prompt, and the ridge that predicts best.

Voters and prompts are each divided into K groups. A vote by a voter of group a on a prompt of group b is predicted by
the fit without both groups. How well fits predict is max Σ_v log Σ_j π_j Π_t D(r_j, s z_t) over the shares π and the
unit s: a voter who always says the opposite is explained as one, not held against the fit, and neither is it that a
large λ makes all z small. So lies that truthfulness explains do not decide which ridge is best.
"""

import numpy as np
from scipy import special

from fairduel.duel import Matrix, Vector
from fairduel.votes.rewards.truthfulness import (
    POWER,
    Preferred,
    by_voter,
    classes_of,
    is_occasional,
    learn,
    majority_first,
    relevance,
    shares_of,
    usual_shares,
)
from fairduel.votes.votes import Indices

GROUPS = 4
RIDGES = 4.0 ** np.arange(-1, 6)
"""λ that are tried, per feature whose root mean square is 1."""
_MOST_VOTES = 10_000  # to choose λ from
_UNITS = np.exp(np.linspace(-2.0, 1.5, 15))  # root mean squares of margins that are tried
_STEPS = 8  # of EM, for the shares of voters


def groups_of(members: Indices, weight: Vector, groups: int, rng: np.random.Generator) -> Indices:
    """Divide the members (voters or prompts) that ``members`` (n,) names into groups of like weight; return each's."""
    count = int(members.max()) + 1
    cast = np.bincount(members, weights=weight, minlength=count)
    order = rng.permutation(count)
    order = order[np.argsort(-cast[order], kind="stable")]
    filled, group = np.zeros(groups), np.zeros(count, dtype=np.int64)
    for member in order:
        group[member] = place = int(np.argmin(filled))
        filled[place] += cast[member]
    return group


def best_ridge(votes: Preferred, weight: Vector, prompt: Indices, seed: int = 0) -> float:
    """Return the λ under which votes are predicted best; ``prompt`` (n,) numbers what they are about."""
    rng = np.random.default_rng(seed)
    if len(weight) > _MOST_VOTES:
        chosen = np.sort(rng.choice(len(weight), _MOST_VOTES, replace=False))
        votes, weight, prompt = votes.of(chosen), weight[chosen], prompt[chosen]
    ridges = votes.ahead.shape[1] * RIDGES
    margins = _left_out(votes, weight, _parts(votes, weight, prompt, rng), ridges)
    return float(ridges[int(np.argmax([predicted(votes, weight, each) for each in margins]))])


def held_out_margins(votes: Preferred, weight: Vector, prompt: Indices, ridge: float, seed: int = 0) -> Vector:
    """Predict the margin of each vote by a fit without the groups of its voter and of its prompt, shape (n,).

    The votes (n,) count ``weight``, and ``prompt`` numbers what they are about. Which features matter is found without
    the voter's group as well.
    """
    parts = _parts(votes, weight, prompt, np.random.default_rng(seed))
    of_voter, _ = parts
    if votes.voter is None:
        return np.asarray(_left_out(votes, weight, parts, np.array([ridge]))[0])
    margins = np.empty(len(weight))
    for group in range(GROUPS):
        others = (weight * (of_voter != group)).astype(votes.ahead.dtype)
        first = learn(votes, others[:, None], np.array([ridge]))
        scaled = votes._replace(ahead=votes.ahead * relevance(votes, others, first, ridge).astype(votes.ahead.dtype))
        mine = of_voter == group
        margins[mine] = _left_out(scaled, weight, parts, np.array([ridge]), group)[0, mine]
    return margins


def predicted(votes: Preferred, weight: Vector, margins: Vector) -> float:
    """Return the log-probability of votes with these ``margins`` (n,), in the best unit and with the best shares π.

    A large λ makes margins small, and small margins tell little of the shares; that is not held against it.
    """
    unit = max(float(np.sqrt(np.mean(np.square(margins)))), 1e-12)
    z = (margins / unit)[:, None] * _UNITS
    if votes.voter is None:
        return float((weight @ (special.expit(z) ** POWER - 1.0)).max() / POWER)
    columns = np.repeat(weight[:, None], len(_UNITS), axis=1)
    each, occasional = votes.likelihoods(z), is_occasional(votes, columns)
    voted, shares = by_voter(votes) @ (columns > 0.0) > 0.0, usual_shares(votes, len(_UNITS))
    for _ in range(_STEPS):
        classes, total = classes_of(votes, columns, each, shares, occasional)
        shares = shares_of(votes, classes, occasional, voted)
    return float(np.max(total.sum(axis=0)))


def _left_out(
    votes: Preferred, weight: Vector, parts: tuple[Indices, Indices], ridges: Vector, only: int | None = None
) -> Matrix:
    """Return the margin of each vote, for each ridge, by a fit without the voter's and the prompt's group, (k, n).

    ``parts`` are these groups. With ``only``, margins of votes by other groups of voters are 0.
    """
    of_voter, of_prompt = parts
    cells = [(one, one) for one in range(GROUPS)]
    if votes.voter is not None:
        cells = [(one, other) for one in range(GROUPS) for other in range(GROUPS) if only in (None, one)]
    left = np.stack([weight * (of_voter != one) * (of_prompt != other) for one, other in cells], axis=1)
    columns = np.tile(left.astype(votes.ahead.dtype), len(ridges))
    learned = majority_first(votes, columns, learn(votes, columns, np.repeat(ridges, len(cells))))
    margins = np.zeros((len(ridges), len(weight)))
    for place, (one, other) in enumerate(cells):
        mine = (of_voter == one) & (of_prompt == other)
        margins[:, mine] = (votes.ahead[mine] @ learned.theta[:, place :: len(cells)]).T
    return margins


def _parts(votes: Preferred, weight: Vector, prompt: Indices, rng: np.random.Generator) -> tuple[Indices, Indices]:
    """Return the group of each vote's voter, and of its prompt, both (n,)."""
    of_prompt = groups_of(prompt, weight, GROUPS, rng)[prompt]
    if votes.voter is None:
        return of_prompt, of_prompt
    return groups_of(votes.voter, weight, GROUPS, rng)[votes.voter], of_prompt
