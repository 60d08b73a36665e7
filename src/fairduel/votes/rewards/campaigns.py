r"""Campaigns: voters who follow one simple rule, such as the shorter answer, whatever else the answers say.

A rule prefers the answer with more (or less) of one feature. Accounts with a single vote each say nothing alone, but a
campaign of them shows: honest preferences change smoothly with a feature, a rule jumps where the answers change places.

For each rule, L_v is the likelihood of voter v's votes by the rule over that by the fit; votes about which the rule
says nothing count as neither. If a share p of the voters
followed the rule, the evidence for it would be E = Π_v (1 + p(L_v − 1)). Without a campaign, and if the fit is right,
each L_v is 1 on average, so that P(E > e) ≤ 1/e. A rule is a campaign if its largest E, over shares and over voters
with many or few votes, exceeds 10⁴ times the number of rules, shares and groups tried. A rule that most votes follow is
none: it is what people prefer.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairduel.duel import Matrix, Vector
from fairduel.votes.rewards.truthfulness import (
    FAITHFUL,
    Learned,
    Preferred,
    by_voter,
    classes_of,
    is_occasional,
    learn,
    majority_first,
    votes_by,
)

_SHARES = np.array([0.02, 0.1, 0.3, 0.6])
_LEAST = np.log(1e4)
_MOST_CAMPAIGNS, _MOST_SHARE = 3, 0.5
_AT_ONCE = 32  # features
_FARTHEST = 30.0  # log L_v


class Rule(NamedTuple):
    """Prefer the answer with more of a feature, or with less."""

    feature: int
    more: bool

    @property
    def words(self) -> str:
        """Which answers it prefers."""
        return f"{'more' if self.more else 'less'} of feature {self.feature}"

    def of(self, features: Matrix) -> NDArray[np.int8]:
        """Return whether votes follow it (1, −1 or 0), (n,), given how much more the preferred answer has, (n, d)."""
        return np.sign(features[:, self.feature]).astype(np.int8) * np.int8(1 if self.more else -1)


def find_campaigns(
    votes: Preferred, weight: Vector, features: Matrix, ridge: float
) -> tuple[Preferred, Learned, list[Rule]]:
    """Fit the votes with as many campaigns as there is evidence for; return them with their rules, and the fit.

    ``features`` (n, d) says by how much the preferred answer has more of each feature than the other one.
    """
    columns, ridges, rules = weight[:, None], np.array([ridge]), list[Rule]()
    learned = majority_first(votes, columns, learn(votes, columns, ridges))
    while len(rules) < _MOST_CAMPAIGNS:
        evidence = evidence_of_campaigns(votes, columns, features, learned)
        for rule in rules:
            evidence[0 if rule.more else 1, rule.feature] = -np.inf
        place = np.unravel_index(int(np.argmax(evidence)), evidence.shape)
        if evidence[place] < _LEAST + np.log(2 * evidence.size * len(_SHARES)):
            break
        rule = Rule(int(place[1]), bool(place[0] == 0))
        tried = votes._replace(rules=np.column_stack([votes.rules, rule.of(features)]))
        fitted = majority_first(tried, columns, learn(tried, columns, ridges))
        _, truthful, following = votes_by(tried, columns, fitted)
        if following[-1, 0] > min(_MOST_SHARE * weight.sum(), truthful[0]):
            break
        votes, learned = tried, fitted
        rules.append(rule)
    return votes, learned, rules


def evidence_of_campaigns(votes: Preferred, weight: Matrix, features: Matrix, learned: Learned) -> Matrix:
    """Return log E for the rules "more" and "less" of each feature, (2, d), given a fit with one column."""
    z = votes.ahead @ learned.theta
    occasional, table = is_occasional(votes, weight), by_voter(votes)
    _, total = classes_of(votes, weight, votes.likelihoods(z), learned.shares, occasional)
    cast = table @ weight
    voted, few = cast[:, 0] > 0.0, occasional[:, 0] == 1
    found = np.zeros((2, features.shape[1]))
    for begin in range(0, features.shape[1], _AT_ONCE):
        part = slice(begin, begin + _AT_ONCE)
        sign = np.sign(features[:, part])
        agree, differ = table @ (weight * (sign > 0.0)), table @ (weight * (sign < 0.0))
        usual = total * (agree + differ) / np.maximum(cast, 1e-12)
        for way, (follow, oppose) in enumerate(((agree, differ), (differ, agree))):
            log_ratio = follow * np.log(FAITHFUL) + oppose * np.log(1.0 - FAITHFUL) - usual
            more = np.expm1(np.clip(log_ratio, -_FARTHEST, _FARTHEST))
            for group in (voted & few, voted & ~few):
                for share in _SHARES:
                    found[way, part] = np.maximum(found[way, part], np.log1p(share * more[group]).sum(axis=0))
    return found
