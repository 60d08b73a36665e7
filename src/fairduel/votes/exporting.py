"""Write cleaned votes, their ranking, and preference data: prompt, chosen and rejected, as TRL's trainers read them.

The texts are those of :mod:`fairduel.votes.reading.texts`.
"""

import io
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

import numpy as np
import polars as pl

from fairduel.checks import at_least_zero
from fairduel.duel import Vector
from fairduel.errors import BadInputError, unknown_name
from fairduel.files import write_atomically
from fairduel.votes.auditing.cleaning import Cleaned
from fairduel.votes.auditing.reliability import IGNORED
from fairduel.votes.notebook import Result
from fairduel.votes.reading.texts import check_texts, texts_of, won_and_lost
from fairduel.votes.votes import Indices
from fairduel.words import FORMULA, NUMBER, cell_text, counted_noun, listed


@dataclass(frozen=True, eq=False, repr=False)
class Preferences(Result):
    """Preferences for training, one per vote.

    Created by :func:`preferences`.

    Args:
        frame: One row per preference. ``prompt``, ``chosen``, ``rejected`` and ``margin`` are TRL's columns. Then
            ``weight``: how many votes the row counts after the audit; ``flagged``; ``votes_for`` and ``votes_against``:
            votes in this set with the same prompt and texts, for and against; ``chosen_model``, ``rejected_model``: the
            names of the two items; and ``row``: its row in the file.
        left_out: Number of votes left out, by reason.
    """

    frame: pl.DataFrame
    left_out: Mapping[str, int]

    def to_frame(self) -> pl.DataFrame:
        """Return one row per preference."""
        return self.frame

    def completions(self) -> pl.DataFrame:
        """Return two rows per preference: prompt, completion, and label (true if chosen), as for TRL's KTO.

        The columns weight, flagged and row follow.
        """
        rest = ("weight", "flagged", "row")
        good, bad = (
            self.frame.select("prompt", pl.col(name).alias("completion"), pl.lit(label).alias("label"), *rest)
            for name, label in (("chosen", True), ("rejected", False))
        )
        return pl.concat([good, bad]).sort("row", maintain_order=True)

    def _preview(self) -> pl.DataFrame:
        return self.frame.select("prompt", "chosen", "rejected", "margin", "weight", "votes_for", "votes_against")

    def brief(self) -> str:
        """Return how many votes are in the set, and how many are left out and why."""
        total = len(self.frame) + sum(self.left_out.values())
        out = listed([f"{count:,} {reason}" for reason, count in self.left_out.items()]) if self.left_out else "none"
        return f"{len(self.frame):,} of {counted_noun(total, 'vote')} are preferences; left out: {out}."


def preferences(cleaned: Cleaned, *, least_weight: float = IGNORED) -> Preferences:
    """Return a preference for each vote that has a winner and that the audit trusts.

    The **margin** is max(0, θ_chosen − θ_rejected), θ being the scores of the cleaned ranking in log-odds, and 0 for
    items that it does not compare. TRL's reward loss is −log σ(r_chosen − r_rejected − margin): rewards have to differ
    by more where the votes as a whole are clear. A vote against the ranking has margin 0 and still counts.

    Args:
        cleaned: The votes with their weights, from :func:`fairduel.votes.clean`.
        least_weight: Leave out votes that count less, relative to an average voter's. Trainers ignore the weight, so
            votes that hardly count would count fully. 0 keeps all votes with a winner, also those of flagged voters.

    Returns:
        The preferences, and what was left out.

    Raises:
        BadInputError: The file has no texts, and its items are ids.

    >>> from fairduel.votes.auditing.cleaning import clean
    >>> from fairduel.votes.reading.read import votes_of
    >>> from fairduel.votes.attacking.liars import arena
    >>> found = preferences(clean(votes_of(arena(seed=4)[0].to_frame())))
    >>> print(found.brief())
    3,861 of 4,713 votes are preferences; left out: 410 ties, 344 by flagged voters and 98 with a weight below 0.1.
    """
    at_least_zero("least_weight", least_weight)
    votes, left_out = cleaned.votes, dict[str, int]()
    kept = np.ones(len(votes), dtype=np.bool_)
    for reason, holds in {
        "ties": votes.is_tie,
        "by flagged voters": cleaned.flagged & (least_weight > 0.0),
        f"with a weight below {least_weight:g}": (cleaned.trust < least_weight) | (votes.weight == 0.0),
    }.items():
        left_out[reason] = int((kept & holds).sum())
        kept &= ~holds
    places = np.flatnonzero(kept)
    check_texts(cleaned.reading)
    texts, reasons = texts_of(cleaned.reading, places)
    left_out |= Counter(reason for reason in reasons if reason)
    found = np.array([not reason for reason in reasons], dtype=np.bool_)
    frame = _frame(cleaned, places[found], texts.filter(found))
    return Preferences(frame, {reason: count for reason, count in left_out.items() if count})


def _frame(cleaned: Cleaned, places: Indices, texts: pl.DataFrame) -> pl.DataFrame:
    """Return the table of :class:`Preferences`, from the votes at ``places`` (m,) and their texts."""
    votes, counts = cleaned.votes, cleaned.votes.weight[places]
    won, lost = won_and_lost(votes, places)
    scores, component = cleaned.ranking.scores, _components(cleaned)
    items = pl.Series(votes.items, dtype=pl.String)
    columns = {
        "margin": np.where(component[won] == component[lost], np.maximum(scores[won] - scores[lost], 0.0), 0.0),
        "weight": counts * cleaned.trust[places],
        "flagged": cleaned.flagged[places],
        **_agreement(texts, counts),
        "chosen_model": items.gather(won),
        "rejected_model": items.gather(lost),
        "row": votes.row[places],
    }
    return texts.hstack(pl.DataFrame(columns))


def _components(cleaned: Cleaned) -> Indices:
    """Return the component of each item in the cleaned ranking, shape (K,)."""
    found = {standing.item: standing.component for standing in cleaned.ranking.standings}
    return np.array([found[item] for item in cleaned.ranking.items], dtype=np.int64)


def _agreement(texts: pl.DataFrame, counts: Vector) -> dict[str, pl.Series]:
    """Return how many votes, each counted ``counts`` (m,) times, say the same on the same texts, and the opposite."""
    keys = texts.with_columns(json_column(column) for column in texts if column.dtype.is_nested())
    same, opposite = ["prompt", "chosen", "rejected"], ["prompt", "rejected", "chosen"]
    votes = keys.with_columns(votes=counts).group_by(same).agg(pl.sum("votes"))
    found = (
        keys.join(votes, left_on=left, right_on=same, how="left", maintain_order="left") for left in (same, opposite)
    )
    return dict(zip(("votes_for", "votes_against"), (each["votes"].fill_null(0.0) for each in found), strict=True))


def json_column(column: pl.Series) -> pl.Series:
    """Return a column of lists or objects as JSON text.

    >>> json_column(pl.Series([[{"role": "user"}], None])).to_list()
    ['[{"role": "user"}]', None]
    """
    texts = [
        None if value is None else json.dumps(value, ensure_ascii=False, default=str) for value in column.to_list()
    ]
    return pl.Series(column.name, texts, dtype=pl.String)


Format = Literal["csv", "parquet", "trl", "kto"]
FILES = ("ranking.csv", "votes.csv", "ranking.parquet", "votes.parquet", "trl.jsonl", "kto.jsonl")
"""All files that an export may write."""


@dataclass(frozen=True)
class Exported:
    """What an export has written."""

    files: Mapping[str, int]
    """Number of rows of each file."""
    preferences: Preferences | None
    """The preferences in ``trl.jsonl`` and ``kto.jsonl``, and what they leave out; None without these files."""


def export(
    cleaned: Cleaned, folder: Path | str, *, formats: Sequence[Format] = ("csv",), least_weight: float = IGNORED
) -> Exported:
    """Write cleaned votes to a folder, in each of the ``formats``.

    - ``"csv"`` and ``"parquet"``: ``ranking`` and ``votes`` (see :meth:`Cleaned.to_frame`). In CSV, text that a
      spreadsheet would run gets an apostrophe, and lists become JSON.
    - ``"trl"``: ``trl.jsonl``, preferences for TRL's reward and DPO trainers (see :func:`preferences`).
    - ``"kto"``: ``kto.jsonl``, the same for its KTO trainer.

    Args:
        cleaned: The votes with their weights, from :func:`fairduel.votes.clean`.
        folder: Where to write; it is made if need be.
        formats: Which files to write.
        least_weight: See :func:`preferences`.

    Returns:
        The files with their number of rows, and the preferences.

    Raises:
        BadInputError: There is no such format, or a file cannot be written.

    >>> import tempfile
    >>> from fairduel.votes.auditing.cleaning import clean
    >>> from fairduel.votes.reading.read import votes_of
    >>> from fairduel.votes.attacking.liars import arena
    >>> cleaned = clean(votes_of(arena(seed=4)[0].to_frame()))
    >>> export(cleaned, tempfile.mkdtemp(), formats=["parquet", "kto"]).files
    {'ranking.parquet': 12, 'votes.parquet': 4713, 'kto.jsonl': 7722}
    """
    for name in formats:
        if name not in get_args(Format):
            raise unknown_name("format", str(name), get_args(Format))
    found = preferences(cleaned, least_weight=least_weight) if {"trl", "kto"} & set(formats) else None
    return Exported(write_tables(_tables(cleaned, found, formats), Path(folder)), found)


def write_tables(tables: Mapping[str, pl.DataFrame], folder: Path) -> dict[str, int]:
    """Write tables, by the names of their files, to a folder; return the number of rows of each file."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInputError(f"cannot write to {folder}: {error.strerror}.") from error
    for file, frame in tables.items():
        write_atomically(folder / file, _WRITERS[Path(file).suffix](frame))
    return {file: len(frame) for file, frame in tables.items()}


def _tables(cleaned: Cleaned, found: Preferences | None, formats: Sequence[Format]) -> dict[str, pl.DataFrame]:
    """Return the table of each file."""
    tables: dict[str, pl.DataFrame] = {}
    for name in ("csv", "parquet"):
        if name in formats:
            tables |= {f"ranking.{name}": cleaned.ranking.to_frame(), f"votes.{name}": cleaned.to_frame()}
    if found is not None:
        sets = {"trl": found.to_frame(), "kto": found.completions()}
        tables |= {f"{name}.jsonl": sets[name] for name in ("trl", "kto") if name in formats}
    return tables


def csv_bytes(frame: pl.DataFrame) -> bytes:
    r"""Return a table as CSV; text that a spreadsheet would run gets an apostrophe, and lists and objects become JSON.

    >>> csv_bytes(pl.DataFrame({"item": ["=1+1"], "messages": [[{"role": "user"}]]})).decode()
    'item,messages\n\'=1+1,"[{""role"": ""user""}]"\n'
    """
    flat = frame.with_columns(json_column(column) for column in frame if column.dtype.is_nested())
    text = pl.col(pl.String)
    runs = text.str.contains(FORMULA) & ~text.str.contains(NUMBER)
    safe = flat.with_columns(pl.when(runs).then(pl.lit("'") + text).otherwise(text).name.keep())
    return safe.rename(cell_text).write_csv().encode()


def _parquet_bytes(frame: pl.DataFrame) -> bytes:
    buffer = io.BytesIO()
    frame.write_parquet(buffer)
    return buffer.getvalue()


_WRITERS: dict[str, Callable[[pl.DataFrame], bytes]] = {
    ".csv": csv_bytes,
    ".parquet": _parquet_bytes,
    ".jsonl": lambda frame: frame.write_ndjson().encode(),
}
