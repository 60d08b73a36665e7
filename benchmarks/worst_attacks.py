"""The worst attack found on every dueling agent: ``python -m benchmarks.worst_attacks`` (half an hour on an idle core).

For each agent, C known and not, a search like that of ``fairduel attack`` on the paper's problem (T = 2000, C = 45), on
tuning seeds; then regret under what it found at T = 500 to 32,000 and C ~ √T, on seeds that the search has not seen.
RCDB and the recommended agents are attacked in other worlds too. Interrupt it at any time: rerunning resumes. With
``--keep`` the leaderboard plays the attacks found. ``--known`` only measures those that were kept.
"""

import argparse
import csv
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from fairduel.adversaries import searching
from fairduel.adversaries.searching import in_words
from fairduel.cli import output
from fairduel.experiments.attack_search import (
    FINAL_RUNS,
    FINALISTS,
    HORIZONS,
    POPULATION,
    SCRIPTED,
    SEARCH_RUNS,
    WorstAttack,
    count_search_runs,
    find_worst_attack,
    measure_attack,
)
from fairduel.experiments.competition import CONTENDERS, ROBUST, Contender
from fairduel.experiments.paper_setup import NO_ATTACK, paper_cell
from fairduel.experiments.sentences import with_error, with_interval
from fairduel.files import write_atomically
from fairduel.report.drawing import image
from fairduel.report.research.attack_page import growth_figure
from fairduel.simulation import Cell
from fairduel.stats import mean

FORMS = (ROBUST, *(each for each in CONTENDERS if "radius" not in each.settings))
"""Every agent as it comes, and the recommended one against an attacker who sees it."""
ABROAD = (ROBUST, Contender("rcdb"))
"""Those attacked in other worlds too."""
WORLDS: Mapping[str, Mapping[str, Any]] = {
    "hypercube": {},
    "20 vertices, d = 10": {"world_settings": {"dimension": 10, "norm": 2.0, "count": 20}},
    "fresh": {"world": "fresh"},
}
_QUICK_WORLDS = ("hypercube", "20 vertices, d = 10")
_SLOW = ("vacdb", "fgts", "versatile-db")
"""Agents whose runs are slow; searched with a quarter of the runs, and without the longest horizon."""
HEADER = ("agent", "world", "no attack", "worst scripted", *(f"T = {horizon:,}" for horizon in HORIZONS), "exponent")


def problem_of(form: Contender, world: Mapping[str, Any]) -> Cell:
    """The paper's problem, perhaps in another world, before it is attacked."""
    return paper_cell(form.agent, NO_ATTACK, form.settings, **world)


def row_of(name: str, world: str, found: WorstAttack) -> list[str]:
    """The numbers of one search, as the table shows them."""
    scripted = {each: mean(regret) for each, regret in found.scripted.items()}
    clean = scripted.pop("no attack")
    grown = [mean(found.growth[horizon]) if horizon in found.growth else None for horizon in HORIZONS]
    cells = [clean, max(scripted.values()), *grown]
    texts = ["–" if each is None else with_error(each).replace(" ± ", "±") for each in cells]
    return [name, world, *texts, with_interval(found.exponent)]


def main() -> None:
    """Search, and write the table, the figure and the attacks."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.worst_attacks", description=__doc__)
    parser.add_argument("agents", nargs="*", help="names or titles of agents (default: all)")
    parser.add_argument("--world", action="append", choices=[*WORLDS, "replay"], help="a world (default: all)")
    parser.add_argument("--search", type=int, default=4800, help="runs of each search (default: %(default)s)")
    parser.add_argument("--runs", type=int, default=24, help="runs of each figure (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time (default: 1)")
    parser.add_argument("--replay", type=Path, help="folder of recorded votes for another world")
    parser.add_argument("--known", action="store_true", help="do not search: measure the attacks that were kept")
    parser.add_argument("--keep", action="store_true", help="play the attacks found on the leaderboard")
    parser.add_argument("--out", type=Path, default=Path("results/worst-attacks"))
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    worlds = dict(WORLDS)
    if given.replay:
        recorded = {"path": str(given.replay), "missing": "model"}
        worlds["replay"] = {"world": "replay", "world_settings": recorded}
    searches = [
        (form, world)
        for world in given.world or worlds
        for form in (FORMS if world == "hypercube" else ABROAD)
        if not given.agents or {form.agent, form.title} & set(given.agents)
    ]
    if given.known:
        searches = [each for each in searches if name_of(*each) in searching.worst_found()]
    rows, found = list[list[str]](), dict[str, WorstAttack]()
    with output.progress_bar("Searches", sum(_count(*each, given) for each in searches)) as progress:
        for form, world in searches:
            name, problem, seeds = name_of(form, world), problem_of(form, worlds[world]), range(given.runs)
            common: dict[str, Any] = {"jobs": given.jobs, "horizons": _horizons(form, world), "progress": progress}
            if given.known:
                worst = measure_attack(problem, searching.worst_found()[name], seeds, **common)
            else:
                runs, path = given.search // (4 if form.agent in _SLOW else 1), given.out / f"{name}.json"
                worst = find_worst_attack(problem, seeds, runs=runs, path=path, **common)
            found[name] = worst
            rows.append(row_of(form.title, world, worst))
            output.say(" · ".join(rows[-1]), in_words(worst.problem.attack_settings))
            write(given.out, rows, found)
            if given.keep:
                keep({name: dict(worst.problem.attack_settings) for name, worst in found.items()})


def name_of(form: Contender, world: str) -> str:
    """The name by which an attack is kept: that of the agent, and of the world unless it is the paper's."""
    return form.title if world == "hypercube" else f"{form.title}, {world}"


def keep(found: Mapping[str, Any]) -> None:
    """Let the leaderboard play these attacks, by the title of the agent that they were found on."""
    path = Path(searching.__file__).with_name("found.json")
    lines = ",\n".join(
        f" {json.dumps(title)}: {json.dumps(each)}" for title, each in {**searching.worst_found(), **found}.items()
    )
    write_atomically(path, f"{{\n{lines}\n}}\n".encode())


def _horizons(form: Contender, world: str) -> Sequence[int]:
    if world not in _QUICK_WORLDS:
        return HORIZONS[: 3 if world == "fresh" else 2]
    return HORIZONS[:3] if form.agent in _SLOW else HORIZONS


def _count(form: Contender, world: str, given: argparse.Namespace) -> int:
    runs = given.search // (4 if form.agent in _SLOW else 1)
    searched = (count_search_runs(runs) + 1) * POPULATION * SEARCH_RUNS + FINALISTS * FINAL_RUNS
    searched = 0 if given.known else searched
    return searched + (1 + len(SCRIPTED) + len(_horizons(form, world))) * int(given.runs)


def write(folder: Path, rows: Iterable[Sequence[str]], found: Mapping[str, WorstAttack]) -> None:
    """Write the table, the attacks and the figure, which shows the paper's problem only."""
    with (folder / "worst-attacks.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([HEADER, *rows])
    record = {title: worst.as_json() for title, worst in found.items()}
    write_atomically(folder / "worst-attacks.json", (json.dumps(record, indent=1, ensure_ascii=False) + "\n").encode())
    own = {form.title: found[form.title] for form in FORMS if form.title in found}
    if own:
        write_atomically(folder / "worst-attacks.png", image(growth_figure(own, 7.5), "png"))


if __name__ == "__main__":
    main()
