"""Conclusions in words about rankings of recorded votes: whether their ranges hold, and what attacks do to them."""

from collections.abc import Mapping, Sequence

import numpy as np

from fairduel.experiments.coverage import Coverage, Setting, before
from fairduel.experiments.inference import corrected, share
from fairduel.experiments.sentences import MOST_NAMES, count_runs, with_interval
from fairduel.experiments.vote_attacks import ALLOWED, Comparison
from fairduel.votes.intervals import CONFIDENCE


def vote_attacks_conclusions(cells: Sequence[Comparison]) -> list[str]:
    """State how our ranking of votes compares with the best rival, cell by cell, and where it loses.

    Args:
        cells: All cells of the table.

    Returns:
        One or two sentences per item.
    """
    behind = sorted((cell for cell in cells if cell.lead.value < 0.0), key=lambda cell: cell.lead.value)
    found = [
        f"In {len(cells) - len(behind)} of {len(cells)} cells our mean τ is at least that of the best of "
        f"{len(cells[0].tau) - 1} rivals in that cell."
    ]
    if behind:
        worst = behind[0]
        too_far = [cell for cell in behind if cell.lead.value < -ALLOWED]
        found.append(
            f"We are furthest behind in {_cell_name(worst)}, by {-worst.lead.value:.3f} ± {worst.lead.error:.3f} "
            f"({worst.best}); {len(too_far)} cells are more than {ALLOWED:g} behind"
            f"{': ' + '; '.join(map(_cell_name, too_far)) if too_far else ''}."
        )
    ahead = max(cells, key=lambda cell: cell.lead.value)
    found.append(
        f"We are furthest ahead in {_cell_name(ahead)}, by {ahead.lead.value:.3f} ± {ahead.lead.error:.3f} (next: "
        f"{ahead.best})."
    )
    return [*found, "The best rival of each cell is chosen on the same runs, which favours the rivals."]


def _cell_name(cell: Comparison) -> str:
    return f"{cell.population} / {cell.attack} {cell.share:.0%}"


def coverage_conclusions(found: Mapping[Setting, Coverage]) -> list[str]:
    """State whether the rank ranges hold, how wide they are, and whether P(best) is calibrated.

    Args:
        found: Each cell as measured.

    Returns:
        One or two sentences per item.
    """
    runs, names = next(iter(found.values())).files, {setting: str(setting) for setting in found}
    below = [count for count in range(runs) if share(count, runs, corrected(names)).high < CONFIDENCE]
    failed = [names[setting] for setting, cell in found.items() if cell.covered in below]
    short = [names[setting] for setting, cell in found.items() if cell.ranks.value < CONFIDENCE]
    if not below:
        verdict = f"{count_runs(runs)} per cell cannot show whether rank ranges hold"
    elif failed:
        listed = "; ".join([*failed[:MOST_NAMES], *(["…"] if len(failed) > MOST_NAMES else [])])
        verdict = (
            f"Rank ranges do not hold: coverage is clearly below 95% in {len(failed)} of {len(found)} cells: {listed}"
        )
    elif short:
        verdict = f"In no cell is coverage clearly below 95%; in {len(short)} of {len(found)} it is, within noise"
    else:
        verdict = f"Rank ranges hold: coverage is at least 95% in all {len(found)} cells"
    lowest = min(found, key=lambda setting: found[setting].ranks.value)
    widths = [(cell.width, before()[setting].width) for setting, cell in found.items()]
    narrower, wider = sum(width.high < old for width, old in widths), sum(width.low > old for width, old in widths)
    said, right = (
        float(np.mean([getattr(cell, name).value for cell in found.values()]))
        for name in ("leader_best", "leader_is_best")
    )
    return [
        f"{verdict}. Lowest: {with_interval(found[lowest].ranks)} ({lowest}).",
        f"Ranges span {np.mean([width.value for width, _ in widths]):.2f} of all ranks on average, "
        f"{np.mean([old for _, old in widths]):.2f} before: significantly narrower in {narrower} cells, wider in "
        f"{wider}.",
        *_score_intervals({setting: cell for setting, cell in found.items() if setting.kind == "clean"}),
        f"The leader's P(best) averages {said:.2f}; leaders are best in {right:.2f} of all cases.",
        f"{count_runs(runs)} per cell; brackets are 95% intervals."
        + (f" Clearly below, corrected for the number of cells, is {below[-1] / runs:.0%} or less." if below else ""),
    ]


def _score_intervals(clean: Mapping[Setting, Coverage]) -> list[str]:
    """How often the intervals of scores hold; other populations have another link, and so other scores."""
    if not clean:
        return []
    lowest = min(clean, key=lambda setting: clean[setting].scores.value)
    return [
        f"95% intervals of single scores hold for {np.mean([cell.scores.value for cell in clean.values()]):.0%} of the "
        f"items of clean votes. Lowest: {with_interval(clean[lowest].scores)} ({lowest})."
    ]
