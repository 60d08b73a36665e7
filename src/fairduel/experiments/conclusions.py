"""Conclusions in words, computed from the measured means and their errors.

Agents are compared seed by seed. A difference is called significant where its 95% interval excludes zero, after a
Bonferroni correction for the number of comparisons in the same panel.
"""

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

import numpy as np

from fairduel.duel import Vector
from fairduel.experiments.claims import BEYOND, Status, Verdict
from fairduel.experiments.coverage import Coverage, Setting, before
from fairduel.experiments.experiment import Entry, settings_text, title_of
from fairduel.experiments.inference import Mean, exponent, jackknife, mean, mixed_mean, share
from fairduel.experiments.leaderboard import RANDOM, Board, Scenario, Standing
from fairduel.experiments.rcdp import PUBLISHED, PUBLISHED_ATTACK, PUBLISHED_POST
from fairduel.experiments.results import Results
from fairduel.experiments.sceptic import OWN_RADIUS, RADII, WHOLE
from fairduel.experiments.table1 import Measured
from fairduel.experiments.tuning import Tuned
from fairduel.experiments.vote_attacks import ALLOWED, Comparison
from fairduel.votes.ranking import CONFIDENCE

Key = TypeVar("Key")
Item = TypeVar("Item")
_MAX_NAMES = 4
"""A sentence lists at most this many names; the rest are counted."""
_CLOSE_EXPONENT = 0.1
"""An exponent whose whole interval is this near to a rate is called close to it."""


def conclusions(results: Results) -> list[str]:
    """State what an experiment found.

    Args:
        results: An experiment with all of its runs.

    Returns:
        One or two sentences per item: the answer first, the number of runs and their seeds last.
    """
    conclude = _BY_EXPERIMENT.get(results.experiment.name, _ranked_by_panel)
    return [*conclude(results), _basis(results.seeds)]


def lowest_by_panel(results: Results) -> list[list[str]]:
    """Tabulate the agent with the lowest regret in each panel, where the conclusions do not name it.

    Args:
        results: An experiment with all of its runs.

    Returns:
        Rows of text: the panel, the agent, those that it is not significantly better than, and its regret.
    """
    if results.experiment.name != "figure1":
        return []
    rows = []
    for panel, entries in _panels(results).items():
        lowest, _, tied = _rank(results, entries)
        names = ", ".join(entry.legend for entry in tied) or "–"
        rows.append([panel, lowest.label, names, _with_error(mean(_regret(results, lowest)))])
    return rows


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


def leaderboard_conclusions(board: Board) -> list[str]:
    """State which agent to use, and when to prefer another.

    Args:
        board: A finished leaderboard.

    Returns:
        One or two sentences per item.
    """
    told = [standing for standing in board.standings if standing.contender.is_told]
    untold = [standing for standing in board.standings if not standing.contender.is_told] or told
    first, name = untold[0], untold[0].contender.title
    found = [
        f"{'If C is unknown, use' if told else 'Use'} {name}: its worst ratio, "
        f"{_with_interval(first.overall.worst)} ({first.overall.where}), is the lowest of {len(untold)} agents"
        f"{_lead(board, first, untold)}; its geometric mean is {_with_interval(first.overall.geometric_mean)}."
    ]
    if "held-out" in first.halves:
        found.append(_on_held_out(first, untold))
    expected = min(untold, key=lambda standing: standing.overall.geometric_mean.value)
    if expected is not first:
        found.append(_on_average(board, expected, first))
    if told and told is not untold:
        found.append(_if_told(board, told, first))
    unplayed = [title for title in board.best if title not in first.ratios]
    if unplayed:
        able = next((s for s in untold if all(title in s.ratios for title in unplayed)), None)
        instead = f" Use {able.contender.title} there." if able else ""
        found.append(f"{name} cannot play these scenarios: {_listed(unplayed)}.{instead}")
    found += [*_situations(board, first, untold), _losses(board, first, untold), *_against_random(board, first)]
    runs = len(next(iter(board.best.values())).regret)
    return [
        *found,
        f"{_runs(runs)} per agent and scenario. Brackets are 95% intervals; comparisons are paired by seed, and those "
        "called clear are corrected for the number of agents or scenarios.",
    ]


def _lead(board: Board, first: Standing, others: Sequence[Standing]) -> str:
    """Whether the worst ratio of ``first`` is clearly lower than all others'."""
    rivals = [standing for standing in others if standing is not first]
    close = [s.contender.title for s in rivals if not board.compare_worst(first, s, _corrected(rivals)).high < 0.0]
    if not rivals:
        return ""
    return f", though not clearly lower than that of {_listed(close)}" if close else ", clearly"


def _on_held_out(first: Standing, others: Sequence[Standing]) -> str:
    """How ``first`` does where no constants were chosen."""
    own = first.halves["held-out"]
    played = [standing for standing in others if "held-out" in standing.halves]
    lowest = min(played, key=lambda standing: standing.halves["held-out"].worst.value)
    lead = "also the lowest"
    if lowest is not first:
        lead = f"that of {lowest.contender.title} is lower, {_with_interval(lowest.halves['held-out'].worst)}"
    return (
        f"On held-out scenarios alone its worst ratio is {_with_interval(own.worst)} ({own.where}), {lead}, and its "
        f"geometric mean {_with_interval(own.geometric_mean)}."
    )


def _on_average(board: Board, expected: Standing, first: Standing) -> str:
    shared = [title for title in expected.regret if title in first.regret]
    gap, risk = board.compare(expected, first, shared), expected.overall
    return (
        f"On average {expected.contender.title} does {'' if gap.high < 0.0 else 'not clearly '}better, with "
        f"{_times(gap)} times its regret, but risks a ratio of {_with_interval(risk.worst)} ({risk.where})."
    )


def _if_told(board: Board, told: Sequence[Standing], first: Standing) -> str:
    """What knowing C is worth."""
    best = told[0]
    gap = board.compare_worst(best, first)
    clear = "clearly " if gap.high < 0.0 or gap.low > 0.0 else "not clearly "
    return (
        f"If C is known, {best.contender.title} has the lowest worst ratio, {_with_interval(best.overall.worst)} "
        f"({best.overall.where}), {clear}{'lower' if gap.value < 0.0 else 'higher'} than that of "
        f"{first.contender.title}; its geometric mean is {_with_interval(best.overall.geometric_mean)}."
    )


_SITUATIONS: Mapping[str, Callable[[Scenario], bool]] = {
    "nobody lies": lambda scenario: scenario.budget == 0,
    "there are few lies (C ≤ 20)": lambda scenario: 0 < scenario.budget <= 20,
    "there are many lies (C ≥ 120)": lambda scenario: scenario.budget >= 120,
    "lies start late or come regularly": lambda s: "start" in s.attack_settings or "every" in s.attack_settings,
    "the horizon is short (T ≤ 500)": lambda scenario: scenario.horizon <= 500,
    "the horizon is long (T ≥ 8000)": lambda scenario: scenario.horizon >= 8000,
    "actions change every round": lambda scenario: scenario.world == "fresh",
    "answers are late": lambda scenario: scenario.delay != "none",
    "answers can be ties": lambda scenario: "ties" in scenario.world_settings,
    "the link is not the one agents are told": lambda scenario: "link" in scenario.world_settings,
}


def _situations(board: Board, first: Standing, others: Sequence[Standing]) -> list[str]:
    """Kinds of scenarios in which another agent is clearly better than ``first``."""
    found, none_better = [], []
    for words, applies in _SITUATIONS.items():
        titles = [
            scenario.title for scenario in board.scenarios if applies(scenario) and scenario.title in first.regret
        ]
        rivals = [s for s in others if s is not first and all(title in s.regret for title in titles)]
        if not titles or not rivals:
            continue
        best = min(rivals, key=lambda standing: board.compare(standing, first, titles).value)
        gap = board.compare(best, first, titles, _corrected(rivals))
        if gap.high < 0.0:
            count = "1 scenario" if len(titles) == 1 else f"{len(titles)} scenarios"
            found.append(f"If {words}, {best.contender.title} is better: {_times(gap)} times its regret ({count}).")
        else:
            none_better.append(words)
    if none_better:
        found.append(f"No agent is clearly better than {first.contender.title} if {'; if '.join(none_better)}.")
    return found


def _losses(board: Board, first: Standing, others: Sequence[Standing]) -> str:
    """In how many scenarios another agent is clearly better than ``first``, and where most."""
    lost = []
    for title in first.regret:
        rivals = [standing for standing in others if standing is not first and title in standing.regret]
        if rivals:
            best = min(rivals, key=lambda standing: float(standing.regret[title].mean()))
            gap = board.compare(best, first, [title], _corrected(rivals))
            lost += [(gap, title, best.contender.title)] if gap.high < 0.0 else []
    name, count = first.contender.title, len(first.regret)
    if not lost:
        return f"No agent is clearly better than {name} in any of {count} scenarios."
    gap, where, agent = min(lost, key=lambda each: each[0].value)
    return (
        f"{name} is clearly beaten in {len(lost)} of {count} scenarios, most in {where}, where {agent} has "
        f"{_times(gap)} times its regret."
    )


def _against_random(board: Board, first: Standing) -> list[str]:
    """Which agents are somewhere worse than random pairs."""
    blind = next((standing for standing in board.standings if standing.contender == RANDOM), None)
    if blind is None:
        return []
    worse = {}
    for standing in board.standings:
        shared = [title for title in standing.regret if standing is not blind]
        gaps = [board.compare(standing, blind, [title], _corrected(shared)) for title in shared]
        worse[standing.contender.title] = sum(gap.low > 0.0 for gap in gaps)
    some = [f"{title} ({count})" for title, count in worse.items() if count]
    never = "" if worse[first.contender.title] else f" {first.contender.title} never is."
    listed = ", ".join(some) if some else "none"
    return [f"Agents clearly worse than random pairs somewhere (in how many scenarios): {listed}.{never}"]


def _corrected(compared: Collection[object]) -> float:
    """The confidence of each of several 95% intervals (Bonferroni)."""
    return 1.0 - 0.05 / max(len(compared), 1)


def _times(log_ratio: Mean) -> str:
    """A ratio and its interval, from those of its logarithm."""
    value, _, low, high = log_ratio
    return _with_interval(Mean(math.exp(value), math.nan, math.exp(low), math.exp(high)))


def table1_conclusions(rows: Sequence[Measured]) -> list[str]:
    """State how the measured growth in T and C compares across the algorithms of Table 1.

    Args:
        rows: The measured rows of the table.

    Returns:
        One or two sentences per item.
    """
    linear = [row.algorithm.title for row in rows if not row.in_horizon.high < 1.0]  # NaN counts as linear
    found = [
        f"Without an attack, regret grows significantly slower than linearly in T for {len(rows) - len(linear)} of "
        f"{len(rows)} algorithms" + (f" (not shown for {_listed(linear)})." if linear else ".")
    ]
    superlinear = [row.algorithm.title for row in rows if row.in_budget.low > 1.0]
    sublinear = sum(row.in_budget.high < 1.0 for row in rows)
    noise = sum(math.isnan(row.in_budget.value) for row in rows)
    found.append(
        f"The regret added by an attack grows significantly faster than linearly in C for {len(superlinear)} algorithms"
        + (f" ({_listed(superlinear)})" if superlinear else "")
        + f" and significantly slower for {sublinear}; for {noise} it is within the noise, for the rest undecided."
    )
    for (model, attack), same in _grouped(rows, lambda r: (r.algorithm.guarantee.model, r.algorithm.attack)).items():
        best = min(same, key=lambda row: row.reference.value)
        if len(same) > 1:
            found.append(
                f"{_capitalized(model)}, {attack} attack: of {len(same)} algorithms, {best.algorithm.title} has the "
                f"lowest mean regret, {_with_error(best.reference)}."
            )
    uniform = [row.algorithm.title for row in rows if row.published_is_uniform]
    if uniform:
        found.append(
            f"At this horizon, the published constants are no better than uniform play for {_listed(uniform)}."
        )
    return [*found, f"{_runs(len(rows[0].by_horizon))} per cell; ± is one standard error."]


def coverage_conclusions(found: Mapping[Setting, Coverage]) -> list[str]:
    """State whether the rank ranges hold, how wide they are, and whether P(best) is calibrated.

    Args:
        found: Each cell as measured.

    Returns:
        One or two sentences per item.
    """
    runs, names = next(iter(found.values())).files, {setting: str(setting) for setting in found}
    below = [count for count in range(runs) if share(count, runs, _corrected(names)).high < CONFIDENCE]
    failed = [names[setting] for setting, cell in found.items() if cell.covered in below]
    short = [names[setting] for setting, cell in found.items() if cell.ranks.value < CONFIDENCE]
    if not below:
        verdict = f"{_runs(runs)} per cell cannot show whether rank ranges hold"
    elif failed:
        listed = "; ".join([*failed[:_MAX_NAMES], *(["…"] if len(failed) > _MAX_NAMES else [])])
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
        f"{verdict}. Lowest: {_with_interval(found[lowest].ranks)} ({lowest}).",
        f"Ranges span {np.mean([width.value for width, _ in widths]):.2f} of all ranks on average, "
        f"{np.mean([old for _, old in widths]):.2f} before: significantly narrower in {narrower} cells, wider in "
        f"{wider}.",
        *_score_intervals({setting: cell for setting, cell in found.items() if setting.kind == "clean"}),
        f"The leader's P(best) averages {said:.2f}; leaders are best in {right:.2f} of all cases.",
        f"{_runs(runs)} per cell; brackets are 95% intervals."
        + (f" Clearly below, corrected for the number of cells, is {below[-1] / runs:.0%} or less." if below else ""),
    ]


def _score_intervals(clean: Mapping[Setting, Coverage]) -> list[str]:
    """How often the intervals of scores hold; other populations have another link, and so other scores."""
    if not clean:
        return []
    lowest = min(clean, key=lambda setting: clean[setting].scores.value)
    return [
        f"95% intervals of single scores hold for {np.mean([cell.scores.value for cell in clean.values()]):.0%} of the "
        f"items of clean votes. Lowest: {_with_interval(clean[lowest].scores)} ({lowest})."
    ]


def verify_conclusions(verdicts: Sequence[Verdict]) -> list[str]:
    """State how many claims hold, and which do not.

    Args:
        verdicts: The verdicts of :func:`~fairduel.experiments.claims.verify`.

    Returns:
        One or two sentences per item.
    """
    found = []
    for name, is_beyond in (("claims of the paper", False), ("claims beyond the paper", True)):
        chosen = [verdict for verdict in verdicts if (verdict.source == BEYOND) == is_beyond]
        if not chosen:
            continue
        count = Counter(verdict.status for verdict in chosen)
        rest: tuple[Status, ...] = ("does not hold", "undecided", "cannot fail")
        counts = ", ".join(f"{status}: {count[status]}" for status in rest if count[status])
        found.append(f"{count['holds']} of {len(chosen)} {name} hold" + (f" ({counts})." if counts else "."))
        found += [f"Does not hold: {each.claim}." for each in chosen if each.status == "does not hold"]
    return found


def tune_conclusions(tunings: Sequence[Tuned]) -> list[str]:
    """State the best settings that a tuning found.

    Args:
        tunings: Finished tunings.

    Returns:
        One item per tuning.
    """
    return [_tuned_sentence(tuned) for tuned in tunings]


def _tuned_sentence(tuned: Tuned) -> str:
    best, problem = tuned.winner, tuned.problem
    attack = "no attack" if problem["attack"] == "none" else f"{problem['attack']} attack"
    late = f", {problem['delay']} delay" if "delay" in problem else ""
    text = (
        f"{title_of(problem['agent'])}, {attack}{late}, C = {problem['budget']}, T = {problem['horizon']:,}: "
        f"{settings_text(best.settings)} has the lowest mean regret, {best.mean:,.0f} ± {best.standard_error:,.0f}, of "
        f"{len(tuned.trials)} settings on {tuned.seeds[1] - tuned.seeds[0] + 1} tuning seeds."
    )
    close = [
        settings_text(trial.settings)
        for trial in tuned.trials
        if trial is not best and trial.mean - best.mean <= 2.0 * math.hypot(trial.standard_error, best.standard_error)
    ]
    if close:
        text += f" Within two standard errors of it: {_listed(close)}."
    if tuned.at_edge:
        text += " It is at the edge of the grid: a wider grid may find a better one."
    return text


# ---------------------------------------------------------------------- experiments


class _Ranking(NamedTuple):
    """The entry with the lowest mean regret, the next one, and all that are not significantly worse."""

    lowest: Entry
    second: Entry | None
    tied: list[Entry]


def _rank(results: Results, entries: Sequence[Entry]) -> _Ranking:
    lowest, *others = sorted(entries, key=lambda entry: _regret(results, entry).mean())
    confidence = 1.0 - 0.05 / max(1, len(others))
    tied = [entry for entry in others if not _gap(results, entry, lowest, confidence).low > 0.0]  # NaN is a tie
    return _Ranking(lowest, others[0] if others else None, tied)


def _counted(rankings: Collection[_Ranking], at: str, places: str) -> str:
    """How often each entry had the lowest regret, and how often significantly."""
    won = Counter(ranking.lowest.legend for ranking in rankings)
    clearly = Counter(ranking.lowest.legend for ranking in rankings if not ranking.tied)
    (first, count), *others = won.most_common()
    lead = f"{first} has the lowest mean regret {at} {count} of {len(rankings)} {places}"
    counts = [f"{name} {at} {count}" for name, count in others]
    notes = [f" ({clearly[name] or 'none'} significantly)" for name, _ in won.most_common()]
    return ", ".join(text + note for text, note in zip([lead, *counts], notes, strict=True)) + "."


def _ranked_by_panel(results: Results) -> list[str]:
    """Conclude which entry has the lowest regret in each panel of the first view."""
    rankings = {panel: _rank(results, entries) for panel, entries in _panels(results).items()}
    return [f"{_heading(panel)}: {_ranked(results, ranking)}" for panel, ranking in rankings.items()]


def _ranked(results: Results, ranking: _Ranking) -> str:
    lowest, second, tied = ranking
    regret = _with_error(mean(_regret(results, lowest)))
    if second is None:
        return f"the regret of {lowest.label} is {regret}."
    if tied:
        names = _listed([entry.label for entry in tied])
        return f"{lowest.label} has the lowest mean regret, {regret}, but not significantly lower than {names}."
    next_regret = _with_error(mean(_regret(results, second)))
    return f"{lowest.label} has the lowest regret, {regret}; {second.label} is next with {next_regret}."


def _figure1(results: Results) -> list[str]:
    """Whether RCDB beats every tuned baseline, and who is lowest with a warm-up."""
    panels = _panels(results)
    won, lost = [], []
    for panel, entries in panels.items():
        [robust] = [entry for entry in entries if entry.is_reference]
        pairs = [(robust, entry) for entry in entries if entry.tuned]
        less, more = _significant(results, pairs)
        if less == len(pairs):
            won.append(panel)
        elif more:
            lost.append(panel)
    undecided = f"{len(panels) - len(won) - len(lost) or 'none'} are undecided with {_runs(len(results.seeds))}"
    warm = [_rank(results, entries) for entries in _panels(results, view=1).values()]
    return [
        f"RCDB has significantly lower regret than every tuned baseline in {_some(won, len(panels))}, and "
        f"significantly higher regret than at least one in {_some(lost, len(panels))}; {undecided}.",
        "With a warm-up for the baselines, " + _counted(warm, "in", "panels"),
    ]


Conclude = Callable[[Results], list[str]]


def _in_each_panel(conclude: Callable[[Results, list[Entry]], list[str]]) -> Conclude:
    """Conclude panel by panel, from the entries in it."""
    return lambda results: [
        f"{_heading(panel)}: {sentence}"
        for panel, entries in _panels(results).items()
        for sentence in conclude(results, entries)
    ]


def _growth(symbol: str, rate: float, rate_name: str) -> Conclude:
    """Conclude how fast regret grows in x, compared with x^rate, and which agent is lowest at each x."""

    def conclude(results: Results, entries: list[Entry]) -> list[str]:
        lines = _grouped(entries, lambda entry: entry.legend)
        growth = {name: f"{symbol}^{_pace(results, line, rate, rate_name)}" for name, line in lines.items()}
        first = next((entry.legend for entry in entries if entry.is_reference), entries[0].legend)
        found = [f"the regret of {first} grows as {growth.pop(first)}."]
        if growth:
            others = ", ".join(f"{pace} for {name}" for name, pace in growth.items())
            found.append(f"the regret of the others grows as {others}.")
        by_x = [_rank(results, same_x) for same_x in _grouped(entries, lambda entry: entry.x).values()]
        return [*found, _counted(by_x, "at", f"values of {symbol}")]

    return _in_each_panel(conclude)


def _pace(results: Results, line: Sequence[Entry], rate: float, rate_name: str) -> str:
    x = np.array([entry.x for entry in line])
    found = exponent(x, np.stack([_regret(results, entry) for entry in line], axis=1))
    if math.isnan(found.value):
        return "? (undefined: a run has no regret)"
    if math.isnan(found.low):
        words = ""
    elif rate - _CLOSE_EXPONENT <= found.low and found.high <= rate + _CLOSE_EXPONENT:
        words = f" (close to {rate_name})"
    elif found.low > rate or found.high < rate:
        words = f" ({'faster' if found.low > rate else 'slower'} than {rate_name})"
    else:
        words = f" (consistent with {rate_name})"
    return _with_interval(found) + words


def _radius(results: Results, entries: list[Entry]) -> list[str]:
    """What the theorem's radius costs each agent."""
    costs = []
    for agent, same in _grouped(entries, lambda entry: entry.cell.agent).items():
        settings = {entry.setting: entry for entry in same}
        ratio = _with_interval(_ratio(results, settings["theory"], settings["practical"]))
        costs.append(f"{ratio} for {title_of(agent)}")
    factors = " and by ".join(costs)
    return [
        f"the theorem's radius multiplies the practical radius's regret by {factors}.",
        _ranked(results, _rank(results, entries)),
    ]


def _sigmoid(results: Results, entries: list[Entry]) -> list[str]:
    """RCDB's regret over that of RCDB-S as B grows, for each kind of setting."""
    found = []
    for same in _grouped(entries, lambda entry: entry.setting).values():
        by_norm = _grouped(same, lambda entry: entry.x)
        pairs = [
            [next(e for e in pair if e.cell.agent == agent) for agent in ("rcdb", "rcdb-s")]
            for pair in by_norm.values()
        ]
        lower, higher = _significant(results, pairs)
        first, last = (
            f"{_with_interval(_ratio(results, *pair))} at B = {pair[0].x:g}" for pair in (pairs[0], pairs[-1])
        )
        plain, local = (entry.legend for entry in pairs[0])
        found.append(
            f"{local} has significantly lower regret than {plain} at {higher} of {len(pairs)} values of B, "
            f"significantly higher at {lower}. The ratio of their regrets, RCDB over RCDB-S, is {first} and {last}."
        )
    return found


def _unknown_budget(results: Results, entries: list[Entry]) -> list[str]:
    """What a tolerance below or above the number of flips costs, compared with the right one."""
    exact = next(entry for entry in entries if entry.is_reference)
    costs = [f"{_with_interval(_ratio(results, e, exact))} at {_tolerance(e)}" for e in entries if e is not exact]
    best = _rank(results, entries)
    tied = f", not significantly lower than at {_listed([*map(_tolerance, best.tied)])}" if best.tied else ""
    return [
        f"mean regret is lowest at C̄ = {_tolerance(best.lowest)}{tied}.",
        f"as a multiple of the regret at C̄ = C, it is {', '.join(costs)}.",
    ]


def _tolerance(entry: Entry) -> str:
    return "C" if entry.x == 1.0 else f"{entry.x:g}C"


def _estimators(results: Results) -> list[str]:
    """What the cheaper estimators cost in regret and save in time, over all panels and agents."""
    pairs: dict[str, list[list[Entry]]] = {}
    for same in _grouped(results.experiment.entries, lambda entry: (entry.panel, entry.cell.agent)).values():
        settings = {entry.setting: entry for entry in same}
        exact = settings.pop("exact")
        for name, entry in settings.items():
            pairs.setdefault(name, []).append([entry, exact])
    found = []
    for name, compared in pairs.items():
        less, more = _significant(results, compared)
        ratios = [_ratio(results, *pair).value for pair in compared]
        times = [float(np.divide(*(results.of(e)["seconds"].to_numpy().mean() for e in pair))) for pair in compared]
        found.append(
            f"{_capitalized(name)} estimates have {min(ratios):.2f} to {max(ratios):.2f} times the regret of exact "
            f"ones in {len(compared)} comparisons (significantly more in {more}, less in {less}); the median run takes "
            f"{np.median(times):.2f} times as long."
        )
    return found


def _replay_radius(results: Results, entries: list[Entry]) -> list[str]:
    """Which agent is lowest when each has its best radius."""
    agents = _grouped(entries, lambda entry: entry.cell.agent).values()
    best = _rank(results, [min(same, key=lambda entry: _regret(results, entry).mean()) for same in agents])
    names = [f"{title_of(entry.cell.agent)} (radius {entry.x:g})" for entry in (best.lowest, *best.tied)]
    tied = f", but not significantly lower than {_listed(names[1:])}" if best.tied else ""
    regret = _with_error(mean(_regret(results, best.lowest)))
    return [f"at the best radius of each agent, chosen on these same runs, {names[0]} is lowest with {regret}{tied}."]


def _rcdp(published: Mapping[str, float]) -> Conclude:
    """Conclude whether RCDB beats RCDP-UCB, who is lowest, and how the regrets compare with ``published`` ones."""

    def conclude(results: Results, entries: list[Entry]) -> list[str]:
        by_agent = {entry.cell.agent: entry for entry in reversed(entries)}  # of two entries, the first
        robust, rival = by_agent["rcdb"], by_agent["rcdp"]
        gap, ratio = _gap(results, robust, rival, 0.95), _with_interval(_ratio(results, robust, rival))
        if gap.high < 0.0:
            answer = "RCDB beats RCDP-UCB"
        else:
            answer = "RCDP-UCB beats RCDB" if gap.low > 0.0 else "neither of RCDB and RCDP-UCB beats the other"
        found = [f"{answer}; the ratio of their regrets is {ratio}.", _ranked(results, _rank(results, entries))]
        if robust.cell.attack == PUBLISHED_ATTACK:
            halves = [
                f"{entry.legend} {_whole(mean(_regret(results, entry) / 2.0))}"
                + (f", published ≈ {published[agent]:,.0f}" if by_agent[agent] is entry and agent in published else "")
                for entry in entries
                for agent in [entry.cell.agent]
            ]
            found.append(f"halved, as in Oh 2026, the regrets are: {'; '.join(halves)}.")
        return found

    return _in_each_panel(conclude)


def _recommendation(results: Results) -> list[str]:
    """Whether agents recommend better by their votes than by their estimates, and how each does at worst."""
    ways = _grouped(results.experiment.entries, lambda entry: entry.setting)
    shares = {way: np.mean([_best(results, entry) for entry in same], axis=0) for way, same in ways.items()}
    (votes, by_votes), (estimate, by_estimate) = shares.items()
    found = [
        f"The best action is recommended in {by_votes.mean():.0%} of all runs {votes} and in {by_estimate.mean():.0%} "
        f"{estimate}."
    ]
    panels = _panels(results)
    better: list[str] = []
    worse: list[str] = []
    for panel, entries in panels.items():
        pairs = [[_best(results, entry) for entry in same] for same in _grouped(entries, lambda e: e.setting).values()]
        gap = mean(np.mean(pairs[0], axis=0) - np.mean(pairs[1], axis=0), 1.0 - 0.05 / len(panels))
        (better if gap.low > 0.0 else worse if gap.high < 0.0 else []).append(panel)
    found.append(
        f"{_capitalized(votes)} it is recommended significantly more often in {_some(better, len(panels))}, and "
        f"significantly less often in {_some(worse, len(panels))}."
    )
    lowest = {}
    for agent, same in _grouped(ways[votes], lambda entry: entry.cell.agent).items():
        worst = min(same, key=lambda entry: _best(results, entry).mean())
        lowest[agent] = f"{_best(results, worst).mean():.0%} for {title_of(agent)} ({worst.panel})"
    return [*found, f"The lowest share of any panel {votes} is {', '.join(lowest.values())}."]


def _best(results: Results, entry: Entry) -> Vector:
    """Whether each run recommends the best action in the end."""
    return results.of(entry)["recommended_best"].to_numpy()


def _sceptic(results: Results) -> list[str]:
    """How much regret each form of Sceptic has at its best radius, compared with the complete agent at its own."""
    forms = _grouped(results.experiment.entries, lambda entry: entry.setting)
    whole = [entry for entry in forms.pop(WHOLE) if entry.x == OWN_RADIUS]
    ratios = {}
    for form, entries in forms.items():
        at_each = [_mean_ratio(results, same, whole) for same in _grouped(entries, lambda entry: entry.x).values()]
        ratios[form] = min(at_each, key=lambda ratio: ratio.value)
    found = [
        f"Without one of its parts, Sceptic has this many times its regret (geometric mean over "
        f"{len(whole)} panels, best of {len(RADII)} radii): "
        + "; ".join(f"{form} {_with_interval(ratio)}" for form, ratio in ratios.items())
        + "."
    ]
    idle = [form for form, ratio in ratios.items() if not ratio.low > 1.0]
    if idle:
        found.append(f"Not shown to reduce regret here: {_listed([f'“{form}”' for form in idle])}.")
    return found


def _mean_ratio(results: Results, entries: Sequence[Entry], others: Sequence[Entry]) -> Mean:
    """The geometric mean over panels of the ratio of mean regrets; both have one entry per panel, in the same order."""
    runs = np.array([[_regret(results, entry) for entry in same] for same in (entries, others)])
    return jackknife(
        lambda sample: float(np.exp(np.log(sample.mean(axis=-1)[0] / sample.mean(axis=-1)[1]).mean())), runs
    )


_BY_EXPERIMENT: Mapping[str, Conclude] = {
    "figure1": _figure1,
    "figure2": _growth("C", 1.0, "linear"),
    "radius": _in_each_panel(_radius),
    "sigmoid": _in_each_panel(_sigmoid),
    "unknown-budget": _in_each_panel(_unknown_budget),
    "dimension": _growth("d", 1.0, "linear"),
    "horizon": _growth("T", 0.5, "√T"),
    "estimators": _estimators,
    "rcdp": _rcdp(PUBLISHED),
    "post-serving": _rcdp(PUBLISHED_POST),
    "recommendation": _recommendation,
    "sceptic": _sceptic,
    "replay-radius": _in_each_panel(_replay_radius),
}
"""Experiments that ask for more than which agent is lowest in each panel."""


# ---------------------------------------------------------------------- words and numbers


def _panels(results: Results, view: int = 0) -> dict[str, list[Entry]]:
    """The entries drawn in a view, by panel."""
    drawn = [entry for entry in results.experiment.entries if entry.drawn_in is None or view in entry.drawn_in]
    return _grouped(drawn, lambda entry: entry.panel)


def _grouped(items: Iterable[Item], key: Callable[[Item], Key]) -> dict[Key, list[Item]]:
    groups: dict[Key, list[Item]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


def _regret(results: Results, entry: Entry) -> Vector:
    return results.of(entry)["regret"].to_numpy()


def _gap(results: Results, entry: Entry, reference: Entry, confidence: float) -> Mean:
    """How much more regret ``entry`` has, seed by seed, with an interval that allows for runs that lock in."""
    own, other = (results.of(each)["locked_in"].to_numpy() for each in (entry, reference))
    return mixed_mean(_regret(results, entry) - _regret(results, reference), own + 2 * other, confidence)


def _significant(results: Results, pairs: Sequence[Sequence[Entry]]) -> tuple[int, int]:
    """In how many pairs the first entry has significantly less regret than the second, and in how many more."""
    gaps = [_gap(results, first, second, 1.0 - 0.05 / len(pairs)) for first, second in pairs]
    return sum(gap.high < 0.0 for gap in gaps), sum(gap.low > 0.0 for gap in gaps)


def _ratio(results: Results, entry: Entry, reference: Entry) -> Mean:
    """The mean regret of ``entry`` over that of ``reference``."""
    sample = np.stack([_regret(results, entry), _regret(results, reference)])
    return jackknife(lambda runs: float(runs[0].mean() / runs[1].mean()), sample)


def _with_error(value: Mean, digits: int = 0) -> str:
    error = "" if math.isnan(value.error) else f" ± {value.error:,.{digits}f}"
    return f"{value.value:,.{digits}f}{error}".replace("-", "−")


def _with_interval(value: Mean) -> str:
    interval = "" if math.isnan(value.low) else f" [{value.low:.2f}, {value.high:.2f}]"
    return f"{value.value:.2f}{interval}".replace("-", "−")


def _whole(value: Mean) -> str:
    """A mean and its interval, without decimals."""
    interval = "" if math.isnan(value.low) else f" [{value.low:,.0f}, {value.high:,.0f}]"
    return f"{value.value:,.0f}{interval}".replace("-", "−")


def _heading(panel: str) -> str:
    """The panel's name as a heading; a user's ``module:Class`` stays as it is.

    >>> _heading("none"), _heading("greedy attack"), _heading("mine:Sneaky attack")
    ('No attack', 'Greedy attack', 'mine:Sneaky attack')
    """
    return panel if ":" in panel else _capitalized("no attack" if panel == "none" else panel)


def _capitalized(text: str) -> str:
    """The text with its first letter in upper case, and the rest as it is."""
    return text[:1].upper() + text[1:]


def _listed(names: Sequence[str]) -> str:
    """Names in a sentence, the last of many only counted."""
    if len(names) > _MAX_NAMES:
        names = [*names[: _MAX_NAMES - 1], f"{len(names) - _MAX_NAMES + 1} others"]
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _some(panels: Sequence[str], count: int) -> str:
    """How many of the panels, and which."""
    return f"{len(panels) or 'none'} of {count} panels" + (f" ({'; '.join(panels)})" if panels else "")


def _runs(count: int) -> str:
    return "1 run" if count == 1 else f"{count} runs"


def _basis(seeds: Sequence[int]) -> str:
    """How many runs the conclusions rest on."""
    if len(seeds) == 1:
        return f"1 run each (seed {seeds[0]}): too few for errors, so no difference is significant."
    return (
        f"{len(seeds)} runs each (seeds {min(seeds)}–{max(seeds)}); ± is one standard error, brackets are 95% "
        "intervals, and differences are paired by seed and corrected for multiple comparisons."
    )
