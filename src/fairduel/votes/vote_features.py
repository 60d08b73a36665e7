"""Numbers that may have decided a vote besides the items: how long the two answers are, say.

Two columns with numbers ≥ 0 of the two items become (A − B)/(A + B), or 0 if both are 0, as LMArena does for style.
Each feature is divided by its root mean square. It is not centred: two answers of equal length stay at 0.
"""

from collections.abc import Mapping

import numpy as np
import polars as pl

from fairduel.duel import Matrix, Vector
from fairduel.errors import BadInputError
from fairduel.votes.fields import field, numbers

_COUNTS = {
    "length": "sum_assistant_{}_tokens",
    "headers": "header_count_{}",
    "lists": "list_count_{}",
    "bold": "bold_count_{}",
}
STYLE = {name: ":".join(f"conv_metadata.{count.format(side)}" for side in "ab") for name, count in _COUNTS.items()}
"""The features of LMArena's style control, by name."""


def vote_features_of(frame: pl.DataFrame, columns: Mapping[str, str], file: str) -> dict[str, Vector]:
    """Return each feature (n,), given its column or the pair ``"A:B"`` of its columns; NaN where it is unknown.

    >>> table = pl.DataFrame({"long_a": [30, 0], "long_b": [10, 0]})
    >>> vote_features_of(table, {"length": "long_a:long_b"}, "votes.csv")["length"].tolist()
    [0.5, 0.0]
    """
    found = {name: _values(frame, spec, file) for name, spec in columns.items()}
    unknown = [name for name, values in found.items() if len(values) and np.isnan(values).all()]
    for name in unknown:
        if columns[name] != STYLE.get(name):
            raise BadInputError(f"{file} has no numbers in {columns[name]}.")
        del found[name]  # not every version of the file counts all of them
    if unknown and not found:
        raise BadInputError(f"{file} has none of the counts of LMArena's style control in conv_metadata.")
    return found


def _values(frame: pl.DataFrame, spec: str, file: str) -> Vector:
    if ":" not in spec or spec in frame.columns:
        return numbers(field(frame, spec, file))
    one, other = (numbers(field(frame, path, file)) for path in spec.split(":", 1))
    if (one < 0.0).any() or (other < 0.0).any():
        raise BadInputError(f"{file} has negative numbers in {spec}: give their difference as one column.")
    total = one + other
    return np.divide(one - other, total, out=np.where(np.isnan(total), np.nan, 0.0), where=total > 0.0)


def scaled_features(features: Mapping[str, Vector], file: str) -> Matrix:
    """Return features (n,), each divided by its root mean square, as columns (n, p)."""
    columns = []
    for name, values in features.items():
        size = float(np.sqrt(np.mean(values**2))) if len(values) else 1.0
        if size == 0.0:
            raise BadInputError(f"the vote feature {name} is 0 in all votes of {file}: leave it out.")
        columns.append(values / size)
    return np.column_stack(columns)
