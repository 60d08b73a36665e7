"""Evidence that is made up, to see whether a judge sees what was planted."""

import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairduel.experiments.claims.inequalities import Inequality

NAMES = ("confidence", "local_confidence", "slope", "round_regret", "potential", "corruption", "regret")


SOUND = Inequality(ratio=0.5, reach=2.0)


@dataclass
class Planted:
    """Runs with a planted regret."""

    regret_of: Any
    """The mean regret: a number, or a function of the cell."""
    noise: Any = 10.0
    """Its standard deviation, likewise."""
    seeds: int = 100
    runs_locked_in: Any = 0
    """How many of the runs end locked in, likewise."""
    inequality: Inequality = SOUND
    broken: float = 0.0
    """The share of seeds on which an inequality fails."""
    broken_name: str = ""
    """Which inequality that is; all of them if empty."""
    broken_in: Any = True
    """In which cells, likewise."""

    def regret(self, cell):
        rng = np.random.default_rng(zlib.crc32(repr(cell).encode()))
        noise = rng.standard_normal(self.seeds)
        return _of(cell, self.regret_of) + _of(cell, self.noise) * (noise - noise.mean()) / noise.std()

    late_regret = regret

    def locked_in(self, cell):
        return np.arange(self.seeds) < _of(cell, self.runs_locked_in)

    def inequalities(self, cell):
        failed = Inequality(ratio=1.5, reach=self.inequality.reach)
        broken = round(self.broken * self.seeds) if _of(cell, self.broken_in) else 0
        fails = [self.broken_name] if self.broken_name else NAMES
        sound = dict.fromkeys(NAMES, self.inequality)
        return [sound | (dict.fromkeys(fails, failed) if seed < broken else {}) for seed in range(self.seeds)]


def _of(cell, value):
    return value(cell) if callable(value) else value


def statuses(claim, evidence):
    """The verdicts' statuses, in order."""
    return [verdict.status for verdict in claim.judge(evidence)]
