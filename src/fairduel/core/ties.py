"""Models of ties: how often two actions tie, given the probability that one beats the other.

Both models turn p = P(first beats second) without ties into the probabilities of three outcomes. They treat first and
second symmetrically, and P(tie) is largest at p = ½.
"""

import math
import re
from typing import NamedTuple

from fairduel.checks import positive
from fairduel.core.compiling import compiled
from fairduel.errors import BadInputError, unknown_name

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
