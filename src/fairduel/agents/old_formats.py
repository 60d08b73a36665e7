"""Saved states of older formats, brought up to date one format at a time.

Format 1 kept duels in two tables and everything that the paper's five agents learned beside them. Format 2 has one
record per pending duel or pull, and ``memory``. Format 3 added the root of the last Hessian. Format 4 names an agent's
class by module, forgets which duels were cancelled, and seals the file with a checksum. Format 5 has a field for each
thing that an agent must know of a pending duel or pull, where there was a ``note``, a list of numbers; and what an
estimator knows stands together.

What a setting says by name ("practical") means what it means today.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from fairduel.core.radius import rcdbs_ridge, rcdbs_trust
from fairduel.errors import BadInputError

FORMAT = 5
"""The format that is written."""
UNSEALED = (1, 2, 3)
"""Formats without a checksum."""
State = dict[str, Any]


def upgraded(state: State) -> State:
    """The state in today's format; what was given is left as it is.

    Its ``agent`` is the bare name of the class: of fairduel's, where a class of the user's derives from it.
    """
    version = state.get("version")
    if type(version) is not int or not 1 <= version <= FORMAT:
        raise BadInputError(f"format {version!r} of the saved agent is unknown: formats 1 to {FORMAT} can be read.")
    for step in _STEPS[version - 1 :]:
        state = step(state)
    return state


def _from_1(state: State) -> State:
    fitted_at = state.get("fitted_at", -math.inf)  # log det Σ, later with the number of outcomes at that fit
    fitted_outcomes = 0
    if isinstance(fitted_at, list):
        fitted_at, fitted_outcomes = fitted_at
    pending = zip(state["pending"]["duels"], state["pending"]["differences"], strict=True)
    names = ("number", "first", "second", "weight", "width", "slope")
    duels = [dict(zip(names, row, strict=True)) | {"difference": difference} for row, difference in pending]
    answered = state["asked"] - len(state["cancelled"]) - len(duels)  # self-duels too, which later were not counted
    memory = {
        "_self_duel_streak": state["self_duel_streak"],
        "_warned_of_lock_in": state.get("warned_of_lock_in", False),
        "_stale": state["stale"],
        "_theta": state["theta"],
        "_outcomes": state.get("outcomes", answered),
        "_fitted_at": fitted_at,
        "_fitted_outcomes": fitted_outcomes,
    }
    is_first_rcdbs = state["agent"] == "RCDBS" and "design" not in state["settings"]
    return {
        "curvature": None,
        **state,
        "settings": _first_rcdbs(state["settings"]) if is_first_rcdbs else state["settings"],
        "version": 2,
        "memory": memory,
        "pending": {str(duel["number"]): duel for duel in duels},
    }


def _first_rcdbs(settings: State) -> State:
    """RCDB-S as first written: design, ridge and trust of the theorem with any radius, and practical radii of √d."""
    d, bound, budget, horizon = (settings[name] for name in ("dimension", "norm_bound", "flip_budget", "horizon"))
    budget = math.ceil(math.sqrt(horizon)) if budget is None else budget
    ridge = rcdbs_ridge(d, bound) if settings["ridge"] is None else settings["ridge"]
    trust = rcdbs_trust(d, bound, budget, ridge) if settings["trust"] is None and budget else settings["trust"]
    radii = {name: math.sqrt(d) for name in ("radius", "slope_radius") if settings[name] == "practical"}
    return settings | radii | {"design": "kappa", "ridge": ridge, "trust": trust}


def _from_2(state: State) -> State:
    memory = state["memory"]
    if "_fitted_at" in memory:  # an agent with features: without a root the next fit starts from θ, as it did then
        memory = memory | {"_root": np.empty((0, 0))}
    return state | {"version": 3, "memory": memory}


def _from_3(state: State) -> State:
    memory = state["memory"]
    if "_basis" in memory and not memory["_basis"]:  # SBE before its first pull
        memory = memory | {"_coefficients": np.empty((0, 0))}
    state = state | {"version": 4, "memory": memory}
    if state.get("curvature"):  # whose log det was saved but not kept up to date
        curvature = {name: value for name, value in state["curvature"].items() if name != "log_determinant"}
        state["curvature"] = curvature
    return state


_NOTES = {
    "ArmRace": ("layer",),
    "BARBAR": ("epoch",),
    "COBE": ("restarts", "base", "base_number"),
    "FGTS": ("chain", "first_features"),
    "MultiLevelOFUL": ("level",),
    "PhasedElimination": ("epoch",),
    "SBE": ("epoch", "place"),
    "VACDB": ("level",),
    "VersatileDB": ("player", "first_chance", "second_chance"),
    "WIWR": ("epoch", "challenger_first"),
}
"""The field for each number of a note; ``first_features`` takes all that are left."""


_ESTIMATOR = ("_stale", "_theta", "_root", "_outcomes", "_fitted_at", "_fitted_outcomes")


def _from_4(state: State) -> State:
    names = _NOTES.get(state["agent"], ())
    pending = {number: _without_note(fields, names) for number, fields in state["pending"].items()}
    state = state | {"version": 5, "pending": pending}
    if "told" in state and "information" in state:  # an agent with an estimator
        own = {name.removeprefix("_"): state["memory"][name] for name in _ESTIMATOR}
        memory = {name: value for name, value in state["memory"].items() if name not in _ESTIMATOR}
        estimator = own | {"told": state["told"], "curvature": state["curvature"]}
        state = state | {"memory": memory, "estimator": estimator}
    if state["agent"] == "VACDB":  # which was told no ties
        state["levels"] = {number: level | {"tied": 0.0} for number, level in state["levels"].items()}
    return state


def _without_note(fields: State, names: tuple[str, ...]) -> State:
    """What is pending with fields of these ``names`` in the place of its note."""
    rest = {name: value for name, value in fields.items() if name != "note"}
    note = fields.get("note", [])
    if names and names[-1] == "first_features":
        note = [note[0], np.array(note[1:], dtype=np.float64)]
    if len(note) != len(names):
        raise BadInputError("its class has no fields for a pending note: tell or cancel it with an older fairduel.")
    own = dict(zip(names, note, strict=True))
    for name in {"layer", "place"}.intersection(own):
        own[name] = None if own[name] == -1 else own[name]
    if "challenger_first" in own:
        own["challenger_first"] = bool(own["challenger_first"])
    return rest | own


_STEPS: tuple[Callable[[State], State], ...] = (_from_1, _from_2, _from_3, _from_4)
