"""Experiments: each declares the runs, the conclusion and the views of one figure."""

from fairduel.experiments.ablations import (
    estimates,
    growth_in_dimension,
    growth_in_horizon,
    norms,
    price_of_tolerance,
    radii,
    recommendations,
    unknown_budget,
)
from fairduel.experiments.experiment import Declaration
from fairduel.experiments.other_papers import (
    ginop_world,
    kernels_by_flips,
    kernels_by_horizon,
    late_features,
    late_outcomes,
    networks,
    nonlinear_rewards,
    other_attacks_on_kernels,
)
from fairduel.experiments.paper import figure1, figure2
from fairduel.experiments.sceptic_parts import parts_of_sceptic

EXPERIMENTS: dict[str, Declaration] = {
    "figure1": figure1,
    "figure2": figure2,
    "radius": radii,
    "sigmoid": norms,
    "unknown-budget": unknown_budget,
    "tolerance": price_of_tolerance,
    "dimension": growth_in_dimension,
    "horizon": growth_in_horizon,
    "estimators": estimates,
    "recommendation": recommendations,
    "sceptic": parts_of_sceptic,
    "nonlinear": nonlinear_rewards,
    "kernel-attacks": other_attacks_on_kernels,
    "kernel-horizon": kernels_by_horizon,
    "kernel-flips": kernels_by_flips,
    "networks": networks,
    "ginop": ginop_world,
    "rcdp": late_outcomes,
    "post-serving": late_features,
}
"""Every built-in experiment, by name."""
