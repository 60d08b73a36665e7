"""Certificates against brute force, and against a fit by scipy: proven ≤ the true smallest number ≤ found."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize
from scipy.special import expit

from fairduel.errors import BadInputError
from fairduel.votes import Votes, rank
from fairduel.votes.certifying import proof as proofs
from fairduel.votes.certifying.certificates import certify, with_certificates
from fairduel.votes.certifying.proof import Proof, _voter_norms
from fairduel.votes.certifying.vote_counts import count_votes
from fairduel.votes.ranking.bradley_terry import fit_scores, wins

SCORES = {3: np.array([0.25, 0.0, -0.2]), 4: np.array([0.8, 0.3, -0.2, -0.9])}


def random_votes(seed, items, voters, each, *, patterns=None, tie_share=0.0):
    """Votes by voters with ``each`` votes; voters with the same one of the ``patterns`` vote alike."""
    rng = np.random.default_rng(seed)
    types = voters if patterns is None else patterns
    first = rng.integers(items, size=(types, each))
    second = (first + rng.integers(1, items, (types, each))) % items
    chance = expit(SCORES[items][first] - SCORES[items][second])
    result = (rng.random((types, each)) < chance).astype(float)
    result[rng.random((types, each)) < tie_share] = 0.5
    pattern = np.arange(voters) % types
    columns = (part[pattern].ravel() for part in (first, second, result))
    names = [str(number) for number in range(voters)]
    return Votes.from_arrays("abcd"[:items], *columns, voter=np.repeat(np.arange(voters), each), voters=names)


def batch_fit(won, ridge, start):
    """Scores (B, K) of many matrices of wins (B, K, K), by Newton steps from ``start`` (K,)."""
    theta, games = np.tile(start, (len(won), 1)), won + won.transpose(0, 2, 1)
    for _ in range(6):
        p = expit(theta[:, :, None] - theta[:, None, :])
        gradient = (won - games * p).sum(axis=2) - ridge * theta
        between = games * p * (1 - p)
        hessian = np.einsum("bi,ij->bij", between.sum(axis=2) + ridge, np.eye(won.shape[1])) - between
        theta += np.clip(np.linalg.solve(hessian, gradient[:, :, None])[:, :, 0], -2, 2)
    return theta


def matrix(votes, weight, results):
    """Wins (K, K), vote by vote; a result of NaN is a missing vote."""
    won = np.zeros((len(votes.items),) * 2)
    for one, other, w, result in zip(votes.first, votes.second, weight, results, strict=True):
        if not np.isnan(result):
            won[one, other] += w * result
            won[other, one] += w * (1 - result)
    return won


def ranks_of(scores):
    return np.argsort(np.argsort(-scores, axis=-1, kind="stable"), axis=-1) + 1


def true_smallest(votes, ranking, units, limit):
    """The smallest number of units that changes the rank of each item (K,), by trying all sets and all answers.

    Units that answered alike are exchangeable. Each of their votes may be won, lost, tied or missing.
    """
    weight, ridge = votes.weight * ranking.weights, ranking.settings["ridge"]
    base = matrix(votes, weight, votes.result)
    kinds: dict[tuple, list] = {}
    for unit in np.unique(units):
        rows = np.flatnonzero(units == unit)
        parts = zip(votes.first[rows], votes.second[rows], votes.result[rows], weight[rows].round(12), strict=True)
        kinds.setdefault(tuple(sorted(parts)), []).append(rows)
    options, kind_of = [], []
    for number, members in enumerate(kinds.values()):
        part = votes.select(np.isin(np.arange(len(votes)), members[0]))
        inside = weight[np.sort(members[0])]
        before = matrix(part, inside, part.result)
        for answers in itertools.product((0.0, 0.5, 1.0, np.nan), repeat=len(part)):
            options.append(matrix(part, inside, np.array(answers)) - before)
            kind_of.append(number)
    options, kind_of = np.array(options), np.array(kind_of)
    available = np.array([len(members) for members in kinds.values()])
    _, distinct = np.unique(
        np.column_stack([kind_of, options.reshape(len(options), -1).round(9)]), axis=0, return_index=True
    )
    options, kind_of = options[distinct], kind_of[distinct]
    before = ranks_of(ranking.scores)
    smallest = np.full(len(votes.items), limit + 1)
    for size in range(limit, 0, -1):
        sets = np.array(list(itertools.combinations_with_replacement(range(len(options)), size)))
        taken = np.stack([(kind_of[sets] == number).sum(axis=1) for number in range(len(available))], axis=1)
        sets = sets[(taken <= available).all(axis=1)]
        after = ranks_of(batch_fit(np.maximum(base + options[sets].sum(axis=1), 0.0), ridge, ranking.scores))
        smallest[(after != before).any(axis=0)] = size
    return smallest


def bounds(votes, ranking, kind):
    """Proven minimum and number found of each item, both (K,)."""
    found = {each.item: each for each in certify(votes, ranking)}
    pairs = [(getattr(found[item], f"{kind}_proven"), getattr(found[item], f"{kind}_found")) for item in votes.items]
    return np.array(pairs, dtype=float).T


LIMIT = {"votes": 4, "voters": 2}  # sets of more are too many


def case(seed, kind):
    """Votes that few votes or voters change, their ranking, and how many do; every other seed has ties."""
    votes = random_votes(seed, items=3, voters=90, each=2, patterns=6, tie_share=0.25 if seed % 2 else 0.0)
    if seed in (3, 8):  # some rows count half
        votes = replace(votes, weight=np.where(votes.voter % 6 == 0, 0.5, 1.0))
    ranking = rank(votes, draws=100)
    units = np.arange(len(votes)) if kind == "votes" else votes.voter
    return votes, ranking, true_smallest(votes, ranking, units, LIMIT[kind])


@pytest.mark.parametrize("kind", ["votes", "voters"])
@pytest.mark.parametrize("seed", [0, 1, 3, 8, 12, 13])
def test_bounds_hold_the_truth_between_them(seed, kind):
    votes, ranking, truth = case(seed, kind)
    proven, found = bounds(votes, ranking, kind)
    known = truth <= LIMIT[kind]
    assert known.any() or seed in (1, 3, 8)
    assert (np.minimum(proven, LIMIT[kind] + 1) <= truth).all()
    assert (truth <= np.minimum(found, LIMIT[kind] + 1)).all()
    assert (found[known] <= truth[known] + 1).all()  # here the search comes within one


@pytest.mark.parametrize("kind", ["votes", "voters"])
@pytest.mark.parametrize("part", ["certifying.proof.Proof._most", "certifying.proof._top_sum"])
def test_a_proof_that_is_wrong_by_a_factor_of_two_is_caught(kind, part, monkeypatch):
    if part == "certifying.proof._top_sum":
        right = proofs._top_sum
        monkeypatch.setattr(Proof, "_most", lambda *_: 0.0)  # otherwise it saves the box from its error
    else:
        right = Proof._most
        monkeypatch.setattr(proofs.ScoreBox, "fits", lambda _: False)
    monkeypatch.setattr(f"fairduel.votes.{part}", lambda *arguments: 0.5 * right(*arguments))
    wrong = 0
    for seed in (0, 12, 13):
        votes, ranking, truth = case(seed, kind)
        proven, _ = bounds(votes, ranking, kind)
        wrong += ((truth <= LIMIT[kind]) & (proven > truth)).sum()
    assert wrong >= 4


@pytest.mark.parametrize("kind", ["votes", "voters"])
@pytest.mark.parametrize("seed", [0, 8, 13])
def test_each_of_the_two_proofs_holds_alone(seed, kind, monkeypatch):
    votes, ranking, truth = case(seed, kind)
    for owner, name, no_other in (
        (Proof, "_way", lambda *_: (None, 0.0)),
        (proofs.ScoreBox, "fits", lambda _: False),
    ):
        with monkeypatch.context() as patched:
            patched.setattr(owner, name, no_other)
            proven, _ = bounds(votes, ranking, kind)
        assert (np.minimum(proven, LIMIT[kind] + 1) <= truth).all()
        assert proven.max() > 1


@given(margin=st.floats(-6, 6), down=st.floats(0, 5), up=st.floats(0, 5))
def test_curvature_has_these_extremes(margin, down, up):
    x = np.linspace(-down, up, 2001)
    bent = expit(margin + x) - expit(margin) - expit(margin) * expit(-margin) * x
    low, high = proofs.curvature(*(np.array([number]) for number in (margin, down, up)))
    assert low[0] - 1e-14 <= min(bent.min(), 0.0) <= low[0] + 1e-5
    assert high[0] - 1e-5 <= max(bent.max(), 0.0) <= high[0] + 1e-14


@pytest.mark.parametrize("by_voter", [False, True])
def test_no_lies_leave_the_box(by_voter):
    votes = random_votes(2, items=4, voters=60, each=5, tie_share=0.2)
    kinds, start = count_votes(votes, "half", by_voter=by_voter), fit_scores(wins(votes), ridge=1.0)
    box, rng = proofs.ScoreBox(kinds, start), np.random.default_rng(0)
    units, largest = len(kinds.available), np.zeros((4, 4))
    for size in (1, 2, 4):
        falls = box.falls(size)
        for towards in start.covariance[box._one] - start.covariance[box._other]:
            for _ in range(30):
                taken = np.bincount(rng.choice(units, size, replace=False), minlength=units)
                moved = start.scores - fit_scores(kinds.after(taken, "false", towards), ridge=1.0).scores
                fallen = np.subtract.outer(moved, moved)
                assert (fallen <= falls + 1e-12).all()
                largest = np.maximum(largest, fallen / np.where(falls > 0.0, falls, np.inf))
    assert largest[np.triu_indices(4, 1)].min() > 0.4
    assert box.falls(40 if by_voter else 200) is None  # such lies may move the scores anywhere


def test_no_lies_move_the_scores_beyond_the_radius_of_the_proof():
    votes = random_votes(2, items=4, voters=60, each=10, tie_share=0.2)
    kinds, start = count_votes(votes, "half", by_voter=True), fit_scores(wins(votes), ridge=1.0)
    proof, information = Proof(kinds, start, "false"), np.linalg.pinv(start.covariance)
    rng, norms, distances = np.random.default_rng(0), np.zeros(60), []
    for size in (1, 2, 3):
        for _ in range(200):
            units = np.bincount(rng.choice(60, size, replace=False), minlength=60)
            towards = rng.normal(size=4)
            after = kinds.after(units, "false", towards)
            gradient = (after - kinds.won(kinds.count)).sum(axis=1)
            if size == 1:
                norm = np.sqrt(gradient @ start.covariance @ gradient)
                norms[units == 1] = np.maximum(norms[units == 1], norm)
            moved = fit_scores(after, ridge=1.0).scores - start.scores
            distances.append(np.sqrt(moved @ information @ moved) / proof._radius(size))
    assert 0.3 < max(distances) <= 1.0
    assert (norms <= proof._norms).all()
    assert (norms / proof._norms).max() > 0.8  # of the right size, not just large


def test_the_norm_of_a_voter_with_many_votes_is_split(monkeypatch):
    kinds = count_votes(random_votes(2, items=4, voters=3, each=30, tie_share=0.2), "half", by_voter=True)
    covariance = fit_scores(kinds.won(kinds.count), ridge=1.0).covariance
    whole = _voter_norms(kinds, kinds.voter, covariance)
    monkeypatch.setattr("fairduel.votes.certifying.proof._MOST_AT_ONCE", 4)
    assert (_voter_norms(kinds, kinds.voter, covariance) > whole).all()


@given(seed=st.integers(0, 10**6), ties=st.sampled_from(["half", "drop"]))
@settings(max_examples=12)
def test_voters_with_one_vote_each_are_votes(seed, ties):
    votes = random_votes(seed, items=4, voters=80, each=1, tie_share=0.2)
    for each in certify(votes, rank(votes, draws=100, ties=ties)):
        assert (each.voters_proven, each.voters_found) == (each.votes_proven, each.votes_found)
        assert each.votes_found is None or each.votes_proven <= each.votes_found


@given(seed=st.integers(0, 10**6))
@settings(max_examples=12)
def test_twice_as_many_voters_who_vote_alike_need_twice_as_many_lies(seed):
    votes = random_votes(seed, items=4, voters=30, each=4, tie_share=0.1)
    twice = Votes.from_arrays(
        votes.items,
        *(np.tile(part, 2) for part in (votes.first, votes.second, votes.result)),
        voter=np.concatenate([votes.voter, votes.voter + 30]),
        voters=[str(number) for number in range(60)],
    )
    once = certify(votes, rank(votes, draws=100, weights="none", ridge=1.0))
    for one, two in zip(once, certify(twice, rank(twice, draws=100, weights="none", ridge=2.0)), strict=True):
        assert one.item == two.item
        for kind in ("votes", "voters"):
            before, after = (getattr(each, f"{kind}_proven") for each in (one, two))
            assert after >= 2 * (before - 1) + 1
            assert getattr(two, f"{kind}_found") >= after


def penalised_scores(votes, ranking, results):
    """Scores by scipy's minimiser of the loss, vote by vote, not by our solver."""
    weight, count = votes.counts(ranking.settings["ties"]) * ranking.weights, len(votes.items)

    def loss(theta):
        margin = theta[votes.first] - theta[votes.second]
        residual = weight * (expit(margin) - results)
        gradient = np.bincount(votes.first, residual, count) - np.bincount(votes.second, residual, count)
        value = weight @ (np.logaddexp(0.0, margin) - results * margin)
        ridge = ranking.settings["ridge"]
        return value + 0.5 * ridge * theta @ theta, gradient + ridge * theta

    return optimize.minimize(loss, np.zeros(count), jac=True, method="BFGS", options={"gtol": 1e-7}).x


@pytest.mark.parametrize(("name", "leader"), [("llmfao", (9, 10, 1, 1)), ("mtbench_human", (43, 46, 2, 2))])
def test_lies_found_in_recorded_votes_change_the_rank(recorded, name, leader):
    votes = recorded(name)
    ranking = rank(votes, draws=100)
    found = certify(votes, ranking, ranks=5)
    first = found[0]
    assert (first.votes_proven, first.votes_found, first.voters_proven, first.voters_found) == leader
    before = ranks_of(penalised_scores(votes, ranking, votes.result))
    for each in found:
        item = votes.items.index(each.item)
        assert before[item] == each.rank
        for lies, size, units in (
            (each.false_votes, each.votes_found, votes.row),
            (each.lies, each.voters_found, votes.voter),
        ):
            results = votes.result.copy()
            false = np.searchsorted(votes.row, lies.rows)
            results[false] = lies.results
            assert len(np.unique(units[false])) == size
            assert ranks_of(penalised_scores(votes, ranking, results))[item] != each.rank


def test_many_items_have_certificates_for_the_first_ranks_and_the_ranking_says_so():
    rng = np.random.default_rng(0)
    first, second = rng.integers(80, size=3000), rng.integers(1, 80, size=3000)
    votes = Votes.from_arrays([str(i) for i in range(80)], first, (first + second) % 80, rng.integers(2, size=3000))
    ranking = with_certificates(votes, rank(votes, draws=100))
    assert [each.rank for each in ranking.certificates] == list(range(1, 11))
    assert ranking.notes[-1] == "Only ranks 1 to 10 have certificates (false votes), to save time."
    assert all(each.voters_proven is each.voters_found is each.lies is None for each in ranking.certificates)
    frame = ranking.to_frame()
    assert frame.columns[-5:] == ["votes_found", "votes_proven", "voters_found", "voters_proven", "rival"]
    assert frame["votes_proven"].null_count() == 70
    assert frame["item"][:10].to_list() == [each.item for each in ranking.certificates]


def test_each_group_has_its_own_ranks():
    votes = Votes.from_arrays("abcdef", [0, 0, 0, 1, 2, 3, 3], [1, 1, 2, 2, 0, 4, 4], [1, 0, 1, 1, 1, 1, 1])
    ranking = with_certificates(votes, rank(votes))
    assert [(each.group, each.rank) for each in ranking.certificates] == [
        ("1", 1),
        ("1", 2),
        ("1", 3),
        ("2", 1),
        ("2", 2),
    ]
    assert ranking.certificates[3].sentence == "d is first, but 2 false votes can change that."
    assert ranking.verdicts[1].certificate == ranking.certificates[3]
    assert ranking.verdicts[1].survives == ""  # nobody leads yet
    assert not any("Only rank" in note for note in ranking.notes)


def test_many_groups_have_certificates_of_their_leaders():
    names = [str(item) for item in range(80)]
    votes = Votes.from_arrays(names, range(0, 80, 2), range(1, 80, 2), [1] * 40)
    ranking = with_certificates(votes, rank(votes, draws=100))
    assert [(each.rank, each.votes_found) for each in ranking.certificates] == [(1, 1)] * 40
    assert ranking.notes[-1] == "Only rank 1 of each group has certificates (false votes), to save time."


def test_votes_that_do_not_count_cannot_lie():
    votes = random_votes(0, items=3, voters=90, each=2, patterns=6)
    trusted = np.where(votes.voter < 60, 1.0, 0.0)
    ranking = rank(votes, draws=100, reliability=trusted)
    for each in certify(votes, ranking):
        for lies in (each.false_votes, each.lies):
            assert (votes.voter[np.searchsorted(votes.row, lies.rows)] < 60).all()


def test_a_ranking_with_features_has_no_certificates():
    votes = random_votes(0, items=3, voters=30, each=2)
    plain = rank(votes, draws=100)
    ranking = replace(plain, settings={**plain.settings, "features": "f.csv, divided by 3"})
    with pytest.raises(BadInputError, match="a ranking with features has no certificates"):
        certify(votes, ranking)
    assert with_certificates(votes, ranking).notes[-1] == "A ranking with features has no certificates."


def test_refusals():
    votes = random_votes(0, items=3, voters=30, each=2)
    with pytest.raises(BadInputError, match="ranks must be a whole number ≥ 1"):
        certify(votes, rank(votes, draws=100), ranks=0)
