"""Worlds of K arms defined by a preference matrix, with or without a total order."""

from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logit

from fairduel.checks import integer, literal, positive
from fairduel.core.links import LOGISTIC
from fairduel.duel import Matrix, Vector
from fairduel.errors import BadInputError, unknown_name
from fairduel.worlds.world import FixedWorld

Regret = Literal["condorcet", "borda", "copeland"]
Family = Literal["utilities", "condorcet", "condorcet-cycle", "cyclic", "arithmetic", "geometric", "one-good"]
_RATIO = 0.5  # of consecutive utilities in the geometric family
_TOP = 3  # arms in the top cycle


def condorcet_winner(matrix: Matrix) -> int | None:
    """Return the arm that beats every other with probability over ½ by P (K, K), or ``None``.

    >>> condorcet_winner(np.array([[0.5, 0.4], [0.6, 0.5]]))
    1
    """
    beaten = (matrix > 0.5).sum(axis=1)
    best = int(np.argmax(beaten))
    return best if beaten[best] == len(matrix) - 1 else None


def borda_scores(matrix: Matrix) -> Vector:
    """Return the probability that each arm beats a random other one, shape (K,), by P (K, K)."""
    return np.asarray((matrix.sum(axis=1) - 0.5) / (len(matrix) - 1))


def copeland_scores(matrix: Matrix) -> Vector:
    """Return the share of other arms that each arm beats, shape (K,), by P (K, K); a tie counts half."""
    beaten = (matrix > 0.5).sum(axis=1) + 0.5 * ((matrix == 0.5).sum(axis=1) - 1)
    return np.asarray(beaten / (len(matrix) - 1))


class PreferenceWorld(FixedWorld):
    """K arms with P(i beats j) given for every pair.

    The actions are the K unit vectors, so that agents with features can play too; they are told the logistic link,
    although no θ* need exist. The rewards are not utilities: they are chosen so that the regret of a run,
    2 max r − r_a − r_b, is the ``regret`` requested.

    Args:
        matrix: P, shape (K, K), with P_ij + P_ji = 1.
        regret: ``"condorcet"``: r_i = P(i beats w) − ½ for the Condorcet winner w, so a round costs the sum of the two
            gaps to w, twice the average used in much of the literature; the weak regret is the smaller gap.
            ``"borda"`` or ``"copeland"``: r_i is the arm's score.
        norm_bound: B, which agents are told; by default the norm of the centred logits of Σ_j P_ij / K. If P comes from
            logistic utilities, give their norm.

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
            norm_bound = max(float(np.linalg.norm(logits - logits.mean())), 0.1)  # which is 0 if all P are ½
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
        """Draw a world of this family, with its arms in random order.

        Args:
            rng: Random stream of the world.
            family: ``"utilities"``: uniform utilities through the logistic link, a total order. ``"condorcet"``: a
                winner with this gap over all others, whose mutual preferences are random. ``"condorcet-cycle"``: the
                same, but the others form a cycle, so that no total order exists. ``"cyclic"``: three arms that beat all
                others and form a cycle, so that there is no Condorcet winner. Three published shapes, from utilities
                through the linear link: ``"arithmetic"``, equally spaced (½ + (j − i)/2K with gap (K − 1)/2K);
                ``"geometric"``, each half of the previous one; ``"one-good"``, one arm above equal others.
            arms: K, the number of arms.
            gap: How far the strongest win probability is above ½.
            regret: As in the constructor.
            ties: Tie model, as in the constructor.

        >>> world = PreferenceWorld.draw(rng=np.random.default_rng(0), family="one-good", arms=3, gap=0.3)
        >>> world.matrix.round(3).tolist()
        [[0.5, 0.2, 0.5], [0.8, 0.5, 0.8], [0.5, 0.2, 0.5]]
        """
        literal("family", family, Family)
        if not isinstance(gap, (int, float)) or not 0 < gap < 0.5:
            raise BadInputError(f"gap must be between 0 and ½, not {gap!r}.")
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
        """Return P(first beats second)."""
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
            raise BadInputError(
                "no arm beats all others, so Condorcet regret is undefined; use regret='borda' or 'copeland'."
            )
        return np.asarray(self.matrix[:, winner] - 0.5)


def _shape(family: Family, arms: int, rng: np.random.Generator) -> Matrix:
    """Return (P − ½)/gap of a family, shape (K, K), with the best arm first."""
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
    """Return the antisymmetric matrix with this upper triangle."""
    above = np.triu(upper, 1)
    return np.asarray(above - above.T)


def _circle(arms: int) -> Matrix:
    """Return a cycle: each arm beats the half circle after it, and ties with the opposite arm, if any."""
    ahead = (np.arange(arms) - np.arange(arms)[:, None]) % arms
    return np.asarray(np.sign(arms - 2.0 * ahead) * (ahead > 0))


def _winner_over(others: Matrix) -> Matrix:
    """Prepend an arm that beats each of the others by the full gap."""
    shape = np.zeros((len(others) + 1, len(others) + 1))
    shape[0, 1:], shape[1:, 0], shape[1:, 1:] = 1.0, -1.0, others
    return shape


def _checked_matrix(matrix: ArrayLike) -> Matrix:
    try:
        values = np.array(matrix, dtype=np.float64)
    except (ValueError, TypeError):
        raise BadInputError("a preference matrix needs one row of numbers per arm, all of the same length.") from None
    if values.ndim != 2 or len(values) < 2 or values.shape[0] != values.shape[1]:
        raise BadInputError(f"a preference matrix must have shape (K, K) with K ≥ 2, not {values.shape}.")
    if not ((values >= 0) & (values <= 1)).all():
        raise BadInputError("a preference matrix must hold probabilities between 0 and 1.")
    if np.abs(values + values.T - 1.0).max() > 1e-9:
        raise BadInputError("a preference matrix must satisfy P(i beats j) + P(j beats i) = 1, and ½ on the diagonal.")
    np.fill_diagonal(values, 0.5)  # rounding must not make an arm beat itself
    return values
