"""The leaderboard as one page."""

import json
from pathlib import Path
from typing import Any

from fairduel.experiments import leaderboard
from fairduel.files import write_atomically
from fairduel.report.templating import render
from fairduel.simulation import versions


def write_leaderboard(folder: Path, board: leaderboard.Board, seeds: range, command: str) -> Path:
    """Write leaderboard.html and leaderboard.json into ``folder``; return the page."""
    text = json.dumps(_record(board, seeds, command), indent=1, ensure_ascii=False)
    write_atomically(folder / "leaderboard.json", (text + "\n").encode())
    page = folder / "leaderboard.html"
    shown = f"{seeds[0]}–{seeds[-1]} ({len(seeds)} runs)"
    html = render("leaderboard.html", board=board, scenarios=leaderboard.SCENARIOS, seeds=shown, command=command)
    write_atomically(page, html.encode())
    return page


def _record(board: leaderboard.Board, seeds: range, command: str) -> dict[str, Any]:
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
