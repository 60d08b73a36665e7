"""Recorded votes as a world: the answer to a duel is a vote that somebody once cast on that very pair."""

import functools
import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from fairduel.checks import needs_extra, positive
from fairduel.core.links import LOGISTIC
from fairduel.duel import Matrix, Vector
from fairduel.errors import BadInputError, unknown_name
from fairduel.votes.bradley_terry import TINY_RIDGE
from fairduel.votes.design import Rows
from fairduel.votes.votes import Indices, Mask, Ties, Votes, distinct_duels, sums
from fairduel.worlds.base import DuelingWorld, Offer, WorldPlan
from fairduel.worlds.preferences import borda_scores

Missing = Literal["refuse", "model"]
ReplayedTies = Literal["half", "keep", "drop"]


@dataclass(frozen=True, eq=False)
class Context:
    """What was compared with what: K items, and how their duels went."""

    name: str
    items: tuple[str, ...]
    """Names of the K items that votes of this context name."""
    actions: Matrix
    """Their features, shape (K, d)."""
    shares: Matrix
    """P(i beats j), shape (K, K): the share of the votes on the pair that i won, a tie being half a win."""
    tied: Matrix
    """The share of the votes on the pair that were ties, shape (K, K)."""
    rewards: Vector
    """Their Borda scores, shape (K,): the mean of ``shares`` over the other items."""


@dataclass(frozen=True, eq=False)
class Pairs:
    """Every pair that was voted on, once: p rows of an item i and an item j."""

    context: Indices
    """Place of its context, shape (p,)."""
    first: Indices
    """Code of i, shape (p,)."""
    second: Indices
    """Code of j, shape (p,)."""
    difference: Matrix
    """x_i − x_j, shape (p, d)."""
    count: Vector
    """How many votes were cast on it, shape (p,)."""
    won: Vector
    """How many of these i won, a tie being half a win, shape (p,)."""
    tied: Vector
    """How many of these were ties, shape (p,)."""

    def fit(self, chosen: Mask | None = None) -> Vector:
        """θ of the logistic model P(i beats j) = σ((x_i − x_j)ᵀθ) for the ``chosen`` (p,) pairs or all, shape (d,)."""
        kept = slice(None) if chosen is None else chosen
        rows = Rows(np.ascontiguousarray(self.difference[kept]))
        return rows.estimate(self.count[kept], self.won[kept], TINY_RIDGE)[0]

    def among(self, context: int) -> tuple[Indices, Matrix, Matrix, Matrix]:
        """Codes of a context's items (K,), and the votes on each two of them, wins of row over column, ties (K, K)."""
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
    """A folder of votes, read."""

    contexts: tuple[Context, ...]
    pairs: Pairs
    parameter: Vector
    """θ of the logistic model fitted to all votes, shape (d,)."""
    filled: int
    """How many pairs have no vote and are answered by that model."""


class Replay(DuelingWorld):
    r"""One context a round, drawn at random; its items are the actions, and recorded votes answer duels.

    ``path`` is a folder with ``votes.csv`` (or ``.csv.gz``, or any other that ``fairduel rank`` reads) and
    ``features.npz``, features of the items (items, d) or of the items in each context (contexts, items, d), divided by
    one number so that no norm exceeds 1. A duel is answered as if one of the votes on its pair had been drawn at
    random: the first wins with the share of the votes that it won. ``ties`` are answered by a coin (``"half"``), as
    ties (``"keep"``), or were never cast (``"drop"``). Pairs without votes are ``missing``: the folder is refused, or
    the ``"model"`` answers.

    The reward of an item is its Borda score within the context, the chance to win a vote against another item drawn
    at random. So the regret of a round is twice the Borda regret a duel of those who average over the two.

    The model is the logistic regression on all votes; no reward is linear here. ``norm_bound``, which agents are told,
    is by default the norm of its parameter, rounded up to a whole number. ``contexts`` names those that are drawn,
    separated by commas; by default all.

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
        path: str,
        rng: np.random.Generator,
        contexts: str | int | None = None,
        ties: ReplayedTies = "half",
        missing: Missing = "refuse",
        norm_bound: float | None = None,
    ) -> None:
        if ties not in get_args(ReplayedTies):
            raise unknown_name("treatment of ties", str(ties), get_args(ReplayedTies))
        recording = load(path, ties="drop" if ties == "drop" else "half", missing=missing)
        self._keeps_ties = ties == "keep"
        self.recording = recording
        self.contexts = recording.contexts if contexts is None else _chosen(recording.contexts, str(contexts))
        self.dimension = len(recording.parameter)
        fitted = float(math.ceil(np.linalg.norm(recording.parameter)))
        self.norm_bound = positive("norm_bound", fitted if norm_bound is None else norm_bound)
        self.link = LOGISTIC
        self.parameter = None
        self._rng = rng
        self._current = self.contexts[0]

    def places(self, horizon: int) -> Indices:
        """Draw the place among ``contexts`` of each round's, shape (T,)."""
        return np.array([self._draw() for _ in range(horizon)])

    def _draw(self) -> int:
        return int(self._rng.integers(len(self.contexts)))

    def offer(self, round_number: int) -> Offer:  # noqa: ARG002
        """Offer the items of the next round's context."""
        self._current = self.contexts[self._draw()]
        return Offer(self._current.actions, self._current.rewards)

    def win_probability(self, rewards: Vector, first: int, second: int) -> float:  # noqa: ARG002
        """The share of the votes on this pair, in the context that was offered last, that the first won."""
        return float(self._current.shares[first, second])

    def chances(self, rewards: Vector, first: int, second: int) -> tuple[float, float]:
        """The same without ties, and the share of ties, where these are kept."""
        tied = float(self._current.tied[first, second]) if self._keeps_ties else 0.0
        return self.win_probability(rewards, first, second) - tied / 2.0, tied

    def plan(self) -> WorldPlan | None:
        """The contexts as arrays; a subclass may answer otherwise."""
        if type(self) is not Replay:
            return None
        tables = [(c.shares, c.tied if self._keeps_ties else np.zeros_like(c.tied)) for c in self.contexts]
        chances = [np.stack([(won - tied / 2.0).ravel(), tied.ravel()], axis=1) for won, tied in tables]
        return self._plan_of([Offer(context.actions, context.rewards) for context in self.contexts], chances)


def load(path: str | Path, *, ties: Ties = "half", missing: Missing = "refuse") -> Recording:
    """Read a folder as :class:`Replay` does; a process reads one that has not changed only once."""
    if ties not in get_args(Ties):
        raise unknown_name("treatment of ties", str(ties), get_args(Ties))
    if missing not in get_args(Missing):
        raise unknown_name("treatment of missing pairs", str(missing), get_args(Missing))
    votes, features = _the_file(Path(path), "votes"), _the_file(Path(path), "features")
    stamps = tuple((file.stat().st_mtime_ns, file.stat().st_size) for file in (votes, features))
    return _load(votes, features, ties, missing, stamps)


def _the_file(folder: Path, stem: str) -> Path:
    """The one file of a folder that is called so, whatever its ending."""
    if not folder.is_dir():
        raise BadInputError(f"{folder} is no folder: a replay needs one with the files votes.csv and features.npz.")
    found = sorted(file for file in folder.iterdir() if file.name.split(".")[0] == stem and file.is_file())
    if len(found) != 1:
        held = f"{' and '.join(file.name for file in found)}, and may hold only one of them" if found else "none"
        raise BadInputError(f"a replay needs one file of {stem} in {folder}, which has {held}.")
    return found[0]


@functools.lru_cache(maxsize=4)
def _load(
    votes_file: Path,
    features_file: Path,
    ties: Ties,
    missing: Missing,
    stamps: tuple[tuple[int, int], ...],  # noqa: ARG001  # a changed file is read again
) -> Recording:
    with needs_extra("votes"):
        # Not from fairduel.votes: its other names are no part of a run, and a change there must not repeat one.
        from fairduel.votes.features import read_features  # noqa: PLC0415  # polars may be missing
        from fairduel.votes.reading import read_votes  # noqa: PLC0415
    votes = read_votes(votes_file, strict=True).votes
    features = read_features(features_file, votes).values
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
                f"{votes_file} has no {'vote' if ties == 'half' else 'decided vote'} on {labels[one]!r} against "
                f"{labels[other]!r} in the context {name!r}, and perhaps on others: choose missing='model' to let a "
                "fitted model answer there."
            )
        actions = np.ascontiguousarray(features[number, items])
        fitted = actions @ parameter
        shares = LOGISTIC.probability(fitted[:, None] - fitted)  # also of an item against itself: ½
        np.divide(won, count, out=shares, where=count > 0.0)
        tied = np.divide(tied, count, out=np.zeros_like(tied), where=count > 0.0)
        contexts.append(Context(name, labels, actions, shares, tied, borda_scores(shares)))
        filled += int(unknown.sum()) // 2
    return Recording(tuple(contexts), pairs, parameter, filled)


def _pairs(votes: Votes, features: NDArray[np.float64], ties: Ties) -> Pairs:
    """One row for each pair of a context, by features (contexts, items, d)."""
    place, one, other, row, turned = distinct_duels(votes.first, votes.second, len(votes.items), votes.context)
    result = np.where(turned, 1.0 - votes.result, votes.result)
    weight = votes.counts(ties)
    return Pairs(
        context=place,
        first=one,
        second=other,
        difference=features[place, one] - features[place, other],
        count=sums(row, len(place), weight),
        won=sums(row, len(place), weight * result),
        tied=sums(row, len(place), weight * votes.is_tie),
    )


def _chosen(contexts: Iterable[Context], wanted: str) -> tuple[Context, ...]:
    by_name = {context.name: context for context in contexts}
    names = [name.strip() for name in wanted.split(",")]
    for name in names:
        if name not in by_name:
            raise unknown_name("context", name, by_name)
    return tuple(by_name[name] for name in dict.fromkeys(names))
