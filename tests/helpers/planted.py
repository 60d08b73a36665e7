"""Evidence that is made up, to see whether a judge sees what was planted."""

import zlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fairduel.experiments.proof_audit import Inequality


@dataclass
class Planted:
    """Runs with a planted regret."""

    regret_of: Any
    """The mean regret: a number, or a function of the cell."""
    noise: Any = 10.0
    """Its standard deviation, likewise."""
    seeds: int = 100
    runs_locked_in: int = 0
    inequality: Inequality = field(default_factory=lambda: Inequality(ratio=0.5, reach=2.0))
    broken: float = 0.0
    """The share of audited runs in which every inequality fails."""

    def regret(self, cell):
        rng = np.random.default_rng(zlib.crc32(repr(cell).encode()))
        noise = rng.standard_normal(self.seeds)
        return _of(cell, self.regret_of) + _of(cell, self.noise) * (noise - noise.mean()) / noise.std()

    late_regret = regret

    def locked_in(self, _):
        return np.arange(self.seeds) < self.runs_locked_in

    def audits(self, _):
        names = ("confidence", "local_confidence", "slope", "round_regret", "potential", "corruption", "regret")
        failed = Inequality(ratio=1.5, reach=self.inequality.reach)
        broken = round(self.broken * self.seeds)
        return [dict.fromkeys(names, failed if i < broken else self.inequality) for i in range(self.seeds)]


def _of(cell, value):
    return value(cell) if callable(value) else value


def statuses(claim, evidence):
    """The verdicts' statuses, in order."""
    return [verdict.status for verdict in claim.judge(evidence)]
