"""Plain NumPy and SciPy versions of what fairduel compiles: the obvious code, whole history, no tricks."""

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit


def fit(differences, weights, outcomes, ridge, start):
    """Solve eq. (MLE) by a general solver on all duels so far."""

    def loss(theta):
        margins = differences @ theta
        value = 0.5 * ridge * theta @ theta + weights @ (np.logaddexp(0.0, margins) - outcomes * margins)
        return value, ridge * theta + differences.T @ (weights * (expit(margins) - outcomes))

    return minimize(loss, start, jac=True, method="L-BFGS-B", options={"ftol": 1e-14, "gtol": 1e-8}).x


def best_pair(actions, theta, inverse, radius):
    """argmax over all pairs, by one large array."""
    gaps = actions[:, None, :] - actions[None, :, :]
    widths = np.sqrt(np.maximum(np.einsum("abi,ij,abj->ab", gaps, inverse, gaps), 0.0))
    rewards = actions @ theta
    scores = rewards[:, None] + rewards[None, :] + radius * widths
    return np.unravel_index(np.argmax(scores), scores.shape)


def rcdb_run(actions, theta_star, horizon, budget, rng):
    """RCDB at its practical setting under the greedy attack, Algorithm 1 line by line; return its regret."""
    dimension = actions.shape[1]
    ridge, trust, radius = 0.25, np.sqrt(dimension) / budget, np.sqrt(dimension)
    information, theta = ridge * np.eye(dimension), np.zeros(dimension)
    history: list[tuple[np.ndarray, float, float]] = []
    rewards = actions @ theta_star
    regret = 0.0
    for t in range(horizon):
        inverse = np.linalg.inv(information)
        a, b = best_pair(actions, theta, inverse, radius)
        difference = actions[a] - actions[b]
        width = np.sqrt(difference @ inverse @ difference)
        weight = 1.0 if width <= trust else trust / width
        information += weight * np.outer(difference, difference)
        won = rng.random() < expit(rewards[a] - rewards[b])
        history.append((difference, weight, float(won != (t < budget))))
        theta = fit(*(np.array(column) for column in zip(*history, strict=True)), ridge, theta)
        regret += 2 * rewards.max() - rewards[a] - rewards[b]
    return regret
