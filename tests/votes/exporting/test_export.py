"""Cleaned votes as files: nothing is lost, they read back as they were, and preferences are those of the votes."""

import json
from collections import Counter

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from fairduel.errors import BadInputError
from fairduel.votes import audit, clean, export, preferences, rank, read_votes
from fairduel.votes.attacking.injection import inject
from fairduel.votes.attacking.liars import arena
from fairduel.votes.exporting import FILES
from fairduel.votes.reading.texts import _messages

OURS = ["weight", "flagged", "reason"]


@pytest.fixture(scope="module")
def table():
    votes, _ = arena(voters=60, votes_each=20, seed=4)
    rng = np.random.default_rng(0)
    prompts = np.array(["Which tree?", "Which leaf?"])[rng.integers(2, size=len(votes))]
    return votes.to_frame().with_columns(prompt=prompts, note=pl.lit("=1+1"), minute=np.arange(len(votes)) / 8)


@pytest.fixture(scope="module")
def cleaned(table):
    return clean(read_votes(table))


def same_votes(one, other):
    for name in ("first", "second", "result", "weight", "voter", "context", "time"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    assert (one.items, one.voters, one.contexts) == (other.items, other.voters, other.contexts)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_exported_votes_read_back_as_the_same_votes_and_ranking(ending, cleaned, tmp_path):
    export(cleaned, tmp_path, formats=[ending])
    file = str(tmp_path / f"votes.{ending}")
    again = read_votes(file, weight=None).votes
    same_votes(again, cleaned.votes)
    assert_frame_equal(rank(again).to_frame(), rank(cleaned.votes).to_frame())
    weight = read_votes(file).votes.weight
    np.testing.assert_array_equal(weight, cleaned.trust)
    file = tmp_path / f"ranking.{ending}"
    ranking = pl.read_csv(file, schema_overrides={"group": pl.String}) if ending == "csv" else pl.read_parquet(file)
    assert_frame_equal(ranking, rank(again, reliability=weight).to_frame())


def test_the_ranking_and_the_flags_are_those_of_the_audit(cleaned):
    found = audit(cleaned.votes, top=1)
    assert_frame_equal(cleaned.ranking.to_frame(), found.trusted.to_frame())
    frame = cleaned.to_frame()
    flagged = dict(found.voters.filter("flagged").select("voter", "why").iter_rows())
    assert len(flagged) > 3
    for voter, weight, is_flagged, reason in frame.select("voter", *OURS).iter_rows():
        assert is_flagged == (voter in flagged)
        assert reason == flagged.get(voter, "")
        assert not is_flagged or weight == 0.0


def test_all_columns_are_kept_and_rows_are_those_of_the_file(table, tmp_path):
    """Two rows are unusable, and four columns of the file have the names of ours."""
    own = table.with_columns(
        row=pl.lit("a"), weight=pl.lit(2), flagged=pl.lit("b"), reason=pl.lit("c"),
        winner=pl.when(pl.int_range(pl.len()).is_in([3, 7])).then(pl.lit("?")).otherwise("winner"),
    )  # fmt: skip
    own.write_csv(tmp_path / "votes.csv")
    lines = (tmp_path / "votes.csv").read_text().splitlines()
    reading = read_votes(tmp_path / "votes.csv")
    assert set(reading.set_aside["row"]) == {5, 9}
    found = clean(reading)
    frame = found.to_frame()
    renamed = [f"{name} (column)" if name in ("row", *OURS) else name for name in own.columns]
    assert frame.columns == ["row", *renamed, *OURS]
    assert len(frame) == len(own) - 2
    for values in frame.select("row", *renamed).iter_rows():
        assert lines[values[0] - 1] == ",".join(values[1:])
    np.testing.assert_array_equal(frame["weight"], 2.0 * found.trust)


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_columns_that_no_vote_needs_are_read_on_request(ending, table, tmp_path):
    file = tmp_path / f"votes.{ending}"
    nested = table.with_columns(talk=pl.Series([[{"role": "user", "content": "hi"}]] * len(table)))
    nested.write_ndjson(file) if ending == "jsonl" else nested.write_parquet(file)
    assert read_votes(file).table.columns == ["first", "second", "winner", "voter", "prompt", "minute"]
    reading = read_votes(file, whole=True)
    assert reading.table.columns == nested.columns
    same_votes(reading.votes, read_votes(table).votes)
    export(clean(reading), tmp_path)
    written = pl.read_csv(tmp_path / "votes.csv")
    assert json.loads(written["talk"][0]) == [{"role": "user", "content": "hi"}]
    assert written["note"][0] == "'=1+1"  # a spreadsheet would run it


def naive(cleaned, least):
    """The preferences of votes whose texts are the names, one by one."""
    scores = {standing.item: standing.score for standing in cleaned.ranking.standings}
    rows = []
    for place, (first, second, winner, prompt) in enumerate(
        cleaned.reading.table.select("first", "second", "winner", "prompt").iter_rows()
    ):
        if winner == "tie" or cleaned.trust[place] < least or (least and cleaned.flagged[place]):
            continue
        won, lost = (first, second) if winner == "first" else (second, first)
        rows.append((prompt, won, lost, max(0.0, scores[won] - scores[lost]), place))
    said = Counter(row[:3] for row in rows)
    return [(*row[:4], said[row[:3]], said[row[0], row[2], row[1]], row[4]) for row in rows]


@pytest.mark.parametrize("least", [0.0, 0.1, 1.0])
def test_preferences_are_those_counted_one_by_one(least, cleaned):
    found = preferences(cleaned, least_weight=least)
    columns = ["prompt", "chosen", "rejected", "margin", "votes_for", "votes_against", "row"]
    expected = naive(cleaned, least)
    assert [row[:3] + row[4:] for row in found.frame.select(columns).iter_rows()] == [r[:3] + r[4:] for r in expected]
    np.testing.assert_allclose(found.frame["margin"], [row[3] for row in expected], atol=1e-12)
    assert found.frame["flagged"].any() == (least == 0.0)
    assert sum(found.left_out.values()) + len(found.frame) == len(cleaned.votes)
    assert found.left_out["ties"] == int(cleaned.votes.is_tie.sum())


def test_margins_and_completions(cleaned):
    found = preferences(cleaned)
    margin = found.frame["margin"].to_numpy()
    assert margin.min() == 0.0 < margin.max()
    completions = found.completions()
    assert completions.columns[:3] == ["prompt", "completion", "label"]
    assert len(completions) == 2 * len(found.frame)
    pairs = zip(completions[::2].iter_rows(named=True), completions[1::2].iter_rows(named=True), strict=True)
    for row, (good, bad) in zip(found.frame.iter_rows(named=True), pairs, strict=True):
        assert (good["prompt"], good["completion"], good["label"]) == (row["prompt"], row["chosen"], True)
        assert (bad["prompt"], bad["completion"], bad["label"]) == (row["prompt"], row["rejected"], False)
        assert good["row"] == bad["row"] == row["row"]


def test_trl_files_have_the_documented_columns_and_types(cleaned, tmp_path):
    written = export(cleaned, str(tmp_path), formats=["trl", "kto"])
    rows = [json.loads(line) for line in (tmp_path / "trl.jsonl").read_text().splitlines()]
    assert len(rows) == written.files["trl.jsonl"] == len(written.preferences.frame)
    assert list(rows[0])[:4] == ["prompt", "chosen", "rejected", "margin"]
    assert {tuple(type(row[name]) for name in list(row)[:4]) for row in rows} == {(str, str, str, float)}
    labels = Counter(json.loads(line)["label"] for line in (tmp_path / "kto.jsonl").read_text().splitlines())
    assert labels == {True: len(rows), False: len(rows)}
    assert {file.name for file in tmp_path.iterdir()} == {"trl.jsonl", "kto.jsonl"}


# ---------------------------------------------------------------------- texts of the file's own


def said(role, content):
    return {"role": role, "content": content}


ASK, TEA, MILK, MORE = said("user", "A drink?"), said("assistant", "tea"), said("assistant", "milk"), said("user", "?")
DUELS = {
    "model_a": ["x", "y", "x", "x"],
    "model_b": ["y", "x", "y", "y"],
    "winner": ["model_a", "tie", "model_b", "model_b"],
}


def first_texts(file, roles=None, **columns):
    table = pl.DataFrame({**DUELS, **columns})
    table.write_ndjson(file) if file.suffix == ".jsonl" else table.write_parquet(file)
    found = preferences(clean(read_votes(file, **(roles or {}), whole=True)))
    return found.frame.select("prompt", "chosen", "rejected", "chosen_model").rows(), found.left_out


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_conversations_of_an_arena(ending, tmp_path):
    """What both have in common is the prompt; the same conversation twice says nothing."""
    one = [[ASK, TEA], [ASK, TEA], [ASK, TEA, MORE, TEA], [ASK, TEA]]
    other = [[ASK, MILK], [ASK, MILK], [ASK, TEA, MORE, MILK], [ASK, TEA]]
    texts, left_out = first_texts(tmp_path / f"v.{ending}", conversation_a=one, conversation_b=other)
    assert texts == [([ASK], [TEA], [MILK], "x"), ([ASK, TEA, MORE], [MILK], [TEA], "y")]
    assert left_out == {"ties": 1, "with the same text twice": 1}


def test_messages_of_several_parts():
    parts = [
        said("user", [{"type": "text", "text": "A"}, {"type": "image", "image": "…"}, {"type": "text", "text": "B"}])
    ]
    assert _messages(parts) == [said("user", "A\nB")]


@pytest.mark.parametrize("as_json", [True, False])
def test_prompt_and_responses_of_a_competition(as_json, tmp_path):
    """Kaggle's file has lists of turns, written as JSON."""
    write = json.dumps if as_json else list
    prompt = [write(["A drink?"])] * 2 + [write(["A drink?", "?"])] + [None]
    one = [write(["tea"]), write(["tea"]), write(["tea", "tea"]), write(["tea"])]
    other = [write(["milk"]), write(["milk"]), write(["tea", "milk"]), None]
    columns = {"prompt": prompt, "response_a": one, "response_b": other}
    texts, left_out = first_texts(tmp_path / "v.parquet", {"context": None}, **columns)
    assert texts == [([ASK], [TEA], [MILK], "x"), ([ASK, TEA, MORE], [MILK], [TEA], "y")]
    assert left_out == {"ties": 1, "without a text": 1}


def test_plain_texts_and_columns_the_other_way_round(tmp_path):
    columns = {"prompt": ["q"] * 4, "response_a": ["[1]", "a", "b", "same"], "response_b": ["c", "d", "e", "same"]}
    assert first_texts(tmp_path / "v.jsonl", **columns)[0] == [("q", "[1]", "c", "x"), ("q", "e", "b", "y")]
    found = clean(read_votes(tmp_path / "v.jsonl", first="model_b", second="model_a", whole=True))
    turned = {"chosen": ["c", "b"], "rejected": ["[1]", "e"], "chosen_model": ["y", "x"]}
    assert preferences(found).frame.select(*turned).to_dict(as_series=False) == turned


def test_preferences_stay_preferences(tmp_path):
    columns = {"prompt": ["q"] * 4, "chosen": ["good"] * 4, "rejected": ["bad"] * 4}
    roles = {"first": "rejected", "second": "chosen", "context": None}
    assert first_texts(tmp_path / "t.jsonl", roles, **columns)[0] == [
        ("q", "bad", "good", "bad"), ("q", "good", "bad", "good"), ("q", "good", "bad", "good"),
    ]  # fmt: skip  # here they are items, and another column says who won
    assert {row[:3] for row in first_texts(tmp_path / "v.jsonl", **columns)[0]} == {("q", "good", "bad")}
    messages = {"prompt": ["A drink?"] * 4, "chosen": [[ASK, TEA]] * 4, "rejected": [[ASK, MILK]] * 4}
    assert [row[:3] for row in first_texts(tmp_path / "w.parquet", **messages)[0]] == [([ASK], [TEA], [MILK])] * 3
    explicit = {"prompt": [[ASK]] * 4, "chosen": [[TEA]] * 4, "rejected": [[MILK]] * 4}
    assert [row[:3] for row in first_texts(tmp_path / "u.jsonl", **explicit)[0]] == [([ASK], [TEA], [MILK])] * 3


# ---------------------------------------------------------------------- reasons


def test_votes_that_count_less_without_a_flag_say_why():
    """The last of 30 voters copies the first on 60 duels; in another file a crowd promotes Oak."""
    rng = np.random.default_rng(0)
    first = rng.integers(8, size=60)
    won = rng.random((30, 60)) < 0.6
    won[-1] = won[0]
    answers = {
        "first": np.tile(first, 30).astype(str),
        "second": np.tile((first + rng.integers(1, 8, 60)) % 8, 30).astype(str),
        "winner": np.where(won, "first", "second").ravel(),
        "voter": np.repeat(np.arange(30), 60).astype(str),
        "context": np.tile(np.arange(60), 30).astype(str),
    }
    copied = clean(read_votes(pl.DataFrame(answers)))
    assert set(copied.to_frame().tail(60)["reason"]) == {"repeats the vote of a near-identical voter"}
    attacked = clean(
        read_votes(inject(arena(liars={}, seed=6)[0], "promote", "Oak", size=120, voters=60).votes.to_frame())
    )
    for found, start in ((copied, "repeats"), (attacked, "one of the occasional voters who, as a group,")):
        assert not found.flagged.any()
        reasons = found.to_frame()["reason"]
        np.testing.assert_array_equal(reasons != "", found.evidence.vote_weights(found.votes) < 1.0)
        assert all(reason.startswith(start) for reason in reasons if reason)
        assert any(reasons)


# ---------------------------------------------------------------------- edges


def test_ids_are_no_texts_to_train_on(tmp_path):
    ids = pl.DataFrame({"a": ["37", "model-9"], "b": ["model-9", "37"], "winner": ["a", "a"]})
    with pytest.raises(BadInputError, match="ids such as “37”, not texts"):
        preferences(clean(read_votes(ids, whole=True)))
    texts = pl.DataFrame({"id": ["37", "model-9"], "text": ["Drink tea.", "Drink milk."]})
    texts.write_csv(tmp_path / "names.csv")
    found = preferences(clean(read_votes(ids, names=tmp_path / "names.csv", whole=True)))
    assert found.frame["chosen"].to_list() == ["Drink tea.", "Drink milk."]


def test_votes_without_voters_all_count():
    found = clean(read_votes(pl.DataFrame({"a": ["x", "y"], "b": ["y", "x"], "winner": ["a", "tie"]})))
    assert found.to_frame().select(OURS).rows() == [(1.0, False, ""), (1.0, False, "")]
    assert preferences(found).frame["prompt"].to_list() == [""]


def test_items_that_only_ignored_votes_compare_have_no_margin():
    """With all votes kept, those of a weight of 0 in the file are still left out."""
    duels = {"a": ["x", "p", "x"], "b": ["y", "q", "p"], "winner": ["a", "b", "a"], "weight": [1, 1, 0]}
    found = preferences(clean(read_votes(pl.DataFrame(duels))), least_weight=0.0)
    assert found.frame["row"].to_list() == [0, 1]
    assert (found.frame["margin"] > 0.0).all()
    assert found.left_out == {"with a weight below 0": 1}


@settings(max_examples=20)
@given(seed=st.integers(0, 1000), size=st.integers(1, 60), voters=st.integers(1, 5))
def test_every_vote_is_a_preference_or_left_out(seed, size, voters):
    rng = np.random.default_rng(seed)
    names, first = np.array(["tea", "milk", "juice", "water"]), rng.integers(4, size=size)
    table = {
        "first": names[first],
        "second": names[(first + rng.integers(1, 4, size)) % 4],
        "winner": ["first", *rng.choice(["first", "second", "tie"], size - 1)],
        "voter": rng.integers(voters, size=size).astype(str),
    }
    found = clean(read_votes(pl.DataFrame(table)))
    assert len(found.to_frame()) == size
    kept = preferences(found)
    assert len(kept.frame) + sum(kept.left_out.values()) == size
    assert (kept.frame["margin"] >= 0.0).all()
    assert (kept.frame["votes_for"] >= 1.0).all()


def test_an_unknown_format_and_a_file_for_a_folder_are_refused(cleaned, tmp_path):
    with pytest.raises(BadInputError, match="'xlsx'"):
        export(cleaned, tmp_path / "new", formats=["csv", "xlsx"])
    assert not (tmp_path / "new").exists()
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInputError, match="cannot write to"):
        export(cleaned, tmp_path / "file" / "folder")
    with pytest.raises(BadInputError, match="least_weight"):
        export(cleaned, tmp_path / "new", formats=["trl"], least_weight=-1.0)
    assert not (tmp_path / "new").exists()
    assert set(export(cleaned, tmp_path, formats=["kto", "trl", "parquet", "csv"]).files) == set(FILES)
