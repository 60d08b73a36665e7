"""Claims that the paper does not make, but its readers will ask about."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from fairduel.agents import AGENTS
from fairduel.duel import Vector
from fairduel.experiments.ablations import MANY_FLIPS, NORMS
from fairduel.experiments.claims.claim import (
    BEYOND,
    Claim,
    Judgement,
    StoredRuns,
    factor,
    interval,
    judged,
    smallest_gap,
)
from fairduel.experiments.claims.paper_figures import (
    attack_name,
    lowest,
    lowest_under_each_attack,
    one_setting_for_all_attacks,
    tuned,
)
from fairduel.experiments.paper_setup import (
    ADVERSARIAL,
    BASELINES,
    GREEDY,
    NO_ATTACK,
    RARE_RANDOM,
    WARMUP,
    Attack,
    paper_cell,
)
from fairduel.experiments.sentences import title_of
from fairduel.experiments.tuning import published, sigmoid_problem, tuned_cell
from fairduel.simulation import Cell
from fairduel.stats import Mean, jackknife, line, mean, median, paired_difference

LONG_HORIZON = 1_000_000
REWARD_CORRUPTION = 400


def beyond_claims() -> list[Claim]:
    """Return every claim that goes beyond the paper."""
    return [
        replace(lowest_under_each_attack([RARE_RANDOM], BEYOND), one_in=3),
        replace(lowest_with_the_same_start(tune_rcdb=False), one_in=3),
        replace(lowest_with_the_same_start(tune_rcdb=True), one_in=3),
        replace(one_setting_for_all_attacks(WARMUP, BEYOND), one_in=3),
        tolerance_below_the_flips(),
        strong_adversary_of_cobe(),
        sigmoid_agent_ahead(NO_ATTACK),
        sigmoid_agent_ahead(GREEDY),
        sigmoid_agent_by_its_theorem(),
    ]


def lowest_with_the_same_start(*, tune_rcdb: bool) -> Claim:
    """Claim that RCDB beats the tuned baselines if all start with the random duels that Bengs et al. (2022) use."""
    who_is_tuned = "all agents tuned" if tune_rcdb else "only the baselines tuned"

    def robust(attack: Attack) -> Cell:
        return tuned("rcdb", attack, WARMUP) if tune_rcdb else paper_cell("rcdb", attack, {"warmup": WARMUP})

    return lowest(
        robust,
        lambda attack: (
            f"RCDB has lower regret than every baseline under the {attack_name(attack)}, after {WARMUP} random "
            f"duels for everyone ({who_is_tuned})"
        ),
        BEYOND,
        warmup=WARMUP,
        tuned_agents=(*BASELINES, "rcdb") if tune_rcdb else BASELINES,
    )


def tolerance_below_the_flips() -> Claim:
    """Claim that RCDB keeps losing with more flips than it tolerates, where Theorem unknown promises nothing."""
    below, at = (
        paper_cell("rcdb", ADVERSARIAL, {"flip_budget": tolerance}, budget=MANY_FLIPS)
        for tolerance in (MANY_FLIPS // 10, MANY_FLIPS)
    )

    def judge(evidence: StoredRuns) -> Iterator[Judgement]:
        late = evidence.late_regret(below), evidence.late_regret(at)
        found = paired_difference(*late)
        yield judged(
            "With a tolerance C̄ = C/10, regret at the end grows faster than with C̄ = C",
            BEYOND,
            f"regret per round in the last quarter: {late[0].mean():.2f} with C̄ = C/10, {late[1].mean():.2f} with "
            f"C̄ = C, difference {interval(found, '+.2f')} ({MANY_FLIPS} flips, adversarial attack)",
            found,
            above=0.0,
        )

    return Claim(judge, [below, at], one_in=3)


def strong_adversary_of_cobe() -> Claim:
    """Claim that a strong adversary in place of a weak one costs COBE more than CW-OFUL, which knows C.

    The paper remarks that COBE's guarantee does not cover strong adversaries; this looks for evidence.
    """
    cells = {
        (agent, attack): Cell(agent, attack, budget=REWARD_CORRUPTION, horizon=8000, world="linear")
        for agent in ("cobe", "cw-oful")
        for attack in ("swap", "bury")
    }

    def judge(evidence: StoredRuns) -> Iterator[Judgement]:
        regret = {key: evidence.regret(cell) for key, cell in cells.items()}
        extra = {agent: regret[agent, "bury"] - regret[agent, "swap"] for agent in ("cobe", "cw-oful")}
        found = mean(extra["cobe"] - extra["cw-oful"])
        under_strong = mean(regret["cobe", "bury"] - regret["cw-oful", "bury"])
        yield judged(
            "A strong adversary in place of a weak one costs COBE more than CW-OFUL, which knows C",
            BEYOND,
            f"added regret, bury (strong) instead of swap (weak): COBE {interval(mean(extra['cobe']))}, CW-OFUL "
            f"{interval(mean(extra['cw-oful']))}, difference {interval(found)}; under bury, COBE's regret minus "
            f"CW-OFUL's is {interval(under_strong)} (linear rewards, T = 8000, C = {REWARD_CORRUPTION})",
            found,
            above=0.0,
            cobe_over_cw_oful_under_strong=under_strong.as_json(),
        )

    return Claim(judge, [*cells.values()], one_in=30)


def sigmoid_agent_ahead(attack: Attack) -> Claim:
    """Claim that RCDB-S beats RCDB, more so for larger B; theory radii with the same ridge and a tuned scale."""

    def scaled(agent: str, norm: float) -> Cell:
        return tuned_cell(sigmoid_problem(agent, attack, norm))

    pairs = {norm: (scaled("rcdb", norm), scaled("rcdb-s", norm)) for norm in NORMS}
    edges = [
        f"{title_of(agent)} at B = {norm:g}"
        for agent in ("rcdb", "rcdb-s")
        for norm in NORMS
        if published(sigmoid_problem(agent, attack, norm)).at_edge
    ]
    setting = f"{attack.panel}, same ridge, scale of the theory radii tuned for each agent and B" + (
        f"; at the edge of the grid: {', '.join(edges)}" if edges else ""
    )

    def judge(evidence: StoredRuns) -> Iterator[Judgement]:
        _, norm, least = smallest_gap(evidence, pairs)
        regret = np.stack([[evidence.regret(cell) for cell in pair] for pair in pairs.values()])  # (norms, 2, seeds)
        ratios = regret[:, 0].mean(axis=1) / regret[:, 1].mean(axis=1)
        medians = np.median(regret[:, 0], axis=1) / np.median(regret[:, 1], axis=1)
        slopes = [line(np.array(NORMS), by_norm).slope for by_norm in np.log(regret[:, 0] / regret[:, 1]).T]
        trend, by_means = median(np.array(slopes)), _trend_of_means(regret)
        by_norm = ", ".join(f"{ratio:.2f}× at B = {n:g}" for n, ratio in zip(NORMS, ratios, strict=True))
        yield judged(
            f"RCDB-S has lower regret than RCDB at every B = 1 … 5 ({attack.panel}, tuned theory radii)",
            BEYOND,
            f"RCDB's mean regret over that of RCDB-S: {by_norm}; smallest difference {interval(least)}, at "
            f"B = {norm:g} ({setting})",
            least,
            above=0.0,
            ratios={f"{n:g}": ratio for n, ratio in zip(NORMS, ratios, strict=True)},
        )
        yield judged(
            f"The advantage of RCDB-S over RCDB grows with B ({attack.panel}, tuned theory radii)",
            BEYOND,
            f"RCDB's regret over that of RCDB-S, run by run, grows by a factor of {factor(trend)} per unit of B in the "
            f"median; the ratio of mean regrets, which few runs decide, by {factor(by_means)}; the ratios of medians "
            f"are {', '.join(f'{ratio:.2f}' for ratio in medians)} ({setting})",
            trend,
            above=0.0,
            by_means=by_means.as_json(),
            ratios_of_medians={f"{n:g}": ratio for n, ratio in zip(NORMS, medians, strict=True)},
        )

    return Claim(judge, [cell for pair in pairs.values() for cell in pair], one_in=3)


def _trend_of_means(regret: Vector) -> Mean:
    """Growth of the log ratio of mean regrets per unit of B; ``regret`` is (norms, 2, seeds)."""

    def slope(sample: Vector) -> float:
        means = sample.mean(axis=2)
        return line(np.array(NORMS), np.log(means[:, 0] / means[:, 1])).slope

    return jackknife(slope, regret)


def sigmoid_agent_by_its_theorem() -> Claim:
    """Claim that RCDB-S beats RCDB with the theorems' own parameters, unscaled, at a long horizon."""
    cells = {
        agent: paper_cell(agent, NO_ATTACK, AGENTS[agent].published_settings, budget=0, horizon=LONG_HORIZON)
        for agent in ("rcdb", "rcdb-s")
    }

    def judge(evidence: StoredRuns) -> Iterator[Judgement]:
        plain, local = (evidence.regret(cell) for cell in cells.values())
        late = {agent: evidence.late_regret(cell).mean() for agent, cell in cells.items()}
        found = mean(np.log(plain / local))
        yield judged(
            "RCDB-S has lower regret than RCDB by T = 1,000,000 at the theorems' own radii",
            BEYOND,
            f"RCDB {plain.mean():,.0f}, RCDB-S {local.mean():,.0f}, ratio {factor(found)}; regret per round "
            f"in the last quarter: {late['rcdb']:.2f} and {late['rcdb-s']:.2f} (d = 5, B = 2, no attack, C = 0 known)",
            found,
            above=0.0,
            late_regret=late,
        )

    return Claim(judge, list(cells.values()), one_in=75)
