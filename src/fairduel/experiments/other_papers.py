"""Benchmarks of other papers: GINOP's world, late outcomes and features (RCDP-UCB), and nonlinear rewards."""

import math
from collections.abc import Mapping
from typing import Any

from fairduel.experiments.comparing import gap, growth, in_each_panel, lowest_in_each_panel, lowest_text, ratio_of
from fairduel.experiments.experiment import Conclude, Curves, Entry, Experiment, Lines, Results
from fairduel.experiments.paper_setup import (
    ADVERSARIAL,
    BUDGET,
    BUDGET_UNKNOWN,
    GREEDY,
    HORIZON,
    MISLEADING,
    NO_ATTACK,
    Attack,
    paper_cell,
)
from fairduel.experiments.sentences import whole, with_interval
from fairduel.simulation.cell import Cell
from fairduel.stats import mean
from fairduel.worlds.mesh import REPORTED

# ---------------------------------------------------------------------- GINOP's world (Ben Yahmed 2026)


GINOP_AGENTS: tuple[tuple[str, str, Mapping[str, Any]], ...] = (
    *(
        (agent, "practical", {})
        for agent in ("rcdb", "ginop", "hcw", "maxpairucb", "maxinp", "colstim", "random-pairs")
    ),
    *((agent, "C unknown", BUDGET_UNKNOWN) for agent in ("sceptic", "rcdb", "hcw")),
)
"""Each agent, its setting in words, and its settings."""
NOBODY = Attack("no attack", "none", budget=0)
GINOP_PANELS = ((10, NOBODY), (10, GREEDY), (10, ADVERSARIAL), (15, NOBODY), (20, NOBODY))
"""d and attack of each panel."""


def ginop_world() -> Experiment:
    """30 random actions, d = 10 to 20, with and without flips."""
    entries = [
        Entry(
            paper_cell(agent, attack, settings, world_settings={"dimension": d, "count": 30, "norm": 2.0}),
            words,
            f"{attack.panel}, d = {d}",
            is_reference=(agent, words) == ("rcdb", "practical"),
        )
        for d, attack in GINOP_PANELS
        for agent, words, settings in GINOP_AGENTS
    ]
    return Experiment(
        name="ginop",
        title="GINOP's world: 30 random vertices of a hypercube",
        question="How much regret does each agent have in the world of the GINOP paper, and if outcomes are flipped?",
        entries=entries,
        conclude=lowest_in_each_panel,
        views=[Curves("Cumulative regret (mean ± one standard error).")],
        notes=[
            "The world is that of Ben Yahmed 2026: d = 10, 15 and 20, 30 random actions of a hypercube, ‖θ*‖ = 2, "
            "T = 2000. We read 'random actions' as vertices, scaled to norm 1. The published numbers are not available "
            "to us, so there is nothing to compare these with; the attacks are ours.",
            f"All agents use their practical settings, untuned. RCDB and HCW know C: {BUDGET}, or 0 where nobody "
            "attacks; RCDB is then MaxPairUCB. 'C unknown': RCDB and HCW assume ⌈√T⌉, Sceptic 2√T.",
        ],
    )


# ---------------------------------------------------------------------- late outcomes and features (Oh 2026)


FLIPS = 25
DIMENSION = 10
DELAYS: dict[str, Mapping[str, Any]] = {
    "stochastic": {"mean": 100.0, "deviation": 100.0},
    "strategic": {"budget": 10_000},
}
"""D is 100 in both."""
PUBLISHED_ATTACK = "adversarial"
"""That of the author's code: the first 25 outcomes that had probability over ½."""
LATE_ATTACKS = {PUBLISHED_ATTACK: "likely outcomes flipped", "greedy": "first outcomes flipped"}
PUBLISHED = {"rcdp": 480, "rcdb": 820, "maxpairucb": 1315, "colstim": 1460, "maxinp": 1700}
"""Final regret, as read off the figure; halved, as everywhere in Oh 2026."""
PUBLISHED_POST = {"rcdp": 8500}
"""The same with post-serving features |x|; 16,000 to 30,000 for all other agents."""
_RIDGE = 1.0 / (DIMENSION * math.pi**2)
"""λ = 1 for features in [−π, π]^d, which the world shrinks to norms ≤ 1."""
LATE_AGENTS: list[tuple[str, str, Mapping[str, Any]]] = [
    ("rcdb", "default", {}),
    ("rcdb-s", "default", {}),
    ("rcdp", "as published", {"ridge": _RIDGE}),
    ("maxpairucb", "default", {}),
    ("colstim", "default", {}),
    ("maxinp", "default", {}),
    ("random-pairs", "default", {}),
    ("sceptic", "C unknown", BUDGET_UNKNOWN),
    ("rcdb", "C unknown", BUDGET_UNKNOWN),
]


def late_outcomes() -> Experiment:
    """RCDB against RCDP-UCB when outcomes arrive late."""
    return Experiment(
        name="rcdp",
        title="RCDP-UCB's linear benchmark",
        question=f"Does RCDB beat RCDP-UCB when outcomes arrive about 100 rounds late and {FLIPS} are flipped?",
        entries=[
            Entry(
                _cell(agent, settings, attack, delay),
                words,
                f"{delay} delay, {flipped}",
                is_reference=(agent, words) == ("rcdb", "default"),
            )
            for attack, flipped in LATE_ATTACKS.items()
            for delay in DELAYS
            for agent, words, settings in LATE_AGENTS
        ],
        conclude=_beats_rcdp(PUBLISHED),
        runs=20,
        views=[Curves("Cumulative regret (mean ± one standard error).")],
        notes=[
            f"World post-serving without post-serving features, d = K = {DIMENSION}; flipped outcomes are never late. "
            "The first two panels have the attack of the author's code, to which the published values belong.",
            "Regret is 2r* − r_a − r_b; Oh 2026 reports half of it. The author's RCDB has β = 3√d and takes one Newton "
            "step per outcome in place of the MLE; its other baselines differ from those here too.",
            "RCDP-UCB knows C and D, RCDB and RCDB-S only C; no agent is tuned.",
        ],
    )


def late_features() -> Experiment:
    """The same when some features are seen late (slow)."""
    ridges = {"rcdp": {"ridge": _RIDGE / 2.0}}  # (x, |x|) is shrunk by another √2
    return Experiment(
        name="post-serving",
        title="RCDP-UCB's benchmark with post-serving features",
        question="Does RCDB beat RCDP-UCB when half of the features are seen only after serving?",
        entries=[
            Entry(
                _cell(agent, ridges.get(agent, {}), PUBLISHED_ATTACK, "strategic", post="abs"),
                "as published" if agent == "rcdp" else "default",
                "strategic delay, likely outcomes flipped",
                is_reference=agent == "rcdb",
            )
            for agent in ("rcdb", "rcdp", "maxpairucb")
        ],
        conclude=_beats_rcdp(PUBLISHED_POST),
        is_slow=True,
        views=[Curves("Cumulative regret (mean ± one standard error).")],
        notes=[
            "The features |x| of an action, on which its reward mostly depends, are predicted from x by a network that "
            "learns from every duel; agents choose by the predictions and learn from the true features.",
            "In the author's code only RCDP-UCB learns from the true features; there, the other agents have about "
            "16,000 to 30,000 of the halved regret.",
        ],
    )


def _cell(agent: str, settings: Mapping[str, Any], attack: str, delay: str, post: str = "none") -> Cell:
    return Cell(
        agent,
        attack,
        FLIPS,
        HORIZON,
        "post-serving",
        agent_settings=settings,
        world_settings={"dimension": DIMENSION, "count": DIMENSION, "post": post},
        delay=delay,
        delay_settings={**DELAYS[delay], "flipped_at_once": True},
    )


def _beats_rcdp(published: Mapping[str, float]) -> Conclude:
    """Conclude whether RCDB beats RCDP-UCB, who is lowest, and how the regrets compare with ``published`` ones."""

    def conclude(results: Results, entries: list[Entry]) -> list[str]:
        by_agent = {entry.cell.agent: entry for entry in reversed(entries)}  # of two entries, the first
        robust, rival = by_agent["rcdb"], by_agent["rcdp"]
        found, ratio = gap(results, robust, rival), with_interval(ratio_of(results, robust, rival))
        if found.high < 0.0:
            answer = "RCDB beats RCDP-UCB"
        else:
            answer = "RCDP-UCB beats RCDB" if found.low > 0.0 else "neither of RCDB and RCDP-UCB beats the other"
        sentences = [f"{answer}; the ratio of their regrets is {ratio}.", lowest_text(results, entries)]
        if robust.cell.attack == PUBLISHED_ATTACK:
            halves = [
                f"{entry.legend} {whole(mean(results.regret(entry) / 2.0))}"
                + (f", published ≈ {published[agent]:,.0f}" if by_agent[agent] is entry and agent in published else "")
                for entry in entries
                for agent in [entry.cell.agent]
            ]
            sentences.append(f"halved, as in Oh 2026, the regrets are: {'; '.join(halves)}.")
        return sentences

    return in_each_panel(conclude)


# ---------------------------------------------------------------------- nonlinear rewards (Pásztor 2024, Verma 2024)


_MAP: Mapping[str, Any] = {"map": "rbf"}
_ROBUST = ("sceptic", "rcdb")
NONLINEAR_WORLDS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    **{name: ("mesh", {"function": name}) for name in REPORTED},
    "10⟨x,θ⟩², fresh": ("curved", {"shape": "quadratic"}),
    "3cos(3⟨x,θ⟩), fresh": ("curved", {"shape": "cosine"}),
    "linear, fresh": ("fresh", {"count": 10}),
}
"""Nine nonlinear worlds and a linear control, by their name in figures."""
_OWN: tuple[tuple[str, str, Mapping[str, Any]], ...] = (
    ("rcdb", "kernel", _MAP),
    ("sceptic", "kernel, C unknown", {**_MAP, **BUDGET_UNKNOWN}),
    ("rcdb", "linear", {}),
)
"""Each agent of ours, its setting in words, and its settings: the same in every world."""
_RIVALS = ("maxminlcb", "maxpairucb", "maxinp", "ginop")
_RADII: Mapping[str, tuple[float, ...]] = {
    "ackley": (0.25, 2.0, 0.5, 1.0),
    "branin": (1.0, 4.0, 2.0, 2.0),
    "eggholder": (1.0, 4.0, 4.0, 2.0),
    "hoelder": (1.0, 2.0, 4.0, 2.0),
    "matyas": (1.0, 4.0, 0.5, 1.0),
    "michalewicz": (1.0, 4.0, 4.0, 2.0),
    "rosenbrock": (0.5, 0.5, 2.0, 0.5),
    "10⟨x,θ⟩², fresh": (0.25, 2.0, 2.0, 1.0),
    "3cos(3⟨x,θ⟩), fresh": (0.5, 4.0, 2.0, 1.0),
    "linear, fresh": (1.0, 1.0, 1.0, 1.0),
}
"""The radius of each rival with the least mean regret there without attack, of ½, 1, 2, 4 and for MaxMinLCB ¼.

Six runs on tuning seeds, three where actions are new; those of the linear world are not tuned.
"""


def _kernel_agents(world: str) -> list[tuple[str, str, Mapping[str, Any]]]:
    tuned = [
        (name, "kernel, tuned", {**_MAP, "radius": beta}) for name, beta in zip(_RIVALS, _RADII[world], strict=True)
    ]
    return [*_OWN, *tuned]


def _in_curved_world(
    name: str, attack: Attack, agent: tuple[str, str, Mapping[str, Any]], horizon: int = HORIZON, x: float | None = None
) -> Entry:
    """An agent, its setting in words and its settings, in the world of this name; RCDB with a kernel is compared with.

    With an ``x`` the attack is the same in the whole panel, whatever its budget.
    """
    (kind, words, settings), (world, place) = agent, {**NONLINEAR_WORLDS, **DRAWN}[name]
    flips = f"{attack.budget} {attack.name} flips" if x is None else f"{attack.name} flips"
    return Entry(
        Cell(kind, attack.name, attack.budget, horizon, world, settings, attack.settings, place),
        words,
        f"{name}, {'no attack' if attack.name == 'none' else flips}",
        x=x,
        is_reference=(kind, words) == ("rcdb", "kernel"),
    )


def nonlinear_rewards() -> Experiment:
    """Kernel features for robust agents and rivals: seven test functions, two curved worlds, a linear one (slow)."""
    entries = [
        _in_curved_world(name, attack, agent)
        for name in NONLINEAR_WORLDS
        for attack in (Attack("no attack", "none"), ADVERSARIAL)
        for agent in _kernel_agents(name)
    ]
    return Experiment(
        name="nonlinear",
        title="Nonlinear rewards",
        question="Are agents with kernel features robust where rewards are not linear, and what does that cost?",
        entries=entries,
        conclude=in_each_panel(_ours_against_rivals),
        views=[Curves("Cumulative regret (mean ± one standard error).")],
        notes=[
            f"T = {HORIZON:,}. Test functions of Pásztor 2024 on a 10 × 10 mesh, scaled to [−3, 3]; curved worlds of "
            "Verma 2024 with d = 5 and 10 new actions per round. Regret is 2r* − r_a − r_b in rewards; the world's "
            "setting regret=preference has that of Pásztor 2024, doubled.",
            "All agents with a kernel have the same 60 features: RBF, length scale half the median distance, exact up "
            "to 60 eigenvectors on a mesh and random on new actions.",
            "The constants of RCDB and Sceptic with a map were chosen on tuning seeds of other functions (himmelblau, "
            "camel, rastrigin, styblinski) and of random RBF and Matérn functions; they are the same in all worlds. "
            "The radius of each rival is tuned in each world, without attack, on tuning seeds.",
            f"RCDB is told C = {BUDGET} also where nobody attacks; Sceptic is told nothing.",
        ],
        runs=20,
        is_slow=True,
    )


DRAWN: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "RBF draw, fresh": ("curved", {"shape": "rbf"}),
    "Matérn-5/2 draw, fresh": ("curved", {"shape": "matern52"}),
}
"""Worlds whose rewards are drawn from a kernel's own prior."""
_UNTUNED: tuple[tuple[str, str, Mapping[str, Any]], ...] = (
    *_OWN[:2],
    ("sceptic", "kernel, robust, C unknown", {**_MAP, **BUDGET_UNKNOWN, "robust": True}),
    ("hcw", "kernel", _MAP),
    ("ginop", "kernel, radius 2", {**_MAP, "radius": 2.0}),
    ("maxminlcb", "kernel", _MAP),
)
_NETWORK: Mapping[str, Any] = {"map": "neural"}
_NETWORKS: tuple[tuple[str, str, Mapping[str, Any]], ...] = (
    _OWN[0],
    ("rcdb", "network", _NETWORK),
    ("sceptic", "network, C unknown", {**_NETWORK, **BUDGET_UNKNOWN}),
    ("maxpairucb", "network, radius 1", {**_NETWORK, "radius": 1.0}),
    ("ndb-ucb", "as published", {}),
    ("ndb-ts", "as published", {}),
)


def other_attacks_on_kernels() -> Experiment:
    """Kernel features under six attacks: two test functions, a curved world and random ones (slow)."""
    seen = (GREEDY, ADVERSARIAL, MISLEADING, Attack("hiding", "hiding"), Attack("watching", "watching"))
    return Experiment(
        name="kernel-attacks",
        title="Nonlinear rewards under other attacks",
        question="Which agents with kernel features are robust to which attack?",
        entries=[
            _in_curved_world(name, attack, agent)
            for name in ("branin", "michalewicz", "3cos(3⟨x,θ⟩), fresh", *DRAWN)
            for attack in (NO_ATTACK, *seen)
            for agent in _UNTUNED
        ],
        conclude=lowest_in_each_panel,
        views=[Curves("Cumulative regret (mean ± one standard error).")],
        notes=[
            "Nobody is tuned. Where nobody attacks, RCDB and HCW are told C = 0. Random functions have scale 0.7 "
            "and standard deviation 1."
        ],
        runs=20,
        is_slow=True,
    )


def kernels_by_horizon() -> Experiment:
    """Growth of regret in T with kernel features (slow)."""
    horizons = (500, 1000, 2000, 4000, 8000)
    return _kernels_growing(
        "kernel-horizon", "T", 0.5, "√T", {float(rounds): (rounds, math.ceil(math.sqrt(rounds))) for rounds in horizons}
    )


def kernels_by_flips() -> Experiment:
    """Growth of regret in C with kernel features (slow)."""
    return _kernels_growing(
        "kernel-flips", "C", 1.0, "linear", {float(flips): (HORIZON, flips) for flips in (15, 30, 60, 120, 240)}
    )


def _kernels_growing(
    name: str, symbol: str, rate: float, rate_name: str, sizes: Mapping[float, tuple[int, int]]
) -> Experiment:
    """Regret in three worlds under the adversarial attack, for T and C by x."""
    return Experiment(
        name=name,
        title=f"Nonlinear rewards: growth with {symbol}",
        question=f"Does the regret of agents with kernel features grow like {symbol}^{rate:g} under attack?",
        entries=[
            _in_curved_world(world, Attack("adversarial", "adversarial", budget=flips), agent, horizon, x)
            for world in ("branin", "3cos(3⟨x,θ⟩), fresh", "RBF draw, fresh")
            for x, (horizon, flips) in sizes.items()
            for agent in _UNTUNED
        ],
        conclude=growth(symbol, rate, rate_name),
        views=[Lines(f"Final regret against {symbol} (log-log).", symbol, scale="log", fit="power")],
        notes=["Nobody is tuned; C = ⌈√T⌉ where T grows, and T = 2,000 where C does."],
        runs=20,
        is_slow=True,
    )


def networks() -> Experiment:
    """Networks and published neural agents beside kernel features (slow; needs the neural extra)."""
    worlds = ("branin", "hoelder", "10⟨x,θ⟩², fresh", "3cos(3⟨x,θ⟩), fresh", *DRAWN)
    return Experiment(
        name="networks",
        title="Networks",
        question="Are agents that learn their features robust, and do they beat kernel features?",
        entries=[
            _in_curved_world(name, attack, agent)
            for name in worlds
            for attack in (Attack("no attack", "none"), ADVERSARIAL)
            for agent in _NETWORKS
        ],
        conclude=lowest_in_each_panel,
        views=[Curves("Cumulative regret (mean ± one standard error).")],
        notes=[
            f"Nobody is tuned; RCDB is told C = {BUDGET} also where nobody attacks. NDB-UCB and NDB-TS are our ports."
        ],
        is_slow=True,
    )


def _ours_against_rivals(results: Results, entries: list[Entry]) -> list[str]:
    """Say who is lowest, compare the best robust agent with the best rival, and say how good its advice is."""
    mapped = [entry for entry in entries if "map" in entry.cell.agent_settings]
    robust = [entry for entry in mapped if entry.cell.agent in _ROBUST]
    rivals = [entry for entry in mapped if entry.cell.agent not in _ROBUST]
    best, rival = (min(group, key=lambda entry: results.regret(entry).mean()) for group in (robust, rivals))
    ratio = with_interval(ratio_of(results, best, rival))
    losses = mean(results.of(best)["recommendation_regret"].to_numpy())
    found = results.recommended_best(best).mean()
    return [
        lowest_text(results, entries),
        f"{best.label} has {ratio} times the regret of {rival.label}.",
        f"it recommends the best action in {found:.0%} of cases; its advice loses {with_interval(losses)} on average.",
    ]
