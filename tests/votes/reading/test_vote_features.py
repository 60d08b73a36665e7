"""Features per vote: the fit against slow versions, and what style control is for."""

import json

import numpy as np
import polars as pl
import pytest
from scipy import optimize, special

from fairduel import BadInputError
from fairduel.votes import Votes, audit, rank, read_features, read_votes
from fairduel.votes.attacking.injection import inject
from fairduel.votes.ranking.design_matrix import PairsAndNumbers, Rows
from fairduel.votes.ranking.rank import summarise
from fairduel.votes.ranking.robust_fit import fixed_point, robust_fit

SKILL, WORDS = np.array([1.0, 0.5, 0.0, -0.5, -1.0]), np.array([0.0, 0.5, 1.0, 2.0, 3.0])
NAMES = tuple("abcde")


def voted(rng, *, count=3000, effect=1.5, voters=0, taste=0.0):
    """Votes on items of which the worst write the longest answers, which win."""
    first = rng.integers(5, size=count)
    second = (first + rng.integers(1, 5, size=count)) % 5
    longer = WORDS[first] - WORDS[second] + rng.normal(size=count)
    longer /= np.sqrt(np.mean(longer**2))
    who = rng.integers(max(voters, 1), size=count)
    own = effect + taste * rng.normal(size=max(voters, 1))
    chance = special.expit(SKILL[first] - SKILL[second] + own[who] * longer)
    result = (rng.random(count) < chance).astype(float)
    people = {"voter": who, "voters": [f"v{n}" for n in range(voters)]} if voters else {}
    return Votes.from_arrays(NAMES, first, second, result, features=longer[:, None], feature_names=["length"], **people)


@pytest.fixture
def design():
    """Pairs with numbers, and the same as rows of numbers."""
    rng = np.random.default_rng(4)
    first = rng.integers(4, size=60).astype(np.int32)
    second = ((first + rng.integers(1, 4, size=60)) % 4).astype(np.int32)
    pairs = PairsAndNumbers(first, second, rng.normal(size=(60, 2)), items=4)
    return pairs, Rows(pairs.of_votes(np.arange(60)).toarray())


def test_pairs_with_numbers_are_rows(design):
    pairs, rows = design
    rng = np.random.default_rng(5)
    coefficients, theta, matrix = rng.random(60), rng.normal(size=6), np.eye(6) + rows.information(np.ones(60))
    assert (len(pairs), pairs.dimension) == (60, 6)
    np.testing.assert_allclose(pairs.information(coefficients), rows.information(coefficients), atol=1e-12)
    np.testing.assert_allclose(pairs.margins(theta), rows.margins(theta), atol=1e-12)
    np.testing.assert_allclose(pairs.margins(theta[None]), rows.margins(theta[None]), atol=1e-12)
    np.testing.assert_allclose(pairs.total(coefficients), rows.total(coefficients), atol=1e-12)
    np.testing.assert_allclose(pairs.widths(matrix), rows.widths(matrix), atol=1e-12)
    one, other = (fixed_point(each, np.ones(60), 0.1, 0.01 * np.eye(6))[0] for each in (pairs, rows))
    np.testing.assert_allclose(one, other, rtol=1e-6)
    assert one.min() < 0.5


@pytest.mark.parametrize("ridge", [0.0, 0.3])
def test_the_estimate_is_that_of_an_independent_optimiser(design, ridge):
    pairs, rows = design
    rng = np.random.default_rng(6)
    totals = rng.integers(1, 4, size=60).astype(float)
    wins = rng.binomial(totals.astype(int), special.expit(rows.margins(rng.normal(size=6))))

    def loss(theta):
        margins = rows.values @ theta
        return totals @ np.logaddexp(0.0, margins) - wins @ margins + 0.5 * ridge * theta @ theta

    found, _ = pairs.estimate(totals, wins, ridge)
    slopes = optimize.approx_fprime(found, loss, 1e-6)
    assert np.abs(slopes).max() < 1e-4
    best = optimize.minimize(loss, np.zeros(6), method="Nelder-Mead", options={"maxiter": 40_000, "fatol": 1e-12})
    assert loss(found) <= best.fun + 1e-9
    np.testing.assert_allclose(pairs.margins(found), pairs.margins(best.x), atol=1e-2)


def test_the_robust_fit_is_that_of_rows(design):
    pairs, rows = design
    rng = np.random.default_rng(7)
    won, groups = rng.integers(2, size=60).astype(float), {"voters": rng.integers(6, size=60).astype(np.int32)}
    one, other = (robust_fit(each, np.arange(60), won, np.ones(60), groups=groups) for each in (pairs, rows))
    np.testing.assert_allclose(one.theta, other.theta, atol=1e-4)
    np.testing.assert_allclose(one.uncertainty.covariance, other.uncertainty.covariance, rtol=1e-3, atol=1e-5)


def test_long_answers_do_not_win_at_equal_length():
    votes = voted(np.random.default_rng(0), effect=3.0)
    ranking = rank(votes, draws=100)
    assert [standing.item for standing in ranking.standings] == list(NAMES)
    plain = rank(votes.without_features(), draws=100)
    assert [standing.item for standing in plain.standings] == list(NAMES[::-1])
    assert [standing.plain_rank for standing in ranking.standings] == [5, 4, 3, 2, 1]
    [effect] = ranking.effects
    assert effect.feature == "length"
    assert abs(effect.coefficient - 3.0) < 3 * effect.error
    assert "equal features per vote. Log-odds that these add: length +2." in summarise(ranking)[-1]
    assert plain.effects == ()


@pytest.mark.parametrize("voters", [0, 40])
def test_errors_of_effects_and_scores_are_right(voters):
    """Over many files, effects and scores vary as much as their errors say: not half as much, nor twice.

    Voters who differ in how much they like long answers agree less, so the effect of length is smaller than their mean.
    """
    rng, found = np.random.default_rng(1), []
    for _ in range(40):
        ranking = rank(voted(rng, count=1500, voters=voters, taste=0.6 if voters else 0.0), draws=100)
        [effect] = ranking.effects
        found.append([effect.coefficient, ranking.scores[0], effect.error, np.sqrt(ranking.covariance[0, 0])])
    means, spreads = np.mean(found, axis=0), np.std(found, axis=0)
    ratios = spreads[:2] / means[2:]
    assert (ratios > 0.72).all()
    assert (ratios < 1.35).all()
    if not voters:
        assert (np.abs(means[:2] - [1.5, SKILL[0]]) < 0.5 * means[2:]).all()


def test_tastes_for_features_are_not_tastes_for_items():
    votes = voted(np.random.default_rng(8), count=6000, voters=60, taste=0.8)
    settings = rank(votes, draws=100).settings
    assert 0.5 < settings["taste_of_voters_for_features"] < 1.1
    assert settings["taste_of_voters"] < 0.25


def test_features_of_items_and_of_votes_go_together(tmp_path):
    votes = voted(np.random.default_rng(2))
    path = tmp_path / "features.csv"
    path.write_text("item,size\n" + "".join(f"{name},{number}\n" for number, name in enumerate(NAMES)))
    ranking = rank(votes, features=read_features(path, votes), draws=100)
    assert [standing.item for standing in ranking.standings] == list(NAMES)
    assert abs(ranking.effects[0].coefficient - 1.5) < 3 * ranking.effects[0].error


def test_what_counts_votes_only_ignores_features():
    votes = voted(np.random.default_rng(3), count=400, voters=20)
    assert inject(votes, "promote", "a", size=3).votes.features is None
    assert audit(votes, top=1).everyone.effects == ()
    assert votes.select(votes.result == 1.0).features.shape == (int(votes.result.sum()), 1)


def test_features_are_repeated_with_their_votes():
    votes = Votes.from_arrays(
        "ab", [0, 1], [1, 0], [1, 0], weight=[2, 1], features=[[1.0, 2.0], [3.0, 4.0]], feature_names=["x", "y"]
    )
    assert votes.written_out().features.tolist() == [[1.0, 2.0], [1.0, 2.0], [3.0, 4.0]]
    for bad in ([[1.0, 2.0]], [1.0, 2.0], [["x", "y"]] * 2, [[np.nan, 0.0]] * 2):
        with pytest.raises(BadInputError, match=r"features must be finite numbers of shape \(2, 2\)"):
            Votes.from_arrays("ab", [0, 1], [1, 0], [1, 0], features=bad, feature_names=["x", "y"])


# ---------------------------------------------------------------------- reading


def metadata(a, b, headers=0):
    counts = {"h1": headers, "h2": 1}
    return {
        "sum_assistant_a_tokens": a,
        "sum_assistant_b_tokens": b,
        **{f"header_count_{side}": counts if side == "a" else {"h1": 1, "h2": 0} for side in "ab"},
        **{f"list_count_{side}": {"ordered": side == "a", "unordered": 0} for side in "ab"},
        **{f"bold_count_{side}": {"**": 2, "__": a % 3} if side == "a" else {"**": 0, "__": 0} for side in "ab"},
    }


LINES = [
    {"model_a": "oak", "model_b": "elm", "winner": "model_a", "conv_metadata": metadata(300, 100, headers=2)},
    {"model_a": "elm", "model_b": "oak", "winner": "model_b", "conv_metadata": metadata(0, 0)},
    {"model_a": "elm", "model_b": "oak", "winner": "tie", "conv_metadata": metadata(100, 300)},
]


@pytest.mark.parametrize("kind", ["jsonl", "json", "parquet", "memory"])
def test_style_is_read_as_lmarena_counts_it(tmp_path, kind):
    path = tmp_path / f"arena.{kind}"
    if kind == "parquet":
        pl.DataFrame(LINES).write_parquet(path)
    else:
        lines = "".join(json.dumps(line) + "\n" for line in LINES)
        path.write_text(lines if kind == "jsonl" else json.dumps(LINES))
    votes = read_votes(LINES if kind == "memory" else path, style=True).votes
    assert votes.feature_names == ("length", "headers", "lists", "bold")
    lengths, headers = np.array([0.5, 0.0, -0.5]), np.array([0.5, 0.0, 0.0])
    expected = [each / np.sqrt(np.mean(each**2)) for each in (lengths, headers, np.ones(3), np.ones(3))]
    np.testing.assert_allclose(votes.features, np.column_stack(expected))


def test_numbers_may_be_given_by_column_or_pair(tmp_path):
    path = tmp_path / "votes.csv"
    path.write_text("first,second,winner,gain,x,y\ntea,milk,a,2,3,1\nmilk,tea,b,-2,1,3\ntea,milk,a,?,1,1\n")
    reading = read_votes(path, vote_features=["gain", "x:y"])
    assert reading.votes.feature_names == ("gain", "x:y")
    assert reading.votes.features.tolist() == [[1.0, 1.0], [-1.0, -1.0]]
    assert reading.set_aside.select("row", "reason").rows() == [(4, "gain is not a number")]
    for features, reason in {
        ("gaim",): "has no column 'gaim': did you mean 'gain'",
        ("gain:x",): "negative numbers in gain:x",
        ("first",): r"votes\.csv has no numbers in first\.",
    }.items():
        with pytest.raises(BadInputError, match=reason):
            read_votes(path, vote_features=features, strict=True)
    path.write_text("first,second,winner,gain\ntea,milk,a,0\n")
    with pytest.raises(BadInputError, match=r"the vote feature gain is 0 in all votes of votes\.csv: leave it out"):
        read_votes(path, vote_features=["gain"])
    with pytest.raises(BadInputError, match="has no column 'conv_metadata"):
        read_votes(path, style=True)


def test_style_uses_the_counts_that_there_are():
    table = [{**line, "conv_metadata": {"bold_count_a": {"**": 2}, "bold_count_b": {"**": 0}}} for line in LINES]
    assert read_votes(table, style=True).votes.feature_names == ("bold",)
    with pytest.raises(BadInputError, match="the table has none of the counts of LMArena's style control"):
        read_votes([{**line, "conv_metadata": {"turns": 1}} for line in LINES], style=True)
