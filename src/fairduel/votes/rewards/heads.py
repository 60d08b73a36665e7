"""What a reward is linear in: the features themselves, or a kernel between them and a sample of answers."""

from typing import Literal, NamedTuple, Self, get_args

import numpy as np
from numpy.typing import NDArray
from sklearn.kernel_approximation import Nystroem

from fairduel.duel import Matrix, Vector
from fairduel.errors import BadInputError, unknown_name

HeadName = Literal["linear", "kernel"]
_LANDMARKS = 300
_SAMPLE = 2000  # answers, to learn the unit of distance from

Answers = NDArray[np.floating]
"""Features of answers, shape (…, d)."""


class RewardHead(NamedTuple):
    """A map from the d features of an answer to the h numbers that its reward is linear in."""

    scale: Vector
    """What each feature is divided by, (d,)."""
    landmarks: Matrix
    """Scaled answers that the kernel compares with, (h, d); (0, d) for a linear head."""
    whitening: Matrix
    """Turns kernel values into h features whose products are the kernel's, (h, h)."""
    gamma: float
    """The kernel is exp(−γ ‖x − y‖²)."""

    @classmethod
    def of(cls, name: HeadName, pairs: Answers, seed: int) -> Self:
        """Learn the map from ``pairs`` of answers (n, 2, d), or for a linear head from their differences (n, d)."""
        if name not in get_args(HeadName):
            raise unknown_name("head", str(name), get_args(HeadName))
        dimension = pairs.shape[-1]
        if name == "linear":
            differences = pairs if pairs.ndim == 2 else pairs[:, 0] - pairs[:, 1]
            scale = np.sqrt(np.mean(np.square(differences), axis=0, dtype=np.float64))
            return cls(_usable(scale), np.empty((0, dimension)), np.empty((0, 0)), 0.0)
        if pairs.ndim == 2:
            raise BadInputError("a kernel needs both answers of each pair, shape (n, 2, d), not only their difference.")
        answers = pairs.reshape(-1, dimension)
        rng = np.random.default_rng(seed)
        some = answers[rng.choice(len(answers), min(_SAMPLE, len(answers)), replace=False)].astype(np.float64)
        scale = _usable(some.std(axis=0))
        some = np.unique(some / scale, axis=0)
        apart = ((some[: len(some) // 2] - some[len(some) - len(some) // 2 :]) ** 2).sum(axis=1)
        gamma = 1.0 / max(float(np.median(apart)) if len(apart) else 1.0, 1e-12)
        count = min(_LANDMARKS, len(some))
        kernel = Nystroem(gamma=gamma, n_components=count, random_state=seed).fit(some)
        return cls(scale, kernel.components_, kernel.normalization_.T * np.sqrt(count), gamma)

    def __call__(self, answers: Answers) -> Matrix:
        """Return the h numbers of each answer, shape (n, h)."""
        scaled = answers / self.scale.astype(answers.dtype)
        if not len(self.landmarks):
            return scaled
        squares = (scaled**2).sum(axis=1)[:, None] + (self.landmarks**2).sum(axis=1)
        apart = squares - 2.0 * scaled @ self.landmarks.T
        return np.asarray(np.exp(-self.gamma * np.maximum(apart, 0.0)) @ self.whitening)

    def ahead(self, pairs: Answers) -> Matrix:
        """Return by how much the first answer's numbers exceed the second's, (n, h)."""
        if pairs.ndim == 2:
            if len(self.landmarks):
                raise BadInputError("a kernel needs both answers of each pair, shape (n, 2, d).")
            return self(pairs)
        if not len(self.landmarks):
            return self(pairs[:, 0] - pairs[:, 1])
        return self(pairs[:, 0]) - self(pairs[:, 1])


def _usable(scale: Vector) -> Vector:
    return np.where(scale > 0.0, scale, 1.0)
