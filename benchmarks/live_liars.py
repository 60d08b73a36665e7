"""Lying voters in live studies: does the study name the best item, next to rivals that see the same seeds?

``python -m benchmarks.live_liars [RUNS]`` runs studies through the service's ledger: 50 voters, 2,000 votes. A fifth
of the voters see each duel and its true outcome, and let one item, the second best, win whenever it would have lost;
all their other votes are true, so that they look like everyone else (the misleading attack). In other studies a fifth
have an honest taste of their own instead. Items differ by 0.4 in log-odds, the best two by ``gap``.
"""

import csv
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.progress import track

from fairduel.stats import exact_share
from fairduel.votes.attacking.liars import Liar

ITEMS, VOTERS, MINORITY, VOTES, STEP = 12, 50, 10, 2000, 0.4
GAPS = (1.2, 0.8, 0.4)
FIRST_SEED = 20  # on seeds 0 to 19 the allowance of live studies was chosen
AGENTS = {"sceptic": "Sceptic", "maxpairucb": "MaxPairUCB", "random-pairs": "random pairs"}
WAYS = {"results": "the study's results", "agent": "the agent's own estimate", "win_rate": "win counting"}


@dataclass(frozen=True)
class Found:
    """Who is named first by each way to count, and how many voters of each kind were flagged."""

    results: bool
    agent: bool
    win_rate: bool
    flagged_minority: int
    flagged_others: int


def study(agent: str, crowd: str, gap: float, seed: int, votes: int = VOTES, **settings: object) -> Found:
    """Run one study of an agent with settings, and return whether the best item is named."""
    from fairduel.service.analysis.analyse import analyse, recorded_votes  # noqa: PLC0415
    from fairduel.service.analysis.inputs import Subject  # noqa: PLC0415
    from fairduel.service.commands import operating, voting  # noqa: PLC0415  # only this file needs the serve extra
    from fairduel.service.events.ledger import Ledger  # noqa: PLC0415
    from fairduel.service.keys import Holder  # noqa: PLC0415
    from fairduel.service.study.study import NewStudy  # noqa: PLC0415

    rng = np.random.default_rng(seed)
    order = rng.permutation(ITEMS)  # best first
    truth = np.empty(ITEMS)
    truth[order] = -STEP * np.arange(ITEMS) + (STEP - gap) * (np.arange(ITEMS) > 0)
    best, target = order[:2]
    liar = Liar("promote", int(target))
    other = rng.permutation(truth)  # what the minority likes
    about = NewStudy(
        question="Which?",
        items=[{"name": f"item {n}"} for n in range(ITEMS)],
        repeat_pairs=True,
        undo_seconds=0,
        show_names=True,
        agent=agent,
        agent_settings=settings,
        seed=seed,
    )
    with tempfile.TemporaryDirectory() as folder:
        ledger = Ledger(Path(folder))
        name = ledger.run(lambda ledger: operating.create_study(ledger, about)).study
        joined = ledger.run(lambda ledger: [voting.join(ledger, name, voting.Newcomer())[0] for _ in range(VOTERS)])
        voters = [Holder("voter", name, voter) for voter in joined]

        def vote(ledger: Ledger, number: int) -> None:
            place = int(rng.integers(VOTERS))
            is_minority = place < MINORITY
            scores = other if is_minority and crowd == "tastes" else truth
            shown = voting.ask(ledger, voters[place], 1)["duels"][0]
            left, right = (int(shown[side]["name"].split()[1]) for side in ("left", "right"))
            low, high = sorted((left, right))
            chance = 1 / (1 + np.exp(scores[high] - scores[low]))
            if is_minority and crowd == "liars":
                chance = liar.chance(low, high, chance)
            winner = low if rng.random() < chance else high
            answer = "left" if winner == left else "right"
            voting.answer(ledger, voters[place], voting.Given(shown["duel"], str(number), answer))

        for begin in range(0, votes, 100):
            some = range(begin, min(begin + 100, votes))
            ledger.run(lambda ledger, some=some: [vote(ledger, number) for number in some])
        about_it, position = ledger.run(lambda ledger: (Subject.of(ledger.state.studies[name]), ledger.state.position))
        with ledger.store.engine.connect() as connection:
            found, recorded = analyse(connection, about_it, position), recorded_votes(connection, about_it)
        own = int(np.argmax(ledger.state.studies[name].learner.agent.estimate))
        ledger.close()
    flagged = {voter for voter, row in found.evidence.items() if row["flagged"]}
    return Found(
        results=found.results["ranking"][0]["item"] == f"item {best}",
        agent=own == int(best),
        win_rate=int(np.argmax(win_rates(recorded))) == int(best),
        flagged_minority=len(flagged & set(joined[:MINORITY])),
        flagged_others=len(flagged - set(joined[:MINORITY])),
    )


def win_rates(votes):
    """Return each item's wins per game, shape (K,)."""
    wins = np.bincount(votes.first, votes.result, ITEMS) + np.bincount(votes.second, 1 - votes.result, ITEMS)
    games = np.bincount(votes.first, minlength=ITEMS) + np.bincount(votes.second, minlength=ITEMS)
    return wins / np.maximum(games, 1)


def main(runs=20):
    names = ["10 of 50 voters", "who asks", "who names the best item", *(f"gap {gap}" for gap in GAPS)]
    print(*names, sep=" | ")
    cells = [*(("liars", agent) for agent in AGENTS), ("tastes", "sceptic")]
    rows = []
    for crowd, agent in cells:
        found = {
            gap: [
                study(agent, crowd, gap, FIRST_SEED + run) for run in track(range(runs), f"{crowd}, {agent}, gap {gap}")
            ]
            for gap in GAPS
        }
        minority = "lie" if crowd == "liars" else "have another taste"
        for way, named in WAYS.items():
            row = [_counted(sum(getattr(each, way) for each in found[gap]), runs) for gap in GAPS]
            rows.append([minority, AGENTS[agent], named, *row])
            print(*rows[-1], sep=" | ")
        flags = [each for gap in GAPS for each in found[gap]]
        few, others = sum(each.flagged_minority for each in flags), sum(each.flagged_others for each in flags)
        print(
            f"{AGENTS[agent]}: {few} of {MINORITY * len(flags):,} voters who {minority} are flagged, and {others} of "
            f"the {(VOTERS - MINORITY) * len(flags):,} others"
        )
    with (Path(__file__).parents[1] / "docs" / "data" / "live-liars.csv").open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([names, *rows])


def _counted(successes, count):
    interval = exact_share(successes, count)
    return f"{successes} of {count} ({100 * interval.low:.0f} to {100 * interval.high:.0f} %)"


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
