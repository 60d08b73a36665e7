"""λ, α and β of each theorem, and the practical radius.

Symbols: d dimension, B norm bound, C flip budget (or tolerance), T horizon, δ failure probability,
κ smallest slope of the link. If the horizon is unknown, callers pass the round t as T.
"""

import math


def rcdb_ridge(norm_bound: float) -> float:
    """λ = 1/B² (Theorem main)."""
    return 1.0 / norm_bound**2


def rcdb_trust(dimension: float, flip_budget: float, kappa: float) -> float:
    """α = √d / (C√κ) (Theorem main); ∞ for C = 0, where every weight is 1.

    With κ = 1 this is α = √d/C, its value on the plain design.
    """
    return math.sqrt(dimension / kappa) / flip_budget if flip_budget > 0 else math.inf


def corruption_term(trust: float, flip_budget: float) -> float:
    """αC, the corruption term of a radius; 0 for C = 0, where α = ∞ (eq. I20)."""
    return trust * flip_budget if flip_budget > 0 else 0.0


def confidence_radius(*, norm_bound: float, flip_budget: float, ridge: float, trust: float, noise: float) -> float:
    """β = √λ B + αC + noise (Lemma MLE); ``noise`` is one of the two functions below."""
    return math.sqrt(ridge) * norm_bound + corruption_term(trust, flip_budget) + noise


def horizon_noise(*, dimension: float, horizon: float, ridge: float, kappa: float, failure: float) -> float:
    """√(d log((1 + 2T/λ)/δ)/κ), the noise as printed in Lemma MLE."""
    return math.sqrt(dimension * math.log((1.0 + 2.0 * horizon / ridge) / failure) / kappa)


def determinant_noise(*, dimension: float, log_determinant: float, ridge: float, kappa: float, failure: float) -> float:
    """√(2 log(det(Σ)^½ λ^{−d/2}/δ)) / (2√κ), before the determinant is bounded (Lemma concen).

    This uses that the labels are ½-sub-Gaussian, unlike the paper, which about halves β.
    """
    gain = 0.5 * (log_determinant - dimension * math.log(ridge)) - math.log(failure)
    return math.sqrt(2.0 * gain / kappa) / 2.0


def rcdb_regret_bound(
    *, dimension: float, horizon: float, ridge: float, trust: float, kappa: float, radius: float
) -> float:
    """Regret(T) ≤ 4β/√κ √(dT log(1+2T/λ)) + 4dβ log(1+2T/λ)/(ακ) (proof of Theorem main)."""
    log = math.log(1.0 + 2.0 * horizon / ridge)
    stochastic = 4.0 * radius / math.sqrt(kappa) * math.sqrt(dimension * horizon * log)
    return stochastic + 4.0 * dimension * radius * log / (trust * kappa)


def rcdbs_ridge(dimension: float, norm_bound: float) -> float:
    """λ = d/B (Theorem new)."""
    return dimension / norm_bound


def rcdbs_trust(dimension: float, norm_bound: float, flip_budget: float, ridge: float) -> float:
    """α = (√d + √λ B)/C (Theorem new); ∞ for C = 0."""
    if flip_budget == 0:
        return math.inf
    return (math.sqrt(dimension) + math.sqrt(ridge) * norm_bound) / flip_budget


def rcdbs_radius(
    *,
    dimension: float,
    norm_bound: float,
    flip_budget: float,
    round_number: float,
    ridge: float,
    trust: float,
    failure: float,
) -> float:
    """β̃_t = (1 + 4B)[√λ B + √λ/2 + (2d/√λ) log((dλ + 2t)/(dλδ)) + αC] (Lemma cE)."""
    root = math.sqrt(ridge)
    growth = math.log((dimension * ridge + 2.0 * round_number) / (dimension * ridge * failure))
    inner = root * norm_bound + root / 2.0 + 2.0 * dimension / root * growth
    return (1.0 + 4.0 * norm_bound) * (inner + corruption_term(trust, flip_budget))


def maxinp_radius(dimension: float, horizon: float, kappa: float, failure: float) -> float:
    """η = (1/2κ) √((d/2) log(1 + 2T/d) + log(1/δ)) (Saha 2021; the constants are from secondary sources)."""
    spread = dimension / 2.0 * math.log(1.0 + 2.0 * horizon / dimension) + math.log(1.0 / failure)
    return math.sqrt(spread) / (2.0 * kappa)


def colstim_radius(dimension: float, horizon: float, kappa: float) -> float:
    """c₁ = (1/2μ) √(d log(T/d) + 2 log T), μ the smallest slope (Bengs 2022)."""
    spread = dimension * math.log(max(horizon / dimension, 1.0)) + 2.0 * math.log(max(horizon, 2.0))
    return math.sqrt(spread) / (2.0 * kappa)


def colstim_mixing(dimension: float, horizon: float, rounds_since_warmup: int) -> float:
    """p_t = min(1, d log(dT)/√(t − τ)), as in the experiments of Bengs 2022."""
    return min(1.0, dimension * math.log(dimension * horizon) / math.sqrt(max(rounds_since_warmup, 1)))


def practical_radius(dimension: float, horizon: float) -> float:
    """√(d log T), a radius that works at horizons where the theorems' radii explore in every round."""
    return math.sqrt(dimension * math.log(max(horizon, 2.0)))
