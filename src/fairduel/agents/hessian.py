"""Base class of agents that explore by the Hessian of the estimate, which GINOP and HCW share."""

from dataclasses import dataclass

from fairduel.agents.contextual import ContextualAgent
from fairduel.agents.round import Plan
from fairduel.core.compiling import inlined
from fairduel.core.information import Information, dot
from fairduel.core.links import slope
from fairduel.core.selection import uncertainty_weight
from fairduel.duel import Vector


@inlined
def weigh(
    plan: Plan,
    numbers: Vector,  # noqa: ARG001
    theta: Vector,
    difference: Vector,
    width: float,
) -> tuple[float, float]:
    """Return w = min(1, α/‖φ‖_H⁻¹) and the slope σ′(φᵀθ) by which a duel counts in H until it is told."""
    link = plan.estimator.link
    return uncertainty_weight(plan.trust, width), slope(link.kind, link.scale, dot(difference, theta))


@dataclass(kw_only=True, eq=False)
class HessianAgent(ContextualAgent):
    """Base of agents that measure all widths by H, the Hessian of the estimate: duels on a flat part of σ count less.

    Whenever θ changes, H = λI + Σ_i w_i σ′(φ_iᵀθ) φ_i φ_iᵀ is computed again over everything told; with the one-pass
    estimator it is mirror descent's own. A pending duel counts too, by its slope when it was asked.
    """

    _weigh = staticmethod(weigh)
    _has_local_information = True
    _by_hessian = True

    @property
    def hessian(self) -> Information:
        """H of everything told at the current estimate, and of the pending duels."""
        self._refit()
        return self._local_information

    def _refit(self) -> Vector:
        if self._estimator.refit(self._information.log_determinant):
            self._local_information.replace(self._estimator.hessian)
            for asked in self._pending.values():
                if not asked.is_self_duel:
                    self._local_information.add(asked.difference, asked.weight * asked.slope)
        return self._estimator.theta
