"""Studies from files: TOML for a whole study, CSV for its items or for prompts with one answer per item."""

import csv
import io
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from fairduel.errors import BadInputError
from fairduel.service.events.log import Json
from fairduel.service.study.media import MEDIA
from fairduel.service.study.study import Context, Item, NewStudy

MOST_BYTES = 20_000_000
ENDINGS = (".toml", ".csv")
_COLUMNS = ("name", "text", *MEDIA, "format")
_FEATURE = re.compile("feature.*", re.IGNORECASE)
PROMPT = "prompt"
"""The column that distinguishes a table of answers from a table of items."""
Model = TypeVar("Model", bound=BaseModel)


class Files:
    """The other files that a study file may name, by their path relative to it.

    Args:
        text: Returns the text of a table.
        medium: Given ``image`` or ``audio``, stores such a file and returns its id.
    """

    def __init__(self, text: Callable[[str], str], medium: Callable[[str, str], str]) -> None:
        self._text, self._medium = text, medium

    def find(self, kind: str, name: str, place: str) -> str:
        """Return the text of a table, or the id of an image or audio.

        Raises:
            BadInputError: It is not there, or not below the folder of the file that names it.
        """
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts or "\\" in name or "\0" in name or not path.parts:
            raise BadInputError(f"{place}: {name!r} must be a file in the same folder or below it.")
        try:
            return self._text(name) if kind == "text" else self._medium(kind, name)
        except LookupError as error:
            raise BadInputError(f"{place}: there is no file {name!r}.") from error
        except BadInputError as error:
            raise BadInputError(f"{place}: {error}") from error


def read_study(name: str, text: str, files: Files, settings: Mapping[str, Any]) -> NewStudy:
    r"""Return the study that a file of this name describes; ``settings`` replace its fields.

    Raises:
        BadInputError: The file cannot be read or describes no study; the sentence names the line or the field.

    >>> none = Files({}.__getitem__, {}.get)
    >>> study = read_study("drinks.csv", "name,text\ntea,hot\nmilk,cold\n", none, {"question": "?"})
    >>> [item.text for item in study.items]
    ['hot', 'cold']
    """
    if name.lower().endswith(".toml"):
        body = _toml(name, text, files)
    elif name.lower().endswith(".csv"):
        body = _csv_study(name, text, files)
    else:
        raise BadInputError(f"{name} is not a study file; use {' or '.join(ENDINGS)}.")
    return checked(NewStudy, body | dict(settings), name)


def checked(kind: type[Model], body: Any, place: str) -> Model:
    """Return a body as a model, or say in one sentence which field is wrong."""
    try:
        return kind.model_validate(body)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"]))
        what = first["msg"].removeprefix("Value error, ").rstrip(".")
        raise BadInputError(f"{place}: {f'{field}: ' if field else ''}{what}.") from error


def _toml(name: str, text: str, files: Files) -> Json:
    try:
        body = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise BadInputError(f"{name}: {str(error).rstrip('.')}.") from error
    items, contexts = body.get("items"), body.get("contexts")
    if isinstance(contexts, str):
        names, read = _answers(contexts, files.find("text", contexts, f"{name}: contexts"))
        body["contexts"] = read
        if items is None:
            body["items"] = [{"name": each} for each in names]
    if isinstance(items, str):
        body["items"] = _items(items, files.find("text", items, f"{name}: items"), files)
    elif isinstance(items, list):
        body["items"] = [
            _with_files({"name": item} if isinstance(item, str) else item, files, f"{name}: items.{place}")
            for place, item in enumerate(items)
        ]
    return body


def _with_files(item: Any, files: Files, place: str) -> Any:
    """Replace the paths of an item's image and audio by their ids."""
    if not isinstance(item, dict):
        return item
    paths = {kind: path for kind in MEDIA if isinstance(path := item.get(kind), str)}
    return item | {kind: files.find(kind, path, f"{place}.{kind}") for kind, path in paths.items()}


def _csv_study(name: str, text: str, files: Files) -> Json:
    if PROMPT in [each.lower() for each in _header(csv.reader(io.StringIO(text)))]:
        names, contexts = _answers(name, text)
        return {"items": [{"name": each} for each in names], "contexts": contexts}
    return {"items": _items(name, text, files)}


def _header(reader: Iterator[list[str]]) -> list[str]:
    """Return the names of the columns; lines before them that begin with # are comments."""
    return [each.strip() for each in next((cells for cells in reader if not "".join(cells).startswith("#")), [])]


def _rows(name: str, text: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the rows of a table with their place; the first row has the names of the columns."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        columns = _header(reader)
        for column in columns:
            if columns.count(column) > 1:
                raise BadInputError(f"{name}, line {reader.line_num}: there are two columns named {column!r}.")
        for cells in reader:
            if not any(cell.strip() for cell in cells):
                continue
            place = f"{name}, line {reader.line_num}"
            if len(cells) != len(columns):
                raise BadInputError(f"{place}: it has {len(cells)} cells, but there are {len(columns)} columns.")
            yield place, dict(zip(columns, cells, strict=True))
    except csv.Error as error:
        raise BadInputError(f"{name}, line {reader.line_num}: {error}.") from error


def _items(name: str, text: str, files: Files) -> list[Json]:
    """Read a table of items; its columns called feature… hold numbers."""
    found = list[Json]()
    for place, row in _rows(name, text):
        features = [column for column in row if _FEATURE.fullmatch(column)]
        unknown = next((column for column in row if column not in _COLUMNS and column not in features), None)
        if unknown is not None:
            raise BadInputError(
                f"{name}, line 1: unknown column {unknown!r}; use {', '.join(_COLUMNS)}, or feature… for numbers."
            )
        item: Json = {column: row[column] for column in _COLUMNS if row.get(column, "").strip()}
        for column in ("name", *MEDIA, "format"):
            if column in item:
                item[column] = item[column].strip()
        if features:
            item["features"] = [_number(row[column], f"{place}: {column}") for column in features]
        found.append(checked(Item, _with_files(item, files, place), place).model_dump())
    return found


def _number(text: str, place: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise BadInputError(f"{place}: {text!r} is not a number.") from None


def _answers(name: str, text: str) -> tuple[list[str], list[Json]]:
    """Read a table of prompts with one column per item; an empty cell is no answer. Returns the items too."""
    names, found = list[str](), list[Json]()
    for number, (place, row) in enumerate(_rows(name, text), start=1):
        by_role = {column.lower(): column for column in row if column.lower() in {PROMPT, "name"}}
        if PROMPT not in by_role:
            raise BadInputError(f"{name}, line 1: there is no column {PROMPT!r}.")
        names = [column for column in row if column not in by_role.values()]
        context: Json = {
            "name": row[by_role["name"]].strip() if "name" in by_role else f"{PROMPT} {number}",
            "text": row[by_role[PROMPT]],
            "contents": {column: row[column] for column in names if row[column].strip()},
        }
        found.append(checked(Context, context, place).model_dump())
    return names, found
