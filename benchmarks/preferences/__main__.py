"""Held-out accuracy of reward models under attacks by people: ``python -m benchmarks.preferences``.

Settings are chosen on the attacked votes, except for RE-PO at its best (with the ridge and number of steps that do best
in the test), and for cDPO and rDPO, which are told the share of lies. The table goes to docs/data/preferences.csv.
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
from benchmarks.preferences.rivals import LOSSES, by_loss, cleanlab, dawid_skene, oracle, repo
from fairduel.stats import mean
from fairduel.votes import RobustRewardModel

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
    *("attack", "share", "plain", "rDPO, told", "Dr.DPO", "Hölder", "GCE", "Dawid–Skene", "RE-PO", "RE-PO, best"),
    *("ours", "± (ours)", "ours, no voters", "oracle", "AUC"),
)
"""Columns of the table in the documentation."""
_ENOUGH = 10  # votes of a voter who is judged
TABLE = Path(__file__).parents[2] / "docs" / "data" / "preferences.csv"


def measured(problem: Problem) -> dict[str, float]:
    """Return the accuracy of every model, and what ours says of voters."""
    found = {name: by_loss(problem, kind) for name, kind in LOSSES.items()}
    found["Dawid–Skene"] = dawid_skene(problem)
    if find_spec("cleanlab"):
        found["cleanlab"] = cleanlab(problem)
    found["RE-PO"], found["RE-PO, best"], reliability = repo(problem)
    model = RobustRewardModel().fit(
        problem.x.astype(np.float32), problem.y, voters=problem.voter, prompts=problem.prompt
    )
    found["ours"] = model.score(problem.test_x, problem.test_y)
    anonymous = RobustRewardModel().fit(problem.x.astype(np.float32), problem.y, prompts=problem.prompt)
    found["ours, no voters"] = anonymous.score(problem.test_x, problem.test_y)
    found["oracle"] = oracle(problem)
    judged = np.bincount(problem.voter, minlength=len(problem.is_liar)) >= _ENOUGH
    liars, scores = problem.is_liar[judged], model.truthfulness_[judged]
    found["AUC"] = roc_auc_score(liars, -scores) if 0 < liars.sum() < len(liars) else np.nan
    found["AUC, RE-PO"] = roc_auc_score(liars, -reliability[judged]) if 0 < liars.sum() < len(liars) else np.nan
    found["honest below ½"] = float((scores[~liars] < 0.5).mean()) if (~liars).any() else np.nan
    found["like size"] = float(model.camps_of_like_size)
    return found


def main(names: list[str], votes: int, seeds: int, most: int, out: Path) -> None:
    """Measure, print and write the table."""
    cells = [(name, attack) for name in names for attack in ATTACKS[:most]]
    rows = []
    for name, (how, share, one_vote) in track(cells, "attacks"):
        began = time.perf_counter()
        each = [
            measured(attacked(PROBLEMS[name](seed, votes), how, share, seed, one_vote=one_vote))
            for seed in range(seeds)
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
