r"""A mixture of voters: everyone alike, camps with an order of their own, random, one-sided, or pushing an item.

Vote t by voter v on items i and j has z_t = θ_i − θ_j, with θ everybody's scores. v belongs to one class:

- **ability** a: P(first wins) = σ(a z_t). a = 1 is everyone alike, 0 is random, and a < 0 is against the others.
- **side**: the first (or second) item wins 19 times in 20, whatever they are (only if sides are known).
- **camp** g: P(first wins) = σ(θᵍ_i − θᵍ_j), with scores of its own.
- **push** (k, ±, h): votes on item k, which wins (or loses) with probability h; otherwise, and in other duels, P is
  σ(z_t).

Every vote counts c_t/(1 + τ²h_t), because a voter's votes on one item share a taste for it, N(0, τ²): h_t is the
information of all of them, so they are together worth at most 1/τ². The fit maximises

    Σ_v log Σ_c π_c L_vc + Σ_c (α_c − 1) log π_c − ½λ (‖θ‖² + Σ_g ‖θᵍ‖²)

by EM: memberships r_vc ∝ π_c L_vc; then shares π in closed form, and one Newton step of each order, damped where the
expected log-likelihood would fall. Memberships are by margins z without the voter's own votes, to first order, and
count how uncertain these are: with few votes per item, θ says what its voters say, so honest voters would seem more
able than others, or opposed to them. Occasional voters, about whom a few votes say little, are alike or push one of
the items that they vote on, with odds o_k against alike: a crowd of new accounts then shows, although none of them
does, and however many others vote on other items. These odds have an MM step of their own.
"""

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple, Self

import numpy as np
from scipy import sparse, special
from scipy.sparse.linalg import cg

from fairduel.duel import Matrix, Vector
from fairduel.votes.votes import Indices, Mask, Votes, pair_sums, sums

ABILITIES = np.array([-1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 3.0, 6.0])  # the last if most others vote at random
ALIKE = int(np.flatnonzero(ABILITIES == 1.0)[0])
"""The class that is like everyone."""
_ABILITY_VOTERS = np.array([0.5, 0.5, 1.0, 3.0, 10.0, 3.0, 1.0, 0.5])  # α − 1: as if these voters had been seen
_SIDE_VOTERS, _CAMP_VOTERS, _PUSH_VOTERS = 0.25, 1.0, 0.15  # the last for all items and both directions
_CROWD_VOTERS, _CROWD_PUSH_VOTERS = 3.0, 0.02  # as if they had been seen on each item: alike, and pushing it
_SIDED = 0.95
_PUSHING, _CROWD_PUSHING = 0.02, 0.2  # share of those who push an item, at the start; odds that occasional voters do
PUSHES = np.array([0.5, 0.95])
"""h, how often those who push an item do so."""
_EACH_CROWD = _CROWD_PUSH_VOTERS / (2 * len(PUSHES))
RIDGE, CAMP_RIDGE = 0.1, 0.3
"""λ of everyone's scores, and of a camp's."""
_OCCASIONAL = 6  # votes of a voter who is occasional
_WARM_UP = 60  # rounds of shares alone: a crowd that pushes one of many items is recognised before it moves the scores
_MOST_ROUNDS, _SMALL_GAIN = 30, 0.02
_LONGEST_STEP, _HALVINGS = 1.0, 6
_DENSE_ITEMS = 600  # with more, Newton steps use conjugate gradients
_INFORMATION = 0.2  # of a vote, about
_START = 4.0  # τ² at the start, so that a few busy voters are not taken for everyone
_FIRST_STEPS = 6
_LEAST_SCALE = 0.05


class Ballots(NamedTuple):
    """The n votes sorted by voter, with the (voter, item) cells that they belong to."""

    first: Indices
    second: Indices
    result: Vector
    counts: Vector
    voter: Indices
    items: int
    voters: int
    cell_voter: Indices
    """The voter of each cell, (c,)."""
    cell_item: Indices
    cell_first: Indices
    """The cell of the voter and the first item, (n,)."""
    cell_second: Indices
    occasional: Mask
    """Who is occasional, (V,)."""
    sides_known: bool

    @classmethod
    def of(cls, votes: Votes, counts: Vector) -> tuple[Self, Indices]:
        """Sort the votes, which count ``counts`` (n,); return them with their places in the file (n,)."""
        order = np.argsort(votes.cast_by, kind="stable")  # sums over a voter's cells then stay in the processor's cache
        first, second, voter = (each[order].astype(np.int64) for each in (votes.first, votes.second, votes.cast_by))
        items, voters, size = len(votes.items), len(votes.voters), len(votes)
        cells, cell = np.unique(np.concatenate([voter * items + first, voter * items + second]), return_inverse=True)
        cast = sums(voter, voters, counts[order])
        occasional = cast <= _OCCASIONAL
        if cast[occasional].sum() >= 0.5 * cast.sum():
            occasional[:] = False
        made = cls(
            *(first, second, votes.result[order], counts[order], voter, items, voters),
            *(cells // items, cells % items, cell[:size], cell[size:], occasional, votes.sides_known),
        )
        return made, order

    def per_cell(self, values: Vector, sign: float = -1.0) -> Vector:
        """Sum ``values`` (n,) over each cell (c,), times ``sign`` where the item is the second."""
        count = len(self.cell_voter)
        return sums(self.cell_first, count, values) + sign * sums(self.cell_second, count, values)

    def per_voter(self, values: Vector) -> Vector:
        """Sum ``values`` (n,) over each voter's votes, (V,)."""
        return sums(self.voter, self.voters, values)

    def of_voters(self, chosen: Mask) -> "Ballots":
        """Return the votes of the voters ``chosen`` (V,) only; voters and items keep their numbers."""
        votes, cells = chosen[self.voter], chosen[self.cell_voter]
        place = np.cumsum(cells) - 1
        return self._replace(
            **{name: getattr(self, name)[votes] for name in ("first", "second", "result", "counts", "voter")},
            cell_voter=self.cell_voter[cells],
            cell_item=self.cell_item[cells],
            cell_first=place[self.cell_first[votes]],
            cell_second=place[self.cell_second[votes]],
        )


class Model(NamedTuple):
    """The parameters of the mixture."""

    scores: Matrix
    """θ, then θᵍ of each of G camps, (1 + G, K)."""
    shares: Vector
    """π of abilities, both sides if known, and camps, among voters who are not occasional, (C,)."""
    pushes: Matrix
    """π of pushing an item by them, for each h, up and down, (2, 2, K); their sum with ``shares`` is 1."""
    crowd_odds: Matrix
    """o: odds of pushing an item against being alike, among occasional voters who vote on it, (2, 2, K)."""

    @property
    def camps(self) -> int:
        """G, the number of camps."""
        return len(self.scores) - 1


class Members(NamedTuple):
    """Who belongs to which class, with which probability."""

    classes: Matrix
    """Abilities, both sides if known, and camps, (V, C)."""
    pushes: Matrix
    """Pushing the cell's item, by h and direction (up, down), (2, 2, c)."""

    def pushers(self, ballots: Ballots) -> Vector:
        """Return the probability that a voter pushes any item, (V,)."""
        return sums(ballots.cell_voter, ballots.voters, self.pushes.sum(axis=(0, 1)))


def margins(ballots: Ballots, scores: Vector) -> Vector:
    """Return the log-odds that the first item wins, (n,), by ``scores`` (K,)."""
    return np.asarray(scores[ballots.first] - scores[ballots.second])


def log_likelihoods(ballots: Ballots, weight: Vector, logits: Matrix) -> tuple[Matrix, Matrix]:
    """Return log L of every voter and class (V, C), and what it gains if the voter pushes a cell's item (2, 2, c).

    ``logits`` are the margins by everyone's scores, and by each camp's, (1 + G, n).
    """
    z, won = logits[0], ballots.result
    of_votes = _by_ability(won, z)
    if ballots.sides_known:
        of_votes += [_log_likelihood(won, logit) for logit in (special.logit(_SIDED), -special.logit(_SIDED))]
    of_votes += [_log_likelihood(won, logit) for logit in logits[1:]]
    classes = np.stack([ballots.per_voter(weight * each) for each in of_votes], axis=1)
    chance, alike, count = special.expit(z), of_votes[ALIKE], len(ballots.cell_voter)
    log_win, log_loss = _log_likelihood(1.0, z), _log_likelihood(0.0, z)  # finite where the chance rounds to 0 or 1
    gained = np.empty((len(PUSHES), 2, count))
    for place, often in enumerate(PUSHES):
        ups = won * np.log(often + (1.0 - often) * chance) + (1.0 - won) * (np.log1p(-often) + log_loss)
        downs = (1.0 - won) * np.log1p(-(1.0 - often) * chance) + won * (np.log1p(-often) + log_win)
        up, down = weight * (ups - alike), weight * (downs - alike)  # pushing the first item up, or down
        gained[place, 0] = sums(ballots.cell_first, count, up) + sums(ballots.cell_second, count, down)
        gained[place, 1] = sums(ballots.cell_first, count, down) + sums(ballots.cell_second, count, up)
    return classes, gained


def _log_likelihood(won: Vector | float, logit: Vector | float) -> Vector:
    return np.asarray(won * logit - np.maximum(logit, 0.0) - np.log1p(np.exp(-np.abs(logit))))


def _by_ability(won: Vector, z: Vector) -> list[Vector]:
    """Return the log-likelihood of every vote by each ability, each (n,): log(1 + e^−|az|) is the same for −a."""
    even = {size: np.log1p(np.exp(-size * np.abs(z))) for size in np.unique(np.abs(ABILITIES)).tolist()}
    along = {1.0: won * z - np.maximum(z, 0.0), -1.0: won * z - np.minimum(z, 0.0)}
    return [a * along[math.copysign(1.0, a)] - even[abs(a)] for a in ABILITIES.tolist()]


class Relative(NamedTuple):
    """Likelihoods of the classes that each voter may belong to, divided by the largest of them."""

    most: Vector
    """The logarithm of the largest, (V,)."""
    classes: Matrix
    """(V, C); 0 where an occasional voter cannot belong to a class."""
    pushes: Matrix
    """Of pushing the cell's item, (2, 2, c)."""

    @classmethod
    def of(cls, ballots: Ballots, classes: Matrix, gained: Matrix) -> Self:
        """Divide them, given :func:`log_likelihoods`."""
        voter, possible = ballots.cell_voter, classes
        if ballots.occasional.any():
            possible = np.where(ballots.occasional[:, None], -np.inf, classes)
            possible[:, ALIKE] = classes[:, ALIKE]
        most = possible.max(axis=1)
        np.maximum.at(most, voter, gained.max(axis=(0, 1)) + classes[voter, ALIKE])
        return cls(most, np.exp(possible - most[:, None]), np.exp(gained + (classes[:, ALIKE] - most)[voter]))


def members(ballots: Ballots, model: Model, likelihoods: Relative) -> tuple[Members, Vector]:
    """Return who belongs to which class, and log Σ_c π_c L_vc of each voter (V,)."""
    item, voter, prior, share = ballots.cell_item, ballots.cell_voter, model.pushes, model.shares
    if ballots.occasional.any():
        alike = crowd_alike(ballots, model)
        often = ballots.occasional[voter]
        each = np.where(often, model.crowd_odds[..., item] * alike[voter], prior[..., item])  # (2, 2, c)
        share = np.tile(share, (ballots.voters, 1))
        share[ballots.occasional, ALIKE] = alike[ballots.occasional]
    else:
        each = prior[..., item]
    joint, pushing = share * likelihoods.classes, each * likelihoods.pushes
    both = joint.sum(axis=1) + sums(voter, ballots.voters, pushing.sum(axis=(0, 1)))
    return Members(joint / both[:, None], pushing / both[voter]), np.asarray(likelihoods.most + np.log(both))


def crowd_alike(ballots: Ballots, model: Model) -> Vector:
    """Return the share of alike, 1/(1 + Σ o_k) over the items that they vote on, if a voter is occasional, (V,)."""
    odds = model.crowd_odds.sum(axis=(0, 1))[ballots.cell_item]
    return np.asarray(1.0 / (1.0 + sums(ballots.cell_voter, ballots.voters, odds)))


def fitted_shares(ballots: Ballots, model: Model, found: Members) -> Model:
    """Return the model with the shares π that maximise the expected log-likelihood plus their prior's, and better odds.

    Σ_v r_vk log o_k − log(1 + Σ o) is at least its tangent in the second term, whose maximum is in closed form.
    """
    counted = sums(ballots.voter, ballots.voters, ballots.counts) > 0.0
    regular = counted & ~ballots.occasional
    share = found.classes[regular].sum(axis=0) + _prior_voters(ballots, model.camps)

    def pushes_by(chosen: Mask) -> Matrix:
        if not chosen.any():
            return np.zeros_like(model.pushes)
        by_them = found.pushes * chosen[ballots.cell_voter]
        return np.array([[sums(ballots.cell_item, ballots.items, way) for way in ways] for ways in by_them])

    push, crowd = pushes_by(regular) + _each_push(ballots), pushes_by(counted & ballots.occasional) + _EACH_CROWD
    total = share.sum() + push.sum()
    alike = (crowd_alike(ballots, model) * counted * ballots.occasional)[ballots.cell_voter]
    seen = sums(ballots.cell_item, ballots.items, alike)
    seen += (_CROWD_VOTERS + _CROWD_PUSH_VOTERS) / (1.0 + model.crowd_odds.sum(axis=(0, 1)))
    return model._replace(shares=share / total, pushes=push / total, crowd_odds=crowd / seen)


def _prior_voters(ballots: Ballots, camps: int) -> Vector:
    sides = np.full(2 if ballots.sides_known else 0, _SIDE_VOTERS)
    return np.concatenate([_ABILITY_VOTERS, sides, np.full(camps, _CAMP_VOTERS)])


def _each_push(ballots: Ballots) -> float:
    return _PUSH_VOTERS / (len(PUSHES) * 2 * ballots.items)


def log_prior(ballots: Ballots, model: Model) -> float:
    """Return the log-density of the parameters, up to a constant."""
    share = _prior_voters(ballots, model.camps) @ np.log(model.shares)
    each = _each_push(ballots)
    share += each * np.log(model.pushes).sum() + _EACH_CROWD * np.log(model.crowd_odds).sum()
    share -= (_CROWD_VOTERS + _CROWD_PUSH_VOTERS) * np.log1p(model.crowd_odds.sum(axis=(0, 1))).sum()
    ridges = np.array([RIDGE] + [CAMP_RIDGE] * model.camps)
    return float(share - 0.5 * ridges @ (model.scores**2).sum(axis=1))


class Expected(NamedTuple):
    """Votes as one order has to explain them: result p at log-odds a·z, counting w, over all (a, w, p) of a vote."""

    gradient: Vector
    """Of the expected log-likelihood, by z, (n,)."""
    slope: Vector
    """Minus its second derivative, (n,)."""


def honest_share(ballots: Ballots, found: Members, chance: Vector) -> tuple[Vector, Vector]:
    """Return how much of each vote is by its voter's opinion of both items, if the voter pushes any: wins and losses.

    Both (n,): the weight of the vote as a win of the first item, and as one of the second. With probability h, a push
    decides instead, so P(opinion | k won) = (1 − h)p/(h + (1 − h)p), while a vote against the push is always opinion.
    """
    all_of = found.pushers(ballots)[ballots.voter]
    first, second = all_of.copy(), all_of.copy()
    for place, often in enumerate(PUSHES):
        up, down = found.pushes[place]
        for_first = up[ballots.cell_first] + down[ballots.cell_second]
        for_second = down[ballots.cell_first] + up[ballots.cell_second]
        first -= for_first * often / (often + (1.0 - often) * chance)
        second -= for_second * often / (often + (1.0 - often) * (1.0 - chance))
    return ballots.result * np.maximum(first, 0.0), (1.0 - ballots.result) * np.maximum(second, 0.0)


def _everyone(ballots: Ballots, found: Members, z: Vector, wins: tuple[Vector, Vector]) -> Expected:
    """Return what everyone's order has to explain: the abilities, and the ``wins`` of those who push."""
    gradient, slope = wins[0] - sum(wins) * special.expit(z), sum(wins) * variance_of(z)
    halves = {size: 0.5 * np.tanh(0.5 * size * z) for size in np.unique(np.abs(ABILITIES)).tolist()}  # σ(az) − ½
    for place, ability in enumerate(ABILITIES.tolist()):
        if ability:
            share, half = found.classes[ballots.voter, place], math.copysign(1.0, ability) * halves[abs(ability)]
            gradient += share * ability * (ballots.result - 0.5 - half)
            slope += share * ability**2 * (0.25 - half**2)
    return Expected(gradient, slope)


def _expected_log_likelihood(
    ballots: Ballots, found: Members, z: Vector, *, weight: Vector, wins: tuple[Vector, Vector]
) -> float:
    """Return the part of the expected log-likelihood that everyone's margins ``z`` (n,) decide."""
    total = wins[0] * _log_likelihood(1.0, z) + wins[1] * _log_likelihood(0.0, z)
    for place, each in enumerate(_by_ability(ballots.result, z)):
        if ABILITIES[place]:
            total += found.classes[ballots.voter, place] * each
    return float(weight @ total)


def variance_of(logit: Vector) -> Vector:
    """Return p(1 − p) for the probability p with these log-odds."""
    chance = special.expit(logit)
    return np.asarray(chance * (1.0 - chance))


def newton_step(ballots: Ballots, scores: Vector, expected: Expected, weight: Vector, ridge: float) -> Vector:
    """Return one Newton step of scores (K,) towards the maximum, at most 1 log-odds for any item."""
    count = ballots.items
    force = weight * expected.gradient
    gradient = sums(ballots.first, count, force) - sums(ballots.second, count, force) - ridge * scores
    slope = weight * expected.slope
    if count <= _DENSE_ITEMS:
        step = np.linalg.solve(hessian_of_order(ballots, slope, ridge), gradient)
    else:
        between = sparse.coo_array((slope, (ballots.first, ballots.second)), shape=(count, count)).tocsr()
        between = between + between.T
        diagonal = np.asarray(between.sum(axis=1)).ravel() + ridge
        matrix, scale = sparse.diags_array(diagonal) - between, sparse.diags_array(1.0 / diagonal)
        step, _ = cg(matrix, gradient, rtol=1e-3, maxiter=50, M=scale)
    return np.asarray(np.clip(step, -_LONGEST_STEP, _LONGEST_STEP))


def hessian_of_order(ballots: Ballots, slope: Vector, ridge: float) -> Matrix:
    """Return Σ slope φφᵀ + λ, (K, K), over the votes, with φ the difference of a vote's items."""
    between = pair_sums(ballots.first, ballots.second, ballots.items, slope)
    between += between.T
    return np.asarray(np.diag(between.sum(axis=1) + ridge) - between)


class Order(NamedTuple):
    """What one order of the items has to explain."""

    margins: Vector
    """(n,)."""
    expected: Expected
    log_likelihood: Callable[[Vector], float]
    """Of weighted votes, as expected, given other margins (n,)."""
    ridge: float


def _orders(ballots: Ballots, weight: Vector, model: Model, found: Members) -> Iterator[Order]:
    """Yield everyone's order, then each camp's."""
    z = margins(ballots, model.scores[0])
    wins = honest_share(ballots, found, special.expit(z))
    value = partial(_expected_log_likelihood, ballots, found, weight=weight, wins=wins)
    yield Order(z, _everyone(ballots, found, z, wins), value, RIDGE)
    for number, scores in enumerate(model.scores[1:], found.classes.shape[1] - model.camps):
        share, z = found.classes[ballots.voter, number], margins(ballots, scores)
        expected = Expected(share * (ballots.result - special.expit(z)), share * variance_of(z))
        yield Order(z, expected, partial(_of_camp, ballots, weight * share), CAMP_RIDGE)


def _of_camp(ballots: Ballots, weight: Vector, z: Vector) -> float:
    return float(weight @ _log_likelihood(ballots.result, z))


def by_others(ballots: Ballots, weight: Vector, model: Model, found: Members) -> Matrix:
    """Return the log-odds that the first item wins by each order, (1 + G, n), as the votes of other voters tell."""
    orders = [moderated(*without_own_votes(ballots, weight, order)) for order in _orders(ballots, weight, model, found)]
    return np.stack(orders)


def without_own_votes(ballots: Ballots, weight: Vector, order: Order) -> tuple[Vector, Vector]:
    """Return the margins (n,) without the influence of the voter's own votes, and their variances (n,).

    One diagonal Newton step takes back what they add to the order, given who belongs to it.
    """
    gradient = ballots.per_cell(weight * order.expected.gradient)
    own = ballots.per_cell(weight * order.expected.slope, sign=1.0)
    others = np.maximum(sums(ballots.cell_item, ballots.items, own)[ballots.cell_item] - own, 0.0)
    variance = 1.0 / (others + order.ridge)
    move = gradient * variance
    moved = order.margins - (move[ballots.cell_first] - move[ballots.cell_second])
    return moved, variance[ballots.cell_first] + variance[ballots.cell_second]


def moderated(mean: Vector, variance: Vector) -> Vector:
    """Return the log-odds of E σ(z) for z ~ N(mean, variance), about (MacKay 1992)."""
    return np.asarray(mean / np.sqrt(1.0 + np.pi / 8.0 * variance))


def improved(ballots: Ballots, weight: Vector, model: Model, found: Members) -> Model:
    """Return the model after the M-step: shares in closed form, one damped Newton step of each order."""
    model = fitted_shares(ballots, model, found)
    scores = model.scores.copy()
    for number, order in enumerate(_orders(ballots, weight, model, found)):
        step = newton_step(ballots, scores[number], order.expected, weight, order.ridge)

        def value(theta: Vector, order: Order = order) -> float:
            return order.log_likelihood(margins(ballots, theta)) - 0.5 * order.ridge * float(theta @ theta)

        scores[number] = _damped(scores[number], step, value)
    return model._replace(scores=scores)


def _damped(start: Vector, step: Vector, value: Callable[[Vector], float]) -> Vector:
    """Return ``start`` plus the step, halved until the value does not fall; if it always does, ``start``."""
    before = value(start)
    for halvings in range(_HALVINGS):
        if value(moved := start + 0.5**halvings * step) >= before:
            return moved
    return start


def _relative(ballots: Ballots, weight: Vector, orders: Matrix) -> Relative:
    return Relative.of(ballots, *log_likelihoods(ballots, weight, orders))


class Fitted(NamedTuple):
    """A fit of the mixture."""

    model: Model
    members: Members
    """Judged without the influence of the voter's own votes."""
    margins: Matrix
    """See :func:`by_others`, (1 + G, n)."""


def fit_of(ballots: Ballots, weight: Vector, model: Model, found: Members) -> Fitted:
    """Return who belongs to which class, given who was ``found`` to belong to it so far."""
    orders = by_others(ballots, weight, model, found)
    return Fitted(model, members(ballots, model, _relative(ballots, weight, orders))[0], orders)


def fit_mixture(
    ballots: Ballots,
    weight: Vector,
    start: Model,
    *,
    rounds: int = _MOST_ROUNDS,
    warm_up: int = _WARM_UP,
    small_gain: float = _SMALL_GAIN,
) -> Fitted:
    """Fit the mixture by EM from ``start``, until the log-likelihood of voters by others' votes changes little.

    Votes count ``weight`` (n,).
    """
    model, last = start, -np.inf
    orders = np.stack([margins(ballots, scores) for scores in model.scores])
    found, _ = members(ballots, model, _relative(ballots, weight, orders))
    for number in range(rounds + 1):
        orders = by_others(ballots, weight, model, found)
        likelihoods = _relative(ballots, weight, orders)
        for _ in range(0 if number else warm_up):
            model = fitted_shares(ballots, model, members(ballots, model, likelihoods)[0])
        found, each = members(ballots, model, likelihoods)
        now = float(each.sum()) + log_prior(ballots, model)
        if number == rounds or abs(now - last) < small_gain:
            break
        model, last = improved(ballots, weight, model, found), now
    return Fitted(model, found, orders)


def objective(ballots: Ballots, weight: Vector, model: Model) -> float:
    """Return the log-likelihood plus the log-prior."""
    orders = np.stack([margins(ballots, scores) for scores in model.scores])
    _, each = members(ballots, model, _relative(ballots, weight, orders))
    return float(each.sum()) + log_prior(ballots, model)


def shared_taste(ballots: Ballots, variance: float) -> Vector:
    """Return how much each vote counts, (n,), if a voter's votes on an item share a taste of this variance τ²."""
    information = ballots.per_cell(_INFORMATION * ballots.counts, sign=1.0)
    return np.asarray(1.0 / (1.0 + variance * (information[ballots.cell_first] + information[ballots.cell_second])))


def unweighted_scores(ballots: Ballots, chosen: Vector | float = 1.0, ridge: float = RIDGE) -> Vector:
    """Return the scores (K,) by votes that count ``chosen`` (n,), each voter at most once or so per item."""
    weight, scores = chosen * ballots.counts * shared_taste(ballots, _START), np.zeros(ballots.items)
    for _ in range(_FIRST_STEPS):
        z = margins(ballots, scores)
        expected = Expected(ballots.result - special.expit(z), variance_of(z))
        scores = scores + newton_step(ballots, scores, expected, weight, ridge)
    return scores


def taste_variance(ballots: Ballots, z: Vector) -> float:
    """Estimate τ² from the margins ``z`` (n,): half of the voters have less.

    With g and h the gradient and the information of a taste at 0, g² is h + h²τ² on average. A median over voters,
    rather than a mean, keeps those who push an item from making everyone's tastes look strong.
    """
    chance = special.expit(z)
    gradient = ballots.per_cell(ballots.counts * (ballots.result - chance))
    information = ballots.per_cell(ballots.counts * chance * (1.0 - chance), sign=1.0)
    excess, scale = (
        sums(ballots.cell_voter, ballots.voters, each) for each in (gradient**2 - information, information**2)
    )
    enough = scale > _LEAST_SCALE
    if not enough.any():
        return 0.0
    each, weight = excess[enough] / scale[enough], np.sqrt(scale[enough])
    order = np.argsort(each)
    place = np.searchsorted(np.cumsum(weight[order]), 0.5 * weight.sum())
    return max(0.0, float(each[order][place]))


def first_model(ballots: Ballots, memberships: Matrix | None = None) -> Model:
    """Return a model to start from, given how likely each voter is in each of G camps, (V, G)."""
    camps = np.zeros((ballots.voters, 0)) if memberships is None else memberships
    rest = np.maximum(1.0 - camps.sum(axis=1), 0.0) * ~ballots.occasional
    scores = [unweighted_scores(ballots, rest[ballots.voter])]
    scores += [unweighted_scores(ballots, camp[ballots.voter], CAMP_RIDGE) for camp in camps.T]
    voters = _prior_voters(ballots, camps.shape[1])
    voters[len(voters) - camps.shape[1] :] += camps.sum(axis=0)
    voters[ALIKE] += rest.sum()
    each = np.full((len(PUSHES), 2, ballots.items), 1.0 / (len(PUSHES) * 2))
    shares, pushes = (1.0 - _PUSHING) * voters / voters.sum(), _PUSHING * each / ballots.items
    return Model(np.array(scores), shares, pushes, _CROWD_PUSHING * each)
