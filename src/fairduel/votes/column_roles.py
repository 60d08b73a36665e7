"""Find out what each column of a vote table means."""

from collections.abc import Mapping, Sequence

from fairduel.errors import BadInputError, suggestion, unknown_name
from fairduel.votes.words import listed as joined

_A_AND_B = tuple((f"{kind}_a", f"{kind}_b") for kind in ("model", "item", "arm", "arg", "option"))
PAIRS = (("first", "second"), *_A_AND_B, ("left", "right"), ("a", "b"))
"""Names of the columns of the two items, which also name a winner by position."""
_TEXTS = ("response", "answer", "text", "completion", "generation", "output", "candidate", "summary", "image")
TEXT_PAIRS = tuple((f"{kind}{a}", f"{kind}{b}") for kind in _TEXTS for a, b in (("_a", "_b"), ("_1", "_2"), ("1", "2")))
"""Names of columns with the two answers, which are the items if nothing else is."""
_NAMES = {
    "winner": ("winner", "outcome", "result", "choice"),
    "voter": ("voter", "worker", "judge", "user", "annotator", "rater"),
    "context": ("context", "prompt", "question", "topic"),
    "time": ("time", "timestamp", "tstamp", "minute", "response_time"),
    "weight": ("weight",),
}
_LAST_CHOICES = {
    "voter": (
        *("judge_hash", "visitor_id", "session_hash", "evaluation_session_id", "session_identifier"),
        *("session_id", "session", "completed_by"),
    ),
    "context": ("item_id", "conversation_pair_id", "instruction"),
    "time": ("created_at", "response_time_(s)", "lead_time"),
}
"""Names that count only if there is no other, the best first."""
_REQUIRED = {"first": "the first item", "second": "the second item", "winner": "the winner"}
_MOST_LISTED = 30  # columns
ROLES = ("first", "second", *_NAMES)
Columns = Mapping[str, str | None]


def find_columns(names: Sequence[str], given: Columns, file: str, *, complete: bool = True) -> dict[str, str]:
    """Map each role to one of the columns ``names``: as ``given``, otherwise by common names.

    Unless ``complete``, the items and the winner may be missing.

    >>> find_columns(["arm_a", "arm_b", "winner", "judge_id", "judge"], {}, "votes.csv")
    {'first': 'arm_a', 'second': 'arm_b', 'winner': 'winner', 'voter': 'judge_id'}
    """
    for role, column in given.items():
        if role not in ROLES:
            raise unknown_name("column role", role, ROLES)
        if column is not None and column not in names:
            raise BadInputError(f"{file} has no column {column!r}{suggestion(column, names, 'its columns')}.")
    plain = plain_names(names)
    shown = ", ".join(name if name.isprintable() else repr(name) for name in names[:_MOST_LISTED])
    more = f" and {len(names) - _MOST_LISTED:,} more" if len(names) > _MOST_LISTED else ""
    listed = f"the columns of {file} are {shown}{more}"
    found = {role: column for role, column in given.items() if column is not None}
    if not {"first", "second"} & set(given):
        found |= _common_pair(plain, listed)
    for role in set(_NAMES) - set(given):
        found |= _common_column(role, plain, listed)
    if complete and (missing := [role for role in _REQUIRED if role not in found]):
        what, options = joined([_REQUIRED[role] for role in missing]), joined([f"--{role}" for role in missing])
        raise BadInputError(
            f"no column found for {what}: name {'it' if len(missing) == 1 else 'them'} with {options}; {listed}."
        )
    for role in found:
        if found[role] not in names:
            raise BadInputError(f"the {role} column could be {found[role]}: name it (--{role}); {listed}.")
    if len(set(found.values())) < len(found):
        raise BadInputError(f"a column cannot have two roles: {', '.join(f'{r} = {c}' for r, c in found.items())}.")
    return {role: found[role] for role in ROLES if role in found}


def plain_names(names: Sequence[str]) -> dict[str, str]:
    """Columns by normalised name; two with the same normalised name become "Winner or winner".

    >>> plain_names(["Winner ID", "model-a"])
    {'winner_id': 'Winner ID', 'model_a': 'model-a'}
    """
    plain: dict[str, str] = {}
    for name in names:
        usual = name.strip().lower().replace(" ", "_").replace("-", "_")
        plain[usual] = f"{plain[usual]} or {name}" if usual in plain else name
    return plain


def _common_pair(plain: Mapping[str, str], listed: str) -> dict[str, str]:
    pairs = [pair for pair in PAIRS if set(pair) <= set(plain)]
    pairs = pairs or [pair for pair in TEXT_PAIRS if set(pair) <= set(plain)]
    if len(pairs) > 1:
        either = " or ".join(f"{plain[a]} and {plain[b]}" for a, b in pairs)
        raise BadInputError(f"the items could be {either}: name the columns (--first, --second); {listed}.")
    return {role: plain[name] for pair in pairs for role, name in zip(("first", "second"), pair, strict=True)}


def _common_column(role: str, plain: Mapping[str, str], listed: str) -> dict[str, str]:
    words = [word for word in _NAMES[role] if {word, f"{word}_id"} & set(plain)]
    if len(words) > 1:
        raise BadInputError(f"the {role} column could be {' or '.join(words)}: name it (--{role}); {listed}.")
    if not words:
        last = next((name for name in _LAST_CHOICES.get(role, ()) if name in plain), None)
        return {role: plain[last]} if last else {}
    return {role: plain.get(f"{words[0]}_id") or plain[words[0]]}  # judge_id next to judge is the same person
