"""Evidence that a voter's preferences are unlike honest voting, as for polls: e-values against the best honest voter.

An honest voter prefers the text of vote t with log-odds s·z_t + u·x_t. Here z_t is what a reward model predicts that
never saw the voter's votes, nor any on this prompt; s ≥ 0 is the voter's care; and u ~ N(0, τ²) is a taste of their own
for one thing in which texts differ: a statistic, a word, or a direction of meaning: x_t is 1 if the
preferred text has more of it, and −1 if the other has. Evidence is measured against the best s, u and thing, exactly as
in :mod:`fairduel.votes.auditing.null_model`, whose proof holds for each thing and so for the largest of them.

Three patterns are tested, and a voter's evidence is their mean:

- **inverts**: votes against what everyone else's votes predict (s < 0);
- **one side**: the text shown first, or second, nine times in ten or more (only if the sides are known);
- **taste**: the text with more of one thing, or with less, nine times in ten or more (averaged over things: half of
  the weight is on statistics, half on words).

τ is an upper bound from all voters, of whom some may vote one way only. Voters with at least ten votes are flagged by
e-BH at the level; the votes of others could hardly reach the evidence that a flag needs.
"""

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from fairduel.checks import fraction
from fairduel.duel import Matrix, Vector
from fairduel.errors import BadInputError
from fairduel.votes.auditing.campaign import LEAST_DUELS, over_targets, pushing
from fairduel.votes.auditing.collusion import e_bh, no_pairs
from fairduel.votes.auditing.known_answers import KnownAnswers
from fairduel.votes.auditing.null_model import SLOPES, best_with_taste, log_mean, taste_size
from fairduel.votes.auditing.voter_columns import LOG_10
from fairduel.votes.auditing.voters import INVERTED, Evidence, wilson, with_known
from fairduel.votes.rewards.pairs import PreferencePairs
from fairduel.votes.rewards.text_statistics import STATISTICS
from fairduel.votes.votes import Indices, Mask, sums

DIRECTIONS = 8
"""Principal directions of the embeddings for which voters may have a taste."""
_LYING = (0.02, 0.1, 0.2, 0.3, 0.4)  # shares of voters who may vote one way only
_LEAST_SEEN = 0.01  # share of votes in which the texts must differ in a thing
LEAST_VOTES = 10
"""Votes of a voter who can be flagged by them."""
_WORD_TASTE = 1.0  # τ of words, of which each voter sees too few to measure it


class Traits(NamedTuple):
    """Things in which the two texts of a vote can differ."""

    names: tuple[str, ...]
    """What somebody likes who prefers more of each, then what somebody likes who prefers less, (2k,)."""
    along: sparse.csc_array
    """1 where the preferred text has more of it, −1 where the other has, shape (n, k)."""
    taste: Vector
    """τ of each, shape (k,)."""
    named: Mask
    """Whether people can see what it is, shape (k,): directions of meaning have no name."""


def traits_of(pairs: PreferencePairs, z: Vector) -> Traits:
    """Return the things in which texts differ, with the size of voters' tastes for each, given ``z`` (n,)."""
    assert pairs.voter is not None
    looks = np.sign(pairs.looks)
    directions = np.sign(_directions(pairs.meaning))
    dense = np.hstack([looks, directions]).astype(np.float64)
    columns, names, tastes, named = list[Any](), list[tuple[str, str]](), list[float](), list[bool]()
    for place, along in enumerate(dense.T):
        seen = along != 0.0
        if seen.mean() < _LEAST_SEEN:
            continue
        columns.append(sparse.csc_array(along[:, None]))
        is_look = place < len(STATISTICS)
        names.append(STATISTICS[place][1:3] if is_look else ("a direction of meaning", "its opposite"))
        named.append(is_look)
        tastes.append(taste_size(pairs.voter[seen], (z * along)[seen], along[seen], lying=_LYING))
    counts = np.asarray(abs(pairs.words).sum(axis=0)).ravel()
    words = np.flatnonzero(counts >= LEAST_DUELS)
    for word in words:
        name = pairs.word_names[word]
        is_model = name.startswith("answers of ")
        names.append((name, f"no {name}") if is_model else (f"texts with “{name}”", f"texts without “{name}”"))
    along = sparse.hstack([*columns, pairs.words[:, words]], format="csc")
    taste = np.concatenate([tastes, np.full(len(words), _WORD_TASTE)])
    flat = (*(more for more, _ in names), *(less for _, less in names))
    return Traits(flat, sparse.csc_array(along), taste, np.concatenate([named, np.ones(len(words), np.bool_)]))


def _directions(meaning: Matrix) -> Matrix:
    """Return the differences along their principal directions, (n, 8 or fewer)."""
    second = (meaning.T @ meaning).astype(np.float64)
    values, vectors = np.linalg.eigh(second)
    kept = vectors[:, values > 1e-9 * max(float(values.max(initial=0.0)), 1e-300)][:, ::-1][:, :DIRECTIONS]
    return np.asarray(meaning @ kept.astype(meaning.dtype))


def preference_evidence(
    pairs: PreferencePairs,
    z: Vector,
    *,
    level: float = 0.05,
    known: KnownAnswers | None = None,
    traits: Traits | None = None,
) -> Evidence:
    """Gather the evidence on every voter, and flag those with enough of it at ``level``.

    Args:
        pairs: The preferences, which must name their voters.
        z: How much everyone else's votes favour the preferred text of each vote, in log-odds, shape ``(n,)``.
        level: Maximum probability of any flag if all voters are honest.
        known: How voters answered pairs whose better text is known.
        traits: What :func:`traits_of` returns, if known.

    Returns:
        The evidence on each voter; its items are the things for which voters may have a taste.
    """
    fraction("level", level)
    if pairs.voter is None:
        raise BadInputError("the votes do not say who voted: name the voter column (--voter).")
    voter, voters = pairs.voter.astype(np.int64), len(pairs.voters)
    traits = traits_of(pairs, z) if traits is None else traits
    cast = np.bincount(voter, minlength=voters)
    log_evidence = {"inverts": _inverts(voter, voters, z, traits)}
    if pairs.first_won is not None:
        log_evidence["one side"] = _one_side(voter, voters, z, pairs.first_won)
    log_evidence["taste"], strongest, pushed, met = _tastes(voter, voters, z, traits)
    answered = np.array([(known or {}).get(name, (0, 0)) for name in pairs.voters], dtype=np.int64).reshape(-1, 2)
    enough = cast >= LEAST_VOTES
    total = with_known(log_mean(np.stack(list(log_evidence.values()))), answered, enough)
    judged, flagged = enough | (answered[:, 1] > 0), np.zeros(voters, dtype=np.bool_)
    flagged[judged], needed = e_bh(total[judged], level)
    agreed = sums(voter, voters, (z > 0.0) + 0.5 * (z == 0.0))
    with np.errstate(invalid="ignore"):
        agreement = agreed / cast
    why = [""] * voters
    for number in np.flatnonzero(flagged):
        kind = max(log_evidence, key=lambda name: float(log_evidence[name][number]))
        right, of = answered[number].tolist()
        if kind == "taste":
            why[number] = (
                f"chose {traits.names[strongest[number]]} in {pushed[number]:,.0f} of {met[number]:,.0f} votes"
            )
        elif kind == "one side" and pairs.first_won is not None:
            first = int(sums(voter, voters, pairs.first_won)[number])
            side, chosen = max(("first", first), ("second", int(cast[number]) - first), key=lambda each: each[1])
            why[number] = f"chose the {side} of the two texts in {chosen:,} of {cast[number]:,} votes"
        elif log_evidence[kind][number] > 0.0 or not of:
            why[number] = f"agrees with everyone else in only {agreement[number]:.0%} of {cast[number]:,} votes"
        else:
            why[number] = f"answered {right:,} of {of:,} pairs with a known answer right"
    settings = {
        "level": level,
        "flags": "voters, by e-BH at the level",
        "needed_log10_evidence": (needed if judged.any() else np.log(1.0 / level)) / LOG_10,
        "voters_tested": int(judged.sum()),
        "voters_not_tested": int((~judged).sum()),
        "needed_votes": LEAST_VOTES,
        "duels_assigned": False,
        "voters_who_choose_their_duels": 0,
        "winner_stays": False,
        "sides_known": pairs.first_won is not None,
        "tastes": dict(zip(traits.names, traits.taste.tolist(), strict=False)),
    }
    return Evidence(
        items=traits.names,
        voters=pairs.voters,
        votes=cast,
        decisive=cast,
        agreement=agreement,
        agreement_interval=wilson(agreed, cast),
        log_evidence=log_evidence,
        total=total,
        flagged=flagged,
        why=tuple(why),
        target=np.where(log_evidence["taste"] > 0.0, strongest, -1),
        known=answered,
        seconds=np.full(voters, np.nan),
        clock_step=np.nan,
        pairs=no_pairs(compared=False),
        crowd=None,
        settings=settings,
    )


def _weights(named: Mask, taste: Vector) -> Vector:
    """Return how much each thing counts among the tastes, shape (k,): 1 in all, 0 for what has no name."""
    words = named & (taste == _WORD_TASTE)
    groups = [group for group in (named & ~words, words) if group.any()]
    return np.asarray(sum(group / (group.sum() * len(groups)) for group in groups))


def _inverts(voter: Indices, voters: int, z: Vector, traits: Traits) -> Vector:
    """Return the log-evidence for s < 0, shape (V,), against the best care and taste for any one thing."""
    lying = log_mean(np.stack([sums(voter, voters, -np.logaddexp(0.0, slope * z)) for slope in INVERTED]))
    honest = np.max([sums(voter, voters, -np.logaddexp(0.0, -slope * z)) for slope in SLOPES], axis=0)
    doubted = lying > honest  # tastes can only excuse
    if doubted.any():
        numbers = np.cumsum(doubted) - 1
        theirs = doubted[voter]
        place, count = numbers[voter[theirs]], int(doubted.sum())
        rows, best = traits.along[theirs], honest[doubted]
        for thing, taste in enumerate(traits.taste):
            along = np.asarray(rows[:, [thing]].toarray()).ravel().astype(np.float64)
            if along.any():
                best = np.maximum(best, best_with_taste(place, count, z[theirs], along, taste))
        honest[doubted] = best
    return np.asarray(lying - honest)


def _one_side(voter: Indices, voters: int, z: Vector, first_won: Mask) -> Vector:
    """Return the log-evidence that a voter goes by the side alone, shape (V,): the mean over first and second."""
    along = np.where(first_won, 1.0, -1.0)
    first, cast = sums(voter, voters, first_won), sums(voter, voters)
    taste = taste_size(voter, z * along, along)
    honest = best_with_taste(voter, voters, z, along, taste)
    one_way = np.logaddexp(pushing(first, cast), pushing(cast - first, cast))
    return np.asarray(one_way - np.log(2.0) - honest)


def _tastes(voter: Indices, voters: int, z: Vector, traits: Traits) -> tuple[Vector, Indices, Vector, Vector]:
    """Return the log-evidence that a voter goes by one thing alone, (V,), and which is likeliest.

    Of the things that people can name: which (of 2k, the second half for less of it), in how many votes the voter chose
    it, and of how many, each (V,). Cells of voter and thing in which even a voter without taste explains the votes
    better count as E = 0.
    """
    table = traits.along.tocoo()
    row, thing, along = table.coords[0], table.coords[1], table.data.astype(np.float64)
    count = traits.along.shape[1]
    keys, place = np.unique(voter[row] * count + thing, return_inverse=True)
    wins, met = sums(place, len(keys), along > 0.0), sums(place, len(keys))
    right = z[row]
    least = np.maximum(sums(place, len(keys), -np.logaddexp(0.0, -right)), -met * np.log(2.0))
    up, down = pushing(wins, met), pushing(met - wins, met)
    doubted = (np.maximum(up, down) > least) & (met >= LEAST_DUELS) & traits.named[keys % count]
    total, best = np.full(voters, -np.inf), np.zeros(voters, dtype=np.int64)
    pushed, seen = np.zeros(voters), np.zeros(voters)
    if not doubted.any():
        return total, best, pushed, seen
    theirs = doubted[place]
    numbers = (np.cumsum(doubted) - 1)[place[theirs]]
    cells = keys[doubted]
    honest = best_with_taste(numbers, len(cells), right[theirs], along[theirs], traits.taste[cells % count])
    up, down, wins, met = up[doubted] - honest, down[doubted] - honest, wins[doubted], met[doubted]
    whose, which = cells // count, cells % count
    share = np.log(_weights(traits.named, traits.taste)[which])
    total = over_targets(whose, np.logaddexp(up, down) + share, voters=voters, targets=2)
    order = np.argsort(np.maximum(up, down), kind="stable")
    more = up[order] >= down[order]
    best[whose[order]] = np.where(more, which[order], which[order] + count)
    pushed[whose[order]] = np.where(more, wins[order], met[order] - wins[order])
    seen[whose[order]] = met[order]
    return total, best, pushed, seen
