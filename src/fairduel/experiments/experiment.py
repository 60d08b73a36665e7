"""An experiment: cells to run, and how to show their results."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from fairduel.agents import loaded_class
from fairduel.experiments.tuning import Tuned
from fairduel.simulation.cell import Cell


@dataclass(frozen=True)
class Entry:
    """One cell of an experiment and its place in the figures.

    Args:
        cell: The runs.
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
    tuning: Tuned | None = None
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
    """Cumulative regret over the rounds, one panel per attack.

    Args:
        caption: The caption of the figure.
    """

    caption: str


@dataclass(frozen=True)
class Lines:
    """Final regret against a number, one panel per attack.

    Args:
        caption: The caption of the figure.
        x_label: The label of the x axis.
        scale: The scale of both axes.
        fit: What to fit to each line: a straight line (with R²), a power law, or nothing.
    """

    caption: str
    x_label: str
    scale: Literal["linear", "log"] = "linear"
    fit: Literal["line", "power"] | None = None


@dataclass(frozen=True)
class Shares:
    """Share of runs that recommend the best action in the end, one panel per attack.

    Args:
        caption: The caption of the figure.
    """

    caption: str


@dataclass(frozen=True)
class Experiment:
    """A declared grid of runs and its views.

    Args:
        name: Its name on the command line and in file names.
        title: Its title.
        question: The question that it answers.
        entries: The runs.
        views: The figures.
        notes: What readers must know to judge the numbers.
    """

    name: str
    title: str
    question: str
    entries: list[Entry]
    views: list[Curves | Lines | Shares]
    notes: list[str] = field(default_factory=list)

    @property
    def is_about_recommendations(self) -> bool:
        """Whether its tables show final recommendations in place of regret."""
        return any(isinstance(view, Shares) for view in self.views)


Declaration = Callable[[], Experiment]


def comparison(cells: Sequence[Cell]) -> Experiment:
    """Declare a comparison of agents, with one panel per attack and the first agent as the reference in each.

    All cells have the same delay.
    """
    panels = [_attack_text(cell) for cell in cells]
    attacks = panels[0] if len(set(panels)) == 1 else f"{len(set(panels))} attacks"
    return Experiment(
        name="regret",
        title=f"{attacks}, C = {cells[0].budget}, {cells[0].horizon} rounds{_delay_text(cells[0])}",
        question="How much regret does each agent have?",
        entries=[
            Entry(
                cell,
                settings_text(cell.agent_settings) or "default",
                panel,
                is_reference=panels.index(panel) == place,
            )
            for place, (cell, panel) in enumerate(zip(cells, panels, strict=True))
        ],
        views=[Curves("Cumulative regret; the band is ± one standard error over the runs.")],
    )


def _attack_text(cell: Cell) -> str:
    settings = settings_text(cell.attack_settings)
    name = "no attack" if cell.attack == "none" else f"{cell.attack} attack"
    return f"{name} ({settings})" if settings else name


def _delay_text(cell: Cell) -> str:
    if not cell.is_delayed:
        return ""
    settings = settings_text(cell.delay_settings)
    return f", {cell.delay} delay ({settings})" if settings else f", {cell.delay} delay"


def title_of(agent: str) -> str:
    """Return an agent's display name; if its class has none or is not loaded, the name on the command line.

    >>> title_of("fgts"), title_of("mine:Agent")
    ('FGTS.CDB', 'mine:Agent')
    """
    kind = loaded_class(agent)
    return agent if kind is None else kind.title


def settings_text(settings: Mapping[str, Any]) -> str:
    """Return settings in words.

    >>> settings_text({"radius": 8.0, "warmup": 160})
    'radius 8, warmup 160'
    """
    return ", ".join(
        f"{name.replace('_', ' ')} {value:g}" if isinstance(value, float) else f"{name.replace('_', ' ')} {value}"
        for name, value in settings.items()
    )
