"""Plain NumPy and SciPy versions of what fairduel compiles: the obvious code on the whole history."""

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit


def fit(differences, weights, outcomes, ridge, start):
    """Solve eq. (MLE) with a general-purpose solver on all duels so far."""

    def loss(theta):
        margins = differences @ theta
        value = 0.5 * ridge * theta @ theta + weights @ (np.logaddexp(0.0, margins) - outcomes * margins)
        return value, ridge * theta + differences.T @ (weights * (expit(margins) - outcomes))

    return minimize(loss, start, jac=True, method="L-BFGS-B", options={"ftol": 1e-14, "gtol": 1e-8}).x


def pair_widths(actions, inverse):
    """Return ‖x_a − x_b‖_Σ⁻¹ of all pairs, from one large array."""
    gaps = actions[:, None, :] - actions[None, :, :]
    return np.sqrt(np.maximum(np.einsum("abi,ij,abj->ab", gaps, inverse, gaps), 0.0))


def best_pair(actions, theta, inverse, radius, rng=None):  # noqa: ARG001
    """Return the argmax over all pairs (RCDB and MaxPairUCB)."""
    rewards = actions @ theta
    scores = rewards[:, None] + rewards[None, :] + radius * pair_widths(actions, inverse)
    return np.unravel_index(np.argmax(scores), scores.shape)


def widest_pair(actions, theta, inverse, radius, rng=None):  # noqa: ARG001
    """Return the widest pair of actions that may still be best (MaxInP)."""
    rewards, widths = actions @ theta, pair_widths(actions, inverse)
    margins = rewards[:, None] - rewards[None, :] + radius * widths
    np.fill_diagonal(margins, np.inf)
    left = np.flatnonzero((margins > 0.0).all(axis=1))
    if left.size == 0:
        return np.argmax(rewards), np.argmax(rewards)
    inside = widths[np.ix_(left, left)]
    return left[list(np.unravel_index(np.argmax(inside), inside.shape))]


def perturbed_pair(actions, theta, inverse, radius, rng):
    """Return the perturbed leader and its toughest rival (CoLSTIM, independent noise)."""
    rewards = actions @ theta
    noise = np.clip(rng.gumbel(size=len(actions)), -radius, radius)
    first = np.argmax(rewards + noise * np.sqrt(np.einsum("ai,ij,aj->a", actions, inverse, actions)))
    gaps = actions - actions[first]
    return first, np.argmax(rewards + radius * np.sqrt(np.einsum("ai,ij,aj->a", gaps, inverse, gaps)))


def run(choose, actions, theta_star, horizon, budget, rng, *, ridge, trust, radius):
    """Play one run under the greedy attack, in the order of Algorithm 1's lines, and return its regret."""
    dimension = actions.shape[1]
    information, theta = ridge * np.eye(dimension), np.zeros(dimension)
    history: list[tuple[np.ndarray, float, float]] = []
    rewards = actions @ theta_star
    regret = 0.0
    for t in range(horizon):
        inverse = np.linalg.inv(information)
        a, b = choose(actions, theta, inverse, radius, rng)
        difference = actions[a] - actions[b]
        width = np.sqrt(difference @ inverse @ difference)
        weight = 1.0 if width <= trust else trust / width
        information += weight * np.outer(difference, difference)
        won = rng.random() < expit(rewards[a] - rewards[b])
        history.append((difference, weight, float(won != (t < budget))))
        theta = fit(*(np.array(column) for column in zip(*history, strict=True)), ridge, theta)
        regret += 2 * rewards.max() - rewards[a] - rewards[b]
    return regret
