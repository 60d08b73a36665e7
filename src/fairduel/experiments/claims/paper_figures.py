"""The paper's claims about its Figures 1 and 2."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from fairduel.experiments.claims.claim import Claim, Judgement, StoredRuns, interval, judged, smallest_gap
from fairduel.experiments.comparing import gap
from fairduel.experiments.paper import FLIPS
from fairduel.experiments.paper_setup import (
    ADVERSARIAL,
    BASELINES,
    GREEDY,
    MISLEADING,
    NO_ATTACK,
    PAPER_ATTACKS,
    WEAK_ATTACKS,
    Attack,
    paper_cell,
)
from fairduel.experiments.sentences import settings_text, title_of
from fairduel.experiments.tuning import best_single_setting, published, tuned_cell, tuning_problem
from fairduel.simulation import Cell
from fairduel.stats import exponent, line, mean, mixed_mean

ALWAYS_TRUSTED = 1e9
"""An α so large that all weights are 1."""


def tuned(agent: str, attack: Attack, warmup: int = 0) -> Cell:
    """Return the agent on the paper's setup, tuned for this attack."""
    return tuned_cell(tuning_problem(agent, attack, warmup))


def attack_name(attack: Attack) -> str:
    """Return an attack in words, with its probability if it has one."""
    rate = attack.settings.get("probability")
    return f"{attack.name} attack" + (f" with p = {rate:g}" if rate is not None else "")


def edge_of_grid(agent: str, attack: Attack, warmup: int = 0) -> str:
    """Return a warning if the tuned value is the smallest or largest tried, else nothing."""
    at_edge = published(tuning_problem(agent, attack, warmup)).at_edge
    return f"; the tuned value of {title_of(agent)} is at the edge of its grid" if at_edge else ""


def figure_claims() -> list[Claim]:
    """Return every claim about the figures, in the paper's order."""
    return [
        lowest_under_each_attack(),
        colstim_is_the_strongest_competitor(),
        adversarial_attack_costs_most(),
        colstim_is_the_most_misled(),
        weight_is_critical(),
        one_setting_for_all_attacks(),
        linear_in_flips(),
        lowest_at_every_number_of_flips(),
    ]


def lowest_under_each_attack(attacks: Sequence[Attack] = PAPER_ATTACKS, source: str = "Figure 1") -> Claim:
    """Claim that RCDB, untuned, beats all three baselines, each tuned for the attack."""
    return lowest(
        lambda attack: paper_cell("rcdb", attack),
        lambda attack: f"RCDB has lower regret than every tuned baseline under the {attack_name(attack)}",
        source,
        attacks=attacks,
    )


def lowest(
    robust: Callable[[Attack], Cell],
    claim: Callable[[Attack], str],
    source: str,
    *,
    attacks: Sequence[Attack] = PAPER_ATTACKS,
    warmup: int = 0,
    tuned_agents: Sequence[str] = BASELINES,
) -> Claim:
    """Claim that a form of RCDB beats all three baselines, each tuned for the attack after ``warmup`` random duels."""

    def judge(evidence: StoredRuns) -> Iterator[Judgement]:
        for attack in attacks:
            own = evidence.regret(robust(attack))
            pairs = {agent: (tuned(agent, attack, warmup), robust(attack)) for agent in BASELINES}
            found, rival, least = smallest_gap(evidence, pairs)
            locked_in = int(evidence.locked_in(robust(attack)).sum())
            edges = [edge_of_grid(agent, attack, warmup) for agent in tuned_agents if agent in (rival, "rcdb")]
            yield judged(
                claim(attack),
                source,
                f"RCDB: regret {own.mean():.0f} ± {mean(own).error:.0f}, {locked_in} runs locked in; smallest lead "
                f"{interval(least)}, over {title_of(rival)}{''.join(edges)}",
                least,
                above=0.0,
                rival=rival,
                rcdb=mean(own).as_json(),
                all_baselines={agent: each.as_json() for agent, each in found.items()},
            )

    cells = [tuned(agent, attack, warmup) for agent in BASELINES for attack in attacks]
    return Claim(judge, [robust(attack) for attack in attacks] + cells)


def colstim_is_the_strongest_competitor() -> Claim:
    """Claim that CoLSTIM is the best baseline under the weak attacks."""
    return _colstim_among_baselines(
        WEAK_ATTACKS, "CoLSTIM has the lowest regret of the baselines", "Figure 1, weak attacks", is_best=True
    )


def colstim_is_the_most_misled() -> Claim:
    """Claim that CoLSTIM is the worst baseline under the misleading attack."""
    return _colstim_among_baselines(
        [MISLEADING], "CoLSTIM has the highest regret of the baselines", "Figure 1 (d)", is_best=False
    )


def _colstim_among_baselines(attacks: Sequence[Attack], claim: str, source: str, *, is_best: bool) -> Claim:
    """Claim that CoLSTIM beats the other baselines under these attacks, or that they beat it."""

    def judge(evidence: StoredRuns) -> Iterator[Judgement]:
        for attack in attacks:
            colstim = tuned("colstim", attack)
            others = {agent: tuned(agent, attack) for agent in BASELINES if agent != "colstim"}
            pairs = {agent: (cell, colstim) if is_best else (colstim, cell) for agent, cell in others.items()}
            _, rival, least = smallest_gap(evidence, pairs)
            own = mean(evidence.regret(colstim))
            yield judged(
                f"{claim} under the {attack_name(attack)}",
                source,
                f"CoLSTIM: regret {own.value:.0f} ± {own.error:.0f}; smallest difference {interval(least)}, to "
                f"{title_of(rival)} (all tuned for this attack)",
                least,
                above=0.0,
                rival=rival,
                colstim=own.as_json(),
            )

    return Claim(judge, [tuned(agent, attack) for agent in BASELINES for attack in attacks])


def adversarial_attack_costs_most() -> Claim:
    """Claim that the adversarial attack is worse than both weak ones, for RCDB and each tuned baseline."""

    def cell(agent: str, attack: Attack) -> Cell:
        return paper_cell("rcdb", attack) if agent == "rcdb" else tuned(agent, attack)

    pairs = {
        (agent, attack.name): (cell(agent, ADVERSARIAL), cell(agent, attack))
        for agent in ("rcdb", *BASELINES)
        for attack in WEAK_ATTACKS
    }

    def judge(evidence: StoredRuns) -> Iterator[Judgement]:
        found, (agent, attack), least = smallest_gap(evidence, pairs)
        yield judged(
            "The adversarial attack costs every algorithm more regret than the weak attacks",
            "Figure 1 (c)",
            f"smallest difference {interval(least)}, for {title_of(agent)} and the {attack} attack; "
            f"for RCDB and the greedy attack {interval(found['rcdb', GREEDY.name])}",
            least,
            above=0.0,
            agent=agent,
            attack=attack,
        )

    return Claim(judge, [cell for pair in pairs.values() for cell in pair])


def weight_is_critical() -> Claim:
    """Claim that RCDB does worse with all weights 1, also at the radius that is then best.

    RCDB with w ≡ 1 is MaxPairUCB. The best radius is the one that MaxPairUCB is tuned to for the attack.
    """

    def unweighted(attack: Attack) -> Cell:
        return paper_cell("rcdb", attack, {"trust": ALWAYS_TRUSTED})

    def judge(evidence: StoredRuns) -> Iterator[Judgement]:
        for attack in PAPER_ATTACKS:
            weighted, best = paper_cell("rcdb", attack), tuned("maxpairucb", attack)
            found = gap(evidence, best, weighted)
            same_radius = gap(evidence, unweighted(attack), weighted)
            locked_in = evidence.locked_in(unweighted(attack))
            clean_locked_in = evidence.locked_in(unweighted(NO_ATTACK))
            yield judged(
                f"Uncertainty weights lower RCDB's regret under the {attack_name(attack)}",
                "Performance Comparison",
                f"with w ≡ 1 and the radius that is best for it under this attack "
                f"({best.agent_settings['radius']:g}, tuned), regret changes by {interval(found)}"
                f"{edge_of_grid('maxpairucb', attack)}; at RCDB's own radius, which is too small without weights, by "
                f"{interval(same_radius)}: {int(locked_in.sum())} of {len(locked_in)} such runs lock in, "
                f"{int(clean_locked_in.sum())} without an attack",
                found,
                above=0.0,
                at_the_same_radius=same_radius.as_json(),
                locked_in_share=float(locked_in.mean()),
                locked_in_share_without_attack=float(clean_locked_in.mean()),
            )

    cells = [
        cell
        for attack in PAPER_ATTACKS
        for cell in (paper_cell("rcdb", attack), unweighted(attack), tuned("maxpairucb", attack))
    ]
    return Claim(judge, [*cells, unweighted(NO_ATTACK)])


def one_setting_for_all_attacks(warmup: int = 0, source: str = "Performance Comparison") -> Claim:
    """Claim that RCDB has a better worst attack than each baseline at its best single setting."""
    start: dict[str, Any] = {"warmup": warmup} if warmup else {}
    best_single = {agent: start | best_single_setting(agent, warmup) for agent in BASELINES}

    def worst(evidence: StoredRuns, agent: str, settings: Mapping[str, Any]) -> tuple[Any, Any]:
        """Return the largest regret over the attacks, seed by seed, and whether that run locked in."""
        cells = [paper_cell(agent, attack, settings) for attack in PAPER_ATTACKS]
        regret = np.stack([evidence.regret(cell) for cell in cells])
        locked_in = np.stack([evidence.locked_in(cell) for cell in cells])
        return regret.max(axis=0), np.take_along_axis(locked_in, regret.argmax(axis=0)[None], axis=0)[0]

    def judge(evidence: StoredRuns) -> Iterator[Judgement]:
        own, own_locked_in = worst(evidence, "rcdb", start)
        for agent, settings in best_single.items():
            rival, locked_in = worst(evidence, agent, settings)
            found = mixed_mean(rival - own, locked_in + 2 * own_locked_in)
            words = f", both after {warmup} random duels" if warmup else ""
            yield judged(
                f"RCDB, untuned, has less regret under its worst attack than {title_of(agent)} at its best single "
                f"setting{words}",
                source,
                f"worst of four attacks, seed by seed: RCDB has regret {own.mean():.0f}; {title_of(agent)} "
                f"({settings_text(settings)}) has {interval(found)} more",
                found,
                above=0.0,
                rcdb=float(own.mean()),
                rival_settings=dict(settings),
            )

    settings = {"rcdb": start} | best_single
    cells = [paper_cell(agent, attack, settings[agent]) for agent in settings for attack in PAPER_ATTACKS]
    return Claim(judge, cells)


def linear_in_flips() -> Claim:
    """Claim that RCDB's regret is linear in C when it is told C."""
    return growth_in_flips("rcdb", GREEDY, "RCDB's regret is linear in the number of flips C", "Figure 2", above=0.9)


def growth_in_flips(agent: str, attack: Attack, claim: str, source: str, above: float = -math.inf) -> Claim:
    """Claim an exponent of regret in C between ``above`` and 1.1, for an agent that is told C."""
    cells = [paper_cell(agent, attack, budget=budget) for budget in FLIPS]

    def judge(evidence: StoredRuns) -> Iterator[Judgement]:
        regret = np.stack([evidence.regret(cell) for cell in cells], axis=1)
        flips = np.array(FLIPS, dtype=float)
        found, middle = exponent(flips, regret), len(FLIPS) // 2
        early, late = (
            line(flips[half], regret.mean(axis=0)[half]).slope for half in (slice(middle), slice(middle, None))
        )
        limits = "at most 1.1" if above == -math.inf else f"between {above:g} and 1.1"
        yield judged(
            claim,
            source,
            f"grows as C^{interval(found, '.3f')} for C = {FLIPS[0]} … {FLIPS[-1]} ({attack.name} attack, "
            f"practical radius); {early:.1f} regret per flip up to C = {FLIPS[middle - 1]}, {late:.1f} beyond; holds "
            f"if the exponent is {limits}",
            found,
            above=above,
            below=1.1,
            regret_per_early_flip=early,
            regret_per_late_flip=late,
        )

    return Claim(judge, cells, one_in=3)


def lowest_at_every_number_of_flips() -> Claim:
    """Claim that RCDB beats the baselines at each C of Figure 2."""
    settings = {agent: published(tuning_problem(agent, GREEDY, 0)).winner.settings for agent in BASELINES}
    pairs = {
        (agent, budget): (
            paper_cell(agent, GREEDY, settings[agent], budget=budget),
            paper_cell("rcdb", GREEDY, budget=budget),
        )
        for agent in BASELINES
        for budget in FLIPS
    }

    def judge(evidence: StoredRuns) -> Iterator[Judgement]:
        found, (agent, budget), least = smallest_gap(evidence, pairs)
        won = sum(all(found[rival, each].low > 0 for rival in BASELINES) for each in FLIPS)
        lost = sum(any(found[rival, each].high < 0 for rival in BASELINES) for each in FLIPS)
        yield judged(
            "RCDB has the lowest regret at every C of Figure 2",
            "Figure 2",
            f"lowest at {won} of {len(FLIPS)} values of C, not lowest at {lost}; smallest lead {interval(least)}, "
            f"over {title_of(agent)} at C = {budget} (baselines tuned for the greedy attack at C = 45)",
            least,
            above=0.0,
            lowest_at=won,
            not_lowest_at=lost,
            rival=agent,
            flips=budget,
        )

    return Claim(judge, [cell for pair in pairs.values() for cell in pair], one_in=3)
