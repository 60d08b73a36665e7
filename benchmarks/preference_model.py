"""How good are the probabilities of ``RobustPreferenceModel``? ``python -m benchmarks.preference_model`` (ten minutes).

Votes on pairs of new items with normalised embeddings, honest or with lies, next to scikit-learn's logistic regression
with a ridge chosen by cross-validation. Losses are on 4,000 honest votes on further new items, on seeds 0 to 4.
"""

import sys
from itertools import product
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy import special
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV

from fairduel.duel import Matrix, Vector
from fairduel.votes import RobustPreferenceModel

SIZES = (5, 200), (38, 1000), (128, 500), (384, 300), (384, 1000), (384, 4000), (768, 500), (768, 2000), (768, 10_000)
"""Features d and votes n."""
TASTES = {"isotropic": False, "along the spectrum": True}
"""Whether θ is large where the embeddings vary most; the model assumes that it is not."""
SPREADS = 0.7, 1.5, 4.0
"""Standard deviation of the margins φᵀθ."""
LIES = "honest", "20% inverted", "10% by one feature"
_NEW = 4000


def problem(seed: int, dimension: int, count: int, spread: float, *, aligned: bool) -> tuple[Matrix, Vector]:
    """Return differences (count + 4,000, d) and honest results (count + 4,000,)."""
    rng = np.random.default_rng(seed)
    scale = 1.0 / np.sqrt(np.arange(1, dimension + 1))
    items = rng.normal(size=(2, count + _NEW, dimension)) * scale
    items /= np.linalg.norm(items, axis=-1, keepdims=True)
    differences = items[0] - items[1]
    theta = rng.normal(size=dimension) * (scale if aligned else 1.0)
    margins = differences @ theta
    return differences, rng.random(len(margins)) < special.expit(spread * margins / margins.std())


def told(seed: int, differences: Matrix, results: Vector, lies: str) -> Vector:
    """Return the results with lies, (n,)."""
    chance = np.random.default_rng([seed, 1]).random(len(results))
    if lies == "20% inverted":
        return np.where(chance < 0.2, ~results, results)
    return np.where(chance < 0.1, differences[:, 0] > 0.0, results) if lies != "honest" else results


def models() -> dict[str, Any]:
    """Return the models to compare, the baseline first."""
    plain = LogisticRegression(fit_intercept=False, max_iter=5000)
    search = GridSearchCV(plain, {"C": np.logspace(-3, 3, 13)}, cv=5, scoring="neg_log_loss")
    return {
        "cross-validated": search,
        "default": RobustPreferenceModel(),
        "fixed-point": RobustPreferenceModel(weights="fixed-point"),
    }


def quality(model: Any, differences: Matrix, results: Vector) -> tuple[float, float, float]:
    """Return log loss, accuracy, and mean probability of the likelier result minus accuracy."""
    chance = model.predict_proba(differences)[:, 1]
    loss = -np.log(np.where(results, chance, 1.0 - chance)).mean()
    right = ((chance > 0.5) == results).mean()
    return float(loss), float(right), float(np.maximum(chance, 1.0 - chance).mean() - right)


def main(lies: tuple[str, ...], seeds: range = range(5)) -> None:
    """Print a row per problem: log loss, accuracy and miscalibration of every model, and the difference in loss."""
    names = list(models())
    table = Table("lies", "d", "n", "θ", "spread", *names, *(f"{name} − {names[0]}" for name in names[1:]), box=None)
    for kind, (dimension, count), taste, spread in product(lies, SIZES, TASTES, SPREADS):
        found = []
        for seed in seeds:
            differences, results = problem(seed, dimension, count, spread, aligned=TASTES[taste])
            learned = told(seed, differences[:count], results[:count], kind).astype(int)
            fitted = (model.fit(differences[:count], learned) for model in models().values())
            found.append([quality(model, differences[count:], results[count:]) for model in fitted])
        mean, loss = np.mean(found, axis=0), np.array(found)[:, :, 0]
        worse = loss[:, 1:] - loss[:, :1]
        error = worse.std(axis=0, ddof=1) / np.sqrt(len(seeds))
        cells = [f"{each:.4f} {right:.3f} {gap:+.3f}" for each, right, gap in mean]
        cells += [f"{more:+.4f} ± {its:.4f}" for more, its in zip(worse.mean(axis=0), error, strict=True)]
        table.add_row(kind, str(dimension), f"{count:,}", taste, f"{spread:g}", *cells)
    Console(width=200).print(table)


if __name__ == "__main__":
    main(tuple(sys.argv[1:]) or LIES)
