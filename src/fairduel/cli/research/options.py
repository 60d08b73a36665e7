"""Options that several commands share, and the settings that follow a name."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from fairduel.adversaries import ATTACKS
from fairduel.agents import AGENTS
from fairduel.cli.output import PANEL
from fairduel.delays import DELAYS
from fairduel.errors import BadInputError
from fairduel.experiments.tuning import refuse_tuning_seeds
from fairduel.simulation import Cell
from fairduel.worlds import WORLDS

CORES = os.cpu_count() or 1
SETTINGS = "Settings follow the name: "


def _known(names: Sequence[str]) -> str:
    return f"{', '.join(names)}, or your own as module:Class."


AGENT_NAMES = _known([*AGENTS, *AGENTS.optional])
Runs = Annotated[int, typer.Option(min=1, metavar="N", help="Number of runs, one seed each.")]
Seed = Annotated[int, typer.Option(min=0, metavar="N", help="First seed; run i uses seed + i.")]
Jobs = Annotated[int, typer.Option(min=1, metavar="N", help="Number of parallel jobs.", show_default="all cores")]
OUT_OPTION: dict[str, Any] = {
    "metavar": "DIR",
    "rich_help_panel": PANEL,
    "help": "Output folder; finished runs in it are reused.",
}
Out = Annotated[Path, typer.Option(**OUT_OPTION)]
Budget = Annotated[int, typer.Option(min=0, metavar="C", help="Flip budget of the attack, told to the agents.")]
Horizon = Annotated[int, typer.Option(min=1, metavar="T", help="Number of rounds.")]
World = Annotated[
    str,
    typer.Option(
        metavar="WORLD",
        autocompletion=lambda: list(WORLDS),
        help=f"{_known(list(WORLDS))} {SETTINGS}hypercube,dimension=3.",
    ),
]
Delay = Annotated[
    str,
    typer.Option(
        metavar="DELAY",
        autocompletion=lambda: list(DELAYS),
        help=f"How late answers arrive: {_known(list(DELAYS))} {SETTINGS}fixed,rounds=50.",
    ),
]
ATTACK_OPTION: dict[str, Any] = {
    "metavar": "ATTACK",
    "autocompletion": lambda: list(ATTACKS),
    "help": f"{_known(list(ATTACKS))} {SETTINGS}random,probability=0.1.",
}


class Named(NamedTuple):
    """An agent, attack, world or delay, with its settings."""

    name: str
    settings: dict[str, Any]

    @classmethod
    def parse(cls, text: str) -> "Named":
        """Read a name that settings may follow; a part without "=" belongs to the value before it.

        >>> Named.parse("rcdb,radius=8,self_duels=false")
        Named(name='rcdb', settings={'radius': 8, 'self_duels': False})
        >>> Named.parse("replay,path=votes,contexts=3,7").settings
        {'path': 'votes', 'contexts': '3,7'}
        """
        name, *parts = text.split(",")
        texts: dict[str, str] = {}
        last = ""
        for part in parts:
            setting, equals, value = part.partition("=")
            if equals and setting.isidentifier():
                last, texts[setting] = setting, value
            elif last and not equals:
                texts[last] += f",{part}"
            else:
                raise BadInputError(f"write settings as NAME,SETTING=VALUE, for example rcdb,radius=8; got {text!r}.")
        return cls(name, {setting: value_of(value) for setting, value in texts.items()})


def value_of(text: str) -> Any:
    """Read a setting's value: a number, true, false, none or a string.

    >>> [value_of(text) for text in ("8", "0.5", "true", "none", "kappa")]
    [8, 0.5, True, None, 'kappa']
    """
    words = {"true": True, "false": False, "none": None}
    if text.lower() in words:
        return words[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def cell_of(agent: str, attack: str, world: str, delay: str, budget: int, horizon: int) -> Cell:
    """Return the cell of an agent, an attack, a world and a delay, each with its settings."""
    one, other, place, late = map(Named.parse, (agent, attack, world, delay))
    return Cell(
        agent=one.name,
        attack=other.name,
        budget=budget,
        horizon=horizon,
        world=place.name,
        agent_settings=one.settings,
        attack_settings=other.settings,
        world_settings=place.settings,
        delay=late.name,
        delay_settings=late.settings,
    )


def report_seeds(first: int, runs: int) -> range:
    """Return the seeds of a report, which must not be tuning seeds."""
    seeds = range(first, first + runs)
    refuse_tuning_seeds(seeds)
    return seeds
