"""Names of the items, where a file of votes has only their ids."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl

from fairduel.errors import BadInputError
from fairduel.votes.reading.fields import WHOLE
from fairduel.votes.reading.file_readers import read_table
from fairduel.votes.reading.records import FAULT, LINE
from fairduel.words import shortened


def read_names(source: str | os.PathLike[str]) -> dict[str, str]:
    r"""Read the names of items: from a file with the ids in its first column, and the names in its second.

    A column called ``name``, ``title``, ``label`` or ``text`` is that of the names, wherever it is.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "logos.csv"
    >>> _ = path.write_text("id,colour,name\n7,red,Fox\n8,blue,Owl\n")
    >>> read_names(path)
    {'7': 'Fox', '8': 'Owl'}
    """
    path = Path(source)
    frame = read_table(path, list)[0].drop(FAULT, LINE, strict=False)
    titles = [column for column in frame.columns if column.strip().lower() in ("name", "title", "label", "text")]
    ids, *others = [column for column in frame.columns if column not in titles[:1]] or [""]
    if not (titles or others):
        raise BadInputError(f"{path.name} must have two columns: the items' ids, and their names.")
    texts = [frame[column].cast(pl.String).str.strip_chars() for column in (ids, (titles or others)[0])]
    known = pl.DataFrame(dict(zip(("id", "name"), texts, strict=True))).drop_nulls()
    if twice := known["id"].filter(known["id"].is_duplicated()).to_list():
        raise BadInputError(f"{path.name} names {twice[0]!r} twice.")
    return dict(known.rows())


def named(items: Sequence[str], names: Mapping[str, str], warnings: list[str]) -> tuple[str, ...]:
    """Return the names of items; those without one keep their id, which is warned of."""
    plain = [WHOLE.sub(r"\1", item.strip()) for item in items]
    if missing := [item for item in plain if item not in names]:
        if len(missing) == len(items):
            raise BadInputError(f"no item of the votes has a name: their ids are {shortened(plain)} (names=…).")
        warnings.append(f"{shortened(missing)} {'has' if len(missing) == 1 else 'have'} no name (names=…).")
    found = tuple(str(names.get(item, item)) for item in plain)
    if twice := [name for name in found if found.count(name) > 1]:
        raise BadInputError(f"two items have the name {twice[0]!r} (names=…): names must differ.")
    return found
