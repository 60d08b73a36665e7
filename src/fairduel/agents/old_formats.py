"""Upgrade saved states of older formats, one format at a time.

Format 1 kept duels in two tables, and beside them everything that the paper's five agents had learned. Format 2 has one
record per pending duel or pull, and ``memory``. Format 3 added the root of the last Hessian. Format 4 names an agent's
class by module, forgets cancelled duels, and adds a checksum. Format 5 replaced the ``note`` of a pending duel or pull,
a list of numbers, by named fields. Format 6 keeps the state of every estimator together. Its first files, like
all older ones, lack the order of the votes, so agents loaded from them recommend by their own estimate.

A setting given by name ("practical") means what it means today.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from fairduel.core.radius import rcdbs_ridge, rcdbs_trust
from fairduel.errors import BadInputError

FORMAT = 6
"""The format written today."""
UNSEALED = (1, 2, 3)
"""Formats without a checksum."""
State = dict[str, Any]


def upgraded(state: State) -> State:
    """Return the state in today's format, without changing the argument.

    Its ``agent`` must be the bare name of fairduel's class, also for a user's subclass.
    """
    version = state.get("version")
    if type(version) is not int or not 1 <= version <= FORMAT:
        raise BadInputError(f"format {version!r} of the saved agent is unknown; formats 1 to {FORMAT} are supported.")
    for step in _STEPS[version - 1 :]:
        state = step(state)
    return state


def _from_1(state: State) -> State:
    fitted_at = state.get("fitted_at", -math.inf)  # log det Σ, later with the number of outcomes
    fitted_outcomes = 0
    if isinstance(fitted_at, list):
        fitted_at, fitted_outcomes = fitted_at
    pending = zip(state["pending"]["duels"], state["pending"]["differences"], strict=True)
    names = ("number", "first", "second", "weight", "width", "slope")
    duels = [dict(zip(names, row, strict=True)) | {"difference": difference} for row, difference in pending]
    answered = state["asked"] - len(state["cancelled"]) - len(duels)  # counts self-duels, unlike later formats
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
    """Return settings as in the first RCDB-S: the theorem's design, ridge and trust, and practical radii of √d."""
    d, bound, budget, horizon = (settings[name] for name in ("dimension", "norm_bound", "flip_budget", "horizon"))
    budget = math.ceil(math.sqrt(horizon)) if budget is None else budget
    ridge = rcdbs_ridge(d, bound) if settings["ridge"] is None else settings["ridge"]
    trust = rcdbs_trust(d, bound, budget, ridge) if settings["trust"] is None and budget else settings["trust"]
    radii = {name: math.sqrt(d) for name in ("radius", "slope_radius") if settings[name] == "practical"}
    return settings | radii | {"design": "kappa", "ridge": ridge, "trust": trust}


def _from_2(state: State) -> State:
    memory = state["memory"]
    if "_fitted_at" in memory:  # a contextual agent: without a root the next fit starts from θ, as it did then
        memory = memory | {"_root": np.empty((0, 0))}
    return state | {"version": 3, "memory": memory}


def _from_3(state: State) -> State:
    memory = state["memory"]
    if "_basis" in memory and not memory["_basis"]:  # SBE before its first pull
        memory = memory | {"_coefficients": np.empty((0, 0))}
    state = state | {"version": 4, "memory": memory}
    if state.get("curvature"):  # whose saved log det was never updated
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
"""The field for each number of a note; ``first_features`` takes all the rest."""


def _from_4(state: State) -> State:
    names = _NOTES.get(state["agent"], ())
    pending = {number: _without_note(fields, names) for number, fields in state["pending"].items()}
    state = state | {"version": 5, "pending": pending}
    if state["agent"] == "VACDB":  # which was told no ties
        state["levels"] = {number: level | {"tied": 0.0} for number, level in state["levels"].items()}
    return state


def _without_note(fields: State, names: tuple[str, ...]) -> State:
    """Replace the note of something pending by fields of these ``names``."""
    rest = {name: value for name, value in fields.items() if name != "note"}
    note = fields.get("note", [])
    if names and names[-1] == "first_features":
        note = [note[0], np.array(note[1:], dtype=np.float64)]
    if len(note) != len(names):
        raise BadInputError("its class has no fields for a pending note; tell or cancel it with an older version.")
    own = dict(zip(names, note, strict=True))
    for name in {"layer", "place"}.intersection(own):
        own[name] = None if own[name] == -1 else own[name]
    if "challenger_first" in own:
        own["challenger_first"] = bool(own["challenger_first"])
    return rest | own


_ESTIMATOR = ("stale", "theta", "root", "outcomes", "fitted_at", "fitted_outcomes", "told", "curvature")


def _from_5(state: State) -> State:
    state = state | {"version": 6}
    if "told" in state:  # beside the rest of an estimator, which was in memory
        bare = {name.removeprefix("_"): value for name, value in state["memory"].items()}
        memory = {name: value for name, value in state["memory"].items() if name.removeprefix("_") not in _ESTIMATOR}
        state |= {"memory": memory, "estimator": _estimator({"outcomes": bare.get("rounds")} | state | bare)}
    if state["agent"] == "VACDB":
        state["levels"] = {
            number: level | {"estimator": _estimator(level)} for number, level in state["levels"].items()
        }
    return state


def _estimator(known: State) -> State:
    """Return the state of an estimator; FGTS and VACDB knew neither a root nor when they last fitted."""
    missing = {"root": np.empty((0, 0)), "fitted_outcomes": 0, "fitted_at": -math.inf, "curvature": None}
    return missing | {name: known[name] for name in _ESTIMATOR if name in known}


_STEPS: tuple[Callable[[State], State], ...] = (_from_1, _from_2, _from_3, _from_4, _from_5)
