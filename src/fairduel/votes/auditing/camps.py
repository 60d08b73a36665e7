"""Camps: voters whose votes follow another pattern than everyone else's, how many they are, and how votes count then.

A camp is a description, never an accusation: no statistics can tell people who lie from people who disagree. The voters
are fitted with :mod:`fairduel.votes.auditing.mixture`. Camps with an order of their own are added one at a time, as
long as the evidence (Laplace's approximation to the marginal likelihood) grows; everyone else must remain the majority
of the regular voters. Camps that only vote against the others, for or against one item, for one side, or like a coin
flip have few parameters: they are described if the votes are much less likely without them.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy import sparse, special
from scipy.sparse.linalg import svds

from fairduel.core.blas import one_thread
from fairduel.duel import Matrix, Vector
from fairduel.votes.auditing.mixture import (
    ABILITIES,
    CAMP_RIDGE,
    RIDGE,
    Ballots,
    Fitted,
    Members,
    Model,
    first_model,
    fit_mixture,
    fit_of,
    hessian_of_order,
    log_likelihoods,
    margins,
    objective,
    shared_taste,
    taste_variance,
    unweighted_scores,
    variance_of,
)
from fairduel.votes.auditing.reliability import mostly_ignored, reliability_of, trust_in_crowd
from fairduel.votes.given import takes_votes
from fairduel.votes.votes import Indices, Ties, Votes, sums
from fairduel.words import counted_noun

if TYPE_CHECKING:
    from fairduel.votes.auditing.voters import Evidence


_MOST_CAMPS, _MOST_ITEMS = 3, 1000
_CONVINCING = 2.0  # log-evidence for one more order; in honest populations it is below −10
_SEARCHED = 60_000  # votes: with more, camps are searched for among some of the voters
_FEW_ROUNDS, _LAST_ROUNDS = 8, 3  # of EM, from a fit of all votes, or of some of the voters
_SHARPNESS = 4.0
_AGAINST = np.flatnonzero(ABILITIES < 0.0).tolist()
_OFTEN_AGAINST = 0.1  # share of voters against everyone's order from which it may be the wrong way round
_TRUSTED = 0.5
LEAST_VOTERS = 2.0
"""The smallest camp."""


def fit_camps(ballots: Ballots, weight: Vector) -> Fitted:
    """Fit the mixture with as many camps as the evidence supports."""
    if len(ballots.voter) <= _SEARCHED:
        return _with_camps(ballots, weight)
    cast = np.bincount(ballots.voter, minlength=ballots.voters)
    drawn = np.random.default_rng(0).permutation(ballots.voters)
    chosen = np.zeros(ballots.voters, dtype=np.bool_)
    chosen[drawn[np.cumsum(cast[drawn]) <= _SEARCHED]] = True
    some = _with_camps(ballots.of_voters(chosen), weight[chosen[ballots.voter]])
    return fit_mixture(ballots, weight, some.model, rounds=_LAST_ROUNDS, warm_up=_LAST_ROUNDS)


def _without_crowds(ballots: Ballots, weight: Vector, fitted: Fitted) -> Fitted:
    """Return the fit with scores from votes that count less where a crowd of occasional voters pushes an item.

    The crowd is known from the first fit, and its own votes shall not decide what others are compared with.
    """
    trust = trust_in_crowd(ballots, fitted.members)
    if trust.min() > _TRUSTED:
        return fitted
    again = fit_mixture(ballots, weight * trust, fitted.model, rounds=_FEW_ROUNDS)
    return fit_of(ballots, weight, again.model._replace(crowd_odds=fitted.model.crowd_odds), again.members)


def _with_camps(ballots: Ballots, weight: Vector) -> Fitted:
    best = _upright(ballots, weight, fit_mixture(ballots, weight, first_model(ballots)))
    if ballots.items > _MOST_ITEMS:
        return best
    evidence = evidence_of_camps(ballots, weight, best)
    for _ in range(_MOST_CAMPS):
        tried = [fit_mixture(ballots, weight, first_model(ballots, camps)) for camps in _starts(ballots, weight, best)]
        if not tried:
            break
        found, next_fit = max(((evidence_of_camps(ballots, weight, fit), fit) for fit in tried), key=itemgetter(0))
        if not is_majority(ballots, weight, next_fit):  # everyone's order is the largest camp's then
            next_fit = fit_mixture(ballots, weight, first_model(ballots, _largest_first(ballots, weight, next_fit)))
            found = evidence_of_camps(ballots, weight, next_fit)
        if found < evidence + _CONVINCING or not is_majority(ballots, weight, next_fit):
            break
        best, evidence = next_fit, found
    return best


def _upright(ballots: Ballots, weight: Vector, fitted: Fitted) -> Fitted:
    """Return the fit, or one from the opposite order if that explains the votes better.

    If many vote against each other, EM can take the order of the busier ones for everyone's.
    """
    if fitted.model.shares[_AGAINST].sum() < _OFTEN_AGAINST:
        return fitted
    reversed_model = first_model(ballots)._replace(scores=-fitted.model.scores)
    other = fit_mixture(ballots, weight, reversed_model)
    better = objective(ballots, weight, other.model) - objective(ballots, weight, fitted.model)
    return other if better > _CONVINCING else fitted


def evidence_of_camps(ballots: Ballots, weight: Vector, fitted: Fitted) -> float:
    """Return the log marginal likelihood, up to a constant: the objective − ½ Σ_g log det(H_g / λ)."""
    model, total = fitted.model, objective(ballots, weight, fitted.model)
    for number, scores in enumerate(model.scores):
        share, ridge = _camp_share(fitted, number), CAMP_RIDGE if number else RIDGE
        slope = weight * share[ballots.voter] * variance_of(margins(ballots, scores))
        total -= 0.5 * (np.linalg.slogdet(hessian_of_order(ballots, slope, ridge))[1] - ballots.items * np.log(ridge))
    return float(total)


def _camp_share(fitted: Fitted, number: int) -> Vector:
    """Return with which probability voters have order ``number`` (0 is everyone's), (V,)."""
    if number:
        return memberships_of(fitted.model, fitted.members)[:, number - 1]
    return np.asarray(fitted.members.classes[:, : len(ABILITIES)] @ (ABILITIES > 0.0))


def _starts(ballots: Ballots, weight: Vector, fitted: Fitted) -> Iterator[Matrix]:
    """Yield memberships (V, G + 1) to start from: the old camps, and either end of the direction of largest misfit.

    The direction is the first singular vector of the voters' residuals on each item, given the order that each has.
    """
    old = memberships_of(fitted.model, fitted.members)
    shares = np.column_stack([1.0 - old.sum(axis=1), old])[ballots.voter]
    orders = np.stack([margins(ballots, scores) for scores in fitted.model.scores], axis=1)
    chance = (shares * special.expit(orders)).sum(axis=1)
    misfit = ballots.per_cell(weight * (ballots.result - chance))
    slope = weight * chance * (1.0 - chance)
    information = sums(ballots.cell_voter, ballots.voters, ballots.per_cell(slope, sign=1.0))
    misfit /= np.sqrt(np.maximum(information[ballots.cell_voter], 1.0))
    misfit *= ~ballots.occasional[ballots.cell_voter]
    if min(ballots.voters, ballots.items) < 3 or not misfit.any():
        return
    table = sparse.csr_array((misfit, (ballots.cell_voter, ballots.cell_item)), shape=(ballots.voters, ballots.items))
    direction: Vector = svds(table, k=1, random_state=0)[0][:, 0]
    direction /= np.sqrt(np.mean(direction[direction != 0.0] ** 2))
    for sign in (1.0, -1.0):
        new = special.expit(_SHARPNESS * (sign * direction - 1.0)) * ~ballots.occasional
        if new.sum() >= LEAST_VOTERS:
            yield np.column_stack([old * (1.0 - new)[:, None], new])


def memberships_of(model: Model, found: Members) -> Matrix:
    """Return with which probability voters are in each camp, (V, G)."""
    return found.classes[:, found.classes.shape[1] - model.camps :]


def _largest_first(ballots: Ballots, weight: Vector, fitted: Fitted) -> Matrix:
    """Return the memberships (V, G) in which the largest camp has changed places with everyone else."""
    memberships = memberships_of(fitted.model, fitted.members).copy()
    rest = np.maximum(1.0 - memberships.sum(axis=1), 0.0) * ~ballots.occasional
    memberships[:, int(np.argmax(_masses(ballots, weight, fitted))) - 1] = rest
    return memberships


def _masses(ballots: Ballots, weight: Vector, fitted: Fitted) -> Vector:
    """Return how many votes of regular voters belong to everyone, and to each camp, (1 + G,)."""
    mass, camps = ballots.per_voter(weight) * ~ballots.occasional, memberships_of(fitted.model, fitted.members)
    return np.concatenate([[mass @ (1.0 - camps.sum(axis=1))], mass @ camps])


def is_majority(ballots: Ballots, weight: Vector, fitted: Fitted) -> bool:
    """Whether everyone's order has more votes than any camp's."""
    return int(np.argmax(_masses(ballots, weight, fitted))) == 0


_CLEAR = 8.0  # fall of the log-likelihood without a camp that is not an order
_CLEAR_EACH = 3.5  # the same per regular voter who pushes an item: more than a strong taste for it explains
_LEAST_TASTE, _MOST_TASTE = 0.25, 1.0  # τ²
_ONE_SIDED = 2.0  # an item divides the voters, unless those who push it one way are this many times as many
_OPPOSED = (
    -0.5
)  # correlation of an order with everyone else's: above that, it is another order rather than its opposite
_IDENTIFIED, _MEMBER = 0.5, 0.5
_HARDLY, _COIN = 0.45, 0.53  # of the usual ability, and of votes that others predict: like a coin flip, about
_SIDES = {len(ABILITIES): "first", len(ABILITIES) + 1: "second"}
_NEARLY = 2 / 3  # as large as the rest
_ON_TRUTH = "No statistics can tell people who vote falsely from people who disagree."
_ABOUT_CAMPS = (
    "Find out who they are (voters.csv), publish both rankings, and ask duels whose answer is known: only those can "
    "show who answers carelessly."
)

Kind = Literal["order", "against", "push", "side", "chance", "rule"]
_MAY_BE: dict[tuple[Kind, ...], str] = {
    ("order", "against", "push", "rule"): "A camp may be fans, another audience, or accounts that vote falsely.",
    ("chance",): "Voters whom the rest hardly predict may be careless, or have tastes that few share.",
    ("side",): "Voters who choose one side in nearly all duels may not look at the items.",
}


@dataclass(frozen=True, eq=False)
class Camp:
    """Voters whose votes follow one pattern that everyone else's do not.

    Args:
        kind: An ``"order"`` of their own, ``"against"`` the others, a ``"push"`` of an item, for one ``"side"``, like
            ``"chance"``, or by a ``"rule"`` about what texts look like.
        membership: The probability that a voter belongs to it, shape ``(V,)``.
        voters: How many voters voted at all.
        order: Their own order of the items, best first; empty if they have none.
        agreement: Share of their votes that everyone else's order predicts.
        target: The item that they push, the side ("first" or "second"), or what their rule prefers; otherwise empty.
        up: Whether they vote for the item.
        resemblance: Correlation of the scores of their own order, if they have one, with everyone else's.
    """

    kind: Kind
    membership: Vector
    voters: int
    order: tuple[str, ...]
    agreement: float
    target: str = ""
    up: bool = True
    resemblance: float = 0.0

    @property
    def size(self) -> int:
        """Number of voters in the camp, as expected."""
        return round(float(self.membership.sum()))

    @property
    def is_identified(self) -> bool:
        """Whether the votes tell who its members are: a member's probability to be one is at least one half."""
        size = float(self.membership.sum())
        return size >= LEAST_VOTERS and float(self.membership @ self.membership) >= _IDENTIFIED * size

    @property
    def interval(self) -> tuple[int, int]:
        """A 95% interval of that number: each voter belongs to it with the probability ``membership``."""
        mean, spread = float(self.membership.sum()), float((self.membership * (1.0 - self.membership)).sum())
        reach = 1.96 * np.sqrt(spread) + 0.5
        return max(1, int(np.floor(mean - reach + 0.5))), min(self.voters, int(np.ceil(mean + reach - 0.5)))

    @property
    def name(self) -> str:
        """A few words for tables and figures."""
        if self.kind == "push":
            return f"{'for' if self.up else 'against'} {self.target}"
        if self.kind == "side":
            return f"{self.target} of two"
        if self.kind == "chance":
            return "hardly predicted"
        if self.kind == "rule":
            return f"always {self.target}"
        return "against the rest" if self.opposes else "own order"

    @property
    def opposes(self) -> bool:
        """Whether its members vote against the rest."""
        return self.kind == "against" or (self.kind == "order" and self.resemblance < _OPPOSED)

    @property
    def how(self) -> str:
        """What its members do, after "20 of 100 voters"."""
        if self.kind == "push":
            return f"vote {'for' if self.up else 'against'} {self.target} in most of their duels with it"
        if self.kind == "side":
            return f"choose the {self.target} of the two items in nearly all duels"
        if self.kind == "chance":
            return f"vote in ways that the rest hardly predict ({self.agreement:.0%} of their votes; a coin flip, 50%)"
        if self.kind == "rule":
            return f"choose {self.target}, whatever else the texts say"
        if self.opposes:
            return f"vote against the rest, who predict {self.agreement:.0%} of their votes"
        first = f", with {self.order[0]} first" if self.order else ""
        return f"have an order of their own{first}: the rest predict {self.agreement:.0%} of their votes"

    @property
    def sentence(self) -> str:
        """Describe the camp in words that its members could accept."""
        low, high = self.interval
        about = "" if low == high else f" ({low:,} to {high:,})"
        return f"{self.size:,} of {counted_noun(self.voters, 'voter')}{about} {self.how}."


@dataclass(frozen=True, eq=False)
class Camps:
    """The camps that voters form, and how much each vote counts given who belongs to them.

    Args:
        found: The camps, the largest first.
        reliability: How much each vote counts, shape ``(n,)``, from 0 to 2; 1 is an average voter's weight.
        voters: Names of the voters.
    """

    found: tuple[Camp, ...]
    reliability: Vector
    voters: tuple[str, ...]

    def record(self) -> list[dict[str, Any]]:
        """Return the camps as plain values, for JSON: name, sentence, size with its interval, members and order."""
        return [
            {
                "name": camp.name,
                "sentence": camp.sentence,
                "voters": camp.size,
                "low": camp.interval[0],
                "high": camp.interval[1],
                "agreement": camp.agreement,
                "order": camp.order,
            }
            for camp in self.found
        ]

    def sentences(self) -> list[str]:
        """Say which camps there are, and what that does not mean; to choose by the side is no opinion."""
        unclear = [_ON_TRUTH] if any(camp.kind != "side" for camp in self.found) else []
        return [*(camp.sentence for camp in self.found), *unclear]

    def advice(self) -> list[str]:
        """Say what the camps may be, and what to do about them."""
        may_be = [words for kinds, words in _MAY_BE.items() if any(camp.kind in kinds for camp in self.found)]
        return [" ".join([*may_be, _ABOUT_CAMPS])] if may_be else []

    @property
    def brief(self) -> str:
        """How many voters are in camps, in a few words."""
        size, count = sum(camp.size for camp in self.found), len(self.found)
        return f"{size:,} of {len(self.voters):,} voters form {'a camp' if count == 1 else f'{count} camps'}"

    @property
    def reservations(self) -> list[str]:
        """Say if the rest do not speak for everyone: most voters are hardly predicted, or a camp is nearly as large."""
        hardly = sum(camp.size for camp in self.found if camp.kind == "chance")
        if 2 * hardly > len(self.voters):
            return ["Most voters vote in ways that the rest hardly predict, so the rest do not speak for them."]
        rest = len(self.voters) - sum(camp.size for camp in self.found)
        large = [camp for camp in self.found if camp.kind in ("order", "against") and camp.size >= _NEARLY * rest]
        return [
            f"The camp of {camp.size:,} voters is nearly as large as the rest ({rest:,}), so neither speaks for all."
            for camp in large
        ]

    @cached_property
    def of_voter(self) -> Indices:
        """The camp that a voter most likely belongs to, shape ``(V,)``; −1 for the rest."""
        result = np.full(len(self.voters), -1)
        best = np.full(len(self.voters), _MEMBER)
        for number, camp in enumerate(self.found):
            ahead = camp.membership > best
            result[ahead], best[ahead] = number, camp.membership[ahead]
        return result

    @cached_property
    def membership(self) -> Vector:
        """With which probability a voter belongs to any camp, shape ``(V,)``."""
        none = np.ones(len(self.voters))
        for camp in self.found:
            none = none * (1.0 - camp.membership)
        return 1.0 - none


@takes_votes
def find_camps(votes: Votes, *, ties: Ties = "half") -> Camps:
    r"""Find camps of voters, and how much each vote counts.

    Without voters there are none, and every vote counts fully. So it does if most votes would be ignored: then there is
    no order that most voters share.

    >>> from fairduel.votes.attacking.liars import arena
    >>> votes, liars = arena(liars={"inverters": 30}, seed=1)
    >>> camps = find_camps(votes)
    >>> print(camps.sentences()[0])
    30 of 150 voters (29 to 31) vote against the rest, who predict 22% of their votes.
    """
    counts = votes.counts(ties)
    if votes.voter is None or not counts.any():
        return Camps((), np.ones(len(votes)), votes.voters)
    with one_thread():
        return _camps_of(votes, *Ballots.of(votes, counts))


def _camps_of(votes: Votes, ballots: Ballots, order: Indices) -> Camps:
    """Find the camps of ``ballots``, which are at the places ``order`` (n,) of ``votes``."""
    start = unweighted_scores(ballots)
    taste = float(np.clip(taste_variance(ballots, margins(ballots, start)), _LEAST_TASTE, _MOST_TASTE))
    shared = shared_taste(ballots, taste)
    weight = ballots.counts * shared
    fitted = _without_crowds(ballots, weight, fit_camps(ballots, weight))
    reliability = reliability_of(ballots, fitted, shared)
    if not is_majority(ballots, weight, fitted) or mostly_ignored(ballots, reliability):
        reliability = np.ones(len(votes))
    described = [camp for camp in _described(votes, ballots, weight, fitted) if camp.is_identified]
    camps = sorted(described, key=lambda camp: -camp.size)
    return Camps(tuple(camps), reliability[np.argsort(order)], votes.voters)


# ---------------------------------------------------------------------------- which camps there are


def _described(votes: Votes, ballots: Ballots, weight: Vector, fitted: Fitted) -> Iterator[Camp]:
    """Yield the camps that the votes are much less likely without."""
    found = fitted.members
    voted = ballots.per_voter(ballots.counts) > 0.0
    agrees = 0.5 * (1.0 + np.sign(fitted.margins[0] * (ballots.result - 0.5)))
    decisive = ballots.counts * (ballots.result != 0.5)

    def camp(
        kind: Kind, membership: Vector, target: str = "", *, up: bool = True, scores: Vector | None = None
    ) -> Camp:
        of_votes, order, resemblance = decisive * membership[ballots.voter], (), 0.0
        agreement = float(of_votes @ agrees) / max(float(of_votes.sum()), 1e-9)
        if scores is not None:
            order = tuple(votes.items[item] for item in np.argsort(-scores))
            resemblance = float(np.corrcoef(scores, fitted.model.scores[0])[0, 1])
        return Camp(kind, membership * voted, int(voted.sum()), order, agreement, target, up, resemblance)

    classes, gained = log_likelihoods(ballots, weight, fitted.margins)
    for scores, membership in zip(fitted.model.scores[1:], memberships_of(fitted.model, found).T, strict=True):
        yield camp("order", membership, scores=scores)
    joint = (np.log(fitted.model.shares) + classes)[~ballots.occasional]

    def is_clear(numbers: list[int]) -> bool:
        without = np.delete(joint, numbers, axis=1)
        fall = special.logsumexp(joint, axis=1) - special.logsumexp(without, axis=1)
        return bool(fall.sum() > _CLEAR)

    few = [(_AGAINST, camp("against", found.classes[:, _AGAINST].sum(axis=1)))]
    if ballots.sides_known:
        few += [([place], camp("side", found.classes[:, place], side)) for place, side in _SIDES.items()]
    yield from (each for numbers, each in few if is_clear(numbers))
    for numbers in _hardly_predicted(fitted.model):
        each = camp("chance", found.classes[:, numbers].sum(axis=1))
        if each.agreement < _COIN and each.is_identified and is_clear(numbers):
            yield each
            break
    yield from _pushing(votes, ballots, found, gained, camp)


def _hardly_predicted(model: Model) -> Iterator[list[int]]:
    """Yield abilities that may be too small for the others to predict a voter, the most of them first.

    They are compared with the usual one of a vote that tells something: if many vote like a coin flip, everyone's
    scores are small, and the others' abilities large.
    """
    able, share = np.maximum(ABILITIES, 0.0), model.shares[: len(ABILITIES)]
    usual = float(share @ able**2) / float(share @ able)
    for most in np.unique(able[able <= _HARDLY * usual])[::-1]:
        yield np.flatnonzero(np.abs(ABILITIES) <= most).tolist()


def _pushing(
    votes: Votes, ballots: Ballots, found: Members, gained: Matrix, camp: Callable[..., Camp]
) -> Iterator[Camp]:
    """Yield the camps that push an item, unless others push it the other way: then it divides voters."""
    each, gain = found.pushes.sum(axis=0), (found.pushes * gained).sum(axis=0)  # (2, c)
    size, fall = (np.array([sums(ballots.cell_item, ballots.items, way) for way in by]) for by in (each, gain))
    theirs = each * ~ballots.occasional[ballots.cell_voter]
    regular = np.array([sums(ballots.cell_item, ballots.items, way) for way in theirs])
    needed = _CLEAR + np.log(2.0 * ballots.items) + _CLEAR_EACH * regular
    for way, item in np.argwhere((size >= LEAST_VOTERS) & (fall > needed)):
        on_item = ballots.cell_item == item
        membership = sums(ballots.cell_voter[on_item], ballots.voters, each[way][on_item])
        found_camp = camp("push", membership, votes.items[item], up=way == 0)
        if found_camp.interval[0] > _ONE_SIDED * max(1.0, size[1 - way, item]):
            yield found_camp


# ---------------------------------------------------------------------------- after an audit


def trusted_weights(votes: Votes, evidence: "Evidence", ties: Ties = "half", camps: Camps | None = None) -> Vector:
    """Return how much each vote counts after an audit, (n,): its weight by the ``evidence``, times its reliability.

    ``camps`` are those of all votes, if known; if the evidence leaves votes out, reliability is estimated without them.
    """
    weights = evidence.vote_weights(votes)
    left = weights > 0.0
    if camps is None or not left.all():
        camps = find_camps(votes.reweighted(left.astype(np.float64)), ties=ties)
    weights[left] *= camps.reliability
    return weights
