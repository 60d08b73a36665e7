"""Groups: voters who push the same item, crowds of occasional voters, and pairs whose votes are too similar.

What is guaranteed, and under which assumptions:

- ``shared_evidence``: for every voter v, Σ_k ω_k E_vk with weights ω computed from the *other* voters' evidence. Given
  the others, the weights are fixed, so this is an e-value of v like any other; it only looks harder at the targets that
  others push. (The others' evidence was measured against a consensus that includes v's own small contribution, which is
  not removed again.)
- ``find_crowd``: all voters with few votes are treated as one person. Evidence that this person likes an item more, or
  less, than the others do is an e-value, if tastes do not depend on how often people vote. How often the crowd saw the
  item does not count: many come for a new item. The evidence is on the crowd, never on its members.
- ``alike_pairs``: the null hypothesis is that the two vote independently and agree on duels as often as any two voters
  do, up to a tendency of the pair whose size is estimated from all pairs. Pairs are found by e-BH; two versions of one
  judge are such a pair.
"""

from dataclasses import dataclass

import numpy as np
from scipy import special

from fairduel.duel import Vector
from fairduel.votes.auditing.campaign import LEAST_DUELS, Push
from fairduel.votes.auditing.null_model import (
    Decisive,
    best_honest,
    consensus,
    consensus_variance,
    log_mean,
    taste_size,
)
from fairduel.votes.votes import Indices, Mask, Votes, connected, distinct_duels, sums

_SHARES = (0.01, 0.05, 0.2)  # π: share of voters who may push one target
_LEAST_SHARED = 6  # duels; (1 / 0.5)^5 is too little evidence among thousands of pairs
OCCASIONAL = (4, 16)
"""Vote limits of occasional voters, about whom too little is known individually. A crowd is tried for each limit."""
_MOST_COINCIDENCES = 5_000_000
_COPY = (0.9, 0.99)  # how often copied votes agree
_SHIFTS = (1.0, 2.0, 4.0)  # log-odds by which a crowd may like an item more, or less, than the others do
_CARES = (0.0, 1.0)  # s of such a crowd
_BATCH = 4_000_000


def e_bh(log_evidence: Vector, level: float) -> tuple[Mask, float]:
    """Flag by the e-Benjamini–Hochberg rule; return the flags (n,) and the log-evidence that a flag needs.

    Let R be the largest r for which the r-th largest E is at least n/(level·r); the R largest are flagged. The expected
    share of false flags is at most ``level``, however the e-values depend on each other. If all voters are honest, the
    probability of any flag is at most ``level`` too.

    >>> e_bh(np.log([500.0, 300.0, 1.0, 0.2]), 0.05)[0].tolist()
    [True, True, False, False]
    """
    count = len(log_evidence)
    if count == 0:
        return np.zeros(0, dtype=np.bool_), np.inf
    needed = np.log(count / (level * np.arange(1, count + 1)))
    enough = np.flatnonzero(np.sort(log_evidence)[::-1] >= needed)
    bar = float(needed[enough[-1]] if len(enough) else needed[0])
    return log_evidence >= bar, bar


def shared_evidence(voter: Indices, target: Indices, log_evidence: Vector, *, voters: int, targets: int) -> Vector:
    """Return log Σ_k ω_k E_vk, shape (voters,), where ω_k ∝ mean over π of Π_{u≠v} (1 − π + π E_uk).

    The cells (c,) hold E_vk of the voters who saw target k; for all others, E = 0. If voters vote independently and the
    consensus is taken as known, the product is an e-value against "none of the others pushes target k".
    """
    shares, absent = np.array(_SHARES)[:, None], voters - sums(target, targets)
    own = np.logaddexp(np.log1p(-shares), np.log(shares) + log_evidence)  # (shares, c)
    products = np.stack([sums(target, targets, each) for each in own]) + absent * np.log1p(-shares)  # (shares, targets)
    result = np.full(voters, -np.inf)
    order = np.argsort(voter, kind="stable")
    starts = np.searchsorted(voter[order], np.arange(voters + 1))
    batch = max(1, _BATCH // (targets * len(_SHARES)))
    for begin in range(0, voters, batch):
        cells = order[starts[begin] : starts[min(begin + batch, voters)]]
        if not len(cells):
            continue
        here, place = np.unique(voter[cells], return_inverse=True)
        others = np.repeat((products - np.log1p(-shares))[:, None, :], len(here), axis=1)  # (shares, here, targets)
        others[:, place, target[cells]] = products[:, target[cells]] - own[:, cells]
        weight = log_mean(others)
        weight -= special.logsumexp(weight, axis=1, keepdims=True)
        np.logaddexp.at(result, here[place], weight[place, target[cells]] + log_evidence[cells])
    return result


@dataclass(frozen=True, eq=False)
class Crowd:
    """Occasional voters, treated as one."""

    most: int
    """Maximum number of votes of each member."""
    voters: Mask
    """Who the members are, shape (V,)."""
    log_evidence: float
    """Log-evidence that they differ from the others on some item."""
    push: Push
    """The item on which they differ most, and how."""
    differs: tuple[Push, ...]
    """Every item on which they differ with enough evidence; empty if there is none."""

    def vote_weights(self, votes: Votes, weight: Vector) -> Vector:
        """Return by how much the votes, each with a ``weight`` (n,), count less because this crowd differs, shape (n,).

        All of its votes on an item in ``differs`` get the same factor, whatever they say. The crowd is tested as one
        person, and so it counts as one: as much as the other voters on the item do on average, if that is at most ½√N,
        where N is the weight of their votes. It then moves the item's share of wins by less than ½/√N, the standard
        error of the others' share.
        """
        result, theirs = np.ones(len(votes)), self.voters[votes.cast_by]
        for push in self.differs:
            on_item = (votes.first == push.item) | (votes.second == push.item)
            inside, others = float(weight[on_item & theirs].sum()), on_item & ~theirs & (weight > 0.0)
            outside, people = float(weight[others].sum()), len(np.unique(votes.cast_by[others]))
            allowed = min(outside / max(people, 1), 0.5 * np.sqrt(outside))
            result[on_item & theirs] *= min(1.0, allowed / max(inside, 1e-12))
        return result


def find_crowd(
    votes: Votes, decisive: Decisive, left_out: Mask, *, most: int, taste: float, level: float
) -> Crowd | None:
    """Test whether the voters with at most ``most`` votes differ on an item; None if there are none, or no others.

    The consensus is that of the others, except the voters ``left_out`` (V,). The mean taste of m voters has variance
    τ²/m. Once the evidence reaches 1/``level``, the item is set aside and the rest is tested again.
    """
    cast = np.bincount(votes.cast_by, minlength=decisive.voters)
    occasional = (cast <= most) & (cast > 0)
    inside = occasional[decisive.voter]
    if not inside.any() or not (~inside & ~left_out[decisive.voter]).any():
        return None
    z = consensus(decisive, left_out | occasional, only_left_out=True)[inside]
    members = decisive.select(inside)
    variance = taste**2 / _effective_voters(members) + _variance_of_others(decisive, left_out, occasional, taste)
    top, evidence = push, left = _crowd_push(members, z, variance)
    if top is None:
        return None
    differs: list[Push] = []
    while push is not None and left >= -np.log(level):
        differs.append(push)
        rest = (members.first != push.item) & (members.second != push.item)
        members, z = members.select(rest), z[rest]
        push, left = _crowd_push(members, z, variance)
    return Crowd(most, occasional, evidence, top, tuple(differs))


def _crowd_push(members: Decisive, z: Vector, variance: Vector) -> tuple[Push | None, float]:
    """Return the item on which the members' votes differ most from z (n,), and the log-evidence over all items.

    It compares log-odds s·z + δ with the best honest ones, averaged over s, δ, both directions and all K items;
    ``variance`` (K,) is that of the members' mean taste.
    """
    count = members.items
    item, logit = np.concatenate([members.first, members.second]), members.sides(z)
    sign, duels = members.sides(members.sign), sums(item, count)
    enough = np.tile(duels >= LEAST_DUELS, 2)
    if not enough.any():
        return None, -np.inf
    honest = best_honest(item, count, logit, sign, np.sqrt(variance))

    def liking(way: float) -> Vector:
        each = [sign * (care * logit + way * shift) for care in _CARES for shift in _SHIFTS]
        return log_mean(np.stack([sums(item, count, -np.logaddexp(0.0, -right)) for right in each])) - honest

    both = np.where(enough, np.concatenate([liking(1.0), liking(-1.0)]), -np.inf)
    best = int(np.argmax(both))
    top, is_up = best % count, best < count
    here = item == top
    push = Push.of(
        top,
        up=is_up,
        duels=duels[top],
        wins=float((sign[here] > 0).sum()),
        expected=float(special.expit(logit[here]).sum()),
    )
    return push, float(special.logsumexp(both) - np.log(len(both)))


@dataclass(frozen=True, eq=False)
class AlikePairs:
    """Pairs of voters with enough shared duels to be compared, the most similar first."""

    one: Indices
    other: Indices
    shared: Indices
    """Number of duels both voted on, shape (p,)."""
    same: Indices
    """Number of those with the same answer, shape (p,)."""
    expected: Vector
    """Number expected for any two voters, shape (p,)."""
    log_evidence: Vector
    flagged: Mask
    """Whether the two differ from two independent voters with enough evidence, shape (p,)."""
    compared: bool
    """False if so many voters share duels that comparing all pairs would take too long."""

    def repeated(self, votes: Votes) -> Mask:
        """Return which votes repeat those of a near-identical voter on the same duel, shape (n,).

        The first of them in the list of voters keeps their votes, whatever they say.
        """
        group = connected(self.one[self.flagged], self.other[self.flagged], len(votes.voters)).astype(np.int64)
        result = np.zeros(len(votes), dtype=np.bool_)
        among = np.flatnonzero((np.bincount(group)[group] > 1)[votes.cast_by])
        context = None if votes.context is None else votes.context[among]
        duel = distinct_duels(votes.first[among], votes.second[among], len(votes.items), context)[3]
        voter = votes.cast_by[among].astype(np.int64)
        _, place = np.unique(duel * len(votes.voters) + group[voter], return_inverse=True)
        keeper = np.full(place.max(initial=-1) + 1, len(votes.voters))
        np.minimum.at(keeper, place, voter)
        result[among] = voter != keeper[place]
        return result


def alike_pairs(votes: Decisive, z: Vector, *, level: float) -> AlikePairs:
    """Compare all pairs of voters who share at least six duels; z (n,) comes from ``null_model.consensus``.

    A shared duel has the same two items in the same context. How often any two voters agree is measured by how clear
    the duel is, in ten classes of |z|.
    """
    duels, _, _, duel, turned = distinct_duels(votes.first, votes.second, votes.items, votes.context)
    _, kept = np.unique(duel * votes.voters + votes.voter, return_index=True)  # first vote of each voter per duel
    busy = np.bincount(votes.voter[kept], minlength=votes.voters) >= _LEAST_SHARED
    kept = kept[busy[votes.voter[kept]]]  # in the order of the duels
    sizes = np.bincount(duel[kept], minlength=len(duels))
    if float((sizes.astype(np.float64) ** 2).sum()) > 2.0 * _MOST_COINCIDENCES:
        return no_pairs(compared=False)
    one, other = _meetings(sizes)
    one, other = kept[one], kept[other]
    keys = votes.voter[one] * votes.voters + votes.voter[other]
    pairs, pair, shared = np.unique(keys, return_inverse=True, return_counts=True)
    enough = (shared >= _LEAST_SHARED)[pair]
    if not enough.any():
        return no_pairs(compared=True)
    for_low = np.where(turned, -votes.sign, votes.sign)
    agree = for_low[one] == for_low[other]
    clear = np.abs(z[one]) + np.abs(z[other])
    edges = np.quantile(clear, np.linspace(0.1, 0.9, 9))
    bin_of = np.searchsorted(edges, clear)
    rate = (np.bincount(bin_of, agree, 10) + 1.0) / (np.bincount(bin_of, minlength=10) + 2.0)
    chance = rate[bin_of][enough]
    agree, pair = agree[enough], pair[enough]
    pairs, pair = pairs[np.unique(pair)], np.unique(pair, return_inverse=True)[1]
    sign, logit, count = np.where(agree, 1.0, -1.0), special.logit(chance), len(pairs)
    honest = best_honest(pair, count, logit, sign, taste_size(pair, logit, sign), slopes=(1.0,))
    met, same = np.bincount(pair, minlength=count), np.bincount(pair, agree, count)
    copied = log_mean(np.stack([same * np.log(p) + (met - same) * np.log1p(-p) for p in _COPY]))
    order = np.argsort(honest - copied, kind="stable")
    evidence = (copied - honest)[order]
    return AlikePairs(
        one=(pairs // votes.voters)[order],
        other=(pairs % votes.voters)[order],
        shared=met[order],
        same=same[order].astype(np.int64),
        expected=sums(pair, count, chance)[order],
        log_evidence=evidence,
        flagged=e_bh(evidence, level)[0],
        compared=True,
    )


def _effective_voters(votes: Decisive) -> Vector:
    """Return (Σ_v n_vk)² / Σ_v n_vk² for each item k, shape (K,): m if m voters cast equally many votes on it."""
    cells, place = votes.cells
    cast, item = sums(place, len(cells)), cells % votes.items
    total, squares = sums(item, votes.items, cast), sums(item, votes.items, cast**2)
    return np.asarray(np.maximum(total**2 / np.maximum(squares, 1.0), 1.0))


def _variance_of_others(votes: Decisive, left_out: Mask, occasional: Mask, taste: float) -> Vector:
    """Return the variance of everyone else's score, shape (K,), for items seen by occasional voters; 0 for the rest."""
    cells, _ = votes.cells
    variance = consensus_variance(votes, ~(left_out | occasional)[votes.voter], taste)
    theirs = occasional[cells // votes.items]
    result = np.zeros(votes.items)
    result[cells[theirs] % votes.items] = variance[theirs]
    return result


def _meetings(sizes: Indices) -> tuple[Indices, Indices]:
    """Return all pairs of indices within consecutive blocks of these sizes."""
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    ones, others = [], []
    for size in np.unique(sizes[sizes > 1]):
        one, other = np.triu_indices(size, k=1)
        begin = starts[sizes == size][:, None]
        ones.append((begin + one).ravel())
        others.append((begin + other).ravel())
    none = np.zeros(0, dtype=np.int64)
    return np.concatenate([none, *ones]), np.concatenate([none, *others])


def no_pairs(*, compared: bool) -> AlikePairs:
    """Return no pairs, and whether any were compared."""
    counts, numbers = np.zeros(0, dtype=np.int64), np.zeros(0)
    return AlikePairs(counts, counts, counts, counts, numbers, numbers, numbers > 0.0, compared=compared)
