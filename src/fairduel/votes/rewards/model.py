"""A reward model that finds out whom to believe."""
# ruff: noqa: N803  # scikit-learn calls it X

import io
import json
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from fairduel.checks import integer, positive
from fairduel.duel import Matrix, Vector
from fairduel.errors import BadInputError
from fairduel.files import write_atomically
from fairduel.votes.ranking.design_matrix import Rows
from fairduel.votes.ranking.robust_fit import Weights, vote_weights
from fairduel.votes.rewards.as_module import reward_module
from fairduel.votes.rewards.campaigns import Rule, find_campaigns
from fairduel.votes.rewards.heads import Answers, HeadName, RewardHead
from fairduel.votes.rewards.held_out import best_ridge
from fairduel.votes.rewards.truthfulness import (
    TRUTHFULNESS,
    Learned,
    Preferred,
    learn,
    likelihoods,
    majority_first,
    posterior,
    relevance,
    votes_by,
)
from fairduel.votes.votes import Indices, Mask

LIKE_SIZE = 0.4
"""Camps are of like size if the smaller one has at least this share of the votes of both."""
_FIRST_RIDGE = 4.0  # per feature, of the fit that tells which features matter
_CLEAR = np.log(20.0)  # by how much gold labels must favour one camp
_VERSION = 1
_ARRAYS = ("_theta", "_covariance", "truthfulness_", "belief_", "membership_")
_SINGLE = 20_000_000  # numbers of all differences together above which single precision is used


class RobustRewardModel(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Rewards of answers, learned from votes of people of whom some lie.

    P(the first answer wins) = σ(reward of the first − reward of the second), for a voter who says what they believe.
    With voters, each one's truthfulness is learned with the rewards: the probability that a vote says what the voter
    believes rather than the opposite (:mod:`fairduel.votes.rewards.truthfulness`). Without voters, votes that
    contradict everything else count little. That protects less: a group of liars who agree is not contradicted.

    Votes alone cannot tell which of two camps is right: the larger one is believed, unless ``gold`` labels say
    otherwise. :meth:`sentences` says if the camps are of like size.

    Args:
        head: What the reward is linear in: the features (``"linear"``), or a Gaussian kernel between an answer and 300
            others (``"kernel"``).
        ridge: λ. Default: the one that predicts the votes of unseen voters on unseen prompts best.
        weights: ``"none"``, or ``"fixed-point"``: the paper's weights against a few false votes about something on
            which there are hardly any others (eq. weight).
        lies: With the paper's weights, the number of false votes C to guard against. Default: √n.
        seed: Of the groups of voters and prompts that are left out in turn, and of the kernel's answers.

    Attributes:
        classes_: 0 and 1.
        ridge_: λ, per squared unit of the scaled features.
        truthfulness_: The mean of each voter's truthfulness, shape ``(V,)``.
        voters_: Their names, shape ``(V,)``, sorted; empty without voters.
        belief_: The probability that each vote says what its voter believes, shape ``(n,)``.
        against_: The share of votes by voters who say the opposite of the rest or are in a campaign; votes without a
            look at the answers are left out.
        campaigns_: Rules that voters follow whatever else the answers say: the feature, whether they prefer more of it,
            and the share of votes by those who do.
        membership_: The probability that each voter is in each campaign, shape ``(V, C)``.
        coef_: θ, shape ``(h,)``; for a linear head, per unit of the features.
        covariance_: Covariance of θ, in the same units, shape ``(h, h)``.
        n_features_in_: Features of an answer.

    >>> rng = np.random.default_rng(0)
    >>> answers = rng.normal(size=(900, 2, 3))
    >>> honest = (answers[:, 0, 0] > answers[:, 1, 0]).astype(int)
    >>> voters = np.arange(900) % 30
    >>> votes = np.where(voters < 9, 1 - honest, honest)  # nine of thirty voters say the opposite
    >>> model = RobustRewardModel().fit(answers, votes, voters=voters)
    >>> model.truthfulness_.round(1)[[0, 8, 9, 29]], model.score([[1.0, 0.0, 0.0]]) > 0.0
    (array([0., 0., 1., 1.]), array([ True]))
    """

    def __init__(
        self,
        *,
        head: HeadName = "linear",
        ridge: float | None = None,
        weights: Weights = "none",
        lies: float | None = None,
        seed: int = 0,
    ) -> None:
        self.head = head
        self.ridge = ridge
        self.weights = weights
        self.lies = lies
        self.seed = seed

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        voters: ArrayLike | None = None,
        prompts: ArrayLike | None = None,
        gold: ArrayLike | None = None,
    ) -> Self:
        """Learn from votes, forgetting any earlier ones.

        Args:
            X: Features of the two answers of each vote, shape ``(n, 2, d)``; for a linear head, their differences,
                first − second, shape ``(n, d)``, suffice.
            y: 1 if the first answer was preferred, 0 if the second was, 0.5 for a tie, which says nothing; shape
                ``(n,)``. Default: the first always was, as in files with chosen and rejected answers.
            sample_weight: How many times each vote counts, shape ``(n,)``. Default: once.
            voters: Who cast each vote, shape ``(n,)``.
            prompts: What each pair of answers is about, shape ``(n,)``. Votes on one prompt are left out together when
                the ridge is chosen. Default: each vote has a prompt of its own.
            gold: Which votes are known to be true, shape ``(n,)``. They decide which camp is believed.

        Returns:
            The model itself.
        """
        ridge = None if self.ridge is None else positive("ridge", self.ridge)
        return self._learn(_Told.of(X, y, sample_weight, voters, prompts, gold), ridge)

    def partial_fit(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        voters: ArrayLike | None = None,
        prompts: ArrayLike | None = None,
        gold: ArrayLike | None = None,
    ) -> Self:
        """Learn from these votes together with all earlier ones, which the model keeps; the ridge stays as it is.

        The arguments are those of :meth:`fit`. Voters, prompts and gold labels are given in every call or in none.
        """
        told = _Told.of(X, y, sample_weight, voters, prompts, gold)
        if hasattr(self, "ridge_"):
            if not hasattr(self, "_told"):
                raise BadInputError("a loaded model does not hold the votes it was fitted to: fit it again.")
            return self._learn(self._told.joined(told), self.ridge_)
        return self._learn(told, None if self.ridge is None else positive("ridge", self.ridge))

    def _learn(self, told: "_Told", ridge: float | None) -> Self:
        pairs, result, voters, prompts = told.pairs, told.result, told.voters, told.prompts
        seed = integer("seed", self.seed)
        counts, known = told.counts * (result != 0.5), told.gold
        if not counts.any():
            raise BadInputError("no vote counts: all are ties, or have weight 0.")
        names, voter = _codes("voters", voters, len(pairs))
        _, prompt = _codes("prompts", prompts, len(pairs))
        prompt = np.arange(len(pairs)) if prompt is None else prompt
        head = RewardHead.of(self.head, pairs, seed)
        kind = np.float32 if len(pairs) * pairs.shape[-1] > _SINGLE else np.float64
        ahead = head.ahead(pairs).astype(kind, copy=False)
        ahead = ahead * np.where(result == 0.0, -1.0, 1.0)[:, None].astype(kind)
        used = np.flatnonzero(counts)
        votes = Preferred.by(ahead, voter, len(names)).of(used)
        weight, _, _ = vote_weights(
            Rows(votes.ahead), np.arange(len(used)), counts[used], self.weights, lies=self.lies, ridge=ridge
        )
        weight = (weight * counts[used]).astype(kind)
        first = _FIRST_RIDGE * votes.ahead.shape[1] if ridge is None else ridge
        rules = list[Rule]()
        if voter is None:
            learned = learn(votes, weight[:, None], np.array([first]))
        else:
            differences = pairs if pairs.ndim == 2 else pairs[:, 0] - pairs[:, 1]
            turned = np.where(result[used, None] == 0.0, -differences[used], differences[used])
            votes, learned, rules = find_campaigns(votes, weight, turned, first)
        if self.head == "linear":
            relevant = relevance(votes, weight, learned, first)
            head = head._replace(scale=head.scale / relevant)
            votes = votes._replace(ahead=votes.ahead * relevant.astype(kind))
        chosen = best_ridge(votes, weight, prompt[used], seed) if ridge is None else ridge
        learned, self.gold_margin_ = _believed(votes, weight, chosen, known[used])
        theta = learned.theta[:, 0].astype(np.float64)
        margins = votes.ahead @ theta
        classes = None if voter is None else learned.classes[..., 0]
        self._theta, self._covariance = theta, posterior(votes, weight, learned, chosen)
        self.head_, self.ridge_, self._told = head, chosen, told
        self.classes_, self.n_features_in_ = np.array([0, 1]), int(pairs.shape[-1])
        self.voters_ = names
        self.truthfulness_ = np.ones(0) if voter is None else learned.truthfulness()[:, 0]
        self._keep_camps(votes, weight, learned, rules)
        self.belief_ = np.full(len(pairs), 0.5)
        self.belief_[used] = _belief(votes, margins, classes)
        return self

    def _keep_camps(self, votes: Preferred, weight: Vector, learned: Learned, rules: list[Rule]) -> None:
        self.against_, self.campaigns_, self.membership_ = 0.0, [], np.zeros((len(self.voters_), 0))
        if votes.voter is None:
            return
        opposite, truthful, following = (each[..., 0] for each in votes_by(votes, weight[:, None], learned))
        everybody = opposite + truthful + following.sum()
        self.against_ = float((opposite + following.sum()) / everybody)
        self.campaigns_ = [(rule, float(votes / everybody)) for rule, votes in zip(rules, following, strict=True)]
        self.membership_ = learned.classes[len(TRUTHFULNESS) :, :, 0].T

    @property
    def coef_(self) -> Vector:
        """θ; for a linear head, per unit of the features."""
        check_is_fitted(self)
        return self._theta / self._unit

    @property
    def covariance_(self) -> Matrix:
        """Covariance of ``coef_``."""
        check_is_fitted(self)
        return np.asarray(self._covariance / np.outer(self._unit, self._unit))

    @property
    def _unit(self) -> Vector:
        return self.head_.scale if not len(self.head_.landmarks) else np.ones(len(self._theta))

    def score(self, X: ArrayLike, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> Any:
        """Return the reward of each answer; with ``y``, the share of votes that are predicted, as scikit-learn asks.

        Args:
            X: Features of answers, shape ``(m, d)``; with ``y``, pairs as in :meth:`fit`.
            y: Results as in :meth:`fit`.
            sample_weight: How many times each vote counts.

        Returns:
            Rewards, shape ``(m,)``, which mean something only next to each other; or the share.
        """
        check_is_fitted(self)
        if y is None:
            answers = _finite(X)
            if answers.ndim != 2 or answers.shape[1] != self.n_features_in_:
                raise BadInputError(f"answers must have shape (m, {self.n_features_in_}), not {answers.shape}.")
            return self.head_(answers) @ self._theta
        margin = self.leads(X)
        result = _results(y, len(margin))
        weight = _counts(sample_weight, len(margin)) * (result != 0.5)
        if not weight.any():
            raise BadInputError("no vote counts: all are ties, or have weight 0.")
        return float(np.average((margin > 0.0) == (result == 1.0), weights=weight))

    def leads(self, X: ArrayLike) -> Vector:
        """Return the reward differences of pairs, first − second, shape ``(n,)``."""
        ahead = self._ahead(X)
        return np.asarray(ahead @ self._theta.astype(ahead.dtype), dtype=np.float64)

    def _ahead(self, X: ArrayLike) -> Matrix:
        check_is_fitted(self)
        pairs = _pairs(X)
        if pairs.shape[-1] != self.n_features_in_:
            raise BadInputError(f"answers must have {self.n_features_in_} features, not {pairs.shape[-1]}.")
        return self.head_.ahead(pairs)

    def margins(self, X: ArrayLike) -> tuple[Vector, Vector]:
        """Return the mean and the standard deviation of reward differences, first − second, both shape ``(n,)``."""
        ahead = self._ahead(X).astype(np.float64)
        variance = np.einsum("ij,ij->i", ahead @ self._covariance, ahead)
        return ahead @ self._theta, np.sqrt(np.maximum(variance, 0.0))

    def decision_function(self, X: ArrayLike) -> Vector:
        """Return the log-odds that the first answer is better, shape ``(n,)``; closer to 0 the less is known."""
        mean, spread = self.margins(X)
        return np.asarray(mean / np.sqrt(1.0 + np.pi / 8.0 * spread**2))

    def predict_proba(self, X: ArrayLike) -> Matrix:
        """Return the probabilities that the second and that the first answer is better, shape ``(n, 2)``."""
        log_odds = self.decision_function(X)
        return np.column_stack([special.expit(-log_odds), special.expit(log_odds)])

    def predict(self, X: ArrayLike) -> NDArray[np.int64]:
        """Return 1 where the first answer is more likely to be better, and 0 elsewhere, shape ``(n,)``."""
        return (self.decision_function(X) > 0.0).astype(np.int64)

    @property
    def camps_of_like_size(self) -> bool:
        """Whether too many votes contradict the rest to tell from the votes alone which camp is right."""
        check_is_fitted(self)
        return self.against_ >= LIKE_SIZE

    def sentences(self) -> list[str]:
        """Say in plain language whom the model believes, and what it cannot know."""
        check_is_fitted(self)
        if not len(self.voters_):
            return [
                "The votes do not say who cast them. Single false votes count little, but a group of liars who agree "
                "is believed: name the voters for better protection."
            ]
        opposed = int((self.truthfulness_ < 0.5).sum())
        said = [f"{opposed:,} of {len(self.voters_):,} voters mostly vote against what the others' votes suggest."]
        said += [
            f"Voters who cast {share:.0%} of the votes always prefer the answer with {rule.words}, whatever else the "
            "answers say. Their votes do not count where the rule decides."
            for rule, share in self.campaigns_
        ]
        if self.gold_margin_ is not None:
            clear = "clearly" if abs(self.gold_margin_) >= _CLEAR else "but not clearly"
            said.append(f"The gold labels decide which camp is believed, {clear}.")
        elif self.camps_of_like_size:
            said.append(
                "There are two camps of like size, and the votes cannot tell which one is right: a few gold labels "
                "can. Until then, the larger camp is believed."
            )
        return said

    def to_torch(self) -> Any:
        """Return the reward as a ``torch.nn.Module`` of features (…, d), such as TRL takes; it needs PyTorch."""
        check_is_fitted(self)
        return reward_module(self.head_, self._theta)

    def save(self, path: Path | str) -> None:
        """Save the model as one npz file, without pickle; an existing file is replaced."""
        check_is_fitted(self)
        file = io.BytesIO()
        settings: dict[str, Any] = {"version": _VERSION, "settings": self.get_params(), "gamma": self.head_.gamma}
        settings["campaigns"] = [(rule.feature, rule.more, share) for rule, share in self.campaigns_]
        arrays: dict[str, Any] = {name: getattr(self.head_, name) for name in ("scale", "landmarks", "whitening")}
        arrays |= {name: getattr(self, name) for name in _ARRAYS}
        arrays["about"], arrays["voters_"] = np.array(json.dumps(settings)), self.voters_.astype(str)
        arrays["numbers"] = np.array([self.ridge_, self.against_])
        arrays["gold"] = np.array([] if self.gold_margin_ is None else [self.gold_margin_])
        np.savez_compressed(file, **arrays)
        write_atomically(Path(path), file.getbuffer())

    @classmethod
    def load(cls, path: Path | str) -> Self:
        """Load a saved model."""
        try:
            with np.load(path, allow_pickle=False) as file:
                found = {name: file[name] for name in file.files}
            about = json.loads(str(found["about"]))
            if about["version"] != _VERSION:
                raise BadInputError(f"{path} was saved by another version of fairduel: fit the model again.")
            model = cls(**about["settings"])
            model.head_ = RewardHead(found["scale"], found["landmarks"], found["whitening"], about["gamma"])
            model.campaigns_ = [(Rule(feature, more), share) for feature, more, share in about["campaigns"]]
            model.ridge_, model.against_ = map(float, found["numbers"])
            model.gold_margin_ = float(found["gold"][0]) if len(found["gold"]) else None
            for name in (*_ARRAYS, "voters_"):
                setattr(model, name, found[name])
        except (OSError, ValueError, KeyError, TypeError, EOFError) as error:
            if isinstance(error, BadInputError):
                raise
            raise BadInputError(f"{path} is not a saved reward model.") from error
        model.classes_, model.n_features_in_ = np.array([0, 1]), len(model.head_.scale)
        return model


class _Told(NamedTuple):
    """Everything that a model was told."""

    pairs: Answers
    result: Vector
    counts: Vector
    voters: NDArray[Any] | None
    prompts: NDArray[Any] | None
    gold: Mask

    @classmethod
    def of(
        cls,
        X: ArrayLike,
        y: ArrayLike | None,
        sample_weight: ArrayLike | None,
        voters: ArrayLike | None,
        prompts: ArrayLike | None,
        gold: ArrayLike | None,
    ) -> Self:
        pairs = _pairs(X)
        result = np.ones(len(pairs)) if y is None else _results(y, len(pairs))
        who, about = (None if each is None else np.asarray(each) for each in (voters, prompts))
        return cls(pairs, result, _counts(sample_weight, len(pairs)), who, about, _mask(gold, len(pairs)))

    def joined(self, more: Self) -> Self:
        """Return both together."""
        if [each is None for each in self] != [each is None for each in more]:
            raise BadInputError("voters and prompts must be given with all votes or with none of them.")
        if self.pairs.shape[1:] != more.pairs.shape[1:]:
            raise BadInputError(f"X must have shape (n, {', '.join(map(str, self.pairs.shape[1:]))}) as before.")
        together: list[Any] = [
            None if old is None else np.concatenate([old, new]) for old, new in zip(self, more, strict=True)
        ]
        return type(self)(*together)


def _believed(votes: Preferred, weight: Vector, ridge: float, known: Mask) -> tuple[Learned, float | None]:
    """Fit the votes; with gold labels, take the camp that they favour, and return by how much (log-likelihood)."""
    columns, ridges = weight[:, None], np.array([ridge])
    found = majority_first(votes, columns, learn(votes, columns, ridges))
    if not known.any():
        return found, None
    gold = Preferred.by(votes.ahead[known], None, 0)
    taught = learn(gold, columns[known], ridges).theta
    tried = [found, learn(votes, columns, ridges, -found.theta), learn(votes, columns, ridges, taught)]
    fits = [-np.logaddexp(0.0, -(gold.ahead @ fit.theta[:, 0])).sum() for fit in tried]
    best = int(np.argmax(fits))
    opposite = -np.logaddexp(0.0, gold.ahead @ tried[best].theta[:, 0]).sum()
    return tried[best], float(fits[best] - opposite)


def _belief(votes: Preferred, margins: Vector, classes: Matrix | None) -> Vector:
    """Return with which probability each vote says what its voter believes, (n,), given c (J, V)."""
    chance = special.expit(margins)
    if classes is None or votes.voter is None:
        return np.asarray(chance)
    each, mine = likelihoods(margins[:, None])[..., 0], classes[:, votes.voter]
    of_class = TRUTHFULNESS[:, None] * chance / each
    free = np.where(votes.rules.T == 0, of_class[-1], 0.5)
    return np.asarray((mine[: len(each)] * of_class).sum(axis=0) + (mine[len(each) :] * free).sum(axis=0))


def _finite(values: ArrayLike) -> Answers:
    try:
        found = np.asarray(values)
        found = found if found.dtype == np.float32 else found.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise BadInputError("features must be numbers.") from error
    if not np.isfinite(found).all():
        raise BadInputError("features must be finite numbers: remove missing and infinite ones.")
    return found


def _pairs(given: ArrayLike) -> Answers:
    pairs = _finite(given)
    if pairs.ndim not in (2, 3) or (pairs.ndim == 3 and pairs.shape[1] != 2) or 0 in pairs.shape:
        raise BadInputError(f"X must have shape (n, 2, d), or (n, d) for differences, not {pairs.shape}.")
    return pairs


def _results(y: ArrayLike, count: int) -> Vector:
    try:
        result = np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise BadInputError("y must hold 1, 0 or 0.5.") from error
    if result.shape != (count,):
        raise BadInputError(f"y must have shape ({count},), not {result.shape}.")
    if not np.isin(result, (0.0, 0.5, 1.0)).all():
        raise BadInputError("y must hold 1 (first preferred), 0 (second preferred) or 0.5 (tie).")
    return result


def _counts(weight: ArrayLike | None, count: int) -> Vector:
    if weight is None:
        return np.ones(count)
    found = np.asarray(weight, dtype=np.float64)
    if found.shape != (count,) or not np.isfinite(found).all() or (found < 0.0).any():
        raise BadInputError(f"sample_weight must hold {count} finite numbers ≥ 0.")
    return found


def _mask(gold: ArrayLike | None, count: int) -> Mask:
    found = np.zeros(count, dtype=np.bool_) if gold is None else np.asarray(gold)
    if found.shape != (count,) or found.dtype != np.bool_:
        raise BadInputError(f"gold must hold {count} values, True or False.")
    return found


def _codes(name: str, given: ArrayLike | None, count: int) -> tuple[NDArray[Any], Indices | None]:
    """Return the distinct names, sorted, and the number of each of ``given`` (n,)."""
    if given is None:
        return np.empty(0, dtype=str), None
    found = np.asarray(given)
    if found.shape != (count,):
        raise BadInputError(f"{name} must have shape ({count},), not {found.shape}.")
    try:
        names, codes = np.unique(found, return_inverse=True)
    except TypeError as error:
        raise BadInputError(f"{name} must all be names or all be numbers, with none missing.") from error
    return names, codes.astype(np.int64)
