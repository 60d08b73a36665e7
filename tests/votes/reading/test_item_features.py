import numpy as np
import polars as pl
import pytest

from fairduel import BadInputError
from fairduel.votes import Votes, rank, read_features
from fairduel.votes.reading.features import scaled

VALUES = np.array([[3.0, 4.0], [0.0, 1.0], [2.0, 0.0]])


def votes(items="abc", **changes):
    return Votes.from_arrays(items, first=[0, 1], second=[1, 2], result=[1, 0], **changes)


def in_contexts():
    return votes(context=[1, 0], contexts=["x", "y"])


def differences(features, cast):
    return features.of(cast, cast.first) - features.of(cast, cast.second)


def test_the_longest_feature_has_norm_one_and_the_factor_is_told():
    features = scaled(VALUES, votes())
    assert features.factor == 5.0
    np.testing.assert_allclose(features.values, VALUES / 5)
    np.testing.assert_allclose(differences(features, votes()), (VALUES[[0, 1]] - VALUES[[1, 2]]) / 5)
    np.testing.assert_allclose(features.average(), VALUES / 5)


def test_features_of_a_context_are_those_of_the_vote():
    table = np.stack([VALUES, 2 * VALUES])
    features = scaled(table, in_contexts())
    assert features.factor == 10.0
    np.testing.assert_allclose(differences(features, in_contexts())[0], (table[1, 0] - table[1, 1]) / 10)
    np.testing.assert_allclose(differences(features, in_contexts())[1], (table[0, 1] - table[0, 2]) / 10)
    np.testing.assert_allclose(features.average(), 1.5 * VALUES / 10)


def test_arrays_are_found_by_name(tmp_path):
    path = tmp_path / "features.npz"
    np.savez(path, items=["c", "b", "a", "other"], phi=np.vstack([VALUES[::-1], [[9.0, 9.0]]]), junk=np.ones((4, 2)))
    features = read_features(path, votes())
    np.testing.assert_allclose(features.values * features.factor, VALUES)
    assert features.source == "features.npz, array phi"
    assert read_features(path, votes(), array="junk").values.shape == (3, 2)


def test_numbered_items_and_contexts_need_no_names(tmp_path):
    path = tmp_path / "features.npz"
    table = np.arange(24.0).reshape(3, 4, 2)
    np.savez(path, phi=table)
    numbered = votes(items=["1", "3", "0"], context=[1, 0], contexts=["2", "0"])
    features = read_features(path, numbered)
    np.testing.assert_allclose(features.values * features.factor, table[[2, 0]][:, [1, 3, 0]])
    with pytest.raises(BadInputError, match="needs an array items"):
        read_features(path, votes())
    with pytest.raises(BadInputError, match="needs an array contexts"):
        read_features(path, votes(items=["1", "3", "0"], context=[1, 0], contexts=["2", "7"]))


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_tables_have_a_column_for_each_feature(tmp_path, kind):
    table = pl.DataFrame({"u": VALUES[:, 0], "item": list("abc"), "v": VALUES[:, 1]})
    path = tmp_path / f"features.{kind}"
    getattr(table.sample(fraction=1, shuffle=True, seed=1), f"write_{kind}")(path)
    features = read_features(path, votes())
    np.testing.assert_allclose(features.values * features.factor, VALUES)


def test_tables_can_have_contexts_and_need_only_what_was_voted_on(tmp_path):
    path = tmp_path / "features.csv"
    path.write_text("context,item,u\nx,b,1\nx,c,2\ny,a,3\ny,b,4\n")
    features = read_features(path, in_contexts())
    np.testing.assert_allclose(differences(features, in_contexts()).ravel(), [-0.25, -0.25])
    path.write_text("context,item,u\nx,b,1\ny,a,3\ny,b,4\n")
    with pytest.raises(BadInputError, match="no finite features for the item 'c' in the context 'x'"):
        read_features(path, in_contexts())


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("f.csv", "name,u\na,1\n", "column item"),
        ("f.csv", "item,u\na,x\nb,y\nc,z\n", "must be numbers"),
        ("f.csv", "item\na\nb\nc\n", "must be numbers"),
        ("f.csv", "item,u\na,1\na,2\nb,1\nc,1\n", "two rows"),
        ("f.csv", "item,u\na,1\nb,1\n", "no finite features for the item 'c'"),
        ("f.csv", "item,u\na,0\nb,0\nc,0\n", "are 0"),
        ("f.csv", "", "empty"),
        ("f.npz", "torn", "corrupt or not an npz file|cannot read"),
        ("f.parquet", "torn", "cannot read"),
        ("f.txt", "", "unsupported file type"),
    ],
)
def test_bad_files_are_one_sentence(tmp_path, name, text, reason):
    (tmp_path / name).write_text(text)
    with pytest.raises(BadInputError, match=reason):
        read_features(tmp_path / name, votes())


def test_bad_arrays_are_one_sentence(tmp_path):
    path = tmp_path / "features.npz"
    np.savez(path, one=np.ones((3, 2)), two=np.ones((3, 2)))
    with pytest.raises(BadInputError, match=r"name the array of features\.npz with the features"):
        read_features(path, votes())
    with pytest.raises(BadInputError, match="did you mean 'one'"):
        read_features(path, votes(), array="on")
    np.savez(path, items=["a", "b"], phi=np.ones((3, 2)))
    with pytest.raises(BadInputError, match="no features for 'c'"):
        read_features(path, votes())
    for values in (np.ones((2, 2)), np.ones(3), np.ones((3, 0)), np.full((3, 1), np.nan)):
        with pytest.raises(BadInputError):
            scaled(values, votes())
    with pytest.raises(BadInputError, match="contexts"):
        scaled(np.ones((3, 3, 2)), in_contexts())


def test_whole_numbers_are_features_and_no_item_is_named_twice(tmp_path):
    path = tmp_path / "features.npz"
    np.savez(path, items=["a", "b", "c"], features=VALUES.astype(int))
    np.testing.assert_allclose(read_features(path, votes()).values, VALUES / 5)
    np.savez(path, items=["a", "b", "c", "a"], features=np.vstack([VALUES, VALUES[:1]]))
    with pytest.raises(BadInputError, match=r"the array items of features\.npz contains a name twice"):
        read_features(path, votes())


def test_mapped_features_let_an_unseen_item_borrow_where_a_linear_score_cannot():
    """The nearer to the middle the better; the middle itself lost its only vote."""
    ideal, count = 4, 9
    pairs = [(i, j) for i in range(count) for j in range(i) if ideal not in (i, j)] * 4
    closer = [(i, j) if abs(i - ideal) < abs(j - ideal) else (j, i) for i, j in pairs if i + j != 2 * ideal]
    winners, losers = (np.array(part) for part in zip(*closer, (3, ideal), strict=True))
    cast = Votes.from_arrays([f"item {n}" for n in range(count)], winners, losers, np.ones(len(winners)))
    linear = scaled(np.arange(count)[:, None] - 4.0, cast)
    placed = {
        name: [each.item for each in rank(cast, features=made).standings].index(f"item {ideal}")
        for name, made in (("linear", linear), ("mapped", linear.mapped("rbf(0.5)")))
    }
    assert placed["mapped"] < placed["linear"]
    assert placed["mapped"] <= 2


def test_a_map_keeps_what_is_missing_and_refuses_to_learn():
    table = np.stack([VALUES, VALUES])
    table[1, 2] = np.nan
    cast = votes(context=[0, 0], contexts=["x", "y"])
    mapped = scaled(table, cast).mapped("quadratic")
    assert mapped.values.shape == (2, 3, 5)
    assert np.isnan(mapped.values[1, 2]).all()
    assert np.isfinite(mapped.values[0]).all()
    with pytest.raises(BadInputError, match="learns from an agent's votes; choose a kernel"):
        scaled(VALUES, votes()).mapped("neural")
