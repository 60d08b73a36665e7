"""Search the constants of ``radius="pre-tuned"``: ``python -m benchmarks.fair_trial`` (two minutes on an idle core).

RCDB, RCDB-S and HCW get the kind of search that Sceptic's constants come from: on the leaderboard's tuning scenarios
with fixed actions, on tuning seeds only, told C and not told, by regret over that of MaxPairUCB or MaxInP tuned for
each scenario. It is a cross-entropy method: a Sobol sample, then normal samples around the best so far.
"""

import argparse
import json
import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from scipy.stats import qmc
from threadpoolctl import threadpool_limits

from fairduel import LockInWarning
from fairduel.agents import AGENTS
from fairduel.agents.parts.flip_tolerance import Constants
from fairduel.duel import Matrix, Vector
from fairduel.experiments.competition import SCENARIOS, Contender, Scenario
from fairduel.experiments.tuning import FIRST_TUNING_SEED
from fairduel.simulation import Cell

Box = Mapping[str, tuple[float, float]]
_COMMON = {"radius": (-6, 2), "trust": (-5, 4), "ridge": (-3, 8), "tolerance": (-1, 2)}
SPACES: Mapping[str, Box] = {
    "rcdb": _COMMON,
    "rcdb-s": {**_COMMON, "radius": (-7, 1), "slope_radius": (-5, 1)},
    "hcw": {**_COMMON, "radius": (-7, 1)},
}
"""The constants searched in each agent, and between which powers of two."""
DEFAULTS = {"rcdb": {}, "rcdb-s": {"radius": 0.5, "slope_radius": 0.25}, "hcw": {"radius": 0.5}}
"""Those chosen by hand, where they are not 1."""
RIVALS = (
    *(Contender("maxpairucb", {"radius": float(radius)}) for radius in (1, 2, 3, 4, 6, 8, 12, 16)),
    *(
        Contender("maxinp", {"radius": float(radius), "warmup": warmup})
        for radius in (1, 2, 3, 4, 6, 8, 12)
        for warmup in (0, 40, 80, 160, 320)
    ),
)
PROBLEMS = tuple(each for each in SCENARIOS if each.half == "tuning" and each.world == "hypercube")
CLEAN = tuple(each for each in PROBLEMS if each.budget == 0)
"""If C = 0 is known, every vote counts fully and only the radius is left to choose."""
CLEAN_RADII = tuple(2.0 ** (step / 2) for step in range(-6, 5))
FIRST, KEPT, LAST = 32, 6, 5
"""The size of the Sobol sample, how many of the best the next sample is around, and how many play the last round."""


def seeds(stage: int, count: int) -> range:
    """Return the tuning seeds of a stage; no two stages share any."""
    return range(FIRST_TUNING_SEED + 10_000 * stage, FIRST_TUNING_SEED + 10_000 * stage + count)


def mean_regret(cell: Cell, chosen: Sequence[int]) -> float:
    """Return the mean regret over some seeds."""
    return float(np.mean([cell.run(seed).trace.regret.sum() for seed in chosen]))


def tuned_rival(scenario: Scenario) -> float:
    """Return the regret of the best rival on other seeds than those it was chosen on."""
    by_regret = sorted(RIVALS, key=lambda rival: mean_regret(rival.cell(scenario), seeds(1, 8)))
    best = min(by_regret[:6], key=lambda rival: mean_regret(rival.cell(scenario), seeds(2, 24)))
    return mean_regret(best.cell(scenario), seeds(3, 64))


def regret(agent: str, constants: Constants, scenario: Scenario, chosen: Sequence[int], *, is_told: bool) -> float:
    """Return the mean regret of an agent with these constants."""
    settings = {"radius": "pre-tuned", **({} if is_told else {"known_budget": False})}
    with patch.object(AGENTS[agent], "pre_tuned", constants):
        return mean_regret(Contender(agent, settings).cell(scenario), chosen)


def log_ratios(agent: str, constants: Constants, rivals: Mapping[str, float], chosen: Sequence[int]) -> Vector:
    """Return log regret ratios on all problems, told C where C > 0 and then not told."""
    return np.array(
        [
            math.log(regret(agent, constants, each, chosen, is_told=is_told) / rivals[each.title])
            for is_told in (True, False)
            for each in PROBLEMS
            if each.budget or not is_told
        ]
    )


def score(ratios: Vector) -> float:
    """Return the mean of the log ratios plus half that of the worst twelfth, as long as that exceeds log 1.5."""
    worst = np.sort(ratios)[-max(3, len(ratios) // 12) :].mean()
    return float(ratios.mean() + 0.5 * max(worst, math.log(1.5)))


def search(agent: str, rivals: Mapping[str, float], say: Callable[[str], None]) -> dict[str, Any]:
    """Return the best constants of an agent and how they were found."""
    box = np.array(list(SPACES[agent].values()), dtype=float)
    rng = np.random.default_rng(FIRST_TUNING_SEED)

    def constants(point: Vector) -> Constants:
        values = dict(zip(SPACES[agent], (2.0**point).tolist(), strict=True))
        return Constants(clean_radius=values["radius"], **values)

    def scores(points: Matrix, stage: int, count: int) -> Vector:
        found = [score(log_ratios(agent, constants(point), rivals, seeds(stage, count))) for point in points]
        best = points[int(np.argmin(found))]
        what = f"best {min(found):.3f} of {len(found)} at {np.round(2.0**best, 3).tolist()}"
        say(f"{agent}: stage {stage}, {what}; first {found[0]:.3f}")
        return np.array(found)

    by_hand = [math.log2(DEFAULTS[agent].get(name, 1.0)) for name in SPACES[agent]]
    points = np.vstack([by_hand, qmc.scale(qmc.Sobol(len(box), seed=rng).random(FIRST), *box.T)])
    elite = points[np.argsort(scores(points, 4, 1))[:KEPT]]
    for stage in (5, 6):
        sample = rng.multivariate_normal(elite.mean(axis=0), np.cov(elite.T) + 0.02 * np.eye(len(box)), 16)
        sample = np.vstack([elite[:2], np.clip(sample, *box.T)])
        elite = sample[np.argsort(scores(sample, stage, 2))[:KEPT]]
    finalists = np.vstack([by_hand, elite[: LAST - 2], elite.mean(axis=0)])
    best = constants(finalists[int(np.argmin(scores(finalists, 7, 8)))])
    clean = {
        radius: sum(
            regret(agent, best._replace(clean_radius=radius), each, seeds(8, 16), is_told=True) for each in CLEAN
        )
        for radius in CLEAN_RADII
    }
    best = best._replace(clean_radius=min(clean, key=lambda radius: clean[radius]))
    ratios = log_ratios(agent, best, rivals, seeds(9, 4))
    return {"constants": best._asdict(), "clean": clean, "score": score(ratios), "ratios": np.exp(ratios).tolist()}


def main() -> None:
    """Search every agent that is named, and write what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("agents", nargs="*", default=[*SPACES])
    parser.add_argument("--out", type=Path, default=Path("results/fair-trial"))
    given = parser.parse_args()
    warnings.simplefilter("ignore", LockInWarning)
    given.out.mkdir(parents=True, exist_ok=True)
    with threadpool_limits(1):
        known = given.out / "rivals.json"
        if not known.exists():
            known.write_text(json.dumps({each.title: tuned_rival(each) for each in PROBLEMS}))
        rivals = json.loads(known.read_text())
        for agent in given.agents:
            found = search(agent, rivals, lambda line: print(line, flush=True))
            (given.out / f"{agent}.json").write_text(json.dumps(found, indent=1))
            print(agent, found["constants"], f"score {found['score']:.3f}", flush=True)


if __name__ == "__main__":
    main()
