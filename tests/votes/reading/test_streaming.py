import numpy as np
import polars as pl
import pytest

from fairduel.votes import rank, read_votes
from fairduel.votes.ranking.bradley_terry import wins
from fairduel.votes.reading import streaming


@pytest.fixture
def file(tmp_path):
    rng = np.random.default_rng(0)
    first = rng.integers(8, size=4000)
    second = (first + rng.integers(1, 8, size=4000)) % 8
    names, winners = pl.Series([f"model {k}" for k in range(8)]), pl.Series(["first", "second", "tie"])
    table = pl.DataFrame(
        {
            "model_a": names.gather(first),
            "model_b": names.gather(second),
            "winner": winners.gather(rng.integers(3, size=4000)),
            "voter": rng.integers(50, size=4000).astype(str),
            "time": rng.integers(10**9, size=4000),
        }
    )
    table.write_parquet(tmp_path / "votes.parquet")
    return tmp_path / "votes.parquet"


def test_a_file_that_streams_by_has_the_same_wins_as_one_that_is_read(file, monkeypatch):
    read = read_votes(file)
    monkeypatch.setattr(streaming, "MOST_IN_MEMORY", 3999)
    monkeypatch.setattr(streaming, "_AT_ONCE", 1500)
    streamed = read_votes(file)
    assert streamed.rows == read.rows == 4000
    assert streamed.votes.items == read.votes.items
    assert len(streamed.votes) <= 3 * 8 * 7
    assert wins(streamed.votes).tolist() == wins(read.votes).tolist()
    assert (streamed.votes.voter, streamed.votes.time) == (None, None)
    assert "4,000 rows" in streamed.warnings[0]
    assert "voters and times are left out" in streamed.warnings[0]
    one, other = rank(streamed.votes), rank(read.votes.select(np.ones(4000, np.bool_)))
    assert one.scores == pytest.approx(other.scores, abs=1e-9)
    assert any("independent" in note for note in one.notes)


def test_rows_without_a_winner_are_set_aside_once_per_kind(file, monkeypatch):
    monkeypatch.setattr(streaming, "MOST_IN_MEMORY", 3999)
    table = pl.read_parquet(file).with_columns(
        pl.when(pl.int_range(pl.len()) % 2 == 0).then(pl.lit("nobody")).otherwise(pl.col("winner")).alias("winner")
    )
    table.write_parquet(file)
    reading = read_votes(file)
    assert reading.votes.weight.sum() == 2000
    assert len(reading.set_aside) <= 8 * 7


def test_small_files_weights_and_filters_are_read_row_by_row(file, monkeypatch):
    assert not streaming.is_streamed(file, {})
    monkeypatch.setattr(streaming, "MOST_IN_MEMORY", 3999)
    assert streaming.is_streamed(file, {})
    assert read_votes(file, where={"voter": "7"}).votes.voter is not None
    pl.read_parquet(file).with_columns(weight=2.0).write_parquet(file)
    assert not streaming.is_streamed(file, {})
    assert len(read_votes(file).votes) == 4000
