"""Selection rules: pure functions that choose the next pair exactly, for any number of actions.

A rule chooses from a :class:`View` of the actions. Scores within ``TIE`` of the best count as equal; ``tie``, a uniform
number in [0, 1), picks among them, so that the caller controls all randomness.

For few actions (up to ``SMALL_SET`` or d), all pairs are evaluated with the Gram matrix XΣ⁻¹Xᵀ. For many, most pairs
are pruned: with Σ⁻¹ = LLᵀ and z = Lᵀx, ‖x_a − x_b‖_Σ⁻¹ is the distance between z_a and z_b, which can be bounded
(:func:`_best_pair_among_many`). Either way memory is O(K·d).
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairduel.core.compiling import compiled, inlined
from fairduel.core.information import SMALL_SET, products
from fairduel.core.links import LinkNumbers, probability
from fairduel.duel import Matrix, Vector

TIE = 1e-9
"""Scores this close to the best count as equal; for very large scores, rounding errors set the limit instead."""
_BLOCK = 256  # actions at a time when all pairs are evaluated
_ROUNDING = 1e-12  # relative: anything smaller may be rounding
_SLACK = 1e-14  # of the largest score: how much rounding may lower a bound
_BLOCK_SPEEDUP = 64  # evaluating one pair alone costs about as much as this many pairs in a block


class View(NamedTuple):
    """K actions as a rule sees them: estimated rewards, and the uncertainty of their differences."""

    rewards: Vector
    """Estimated rewards xᵀθ, shape (K,)."""
    gram: Matrix
    """XΣ⁻¹Xᵀ, shape (K, K); (0, 0) for many actions."""
    points: Matrix
    """z = Lᵀx of each action, shape (K, d); (0, d) for few."""


@inlined
def view(gram: Matrix, inverse: Matrix, actions: Matrix, theta: Vector) -> View:
    """View ``actions`` (K, d) through their Gram matrix if it is kept, else through Σ⁻¹ = ``inverse`` (d, d)."""
    rewards = products(actions, theta)
    if gram.size:
        return View(rewards, gram, actions[:0])
    return View(rewards, gram, actions @ np.linalg.cholesky(inverse))


@compiled
def view_by(inverse: Matrix, actions: Matrix, theta: Vector) -> View:
    """View ``actions`` (K, d) through Σ⁻¹ = ``inverse`` (d, d), without a stored Gram matrix."""
    rewards = products(actions, theta)
    if rewards.size <= max(SMALL_SET, theta.size):
        return View(rewards, (actions @ inverse) @ actions.T, actions[:0])
    return View(rewards, np.empty((0, 0)), actions @ np.linalg.cholesky(inverse))


@compiled
def _tie_level(best: float) -> float:
    """The lowest score that ties with the ``best``."""
    return best - max(TIE, _ROUNDING * abs(best))


@compiled
def _squared(own: float, other: float, product: float) -> float:
    """‖z_a − z_b‖² from ‖z_a‖², ‖z_b‖² and z_aᵀz_b; 0 if it is only rounding, so that equal actions stay equal."""
    squared = own + other - 2.0 * product
    return squared if squared > _ROUNDING * (own + other) else 0.0


@compiled
def pair_widths(gram: Matrix) -> Matrix:
    """‖x_i − x_j‖_Σ⁻¹ for all pairs, shape (K, K), from the Gram matrix XΣ⁻¹Xᵀ."""
    count = len(gram)
    squares = np.diag(gram).copy()
    widths = np.empty((count, count))
    for i in range(count):
        for j in range(i):
            widths[i, j] = math.sqrt(_squared(squares[i], squares[j], gram[i, j]))
        widths[i, i] = 0.0
        for j in range(i):
            widths[j, i] = widths[i, j]
    return widths


@compiled
def _width(gram: Matrix, first: int, second: int) -> float:
    """‖x_first − x_second‖_Σ⁻¹ from the lower triangle of the Gram matrix XΣ⁻¹Xᵀ (K, K)."""
    if first == second:
        return 0.0
    high, low = max(first, second), min(first, second)
    return math.sqrt(_squared(gram[first, first], gram[second, second], gram[high, low]))


@inlined
def _squared_between(points: Matrix, first: int, second: int) -> float:
    """‖z_first − z_second‖² for two rows of ``points`` (K, d)."""
    squared = 0.0
    for j in range(points.shape[1]):
        gap = points[first, j] - points[second, j]
        squared += gap * gap
    return squared


@compiled
def widths_from(points: Matrix, centre: Vector) -> Vector:
    """Distance of each row of ``points`` (K, d) from ``centre`` (d,), shape (K,)."""
    result = np.empty(len(points))
    for i in range(len(points)):
        squared = 0.0
        for j in range(centre.size):
            gap = points[i, j] - centre[j]
            squared += gap * gap
        result[i] = math.sqrt(squared)
    return result


@compiled
def pick(scores: Vector, tie: float) -> int:
    """Return the index of the largest score; ``tie`` breaks ties, and −∞ excludes an index."""
    least = _tie_level(np.max(scores))
    level = 0
    for i in range(scores.size):
        level += scores[i] >= least
    chosen = int(tie * level)
    for i in range(scores.size):
        if scores[i] >= least:
            if chosen == 0:
                return i
            chosen -= 1
    return 0


@inlined
def symmetric_pair(view: View, radius: float, self_duels: bool, tie: float) -> tuple[int, int]:
    """argmax over (a, b) of (x_a + x_b)ᵀθ + β‖x_a − x_b‖_Σ⁻¹ (Algorithm 1, line 6)."""
    if view.gram.size:
        return _best_pair_among_few(view.gram, view.rewards, radius, self_duels, tie)
    return _best_pair_among_many(view.points, view.rewards, radius, self_duels, tie)


@compiled
def _best_pair_among_few(gram: Matrix, rewards: Vector, radius: float, self_duels: bool, tie: float) -> tuple[int, int]:
    """argmax over (a, b) of r_a + r_b + β‖x_a − x_b‖_Σ⁻¹, for the Gram matrix XΣ⁻¹Xᵀ (K, K) and r (K,)."""
    first = int(np.argmax(rewards))
    squares, best = np.empty(rewards.size), -np.inf
    for i in range(rewards.size):
        squares[i] = gram[i, i]
        if self_duels or i != first:
            best = max(best, (rewards[i] + rewards[first]) + radius * _width(gram, i, first))
    found, values, start = [0], [-np.inf], int(np.int64(0))  # a literal 0 would be compiled for itself
    _scan_block(gram, start, squares, rewards, radius, self_duels, best, found, values)
    return _pair_of(_tied(found, values, tie))


@compiled
def _scan_block(
    block: Matrix,
    start: int,
    squares: Vector,
    rewards: Vector,
    radius: float,
    self_duels: bool,
    best: float,
    found: list[int],
    values: list[float],
) -> float:
    """Evaluate all pairs (a, b), b ≤ a, for the rows of ``block``: z_aᵀz_b for a = ``start``, ``start`` + 1, ….

    ``squares`` are ‖z‖² (K,), and ``best`` is the score of some pair. Triangle indices of pairs within ``TIE`` of the
    best so far are appended to ``found``, their scores to ``values``; the new best is returned. Most rows have no such
    pair, which the first loop detects without a square root or a branch.
    """
    steepness, largest = radius * radius, 0.0
    for i in range(rewards.size):
        largest = max(largest, abs(rewards[i]))
    for a in range(start, start + len(block)):
        needed = _tie_level(best) - _SLACK * (abs(best) + largest) - rewards[a]
        hopeful = 0
        for b in range(a):
            gap = max(needed - rewards[b], 0.0)
            hopeful += steepness * _squared(squares[a], squares[b], block[a - start, b]) >= gap * gap
        for b in range(a if hopeful else 0):
            squared = _squared(squares[a], squares[b], block[a - start, b])
            value = rewards[a] + rewards[b] + radius * math.sqrt(squared)
            if value >= _tie_level(best):
                best = max(best, value)
                found.append(a * (a + 1) // 2 + b)
                values.append(value)
        if self_duels and 2.0 * rewards[a] >= _tie_level(best):
            best = max(best, 2.0 * rewards[a])
            found.append(a * (a + 1) // 2 + a)
            values.append(2.0 * rewards[a])
    return best


@compiled
def _pair_of(index: int) -> tuple[int, int]:
    """Return the pair (a, b), b ≤ a, at this index of a lower triangle, read row by row."""
    first = int((math.sqrt(8.0 * index + 1.0) - 1.0) / 2.0)
    while first * (first + 1) // 2 > index:
        first -= 1
    while (first + 1) * (first + 2) // 2 <= index:
        first += 1
    return first, index - first * (first + 1) // 2


@compiled
def _good_pair(points: Matrix, rewards: Vector, radius: float, self_duels: bool) -> tuple[int, int, float]:
    """Return a pair that changing one action cannot improve, or hardly, and its score."""
    first = second = int(np.argmax(rewards))
    best = -np.inf
    for _ in range(8):
        scores = (rewards + rewards[first]) + radius * widths_from(points, points[first])
        if not self_duels:
            scores[first] = -np.inf
        rival = int(np.argmax(scores))
        if scores[rival] <= best:
            break
        first, second, best = rival, first, scores[rival]
    return first, second, best


@compiled
def _best_pair_among_many(
    points: Matrix, rewards: Vector, radius: float, self_duels: bool, tie: float
) -> tuple[int, int]:
    """argmax over (a, b) of r_a + r_b + β‖z_a − z_b‖, for ``points`` z (K, d) and ``rewards`` r (K,).

    For any centre c, ‖z_a − z_b‖ ≤ ‖z_a − c‖ + ‖z_b − c‖, so u_a + u_b with u_a = r_a + β‖z_a − c‖ bounds every pair
    from above. The centre is the midpoint of a good pair, found by maximising over one action at a time. Pairs are then
    evaluated in decreasing order of their bound, until it drops below the best score.
    """
    first, second, best = _good_pair(points, rewards, radius, self_duels)
    bounds = rewards + radius * widths_from(points, 0.5 * (points[first] + points[second]))
    highest = np.max(bounds)
    slack = _SLACK * (abs(best) + abs(highest) + np.max(np.abs(rewards)))
    candidates = np.flatnonzero(bounds >= _tie_level(best) - slack - highest)
    candidates = candidates[np.argsort(-bounds[candidates])]
    found = [0]  # triangle indices of pairs within TIE of the best so far
    values = [-np.inf]
    looked = 0
    for p in range(candidates.size):
        a = candidates[p]
        if 2.0 * bounds[a] < _tie_level(best) - slack:
            break
        for q in range(p, candidates.size):
            b = candidates[q]
            if bounds[a] + bounds[b] < _tie_level(best) - slack:
                break
            looked += 1
            if a == b and not self_duels:
                continue
            squared = _squared_between(points, a, b)
            value = rewards[a] + rewards[b] + radius * math.sqrt(squared)
            if value >= _tie_level(best):
                best = max(best, value)
                high, low = max(a, b), min(a, b)
                found.append(int(high * (high + 1) // 2 + low))
                values.append(value)
        if _BLOCK_SPEEDUP * looked > rewards.size * rewards.size:
            return _best_pair_of_all(points, rewards, radius, self_duels, tie, best)
    return _pair_of(_tied(found, values, tie))


@compiled
def _best_pair_of_all(
    points: Matrix, rewards: Vector, radius: float, self_duels: bool, tie: float, best: float
) -> tuple[int, int]:
    """The same by evaluating every pair, a block of actions at a time; ``best`` is the score of some pair."""
    count = rewards.size
    squares = np.empty(count)
    for i in range(count):
        squares[i] = np.dot(points[i], points[i])
    best = _tie_level(best) - 2.0 * radius * math.sqrt(_ROUNDING * np.max(squares))  # allowing for rounding
    found, values = [0], [-np.inf]
    for start in range(0, count, _BLOCK):
        stop = min(start + _BLOCK, count)
        block = points[start:stop] @ points[:stop].T
        best = _scan_block(block, start, squares, rewards, radius, self_duels, best, found, values)
    return _pair_of(_tied(found, values, tie))


@compiled
def _tied(found: list[int], values: list[float], tie: float) -> int:
    """Pick one of the indices whose values are within ``TIE`` of the largest, in increasing order, by ``tie``."""
    least = _tie_level(max(values))
    ties = one = 0
    for i in range(len(found)):
        if values[i] >= least:
            ties, one = ties + 1, found[i]
    if ties == 1:
        return one
    level = np.array([found[i] for i in range(len(found)) if values[i] >= least])
    level.sort()
    return int(level[int(tie * level.size)])


@compiled
def promising(gram: Matrix, rewards: Vector, radius: float) -> NDArray[np.int64]:
    """Indices of the actions with (x_i − x_j)ᵀθ + η‖x_i − x_j‖_Σ⁻¹ > 0 for all x_j ≠ x_i, from XΣ⁻¹Xᵀ (K, K)."""
    leader = int(np.argmax(rewards))  # rules out most others, so it goes first
    result = np.ones(rewards.size, np.bool_)
    for i in range(rewards.size):
        for j in range(-1, rewards.size):
            rival = leader if j < 0 else j
            lead = rewards[rival] - rewards[i]
            if lead < 0.0 or rival == i:
                continue
            squared = _squared(gram[i, i], gram[rival, rival], gram[i, rival])
            if squared > 0.0 and lead * lead >= radius * radius * squared:
                result[i] = False
                break
    return np.flatnonzero(result)


@compiled
def _promising_among_many(points: Matrix, rewards: Vector, radius: float) -> NDArray[np.int64]:
    """The same from ``points`` z (K, d); only better actions can rule one out, and the best usually do."""
    order = np.argsort(-rewards)
    result = np.ones(rewards.size, np.bool_)
    for i in range(rewards.size):
        for j in order:
            lead = rewards[j] - rewards[i]
            if lead < 0.0:
                break
            squared = _squared_between(points, i, j)
            if squared > 0.0 and lead >= radius * math.sqrt(squared):
                result[i] = False
                break
    return np.flatnonzero(result)


@compiled
def _rival_scores(view: View, radius: float, first: int, margin: float = 0.0) -> Vector:
    """(x_i − x_first)ᵀθ + max(c, ``margin`` u_i)u_i with u_i = ‖x_i − x_first‖_Σ⁻¹, shape (K,); ``first`` scores 0."""
    rewards, gram, points = view
    scores = np.empty(rewards.size)
    if not gram.size:
        widths = widths_from(points, points[first])
        scores[:] = rewards - rewards[first] + np.maximum(radius, margin * widths) * widths
        return scores
    for i in range(rewards.size):
        width = _width(gram, i, first)
        scores[i] = (rewards[i] - rewards[first]) + max(radius, margin * width) * width
    return scores


@compiled
def leader_and_settling(view: View, radius: float, margin: float = 0.0) -> tuple[int, float]:
    """Return the leader L and how near it is to being clearly ahead, from 1 on: the least lead over that needed.

    (x_L − x_i)ᵀθ must be β‖x_L − x_i‖_Σ⁻¹ and ``margin`` ‖x_L − x_i‖²_Σ⁻¹ for all i. :func:`thrifty_pair` then chooses
    L twice, and without a margin so does :func:`symmetric_pair`. ∞ without a rival.
    """
    rewards, gram, points = view
    leader = int(np.argmax(rewards))
    least = np.inf
    for i in range(rewards.size):
        if i == leader:
            continue
        width = _width(gram, i, leader) if gram.size else np.linalg.norm(points[i] - points[leader])
        needed = max(radius, margin * width) * width
        if width > 0.0:
            least = min(least, (rewards[leader] - rewards[i]) / needed if needed > 0.0 else np.inf)
    return leader, least


@inlined
def toughest_rival(view: View, radius: float, first: int, self_duels: bool, tie: float) -> int:
    """argmax over i of (x_i − x_first)ᵀθ + c‖x_i − x_first‖_Σ⁻¹; ``first`` itself scores 0."""
    scores = _rival_scores(view, radius, first)
    if not self_duels:
        scores[first] = -np.inf
    return pick(scores, tie)


@inlined
def sampled_rival(view: View, radius: float, first: int, draws: Vector, self_duels: bool, tie: float) -> int:
    """argmax over i of (x_i − x_first)ᵀθ + c·ε_i‖x_i − x_first‖_Σ⁻¹ for ``draws`` ε (K,): Thompson sampling."""
    leads = view.rewards - view.rewards[first]
    scores = leads + draws * (_rival_scores(view, radius, first) - leads)
    if not self_duels:
        scores[first] = -np.inf
    return pick(scores, tie)


@inlined
def informative_pair(view: View, radius: float, self_duels: bool, tie: float) -> tuple[int, int]:
    """Choose the pair of promising actions with the largest ‖x_a − x_b‖_Σ⁻¹ (MaxInP).

    A single promising action duels itself, as does the greedy action if none is promising; without self-duels, it
    meets its toughest rival instead.
    """
    rewards, is_few = view.rewards, view.gram.size > 0
    candidates = (
        promising(view.gram, rewards, radius) if is_few else _promising_among_many(view.points, rewards, radius)
    )
    if candidates.size < 2:
        first = candidates[0] if candidates.size == 1 else pick(rewards, tie)
        return first, first if self_duels else toughest_rival(view, radius, first, False, tie)
    level = np.zeros(candidates.size)
    if is_few:
        i, j = _best_pair_among_few(view.gram[candidates][:, candidates], level, 1.0, False, tie)
    else:
        i, j = _best_pair_among_many(view.points[candidates], level, 1.0, False, tie)
    return candidates[i], candidates[j]


@compiled
def perturbations(draws: Vector, own: bool, gaussian: bool, threshold: float) -> Vector:
    """Turn K draws into CoLSTIM's noise, clipped to ±threshold: uniform draws become Gumbel(0, 1), ``gaussian`` stay.

    Without ``own`` noise, all actions share the first.
    """
    noise = np.empty(draws.size)
    for i in range(draws.size):
        if i and not own:
            noise[i] = noise[0]
            continue
        value = draws[i] if gaussian else -math.log(-math.log(draws[i]))
        noise[i] = min(max(value, -threshold), threshold)
    return noise


@compiled
def _perturbed(rewards: Vector, noise: Vector, gram: Matrix) -> Vector:
    """x_iᵀθ + ε_i‖x_i‖_Σ⁻¹ for all i, shape (K,), from the Gram matrix XΣ⁻¹Xᵀ (K, K)."""
    result = np.empty(rewards.size)
    for i in range(result.size):
        result[i] = rewards[i] + noise[i] * math.sqrt(max(gram[i, i], 0.0))
    return result


@inlined
def perturbed_pair(
    view: View, radius: float, noise: Vector, self_duels: bool, ties: tuple[float, float]
) -> tuple[int, int]:
    """Choose the leader under ``noise`` (K,), then its toughest rival (CoLSTIM).

    a = argmax x_iᵀθ + ε_i‖x_i‖_Σ⁻¹, b = argmax (x_i − x_a)ᵀθ + c‖x_i − x_a‖_Σ⁻¹; each uses one of the ``ties``.
    """
    rewards, gram, points = view
    if gram.size:
        first = pick(_perturbed(rewards, noise, gram), ties[0])
    else:
        first = pick(rewards + noise * widths_from(points, np.zeros(points.shape[1])), ties[0])
    return first, toughest_rival(view, radius, first, self_duels, ties[1])


@compiled
def random_pair(count: int, uniform: float) -> tuple[int, int]:
    """Pick one of the K(K − 1) ordered pairs of distinct actions with a uniform number in [0, 1)."""
    index = int(uniform * count * (count - 1))
    first, second = index // (count - 1), index % (count - 1)
    return first, second + (second >= first)


@inlined
def uncertainty_weight(trust: float, width: float) -> float:
    """w = min(1, α/‖φ‖_Σ⁻¹), eq. (weight); 1 for a self-duel, which has width 0."""
    return 1.0 if width <= trust else trust / width


@inlined
def thrifty_pair(
    view: View, radius: float, allowance: float, self_duels: bool, tie: float, margin: float = 0.0
) -> tuple[int, int]:
    """Choose the pair with the most information per squared regret, unless the leader L is clearly ahead.

    L duels itself if (x_L − x_i)ᵀθ ≥ β‖x_L − x_i‖_Σ⁻¹ for all i. (By the triangle inequality that is when
    :func:`symmetric_pair` would choose L twice.) With a ``margin`` the lead must also be ``margin``
    ‖x_L − x_i‖²_Σ⁻¹: one vote of weight 1 on L and i moves it by the squared width. Otherwise the pair is
    argmax ‖x_a − x_b‖_Σ⁻¹ / ((2x_L − x_a − x_b)ᵀθ + ``allowance``).
    """
    rewards, gram, points = view
    leader = int(np.argmax(rewards))
    if self_duels and np.max(_rival_scores(view, radius, leader, margin)) <= TIE:
        return leader, leader
    costs = rewards[leader] - rewards + 0.5 * allowance
    if gram.size:
        return _thriftiest_among_few(gram, costs, tie)
    return _thriftiest_among_many(points, costs, tie)


@compiled
def _thriftiest_among_few(gram: Matrix, costs: Vector, tie: float) -> tuple[int, int]:
    """argmax over a ≠ b of ‖x_a − x_b‖_Σ⁻¹ / (c_a + c_b), for the Gram matrix XΣ⁻¹Xᵀ (K, K) and costs c > 0 (K,)."""
    count = costs.size
    values = np.full(count * (count + 1) // 2, -1.0)
    best = 0.0
    for a in range(count):
        for b in range(a):
            cost = costs[a] + costs[b]
            value = _squared(gram[a, a], gram[b, b], gram[a, b]) / (cost * cost)
            values[a * (a + 1) // 2 + b] = value
            best = max(best, value)
    return _pair_of(pick(values / best if best > 0.0 else values, tie))


@compiled
def _thriftiest_among_many(points: Matrix, costs: Vector, tie: float) -> tuple[int, int]:
    """The same for ``points`` z (K, d), exactly (Dinkelbach 1967).

    A pair of ratio ρ is best if no pair has ‖z_a − z_b‖/ρ − c_a − c_b > 0, which is the search of
    :func:`_best_pair_among_many` at radius 1/ρ; otherwise the pair that it finds has a larger ratio.
    """
    first = int(np.argmin(costs))
    ratio = np.max(widths_from(points, points[first]) / (costs + costs[first]))
    while ratio > 0.0:
        first, second = _best_pair_among_many(points, -costs, 1.0 / ratio, False, tie)
        better = widths_from(points[second : second + 1], points[first])[0] / (costs[first] + costs[second])
        if better <= ratio * (1.0 + TIE):
            return first, second
        ratio = better
    return random_pair(costs.size, tie)  # all actions are equal


def draw(probabilities: Vector, uniform: float) -> int:
    """Return the index that a uniform number in [0, 1) picks by these ``probabilities`` (K,), up to a factor."""
    steps = np.cumsum(probabilities)
    return int(np.searchsorted(steps, uniform * steps[-1], side="right"))


def draw_level(rng: np.random.Generator, levels: int) -> int:
    """Draw level l = 1 … ``levels`` with probability 2^−l; the remainder goes to level 1."""
    level = 1 - math.frexp(rng.random())[1]
    return level if level <= levels else 1


@inlined
def _width_seen(view: View, first: int, second: int) -> float:
    """‖x_first − x_second‖_Σ⁻¹ of two actions."""
    if view.gram.size:
        return _width(view.gram, first, second)
    return math.sqrt(_squared_between(view.points, first, second))


@inlined
def maxmin_pair(view: View, radius: float, link: LinkNumbers, self_duels: bool, tie: float) -> tuple[int, int]:
    """argmax_a min_b of σ(r_a − r_b) − β‖x_a − x_b‖_Σ⁻¹, and that b; b = a counts as ½, if it is allowed."""
    count = view.rewards.size
    lowest, rivals = np.empty(count), np.empty(count, np.int64)
    for a in range(count):
        lowest[a], rivals[a] = (0.5, a) if self_duels else (np.inf, a)
        for b in range(count):
            if a == b:
                continue
            chance = probability(link.kind, link.scale, view.rewards[a] - view.rewards[b])
            bound = chance - radius * _width_seen(view, a, b)
            if bound < lowest[a] - TIE:
                lowest[a], rivals[a] = bound, b
    first = pick(lowest, tie)
    return first, rivals[first]
