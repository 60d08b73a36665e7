"""An experiment: cells to run, how to show their results, and what its runs show."""

import functools
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fairduel.duel import Matrix, Vector
from fairduel.experiments.sentences import settings_text, title_of
from fairduel.experiments.tuning import Chosen, refuse_tuning_seeds
from fairduel.simulation import Storage, run_cells
from fairduel.simulation.cell import Cell
from fairduel.stats import exact_share, mean, paired_difference


@dataclass(frozen=True)
class Entry:
    """One cell of an experiment and its place in the figures.

    Args:
        setting: The agent's setting in words, such as "practical" or "tuned".
        panel: The panel of the figure that it belongs to.
        tuned_to: The values behind ``setting`` where they differ between panels; legends omit them.
        tuning: The tuning that chose the setting, if any.
        x: Its position on the x axis of a :class:`Lines` view.
        drawn_in: The positions of the views that draw it; ``None`` for all. Tables list every entry.
        is_reference: Whether the other entries of its panel (and x) are compared with it, seed by seed.
    """

    cell: Cell
    setting: str
    panel: str
    tuned_to: Mapping[str, Any] = field(default_factory=dict)
    tuning: Chosen | None = None
    x: float | None = None
    drawn_in: tuple[int, ...] | None = None
    is_reference: bool = False

    @property
    def tuned(self) -> bool:
        """Whether the setting was chosen on tuning seeds."""
        return self.tuning is not None

    @property
    def full_setting(self) -> str:
        """The setting with its values, such as "tuned: radius 8"."""
        return f"{self.setting}: {settings_text(self.tuned_to)}" if self.tuned_to else self.setting

    @property
    def label(self) -> str:
        """Its name in tables."""
        return f"{title_of(self.cell.agent)} ({self.full_setting})"

    @property
    def legend(self) -> str:
        """Its name in legends, the same in every panel."""
        return f"{title_of(self.cell.agent)} ({self.setting})"


@dataclass(frozen=True)
class Curves:
    """Cumulative regret over the rounds, one panel per attack."""

    caption: str


@dataclass(frozen=True)
class Lines:
    """Final regret against a number, one panel per attack.

    Args:
        fit: What to fit to each line: a straight line (with R²), a power law, or nothing.
    """

    caption: str
    x_label: str
    scale: Literal["linear", "log"] = "linear"
    fit: Literal["line", "power"] | None = None


@dataclass(frozen=True)
class Shares:
    """Share of runs that recommend the best action in the end, one panel per attack."""

    caption: str


@dataclass(frozen=True)
class TradeOff:
    """Final regret in one panel against that in another, one line per agent through its settings.

    Args:
        x_panel: The panel whose regret is on the x axis; every other panel is an axis of its own.
    """

    caption: str
    x_panel: str


Conclude = Callable[["Results"], list[str]]
"""States what the runs show: one or two sentences per item, the answer first."""


@dataclass(frozen=True)
class Experiment:
    """A declared grid of runs, what to conclude from it, and its views.

    Args:
        name: Its name on the command line and in file names.
        entries: The runs.
        conclude: States what the runs show.
        views: The figures.
        notes: What readers must know to judge the numbers.
        names_lowest: Whether the conclusions name the lowest agent of each panel; otherwise, a table does.
        runs: How many runs to make unless the user says.
        is_slow: Whether ``fairduel reproduce all`` leaves it out.
    """

    name: str
    title: str
    question: str
    entries: list[Entry]
    conclude: Conclude
    views: list[Curves | Lines | Shares | TradeOff]
    notes: list[str] = field(default_factory=list)
    names_lowest: bool = True
    runs: int = 10
    is_slow: bool = False

    @property
    def x_label(self) -> str:
        """What the entries' x is; empty without such a view."""
        return next((view.x_label for view in self.views if isinstance(view, Lines)), "")

    @property
    def is_about_recommendations(self) -> bool:
        """Whether its tables show final recommendations in place of regret."""
        return any(isinstance(view, Shares) for view in self.views)


Declaration = Callable[[], Experiment]
"""Declares an experiment; the first line of its docstring describes it in ``fairduel reproduce --help``."""


@dataclass(frozen=True)
class Results:
    """An experiment with the runs of all its entries.

    The column ``entry`` of both frames is the position in ``experiment.entries``.
    """

    experiment: Experiment
    seeds: list[int]
    runs: pl.DataFrame
    """One row per run, by entry and seed: final values, settings, diagnostics."""
    traces: pl.DataFrame
    """One row per run and round, by entry, seed and round: cumulative regrets, duel, flip, weight, width, slope."""

    def of(self, entry: Entry) -> pl.DataFrame:
        """Return the runs of one entry, ordered by seed."""
        return self._by_entry[self._places[id(entry)]]

    def curves(self, entry: Entry) -> Matrix:
        """Return the cumulative regret of each run of one entry, shape (seeds, rounds)."""
        place = pl.col("entry") == self._places[id(entry)]
        regret = self.traces.lazy().filter(place).select("regret").collect()["regret"]
        return regret.to_numpy().reshape(len(self.seeds), -1)

    def regret(self, entry: Entry) -> Vector:
        """Return the final regret of each run of one entry, shape (seeds,)."""
        return self.of(entry)["regret"].to_numpy()

    def locked_in(self, entry: Entry) -> NDArray[np.bool_]:
        """Return whether each run of one entry locked in, shape (seeds,)."""
        return self.of(entry)["locked_in"].to_numpy()

    def recommended_best(self, entry: Entry) -> Vector:
        """Return whether each run of one entry recommends the best action in the end, shape (seeds,)."""
        return self.of(entry)["recommended_best"].to_numpy()

    @functools.cached_property
    def _by_entry(self) -> dict[Any, pl.DataFrame]:
        frames = self.runs.partition_by("entry", as_dict=True)
        return {place: frame for (place, *_), frame in frames.items()}

    @functools.cached_property
    def _places(self) -> dict[int, int]:
        return {id(entry): place for place, entry in enumerate(self.experiment.entries)}

    @functools.cached_property
    def conclusions(self) -> list[str]:
        """What the experiment found: the answer first, the number of runs and their seeds last."""
        return [*self.experiment.conclude(self), _basis(self.seeds)]

    @functools.cached_property
    def lines(self) -> dict[tuple[str, str], list[Entry]]:
        """The entries of each line, by panel and label, with ascending x."""
        entries, lines = self.experiment.entries, dict[tuple[str, str], list[Entry]]()
        several = len({entry.label for entry in entries}) > 1
        one_agent = len({entry.cell.agent for entry in entries}) == 1
        for entry in entries:
            label = entry.cell.agent if several and one_agent else entry.label
            lines.setdefault((entry.panel, label), []).append(entry)
        return {key: sorted(same, key=lambda entry: entry.x or 0.0) for key, same in lines.items()}

    @functools.cached_property
    def summary(self) -> list[dict[str, Any]]:
        """One row per entry: regret, difference from the reference, and diagnostics."""
        return [self._row(entry) for entry in self.experiment.entries]

    def _row(self, entry: Entry) -> dict[str, Any]:
        runs, reference = self.of(entry), self._reference(entry)
        difference = None
        if reference is not None and reference is not entry:
            difference = paired_difference(self.regret(entry), self.regret(reference))
        best = self.recommended_best(entry)  # a share, unless actions change
        is_share = np.isin(best, (0.0, 1.0)).all()
        means = {
            name: float(runs[column].cast(pl.Float64).mean())  # type: ignore[arg-type]
            for name, column in _MEANS.items()
        }
        return {
            "panel": entry.panel,
            "x": entry.x,
            "label": entry.label,
            "tuned": entry.tuned,
            "runs": len(runs),
            "regret": mean(self.regret(entry)),
            "weak_regret": mean(runs["weak_regret"].to_numpy()),
            "is_reference": entry.is_reference,
            "difference": difference,
            "recommended_best": exact_share(int(best.sum()), len(best)) if is_share else mean(best),
            "recommendation_regret": mean(runs["recommendation_regret"].to_numpy()),
            **means,
            "settings": json.loads(runs["agent_settings"][0]),
        }

    def _reference(self, entry: Entry) -> Entry | None:
        candidates = [e for e in self.experiment.entries if e.is_reference and e.panel == entry.panel]
        same_x = [e for e in candidates if e.x == entry.x]
        if same_x:
            return same_x[0]
        return candidates[0] if len(candidates) == 1 else None


_MEANS = {
    "locked_in": "locked_in",
    "self_duels": "self_duel_share",
    "norm_exceeded": "norm_exceeded_share",
    "mean_slope": "mean_slope",
    "flips": "flips",
    "seconds": "seconds",
}
"""Columns of a summary that are plain means, and those of the runs that they come from."""


def _basis(seeds: Sequence[int]) -> str:
    """How many runs the conclusions rest on."""
    if len(seeds) == 1:
        return f"1 run each (seed {seeds[0]}): too few for errors, so no difference is significant."
    return (
        f"{len(seeds)} runs each (seeds {min(seeds)}–{max(seeds)}); ± is one standard error, brackets are 95% "
        "intervals, and differences are paired by seed and corrected for multiple comparisons."
    )


def run_experiment(
    experiment: Experiment,
    store: Storage,
    seeds: Sequence[int],
    *,
    jobs: int = 1,
    progress: Callable[[int], None] = lambda _: None,
) -> Results:
    """Run what is missing of an experiment, on seeds below the tuning seeds, and collect all of its results."""
    refuse_tuning_seeds(seeds)
    run_cells([entry.cell for entry in experiment.entries], seeds, store, jobs=jobs, progress=progress)
    runs, traces = [], []
    for index, entry in enumerate(experiment.entries):
        names = {
            "experiment": experiment.name,
            "entry": index,
            "agent": entry.cell.agent,
            "setting": entry.full_setting,
            "tuned": entry.tuned,
            "panel": entry.panel,
            "attack": entry.cell.attack,
            "budget": entry.cell.budget,
            "delay": entry.cell.delay,
        }
        literals = [pl.lit(value).alias(name) for name, value in names.items()]
        runs.append(store.records(entry.cell, seeds).with_columns(*literals, pl.lit(entry.x, pl.Float64).alias("x")))
        traces.append(store.traces(entry.cell, seeds).with_columns(*literals))
    first = list(names)
    return Results(
        experiment,
        list(seeds),
        pl.concat(runs).select(*first, pl.exclude(first)),
        pl.concat(traces).select(*first, "seed", "round", pl.exclude([*first, "seed", "round"])),
    )
