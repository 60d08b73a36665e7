"""Search for the worst attack: CMA-ES over the settings of an attack that watches the agent."""

import functools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, NamedTuple, get_args

import numpy as np

from fairduel.adversaries.watching import Favourite, Misled
from fairduel.checks import integer, needs_extra
from fairduel.duel import Vector

Settings = dict[str, Any]
Measure = Callable[[Sequence[Settings], int], Sequence[float]]
"""The mean regret under attacks with these settings, in the runs of the generation of this number."""


class Gene(NamedTuple):
    """A number from 0 to 1 of the search, and the setting that it becomes."""

    name: str
    decode: Callable[[float, int], Any]
    """The value of the setting, given the number and T."""


def _above(least: float, most: float) -> Callable[[float, int], float]:
    """Nothing below ⅕, so that a search can leave a condition out; then evenly from ``least`` to ``most``."""

    def decode(x: float, horizon: int) -> float:  # noqa: ARG001
        return 0.0 if x < 0.2 else round(least + (most - least) * (x - 0.2) / 0.8, 3)

    return decode


def _whole(most: int) -> Callable[[float, int], int]:
    return lambda x, horizon: min(int(x * (most + 1)), most)  # noqa: ARG005


def _among(kinds: Any) -> Callable[[float, int], str]:
    values = [value for value in get_args(kinds) if value != "random"][::-1]
    return lambda x, horizon: values[min(int(x * len(values)), len(values) - 1)]  # noqa: ARG005


def _start(x: float, horizon: int) -> int:
    """Round 1 below ¼, then by ratios from T/100 to T/2."""
    return 1 if x < 0.25 else max(1, round(horizon * 0.01 * 50.0 ** ((x - 0.25) / 0.75)))


GENES = (
    Gene("start", _start),
    Gene("settling", _above(0.05, 1.5)),
    Gene("again", lambda x, horizon: x > 0.5),  # noqa: ARG005
    Gene("upsets", _whole(5)),
    Gene("chance", _above(0.1, 0.8)),
    Gene("weight", _above(0.1, 1.0)),
    Gene("width", _above(0.25, 2.0)),
    Gene("favourite", _among(Favourite)),
    Gene("misled", _among(Misled)),
    Gene("harm", _above(0.02, 0.6)),
    Gene("spare", _whole(5)),
    Gene("pace", lambda x, horizon: 1.0 if x > 0.6 else round(0.1 + 1.5 * x, 3)),  # noqa: ARG005
)
"""What the search varies."""
_ALWAYS = {"again": 0.0, "pace": 1.0, "favourite": 0.0, "misled": 1.0}


def _known(**numbers: float) -> Vector:
    """A point whose settings are neutral but for these."""
    return np.array([numbers.get(gene.name, _ALWAYS.get(gene.name, 0.0)) for gene in GENES])


KNOWN = (
    _known(),
    _known(chance=0.66),
    _known(chance=0.66, settling=0.45),
    _known(chance=0.66, settling=0.45, spare=0.4),
    _known(chance=0.66, start=1.0),
    _known(chance=0.66, start=0.82),
    _known(chance=0.66, weight=0.9),
    _known(chance=0.66, settling=0.45, misled=0.5, harm=0.5),
    _known(favourite=0.4, misled=1.0),
)
"""Where the search begins: attacks that people thought of."""


def settings_at(point: Vector, horizon: int) -> Settings:
    """Return the settings of the attack that a point (12,) stands for.

    >>> settings_at(KNOWN[2], 2000)["settling"]
    0.503
    """
    return {gene.name: gene.decode(float(x), horizon) for gene, x in zip(GENES, np.clip(point, 0.0, 1.0), strict=True)}


@dataclass(frozen=True)
class Generation:
    """Some attacks that were tried on the same runs."""

    number: int
    points: list[Vector]
    """Shape (12,) each."""
    regrets: list[float]


def search(
    measure: Measure, *, horizon: int, generations: int, population: int = 24, seed: int = 0
) -> Iterator[Generation]:
    """Search for the settings of the worst attack on an agent, a generation at a time.

    The first generation holds attacks that people thought of and random ones; the search goes on from the worst of
    them. The same seed makes the same search, so it resumes if ``measure`` remembers.

    Args:
        measure: The mean regret under attacks with some settings. Measuring each generation on runs of its own keeps
            the search from learning the runs.
        horizon: T.
        generations: How many.
        population: How many attacks each tries.
        seed: Seed of the search.

    >>> def early(tried, generation):
    ...     return [-settings["start"] for settings in tried]
    >>> found = list(search(early, horizon=100, generations=2, population=10))
    >>> max(found[0].regrets)
    -1.0
    """
    with needs_extra("bench"):
        from cmaes import CMA  # type: ignore[import-untyped]  # noqa: PLC0415
    generations, population = integer("generations", generations, least=1), integer("population", population, least=4)
    rng = np.random.default_rng(seed)
    points = [*KNOWN, *rng.random((max(2 * population - len(KNOWN), 0), len(GENES)))]
    optimiser = None
    for number in range(generations):
        if optimiser is not None:
            points = [optimiser.ask() for _ in range(population)]
        regrets = [float(regret) for regret in measure([settings_at(point, horizon) for point in points], number)]
        yield Generation(number, points, regrets)
        if optimiser is None:
            bounds = np.tile([0.0, 1.0], (len(GENES), 1))
            mean = np.clip(points[int(np.argmax(regrets))], 0.02, 0.98)
            optimiser = CMA(mean=mean, sigma=0.2, bounds=bounds, seed=seed, population_size=population)
        else:
            optimiser.tell([(point, -regret) for point, regret in zip(points, regrets, strict=True)])


@functools.cache
def worst_found() -> Mapping[str, Settings]:
    """Return the worst attacks that ``python -m benchmarks.worst_attacks`` has found.

    They are by the agent that they were found on, with its settings, in words, and the world unless it is the paper's.
    """
    return dict(json.loads(files("fairduel.adversaries").joinpath("found.json").read_text(encoding="utf-8")))


def in_words(settings: Mapping[str, Any]) -> str:
    """Describe an attack that watches the agent.

    >>> in_words({"settling": 0.5, "chance": 0.5})
    'waits until the leader is 50% of the way to being clearly ahead; then flips outcomes with a probability above 0.5'
    """
    one: dict[str, Any] = {
        "start": 1,
        "settling": 0.0,
        "upsets": 0,
        "pace": 1.0,
        "misled": "go on",
        "favourite": "nobody",
    } | dict(settings)
    waits = []
    if one["start"] > 1:
        waits.append(f"round {one['start']:,}")
    if one["settling"]:
        waits.append(f"the leader is {one['settling']:.0%} of the way to being clearly ahead")
    if one["upsets"]:
        row = "an outcome" if one["upsets"] == 1 else f"{one['upsets']} outcomes in a row"
        waits.append(f"{row} contradicted the agent")
    wanted = [
        words.format(one[name])
        for name, words in (
            ("chance", "with a probability above {:.2g}"),
            ("weight", "of duels that count at least {:.0%} of the most so far"),
            ("width", "of duels at least {:.2g} times as uncertain as usual"),
        )
        if one.get(name)
    ]
    if one["favourite"] != "nobody":
        wanted.append(f"that the {one['favourite']} action lost")
    if one.get("again") and one["settling"]:
        wanted.append("while the leader is that far")
    text = f"waits until {' and '.join(waits)}; then flips" if waits else "flips"
    text += f" outcomes {', '.join(wanted)}" if wanted else " all outcomes"
    if one["pace"] < 1.0:
        text += f", each with probability {one['pace']:.2g}"
    if one["misled"] != "go on":
        far = f" by {one['harm']:.0%} of the range" if one.get("harm") else ""
        does = "only those that the leader lost" if one["misled"] == "protect" else "nothing"
        text += f"; once the leader is wrong{far}, {does}"
    if one.get("spare"):
        row = "one outcome that contradicts" if one["spare"] == 1 else f"{one['spare']} in a row that contradict"
        text += f"; after {row} the agent, it lets one pass"
    return text
