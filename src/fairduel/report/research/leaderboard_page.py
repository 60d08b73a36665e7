"""The report of the leaderboard."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from fairduel.duel import Matrix
from fairduel.experiments import competition
from fairduel.experiments.board_advice import board_conclusions
from fairduel.experiments.competition import HALVES, Board, Summary
from fairduel.experiments.sentences import settings_text, title_of, whole
from fairduel.experiments.tuning import FIRST_TUNING_SEED
from fairduel.files import versions, write_atomically
from fairduel.report.drawing import STYLE
from fairduel.report.page import Drawn, Page, Section, write_page
from fairduel.report.research.research_tables import interval_text, share_text
from fairduel.report.text_table import TextTable

_EXPLAINED = (
    "An agent's ratio in a scenario is its regret divided by that of the best agent tuned for that scenario on other "
    "seeds: 1 is as good as tuned. It can be below 1, because not every agent and setting is tuned. The worst ratio is "
    "what you risk, the geometric mean what to expect. Brackets are 95% intervals from leaving out one seed at a time. "
    "Best recommended: how often the final recommendation is the best action, over all scenarios; loss: how much worse "
    "the recommended action is. Agents that take a flip budget play twice: C known, and C unknown. Worst attack: "
    "regret in the paper's setup under the worst attack that a search found on this very agent; –: not searched for."
)
_HALVES = (
    "Constants of Sceptic and RCDB were chosen on problems like those of the tuning scenarios. The held-out scenarios "
    "have other values or kinds of worlds, so they show what to expect elsewhere."
)
_SETUP = (
    "Unless a scenario's name says otherwise: the paper's hypercube, d = 5, ‖θ*‖ = 2, T = 2000, C = 45. Vertices: so "
    "many of the hypercube, drawn at random. Fresh: 32 new actions per round, uniform on the sphere. Ties: Davidson's "
    "model with ν = 0.5. Probit and clipped linear: the world's link, while agents are told that it is logistic."
)

_AGENTS_PER_TABLE = 7
_PLAIN_BELOW = 4.0
"""Smaller ratios have a light background, and so dark digits."""


def write_leaderboard(folder: Path, board: Board, seeds: Sequence[int], command: str) -> Path:
    """Write the report and ``leaderboard.json`` to ``folder``; return the page."""
    text = json.dumps(_record(board, seeds, command), indent=1, ensure_ascii=False)
    write_atomically(folder / "leaderboard.json", (text + "\n").encode())
    worst = ", ".join(f"{s.contender.title} {s.overall.worst.value:.2f}" for s in board.standings)
    figure = Drawn(
        "Regret ratio of every agent in every scenario; 1: as good as the best tuned agent; empty: cannot play.",
        _heatmap(board),
        alt=f"Heatmap of regret ratios. Worst ratios: {worst}.",
        name="leaderboard",
        narrow=_narrow(board),
    )
    listed = "Held-out scenarios: {held-out}. Tuning scenarios: {tuning}."
    titles = {half: "; ".join(s.title for s in board.scenarios if s.half == half) or "none" for half in HALVES}
    page = Page(
        title="Leaderboard",
        question="Which agent should I use?",
        conclusions=board_conclusions(board),
        sections=[
            Section("Standings", [_EXPLAINED], [_standings(board)]),
            Section("Both halves", [_HALVES, listed.format(**titles)], [_halves(board)]),
            Section("Ratios by scenario", [_SETUP], figures=[figure]),
            Section("Best tuned agents", [_tuned_text()], [_best_table(board)], folded=True),
            Section("All ratios", ["Their intervals are in leaderboard.json."], _ratio_tables(board), folded=True),
        ],
        command=command,
        seeds=seeds,
    )
    return write_page(folder, page)


def _standings(board: Board) -> TextTable:
    rows = [
        [
            standing.contender.title,
            standing.overall.where
            + ("" if len(standing.ratios) == len(board.scenarios) else "; cannot play fresh actions"),
            interval_text(standing.overall.worst),
            interval_text(standing.overall.geometric_mean),
            share_text(standing.recommended_best),
            interval_text(standing.recommendation_regret),
            "–" if standing.attacked is None else whole(standing.attacked),
        ]
        for standing in board.standings
    ]
    columns = [
        *("agent, untuned", "worst scenario", "worst ratio", "geometric mean", "best recommended", "loss"),
        "worst attack",
    ]
    return TextTable(columns, rows, "Standings", text=2, marked=0)


def _halves(board: Board) -> TextTable:
    rows = []
    for standing in board.standings:
        found = [standing.halves.get(half) for half in HALVES]
        cells = [
            (interval_text(each.worst), interval_text(each.geometric_mean)) if each else ("–", "–") for each in found
        ]
        rows.append([standing.contender.title, *(cell for pair in cells for cell in pair)])
    columns = [f"{half}: {what}" for half in HALVES for what in ("worst", "mean")]
    return TextTable(["agent, untuned", *columns], rows, "Ratios by half", marked=0)


def _tuned_text() -> str:
    rungs = [f"{rung.kept} on {rung.runs} seeds" for rung in competition.RUNGS]
    return (
        f"Each scenario has its own best of {len(competition.CANDIDATES)} settings: radii of eight agents (CoLSTIM "
        "with both couplings), and for MaxPairUCB and MaxInP also the number of random duels that come first. "
        f"Successive halving on tuning seeds from 1,000,000 on: {', '.join(rungs)}. Its regret is then measured on the "
        "report's seeds."
    )


def _best_table(board: Board) -> TextTable:
    rows = [
        [name, title_of(best.contender.agent), settings_text(best.contender.settings), f"{best.regret.mean():,.0f}"]
        for name, best in board.best.items()
    ]
    return TextTable(["scenario", "best tuned agent", "tuned to", "its regret"], rows, "Best tuned agents", text=3)


def _ratio_tables(board: Board) -> list[TextTable]:
    """Return the ratios of all agents, a few agents per table, so that each fits on a page."""
    tables = []
    for start in range(0, len(board.standings), _AGENTS_PER_TABLE):
        shown = board.standings[start : start + _AGENTS_PER_TABLE]
        rows = [
            [scenario, *(f"{s.ratios[scenario].value:.2f}" if scenario in s.ratios else "–" for s in shown)]
            for scenario in board.best
        ]
        columns = ["scenario", *(standing.contender.title for standing in shown)]
        tables.append(TextTable(columns, rows, f"Ratios, ranks {start + 1} to {start + len(shown)}"))
    return tables


def _heatmap(board: Board) -> Figure:
    """Scenarios by agents, the halves apart."""
    missing = float("nan")
    ratios = np.array(
        [
            [s.ratios[name].value if name in s.ratios else missing for s in board.standings]
            for name in (scenario.title for scenario in board.scenarios)
        ]
    )
    agents = [standing.contender.title for standing in board.standings]
    with mpl.rc_context({**STYLE, "axes.grid": False}):
        size = (3.3 + 0.4 * len(agents), 2.2 + 0.25 * len(ratios))
        figure = Figure(figsize=size, layout="constrained")
        axis = figure.subplots()
        _fill(axis, ratios)
        axis.set_xticks(range(len(agents)), agents, rotation=50, ha="left", rotation_mode="anchor", fontsize=9)
        axis.xaxis.tick_top()
        axis.set_yticks(range(len(ratios)), [scenario.title for scenario in board.scenarios], fontsize=9)
        halves = [scenario.half for scenario in board.scenarios]
        for half in dict.fromkeys(halves):
            places = [place for place, each in enumerate(halves) if each == half]
            label = axis.text(1.01, float(np.mean(places)), half, transform=axis.get_yaxis_transform(), rotation=270)
            label.set(va="center", fontsize=10)
            if places[0]:
                axis.axhline(places[0] - 0.5, color="#1b212c", linewidth=2.0)
        return figure


def _narrow(board: Board) -> Figure:
    """The worst ratio and the geometric mean of each agent in each half, for phones."""
    missing = float("nan")
    ratios = np.array(
        [
            [value for half in HALVES for value in _both(standing.halves.get(half)) or (missing, missing)]
            for standing in board.standings
        ]
    )
    with mpl.rc_context({**STYLE, "axes.grid": False}):
        figure = Figure(figsize=(4.2, 1.2 + 0.27 * len(ratios)), layout="constrained")
        axis = figure.subplots()
        _fill(axis, ratios)
        labels = [f"{half}\n{what}" for half in HALVES for what in ("worst", "mean")]
        axis.set_xticks(range(len(labels)), labels, fontsize=9)
        axis.xaxis.tick_top()
        axis.set_yticks(range(len(ratios)), [standing.contender.title for standing in board.standings], fontsize=9)
        return figure


def _both(summary: Summary | None) -> tuple[float, float] | None:
    return (summary.worst.value, summary.geometric_mean.value) if summary else None


def _fill(axis: Axes, ratios: Matrix) -> None:
    """Colour a grid by its ratios and write them into it."""
    axis.imshow(ratios, cmap="Oranges", norm=LogNorm(1.0, 12.0), aspect="auto")
    axis.spines[:].set_visible(False)
    axis.tick_params(length=0)
    for (i, j), ratio in np.ndenumerate(ratios):
        if np.isfinite(ratio):
            text = f"{ratio:.1f}" if ratio < 9.95 else f"{ratio:.0f}"
            colour = "#1b212c" if ratio < _PLAIN_BELOW else "white"
            axis.text(j, i, text, ha="center", va="center", fontsize=8, color=colour)


def _record(board: Board, seeds: Sequence[int], command: str) -> dict[str, Any]:
    def summary(found: Summary) -> dict[str, Any]:
        return {
            "worst": {"scenario": found.where, **found.worst.as_json()},
            "geometric_mean": found.geometric_mean.as_json(),
        }

    return {
        "command": command,
        "seeds": [seeds[0], seeds[-1]],
        "versions": versions(),
        "halves": {half: [s.title for s in board.scenarios if s.half == half] for half in HALVES},
        "standings": [
            {
                "title": standing.contender.title,
                "agent": standing.contender.agent,
                "settings": dict(standing.contender.settings),
                **summary(standing.overall),
                "halves": {half: summary(found) for half, found in standing.halves.items()},
                "recommended_best": standing.recommended_best.as_json(),
                "recommendation_regret": standing.recommendation_regret.as_json(),
                "worst_attack": standing.attacked and standing.attacked.as_json(),
                "ratios": {name: ratio.as_json() for name, ratio in standing.ratios.items()},
            }
            for standing in board.standings
        ],
        "best": {
            name: {
                "agent": best.contender.agent,
                "settings": dict(best.contender.settings),
                "regret": float(best.regret.mean()),
                "tuning_regret": best.tuning.as_json(),
                "tuning_seeds": [FIRST_TUNING_SEED, FIRST_TUNING_SEED + competition.RUNGS[-1].runs - 1],
            }
            for name, best in board.best.items()
        },
    }
