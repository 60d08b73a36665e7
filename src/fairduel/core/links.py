"""Link functions map a difference of rewards to the probability of winning (eq. preference); tie models add ties to it.

Each link is σ(x) = base(scale · x) with σ(x) + σ(−x) = 1. The compiled scalar functions are used everywhere;
:class:`Link` is the public interface. Both tie models turn p = P(first beats second) without ties into the
probabilities of three outcomes. They treat first and second symmetrically, and P(tie) is largest at p = ½.
"""

import math
import re
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike

from fairduel.checks import literal, positive
from fairduel.core.compiling import compiled
from fairduel.duel import Vector
from fairduel.errors import BadInputError, unknown_name

LinkName = Literal["logistic", "probit", "clipped-linear"]
LOGISTIC_KIND, PROBIT_KIND, CLIPPED_LINEAR_KIND = range(3)
_SQRT_TWO = math.sqrt(2.0)
_SQRT_TWO_PI = math.sqrt(2.0 * math.pi)
_EDGE = 0.5 + 1e-12  # the clipped-linear slope includes ±1/2, despite rounding


@compiled
def probability_and_slope(kind: int, scale: float, x: float) -> tuple[float, float]:
    """σ(x) and σ′(x), with one exponential for both."""
    z = scale * x
    if kind == LOGISTIC_KIND:
        e = math.exp(-abs(z))
        r = 1.0 / (1.0 + e)
        return (r if z >= 0.0 else e * r), scale * e * r * r
    if kind == PROBIT_KIND:
        return 0.5 * math.erfc(-z / _SQRT_TWO), scale * math.exp(-0.5 * z * z) / _SQRT_TWO_PI
    return min(1.0, max(0.0, 0.5 + z)), (scale if abs(z) <= _EDGE else 0.0)


@compiled
def probability(kind: int, scale: float, x: float) -> float:
    """σ(x)."""
    return probability_and_slope(kind, scale, x)[0]


@compiled
def slope(kind: int, scale: float, x: float) -> float:
    """σ′(x)."""
    return probability_and_slope(kind, scale, x)[1]


@compiled
def potential(kind: int, scale: float, x: float) -> float:
    """∫σ, the convex function whose derivative is σ: the loss whose stationary point is eq. (MLE)."""
    z = scale * x
    if kind == LOGISTIC_KIND:
        return (max(z, 0.0) + math.log1p(math.exp(-abs(z)))) / scale
    if kind == PROBIT_KIND:
        density = math.exp(-0.5 * z * z) / _SQRT_TWO_PI
        return (z * 0.5 * math.erfc(-z / _SQRT_TWO) + density) / scale
    if z <= -0.5:
        return 0.0
    if z >= 0.5:
        return z / scale
    return 0.5 * (z + 0.5) * (z + 0.5) / scale


@compiled
def _probabilities(kind: int, scale: float, x: Vector) -> Vector:
    result = np.empty_like(x)
    for i in range(x.size):
        result[i] = probability(kind, scale, x[i])
    return result


@compiled
def _slopes(kind: int, scale: float, x: Vector) -> Vector:
    result = np.empty_like(x)
    for i in range(x.size):
        result[i] = slope(kind, scale, x[i])
    return result


class LinkNumbers(NamedTuple):
    """A link, for compiled functions."""

    kind: int
    scale: float


@dataclass(frozen=True, slots=True)
class Link:
    """A link function σ.

    Args:
        name: ``"logistic"``, ``"probit"`` or ``"clipped-linear"``.
        scale: The factor on the argument.

    >>> LOGISTIC.probability([0.0, 1.0]).round(4)
    array([0.5   , 0.7311])
    >>> round(LOGISTIC.kappa(2.0), 5)
    0.01766
    """

    name: LinkName
    scale: float = 1.0

    def __post_init__(self) -> None:
        literal("link", self.name, LinkName)
        object.__setattr__(self, "scale", positive("the scale of a link", self.scale))

    @property
    def kind(self) -> int:
        """The number of this link in compiled functions."""
        return get_args(LinkName).index(self.name)

    @property
    def numbers(self) -> LinkNumbers:
        """The link for compiled functions."""
        return LinkNumbers(self.kind, self.scale)

    def probability(self, x: ArrayLike) -> Vector:
        """Return σ(x), elementwise, in the shape of ``x``."""
        values = np.asarray(x, dtype=np.float64)
        return _probabilities(self.kind, self.scale, values.ravel()).reshape(values.shape)

    def slope(self, x: ArrayLike) -> Vector:
        """Return σ′(x), elementwise, in the shape of ``x``."""
        values = np.asarray(x, dtype=np.float64)
        return _slopes(self.kind, self.scale, values.ravel()).reshape(values.shape)

    def kappa(self, norm_bound: float) -> float:
        """Return κ = min σ′ on [−2B, 2B] (Assumption 2), for B = ``norm_bound``.

        Each σ′ is even and decreases away from 0, so the minimum is at 2B.
        """
        value = slope(self.kind, self.scale, 2.0 * norm_bound)
        if value <= 0.0:
            limit = f" (at most {0.25 / self.scale:g})" if self.name == "clipped-linear" else ""
            raise BadInputError(
                f"the {self} link is flat at ±{2 * norm_bound:g}, so κ = 0; use a smaller norm bound{limit}."
            )
        return value

    def __str__(self) -> str:
        return self.name if self.scale == 1.0 else f"{self.name}({self.scale!r})"


LOGISTIC = Link("logistic")
PROBIT = Link("probit")


def clipped_linear(scale: float = 1.0) -> Link:
    """σ_κ(x) = min(1, max(0, ½ + κx)) with κ = ``scale``: the link of the lower bound (eq. 0014)."""
    return Link("clipped-linear", scale)


def as_link(link: Link | str) -> Link:
    """Return the link itself, or the link with this name.

    >>> as_link("clipped-linear(0.5)").scale
    0.5
    """
    return link if isinstance(link, Link) else _parse(str(link))


def _parse(text: str) -> Link:
    match = re.fullmatch(r"([a-z-]+)(?:\((\S+)\))?", text.strip())
    if match is None or match[1] not in get_args(LinkName):
        raise unknown_name("link", text, get_args(LinkName))
    try:
        scale = float(match[2]) if match[2] else 1.0
    except ValueError:
        raise BadInputError(f"the scale in the link {text!r} is not a number.") from None
    return Link(match[1], scale)  # type: ignore[arg-type]  # checked above


_NAMES = ("none", "davidson", "rao-kupper")
_NONE, _DAVIDSON, _RAO_KUPPER = range(3)


class TieModel(NamedTuple):
    """A tie model, for compiled functions."""

    kind: int = _NONE
    size: float = 0.0
    """ν of Davidson, η of Rao and Kupper."""


NO_TIES = TieModel()


@compiled
def win_and_tie(model: TieModel, p: float) -> tuple[float, float]:
    """Return P(first wins) and P(tie), where the first would win with probability p without ties.

    Davidson (1970): p/(1 + νs) and νs/(1 + νs) with s = √(p(1 − p)); given that there is a winner, p is unchanged.
    Rao and Kupper (1967): to win, an action must be η times as strong, p/(p + η(1 − p)); the rest are ties.
    """
    if model.kind == _DAVIDSON:
        tied = model.size * math.sqrt(p * (1.0 - p))
        return p / (1.0 + tied), tied / (1.0 + tied)
    if model.kind == _RAO_KUPPER:
        first, second = p / (p + model.size * (1.0 - p)), (1.0 - p) / (1.0 - p + model.size * p)
        return first, 1.0 - first - second
    return p, 0.0


def tie_model(text: str) -> TieModel:
    """Parse the name and size of a model: ``"none"``, ``"davidson(0.5)"`` for ν = ½, ``"rao-kupper(1.5)"`` for η = 1.5.

    >>> win_and_tie(tie_model("davidson(2)"), 0.5)
    (0.25, 0.5)
    """
    match = re.fullmatch(r"([a-z-]+)(?:\((\S+)\))?", str(text).strip())
    if match is None or match[1] not in _NAMES:
        raise unknown_name("tie model", str(text), _NAMES)
    kind = _NAMES.index(match[1])
    if kind == _NONE:
        return NO_TIES
    try:
        size = positive("size", float(match[2] or ""))
    except (ValueError, BadInputError):
        raise BadInputError(f"tie model {text!r} needs a positive number, as in {match[1]}(1.5).") from None
    if kind == _RAO_KUPPER and size < 1.0:
        raise BadInputError(f"η of rao-kupper must be at least 1, not {size:g}.")
    return TieModel(kind, size)
