"""Read preference data: which of two texts somebody preferred, with what can be seen in the texts and what they mean.

A file is read in parts of 100,000 rows, and of each part only numbers remain: how the preferred text differs from the
other one in the statistics of ``text_statistics``, in its words, and in its embedding. So a million pairs need no more
memory than their numbers. The texts of a few pairs can be read again (:meth:`PreferencePairs.texts`).
"""

import codecs
import functools
import gzip
import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import sparse

from fairduel.duel import Matrix, Vector
from fairduel.errors import BadInputError
from fairduel.votes.reading.fields import TEXT_PAIRS, Columns, find_columns, plain_names
from fairduel.votes.reading.file_readers import STDIN, damage_said, json_lines, read_table
from fairduel.votes.reading.read import FromFile, Reading, votes_of
from fairduel.votes.reading.records import table_in_memory
from fairduel.votes.reading.shapes import annotated, chosen_text, graded, rated, shape_of
from fairduel.votes.reading.texts import texts_of, won_and_lost
from fairduel.votes.rewards.embedding import Encoder, Sides, word_encoder
from fairduel.votes.rewards.text_statistics import STATISTICS, WORDS, choose_words, has_words, statistics_of
from fairduel.votes.votes import Codes, Indices, Mask
from fairduel.words import counted_noun, listed

_AT_ONCE = 100_000  # rows
_SAMPLE = 10_000  # texts from which words are chosen and weighted
_TEXT_SHAPES = (chosen_text, graded, rated, annotated)
_LEAST_WORDS = 5  # of the median text: fewer are a name
_MOST_MODELS = 100
_ABOUT_ITEMS = ("the items are", "the items were", "every vote has its own", "the file does not say which")
"""How warnings begin that are of no concern where each text is seen once."""


@dataclass(frozen=True, eq=False, repr=False)
class PreferencePairs(FromFile):
    """Which of two texts was preferred, ``n`` times.

    Created by :func:`read_pairs`.

    Args:
        name: Name of the file.
        row: The row of each vote in the file, shape ``(n,)``.
        prompt: Number of the prompt of each vote, shape ``(n,)``; equal prompts have equal numbers.
        hashes: Hashes of the preferred text and of the other one, shape ``(n, 2)``.
        voter: Index of who cast each vote, shape ``(n,)``; None if the file does not say so.
        voters: Names of the voters.
        first_won: Whether the preferred text was shown first, shape ``(n,)``; None if unknown.
        weight: How many votes each row stands for, shape ``(n,)``.
        looks: By how much the preferred text exceeds the other in each statistic, shape ``(n, S)``.
        words: 1 where only the preferred text has a word (or is of a model), −1 where only the other has, ``(n, W)``.
        word_names: The words, and the models.
        meaning: By how much the embedding of the preferred text exceeds the other's, shape ``(n, d)``.
        encoder: What makes the embeddings.
        unused: Number of readable votes that are no preference, by reason.
        rows: Number of rows in the file.
        problems: Number of unusable rows, by reason.
        left_out: Number of rows left out by ``where``.
        where: The values that ``where`` asked for, by column.
        columns: The column used for each role.
        warnings: One sentence about each thing that may not mean what it seems to.
        set_aside: The unusable rows.
        again: Reads the file again, part by part.
        place: Which of the preferences of the file these are, shape ``(n,)``.
    """

    name: str
    row: Indices
    prompt: Indices
    hashes: NDArray[np.uint64]
    voter: Codes | None
    voters: tuple[str, ...]
    first_won: Mask | None
    weight: Vector
    looks: Matrix
    words: sparse.csr_array
    word_names: tuple[str, ...]
    meaning: Matrix
    encoder: Encoder
    unused: Mapping[str, int]
    rows: int
    problems: Mapping[str, int]
    left_out: int
    where: Mapping[str, list[Any]]
    columns: Mapping[str, str]
    warnings: tuple[str, ...]
    set_aside: pl.DataFrame
    again: Callable[[], Iterator["Part"]] = field(repr=False)
    place: Indices

    def __len__(self) -> int:
        return len(self.row)

    def brief(self) -> str:
        """Return how many preferences, prompts and voters there are."""
        counts = {"preference": len(self), "prompt": len(np.unique(self.prompt)), "voter": len(self.voters)}
        return ", ".join(counted_noun(count, noun) for noun, count in counts.items() if count or noun == "preference")

    def to_frame(self) -> pl.DataFrame:
        """Return one row per preference: its row in the file, and by how much the preferred text exceeds the other."""
        columns: dict[str, Any] = {"row": self.row}
        if self.voter is not None:
            columns["voter"] = pl.Series(self.voters, dtype=pl.String).gather(self.voter)
        looks = {each.name: self.looks[:, place] for place, each in enumerate(STATISTICS)}
        return pl.DataFrame(columns | looks)

    @property
    def features(self) -> Matrix:
        """The statistics and the embedding, by which the preferred text exceeds the other, (n, S + d)."""
        return np.hstack([self.looks, self.meaning])

    @functools.cached_property
    def pair(self) -> Indices:
        """Number of the two texts of each vote, in either order, shape ``(n,)``."""
        return np.unique(self.hashes.sum(axis=1), return_inverse=True)[1]

    @property
    def way(self) -> Vector:
        """Which of the two texts of its pair each vote prefers, as 1 or −1, shape ``(n,)``."""
        return np.where(self.hashes[:, 0] > self.hashes[:, 1], 1.0, -1.0)

    def select(self, chosen: Mask) -> Self:
        """Keep only the preferences where ``chosen`` (n,) is true; prompts and voters keep their numbers."""
        held = ("row", "prompt", "hashes", "voter", "first_won", "weight", "looks", "words", "meaning", "place")
        arrays: dict[str, Any] = {name: getattr(self, name) for name in held}
        kept: dict[str, Any] = {name: each if each is None else each[chosen] for name, each in arrays.items()}
        return replace(self, **kept)

    def texts(self, chosen: Indices) -> pl.DataFrame:
        """Return the prompt and both texts of the votes with these numbers, in that order, from the file again."""
        places = self.place[chosen]
        wanted = np.unique(places)
        found, start = list[pl.DataFrame](), 0
        for part in self.again():
            end = start + len(part.texts)
            inside = wanted[(wanted >= start) & (wanted < end)] - start
            found.append(part.texts[inside])
            start = end
        return pl.concat(found)[np.searchsorted(wanted, places)]


class Part(NamedTuple):
    """The preferences of some rows of a file."""

    reading: Reading
    places: Indices
    """Which of its votes are preferences."""
    record: Indices
    """Their rows' places among the rows of the file, from 0."""
    texts: pl.DataFrame
    """Their prompt, chosen and rejected, as text."""
    unused: Mapping[str, int]


def is_preference_data(source: Any, columns: Columns | None = None) -> bool:
    """Whether a vote file compares texts, each of which is hardly ever seen again, rather than items with names.

    >>> is_preference_data([{"chosen": "Yes, it is, and here is why.", "rejected": "No, nobody thinks that."}])
    True
    >>> is_preference_data([{"chosen": "tea", "rejected": "milk"}])
    False
    """
    if isinstance(source, (str, Path)) and str(source) in ("-", str(STDIN)):
        return False
    try:
        frame, _ = next(_frames(source, 200))
        texts = {"chosen", "rejected"} <= set(plain_names(frame.columns)) or _compares_texts(frame, columns or {})
        if not texts:
            return False
        part = _part(frame, 0, 0, {"columns": columns or {}}, "the file")
    except (BadInputError, StopIteration):
        return False  # whoever reads it says what is wrong
    both = pl.concat([part.texts["chosen"].alias("text"), part.texts["rejected"].alias("text")])
    return len(both) > 0 and float(np.median(both.str.count_matches(WORDS).to_numpy())) >= _LEAST_WORDS


def _compares_texts(frame: pl.DataFrame, given: Columns) -> bool:
    shape = shape_of(frame.columns, given, "the file")
    if shape is not None:
        return shape.convert in _TEXT_SHAPES
    found = find_columns(frame.columns, given, "the file", complete=False)
    pair = found.get("first", "").lower(), found.get("second", "").lower()
    return pair in TEXT_PAIRS or pair[::-1] in TEXT_PAIRS


def read_pairs(
    source: Any,
    *,
    encoder: Encoder | None = None,
    cache: Path | None = None,
    columns: Columns | None = None,
    where: Mapping[str, Any] | None = None,
    words: Mapping[str, str] | None = None,
    strict: bool = False,
    progress: Callable[[int], None] | None = None,
) -> PreferencePairs:
    r"""Read preference data from a file or a table.

    Args:
        source: A file or a table as for :func:`fairduel.votes.read_votes`, in which each row has two texts:
            ``chosen`` and ``rejected``, as text or as lists of messages (TRL, Hugging Face); ``response_a`` and
            ``response_b``, and a winner or two ratings; or one of the shapes of HelpSteer and MultiPref.
        encoder: What turns texts into numbers (:mod:`fairduel.votes.rewards.embedding`). Default: TF-IDF of words.
        cache: A folder for the numbers of texts that have been encoded before. Default: none.
        columns: Column names by role, as arguments of :func:`fairduel.votes.read_votes`.
        where: See there.
        words: See there.
        strict: See there.
        progress: Called with the number of rows that have been read.

    Returns:
        The preferences, as numbers.

    Raises:
        BadInputError: The file cannot be read, or has no preferences.

    >>> records = [{"prompt": "Tea?", "chosen": "Yes, please!", "rejected": "Go away.", "annotator": "Ann"}]
    >>> pairs = read_pairs(records)
    >>> pairs, pairs.to_frame().select("voter", "politeness", "exclamation marks").rows()[0]
    (PreferencePairs(1 preference, 1 prompt, 1 voter), ('Ann', 0.6931471824645996, 0.6931471824645996))
    """
    done = progress or (lambda _: None)
    settings = {"columns": columns or {}, "where": where, "words": words, "strict": strict}
    name = Path(source).name if isinstance(source, (str, Path)) else "the table"

    def parts() -> Iterator[Part]:
        start = 0
        for frame, first_row in _frames(source, _AT_ONCE):
            yield _part(frame, start, first_row, settings, name)
            start += len(frame)

    every = parts()
    read = list(itertools.islice(every, 1))
    sample = [text for part in read for text in _sample(part.texts)]
    gathered = _Gathered(choose_words(sample))
    encoder = encoder or word_encoder(sample, cache)
    for part in itertools.chain(read, every):
        gathered.add(part, encoder)
        done(len(part.reading.votes) + len(part.reading.set_aside))
    return gathered.pairs(name, encoder, parts)


def _sample(texts: pl.DataFrame) -> list[str]:
    both = pl.concat([texts["chosen"].alias("text"), texts["rejected"].alias("text")]).unique()
    both = both.sort()  # what words count does not depend on which texts were preferred
    return both.gather_every(max(1, -(-len(both) // _SAMPLE))).to_list()


def _part(frame: pl.DataFrame, start: int, first_row: int, settings: Mapping[str, Any], name: str) -> Part:
    reading = votes_of(frame, **settings, first_row=start + first_row, name=name)
    votes = reading.votes
    places = np.flatnonzero(~votes.is_tie & (votes.weight > 0.0))
    texts, reasons = texts_of(reading, places)
    usable = np.array([not reason for reason in reasons], dtype=np.bool_)
    left = Counter(reason for reason in reasons if reason)
    left["ties"] += int(votes.is_tie.sum())
    plain = texts.filter(usable).select(_plain(texts[column]).filter(usable) for column in texts.columns)
    return Part(reading, places[usable], votes.row[places[usable]] - first_row, plain, +left)


def _plain(texts: pl.Series) -> pl.Series:
    """Return conversations as texts, one message below the other."""
    if not texts.dtype.is_nested():
        return texts.fill_null("")
    messages = [each or [] for each in texts.to_list()]
    return pl.Series(texts.name, ["\n".join(m["content"] or "" for m in each) for each in messages], dtype=pl.String)


class _Gathered:
    """The numbers of the parts that have been read."""

    def __init__(self, words: tuple[str, ...]) -> None:
        self._words = words
        self._voters, self._models, self._prompts = (dict[Any, int]() for _ in range(3))
        self._arrays = dict[str, list[Any]]()
        self._unused, self._problems, self._warnings = Counter[str](), Counter[str](), dict[str, None]()
        self._rows, self._left_out, self._where = 0, 0, dict[str, list[Any]]()
        self._aside, self._columns, self._named, self._sides = list[pl.DataFrame](), dict[str, str](), False, True

    def add(self, part: Part, encoder: Encoder) -> None:
        """Turn a part into numbers."""
        votes, places, texts = part.reading.votes, part.places, part.texts
        first_won = votes.result[places] == 1.0
        sides = Sides.of(part.record, texts["chosen"], texts["rejected"], first_won)
        self._unused.update(part.unused)
        self._problems.update(part.reading.problems)
        self._rows, self._left_out = self._rows + part.reading.rows, self._left_out + part.reading.left_out
        self._where = dict(part.reading.where)
        self._warnings.update(dict.fromkeys(part.reading.warnings))
        self._aside.append(part.reading.set_aside)
        self._columns |= part.reading.columns
        self._sides &= votes.sides_known
        self._named |= votes.voter is not None
        if votes.voter is None:
            voter = np.full(len(places), -1)
        else:
            voter = _numbered(self._voters, votes.voters)[votes.voter[places]]
        one, other = (texts.select(pl.col(name).hash(seed=1)).to_series().to_numpy() for name in ("chosen", "rejected"))
        pair = one + other  # the same in either order; wraps around
        asked = texts["prompt"].hash(seed=1).to_numpy()
        asked = np.where((texts["prompt"].str.strip_chars() == "").to_numpy(), pair, asked)
        found = {
            "row": votes.row[places],
            "prompt": _numbered(self._prompts, asked.tolist()),
            "hashes": np.stack([one, other], axis=1),
            "voter": voter,
            "first_won": first_won,
            "weight": votes.weight[places],
            "looks": sides.ahead(statistics_of(sides.texts)),
            "words": sides.ahead(has_words(sides.texts, self._words)),
            "meaning": encoder.ahead(sides),
            "models": self._wrote(part),
        }
        for name, values in found.items():
            self._arrays.setdefault(name, []).append(values)

    def _wrote(self, part: Part) -> Indices:
        """Return the numbers of the models that wrote the two texts, (m, 2); −1 if unknown."""
        votes, first = part.reading.votes, part.reading.columns["first"].lower()
        if "model" not in first:
            return np.full((len(part.places), 2), -1)
        numbers = _numbered(self._models, votes.items)
        return np.stack([numbers[codes] for codes in won_and_lost(votes, part.places)], axis=1)

    def pairs(self, name: str, encoder: Encoder, again: Callable[[], Iterator[Part]]) -> PreferencePairs:
        """Return all of them."""
        if not self._arrays or not sum(map(len, self._arrays["row"])):
            lost = self._problems + self._unused
            why = listed([f"{count:,} {reason}" for reason, count in lost.most_common(3)]) if lost else "no rows"
            raise BadInputError(f"{name} has no preferences: it needs two texts per row, and which is better ({why}).")
        models = np.concatenate(self._arrays.pop("models"))
        words = sparse.vstack(self._arrays.pop("words"), format="csr")
        arrays = {key: np.concatenate(values) for key, values in self._arrays.items()}
        names = self._words
        if 1 < len(self._models) <= _MOST_MODELS:
            words = sparse.hstack([words, _by_model(models, len(self._models))], format="csr")
            names = (*names, *(f"answers of {model}" for model in self._models))
        warnings = [
            each for each in self._warnings if not (each.startswith(_ABOUT_ITEMS) or each.endswith("not ranked."))
        ]
        found = PreferencePairs(
            name=name,
            voter=arrays.pop("voter").astype(np.int32) if self._named else None,
            voters=tuple(self._voters),
            first_won=arrays.pop("first_won") if self._sides else None,
            words=sparse.csr_array(words),
            word_names=names,
            encoder=encoder,
            unused=dict(self._unused),
            rows=self._rows,
            problems=dict(self._problems.most_common()),
            left_out=self._left_out,
            where=self._where,
            columns=self._columns,
            warnings=tuple(warnings),
            set_aside=pl.concat(self._aside, how="diagonal_relaxed"),
            again=again,
            place=np.arange(len(arrays["row"])),
            **{key: arrays[key] for key in ("row", "prompt", "hashes", "weight", "looks", "meaning")},
        )
        return _said_once(found)


def _said_once(pairs: PreferencePairs) -> PreferencePairs:
    """Leave out rows that repeat what their voter already said of the prompt and the two texts."""
    if pairs.voter is None:
        return pairs
    said = {"prompt": pairs.prompt, "voter": pairs.voter, "one": pairs.hashes[:, 0], "other": pairs.hashes[:, 1]}
    new = pl.DataFrame(said).select(pl.struct(pl.all()).is_first_distinct()).to_series().to_numpy()
    if new.all():
        return pairs
    return replace(pairs.select(new), unused={**pairs.unused, "repeated rows": int((~new).sum())})


def _by_model(models: Indices, count: int) -> sparse.csr_array:
    """Return 1 where the preferred text is of a model and the other is not, and −1 the other way round."""
    rows = np.arange(len(models))
    signs = [sparse.csr_array((np.ones(len(rows), np.float32), (rows, models[:, side])), (len(rows), count))
             for side in (0, 1)]  # fmt: skip
    return signs[0] - signs[1]


def _numbered(known: dict[Any, int], names: Sequence[Any]) -> Indices:
    """Return the number of each name, giving new ones to new names."""
    return np.array([known.setdefault(name, len(known)) for name in names], dtype=np.int64).reshape(-1)


def _frames(source: Any, size: int) -> Iterator[tuple[pl.DataFrame, int]]:
    """Yield the table in parts of ``size`` rows, with the number of its first row as an editor counts."""
    if not isinstance(source, (str, Path)):
        frame, first_row = table_in_memory(source, list), 0
        yield from ((frame[start : start + size], first_row) for start in range(0, len(frame), size))
        return
    path, ending = Path(source), "".join(Path(source).suffixes[-2:]).lower()
    with damage_said(str(path)):
        if ending.endswith(".parquet"):
            table = pl.scan_parquet(path)
            for start in range(0, int(table.select(pl.len()).collect().item()), size):
                yield table.slice(start, size).collect(), 1
        elif ending.endswith((".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz")):
            with gzip.open(path, "rb") if ending.endswith(".gz") else path.open("rb") as file:
                if file.read(len(codecs.BOM_UTF8)) != codecs.BOM_UTF8:
                    file.seek(0)
                while lines := list(itertools.islice(file, size)):
                    yield json_lines(b"".join(lines), path.name, list), 1
        else:
            frame, first_row, *_ = read_table(path, list)
            yield from ((frame[start : start + size], first_row) for start in range(0, len(frame), size))
