"""Recorded votes as a world: a duel is answered by votes that people cast on that pair."""

import functools
import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fairduel.checks import literal, needs_extra, positive
from fairduel.core.links import LOGISTIC
from fairduel.duel import Matrix, Vector
from fairduel.errors import BadInputError, unknown_name
from fairduel.votes.ranking.bradley_terry import TINY_RIDGE
from fairduel.votes.ranking.design_matrix import Rows
from fairduel.votes.votes import Indices, Mask, Ties, Votes, distinct_duels, sums
from fairduel.worlds.preferences import borda_scores
from fairduel.worlds.world import DuelingWorld, Offer, WorldPlan

Missing = Literal["refuse", "model"]
ReplayedTies = Literal["half", "keep", "drop"]
Order = Literal["mixed", "in-turn"]


@dataclass(frozen=True, eq=False)
class RecordedContext:
    """The K items compared in one context, and how their duels went."""

    name: str
    items: tuple[str, ...]
    """Names of the K items with votes in this context."""
    actions: Matrix
    """Their features, shape (K, d)."""
    shares: Matrix
    """P(i beats j), shape (K, K), the share of the pair's votes that i won; a tie is half a win."""
    tied: Matrix
    """The share of the pair's votes that were ties, shape (K, K)."""
    rewards: Vector
    """Their Borda scores, shape (K,), the mean of ``shares`` over the other items."""


@dataclass(frozen=True, eq=False)
class RecordedPairs:
    """The p distinct pairs of items (i, j) with votes."""

    context: Indices
    """Index of the pair's context, shape (p,)."""
    first: Indices
    """Code of i, shape (p,)."""
    second: Indices
    """Code of j, shape (p,)."""
    difference: Matrix
    """x_i − x_j, shape (p, d)."""
    count: Vector
    """Number of votes on the pair, shape (p,)."""
    won: Vector
    """How many of them i won, shape (p,); a tie is half a win."""
    tied: Vector
    """How many of them were ties, shape (p,)."""

    def fit(self, chosen: Mask | None = None) -> Vector:
        """Fit P(i beats j) = σ((x_i − x_j)ᵀθ) to all pairs or the ``chosen`` (p,); return θ, shape (d,)."""
        kept = slice(None) if chosen is None else chosen
        rows = Rows(np.ascontiguousarray(self.difference[kept]))
        return rows.estimate(self.count[kept], self.won[kept], TINY_RIDGE)[0]

    def among(self, context: int) -> tuple[Indices, Matrix, Matrix, Matrix]:
        """Return the codes of a context's items (K,), and votes, wins of row over column and ties, (K, K) each."""
        inside = self.context == context
        items, codes = np.unique(np.concatenate([self.first[inside], self.second[inside]]), return_inverse=True)
        one, other = np.split(codes, 2)
        count, won, tied = np.zeros((3, len(items), len(items)))
        count[one, other] = count[other, one] = self.count[inside]
        won[one, other] = self.won[inside]
        won[other, one] = self.count[inside] - self.won[inside]
        tied[one, other] = tied[other, one] = self.tied[inside]
        return items, count, won, tied


@dataclass(frozen=True, eq=False)
class Recording:
    """A folder of votes, as read by :func:`load`."""

    contexts: tuple[RecordedContext, ...]
    pairs: RecordedPairs
    parameter: Vector
    """θ of the logistic model fitted to all votes, shape (d,)."""
    filled: int
    """How many pairs have no votes and are answered by that model."""


class Replay(DuelingWorld):
    r"""Recorded votes: each round offers the items of a random context, and duels are answered by its votes.

    A duel is answered as if a random vote on its pair had been drawn: an item wins with its share of the votes. The
    reward of an item is its Borda score within the context, the probability of winning a vote against a random other
    item, so the regret of a round is twice the average Borda regret of its two items. Rewards are not linear.

    Args:
        path: Folder with ``votes.csv`` (or any other vote file that ``fairduel rank`` reads) and ``features.npz``:
            features of the items (items, d), or of the items in each context (contexts, items, d), scaled by one factor
            so that no norm exceeds 1.
        contexts: Names of the contexts to draw from, separated by commas; by default all.
        ties: Tied votes are answered by a coin (``"half"``), as ties (``"keep"``), or dropped (``"drop"``).
        missing: If a pair has no votes, ``"refuse"`` raises and ``"model"`` answers by a logistic regression on all
            votes.
        norm_bound: B, which agents are told; by default the norm of that model's parameter, rounded up.
        array: Name of the array with the features, if the file has several.
        order: ``"mixed"``: each round has a random context. ``"in-turn"``: the contexts come one after another in
            random order, for as many rounds each, so that each is new to an agent when it comes; this needs the
            horizon.
        horizon: T, the number of rounds.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "votes.csv").write_text("a,b,winner\ntea,milk,a\ntea,milk,tie\nmilk,rum,a\nrum,tea,b\n")
    >>> np.savez(folder / "features.npz", features=[[0.0], [0.5], [1.0]], items=["rum", "milk", "tea"])
    >>> world = Replay(path=str(folder), rng=np.random.default_rng(0))
    >>> offer = world.offer(1)
    >>> world.contexts[0].items, offer.rewards.tolist()
    (('milk', 'rum', 'tea'), [0.625, 0.0, 0.875])
    >>> world.win_probability(offer.rewards, 2, 0)
    0.75
    """

    def __init__(
        self,
        *,
        path: str | Path,
        rng: np.random.Generator,
        contexts: str | int | None = None,
        ties: ReplayedTies = "half",
        missing: Missing = "refuse",
        norm_bound: float | None = None,
        array: str | None = None,
        order: Order = "mixed",
        horizon: int | None = None,
    ) -> None:
        literal("treatment of ties", ties, ReplayedTies)
        literal("order", order, Order)
        if order == "in-turn" and horizon is None:
            raise BadInputError("order='in-turn' needs the horizon, so that all contexts get as many rounds.")
        recording = load(path, ties="drop" if ties == "drop" else "half", missing=missing, array=array)
        self._keeps_ties = ties == "keep"
        self.recording = recording
        self.contexts = recording.contexts if contexts is None else _chosen(recording.contexts, str(contexts))
        self.dimension = len(recording.parameter)
        fitted = float(math.ceil(np.linalg.norm(recording.parameter)))
        self.norm_bound = positive("norm_bound", fitted if norm_bound is None else norm_bound)
        self.link = LOGISTIC
        self.parameter = None
        self._rng = rng
        self._turns = rng.permutation(len(self.contexts)) if order == "in-turn" else None
        self._horizon = horizon
        self._current = self.contexts[0]

    def places(self, horizon: int) -> Indices:
        """Draw the index of each round's context, shape (T,)."""
        return np.array([self._place(t + 1) for t in range(horizon)])

    def _place(self, round_number: int) -> int:
        if self._turns is None or self._horizon is None or round_number > self._horizon:
            return int(self._rng.integers(len(self.contexts)))
        return int(self._turns[(round_number - 1) * len(self._turns) // self._horizon])

    def offer(self, round_number: int) -> Offer:
        """Offer the items of this round's context."""
        self._current = self.contexts[self._place(round_number)]
        return Offer(self._current.actions, self._current.rewards)

    def known_actions(self) -> Matrix | None:
        """Return the items of all contexts, also those that are not shown, shape (n, d)."""
        return np.concatenate([context.actions for context in self.recording.contexts])

    def win_probability(self, rewards: Vector, first: int, second: int) -> float:  # noqa: ARG002
        """Return the first item's share of the votes on this pair, in the context offered last."""
        return float(self._current.shares[first, second])

    def chances(self, rewards: Vector, first: int, second: int) -> tuple[float, float]:
        """Return the probabilities of a win and of a tie, which is 0 unless ties are kept."""
        tied = float(self._current.tied[first, second]) if self._keeps_ties else 0.0
        return self.win_probability(rewards, first, second) - tied / 2.0, tied

    def plan(self) -> WorldPlan | None:
        """Return the contexts as arrays; ``None`` for subclasses, which may answer differently."""
        if type(self) is not Replay:
            return None
        tables = [(c.shares, c.tied if self._keeps_ties else np.zeros_like(c.tied)) for c in self.contexts]
        chances = [np.stack([(won - tied / 2.0).ravel(), tied.ravel()], axis=1) for won, tied in tables]
        return self._plan_of([Offer(context.actions, context.rewards) for context in self.contexts], chances)


def load(path: str | Path, *, ties: Ties = "half", missing: Missing = "refuse", array: str | None = None) -> Recording:
    """Read a folder of votes for :class:`Replay`; an unchanged folder is cached."""
    literal("treatment of ties", ties, Ties)
    literal("treatment of missing pairs", missing, Missing)
    votes, features = _only_file(Path(path), "votes"), _only_file(Path(path), "features")
    stamps = tuple((file.stat().st_mtime_ns, file.stat().st_size) for file in (votes, features))
    return _load(votes, features, ties, missing, array, stamps)


def _only_file(folder: Path, stem: str) -> Path:
    """Return the folder's only file with this stem, whatever its extension."""
    if not folder.is_dir():
        raise BadInputError(f"{folder} is not a folder; a replay needs one with votes.csv and features.npz.")
    found = sorted(file for file in folder.iterdir() if file.name.split(".")[0] == stem and file.is_file())
    if len(found) != 1:
        names = " and ".join(file.name for file in found) or "none"
        raise BadInputError(f"a replay needs exactly one {stem} file in {folder}, which has {names}.")
    return found[0]


@functools.lru_cache(maxsize=4)
def _load(
    votes_file: Path,
    features_file: Path,
    ties: Ties,
    missing: Missing,
    array: str | None,
    stamps: tuple[tuple[int, int], ...],  # noqa: ARG001  # a changed file is read again
) -> Recording:
    with needs_extra("votes"):
        # Not from fairduel.votes, whose other names no run uses: a change there must not invalidate stored runs.
        from fairduel.votes.reading.features import read_features  # noqa: PLC0415  # polars may be missing
        from fairduel.votes.reading.read import read_votes  # noqa: PLC0415
    votes = read_votes(votes_file, strict=True).votes
    features = read_features(features_file, votes, array=array).values
    names = votes.contexts or ("all",)
    if features.ndim == 2:
        features = np.broadcast_to(features, (len(names), *features.shape))
    pairs = _pairs(votes, features, ties)
    parameter = pairs.fit()
    contexts, filled = [], 0
    for number, name in enumerate(names):
        items, count, won, tied = pairs.among(number)
        labels = tuple(votes.items[item] for item in items)
        unknown = (count == 0.0) & ~np.eye(len(items), dtype=bool)
        if unknown.any() and missing == "refuse":
            one, other = np.argwhere(unknown)[0]
            raise BadInputError(
                f"{votes_file} has no {'votes' if ties == 'half' else 'decided votes'} on {labels[one]!r} against "
                f"{labels[other]!r} in context {name!r}; set missing='model' to let a fitted model answer such pairs."
            )
        actions = np.ascontiguousarray(features[number, items])
        fitted = actions @ parameter
        shares = LOGISTIC.probability(fitted[:, None] - fitted)  # ½ for an item against itself
        np.divide(won, count, out=shares, where=count > 0.0)
        tied = np.divide(tied, count, out=np.zeros_like(tied), where=count > 0.0)
        contexts.append(RecordedContext(name, labels, actions, shares, tied, borda_scores(shares)))
        filled += int(unknown.sum()) // 2
    return Recording(tuple(contexts), pairs, parameter, filled)


def _pairs(votes: Votes, features: NDArray[np.float64], ties: Ties) -> RecordedPairs:
    """Return the distinct pairs of each context, given features (contexts, items, d)."""
    place, one, other, row, turned = distinct_duels(votes.first, votes.second, len(votes.items), votes.context)
    result = np.where(turned, 1.0 - votes.result, votes.result)
    weight = votes.counts(ties)
    return RecordedPairs(
        context=place,
        first=one,
        second=other,
        difference=features[place, one] - features[place, other],
        count=sums(row, len(place), weight),
        won=sums(row, len(place), weight * result),
        tied=sums(row, len(place), weight * votes.is_tie),
    )


def _chosen(contexts: Iterable[RecordedContext], wanted: str) -> tuple[RecordedContext, ...]:
    by_name = {context.name: context for context in contexts}
    names = [name.strip() for name in wanted.split(",")]
    for name in names:
        if name not in by_name:
            raise unknown_name("context", name, by_name)
    return tuple(by_name[name] for name in dict.fromkeys(names))
