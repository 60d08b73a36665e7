"""A scikit-learn estimator of preferences, with calibrated probabilities and, if asked for, the paper's weights."""
# ruff: noqa: N803  # scikit-learn calls it X

import warnings
from dataclasses import dataclass
from typing import Any, Literal, Self, cast, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import assert_all_finite, check_consistent_length
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, column_or_1d, validate_data

from fairduel.checks import positive
from fairduel.core.blas import one_thread
from fairduel.duel import Matrix, Vector
from fairduel.errors import BadInputError, SuspectInputWarning, unknown_name
from fairduel.votes.ranking.design_matrix import Pairs, Rows, with_features
from fairduel.votes.ranking.robust_fit import Weights, vote_weights
from fairduel.votes.ranking.uncertainty import shrunken_fit
from fairduel.votes.reading.fields import FIRST_WORDS, SECOND_WORDS
from fairduel.votes.votes import Indices, Mask, Ties, counted, ensure_some_count

Inputs = Literal["differences", "pairs"]


class RobustPreferenceModel(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Logistic preference model, P(first wins) = σ(φᵀθ), with a ridge chosen from the votes.

    Probabilities are averaged over what the votes leave open about θ. The ridge is found without cross-validation, and
    adapts to the unit of the features (:mod:`fairduel.votes.ranking.uncertainty`).

    There is no intercept: being shown first is no advantage.

    Every vote counts fully, unless ``weights`` asks for the paper's, w = min(1, α/‖φ‖_Σ⁻¹) (eq. weight). They protect
    against a few false votes about something on which there are hardly any others: such votes count less, because they
    would move the estimate most. They do not undo lies that are spread over all votes
    (:mod:`fairduel.votes.ranking.robust_fit`).

    ``y`` holds two labels. If they name the two positions, as in :func:`fairduel.votes.read_votes` (first and second, a
    and b, model_a and model_b, left and right, 1 and 2), they say who won. Otherwise the label that sorts last means
    that the first item won: 1 out of 0 and 1, True out of False and True.

    Args:
        inputs: What the rows of ``X`` hold. ``"differences"``: φ = x_first − x_second, shape ``(n, d)``. ``"pairs"``:
            the first and second item, by name or number, shape ``(n, 2)``; with features per context, a third column
            holds the context, shape ``(n, 3)``. For pairs, every item has its own score in addition to its features.
        features: For pairs: item features, shape ``(K, d)`` or ``(contexts, K, d)``, with norms of at most about 1.
            Rows follow ``items``, or the item numbers 0 to K − 1.
        items: For pairs: the names of all items. Default: the items seen in ``fit``; without features, any other item
            is predicted as average, with the spread of the others.
        weights: ``"none"`` (all votes count alike), or ``"fixed-point"``, the paper's.
        lies: With the paper's weights, the number of false votes C to guard against: α = √d/C. Default: √n, the paper's
            choice for an unknown C; then votes wider than the root mean square count less. 0 trusts every vote.
        ridge: λ. Default: chosen from the votes, by maximum marginal likelihood if there are features.
        ties: A tie (``y = 0.5``) counts as ``"half"`` a win for each item, or is ignored (``"drop"``).

    Attributes:
        coef_: The most likely θ, shape ``(d,)``. For pairs: the item scores, then the coefficients of the features.
        mean_: The mean of θ given the votes, shape ``(d,)``, which predictions use. With few votes per feature, it is
            clearly further from 0 than ``coef_``.
        covariance_: Covariance of θ, shape ``(d, d)``, which allows for voters who differ if voters were given.
        ridge_: λ.
        items_: For pairs: the items, shape ``(K,)``.
        scores_: For pairs: the score of each item, including its mean features, shape ``(K,)``, with mean 0.
        weights_: w of every vote fitted so far, shape ``(n,)``.
        classes_: The two labels of ``y``, sorted.
        n_iter_: Number of Newton steps.
        n_features_in_: Number of columns of ``X``.
        trust_: α.

    >>> pairs = [["tea", "milk"], ["milk", "tea"], ["tea", "milk"]]
    >>> model = RobustPreferenceModel(inputs="pairs").fit(pairs, [1, 0, 0])
    >>> model.predict([["tea", "milk"]]), model.predict_proba([["tea", "milk"]]).round(2)
    (array([1]), array([[0.44, 0.56]]))
    """

    def __init__(
        self,
        *,
        inputs: Inputs = "differences",
        features: ArrayLike | None = None,
        items: ArrayLike | None = None,
        weights: Weights = "none",
        lies: float | None = None,
        ridge: float | None = None,
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
        """Fit the votes, forgetting any earlier ones.

        Args:
            X: Differences ``(n, d)`` or pairs ``(n, 2)`` or ``(n, 3)``, as ``inputs`` says.
            y: Results, shape ``(n,)``: 1 if the first item won, 0 if the second won, 0.5 for a tie; or two labels.
            sample_weight: How many times each vote counts, shape ``(n,)``. Default: once.
            voters: Who cast each vote, shape ``(n,)``. Voters who differ make the estimate less certain.

        Returns:
            The model itself.
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
        """Fit these votes together with all earlier ones.

        Args:
            X: See :meth:`fit`.
            y: See :meth:`fit`.
            classes: The two labels, if ``y`` may not contain both. Used in the first call only.
            sample_weight: See :meth:`fit`.
            voters: See :meth:`fit`; required in every call or in none.

        Returns:
            The model itself.
        """
        return self._learn_or_stay(getattr(self, "_told", None), X, y, classes, sample_weight, voters)

    def decision_function(self, X: ArrayLike) -> Vector:
        """Return the log-odds of ``classes_[1]``, shape ``(n,)``.

        The less is known about φ, the closer they are to 0: m/√(1 + πv/8) for a margin φᵀθ with mean m and variance v
        (MacKay 1992).
        """
        means, variances = self._margins(X)
        log_odds = means / np.sqrt(1.0 + np.pi / 8.0 * variances)
        return np.asarray(log_odds if _says_first(self.classes_)[1] else -log_odds)

    def _margins(self, X: ArrayLike) -> tuple[Vector, Vector]:
        """Return the mean and variance of φᵀθ, the log-odds that the first item wins, both (n,)."""
        check_is_fitted(self)
        if self.inputs == "differences":
            differences = np.asarray(validate_data(self, X, reset=False, dtype=np.float64))
            _warn_of_item_numbers(X, differences, stacklevel=4)
            return _mean_and_variance(differences, self.mean_, self.covariance_)
        first, second, context = self._codes(X, learn=False).T
        if self.features is None:
            # an unseen item (−1) is as uncertain as the spread of the scores
            means = np.append(self.mean_, self.mean_.mean())
            own = np.append(np.diag(self.covariance_), self._spread**2)
            shared = np.pad(self.covariance_, (0, 1))
            variances = own[first] + own[second] - 2.0 * shared[first, second]
            return means[first] - means[second], np.where(first == second, 0.0, np.maximum(variances, 0.0))
        rows, row, turned = with_features(first, second, self._table(), context)
        means, variances = _mean_and_variance(rows.values, self.mean_, self.covariance_)
        return np.where(turned, -1.0, 1.0) * means[row], variances[row]

    def predict_proba(self, X: ArrayLike) -> Matrix:
        """Return the probability of each of ``classes_``, shape ``(n, 2)``, averaged over the uncertainty of θ."""
        log_odds = self.decision_function(X)
        return np.column_stack([special.expit(-log_odds), special.expit(log_odds)])

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the more likely label of each row, shape ``(n,)``."""
        chosen = self.decision_function(X) > 0.0
        return np.asarray(self.classes_[chosen.astype(int)])

    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return the share of votes predicted correctly; a tie counts as half, or not at all with ``ties="drop"``."""
        chosen = self._margins(X)[0] > 0.0
        result, _ = _results(y, len(chosen), self.classes_)
        weight = np.ones(len(chosen)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        if weight.shape != result.shape:
            raise BadInputError(f"sample_weight must have shape ({len(result)},), not {weight.shape}.")
        weight = counted(weight, result, self.ties)
        ensure_some_count(weight)
        return float(np.average(1.0 - np.abs(result - chosen), weights=weight))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.string = self.inputs == "pairs"
        return tags

    def _learn_or_stay(self, *votes: Any) -> Self:
        """Learn, or leave the model unchanged if the votes are rejected."""
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
        ridge = None if self.ridge is None else positive("ridge", self.ridge)
        for kind, value, known in (("kind of inputs", self.inputs, Inputs), ("treatment of ties", self.ties, Ties)):
            if value not in get_args(known):
                raise unknown_name(kind, str(value), get_args(known))
        if self.weights == "none" and self.lies is not None:
            raise BadInputError("lies has no effect on votes that all count fully: use weights='fixed-point' with it.")
        design, row, turned, duels = self._place(before, X)
        earlier = 0 if before is None else len(before.row)
        result, found = _results(y, len(row) - earlier, classes if before is None else before.classes)
        counts = _check_sample_weight(sample_weight, result, dtype=np.float64, ensure_non_negative=True)
        counts = counted(counts, result, self.ties)
        people = None if voters is None else column_or_1d(voters).astype(str)
        check_consistent_length(result, people)
        if before is not None:
            result, counts, people = before.joined(result, counts, people)
        ensure_some_count(counts)
        weights, trust, _ = vote_weights(design, row, counts, self.weights, lies=self.lies, ridge=ridge)
        groups = {} if people is None else {"voters": np.unique(people, return_inverse=True)[1].astype(np.int32)}
        won = np.where(turned, 1.0 - result, result)
        with one_thread():
            fit = shrunken_fit(
                design, row, won, counts, weights, ridge=ridge, groups=groups, by_evidence=isinstance(design, Rows)
            )
            self.mean_ = fit.likelihood.mean()
        self.coef_, self.covariance_, self.ridge_, self.n_iter_ = (
            fit.theta,
            fit.uncertainty.covariance,
            fit.ridge,
            fit.steps,
        )
        self._spread = fit.spread
        self.weights_, self.trust_, self.classes_ = weights, trust, found
        self._told = _Told(design, row, turned, result, counts, people, duels, found)
        return self

    def _place(
        self, before: "_Told | None", X: ArrayLike
    ) -> tuple[Rows | Pairs, Indices, Mask, NDArray[np.int32] | None]:
        """Find the distinct differences among the earlier votes and those of X, and the row of each vote."""
        if self.inputs == "differences":
            differences = validate_data(self, X, reset=before is None, dtype=np.float64)
            _warn_of_item_numbers(X, differences, stacklevel=6)
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
        """Score of each item, shape ``(K,)``."""
        check_is_fitted(self)
        if self.inputs == "differences":
            raise AttributeError("scores_ exists only for inputs='pairs'; use coef_.")
        scores = self.coef_[: len(self.items_)]
        if self.features is not None:
            scores = scores + self._table().mean(axis=0) @ self.coef_[len(self.items_) :]
        return np.asarray(scores - scores.mean())

    def _table(self) -> NDArray[np.float64]:
        """Return the features as (contexts, K, d), with a single context if there are none."""
        table = np.asarray(self.features, dtype=np.float64)
        if table.ndim not in (2, 3) or not np.isfinite(table).all():
            raise BadInputError("features must be finite numbers of shape (K, d) or (contexts, K, d).")
        return table[None] if table.ndim == 2 else table

    def _codes(self, X: ArrayLike, before: "_Told | None" = None, *, learn: bool = True) -> NDArray[np.int32]:
        """Return first item, second item and context of each row as indices, shape (n, 3); −1 for an unknown item."""
        given = np.asarray(X)
        by_context = self.features is not None and np.ndim(self.features) == 3
        if given.ndim != 2 or given.shape[1] != 2 + by_context or len(given) == 0:
            raise BadInputError(f"pairs must have shape (n, {2 + by_context}), not {given.shape}.")
        try:
            names, codes = np.unique(given[:, :2], return_inverse=True)
        except TypeError as error:
            raise BadInputError("items must all be names or all be numbers, with none missing.") from error
        if learn:
            self.n_features_in_ = given.shape[1]
            self.items_ = self._all_items(names, before)
        place = {name: code for code, name in enumerate(self.items_.tolist())}
        code_of = np.array([place.get(name, -1) for name in names.tolist()], dtype=np.int32)
        pairs = code_of[codes.reshape(-1, 2)]
        if (pairs < 0).any() and (learn or self.features is not None):
            raise BadInputError(f"item {names.tolist()[np.argmin(code_of)]!r} is unknown to this model.")
        context = given[:, 2].astype(np.int32) if by_context else np.zeros(len(given), dtype=np.int32)
        if by_context and not (context.min() >= 0 and context.max() < len(self._table())):
            raise BadInputError(f"contexts must be between 0 and {len(self._table()) - 1}.")
        return np.column_stack([pairs, context])

    def _all_items(self, names: NDArray[Any], before: "_Told | None") -> NDArray[Any]:
        if self.items is not None:
            items = np.asarray(self.items)
            if items.ndim != 1 or len(np.unique(items)) < len(items):
                raise BadInputError("items must be a list of unique names.")
            if self.features is not None and self._table().shape[1] != len(items):
                raise BadInputError(f"features cover {self._table().shape[1]} items but {len(items)} are named.")
            return items
        if self.features is not None:
            return np.arange(self._table().shape[1])
        return names if before is None else np.append(self.items_, np.setdiff1d(names, self.items_))


@dataclass(frozen=True, eq=False)
class _Told:
    """All votes so far, for :meth:`RobustPreferenceModel.partial_fit`."""

    design: Rows | Pairs
    row: Indices
    turned: Mask
    result: Vector
    counts: Vector
    voters: NDArray[np.str_] | None
    duels: NDArray[np.int32] | None
    classes: NDArray[Any]

    def joined(
        self, result: Vector, counts: Vector, voters: NDArray[np.str_] | None
    ) -> tuple[Vector, Vector, NDArray[np.str_] | None]:
        """Append further votes; return all results, counts and voters."""
        if (voters is None) != (self.voters is None):
            raise BadInputError("voters must be given with all votes or with none of them.")
        people = None if voters is None or self.voters is None else np.concatenate([self.voters, voters])
        return np.concatenate([self.result, result]), np.concatenate([self.counts, counts]), people


def _warn_of_item_numbers(given: ArrayLike, differences: Matrix, *, stacklevel: int) -> None:
    """Warn if differences, as ``given``, look like the numbers of two items, which never meet themselves."""
    if (
        differences.shape[1] == 2
        and np.asarray(given).dtype.kind in "iu"
        and differences.min() >= 0.0
        and (differences[:, 0] != differences[:, 1]).all()
    ):
        warnings.warn(
            "X has two columns of whole numbers, which inputs='differences' takes as features: if they are the numbers "
            "of two items, use RobustPreferenceModel(inputs='pairs'); if they are features, pass them as floats.",
            SuspectInputWarning,
            stacklevel=stacklevel,
        )


def _mean_and_variance(differences: Matrix, theta: Vector, covariance: Matrix) -> tuple[Vector, Vector]:
    """Return φᵀθ and φᵀVφ of each row φ, both (n,)."""
    variances = np.einsum("ij,ij->i", differences @ covariance, differences)
    return differences @ theta, np.maximum(variances, 0.0)


def _results(y: ArrayLike, count: int, classes: ArrayLike | None) -> tuple[Vector, NDArray[Any]]:
    """Return the results as 1, 0 and ½, shape (n,), and the two classes, sorted."""
    if y is None:
        raise BadInputError("this classifier requires y to be passed, but the target y is None.")
    given = column_or_1d(y, warn=True)
    if len(given) != count:
        raise BadInputError(f"inconsistent numbers of samples: X has {count} rows but y has {len(given)}.")
    assert_all_finite(given, input_name="y")
    numbers = given.dtype.kind in "iufb"
    known = np.array([0, 1]) if classes is None and numbers and np.isin(given, (0, 0.5, 1)).all() else classes
    if known is None:
        check_classification_targets(given)
        known = given
    known = np.unique(known)
    if len(known) == 1 and classes is None:
        raise BadInputError(
            f"every vote has the same result, {known.tolist()[0]!r}, so y does not say which item that means: write 1 "
            "if the first item won and 0 if the second did, or name both classes in partial_fit(classes=...)."
        )
    if len(known) < 2:
        raise BadInputError("classes must name two results: a win of the first item and a win of the second.")
    if len(known) > 2:
        raise BadInputError(  # starts as scikit-learn requires
            "Only binary classification is supported. The type of the target is multiclass: a vote is won by the first "
            f"or the second item, but y has {len(known)} different results; write ties as 0.5 with 0 and 1, or leave "
            "them out."
        )
    second_lost = given == known[_says_first(known).argmax()]
    tied = (given == 0.5) & np.isin(known, (0, 1)).all() if numbers else np.zeros(count, dtype=bool)
    if not (tied | np.isin(given, known)).all():
        raise BadInputError(f"y must hold {known[0]!r}, {known[1]!r} or 0.5 for a tie.")
    return np.where(tied, 0.5, second_lost.astype(np.float64)), known


def _says_first(classes: NDArray[Any]) -> Mask:
    """Return which of the two classes means that the first item won, shape (2,): a word for it, else the last."""
    one, other = (str(label).strip().lower().removesuffix(".0") for label in classes.tolist())
    return np.array([True, False] if one in FIRST_WORDS and other in SECOND_WORDS else [False, True])
