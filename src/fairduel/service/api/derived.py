"""Bodies that are derived from dataclasses and columns of the library, so that they cannot differ."""

import dataclasses
import inspect
from collections.abc import Sequence
from typing import Any, get_args

from pydantic import BaseModel, ConfigDict, Field, create_model

from fairduel.votes.columns import Columns


def body_of(kind: type, names: Sequence[str]) -> type[BaseModel]:
    """Return a body with these fields and properties of a dataclass, of the same types.

    >>> from fairduel.votes.attacking.manipulation import CampaignLimits
    >>> sorted(body_of(CampaignLimits, ["days", "votes_each"]).model_fields)
    ['days', 'votes_each']
    """
    types = {field.name: field.type for field in dataclasses.fields(kind)}
    for name in set(names) - set(types):
        types[name] = inspect.signature(getattr(kind, name).fget).return_annotation
    fields: dict[str, Any] = {name: (types[name], ...) for name in names}
    return create_model(kind.__name__, __doc__=inspect.getdoc(kind), **fields)


class TableRow(BaseModel):
    """A row of a table."""

    model_config = ConfigDict(json_schema_serialization_defaults_required=True)


def row_of(name: str, columns: Columns[Any], base: type[TableRow] = TableRow) -> type[BaseModel]:
    """Return the body of a row with these columns; null stands for what a table does not have."""
    fields: dict[str, Any] = {}
    for each in columns:
        default = None if type(None) in get_args(each.type) else ...
        if each.values is not None:
            fields[each.name] = (each.type, Field(default, description=each.meaning))
    return create_model(name, __base__=base, __doc__=base.__doc__, **fields)
