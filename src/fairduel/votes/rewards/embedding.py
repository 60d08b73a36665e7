"""Numbers that stand for the meaning of a text: from a file, from a local sentence encoder, or from its words.

- A **file** has them by text, or by row of the vote file: ``.npz`` with arrays ``texts`` (m,) and ``embeddings``
  (m, d), or with ``chosen`` and ``rejected`` (rows, d) each (or ``first`` and ``second``, as the file's columns);
  ``.npy`` of shape (rows, 2, d), which is not loaded as a whole; ``.parquet`` with columns ``text`` and ``embedding``.
- A **sentence encoder** is a folder, or a name that sentence-transformers has already downloaded; nothing is fetched.
- **Words** need no download: TF-IDF of the words, reduced to 64 numbers by a truncated SVD of a sample of the texts.

Encoded texts are stored under the hash of their content, if there is a folder for it.
"""

import hashlib
import io
import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray
from polars.exceptions import PanicException, PolarsError

from fairduel.checks import needs_extra
from fairduel.duel import Matrix
from fairduel.errors import BadInputError
from fairduel.files import write_atomically
from fairduel.votes.reading.features import NPZ_ERRORS
from fairduel.votes.reading.file_readers import damage
from fairduel.votes.rewards.text_statistics import UNSPACED
from fairduel.votes.votes import Indices

WORD_DIMENSION = 64
_VOCABULARY = 20_000  # words
_SAMPLE = 20_000  # texts from which words are weighted
_AT_ONCE = 5_000  # texts


class Sides(NamedTuple):
    """The two texts of some rows of a vote file."""

    record: Indices
    """The place of the row among those of the file, from 0, shape (m,)."""
    texts: pl.Series
    """The distinct texts, shape (u,)."""
    chosen: Indices
    """Which of them was preferred, shape (m,)."""
    rejected: Indices
    first_won: NDArray[np.bool_]

    @classmethod
    def of(cls, record: Indices, chosen: pl.Series, rejected: pl.Series, first_won: NDArray[np.bool_]) -> Self:
        """Number the distinct texts of both sides."""
        both = pl.concat([chosen.alias("text"), rejected.alias("text")])
        texts = both.unique(maintain_order=True)
        numbers = pl.DataFrame({"text": texts, "number": np.arange(len(texts))})
        place = both.to_frame().join(numbers, on="text", how="left", maintain_order="left")["number"].to_numpy()
        return cls(record, texts, place[: len(record)], place[len(record) :], first_won)

    def ahead(self, of_texts: Any) -> Any:
        """Return the values of the chosen text minus those of the rejected one, given those of all texts (u, k)."""
        return of_texts[self.chosen] - of_texts[self.rejected]


class Encoder(Protocol):
    """Turns the two texts of each row into numbers."""

    name: str

    def ahead(self, sides: Sides) -> Matrix:
        """Return the numbers of the chosen text minus those of the rejected one, shape (m, d), single precision."""


class ByText:
    """An encoder that looks at each distinct text once."""

    def __init__(self, name: str, encode: Callable[[list[str]], Matrix], folder: Path | None = None) -> None:
        self.name = name
        self._encode = encode
        self._folder = folder

    def ahead(self, sides: Sides) -> Matrix:
        """Return the numbers of the chosen text minus those of the rejected one, shape (m, d)."""
        return np.asarray(sides.ahead(self._encoded(sides.texts)))

    def _encoded(self, texts: pl.Series) -> Matrix:
        if self._folder is None:
            return self._encode(texts.to_list())
        digest = hashlib.sha256(self.name.encode())
        for text in texts:
            digest.update(hashlib.sha256(text.encode(errors="replace")).digest())
        file = self._folder / f"{digest.hexdigest()[:32]}.npy"
        if file.exists():
            try:
                return single(np.load(file, allow_pickle=False))
            except (ValueError, OSError, EOFError):
                file.unlink(missing_ok=True)  # cut short: encode the texts again
        found = self._encode(texts.to_list())
        with suppress(OSError, BadInputError):  # the folder only saves time
            self._folder.mkdir(parents=True, exist_ok=True)
            content = io.BytesIO()
            np.save(content, found)
            write_atomically(file, content.getbuffer())
        return found


class ByRow:
    """Embeddings of a file, by the row of the vote file."""

    def __init__(self, name: str, one: NDArray[Any], other: NDArray[Any], *, by_winner: bool) -> None:
        self.name = name
        self._one, self._other, self._by_winner = one, other, by_winner

    def ahead(self, sides: Sides) -> Matrix:
        """Return the numbers of the chosen text minus those of the rejected one, shape (m, d)."""
        if len(sides.record) and int(sides.record.max()) >= len(self._one):
            raise BadInputError(
                f"{self.name} has embeddings for {len(self._one):,} rows, and the votes have more: make one per row."
            )
        difference = single(self._one[sides.record]) - single(self._other[sides.record])
        if not np.isfinite(difference).all():
            raise BadInputError(f"{self.name} has embeddings that are not finite numbers.")
        return difference if self._by_winner else difference * single(np.where(sides.first_won, 1.0, -1.0))[:, None]


def word_encoder(samples: Iterable[str], folder: Path | None = None) -> ByText:
    """Return an encoder by words, with the weights and directions of these texts (every k-th, at most 20,000).

    >>> encoder = word_encoder(["tea or milk", "milk or water", "water or tea"] * 4)
    >>> sides = Sides.of(np.zeros(1, int), pl.Series(["tea"]), pl.Series(["milk"]), np.ones(1, bool))
    >>> encoder.ahead(sides).shape, bool(encoder.ahead(sides).any())
    ((1, 64), True)
    """
    with needs_extra("votes"):
        from sklearn.decomposition import TruncatedSVD  # noqa: PLC0415
        from sklearn.feature_extraction.text import TfidfVectorizer  # noqa: PLC0415
    texts = list(dict.fromkeys(samples))
    texts = texts[:: max(1, -(-len(texts) // _SAMPLE))]
    token = rf"(?u)[{UNSPACED}]|\b\w\w+\b"
    weights = TfidfVectorizer(max_features=_VOCABULARY, sublinear_tf=True, dtype=np.float32, token_pattern=token)
    try:
        table = weights.fit_transform(texts)
    except ValueError:  # no text has a word
        table = np.zeros((1, 1))
    rank = min(WORD_DIMENSION, min(table.shape) - 1)
    if rank < 1:
        return ByText("words", lambda some: single(np.zeros((len(some), WORD_DIMENSION))))
    svd = TruncatedSVD(rank, random_state=0).fit(table)

    def encode(some: list[str]) -> Matrix:
        found = single(np.zeros((len(some), WORD_DIMENSION)))
        for start in range(0, len(some), _AT_ONCE):
            found[start : start + _AT_ONCE, :rank] = svd.transform(weights.transform(some[start : start + _AT_ONCE]))
        return found

    learned = hashlib.sha256("\x00".join(texts).encode(errors="replace")).hexdigest()[:16]
    return ByText(f"TF-IDF of words, {rank} directions, {learned}", encode, folder)


def sentence_encoder(name: str, folder: Path | None = None) -> ByText:
    """Return a local model of sentence-transformers; it is never downloaded."""
    with needs_extra("embed"):
        from sentence_transformers import SentenceTransformer  # noqa: PLC0415  # an optional dependency
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    try:
        model = SentenceTransformer(name, local_files_only=True)
    except Exception as error:  # what a folder without a model raises depends on what is missing
        raise BadInputError(
            f"cannot load the sentence encoder {name}: name a folder, or download it first with sentence-transformers."
        ) from error
    return ByText(name, lambda texts: single(model.encode(texts, show_progress_bar=False)), folder)


def file_encoder(path: Path | str) -> Encoder:
    """Return the embeddings of a file; see the top of this file for its layout.

    Raises:
        BadInputError: The file cannot be read, or has another layout.
    """
    path = Path(path)
    readers = {".npy": _npy, ".npz": _npz, ".parquet": _parquet}
    read = readers.get(path.suffix.lower())
    if read is None:
        raise BadInputError(f"unsupported file type: {path.name} (embeddings can be .npy, .npz or .parquet).")
    try:
        return read(path)
    except BadInputError:
        raise
    except (*NPZ_ERRORS, OSError, PanicException, PolarsError) as error:
        raise BadInputError(f"cannot read embeddings from {path}: {damage(error)}.") from error


def _npy(path: Path) -> Encoder:
    table = np.load(path, mmap_mode="r", allow_pickle=False)
    if table.ndim != 3 or table.shape[1] != 2 or table.dtype.kind not in "fiu":
        raise BadInputError(f"{path.name} must have the shape (rows, 2, d): the chosen text, then the rejected one.")
    return ByRow(path.name, table[:, 0], table[:, 1], by_winner=True)


def _npz(path: Path) -> Encoder:
    with np.load(path, allow_pickle=False) as archive:
        names = set(archive.files)
        for one, other in (("chosen", "rejected"), ("first", "second")):
            if {one, other} <= names:
                pair = archive[one], archive[other]
                if pair[0].ndim != 2 or pair[0].shape != pair[1].shape:
                    raise BadInputError(f"the arrays {one} and {other} of {path.name} must both be (rows, d).")
                return ByRow(path.name, *pair, by_winner=one == "chosen")
        if {"texts", "embeddings"} <= names:
            return _by_text(path.name, [str(text) for text in archive["texts"].tolist()], archive["embeddings"])
    raise BadInputError(
        f"{path.name} needs arrays chosen and rejected, or texts and embeddings: it has {', '.join(sorted(names))}."
    )


def _parquet(path: Path) -> Encoder:
    frame = pl.read_parquet(path)
    if not {"text", "embedding"} <= set(frame.columns):
        raise BadInputError(f"{path.name} needs columns text and embedding: it has {', '.join(frame.columns)}.")
    values = frame["embedding"]
    width = values.list.len() if values.dtype == pl.List else None
    if width is not None and width.n_unique() != 1:
        raise BadInputError(f"the embeddings in {path.name} must all have the same length.")
    table = values.list.to_array(int(width[0])).to_numpy() if width is not None else values.to_numpy()
    return _by_text(path.name, frame["text"].cast(pl.String).to_list(), table)


def _by_text(name: str, texts: list[str], table: NDArray[Any]) -> Encoder:
    if table.ndim != 2 or len(table) != len(texts) or table.dtype.kind not in "fiu":
        raise BadInputError(f"{name} must have one embedding (a list of numbers) for each of its {len(texts):,} texts.")
    if not np.isfinite(table).all():
        raise BadInputError(f"{name} has embeddings that are not finite numbers.")
    place = {text: number for number, text in enumerate(texts)}

    def encode(some: list[str]) -> Matrix:
        missing = next((text for text in some if text not in place), None)
        if missing is not None:
            raise BadInputError(f"{name} has no embedding of the text {missing[:60]!r}.")
        return single(table[[place[text] for text in some]])

    return ByText(name, encode)


def single(values: Any) -> Matrix:
    """Return the values as an array in single precision."""
    return np.asarray(values, dtype=np.float32)
