"""Claims that we make ourselves, about Sceptic and in the README, judged by the same rules as the paper's."""

import math
from collections.abc import Iterator, Mapping

import numpy as np

from fairduel.duel import Vector
from fairduel.experiments.claims.claim import OURS, Claim, Judgement, StoredRuns, factor, judged, smallest
from fairduel.experiments.claims.paper_figures import tuned
from fairduel.experiments.competition import SCENARIOS, Contender
from fairduel.experiments.paper_setup import BASELINES, BUDGET_UNKNOWN, GREEDY, NO_ATTACK, paper_cell
from fairduel.experiments.sentences import title_of
from fairduel.experiments.tuning import PRE_TUNED
from fairduel.simulation import Cell
from fairduel.stats import Mean, corrected, jackknife

HELD_OUT = tuple(scenario for scenario in SCENARIOS if scenario.half == "held-out")
RIVALS = (Contender("rcdb"), Contender("hcw"), *(Contender(name, PRE_TUNED) for name in ("rcdb", "rcdb-s", "hcw")))
"""Agents that take a flip budget, as they come, and with constants that were searched as Sceptic's were."""


def our_claims() -> list[Claim]:
    """Return every claim of our own."""
    return [
        *(sceptic_ahead(rival, known) for known in ({}, BUDGET_UNKNOWN) for rival in RIVALS),
        robustness_has_a_price(),
        lazy_estimates_are_cheap(),
    ]


def sceptic_ahead(rival: Contender, known: Mapping[str, bool]) -> Claim:
    """Claim that Sceptic has less regret than a rival on problems on which no constants were chosen."""
    pair = [Contender(each.agent, {**each.settings, **known}) for each in (Contender("sceptic"), rival)]
    cells = [[each.cell(scenario) for scenario in HELD_OUT] for each in pair]

    def judge(evidence: StoredRuns) -> Iterator[Judgement]:
        regret = np.stack([[evidence.regret(cell) for cell in row] for row in cells])  # (2, scenarios, seeds)
        ratios = _ratios(regret)
        worst = int(np.argmax(ratios))
        found = jackknife(lambda runs: float(np.log(_ratios(runs)).mean()), regret)
        yield judged(
            f"{pair[0].title}, has less regret than {pair[1].title}",
            OURS,
            f"{factor(found)} times its regret (geometric mean over {len(HELD_OUT)} held-out scenarios of the "
            f"leaderboard), less in {int((ratios < 1.0).sum())} of them; the largest ratio is {ratios[worst]:.2f}, in "
            f"“{HELD_OUT[worst].title}”",
            found,
            below=0.0,
            ratios={scenario.title: float(ratio) for scenario, ratio in zip(HELD_OUT, ratios, strict=True)},
        )

    return Claim(judge, [cell for row in cells for cell in row], one_in=20)


def _ratios(regret: Vector) -> Vector:
    """The first's mean regret over the second's, by scenario; ``regret`` is (2, scenarios, seeds)."""
    own, other = regret.mean(axis=-1)
    return np.asarray(own / other)


def robustness_has_a_price() -> Claim:
    """Claim that RCDB has more regret than every tuned baseline where nobody attacks."""
    own = paper_cell("rcdb", NO_ATTACK)
    rivals = {agent: tuned(agent, NO_ATTACK) for agent in BASELINES}

    def judge(evidence: StoredRuns) -> Iterator[Judgement]:
        ratios = {agent: _log_ratio(evidence, own, cell, corrected(rivals)) for agent, cell in rivals.items()}
        agent, least = smallest(ratios)
        yield judged(
            "Robustness has a price: where nobody attacks, RCDB has more regret than every tuned baseline",
            OURS,
            f"at least {factor(least)} times the regret ({title_of(agent)} is nearest; the others: "
            f"{', '.join(factor(ratios[each]) for each in rivals if each != agent)})",
            least,
            above=0.0,
        )

    return Claim(judge, [own, *rivals.values()], one_in=3)


def lazy_estimates_are_cheap() -> Claim:
    """Claim that RCDB may compute its estimate rarely."""
    exact, lazy = (paper_cell("rcdb", GREEDY, settings) for settings in ({}, {"estimator": "lazy"}))

    def judge(evidence: StoredRuns) -> Iterator[Judgement]:
        found = _log_ratio(evidence, lazy, exact)
        yield judged(
            "Lazy estimates cost RCDB less than 10% more regret under the greedy attack",
            OURS,
            f"{factor(found)} times the regret of exact estimates",
            found,
            below=math.log(1.1),
        )

    return Claim(judge, [exact, lazy], one_in=3)


def _log_ratio(evidence: StoredRuns, one: Cell, other: Cell, confidence: float = 0.95) -> Mean:
    regret = np.stack([evidence.regret(one), evidence.regret(other)])
    return jackknife(lambda runs: float(np.log(runs[0].mean() / runs[1].mean())), regret, confidence)
