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
from fairduel.experiments.experiment import Entry, settings_text, title_of
from fairduel.experiments.inference import Mean, exponent, jackknife, mean, mixed_mean
from fairduel.experiments.rcdp import PUBLISHED, PUBLISHED_ATTACK, PUBLISHED_POST
from fairduel.experiments.results import Results
from fairduel.experiments.sceptic import OWN_RADIUS, RADII, WHOLE
from fairduel.experiments.sentences import capitalized, count_runs, listed, whole, with_error, with_interval
from fairduel.experiments.table1 import Measured
from fairduel.experiments.tuning import Tuned

Key = TypeVar("Key")
Item = TypeVar("Item")
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
        rows.append([panel, lowest.label, names, with_error(mean(_regret(results, lowest)))])
    return rows


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
        f"{len(rows)} algorithms" + (f" (not shown for {listed(linear)})." if linear else ".")
    ]
    superlinear = [row.algorithm.title for row in rows if row.in_budget.low > 1.0]
    sublinear = sum(row.in_budget.high < 1.0 for row in rows)
    noise = sum(math.isnan(row.in_budget.value) for row in rows)
    found.append(
        f"The regret added by an attack grows significantly faster than linearly in C for {len(superlinear)} algorithms"
        + (f" ({listed(superlinear)})" if superlinear else "")
        + f" and significantly slower for {sublinear}; for {noise} it is within the noise, for the rest undecided."
    )
    for (model, attack), same in _grouped(rows, lambda r: (r.algorithm.guarantee.model, r.algorithm.attack)).items():
        best = min(same, key=lambda row: row.reference.value)
        if len(same) > 1:
            found.append(
                f"{capitalized(model)}, {attack} attack: of {len(same)} algorithms, {best.algorithm.title} has the "
                f"lowest mean regret, {with_error(best.reference)}."
            )
    uniform = [row.algorithm.title for row in rows if row.published_is_uniform]
    if uniform:
        found.append(f"At this horizon, the published constants are no better than uniform play for {listed(uniform)}.")
    return [*found, f"{count_runs(len(rows[0].by_horizon))} per cell; ± is one standard error."]


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
        text += f" Within two standard errors of it: {listed(close)}."
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
    regret = with_error(mean(_regret(results, lowest)))
    if second is None:
        return f"the regret of {lowest.label} is {regret}."
    if tied:
        names = listed([entry.label for entry in tied])
        return f"{lowest.label} has the lowest mean regret, {regret}, but not significantly lower than {names}."
    next_regret = with_error(mean(_regret(results, second)))
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
    undecided = f"{len(panels) - len(won) - len(lost) or 'none'} are undecided with {count_runs(len(results.seeds))}"
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
    return with_interval(found) + words


def _radius(results: Results, entries: list[Entry]) -> list[str]:
    """What the theorem's radius costs each agent."""
    costs = []
    for agent, same in _grouped(entries, lambda entry: entry.cell.agent).items():
        settings = {entry.setting: entry for entry in same}
        ratio = with_interval(_ratio(results, settings["theory"], settings["practical"]))
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
            f"{with_interval(_ratio(results, *pair))} at B = {pair[0].x:g}" for pair in (pairs[0], pairs[-1])
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
    costs = [f"{with_interval(_ratio(results, e, exact))} at {_tolerance(e)}" for e in entries if e is not exact]
    best = _rank(results, entries)
    tied = f", not significantly lower than at {listed([*map(_tolerance, best.tied)])}" if best.tied else ""
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
            f"{capitalized(name)} estimates have {min(ratios):.2f} to {max(ratios):.2f} times the regret of exact "
            f"ones in {len(compared)} comparisons (significantly more in {more}, less in {less}); the median run takes "
            f"{np.median(times):.2f} times as long."
        )
    return found


def _replay_radius(results: Results, entries: list[Entry]) -> list[str]:
    """Which agent is lowest when each has its best radius."""
    agents = _grouped(entries, lambda entry: entry.cell.agent).values()
    best = _rank(results, [min(same, key=lambda entry: _regret(results, entry).mean()) for same in agents])
    names = [f"{title_of(entry.cell.agent)} (radius {entry.x:g})" for entry in (best.lowest, *best.tied)]
    tied = f", but not significantly lower than {listed(names[1:])}" if best.tied else ""
    regret = with_error(mean(_regret(results, best.lowest)))
    return [f"at the best radius of each agent, chosen on these same runs, {names[0]} is lowest with {regret}{tied}."]


def _rcdp(published: Mapping[str, float]) -> Conclude:
    """Conclude whether RCDB beats RCDP-UCB, who is lowest, and how the regrets compare with ``published`` ones."""

    def conclude(results: Results, entries: list[Entry]) -> list[str]:
        by_agent = {entry.cell.agent: entry for entry in reversed(entries)}  # of two entries, the first
        robust, rival = by_agent["rcdb"], by_agent["rcdp"]
        gap, ratio = _gap(results, robust, rival, 0.95), with_interval(_ratio(results, robust, rival))
        if gap.high < 0.0:
            answer = "RCDB beats RCDP-UCB"
        else:
            answer = "RCDP-UCB beats RCDB" if gap.low > 0.0 else "neither of RCDB and RCDP-UCB beats the other"
        found = [f"{answer}; the ratio of their regrets is {ratio}.", _ranked(results, _rank(results, entries))]
        if robust.cell.attack == PUBLISHED_ATTACK:
            halves = [
                f"{entry.legend} {whole(mean(_regret(results, entry) / 2.0))}"
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
        f"{capitalized(votes)} it is recommended significantly more often in {_some(better, len(panels))}, and "
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
        + "; ".join(f"{form} {with_interval(ratio)}" for form, ratio in ratios.items())
        + "."
    ]
    idle = [form for form, ratio in ratios.items() if not ratio.low > 1.0]
    if idle:
        found.append(f"Not shown to reduce regret here: {listed([f'“{form}”' for form in idle])}.")
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


def _heading(panel: str) -> str:
    """The panel's name as a heading; a user's ``module:Class`` stays as it is.

    >>> _heading("none"), _heading("greedy attack"), _heading("mine:Sneaky attack")
    ('No attack', 'Greedy attack', 'mine:Sneaky attack')
    """
    return panel if ":" in panel else capitalized("no attack" if panel == "none" else panel)


def _some(panels: Sequence[str], count: int) -> str:
    """How many of the panels, and which."""
    return f"{len(panels) or 'none'} of {count} panels" + (f" ({'; '.join(panels)})" if panels else "")


def _basis(seeds: Sequence[int]) -> str:
    """How many runs the conclusions rest on."""
    if len(seeds) == 1:
        return f"1 run each (seed {seeds[0]}): too few for errors, so no difference is significant."
    return (
        f"{len(seeds)} runs each (seeds {min(seeds)}–{max(seeds)}); ± is one standard error, brackets are 95% "
        "intervals, and differences are paired by seed and corrected for multiple comparisons."
    )
