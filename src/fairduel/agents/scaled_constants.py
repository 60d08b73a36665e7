"""A factor on published constants that were made for proofs."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from fairduel.checks import fraction, positive
from fairduel.errors import unknown_name


@dataclass(kw_only=True, eq=False)
class Scaled:
    """Mixin for agents whose published constants can be scaled down by one factor.

    Args:
        scale: Factor on the published constants: ``"theory"`` is 1, ``"practical"`` depends on the agent, or a number.
        failure_probability: δ of the published constants.
    """

    published_settings: ClassVar[Mapping[str, Any]] = {"scale": "theory"}

    _practical_scale: ClassVar[float]

    scale: float | str = "practical"
    failure_probability: float = 0.05

    def __post_init__(self) -> None:
        super().__post_init__()  # type: ignore[misc]  # the agent's, next in the MRO
        self.failure_probability = fraction("failure_probability", self.failure_probability)
        known = {"practical": self._practical_scale, "theory": 1.0}
        if isinstance(self.scale, str):
            if self.scale not in known:
                raise unknown_name("scale", self.scale, [*known, "a number"])
            self._scale = known[self.scale]
        else:
            self._scale = self.scale = positive("scale", self.scale)

    @property
    def settings(self) -> dict[str, Any]:
        """Every setting, with defaults resolved."""
        given: dict[str, Any] = super().settings  # type: ignore[misc]
        return given | {"scale": self._scale}
