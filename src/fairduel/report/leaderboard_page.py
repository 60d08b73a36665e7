"""The report of the leaderboard."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from fairduel.experiments import leaderboard
from fairduel.experiments.conclusions import leaderboard_conclusions
from fairduel.experiments.experiment import settings_text
from fairduel.experiments.leaderboard import Board
from fairduel.files import write_atomically
from fairduel.report.figures import STYLE
from fairduel.report.page import Drawn, Page, Section, write_page
from fairduel.report.tables import with_error
from fairduel.report.text_table import TextTable
from fairduel.simulation import versions

_EXPLAINED = (
    "An agent's ratio in a scenario is its regret divided by that of the best agent tuned for that scenario on other "
    "seeds: 1 is as good as tuned. It can be below 1, because not every agent is tuned. The worst ratio is what you "
    "risk, the geometric mean what to expect. ± is one standard error over the seeds."
)
_SETUP = (
    "Unless a scenario's name says otherwise: the paper's hypercube, d = 5, ‖θ*‖ = 2, T = 2000, C = 45. Agents that "
    "take a flip budget are told C. Warm-up: 160 random duels first, for agents that have a warm-up. Fresh actions: 32 "
    "per round, uniform on the sphere. Tuned: the radius, one of eight, on twenty tuning seeds from 1,000,000 on."
)

_AGENTS_PER_TABLE = 8


def write_leaderboard(folder: Path, board: Board, seeds: Sequence[int], command: str) -> Path:
    """Write the report and ``leaderboard.json`` to ``folder``; return the page."""
    text = json.dumps(_record(board, seeds, command), indent=1, ensure_ascii=False)
    write_atomically(folder / "leaderboard.json", (text + "\n").encode())
    standings = [
        [
            standing.contender.title,
            standing.worst[0]
            + ("" if len(standing.ratios) == len(leaderboard.SCENARIOS) else "; cannot play fresh actions"),
            with_error(standing.worst[1], digits=2),
            with_error(standing.geometric_mean, digits=2),
        ]
        for standing in board.standings
    ]
    columns = ["agent, untuned", "worst scenario", "worst ratio", "geometric mean"]
    figure = Drawn(
        "Regret ratio of every agent in every scenario; 1: as good as the best tuned agent; empty: cannot play.",
        _heatmap(board),
        alt="Heatmap of regret ratios. Worst ratios: " + ", ".join(f"{row[0]} {row[2]}" for row in standings) + ".",
        name="leaderboard",
    )
    page = Page(
        title="Leaderboard",
        question="Which agent should I use?",
        conclusions=leaderboard_conclusions(board),
        sections=[
            Section("Standings", [_EXPLAINED], [TextTable(columns, standings, "Standings", text=2, marked=0)]),
            Section("Ratios by scenario", [_SETUP], [_best_table(board)], [figure]),
            Section("All ratios", ["Standard errors are in leaderboard.json."], _ratio_tables(board), folded=True),
        ],
        command=command,
        seeds=seeds,
    )
    return write_page(folder, page)


def _best_table(board: Board) -> TextTable:
    rows = [
        [name, best.contender.title, settings_text(best.tuning.winner.settings), f"{best.regret.mean():,.0f}"]
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
    agents = [standing.contender.title for standing in board.standings]
    scenarios = list(board.best)
    missing = float("nan")
    ratios = np.array(
        [[s.ratios[name].value if name in s.ratios else missing for s in board.standings] for name in scenarios]
    )
    with mpl.rc_context({**STYLE, "axes.grid": False}):
        figure = Figure(figsize=(3.2 + 0.58 * len(agents), 2.2 + 0.27 * len(scenarios)), layout="constrained")
        axis = figure.subplots()
        axis.imshow(ratios, cmap="Oranges", norm=LogNorm(1.0, 12.0), aspect="auto")
        axis.set_xticks(range(len(agents)), agents, rotation=40, ha="left", rotation_mode="anchor", fontsize=9)
        axis.xaxis.tick_top()
        axis.set_yticks(range(len(scenarios)), scenarios, fontsize=9)
        axis.spines[:].set_visible(False)
        axis.tick_params(length=0)
        for (i, j), ratio in np.ndenumerate(ratios):
            if np.isfinite(ratio):
                colour = "white" if ratio > 4.0 else "#1b212c"
                axis.text(j, i, f"{ratio:.2f}", ha="center", va="center", fontsize=8, color=colour)
        return figure


def _record(board: Board, seeds: Sequence[int], command: str) -> dict[str, Any]:
    return {
        "command": command,
        "seeds": [seeds[0], seeds[-1]],
        "versions": versions(),
        "standings": [
            {
                "agent": standing.contender.agent,
                "settings": dict(standing.contender.settings),
                "worst": {"scenario": standing.worst[0], **standing.worst[1].as_json()},
                "geometric_mean": standing.geometric_mean.as_json(),
                "ratios": {name: ratio.as_json() for name, ratio in standing.ratios.items()},
            }
            for standing in board.standings
        ],
        "best": {
            name: {
                "agent": best.contender.agent,
                "settings": {**best.contender.settings, **best.tuning.winner.settings},
                "regret": float(best.regret.mean()),
                "tuning_seeds": best.tuning.seeds,
            }
            for name, best in board.best.items()
        },
    }
