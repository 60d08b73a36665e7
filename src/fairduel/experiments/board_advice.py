"""The leaderboard's conclusions in words: which agent to use, and where another one is better."""

import math
from collections.abc import Callable, Mapping, Sequence

from fairduel.experiments.competition import RANDOM, Board, BoardRow, Scenario
from fairduel.experiments.sentences import listed_few, with_interval
from fairduel.stats import Mean, corrected
from fairduel.words import counted_noun


def board_conclusions(board: Board) -> list[str]:
    """State which agent to use, and when to prefer another, in one or two sentences per item."""
    told = [standing for standing in board.standings if standing.contender.is_told]
    uninformed = [standing for standing in board.standings if not standing.contender.is_told] or told
    first, name = uninformed[0], uninformed[0].contender.title
    found = [
        f"{'If C is unknown, use' if told else 'Use'} {name}: its worst ratio, "
        f"{with_interval(first.overall.worst)} ({first.overall.where}), is the lowest of {len(uninformed)} agents"
        f"{_lead(board, first, uninformed)}; its geometric mean is {with_interval(first.overall.geometric_mean)}."
    ]
    if "held-out" in first.halves:
        found.append(_on_held_out(first, uninformed))
    expected = min(uninformed, key=lambda standing: standing.overall.geometric_mean.value)
    if expected is not first:
        found.append(_on_average(board, expected, first))
    if told and told is not uninformed:
        found.append(_if_told(board, told, first))
    unplayed = [title for title in board.best if title not in first.ratios]
    if unplayed:
        able = next((s for s in uninformed if all(title in s.ratios for title in unplayed)), None)
        instead = f" Use {able.contender.title} there." if able else ""
        found.append(f"{name} cannot play these scenarios: {listed_few(unplayed)}.{instead}")
    found += [*_situations(board, first, uninformed), _losses(board, first, uninformed), *_against_random(board, first)]
    runs = len(next(iter(board.best.values())).regret)
    return [
        *found,
        f"{counted_noun(runs, 'run')} per agent and scenario. Brackets are 95% intervals; comparisons are paired by "
        "seed, and those called clear are corrected for the number of agents or scenarios.",
    ]


def _lead(board: Board, first: BoardRow, others: Sequence[BoardRow]) -> str:
    """Whether the worst ratio of ``first`` is clearly lower than all others'."""
    rivals = [standing for standing in others if standing is not first]
    close = [s.contender.title for s in rivals if not board.compare_worst(first, s, corrected(rivals)).high < 0.0]
    if not rivals:
        return ""
    return f", though not clearly lower than that of {listed_few(close)}" if close else ", clearly"


def _on_held_out(first: BoardRow, others: Sequence[BoardRow]) -> str:
    """How ``first`` does where no constants were chosen."""
    own = first.halves["held-out"]
    played = [standing for standing in others if "held-out" in standing.halves]
    lowest = min(played, key=lambda standing: standing.halves["held-out"].worst.value)
    lead = "also the lowest"
    if lowest is not first:
        lead = f"that of {lowest.contender.title} is lower, {with_interval(lowest.halves['held-out'].worst)}"
    return (
        f"On held-out scenarios alone its worst ratio is {with_interval(own.worst)} ({own.where}), {lead}, and its "
        f"geometric mean {with_interval(own.geometric_mean)}."
    )


def _on_average(board: Board, expected: BoardRow, first: BoardRow) -> str:
    shared = [title for title in expected.regret if title in first.regret]
    gap, risk = board.compare(expected, first, shared), expected.overall
    return (
        f"On average {expected.contender.title} does {'' if gap.high < 0.0 else 'not clearly '}better, with "
        f"{_times(gap)} times its regret, but risks a ratio of {with_interval(risk.worst)} ({risk.where})."
    )


def _if_told(board: Board, told: Sequence[BoardRow], first: BoardRow) -> str:
    """What knowing C is worth."""
    best = told[0]
    gap = board.compare_worst(best, first)
    clear = "clearly " if gap.high < 0.0 or gap.low > 0.0 else "not clearly "
    return (
        f"If C is known, {best.contender.title} has the lowest worst ratio, {with_interval(best.overall.worst)} "
        f"({best.overall.where}), {clear}{'lower' if gap.value < 0.0 else 'higher'} than that of "
        f"{first.contender.title}; its geometric mean is {with_interval(best.overall.geometric_mean)}."
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
    "the link is not the one agents assume": lambda scenario: "link" in scenario.world_settings,
}


def _situations(board: Board, first: BoardRow, others: Sequence[BoardRow]) -> list[str]:
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
        gap = board.compare(best, first, titles, corrected(rivals))
        if gap.high < 0.0:
            count = "1 scenario" if len(titles) == 1 else f"{len(titles)} scenarios"
            found.append(f"If {words}, {best.contender.title} is better: {_times(gap)} times its regret ({count}).")
        else:
            none_better.append(words)
    if none_better:
        found.append(f"No agent is clearly better than {first.contender.title} if {'; if '.join(none_better)}.")
    return found


def _losses(board: Board, first: BoardRow, others: Sequence[BoardRow]) -> str:
    """In how many scenarios another agent is clearly better than ``first``, and where most."""
    lost = []
    for title in first.regret:
        rivals = [standing for standing in others if standing is not first and title in standing.regret]
        if rivals:
            best = min(rivals, key=lambda standing: float(standing.regret[title].mean()))
            gap = board.compare(best, first, [title], corrected(rivals))
            lost += [(gap, title, best.contender.title)] if gap.high < 0.0 else []
    name, count = first.contender.title, len(first.regret)
    if not lost:
        return f"No agent is clearly better than {name} in any of {count} scenarios."
    gap, where, agent = min(lost, key=lambda each: each[0].value)
    return (
        f"{name} is clearly beaten in {len(lost)} of {count} scenarios, most in {where}, where {agent} has "
        f"{_times(gap)} times its regret."
    )


def _against_random(board: Board, first: BoardRow) -> list[str]:
    """Which agents are somewhere worse than random pairs."""
    blind = next((standing for standing in board.standings if standing.contender == RANDOM), None)
    if blind is None:
        return []
    worse = {}
    for standing in board.standings:
        shared = [title for title in standing.regret if standing is not blind]
        gaps = [board.compare(standing, blind, [title], corrected(shared)) for title in shared]
        worse[standing.contender.title] = sum(gap.low > 0.0 for gap in gaps)
    some = [f"{title} ({count})" for title, count in worse.items() if count]
    never = "" if worse[first.contender.title] else f" {first.contender.title} never is."
    listed = ", ".join(some) if some else "none"
    return [f"Agents clearly worse than random pairs somewhere (in how many scenarios): {listed}.{never}"]


def _times(log_ratio: Mean) -> str:
    """A ratio and its interval, from those of its logarithm."""
    value, _, low, high = log_ratio
    return with_interval(Mean(math.exp(value), math.nan, math.exp(low), math.exp(high)))
