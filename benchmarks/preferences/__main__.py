"""Held-out accuracy of reward models under attacks by people: ``python -m benchmarks.preferences``.

Settings are chosen on the attacked votes, except for "best" (the ridge, and for RE-PO the number of steps, that do best
in the test) and "halves" (in one half of the test pairs, scored in the other), and for cDPO and rDPO, which are told
the share of lies. The table goes to docs/data/preferences.csv.
"""

import argparse
import csv
import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from rich.progress import track
from sklearn.metrics import roc_auc_score

from benchmarks.preferences.problems import DATA, PROBLEMS, Problem, attacked
from benchmarks.preferences.rivals import (
    LOSSES,
    by_loss,
    by_pair,
    by_voter,
    cleanlab,
    crowd_bt,
    dawid_skene,
    evidence_of_oracle,
    mace,
    plain,
    without_lies,
)
from fairduel.stats import mean
from fairduel.votes import RobustRewardModel
from fairduel.votes.rewards.held_out import RIDGES

ATTACKS = (
    ("none", 0.0, False),
    ("short", 0.3, False),
    ("short", 0.3, True),
    ("flip", 0.3, False),
    ("short", 0.4, False),
    ("flip", 0.4, False),
    ("topic", 0.3, False),
    ("short", 0.15, True),
    ("careless", 0.3, False),
    ("short", 0.4, True),
    ("flip", 0.15, False),
    ("style", 0.3, False),
    ("short", 0.15, False),
    ("short", 0.45, False),
)
SHOWN = (
    *("attack", "share", "plain", "rDPO, told", "Dr.DPO", "Hölder", "GCE", "Dawid–Skene", "MACE", "Crowd-BT"),
    *("RE-PO", "RE-PO, best", "ours", "± (ours)", "ours, no lies", "ours, no voters", "oracle", "AUC", "AUC, oracle"),
)
"""Columns of the table in the documentation."""
_ENOUGH = 10  # votes of a voter who is judged
TABLE = Path(__file__).parents[2] / "docs" / "data" / "preferences.csv"


def ours(problem: Problem, **settings: float) -> tuple[float, RobustRewardModel]:
    """Return the accuracy of our model, and the model."""
    x = problem.x.astype(np.float32)
    model = RobustRewardModel(**settings).fit(x, problem.y, voters=problem.voter, prompts=problem.prompt)
    return model.score(problem.test_x, problem.test_y), model


def measured(clean: Problem, how: str, problem: Problem) -> dict[str, float]:
    """Return the accuracy of every model under an attack, and what ours says of voters."""
    found = {name: by_loss(problem, kind) for name, kind in LOSSES.items()}
    found["Dawid–Skene"], found["MACE"] = by_pair(problem, dawid_skene), by_pair(problem, mace)
    if find_spec("cleanlab"):
        found["cleanlab"] = cleanlab(problem)
    found["Crowd-BT"] = crowd_bt(problem)
    found["RE-PO"], found["RE-PO, best"], found["RE-PO, halves"], reliability = by_voter(problem)
    found["ours"], model = ours(problem)
    honest, lies = without_lies(problem), bool(problem.is_liar.any())
    found["ours, no lies"] = ours(honest)[0] if lies else found["ours"]
    found["ours, best"] = max(ours(problem, ridge=problem.x.shape[-1] * each)[0] for each in RIDGES)
    anonymous = RobustRewardModel().fit(problem.x.astype(np.float32), problem.y, prompts=problem.prompt)
    found["ours, no voters"] = anonymous.score(problem.test_x, problem.test_y)
    found["oracle"] = by_loss(honest, plain)
    judged = np.bincount(problem.voter, minlength=len(problem.is_liar)) >= _ENOUGH
    liars, scores = problem.is_liar[judged], model.truthfulness_[judged]
    told = 0 < liars.sum() < len(liars)
    found["AUC"] = roc_auc_score(liars, -scores) if told else np.nan
    found["AUC, RE-PO"] = roc_auc_score(liars, -reliability[judged]) if told else np.nan
    found["AUC, oracle"] = roc_auc_score(liars, evidence_of_oracle(how, clean, problem)[judged]) if told else np.nan
    found["honest below ½"] = float((scores[~liars] < 0.5).mean()) if (~liars).any() else np.nan
    found["like size"] = float(model.camps_of_like_size)
    return found


def main(names: list[str], votes: int, seeds: int, most: int, out: Path) -> None:
    """Measure, print and write the table."""
    cells = [(name, attack) for name in names for attack in ATTACKS[:most]]
    rows = []
    for name, (how, share, one_vote) in track(cells, "attacks"):
        began = time.perf_counter()
        honest = [PROBLEMS[name](seed, votes) for seed in range(seeds)]
        each = [
            measured(clean, how, attacked(clean, how, share, seed, one_vote=one_vote))
            for seed, clean in enumerate(honest)
        ]
        row = {"data": name, "attack": how + (", one vote each" if one_vote else ""), "share": f"{share:.0%}"}
        for key in each[0]:
            values = np.array([found[key] for found in each])
            row[key] = "" if np.isnan(values).all() else f"{np.nanmean(values):.3f}"
        row["± (ours)"] = f"{mean(np.array([found['ours'] for found in each])).error:.3f}" if seeds > 1 else ""
        rows.append(row)
        print(*row.values(), f"{time.perf_counter() - began:.0f} s", flush=True)
        with out.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(
                file, list(row) if out != TABLE else SHOWN, extrasaction="ignore", lineterminator="\n"
            )
            writer.writeheader()
            writer.writerows(rows)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", nargs="*", choices=PROBLEMS, default=["ukp"] if DATA.is_dir() else ["synthetic"])
    parser.add_argument("--votes", type=int, default=3000, help="votes to learn from")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--attacks", type=int, default=len(ATTACKS), help="how many attacks, the first ones")
    parser.add_argument("--out", type=Path, default=TABLE, help="file to write")
    given = parser.parse_args()
    main(given.data, given.votes, given.seeds, given.attacks, given.out)
