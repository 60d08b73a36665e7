"""Stress-test recorded votes: inject an attack and see how far its target moves."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
import polars as pl
from scipy.special import expit

from fairduel.checks import integer
from fairduel.duel import Vector
from fairduel.errors import BadInputError, unknown_name
from fairduel.votes.bradley_terry import Scores, fit_scores, wins
from fairduel.votes.care import trusted_weights
from fairduel.votes.ranking import rank
from fairduel.votes.rivals import RIVALS, plain
from fairduel.votes.voters import audit_voters
from fairduel.votes.votes import Mask, Ties, Votes
from fairduel.votes.words import counted_noun

Attack = Literal[
    "promote", "demote", "half-honest", "omnipresent", "inverters", "random votes", "random flips", "early flips"
]
FLIPS = ("random flips", "early flips")
"""Attacks that flip recorded votes; the others add votes by new voters."""
_CARE: dict[Attack, float] = {"inverters": -1.0, "random votes": 0.0}  # s of attackers without a target
AIMLESS = (*FLIPS, *_CARE)
"""Attacks without a target of their own."""
_STEPS = 10  # of an omnipresent attack, which refits after each
_COMPETING = 0.25  # h: log-odds within which two items compete for a rank


@dataclass(frozen=True, eq=False)
class Injected:
    """The votes after an attack, and which of them are false."""

    votes: Votes
    fake: Mask
    """Which votes were added or flipped, shape (n,)."""
    liars: tuple[str, ...]
    """Names of the voters added by the attack."""


def inject(
    votes: Votes, attack: Attack, target: str | None = None, *, size: int, voters: int = 1, seed: int = 0
) -> Injected:
    """Attack the votes with ``size`` false votes.

    - promote, demote: add wins (or losses) of the target over opponents drawn as often as they occur, on a random side,
      in the context of the vote that the opponent was drawn from;
    - half-honest: promote in half of the votes; the others repeat recorded duels and follow the Bradley–Terry model of
      the recorded votes;
    - omnipresent: repeat recorded duels *without* the target, choosing the duels and winners that raise its rank most;
    - inverters: repeat recorded duels and vote against that model; no target;
    - random votes: repeat recorded duels and toss a coin; no target;
    - random flips: swap the winner and loser of random decisive votes;
    - early flips: swap them in the first decisive votes.

    Added votes are cast by ``voters`` new voters in turn and come last; their row numbers continue from the last row.

    >>> votes = Votes.from_arrays("abc", [0, 1, 2], [1, 2, 0], [1, 1, 0], voter=[0, 0, 0], voters=["Ann"])
    >>> attacked = inject(votes, "promote", "c", size=4, voters=2)
    >>> len(attacked.votes), attacked.liars, int(attacked.fake.sum())
    (7, ('liar 1', 'liar 2'), 4)
    """
    if attack not in get_args(Attack):
        raise unknown_name("attack", str(attack), get_args(Attack))
    integer("the number of false votes", size)
    integer("the number of new voters", voters, least=1)
    votes, rng = votes.without_features(), np.random.default_rng(seed)
    if attack in FLIPS:
        return _flip(votes, early=attack == "early flips", size=size, rng=rng)
    if attack in _CARE:
        source, first_wins = _repeated(votes, _CARE[attack], size, rng)
        return add_votes(votes, source, votes.first[source], votes.second[source], first_wins, voters)
    aim = _item(votes, target)
    if len(votes.items) < 3 and attack == "omnipresent":
        raise BadInputError("an omnipresent attack needs duels without its target, so at least three items.")
    if attack == "omnipresent":
        source, first_wins = lifting_duels(votes, aim, size, rng)
        return add_votes(votes, source, votes.first[source], votes.second[source], first_wins, voters)
    if len(votes.items) < 2:
        raise BadInputError("an attack needs at least two items.")
    source, coin = rng.integers(len(votes), size=size), rng.random(size) < 0.5
    opponent = opponents(votes, aim, source, coin)
    at_first = rng.random(size) < 0.5
    first, second = np.where(at_first, aim, opponent), np.where(at_first, opponent, aim)
    first_wins = ~at_first if attack == "demote" else at_first
    if attack == "half-honest":
        repeated, truly_wins = _repeated(votes, 1.0, size, rng)
        honest = rng.random(size) < 0.5
        source, first_wins = np.where(honest, repeated, source), np.where(honest, truly_wins, first_wins)
        first, second = (
            np.where(honest, recorded[repeated], pushed)
            for recorded, pushed in ((votes.first, first), (votes.second, second))
        )
    return add_votes(votes, source, first, second, first_wins, voters)


def stress(
    votes: Votes,
    attack: Attack,
    target: str | None = None,
    *,
    sizes: Sequence[int],
    voters: int = 1,
    seed: int = 0,
    ties: Ties = "half",
    level: float = 0.05,
    duels_assigned: bool = True,
    progress: Callable[[int], None] | None = None,
) -> pl.DataFrame:
    """Attack with each size and rank the target; return one row per size.

    Columns: size, voters, target; its rank by plain Bradley–Terry (rank_plain), with uncertainty weights
    (rank_weighted) and, if voters are known, with these weights after the audit (rank_ours), and by the rivals of
    :mod:`fairduel.votes.rivals` (rank_crowd_bt, rank_am_elo, rank_reliability, rank_spectral); the same with
    ``leader_`` instead of ``rank_``; liars_flagged, others_flagged, fake_votes_left (by weight after the audit). Rank 1
    is the best. Attacks that need no target follow the leader of the original votes. Ranks and leaders are within the
    target's component of the comparison graph; a target not compared with any other item has no rank.

    >>> from fairduel.votes.synthetic import arena
    >>> votes, _ = arena(liars={}, seed=3)
    >>> stress(votes, "promote", "Maple", sizes=[0, 200], voters=4)["liars_flagged"].to_list()
    [0, 4]
    """
    leads = target is None and attack in AIMLESS
    followed = _leader(plain(votes, ties), votes.components() == 0) if leads else _item(votes, target)
    rows: list[dict[str, Any]] = []
    for size in sizes:
        attacked = inject(votes, attack, votes.items[followed], size=size, voters=max(1, min(voters, size)), seed=seed)
        row = {"size": size, "voters": len(attacked.liars) if size else 0, "target": votes.items[followed]}
        rows.append(row | _outcome(attacked, followed, ties=ties, level=level, duels_assigned=duels_assigned))
        if progress:
            progress(1)
    return pl.DataFrame(rows, infer_schema_length=None)


def _outcome(attacked: Injected, item: int, *, ties: Ties, level: float, duels_assigned: bool) -> dict[str, Any]:
    """Return the item's ranks after an attack, and whom the audit flagged; columns as in :func:`stress`."""
    votes, caught = attacked.votes, dict[str, float]()
    compared = _compared(votes, ties, item)
    fits = {"plain": (plain(votes, ties), compared), "weighted": (_weighted(votes, ties), compared)}
    if votes.voter is not None:
        evidence = audit_voters(votes, level=level, duels_assigned=duels_assigned)
        weights = trusted_weights(votes, evidence, ties)
        fits["ours"] = _weighted(votes, ties, weights), _compared(votes.select(weights > 0.0), ties, item)
        fits |= {
            name.replace("-", "_"): (model(votes, ties), compared) for name, model in RIVALS.items() if name != "plain"
        }
        names = {name for name, flag in zip(evidence.voters, evidence.flagged, strict=True) if flag}
        caught = {
            "liars_flagged": len(names & set(attacked.liars)),
            "others_flagged": len(names - set(attacked.liars)),
            "fake_votes_left": float(weights[attacked.fake].sum()),
        }
    ranks: dict[str, Any] = {}
    for name, (scores, among) in fits.items():
        ranks[f"rank_{name}"] = rank_of(scores[among], int(among[:item].sum())) if among.sum() > 1 else None
        ranks[f"leader_{name}"] = votes.items[_leader(scores, among)]
    return caught | ranks


def our_scores(votes: Votes, ties: Ties = "half") -> Vector:
    """Return the scores (K,) after the audit."""
    return _weighted(votes, ties, trusted_weights(votes, audit_voters(votes), ties))


def summarise_stress(frame: pl.DataFrame, attack: Attack) -> list[str]:
    """Summarise the largest attack in the ``frame`` of :func:`stress` in a few sentences, conclusion first."""
    worst = frame.row(-1, named=True)
    plain, weighted = (_rank_change(frame, name) for name in ("rank_plain", "rank_weighted"))
    change = f"{plain} under plain Bradley–Terry and {weighted} with uncertainty weights"
    if plain == weighted:
        change = f"{plain}, both under plain Bradley–Terry and with uncertainty weights"
    moved = f"With {counted_noun(worst['size'], 'false vote')} ({attack}), {worst['target']} {change}."
    if "rank_ours" not in worst:
        return [moved, "The file does not say who voted, so no voter can be flagged."]
    if worst["liars_flagged"] + worst["others_flagged"] == 0:
        return [moved, "No voter is flagged."]
    liars = "" if attack in FLIPS else f"{worst['liars_flagged']} of {worst['voters']} simulated liars and "
    others = counted_noun(worst["others_flagged"], "voter" if attack in FLIPS else "other voter")
    rank = worst["rank_ours"]
    left = f"after the audit, {worst['target']} has " + (f"rank {rank}" if rank else "no rank")
    return [moved, f"Flagged: {liars}{others}; {left}."]


def _rank_change(frame: pl.DataFrame, column: str) -> str:
    """Say how the largest attack changes a rank, and whether a smaller one changes it more."""
    ranks: list[int | None] = frame[column].to_list()
    before, after = ranks[0], ranks[-1]
    if after is None:
        return "has no rank"
    if before is None:
        return f"gets rank {after}"
    moves = [0 if rank is None else abs(rank - before) for rank in ranks]
    most = moves.index(max(moves))
    smaller = f" (but has rank {ranks[most]} with {frame['size'][most]:,})" if moves[most] > moves[-1] else ""
    return (f"stays at rank {after}" if before == after else f"moves from rank {before} to {after}") + smaller


def rank_of(scores: Vector, item: int) -> int:
    """Return the rank of an item among the scores, 1 for the best.

    >>> rank_of(np.array([0.1, 0.5, 0.3]), 2)
    2
    """
    return int((scores > scores[item]).sum()) + 1


def _compared(votes: Votes, ties: Ties, item: int) -> Mask:
    """Return which items are in the same component of the comparison graph as this one, shape (K,)."""
    component = votes.components(ties)
    return np.asarray(component == component[item])


def _leader(scores: Vector, among: Mask) -> int:
    return int(np.argmax(np.where(among, scores, -np.inf)))


def _weighted(votes: Votes, ties: Ties, weights: Vector | None = None) -> Vector:
    return rank(
        votes, ties=ties, reliability=weights, draws=100
    ).scores  # draws are for intervals, which are not used here


def _item(votes: Votes, name: str | None) -> int:
    if name is None:
        raise BadInputError("this attack needs a target: name the item (--target).")
    if name not in votes.items:
        raise unknown_name("item", name, votes.items)
    return votes.items.index(name)


def _flip(votes: Votes, *, early: bool, size: int, rng: np.random.Generator) -> Injected:
    decisive = np.flatnonzero(~votes.is_tie)
    if size > len(decisive):
        raise BadInputError(f"cannot flip {size:,} votes: only {len(decisive):,} have a winner.")
    chosen = decisive[:size] if early else rng.choice(decisive, size, replace=False)
    fake = np.zeros(len(votes), dtype=np.bool_)
    fake[chosen] = True
    return Injected(replace(votes, result=np.where(fake, 1.0 - votes.result, votes.result)), fake, ())


def opponents(votes: Votes, aim: int, source: Any, coin: Mask) -> Any:
    """Return one item of each vote in ``source`` (size,): by its ``coin`` (size,), but never the item ``aim``."""
    one, other = votes.first[source], votes.second[source]
    opponent = np.where(coin, one, other)
    return np.where(opponent == aim, one + other - aim, opponent)


def _repeated(votes: Votes, care: float, size: int, rng: np.random.Generator) -> tuple[Any, Mask]:
    """Draw recorded duels (size,) and vote on them with log-odds s·(θ_first − θ_second), s being ``care``."""
    if len(votes) == 0:
        raise BadInputError("this attack repeats recorded duels, but there are none.")
    source = rng.integers(len(votes), size=size)
    scores = fit_scores(wins(votes)).scores
    margin = scores[votes.first[source]] - scores[votes.second[source]]
    return source, rng.random(size) < expit(care * margin)


def lifting_duels(
    votes: Votes, aim: int, size: int, rng: np.random.Generator, *, to_first: bool = False
) -> tuple[Any, Any]:
    """Choose recorded duels (size,) without the target, and whether their first item wins.

    A vote for i over j moves θ by about (1 − p_ij) H⁻¹(e_i − e_j). The votes chosen have the largest influence on a
    smooth version of the target's rank, R = Σ_k σ((θ_target − θ_k)/h), in a few steps with a refit after each. To get
    ``to_first`` place, all items above the target matter as if they were level with it.
    """
    free = rng.permutation(np.flatnonzero((votes.first != aim) & (votes.second != aim)))
    if len(free) == 0:
        raise BadInputError("an omnipresent attack needs duels without its target, but there are none.")
    first, second = votes.first[free], votes.second[free]
    won = wins(votes, ties="drop")
    taken, first_wins = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.bool_)
    for step in np.diff(np.linspace(0, size, _STEPS + 1).astype(int)):
        fitted = fit_scores(won)
        gain = lift_by_item(fitted, aim, to_first=to_first)
        lift, margin = gain[first] - gain[second], fitted.scores[first] - fitted.scores[second]
        for_first, for_second = lift * expit(-margin), -lift * expit(margin)
        best = np.argsort(-np.maximum(for_first, for_second), kind="stable")[np.arange(step) % len(free)]
        up = (for_first >= for_second)[best]
        np.add.at(won, (np.where(up, first[best], second[best]), np.where(up, second[best], first[best])), 1.0)
        taken, first_wins = np.append(taken, free[best]), np.append(first_wins, up)
    return taken, first_wins


def lift_by_item(fitted: Scores, aim: int, *, to_first: bool = False) -> Vector:
    """Return, for each item (K,), how much points for it lift the target; see :func:`lifting_duels`.

    A vote for i over j lifts the target if i's value exceeds j's.
    """
    ahead = fitted.scores[aim] - fitted.scores
    chance = expit((np.maximum(ahead, 0.0) if to_first else ahead) / _COMPETING)
    near = chance * (1.0 - chance) * (np.arange(len(chance)) != aim)
    return np.asarray(near.sum() * fitted.covariance[aim] - near @ fitted.covariance)


def add_votes(votes: Votes, source: Any, first: Any, second: Any, first_wins: Mask, voters: int) -> Injected:
    """Append false votes of weight 1, in the contexts of the votes ``source``, with unknown times."""
    size = len(first_wins)
    liars = () if votes.voter is None else _new_names(votes.voters, voters)
    added: dict[str, Any] = {
        "first": first,
        "second": second,
        "result": first_wins.astype(np.float64),
        "weight": np.ones(size),
        "row": votes.row.max(initial=1) + 1 + np.arange(size),
        "voter": len(votes.voters) + np.arange(size) % voters,
        "context": () if votes.context is None else votes.context[source],
        "time": np.full(size, np.nan),
    }
    known = {name: values for name, values in vars(votes).items() if isinstance(values, np.ndarray)}
    joined: dict[str, Any] = {n: np.append(values, added[n]).astype(values.dtype) for n, values in known.items()}
    fake = np.arange(len(votes) + size) >= len(votes)
    return Injected(replace(votes, voters=votes.voters + liars, **joined), fake, liars)


def _new_names(taken: tuple[str, ...], count: int) -> tuple[str, ...]:
    prefix = "liar"
    while any(name.startswith(f"{prefix} ") for name in taken):
        prefix = f"new {prefix}"
    return tuple(f"{prefix} {number}" for number in range(1, count + 1))
