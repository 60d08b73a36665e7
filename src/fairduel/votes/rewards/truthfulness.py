r"""Linear rewards of answers, and how truthful each voter is, from votes on pairs of answers.

Vote t prefers an answer whose features exceed the other's by ψ_t, so its margin is z_t = ψ_tᵀθ. Voter v is truthful
with probability r_v, and otherwise says the opposite:

    P(vote t) = D(r_v, z_t) = r_v σ(z_t) + (1 − r_v) σ(−z_t).

r_v is one of ``TRUTHFULNESS``, with shares π of voters: one with few votes is judged by what others with few votes are
like. r = ½ is a vote without a look at the answers, r ≈ 0 one against what the voter believes. Or a voter belongs to a
campaign (:mod:`fairduel.votes.rewards.campaigns`): D is then 0.97 or 0.03, as the campaign's rule says, and that of a
truthful voter where the rule says nothing. The fit maximises

    Σ_v log Σ_j π_j Π_t D(r_j, z_t)^w_t + Σ_j α_j log π_j − ½λ‖θ‖².

Given which r_j a voter has, with probability c_vj, the gradient by z is w Σ_j c_vj (2r_j − 1)σσ'/D, with
σσ' = σ(z)σ(−z), and its derivative is at least −w/4. So a step (¼ Σ w ψψᵀ + λ)⁻¹∇ never lowers the objective (Böhning
1992), and one factorisation of Σ ψψᵀ serves all λ, all folds of a cross-validation (where w is 0 for votes left out)
and all rounds. Momentum, which restarts where it would climb down (O'Donoghue and Candès 2015), saves half of the
steps. π has its EM step.

The objective hardly changes if θ is turned to −θ and r to 1 − r: the votes alone do not tell liars from honest voters.
:func:`majority_first` turns it so that most votes are by voters with r > ½.

Without voters, every vote has the bounded loss (1 − σ(z)^q)/q instead (generalised cross-entropy, Zhang and Sabuncu
2018), whose gradient is σ^q(1 − σ): votes that contradict everything else count little.
"""

from collections.abc import Callable
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse, special

from fairduel.duel import Matrix, Vector
from fairduel.votes.votes import Indices

TRUTHFULNESS = np.array([0.02, 0.26, 0.5, 0.74, 0.98])
"""The values that r_v can have."""
FAITHFUL = 0.97
"""How often members of a campaign vote as its rule says."""
_PRIOR_VOTERS = np.array([0.5, 0.5, 1.0, 3.0, 10.0])  # α: as if these voters had been seen
_CAMPAIGN_VOTERS = 0.5
_OCCASIONAL = 6  # votes of a voter who has few
POWER = 0.7
"""q of the bounded loss."""
_SMALL_STEP = 1e-3  # of θ, relative to its length
_STEEPEST = 0.25
_LARGEST_MARGIN = 30.0

Tensor = NDArray[np.float64]


class Preferred(NamedTuple):
    """What n votes prefer, and who cast them."""

    ahead: Matrix
    """ψ, the features of the preferred answer minus those of the other, (n, d)."""
    voter: Indices | None
    """Who cast each vote, (n,), numbered from 0; None if nobody knows."""
    voters: int
    rules: NDArray[np.int8]
    """Whether each vote is as the rule of each of C campaigns says (1), the opposite (−1), or neither (0), (n, C)."""

    @classmethod
    def by(cls, ahead: Matrix, voter: Indices | None, voters: int) -> Self:
        """Return votes without campaigns."""
        return cls(ahead, voter, voters, np.zeros((len(ahead), 0), dtype=np.int8))

    def of(self, chosen: Indices) -> "Preferred":
        """Return these votes only; voters keep their numbers."""
        voter = None if self.voter is None else self.voter[chosen]
        return self._replace(ahead=self.ahead[chosen], voter=voter, rules=self.rules[chosen])

    def likelihoods(self, z: Matrix) -> Tensor:
        """Return D of votes with margins ``z`` (n, k) by voters of each of J + C classes, (J + C, n, k)."""
        each = likelihoods(z)
        follow = [np.where(rule == 0, each[-1], 0.5 + (FAITHFUL - 0.5) * rule) for rule in self.rules.T[:, :, None]]
        return np.concatenate([each, np.asarray(follow, dtype=each.dtype).reshape(-1, *z.shape)])


class Learned(NamedTuple):
    """k fits of the same votes, which count differently in each."""

    theta: Matrix
    """(d, k)."""
    shares: Tensor
    """π of voters with many votes, and with few, (2, J + C, k)."""
    classes: Tensor
    """c, with which probability each voter has each truthfulness or is in each campaign, (J + C, V, k)."""
    steps: int

    def truthfulness(self) -> Matrix:
        """Return the mean of r_v, (V, k); ½ for members of a campaign, whose votes do not say what they believe."""
        values = np.full(len(self.classes), 0.5)
        values[: len(TRUTHFULNESS)] = TRUTHFULNESS
        return np.asarray(np.tensordot(values, self.classes, 1))


def likelihoods(z: Matrix) -> Tensor:
    """Return D(r_j, z) of votes with margins ``z`` (n, k) by voters of each truthfulness, (J, n, k)."""
    chance = special.expit(np.clip(z, -_LARGEST_MARGIN, _LARGEST_MARGIN))
    return np.stack([(2.0 * r - 1.0) * chance + (1.0 - r) for r in TRUTHFULNESS.astype(z.dtype)])


def is_occasional(votes: Preferred, weight: Matrix) -> Indices:
    """Return 1 for voters with few votes, and 0 for others, (V, k)."""
    return (by_voter(votes) @ weight <= _OCCASIONAL).astype(np.int64)


def classes_of(
    votes: Preferred, weight: Matrix, each: Tensor, shares: Tensor, occasional: Indices
) -> tuple[Tensor, Matrix]:
    """Return c (J + C, V, k) and log Σ_j π_j Π D^w of every voter (V, k).

    ``each`` is D (J + C, n, k), ``shares`` π (2, J + C, k), and ``occasional`` (V, k) says who has few votes.
    """
    table, prior = by_voter(votes), np.log(shares)
    few = occasional == 1
    joint = np.stack(
        [
            table @ (weight * np.log(one)) + np.where(few, prior[1, place], prior[0, place])
            for place, one in enumerate(each)
        ]
    )
    total = special.logsumexp(joint, axis=0)
    return np.exp(joint - total), total


def usual_shares(votes: Preferred, columns: int) -> Tensor:
    """Return π before any vote was seen, (2, J + C, columns)."""
    seen = _seen_before(votes)
    return np.tile(seen / seen.sum(), (2, 1, columns))


def shares_of(votes: Preferred, classes: Tensor, occasional: Indices, voted: NDArray[np.bool_]) -> Tensor:
    """Return the π that fit ``classes`` c (J + C, V, k) best, (2, J + C, k); only those who ``voted`` (V, k) count."""
    shares = np.stack([(classes * (voted & (occasional == few))).sum(axis=1) for few in (0, 1)]) + _seen_before(votes)
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))


def _seen_before(votes: Preferred) -> Matrix:
    return np.append(_PRIOR_VOTERS, np.full(votes.rules.shape[1], _CAMPAIGN_VOTERS))[:, None]


def pull_of(votes: Preferred, each: Tensor, classes: Tensor) -> Matrix:
    """Return the gradient of the log-likelihood of each vote by its margin, (n, k), if it counts once."""
    chance = (each[len(TRUTHFULNESS) - 1] - (1.0 - TRUTHFULNESS[-1])) / (2.0 * TRUTHFULNESS[-1] - 1.0)
    factor = np.zeros_like(chance)
    for place, (one, share) in enumerate(zip(each, classes, strict=True)):
        mine = share.astype(factor.dtype)[votes.voter]
        if place < len(TRUTHFULNESS):
            factor += (2.0 * TRUTHFULNESS[place] - 1.0) * mine / one
        else:
            free = votes.rules[:, place - len(TRUTHFULNESS), None] == 0
            factor += np.where(free, (2.0 * TRUTHFULNESS[-1] - 1.0) * mine / one, 0.0)
    return np.asarray(chance * (1.0 - chance) * factor)


def learn(votes: Preferred, weight: Matrix, ridge: Vector, start: Matrix | None = None) -> Learned:
    """Fit k times: votes count ``weight`` (n, k) with the ridges λ (k,), from ``start`` (d, k), by default 0."""
    if votes.voter is None:

        def bounded(z: Matrix) -> Matrix:
            chance = special.expit(z)
            return np.asarray(weight * chance**POWER * (1.0 - chance))

        theta, steps = climb(votes.ahead, bounded, weight, ridge, start)
        return Learned(theta, np.ones((2, 1, len(ridge))), np.ones((1, 0, len(ridge))), steps)
    occasional, voted = is_occasional(votes, weight), by_voter(votes) @ (weight > 0.0) > 0.0
    shares, classes = usual_shares(votes, len(ridge)), np.empty(0)

    def pull(z: Matrix) -> Matrix:
        nonlocal shares, classes
        each = votes.likelihoods(z)
        classes, _ = classes_of(votes, weight, each, shares, occasional)
        shares = shares_of(votes, classes, occasional, voted)
        return weight * pull_of(votes, each, classes)

    theta, steps = climb(votes.ahead, pull, weight, ridge, start)
    classes, _ = classes_of(votes, weight, votes.likelihoods(votes.ahead @ theta), shares, occasional)
    return Learned(theta, shares, classes, steps)


def majority_first(votes: Preferred, weight: Matrix, learned: Learned) -> Learned:
    """Return the fits, turned where more votes are by voters who say the opposite than by truthful ones."""
    if votes.voter is None:
        return learned
    down, up, _ = votes_by(votes, weight, learned)
    turned, count = down > up, len(TRUTHFULNESS)
    places = np.append(np.arange(count)[::-1], np.arange(count, len(learned.classes)))
    classes = np.where(turned, learned.classes[places], learned.classes)
    shares = np.where(turned, learned.shares[:, places], learned.shares)
    return Learned(np.where(turned, -learned.theta, learned.theta), shares, classes, learned.steps)


def votes_by(votes: Preferred, weight: Matrix, learned: Learned) -> tuple[Vector, Vector, Matrix]:
    """Return how many votes are by voters who say the opposite, by truthful ones (k,), and by campaigns (C, k)."""
    cast = (by_voter(votes) @ weight * learned.classes).sum(axis=1)
    truth = cast[: len(TRUTHFULNESS)]
    return truth[TRUTHFULNESS < 0.5].sum(axis=0), truth[TRUTHFULNESS > 0.5].sum(axis=0), cast[len(TRUTHFULNESS) :]


def information(votes: Preferred, z: Vector, classes: Matrix | None) -> Vector:
    """Return the Fisher information of each vote about its margin, (n,), given ``classes`` c (J + C, V)."""
    chance = special.expit(z)
    slope = chance * (1.0 - chance)
    if classes is None or votes.voter is None:
        return np.asarray(slope)
    each, mine = likelihoods(z[:, None])[..., 0], classes[:, votes.voter]
    of_class = ((2.0 * TRUTHFULNESS - 1.0)[:, None] * slope) ** 2 / (each * (1.0 - each))
    total = (mine[: len(TRUTHFULNESS)] * of_class).sum(axis=0)
    return np.asarray(total + (mine[len(TRUTHFULNESS) :] * (votes.rules.T == 0)).sum(axis=0) * of_class[-1])


def posterior(votes: Preferred, weight: Vector, learned: Learned, ridge: float) -> Matrix:
    """Return the covariance of the θ of a fit with one column, (d, d)."""
    classes = None if votes.voter is None else learned.classes[..., 0]
    informed = (weight * information(votes, votes.ahead @ learned.theta[:, 0], classes)).astype(votes.ahead.dtype)
    precision = ((informed[:, None] * votes.ahead).T @ votes.ahead).astype(np.float64)
    return np.asarray(np.linalg.inv(precision + ridge * np.eye(len(precision))), dtype=np.float64)


def relevance(votes: Preferred, weight: Vector, learned: Learned, ridge: float) -> Vector:
    """Return how large θ is likely to be for each feature, (d,), given a fit with one column; 1 in the mean square.

    One step of EM for a prior N(0, f²/λ) of each θ: f² ∝ E θ². More steps would leave only the strongest features.
    """
    square = learned.theta[:, 0].astype(np.float64) ** 2 + np.diag(posterior(votes, weight, learned, ridge))
    return np.asarray(np.sqrt(square / square.mean()))


def by_voter(votes: Preferred) -> sparse.csr_array:
    """Return the matrix that sums over each voter's votes, (V, n)."""
    assert votes.voter is not None
    count = len(votes.voter)
    one = np.ones(count, dtype=votes.ahead.dtype)
    return sparse.csr_array((one, (votes.voter, np.arange(count))), shape=(votes.voters, count))


def climb(
    ahead: Matrix,
    pull: Callable[[Matrix], Matrix],
    weight: Matrix,
    ridge: Vector,
    start: Matrix | None,
    most_steps: int = 150,
) -> tuple[Matrix, int]:
    """Climb to θ (d, k) where Σ pull ψ = λθ; return it with the number of steps."""
    kind = ahead.dtype
    most = weight.max(axis=1)
    values, vectors = np.linalg.eigh((ahead.T @ (most[:, None] * ahead)).astype(np.float64))
    vectors, share = vectors.astype(kind), weight.sum(axis=0) / max(float(most.sum()), 1e-12)
    scale = (1.0 / (_STEEPEST * np.maximum(values, 0.0)[:, None] * share + ridge)).astype(kind)
    theta = np.zeros((ahead.shape[1], len(ridge)), dtype=kind) if start is None else start.astype(kind)
    before, momentum = theta, np.ones(len(ridge))
    step = 0
    while step < most_steps:
        step += 1
        further = (1.0 + np.sqrt(1.0 + 4.0 * momentum**2)) / 2.0
        ahead_of = theta + ((momentum - 1.0) / further).astype(kind) * (theta - before)
        gradient = ahead.T @ pull(ahead @ ahead_of).astype(kind) - ridge.astype(kind) * ahead_of
        moved = ahead_of + vectors @ (scale * (vectors.T @ gradient))
        change = moved - theta
        momentum = np.where(((moved - ahead_of) * change).sum(axis=0) < 0.0, 1.0, further)
        before, theta = theta, moved
        length = np.maximum(np.linalg.norm(theta, axis=0), 1e-9)
        if (np.linalg.norm(change, axis=0) <= _SMALL_STEP * length).all():
            break
    return theta, step
