"""What an experiment is: cells to run, and how their results are shown."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from fairduel.agents import loaded_class
from fairduel.experiments.tuning import Tuned
from fairduel.simulation.cell import Cell


@dataclass(frozen=True)
class Entry:
    """One cell of an experiment, and where it stands in the figures."""

    cell: Cell
    setting: str
    """What the agent was set to, in words: "practical", "tuned"."""
    panel: str
    """The panel of the figure that it belongs to."""
    tuned_to: Mapping[str, Any] = field(default_factory=dict)
    """The values that the setting stands for, where they differ from panel to panel; legends leave them out."""
    tuning: Tuned | None = None
    """How the setting was chosen on tuning seeds, where it was."""
    x: float | None = None
    """Its place on the x axis of a :class:`Lines` view."""
    drawn_in: tuple[int, ...] | None = None
    """In which of the experiment's views it is drawn, by position; ``None``: in all. The tables have every entry."""
    is_reference: bool = False
    """Whether the others of its panel (and x) are compared with it, seed by seed."""

    @property
    def tuned(self) -> bool:
        """Whether the setting was chosen on tuning seeds."""
        return self.tuning is not None

    @property
    def full_setting(self) -> str:
        """The setting with its values: "tuned: radius 8"."""
        return f"{self.setting}: {settings_text(self.tuned_to)}" if self.tuned_to else self.setting

    @property
    def label(self) -> str:
        """Its name in tables."""
        return f"{title_of(self.cell.agent)} ({self.full_setting})"

    @property
    def legend(self) -> str:
        """The name of its line, the same in every panel."""
        return f"{title_of(self.cell.agent)} ({self.setting})"


@dataclass(frozen=True)
class Curves:
    """Cumulative regret over the rounds, one panel per attack."""

    caption: str


@dataclass(frozen=True)
class Lines:
    """Final regret against a number, one panel per attack."""

    caption: str
    x_label: str
    scale: Literal["linear", "log"] = "linear"
    fit: Literal["line", "power"] | None = None
    """What is fitted to each line, with its error: a straight line (and R²), or an exponent."""


@dataclass(frozen=True)
class Experiment:
    """A declared grid of runs, and how it is shown."""

    name: str
    title: str
    question: str
    entries: list[Entry]
    views: list[Curves | Lines]
    notes: list[str] = field(default_factory=list)
    """What a reader must know to judge the numbers."""


Declaration = Callable[[], Experiment]


def comparison(cells: Sequence[Cell]) -> Experiment:
    """Declare a comparison of agents, with one panel per attack and the first agent as the reference in each."""
    panels = [", ".join(filter(None, [cell.attack, settings_text(cell.attack_settings)])) for cell in cells]
    attacks = list(dict.fromkeys(panels))
    which = f"{attacks[0]} attack" if len(attacks) == 1 else f"{len(attacks)} attacks"
    return Experiment(
        name="regret",
        title=f"{which}, C = {cells[0].budget}, {cells[0].horizon} rounds",
        question="What does each agent cost here?",
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


def title_of(agent: str) -> str:
    """The title of an agent's class; of a class that is not loaded or has none, the name that it is run by.

    >>> title_of("fgts"), title_of("mine:Agent")
    ('FGTS.CDB', 'mine:Agent')
    """
    kind = loaded_class(agent)
    return agent if kind is None else kind.title


def settings_text(settings: Mapping[str, Any]) -> str:
    """Settings in words.

    >>> settings_text({"radius": 8.0, "warmup": 160})
    'radius 8, warmup 160'
    """
    return ", ".join(
        f"{name.replace('_', ' ')} {value:g}" if isinstance(value, float) else f"{name.replace('_', ' ')} {value}"
        for name, value in settings.items()
    )
