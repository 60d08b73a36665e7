"""Worlds of K arms known only by a preference matrix, with or without a total order."""

from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logit

from fairduel.checks import integer, positive
from fairduel.core.links import LOGISTIC
from fairduel.duel import Matrix, Vector
from fairduel.errors import BadInputError, unknown_name
from fairduel.worlds.base import FixedWorld

Regret = Literal["condorcet", "borda", "copeland"]
Family = Literal["utilities", "condorcet", "condorcet-cycle", "cyclic", "arithmetic", "geometric", "one-good"]
_RATIO = 0.5  # of one utility to the one before it in the geometric family
_TOP = 3  # arms of the cycle at the top


def condorcet_winner(matrix: Matrix) -> int | None:
    """The arm that beats every other with probability over ½, by P (K, K); ``None`` where there is none.

    >>> condorcet_winner(np.array([[0.5, 0.4], [0.6, 0.5]]))
    1
    """
    beaten = (matrix > 0.5).sum(axis=1)
    best = int(np.argmax(beaten))
    return best if beaten[best] == len(matrix) - 1 else None


def borda_scores(matrix: Matrix) -> Vector:
    """How likely each arm beats another one drawn at random, shape (K,), by P (K, K)."""
    return np.asarray((matrix.sum(axis=1) - 0.5) / (len(matrix) - 1))


def copeland_scores(matrix: Matrix) -> Vector:
    """The share of the other arms that each arm beats, shape (K,), by P (K, K); a tie counts half."""
    beaten = (matrix > 0.5).sum(axis=1) + 0.5 * ((matrix == 0.5).sum(axis=1) - 1)
    return np.asarray(beaten / (len(matrix) - 1))


class PreferenceWorld(FixedWorld):
    """K arms, and P(i beats j) for every pair of them, shape (K, K); P_ij + P_ji = 1.

    Its actions are the K unit vectors, so that agents with features can play here too. Its rewards are no utilities:
    they are what makes the regret of a run, 2 max r − r_a − r_b, the one that was asked for.

    ``"condorcet"``: r_i = P(i beats w) − ½ for the Condorcet winner w, so that a round costs the two gaps to w; that is
    twice the average of the two, which much of the literature counts. The weak regret of a run is then the smaller of
    the two gaps. ``"borda"`` and ``"copeland"``: r_i is the arm's score.

    No θ* need exist. Agents with features are told the logistic link and B, the norm of the centred logits of
    Σ_j P_ij / K; where P comes from logistic utilities, give their norm as ``norm_bound``.

    >>> world = PreferenceWorld(matrix=[[0.5, 0.7, 0.6], [0.3, 0.5, 0.8], [0.4, 0.2, 0.5]])
    >>> world.offer(1).rewards.round(3).tolist()
    [0.0, -0.2, -0.1]
    """

    def __init__(
        self,
        *,
        matrix: ArrayLike,
        regret: Regret = "condorcet",
        norm_bound: float | None = None,
        ties: str = "none",
    ) -> None:
        self.matrix = _checked_matrix(matrix)
        if norm_bound is None:
            logits = logit(self.matrix.mean(axis=1))
            norm_bound = max(float(np.linalg.norm(logits - logits.mean())), 0.1)  # a world of coins has none
        super().__init__(
            np.eye(len(self.matrix)),
            self._scores(regret),
            link=LOGISTIC,
            norm_bound=positive("norm_bound", norm_bound),
            parameter=None,
            ties=ties,
        )

    @classmethod
    def draw(
        cls,
        *,
        rng: np.random.Generator,
        family: Family = "condorcet",
        arms: int = 10,
        gap: float = 0.2,
        regret: Regret = "condorcet",
        ties: str = "none",
    ) -> "PreferenceWorld":
        """Make a world of this family, with its arms in random order; ``gap`` is how far over ½ its strongest win is.

        ``"utilities"``: uniform utilities through the logistic link, a total order. ``"condorcet"``: a winner with
        this gap over all others, who meet each other at random. ``"condorcet-cycle"``: the same, but the others beat
        each other in a circle, so that no total order exists. ``"cyclic"``: three arms that beat all others and
        each other in a circle, so that there is no Condorcet winner. Three published shapes, from utilities through
        the linear link: ``"arithmetic"`` ones, equally far apart (with gap (K − 1)/2K it is ½ + (j − i)/2K);
        ``"geometric"`` ones, each half of the one before; ``"one-good"``, one arm over equals.

        >>> world = PreferenceWorld.draw(rng=np.random.default_rng(0), family="one-good", arms=3, gap=0.3)
        >>> world.matrix.round(3).tolist()
        [[0.5, 0.2, 0.5], [0.8, 0.5, 0.8], [0.5, 0.2, 0.5]]
        """
        if family not in get_args(Family):
            raise unknown_name("family", str(family), get_args(Family))
        if not isinstance(gap, (int, float)) or not 0 < gap < 0.5:
            raise BadInputError(f"the gap of this world lies between 0 and ½, not {gap!r}.")
        arms = integer("arms", arms, least=_TOP + 1 if family in ("cyclic", "condorcet-cycle") else 2)
        norm_bound = None
        if family == "utilities":
            utilities = rng.random(arms)
            utilities = (utilities - utilities.mean()) * float(logit(0.5 + gap)) / np.ptp(utilities)
            matrix = LOGISTIC.probability(utilities[:, None] - utilities)
            norm_bound = float(np.linalg.norm(utilities))
        else:
            matrix = 0.5 + gap * _shape(family, arms, rng)
        order = rng.permutation(arms)
        return cls(matrix=matrix[np.ix_(order, order)], regret=regret, norm_bound=norm_bound, ties=ties)

    def win_probability(self, rewards: Vector, first: int, second: int) -> float:  # noqa: ARG002
        """P(first beats second)."""
        return float(self.matrix[first, second])

    def _scores(self, regret: Regret) -> Vector:
        if regret == "borda":
            return borda_scores(self.matrix)
        if regret == "copeland":
            return copeland_scores(self.matrix)
        if regret != "condorcet":
            raise unknown_name("regret", str(regret), get_args(Regret))
        winner = condorcet_winner(self.matrix)
        if winner is None:
            raise BadInputError("no arm beats all others, so there is no Condorcet regret: ask for borda or copeland.")
        return np.asarray(self.matrix[:, winner] - 0.5)


def _shape(family: Family, arms: int, rng: np.random.Generator) -> Matrix:
    """(P − ½)/gap of a family, shape (K, K), the best arm first."""
    if family == "condorcet":
        return _winner_over(_antisymmetric(rng.uniform(-1.0, 1.0, (arms - 1, arms - 1))))
    if family == "condorcet-cycle":
        return _winner_over(_circle(arms - 1))
    if family == "cyclic":
        shape = np.zeros((arms, arms))
        shape[:_TOP, _TOP:] = 1.0
        shape[_TOP:, :_TOP] = -1.0
        shape[:_TOP, :_TOP] = _circle(_TOP)
        return shape
    utilities = {
        "arithmetic": -np.arange(arms) / (arms - 1),
        "geometric": _RATIO ** np.arange(arms) / (1.0 - _RATIO ** (arms - 1)),
        "one-good": np.eye(arms)[0],
    }[family]
    return np.asarray(utilities[:, None] - utilities)


def _antisymmetric(upper: Matrix) -> Matrix:
    """The matrix with this upper triangle, and its negative below."""
    above = np.triu(upper, 1)
    return np.asarray(above - above.T)


def _circle(arms: int) -> Matrix:
    """Each arm beats those in the half circle after it; the one right opposite, if any, ties."""
    ahead = (np.arange(arms) - np.arange(arms)[:, None]) % arms
    return np.asarray(np.sign(arms - 2.0 * ahead) * (ahead > 0))


def _winner_over(others: Matrix) -> Matrix:
    """The same with an arm before them that beats each by the full gap."""
    shape = np.zeros((len(others) + 1, len(others) + 1))
    shape[0, 1:], shape[1:, 0], shape[1:, 1:] = 1.0, -1.0, others
    return shape


def _checked_matrix(matrix: ArrayLike) -> Matrix:
    try:
        values = np.array(matrix, dtype=np.float64)
    except (ValueError, TypeError):
        raise BadInputError("a preference matrix is made of numbers, a row for each arm, all of one length.") from None
    if values.ndim != 2 or len(values) < 2 or values.shape[0] != values.shape[1]:
        raise BadInputError(f"a preference matrix has shape (K, K) for K ≥ 2 arms, not {values.shape}.")
    if not ((values >= 0) & (values <= 1)).all():
        raise BadInputError("a preference matrix holds probabilities, between 0 and 1.")
    if np.abs(values + values.T - 1.0).max() > 1e-9:
        raise BadInputError(
            "in a preference matrix P(i beats j) + P(j beats i) = 1, and so each arm beats itself by ½."
        )
    np.fill_diagonal(values, 0.5)  # a hair more would make an arm beat itself
    return values
