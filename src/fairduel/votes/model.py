"""A scikit-learn estimator of preferences that does not trust every vote alike."""
# ruff: noqa: N803  # scikit-learn calls it X

import math
from dataclasses import dataclass
from typing import Any, Literal, Self, cast, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import assert_all_finite
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, column_or_1d, validate_data

from fairduel.checks import positive
from fairduel.duel import Matrix, Vector
from fairduel.errors import BadInputError, unknown_name
from fairduel.votes.bradley_terry import TINY_RIDGE
from fairduel.votes.design import Pairs, Rows, with_features
from fairduel.votes.reading import FIRST_WORDS, SECOND_WORDS
from fairduel.votes.robust_fit import Weights, trust_for, vote_weights, weighted_fit
from fairduel.votes.votes import Indices, Mask, Ties, counted

Inputs = Literal["differences", "pairs"]


class RobustPreferenceModel(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Logistic preferences, P(first wins) = σ(φᵀθ), fitted with the paper's uncertainty weights.

    A vote counts w = min(1, α/‖φ‖_Σ⁻¹) (eq. weight), less where the model knows least, because there a lie would move
    it most. :mod:`fairduel.votes.robust_fit` says how w is found, and why the fixed point is the only one.

    There is no intercept: whoever stands first has no advantage.

    y holds two labels. Where they are words for the two places, as :func:`fairduel.votes.read_votes` knows them (first
    and second, a and b, model_a and model_b, left and right, 1 and 2), they say who won. Of any other two, the one that
    sorts last says that the first won: 1 of 0 and 1, True of False and True.

    Parameters
    ----------
    inputs
        What the rows of X are. ``"differences"``: φ = x_first − x_second, shape (n, d). ``"pairs"``: the first and the
        second item, by name or number, shape (n, 2); or with a third column, the context, where ``features`` differ
        from context to context. Each item then has a score of its own, beside its features.
    features
        For pairs: features of the items, shape (K, d) or (contexts, K, d), for the items 0 to K − 1, or ``items``.
        With a norm of at most about 1.
    items
        For pairs: the names of all items. By default those that were fitted; any other one counts as average.
    weights
        ``"fixed-point"``, ``"sequential"`` (in the order of the votes) or ``"none"`` (plain maximum likelihood).
    lies
        How many false votes C to guard against: α = √d/C. By default √n, the paper's choice where nobody knows; then
        votes that are wider than the root mean square count less. 0 trusts every vote.
    ridge
        λ, of the estimate and of Σ: 0.01 is a normal prior with a standard deviation of 10 log-odds.
    ties
        A tie (y = 0.5) is ``"half"`` a win for each, or is left out: ``"drop"``.

    Attributes
    ----------
    coef_
        θ, shape (d,). For pairs: the scores of the items, then the coefficients of the features.
    covariance_
        Its sandwich covariance, shape (d, d), clustered by voter where voters were given.
    items_, scores_
        For pairs: the items, and the score of each (with the mean of its features), mean 0, shape (K,).
    weights_
        w of every vote fitted so far, shape (n,).
    classes_, n_iter_, trust_
        The two labels of y, sorted; Newton steps; α.

    Examples
    --------
    >>> pairs = [["tea", "milk"], ["milk", "tea"], ["tea", "milk"]]
    >>> model = RobustPreferenceModel(inputs="pairs").fit(pairs, [1, 0, 0])
    >>> model.predict([["tea", "milk"]]), model.predict_proba([["tea", "milk"]]).round(2)
    (array([1]), array([[0.33, 0.67]]))
    """

    def __init__(
        self,
        *,
        inputs: Inputs = "differences",
        features: ArrayLike | None = None,
        items: ArrayLike | None = None,
        weights: Weights = "fixed-point",
        lies: float | None = None,
        ridge: float = TINY_RIDGE,
        ties: Ties = "half",
    ) -> None:
        self.inputs = inputs
        self.features = features
        self.items = items
        self.weights = weights
        self.lies = lies
        self.ridge = ridge
        self.ties = ties

    def fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None, voters: ArrayLike | None = None
    ) -> Self:
        """Fit votes with inputs X and results y: 1 the first won, 0 the second, 0.5 a tie; or two words (see above).

        ``sample_weight`` (n,) says how often each counts, ``voters`` (n,) who cast it.
        """
        return self._learn_or_stay(None, X, y, None, sample_weight, voters)

    def partial_fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        voters: ArrayLike | None = None,
    ) -> Self:
        """Fit all votes so far and these; sequential weights of earlier votes stay as they are."""
        return self._learn_or_stay(getattr(self, "_told", None), X, y, classes, sample_weight, voters)

    def decision_function(self, X: ArrayLike) -> Vector:
        """Log-odds of the second of the ``classes_``, shape (n,): φᵀθ where it says that the first wins, else −φᵀθ."""
        margins = self._margins(X)
        return margins if _says_first(self.classes_)[1] else -margins

    def _margins(self, X: ArrayLike) -> Vector:
        """φᵀθ, the log-odds that the first wins, shape (n,)."""
        check_is_fitted(self)
        if self.inputs == "differences":
            return np.asarray(validate_data(self, X, reset=False, dtype=np.float64) @ self.coef_)
        first, second, context = self._codes(X, learn=False).T
        if self.features is None:
            scores = np.append(self.scores_, 0.0)  # an item that was never seen is average
            return np.asarray(scores[first] - scores[second])
        rows, row, turned = with_features(first, second, self._table(), context)
        return rows.margins(self.coef_)[row] * np.where(turned, -1.0, 1.0)

    def predict_proba(self, X: ArrayLike) -> Matrix:
        """Chance of each of the ``classes_``, shape (n, 2): with 0 and 1, that the second and that the first wins."""
        log_odds = self.decision_function(X)
        return np.column_stack([special.expit(-log_odds), special.expit(log_odds)])

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """The likelier result, shape (n,)."""
        chosen = self.decision_function(X) > 0.0
        return np.asarray(self.classes_[chosen.astype(int)])

    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Share of votes that are predicted; a tie is half predicted, or left out, as ``ties`` says."""
        chosen = self._margins(X) > 0.0
        result, _ = _results(y, len(chosen), self.classes_)
        weight = np.ones(len(chosen)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        if weight.shape != result.shape:
            raise BadInputError(f"there are {len(result)} votes and sample_weight has shape {weight.shape}.")
        weight = counted(weight, result, self.ties)
        if not weight.any():
            raise BadInputError("no vote counts: each has weight 0 or is a tie that is dropped.")
        return float(np.average(1.0 - np.abs(result - chosen), weights=weight))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.string = self.inputs == "pairs"
        return tags

    def _learn_or_stay(self, *votes: Any) -> Self:
        """Learn; votes that are refused change nothing."""
        before = dict(vars(self))
        try:
            return self._learn(*votes)
        except BaseException:
            self.__dict__ = before
            raise

    def _learn(
        self,
        before: "_Told | None",
        X: ArrayLike,
        y: ArrayLike,
        classes: ArrayLike | None,
        sample_weight: ArrayLike | None,
        voters: ArrayLike | None,
    ) -> Self:
        ridge = positive("ridge", self.ridge)
        for kind, value, known in (("kind of inputs", self.inputs, Inputs), ("treatment of ties", self.ties, Ties)):
            if value not in get_args(known):
                raise unknown_name(kind, str(value), get_args(known))
        design, row, turned, duels = self._place(before, X)
        earlier = 0 if before is None else len(before.row)
        result, found = _results(y, len(row) - earlier, classes if before is None else before.classes)
        counts = _check_sample_weight(sample_weight, result, dtype=np.float64, ensure_non_negative=True)
        counts = counted(counts, result, self.ties)
        people = None if voters is None else _names_of(voters, len(result))
        if before is not None:
            result, counts, people = before.joined(result, counts, people)
        if not counts.any():
            raise BadInputError("no vote counts: each has weight 0 or is a tie that is dropped.")
        trust = trust_for(self.lies, float(counts.sum()), design.dimension) if self.weights != "none" else math.inf
        sigma, kept = ridge * np.eye(design.dimension), np.empty(0)
        if before is not None and self.weights == "sequential":
            kept, size = before.weights, len(before.sigma)
            sigma[:size, :size] = before.sigma
        new = slice(len(kept), None)
        weights, _, _ = vote_weights(design, row[new], counts[new], self.weights, trust, sigma)
        weights = np.concatenate([kept, weights])
        group = None if people is None else np.unique(people, return_inverse=True)[1].astype(np.int32)
        won = np.where(turned, 1.0 - result, result)
        fitted = weighted_fit(design, row, won, counts * weights, ridge, group)
        self.coef_, self.covariance_, self.n_iter_, _ = fitted
        self.weights_, self.trust_, self.classes_ = weights, trust, found
        self._told = _Told(
            design, row, turned, result, counts, people, weights=weights, sigma=sigma, duels=duels, classes=found
        )
        return self

    def _place(
        self, before: "_Told | None", X: ArrayLike
    ) -> tuple[Rows | Pairs, Indices, Mask, NDArray[np.int32] | None]:
        """Where the votes so far and those of X stand among the distinct differences."""
        if self.inputs == "differences":
            differences = validate_data(self, X, reset=before is None, dtype=np.float64)
            if before is None:
                return *Rows.collapse(differences), None
            known = cast("Rows", before.design).values
            design, row, turned = Rows.collapse(np.concatenate([known, differences]))
            old_row, old_turned = row[: len(known)][before.row], turned[: len(known)][before.row] ^ before.turned
            row, turned = np.append(old_row, row[len(known) :]), np.append(old_turned, turned[len(known) :])
            return design, row, turned, None
        table = None if self.features is None else self._table()
        duels = self._codes(X, before)
        if before is not None:
            duels = np.concatenate([cast("NDArray[np.int32]", before.duels), duels])
        first, second, context = duels.T
        if table is not None:
            return *with_features(first, second, table, context), duels
        return *Pairs.collapse(first, second, len(self.items_)), duels

    @property
    def scores_(self) -> Vector:
        """Score of each item, shape (K,)."""
        check_is_fitted(self)
        if self.inputs == "differences":
            raise AttributeError("differences have coefficients, not items with scores.")
        scores = self.coef_[: len(self.items_)]
        if self.features is not None:
            scores = scores + self._table().mean(axis=0) @ self.coef_[len(self.items_) :]
        return np.asarray(scores - scores.mean())

    def _table(self) -> NDArray[np.float64]:
        """The features, shape (contexts, K, d), with one context where there are none."""
        table = np.asarray(self.features, dtype=np.float64)
        if table.ndim not in (2, 3) or not np.isfinite(table).all():
            raise BadInputError("features must be finite numbers of shape (K, d) or (contexts, K, d).")
        return table[None] if table.ndim == 2 else table

    def _codes(self, X: ArrayLike, before: "_Told | None" = None, *, learn: bool = True) -> NDArray[np.int32]:
        """First item, second item and context of each row as codes, shape (n, 3); −1 for an item that is unknown."""
        given = np.asarray(X)
        by_context = self.features is not None and np.ndim(self.features) == 3
        if given.ndim != 2 or given.shape[1] != 2 + by_context or len(given) == 0:
            raise BadInputError(f"pairs must have shape (n, {2 + by_context}), not {given.shape}.")
        try:
            names, codes = np.unique(given[:, :2], return_inverse=True)
        except TypeError as error:
            raise BadInputError("items must all be names or all be numbers, none of them missing.") from error
        if learn:
            self.n_features_in_ = given.shape[1]
            self.items_ = self._all_items(names, before)
        place = {name: code for code, name in enumerate(self.items_.tolist())}
        code_of = np.array([place.get(name, -1) for name in names.tolist()], dtype=np.int32)
        pairs = code_of[codes.reshape(-1, 2)]
        if (pairs < 0).any() and (learn or self.features is not None):
            raise BadInputError(
                f"the item {names.tolist()[np.argmin(code_of)]!r} is not among those that the model was made for."
            )
        context = given[:, 2].astype(np.int32) if by_context else np.zeros(len(given), dtype=np.int32)
        if by_context and not (context.min() >= 0 and context.max() < len(self._table())):
            raise BadInputError(f"contexts must be from 0 to {len(self._table()) - 1}.")
        return np.column_stack([pairs, context])

    def _all_items(self, names: NDArray[Any], before: "_Told | None") -> NDArray[Any]:
        if self.items is not None:
            items = np.asarray(self.items)
            if items.ndim != 1 or len(np.unique(items)) < len(items):
                raise BadInputError("items must be a list of names, none of them twice.")
            if self.features is not None and self._table().shape[1] != len(items):
                raise BadInputError(f"features are for {self._table().shape[1]} items, and {len(items)} are named.")
            return items
        if self.features is not None:
            return np.arange(self._table().shape[1])
        return names if before is None else np.append(self.items_, np.setdiff1d(names, self.items_))


@dataclass(frozen=True, eq=False)
class _Told:
    """All votes so far, as :meth:`RobustPreferenceModel.partial_fit` needs them."""

    design: Rows | Pairs
    row: Indices
    turned: Mask
    result: Vector
    counts: Vector
    voters: NDArray[np.str_] | None
    weights: Vector
    sigma: Matrix
    duels: NDArray[np.int32] | None
    classes: NDArray[Any]

    def joined(
        self, result: Vector, counts: Vector, voters: NDArray[np.str_] | None
    ) -> tuple[Vector, Vector, NDArray[np.str_] | None]:
        """These votes and further ones."""
        if (voters is None) != (self.voters is None):
            raise BadInputError("voters must be given with all votes or with none.")
        people = None if voters is None or self.voters is None else np.concatenate([self.voters, voters])
        return np.concatenate([self.result, result]), np.concatenate([self.counts, counts]), people


def _names_of(voters: ArrayLike, count: int) -> NDArray[np.str_]:
    names: NDArray[np.str_] = column_or_1d(voters).astype(str)
    if len(names) != count:
        raise BadInputError(f"there are {count} votes and {len(names)} voters.")
    return names


def _results(y: ArrayLike, count: int, classes: ArrayLike | None) -> tuple[Vector, NDArray[Any]]:
    """Results as 1, 0 and ½, shape (n,), and the two classes, sorted."""
    if y is None:
        raise BadInputError("this classifier requires y to be passed, but the target y is None.")
    given = column_or_1d(y, warn=True)
    if len(given) != count:
        raise BadInputError(f"inconsistent numbers of samples: X has {count} rows and y {len(given)}.")
    assert_all_finite(given, input_name="y")
    numbers = given.dtype.kind in "iufb"
    known = np.array([0, 1]) if classes is None and numbers and np.isin(given, (0, 0.5, 1)).all() else classes
    if known is None:
        check_classification_targets(given)
        known = given
    known = np.unique(known)
    if len(known) != 2:
        kind = "binary" if len(known) < 2 else "multiclass"
        raise BadInputError(
            f"Only binary classification is supported. The type of the target is {kind}: y must hold two classes "
            f"(or 0, 0.5 and 1), not {len(known)} class{'es' if len(known) > 2 else ''}."
        )
    second_lost = given == known[_says_first(known).argmax()]
    tied = (given == 0.5) & np.isin(known, (0, 1)).all() if numbers else np.zeros(count, dtype=bool)
    if not (tied | np.isin(given, known)).all():
        raise BadInputError(f"y must hold {known[0]!r}, {known[1]!r} or 0.5 for a tie.")
    return np.where(tied, 0.5, second_lost.astype(np.float64)), known


def _says_first(classes: NDArray[Any]) -> Mask:
    """Which of the two classes says that the first item won, shape (2,): a word for it, else the last."""
    one, other = (str(label).strip().lower().removesuffix(".0") for label in classes.tolist())
    return np.array([True, False] if one in FIRST_WORDS and other in SECOND_WORDS else [False, True])
