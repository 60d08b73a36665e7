"""Stress-test recorded votes: inject an attack and see how far its target moves."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import polars as pl

from fairduel.checks import integer
from fairduel.duel import Vector
from fairduel.votes.attacking.injection import FLIPS, Injected, inject, item_index, needs_target
from fairduel.votes.auditing.camps import trusted_weights
from fairduel.votes.auditing.voters import audit_voters
from fairduel.votes.given import takes_votes
from fairduel.votes.ranking.bradley_terry import fit_scores, wins
from fairduel.votes.ranking.rank import rank
from fairduel.votes.votes import Mask, Ties, Votes
from fairduel.words import counted_noun


@takes_votes
def stress(
    votes: Votes,
    attack: str,
    target: str | None = None,
    *,
    sizes: Sequence[int],
    voters: int = 1,
    seed: int = 0,
    runs: int = 1,
    ties: Ties = "half",
    level: float = 0.05,
    duels_assigned: bool = True,
    progress: Callable[[int], None] | None = None,
) -> pl.DataFrame:
    """Attack with each size and rank the target; return one row per size.

    Each attack is drawn ``runs`` times, with seeds from ``seed``. Numbers are (low) medians over the runs, and
    columns ``rank_…_best`` and ``rank_…_worst`` hold the extremes.

    Columns: size, voters, target; its rank by plain Bradley–Terry (rank_plain), with uncertainty weights
    (rank_weighted) and, if voters are known, with these weights after the audit (rank_ours); the same with
    ``leader_`` instead of ``rank_``; liars_flagged, others_flagged (only those not flagged before the attack),
    fake_votes_left (by weight after the audit). Rank 1 is the best. Attacks that need no target follow the leader of
    the original votes. Ranks and leaders are within the target's component of the comparison graph; a target not
    compared with any other item has no rank.

    >>> from fairduel.votes.attacking.liars import arena
    >>> votes, _ = arena(liars={}, seed=3)
    >>> stress(votes, "promote", "Maple", sizes=[0, 200], voters=4)["liars_flagged"].to_list()
    [0, 4]
    """
    leads = target is None and not needs_target(attack)
    followed = _leader(_plain(votes, ties), votes.components() == 0) if leads else item_index(votes, target)
    runs = integer("runs", runs, least=1)
    before = frozenset[str]()
    if votes.voter is not None:
        before = audit_voters(votes, level=level, duels_assigned=duels_assigned).flagged_names
    rows: list[dict[str, Any]] = []
    for size in sizes:
        found = []
        for each in range(seed, seed + (runs if size else 1)):
            among = max(1, min(voters, size))
            attacked = inject(votes, attack, votes.items[followed], size=size, voters=among, seed=each)
            found.append(
                {"voters": len(attacked.liars) if size else 0}
                | _outcome(attacked, followed, before, ties=ties, level=level, duels_assigned=duels_assigned)
            )
        rows.append({"size": size, "target": votes.items[followed]} | _typical(found))
        if progress:
            progress(1)
    return pl.DataFrame(rows, infer_schema_length=None)


def _typical(found: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the medians over the runs of an attack, and the extremes of the ranks; ``None`` comes last.

    >>> found = _typical([{"rank_ours": 2, "leader_ours": "a"}, {"rank_ours": None, "leader_ours": "a"}])
    >>> found["rank_ours"], found["rank_ours_best"], found["rank_ours_worst"]
    (2, 2, None)
    """
    typical: dict[str, Any] = {}
    for name in found[0]:
        values = sorted((row[name] for row in found), key=lambda value: (value is None, value or 0))
        typical[name] = values[(len(values) - 1) // 2]
        if name.startswith("rank_"):
            typical |= {f"{name}_best": values[0], f"{name}_worst": values[-1]}
    return typical


def _outcome(
    attacked: Injected, item: int, before: frozenset[str], *, ties: Ties, level: float, duels_assigned: bool
) -> dict[str, Any]:
    """Return the item's ranks after an attack, and whom the audit flagged that it did not ``before``."""
    votes, caught = attacked.votes, dict[str, float]()
    compared = _compared(votes, ties, item)
    fits = {"plain": (_plain(votes, ties), compared), "weighted": (_weighted(votes, ties), compared)}
    if votes.voter is not None:
        evidence = audit_voters(votes, level=level, duels_assigned=duels_assigned)
        weights = trusted_weights(votes, evidence, ties)
        fits["ours"] = _weighted(votes, ties, weights), _compared(votes.select(weights > 0.0), ties, item)
        names, liars = evidence.flagged_names, set(attacked.liars)
        caught = {
            "liars_flagged": len(names & liars),
            "others_flagged": len(names - liars - before),
            "fake_votes_left": float(weights[attacked.fake].sum()),
        }
    ranks: dict[str, Any] = {}
    for name, (scores, among) in fits.items():
        ranks[f"rank_{name}"] = rank_by_score(scores[among], int(among[:item].sum())) if among.sum() > 1 else None
        ranks[f"leader_{name}"] = votes.items[_leader(scores, among)]
    return caught | ranks


def summarise_stress(frame: pl.DataFrame, attack: str) -> list[str]:
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
        return [moved, "The attack gets no voter flagged."]
    liars = "" if attack in FLIPS else f"{worst['liars_flagged']} of {worst['voters']} simulated liars and "
    others = counted_noun(worst["others_flagged"], "voter" if attack in FLIPS else "other voter")
    rank = worst["rank_ours"]
    left = f"after the audit, {worst['target']} has " + (f"rank {rank}" if rank else "no rank")
    return [moved, f"The attack gets {liars}{others} flagged; {left}."]


def advise_on_stress(frame: pl.DataFrame) -> list[str]:
    """Recommend what to do about the attacks in the ``frame`` of :func:`stress`."""
    target, plain = frame["target"][0], frame["rank_plain"]
    if None in (plain[0], plain[-1]) or plain[0] == plain[-1]:
        return [f"The largest attack does not move {target}. Try more --votes, or another --attack."]
    moves = f"Without an audit, {counted_noun(_least(frame, 'rank_plain'), 'false vote')} can move {target}."
    if "rank_ours" not in frame.columns:
        return [moves, "Record who votes (a pseudonym is enough), so that an audit can find the liars."]
    if frame["rank_ours"][0] == frame["rank_ours"][-1]:
        return [moves, f"After the audit {target} keeps its rank, so publish the ranking after the audit as well."]
    return [
        f"{moves} After the audit, {_least(frame, 'rank_ours'):,} still can.",
        "Allow fewer votes per voter, make accounts cost something (a login, an invitation), or ask duels whose answer "
        "is known: each makes this attack dearer. fairduel cost finds the cheapest attack within such limits.",
    ]


def _least(frame: pl.DataFrame, column: str) -> int:
    """Return the size from which on the median rank is never again what it was before the attack."""
    same = [place for place, rank in enumerate(frame[column]) if rank == frame[column][0]]
    return int(frame["size"][same[-1] + 1])


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


def rank_by_score(scores: Vector, item: int) -> int:
    """Return the rank of an item among the scores, 1 for the best.

    >>> rank_by_score(np.array([0.1, 0.5, 0.3]), 2)
    2
    """
    return int((scores > scores[item]).sum()) + 1


def _compared(votes: Votes, ties: Ties, item: int) -> Mask:
    """Return which items are in the same component of the comparison graph as this one, shape (K,)."""
    component = votes.components(ties)
    return np.asarray(component == component[item])


def _leader(scores: Vector, among: Mask) -> int:
    return int(np.argmax(np.where(among, scores, -np.inf)))


def _plain(votes: Votes, ties: Ties) -> Vector:
    return fit_scores(wins(votes, ties=ties)).scores


def _weighted(votes: Votes, ties: Ties, weights: Vector | None = None) -> Vector:
    return rank(
        votes, ties=ties, reliability=weights, draws=100
    ).scores  # draws are for intervals, which are not used here
