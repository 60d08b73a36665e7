"""Variations of the paper's problem and its agents: radii, norms, tolerances, d, T, estimates, recommendations."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from fairduel.agents import AGENTS, ContextualAgent
from fairduel.agents.parts.flip_tolerance import FlipTolerant
from fairduel.experiments.comparing import (
    by_panel,
    group,
    growth,
    in_each_panel,
    lowest_text,
    placed,
    ratio_of,
    significant,
    some_panels,
)
from fairduel.experiments.experiment import Curves, Entry, Experiment, Lines, Results, Shares, TradeOff
from fairduel.experiments.paper_setup import (
    ADVERSARIAL,
    BUDGET,
    GREEDY,
    HORIZON,
    MISLEADING,
    NO_ATTACK,
    Attack,
    paper_cell,
)
from fairduel.experiments.sentences import capitalized, listed_few, title_of, with_error, with_interval
from fairduel.experiments.tuning import published, sigmoid_cell, sigmoid_problem, tuned_cell
from fairduel.stats import mean

# ---------------------------------------------------------------------- radii


RADIUS_SCALES = {"rcdb": (1.0, 0.1, 0.03), "rcdb-s": (1.0, 0.01, 0.003)}


def radii() -> Experiment:
    """The theorems' radii against the practical ones."""
    entries = []
    for attack in (GREEDY, ADVERSARIAL, NO_ATTACK):
        for agent, scales in RADIUS_SCALES.items():
            is_reference = agent == "rcdb"
            entries.append(Entry(paper_cell(agent, attack), "practical", attack.panel, is_reference=is_reference))
            for scale in scales:
                settings = {**AGENTS[agent].published_settings, "radius_scale": scale}
                name = "theory" if scale == 1.0 else f"theory × {scale:g}"
                entries.append(Entry(paper_cell(agent, attack, settings), name, attack.panel))
        determinant = paper_cell("rcdb", attack, {"radius": "determinant"})
        entries.append(Entry(determinant, "determinant", attack.panel, drawn_in=()))
    return Experiment(
        name="radius",
        title="Theoretical and practical confidence radii",
        question="How much regret does the theorem's radius cost on the paper's own problem?",
        entries=entries,
        conclude=in_each_panel(_price_of_theory),
        views=[Curves("Cumulative regret by radius.")],
        notes=[
            "With the theory radius, every duel within this horizon explores, so regret grows linearly. Over a longer "
            "horizon it slows: without an attack, regret per round falls after about 10,000 rounds (RCDB, T = 10⁶)."
        ],
    )


def _price_of_theory(results: Results, entries: list[Entry]) -> list[str]:
    """What the theorem's radius costs each agent."""
    costs = []
    for agent, same in group(entries, lambda entry: entry.cell.agent).items():
        settings = {entry.setting: entry for entry in same}
        ratio = with_interval(ratio_of(results, settings["theory"], settings["practical"]))
        costs.append(f"{ratio} for {title_of(agent)}")
    factors = " and by ".join(costs)
    return [
        f"the theorem's radius multiplies the practical radius's regret by {factors}.",
        lowest_text(results, entries),
    ]


# ---------------------------------------------------------------------- norms of θ*


NORMS = (1.0, 2.0, 3.0, 4.0, 5.0)


def norms() -> Experiment:
    """RCDB against RCDB-S as the norm of θ* grows."""
    entries = []
    for attack in (NO_ATTACK, GREEDY):
        for norm in NORMS:
            for agent in ("rcdb", "rcdb-s"):
                practical = sigmoid_cell(agent, attack, norm)
                is_reference = agent == "rcdb"
                entries.append(Entry(practical, "practical", attack.panel, x=norm, is_reference=is_reference))
                problem = sigmoid_problem(agent, attack, norm)
                scaled, tuning = tuned_cell(problem), published(problem)
                entries.append(Entry(scaled, "theory, scale tuned", attack.panel, tuning=tuning, x=norm))
    return Experiment(
        name="sigmoid",
        title="RCDB against RCDB-S as ‖θ*‖ grows",
        question="Does RCDB-S, whose leading regret term is free of κ, beat RCDB as B grows?",
        entries=entries,
        conclude=in_each_panel(_sigmoid_ratios),
        views=[Lines("Final regret against B = ‖θ*‖.", "norm bound B")],
        notes=[
            f"Both agents know C: 0 without an attack, {BUDGET} under attack.",
            "'theory, scale tuned': the theorem's κ design, λ and α, with both radii multiplied by one constant, "
            "tuned for each agent, attack and B on separate seeds. At the unscaled radii, v_t = κ throughout this "
            "horizon, so RCDB-S explores like RCDB; the mean slope in the table shows how far a run was from that.",
        ],
    )


def _sigmoid_ratios(results: Results, entries: list[Entry]) -> list[str]:
    """RCDB's regret over that of RCDB-S as B grows, for each kind of setting."""
    found = []
    for same in group(entries, lambda entry: entry.setting).values():
        by_norm = group(same, lambda entry: entry.x)
        pairs = [
            [next(e for e in pair if e.cell.agent == agent) for agent in ("rcdb", "rcdb-s")]
            for pair in by_norm.values()
        ]
        lower, higher = significant(results, pairs)
        first, last = (
            f"{with_interval(ratio_of(results, *pair))} at B = {pair[0].x:g}" for pair in (pairs[0], pairs[-1])
        )
        plain, local = (entry.legend for entry in pairs[0])
        found.append(
            f"{local} has significantly lower regret than {plain} at {higher} of {len(pairs)} values of B, "
            f"significantly higher at {lower}. The ratio of their regrets, RCDB over RCDB-S, is {first} and {last}."
        )
    return found


# ---------------------------------------------------------------------- tolerances


MANY_FLIPS = 100
TOLERANCES = (10, 25, 50, 100, 200, 400)


def unknown_budget() -> Experiment:
    """RCDB with too low, exact and too high a flip tolerance."""
    entries = [
        Entry(
            paper_cell("rcdb", attack, {"flip_budget": tolerance}, budget=MANY_FLIPS),
            f"tolerance {tolerance}",
            attack.panel,
            x=tolerance / MANY_FLIPS,
            is_reference=tolerance == MANY_FLIPS,
        )
        for attack in (GREEDY, ADVERSARIAL, MISLEADING)
        for tolerance in TOLERANCES
    ]
    return Experiment(
        name="unknown-budget",
        title="Unknown number of flips",
        question=f"What does a wrong tolerance C̄ cost RCDB when {MANY_FLIPS} of {HORIZON} outcomes are flipped?",
        entries=entries,
        conclude=in_each_panel(_cost_of_tolerance),
        views=[
            Curves("Cumulative regret by tolerance; with C̄ < C it may never stop growing."),
            Lines("Final regret against C̄/C.", "tolerance / flips, C̄/C", scale="log"),
        ],
        notes=["Theorem 5.5 guarantees Õ(d√T + dC̄) for C ≤ C̄, and only O(T) for C > C̄."],
    )


def _cost_of_tolerance(results: Results, entries: list[Entry]) -> list[str]:
    """What a tolerance below or above the number of flips costs, compared with the right one."""
    exact = next(entry for entry in entries if entry.is_reference)
    costs = [f"{with_interval(ratio_of(results, e, exact))} at {_tolerance(e)}" for e in entries if e is not exact]
    best = placed(results, entries)
    tied = f", not significantly lower than at {listed_few([*map(_tolerance, best.tied)])}" if best.tied else ""
    return [
        f"mean regret is lowest at C̄ = {_tolerance(best.lowest)}{tied}.",
        f"as a multiple of the regret at C̄ = C, it is {', '.join(costs)}.",
    ]


def _tolerance(entry: Entry) -> str:
    return "C" if entry.x == 1.0 else f"{entry.x:g}C"


PRICED = (0, 5, 11, 22, 45, 90, 180, 360, 2000)
PROTECTED = Attack("protecting a wrong leader", "watching", {"settling": 0.5, "chance": 0.5, "misled": "protect"})
"""Waits until the agent is half sure, flips, and once a wrong action leads, only what that action lost."""


def price_of_tolerance() -> Experiment:
    """What tolerating flips costs if there are none."""
    agents = [name for name, kind in AGENTS.items() if issubclass(kind, ContextualAgent)]
    return Experiment(
        name="tolerance",
        title="The price of tolerance",
        question=f"What does tolerating C̄ flips cost without any, and what does it save if {BUDGET} are made?",
        entries=[
            Entry(
                paper_cell(name, attack, {} if tolerance is None else {"flip_budget": tolerance}),
                "no tolerance" if tolerance is None else f"C̄ = {tolerance}",
                attack.panel,
                x=tolerance,
            )
            for attack in (NO_ATTACK, ADVERSARIAL, PROTECTED)
            for name in agents
            for tolerance in (PRICED if issubclass(AGENTS[name], FlipTolerant) else (None,))
        ],
        conclude=_price,
        views=[TradeOff(f"Regret under {BUDGET} flips against regret without any, by tolerance.", NO_ATTACK.panel)],
        names_lowest=False,
        runs=20,
        notes=[
            "He, Zhou, Zhang and Gu (2022) prove that an agent cannot have both: with regret R_T where nobody attacks, "
            "some attack with about R_T/d flips costs it linear regret. Agents at a tolerance know it in place of C.",
        ],
    )


def _price(results: Results) -> list[str]:
    """For each attack and agent with a tolerance, which tolerance is best, and what it costs if nobody attacks."""
    panels = by_panel(results)
    clean = {(entry.cell.agent, entry.x): entry for entry in panels.pop(NO_ATTACK.panel)}
    found = []
    for panel, entries in panels.items():
        costs = []
        for agent, same in group(entries, lambda entry: entry.cell.agent).items():
            best = min(same, key=lambda entry: results.regret(entry).mean())
            if best.x is not None:
                price = with_interval(ratio_of(results, clean[agent, best.x], clean[agent, 0.0]))
                regret = with_error(mean(results.regret(best)))
                costs.append(f"{regret} for {title_of(agent)} at {best.setting}, which costs {price} without an attack")
        found.append(f"{capitalized(panel)}: the lowest regret of any tolerance is {'; '.join(costs)}.")
    return [*found, "The cost is the regret without an attack, as a multiple of that of the same agent at C̄ = 0."]


# ---------------------------------------------------------------------- dimension and horizon


DIMENSIONS = (2, 4, 8, 16)
HORIZONS = (250, 500, 1000, 2000, 4000, 8000)


def growth_in_dimension() -> Experiment:
    """Growth of regret in d, with fitted exponents."""
    fresh = {"count": 32, "norm": 2.0}
    worlds = {float(d): {"world": "fresh", "world_settings": {"dimension": d, **fresh}} for d in DIMENSIONS}
    return Experiment(
        name="dimension",
        title="Growth with the dimension",
        question="Does regret grow at most linearly in d, as Theorem 5.3 allows?",
        entries=_growing(worlds),
        conclude=growth("d", 1.0, "linear"),
        views=[Lines("Final regret against d (log-log).", "dimension d", scale="log", fit="power")],
        notes=["32 fresh actions per round, uniform on the sphere; T = 2000, C = 45."],
    )


def growth_in_horizon() -> Experiment:
    """Growth of regret in T, with fitted exponents."""
    horizons = {float(rounds): {"horizon": rounds, "budget": math.ceil(math.sqrt(rounds))} for rounds in HORIZONS}
    return Experiment(
        name="horizon",
        title="Growth with the horizon",
        question="Does regret grow like √T when C = ⌈√T⌉, as Theorem 5.3 allows up to logarithms?",
        entries=_growing(horizons),
        conclude=growth("T", 0.5, "√T"),
        views=[Lines("Final regret against T (log-log).", "horizon T", scale="log", fit="power")],
        notes=["The paper's hypercube, d = 5. An exponent of ½ means √T; of 1, that regret never stops growing."],
    )


def _growing(changes: Mapping[float, Mapping[str, Any]]) -> list[Entry]:
    """One entry per attack, x and agent; ``changes`` are those to the paper's setup, by x."""
    return [
        Entry(paper_cell(agent, attack, **changed), "practical", attack.panel, x=x, is_reference=agent == "rcdb")
        for attack in (NO_ATTACK, GREEDY)
        for x, changed in changes.items()
        for agent in ("rcdb", "rcdb-s", "maxpairucb")
    ]


# ---------------------------------------------------------------------- estimates


ESTIMATED_WORLDS = {
    "hypercube": {"dimension": 5, "norm": 2.0},
    "fresh": {"dimension": 5, "count": 32, "norm": 2.0},
}


def estimates() -> Experiment:
    """Exact, lazy and one-pass estimates side by side."""
    entries = [
        Entry(
            paper_cell(agent, attack, {"estimator": estimator}, world=world, world_settings=settings),
            estimator,
            f"{world}, {attack.panel}",
            is_reference=agent == "rcdb" and estimator == "exact",
        )
        for world, settings in ESTIMATED_WORLDS.items()
        for attack in (NO_ATTACK, GREEDY, ADVERSARIAL)
        for agent in ("rcdb", "maxpairucb")
        for estimator in ("exact", "lazy", "one-pass")
    ]
    return Experiment(
        name="estimators",
        title="Exact, lazy and one-pass estimates",
        question="How much regret do cheaper estimates cost, and how much time do they save?",
        entries=entries,
        conclude=_price_of_estimates,
        views=[Curves("Cumulative regret (mean ± one standard error).")],
        notes=[
            "'lazy' computes the same MLE, but only after det Σ has doubled and 10% more outcomes have been told. "
            "'one-pass' is mirror descent: it stores no outcomes, always stays within ‖θ‖ ≤ B, and is not covered by "
            "any theorem's radius.",
            "All agents use their practical settings, untuned.",
        ],
    )


def _price_of_estimates(results: Results) -> list[str]:
    """What the cheaper estimators cost in regret and save in time, over all panels and agents."""
    pairs: dict[str, list[list[Entry]]] = {}
    for same in group(results.experiment.entries, lambda entry: (entry.panel, entry.cell.agent)).values():
        settings = {entry.setting: entry for entry in same}
        exact = settings.pop("exact")
        for name, entry in settings.items():
            pairs.setdefault(name, []).append([entry, exact])
    found = []
    for name, compared in pairs.items():
        less, more = significant(results, compared)
        ratios = [ratio_of(results, *pair).value for pair in compared]
        times = [float(np.divide(*(results.of(e)["seconds"].to_numpy().mean() for e in pair))) for pair in compared]
        found.append(
            f"{capitalized(name)} estimates have {min(ratios):.2f} to {max(ratios):.2f} times the regret of exact "
            f"ones in {len(compared)} comparisons (significantly more in {more}, less in {less}); the median run takes "
            f"{np.median(times):.2f} times as long."
        )
    return found


# ---------------------------------------------------------------------- recommendations


MANY_LIES = 200
AGENT_NAMES = tuple(
    name for name, kind in AGENTS.items() if issubclass(kind, ContextualAgent) and kind.estimator != "one-pass"
)
"""The agents that store votes."""
WAYS = {"by votes": "votes", "by its estimate": "estimate"}


def recommendations() -> Experiment:
    """Final recommendation when lies come early, late or throughout."""
    entries = [
        Entry(
            paper_cell(agent, attack, {"recommend_by": how, "self_duels": self_duels}),
            words,
            attack.panel,
            is_reference=(agent, how) == ("rcdb", "votes"),
        )
        for self_duels in (False, True)
        for attack in _lies_at(self_duels)
        for agent in AGENT_NAMES
        for words, how in WAYS.items()
    ]
    return Experiment(
        name="recommendation",
        title="The final recommendation when lies come early, late or throughout",
        question=f"Which agents recommend the best action after {HORIZON} votes, some of them lies?",
        entries=entries,
        conclude=_compare_recommendations,
        views=[Shares("Share of runs that recommend the best action (95% interval).")],
        notes=[
            f"The adversarial attack flips outcomes that agree with the model, at most {BUDGET} or {MANY_LIES}: from "
            "the first round on, in every n-th round, or in the last rounds. Agents that take a flip budget know "
            "it.",
            "'people': no action is asked against itself. 'by votes': the recommendation counts all votes alike but "
            "sets aside up to two stretches that contradict the rest; 'by its estimate': it is that of the estimate "
            "that chooses duels. Both have the same duels.",
            "After lies at the start, agents that trust every outcome go on asking one or two pairs. Their votes then "
            "say little about all other actions, with any weights.",
        ],
    )


def _lies_at(self_duels: bool) -> list[Attack]:
    where = "self-duels" if self_duels else "people"
    return [
        Attack(f"{budget} lies {when}, {where}", "adversarial", settings, budget=budget)
        for budget in (BUDGET, MANY_LIES)
        for when, settings in {
            "first": {},
            "spread out": {"every": HORIZON // budget},
            "last": {"start": HORIZON - 2 * budget + 1},  # about every second outcome can be flipped
        }.items()
    ]


def _compare_recommendations(results: Results) -> list[str]:
    """Whether agents recommend better by their votes than by their estimates, and how each does at worst."""
    ways = group(results.experiment.entries, lambda entry: entry.setting)
    shares = {way: np.mean([results.recommended_best(entry) for entry in same], axis=0) for way, same in ways.items()}
    (votes, by_votes), (estimate, by_estimate) = shares.items()
    found = [
        f"The best action is recommended in {by_votes.mean():.0%} of all runs {votes} and in {by_estimate.mean():.0%} "
        f"{estimate}."
    ]
    panels = by_panel(results)
    better: list[str] = []
    worse: list[str] = []
    for panel, entries in panels.items():
        pairs = [
            [results.recommended_best(entry) for entry in same] for same in group(entries, lambda e: e.setting).values()
        ]
        gap = mean(np.mean(pairs[0], axis=0) - np.mean(pairs[1], axis=0), 1.0 - 0.05 / len(panels))
        (better if gap.low > 0.0 else worse if gap.high < 0.0 else []).append(panel)
    found.append(
        f"{capitalized(votes)} it is recommended significantly more often in {some_panels(better, len(panels))}, and "
        f"significantly less often in {some_panels(worse, len(panels))}."
    )
    lowest = {}
    for agent, same in group(ways[votes], lambda entry: entry.cell.agent).items():
        worst = min(same, key=lambda entry: results.recommended_best(entry).mean())
        lowest[agent] = f"{results.recommended_best(worst).mean():.0%} for {title_of(agent)} ({worst.panel})"
    return [*found, f"The lowest share of any panel {votes} is {', '.join(lowest.values())}."]
