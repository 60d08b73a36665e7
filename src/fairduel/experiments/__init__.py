"""Experiments: each declares the runs and the views of one figure."""

from fairduel.experiments.estimators import estimators
from fairduel.experiments.experiment import Curves, Declaration, Entry, Experiment, Lines, Shares, title_of
from fairduel.experiments.figure1 import figure1
from fairduel.experiments.figure2 import figure2
from fairduel.experiments.ginop import ginop
from fairduel.experiments.growth import dimension, horizon
from fairduel.experiments.radius import radius
from fairduel.experiments.rcdp import post_serving, rcdp
from fairduel.experiments.recommendation import recommendation
from fairduel.experiments.sigmoid import sigmoid
from fairduel.experiments.unknown_budget import unknown_budget

EXPERIMENTS: dict[str, Declaration] = {
    "figure1": figure1,
    "figure2": figure2,
    "radius": radius,
    "sigmoid": sigmoid,
    "unknown-budget": unknown_budget,
    "dimension": dimension,
    "horizon": horizon,
    "estimators": estimators,
    "recommendation": recommendation,
    "ginop": ginop,
    "rcdp": rcdp,
    "post-serving": post_serving,
}
"""Every built-in experiment, by name."""

__all__ = ["EXPERIMENTS", "Curves", "Declaration", "Entry", "Experiment", "Lines", "Shares", "title_of"]
