"""Evidence on voters: honest people are left alone at the stated level, liars are not, and every number is right."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from scipy import stats
from scipy.special import betaln, expit, logsumexp

from fairduel.errors import BadInputError
from fairduel.votes import Votes
from fairduel.votes.attacking.injection import inject
from fairduel.votes.attacking.liars import arena
from fairduel.votes.auditing.campaign import (
    Cells,
    Push,
    exposure_evidence,
    find_cells,
    find_meetings,
    pushing,
    urn_unevenness,
)
from fairduel.votes.auditing.null_model import Decisive, best_honest, best_honest_slope
from fairduel.votes.auditing.voters import _baseline, _by_kind, _flags, audit_voters
from fairduel.votes.timing import stretches


@pytest.mark.parametrize("taste", [0.0, 0.5, 1.5])
def test_honest_people_with_tastes_are_hardly_ever_flagged(taste):
    shapes = [(30, 40), (100, 15), (200, 6)]
    files = [
        arena(voters=voters, votes_each=each, liars={}, taste=taste, spread=spread, seed=seed)[0]
        for seed, (voters, each) in enumerate(shapes * 2)
        for spread in (0.5, 1.5)
    ]
    with_flags = sum(bool(audit_voters(votes).flagged.any()) for votes in files)
    assert with_flags <= stats.binom.ppf(0.99, len(files), 0.05)


def test_evidence_of_honest_voters_is_at_most_1_on_average():
    values = {}
    for seed in range(6):
        votes, _ = arena(liars={}, seed=seed)
        for kind, log in audit_voters(votes).log_evidence.items():
            values.setdefault(kind, []).append(np.exp(log).mean())
    for kind, means in values.items():
        error = np.std(means) / np.sqrt(len(means))
        assert np.mean(means) <= 1.0 + 3 * error, kind


@pytest.mark.parametrize("kind", ["promote", "demote", "inverters", "one-side"])
def test_every_kind_of_liar_is_found(kind):
    # Who inverts a ranking could be a careless person with odd tastes: it takes many votes to tell.
    each = 150 if kind == "inverters" else 40
    votes, liars = arena(votes_each=each, liars={kind: 3}, spread=2.0, taste=0.3, target="Pine", seed=3)
    evidence = audit_voters(votes)
    assert sorted(np.array(evidence.voters)[evidence.flagged]) == sorted(liars)
    words = {"promote": "for Pine", "demote": "against Pine", "inverters": "agrees with", "one-side": "chose the first"}
    for name in liars:
        place = evidence.voters.index(name)
        assert words[kind] in evidence.why[place]


def test_a_flag_does_not_depend_on_names_or_on_the_order_of_rows_with_timestamps():
    votes, _ = arena(seed=4)
    votes = replace(votes, time=1.7e9 + 10.0 * np.arange(len(votes)))
    rng = np.random.default_rng(0)
    order, codes = rng.permutation(len(votes)), rng.permutation(len(votes.voters))
    names = np.empty(len(codes), dtype=object)
    names[codes] = votes.voters
    moved = Votes.from_arrays(
        votes.items,
        votes.first[order],
        votes.second[order],
        votes.result[order],
        voter=codes[votes.voter[order]],
        voters=names.tolist(),
        time=votes.time[order],
    )
    before, after = audit_voters(votes), audit_voters(moved)
    np.testing.assert_allclose(after.total[codes], before.total, atol=1e-6)
    assert (after.flagged[codes] == before.flagged).all()


def specialists(seed: int, share: float) -> Votes:
    """Honest voters, some of whom only ever meet one item."""
    rng = np.random.default_rng(seed)
    voters, items, each = 120, 12, 25
    scores = rng.standard_normal(items)
    voter = np.repeat(np.arange(voters), each)
    favourite = rng.integers(items, size=voters)
    special = (rng.random(voters) < share)[voter]
    first = np.where(special, favourite[voter], rng.integers(items, size=voter.size))
    second = (first + rng.integers(1, items, voter.size)) % items
    result = (rng.random(voter.size) < expit(scores[first] - scores[second])).astype(float)
    turn = rng.random(voter.size) < 0.5
    return Votes.from_arrays(
        [f"item {k}" for k in range(items)],
        np.where(turn, second, first),
        np.where(turn, first, second),
        np.where(turn, 1 - result, result),
        voter=voter,
        voters=[f"v{v}" for v in range(voters)],
    )


@pytest.mark.parametrize("share", [0.03, 1.0])
def test_voters_who_choose_their_duels_and_vote_like_everyone_are_not_flagged(share):
    chose = flags = 0
    for seed in range(4):
        evidence = audit_voters(specialists(seed, share))
        chose += evidence.settings["voters_who_choose_their_duels"]
        flags += int(evidence.flagged.sum())
    assert flags <= 1
    if share < 1.0:
        assert chose > 5  # they are seen, and kept out of the consensus
    else:
        assert chose == 0  # where everybody does it, it means nothing


def test_exposure_counts_for_nothing_where_voters_choose():
    votes, _ = arena(liars={}, seed=1)
    attacked = inject(votes, "promote", "Oak", size=60, voters=6).votes
    assert audit_voters(attacked).flagged.sum() >= 5
    careful = audit_voters(attacked, duels_assigned=False)
    assert careful.flagged.sum() == 0
    assert careful.settings["voters_who_choose_their_duels"] == 0


def rate_of_others(votes: Votes, voter: int, item: int) -> float:
    """The slow way: others' duels with the item near each of the voter's duels, on average."""
    others, stretch = votes.voter != voter, stretches(votes)
    shown = (votes.first == item) | (votes.second == item)
    overall = ((shown & others).sum() + 1) / (others.sum() + len(votes.items) / 2)

    def rate(near) -> float:
        return ((shown & others & near).sum() + overall) / ((others & near).sum() + 1)

    own = np.flatnonzero(~others)
    before, after = ([np.clip(stretch[t] - back, 0, 7) for t in own] for back in (2, 0))
    rates = [np.mean([rate((stretch >= s) & (stretch < s + 3)) for s in begin]) for begin in (before, after)]
    since = np.arange(len(votes)) >= np.argmax(shown)
    rates.append(rate(since) * since[own].mean())
    if votes.context is not None:
        rates.append(np.mean([rate(votes.context == votes.context[t]) for t in own]))
    return max(rates)


@pytest.mark.parametrize("contexts", [0, 3])
def test_meetings_compare_duels_of_the_same_time_and_context(contexts):
    rng = np.random.default_rng(contexts)
    first = rng.integers(5, size=80)
    known = {"context": rng.integers(3, size=80), "contexts": "xyz"} if contexts else {}
    votes = Votes.from_arrays(
        "abcde",
        first,
        (first + rng.integers(1, 5, 80)) % 5,
        rng.integers(0, 2, 80),
        voter=rng.integers(6, size=80),
        voters="uvwxyz",
        **known,
    )
    met = find_meetings(votes)
    assert met.met.sum() == 2 * len(votes)
    expected = [rate_of_others(votes, v, k) for v, k in zip(met.voter, met.item, strict=True)]
    np.testing.assert_allclose(met.rate, expected)


def test_exposure_is_an_urn_against_a_free_share():
    met, duels, rate, size = 3.0, 5.0, 0.2, 9.0
    urn = np.prod([(9 * rate + k) / (9 + k) for k in range(3)])  # three with the item, …
    urn *= np.prod([(9 * (1 - rate) + k) / (9 + 3 + k) for k in range(2)])  # … then two without it
    free = np.exp(betaln(3 + 2, 2 + 1) - betaln(2, 1))
    assert exposure_evidence(met, duels, rate, size) == pytest.approx(np.log(free / urn))
    assert exposure_evidence(1.0, duels, rate, size) == -np.inf


@pytest.mark.parametrize("duels", [1, 5, 40, 300])
@pytest.mark.parametrize("size", [0.5, 5.0, 1e4])
def test_exposure_is_an_e_value_for_every_rate_up_to_that_of_others(duels, size):
    met = np.arange(duels + 1.0)
    for rate in (0.01, 0.2, 0.5, 0.9):
        evidence = exposure_evidence(met, np.full_like(met, duels), rate, size)
        for true in np.array([0.1, 0.5, 0.9, 1.0]) * rate:
            chance = stats.betabinom.logpmf(met, duels, size * true, size * (1 - true))
            assert logsumexp(chance + evidence) <= 1e-6


@pytest.mark.parametrize("truth", [0.001, 0.1, 0.5])
def test_the_unevenness_of_an_urn_is_found(truth):
    rng = np.random.default_rng(0)
    voters, items, each = 3000, 10, 12
    size = 1 / truth - 1
    pick = rng.dirichlet(np.full(items // 2, size / (items // 2)), (voters, 2))  # one urn for each half of the items
    counts = np.concatenate([[rng.multinomial(each, share) for share in half] for half in pick.swapaxes(0, 1)], axis=1)
    voter, item = np.nonzero(counts)
    found = urn_unevenness(voter, item, counts[voter, item].astype(float), voters=voters, items=items)
    assert found == pytest.approx(truth, rel=0.1, abs=0.003)


def test_pushing_is_a_probability():
    total = sum(
        np.exp(pushing(np.array([float(wins)]), np.array([6.0]))[0]) * stats.binom.pmf(wins, 6, 0.5) * 2**6
        for wins in range(7)
    )
    assert total == pytest.approx(1.0)


def test_agreement_and_its_interval():
    votes, liars = arena(liars={"inverters": 1}, votes_each=60, spread=2.5, seed=0)
    evidence = audit_voters(votes)
    [liar] = [evidence.voters.index(name) for name in liars]
    assert evidence.agreement[liar] < 0.4
    assert np.nanmedian(evidence.agreement) > 0.7
    low, high = evidence.agreement_interval.T
    assert (low <= evidence.agreement + 1e-12).all()
    assert (evidence.agreement <= high + 1e-12).all()
    n, k = evidence.decisive[liar], round(evidence.agreement[liar] * evidence.decisive[liar])
    wilson = stats.binomtest(int(k), int(n)).proportion_ci(method="wilson")
    np.testing.assert_allclose(evidence.agreement_interval[liar], wilson, atol=1e-9)


def timed(time) -> Votes:
    return Votes.from_arrays(
        "ab", [0] * 6, [1] * 6, [1, 0, 1, 1, 0, 1], voter=[0, 1, 0, 1, 0, 1], voters=["u", "v"], time=time
    )


def test_seconds_are_differences_of_clock_times_or_response_times():
    assert audit_voters(timed([0.0, 0, 10, 1, 30, 3])).seconds.tolist() == [15.0, 1.5]
    assert audit_voters(timed([5.0, 1, 4, 2, 6, np.nan])).seconds.tolist() == [5.0, 1.5]


def test_the_gap_between_two_visits_is_no_time_for_a_vote():
    assert audit_voters(timed([0.0, 0, 8, 86400, 86400, 172800])).seconds[0] == 8.0
    assert np.isnan(audit_voters(timed([0.0, 0, 8, 86400, 86400, 172800])).seconds[1])
    assert audit_voters(timed([0.0, 0, 1800, 1, 3601, 1802])).seconds.tolist() == [1800.0, 1.0]


def test_timestamps_in_any_order_are_timestamps():
    votes = timed(1.7e9 + np.array([20.0, 4, 0, 2, 10, 0]))
    assert audit_voters(votes).seconds.tolist() == [10.0, 2.0]
    assert stretches(votes).tolist() == [8, 5, 0, 3, 6, 1]


def hasty_among(times) -> list[str]:
    """Names of the hasty, where each voter needs these six times."""
    people = np.repeat(np.arange(len(times)), 6)
    names = [f"v{i}" for i in range(len(times))]
    votes = Votes.from_arrays(
        "abc",
        np.tile([0, 1, 2], 2 * len(times)),
        np.tile([1, 2, 0], 2 * len(times)),
        np.tile([1, 0, 1, 1, 0, 0], len(times)),
        voter=people,
        voters=names,
        time=np.ravel(times).astype(float),
    )
    evidence = audit_voters(votes)
    found = np.array(names)[evidence.hasty].tolist()
    assert sorted(evidence.to_frame().filter("hasty")["voter"]) == found
    assert "fifth" not in " ".join(evidence.why)
    return found


def test_haste_is_marked():
    others = [[9, 10, 11, 10, 8, 12]] * 5
    assert hasty_among([*others, [2, 1, 1.5, 2, 1, 1.5]]) == ["v5"]
    assert hasty_among([*others, [3, 2, 2.5, 3, 2, 2.5]]) == []  # a fifth of 10 is 2


def test_times_in_whole_minutes_cannot_tell_haste():
    others = [[60, 120, 60, 60, 120, 60]] * 5
    assert hasty_among([*others, [60, 0, 0, 60, 0, 0]]) == []
    assert hasty_among([*others, [61, 1, 1, 61, 1, 1]]) == ["v5"]


def test_the_frame_has_a_row_for_each_voter_and_the_most_evidence_first():
    votes, liars = arena(seed=4)
    evidence = audit_voters(votes)
    frame = evidence.to_frame()
    assert len(frame) == len(votes.voters)
    assert set(frame["voter"][: int(evidence.flagged.sum())]) <= set(liars)
    assert frame.filter(pl.col("flagged"))["why"].str.len_chars().min() > 10
    assert frame.filter(~pl.col("flagged"))["why"].str.len_chars().max() == 0


@pytest.mark.parametrize(
    ("votes", "words"),
    [
        (Votes.from_arrays("ab", [0], [1], [1]), "who voted"),
        (Votes.from_arrays("ab", [0], [1], [0.5], voter=[0], voters=["u"]), "nothing to audit"),
    ],
)
def test_refusals(votes, words):
    with pytest.raises(BadInputError, match=words):
        audit_voters(votes)


def test_total_evidence_is_the_mean_over_the_kinds():
    evidence = audit_voters(arena(seed=4)[0])
    assert list(evidence.log_evidence) == ["inverts", "one side", "taste", "campaign", "group"]
    mean = np.mean([np.exp(log) for log in evidence.log_evidence.values()], axis=0)
    np.testing.assert_allclose(np.exp(evidence.total), mean)


def test_each_kind_is_a_mean_over_its_alternatives():
    base = _baseline(arena(seed=4)[0], level=0.05, duels_assigned=True)
    cells = find_cells(base.decisive, base.z, base.variance, base.meetings)
    ups, downs = cells.pushes(duels_assigned=True)
    found = _by_kind(base, cells, ups, downs)
    votes, items = base.decisive, base.decisive.items
    slopes = best_honest_slope(votes, base.z, base.variance)
    for voter in range(0, votes.voters, 10):
        own = votes.voter == voter
        z, sign = base.z[own], votes.sign[own]
        inverting = np.mean([np.prod(expit(-slope * sign * z)) for slope in (0.5, 1.0, 2.0)])
        assert found["inverts"][voter] == pytest.approx(np.log(inverting) - slopes[voter])
        honest = best_honest(np.zeros(own.sum(), dtype=int), 1, z, sign, base.taste_for_a_side)[0]
        sides = [np.prod(np.where(sign == side, p, 1 - p)) for side in (1, -1) for p in (0.9, 0.99)]
        assert found["one side"][voter] == pytest.approx(np.log(np.mean(sides)) - honest)
        mine = cells.voter == voter
        taste = (np.exp(cells.up[mine]).sum() + np.exp(cells.down[mine]).sum()) / (2 * items)
        assert np.exp(found["taste"][voter]) == pytest.approx(taste)
        campaign = (np.exp(ups[mine]).sum() + np.exp(downs[mine]).sum()) / (2 * items)
        assert np.exp(found["campaign"][voter]) == pytest.approx(campaign)


@pytest.mark.parametrize(("evidence", "counts"), [(1.99, False), (2.01, True)])
def test_exposure_counts_only_if_the_votes_push_too(evidence, counts):
    one, votes = np.ones(1), np.log([evidence])
    cells = Cells(np.zeros(1, int), np.zeros(1, int), one, one, one, votes, -votes, one, one, np.log([100.0]))
    up, down = cells.pushes(duels_assigned=True)
    assert np.exp(up[0]) == pytest.approx(100 * evidence if counts else 0.0)
    assert down[0] == -np.inf
    assert np.exp(cells.pushes(duels_assigned=False)[0][0]) == pytest.approx(evidence if counts else 0.0)


def planted(monkeypatch, evidence: np.ndarray, level: float):
    """Audit an arena in which each voter's evidence of each kind is planted, (5, V)."""
    kinds = dict(zip(["inverts", "one side", "taste", "campaign", "group"], np.log(evidence), strict=True))
    monkeypatch.setattr("fairduel.votes.auditing.voters._by_kind", lambda *_: kinds)
    return audit_voters(arena(voters=30, liars={}, seed=0)[0], level=level)


@pytest.mark.parametrize(("factor", "flags"), [(0.999, 0), (1.001, 1)])
def test_one_flag_needs_the_mean_evidence_of_3_voters_per_level(monkeypatch, factor, flags):
    evidence = np.full((5, 30), 1e-9)
    evidence[1, 7] = factor * 5 * 30 * 3 / 0.05  # one of five kinds; 30 voters; a third of the level
    assert planted(monkeypatch, evidence, 0.05).flagged.sum() == flags
    evidence[:, 7] = factor * 30 * 3 / 0.05  # all kinds
    assert planted(monkeypatch, evidence, 0.05).flagged.sum() == flags


@pytest.mark.parametrize(("factor", "found"), [(0.999, False), (1.001, True)])
def test_a_crowd_needs_evidence_of_6_per_level(monkeypatch, factor, found):
    top = Push(0, up=True, duels=9, pushed=9, expected=4.0)
    rest = [(None, -np.inf)] if found else []
    answers = iter([(top, np.log(factor * 6 / 0.05)), *rest, (top, 0.0)])  # a third; two sizes of crowds
    monkeypatch.setattr("fairduel.votes.auditing.collusion._crowd_push", lambda *_: next(answers))
    evidence = audit_voters(arena(voters=60, votes_each=12, liars={}, seed=0)[0])
    assert evidence.crowd_flagged == found
    assert evidence.crowd.log_evidence == pytest.approx(np.log(factor * 6 / 0.05))


def test_crowds_of_both_sizes_together_get_a_third_of_the_level(monkeypatch):
    """E = 1/U has the heaviest tail of all evidence: P(E ≥ x) = 1/x. At level 0.9, a third is 0.3."""
    rng, top = np.random.default_rng(0), Push(0, up=True, duels=9, pushed=9, expected=4.0)

    def evidence(members: Decisive, *_: object) -> tuple[Push | None, float]:
        met = ((members.first == top.item) | (members.second == top.item)).any()  # not yet set aside
        return (top, -np.log(rng.random())) if met else (None, -np.inf)

    monkeypatch.setattr("fairduel.votes.auditing.collusion._crowd_push", evidence)
    monkeypatch.setattr(
        "fairduel.votes.auditing.voters.alike_pairs", lambda *_, **__: None
    )  # pairs are slow, and not counted
    base = _baseline(arena(voters=20, votes_each=12, liars={}, seed=0)[0], level=0.9, duels_assigned=True)
    found = sum(bool(_flags(base, np.zeros(20), np.zeros((20, 2), int), 0.9).crowd.differs) for _ in range(300))
    assert stats.binom.ppf(0.001, 300, 1.0 - 0.85**2) <= found <= stats.binom.ppf(0.999, 300, 0.3)


@pytest.mark.parametrize(("factor", "found"), [(0.999, False), (1.001, True)])
def test_a_pair_needs_evidence_of_3_pairs_per_level(factor, found):
    votes = alike_judges()
    pairs = audit_voters(votes, duels_assigned=False).pairs
    enough = 3 * len(pairs.one) / np.exp(pairs.log_evidence[0])  # a third of the level, for all pairs
    assert 0.0 < enough < 1.0
    assert pairs.log_evidence[1] < pairs.log_evidence[0] - np.log(3)
    again = audit_voters(votes, level=enough * factor, duels_assigned=False).pairs
    assert again.flagged.tolist() == [found] + [False] * (len(pairs.one) - 1)


def alike_judges() -> Votes:
    """Six voters answer the same 80 duels; the last two mostly agree."""
    rng = np.random.default_rng(2)
    first = rng.integers(6, size=80)
    second = (first + rng.integers(1, 6, 80)) % 6
    results = (rng.random((6, 80)) < expit(0.4 * (second - first))).astype(float)
    results[5] = np.where(rng.random(80) < 0.8, results[4], results[5])
    shown = {"context": np.tile(np.arange(80), 6), "contexts": [str(c) for c in range(80)]}
    return Votes.from_arrays(
        "abcdef",
        np.tile(first, 6),
        np.tile(second, 6),
        results.ravel(),
        voter=np.repeat(np.arange(6), 80),
        voters="uvwxyz",
        **shown,
    )


def test_a_weight_is_how_often_a_vote_is_written():
    votes, _ = arena(voters=60, votes_each=30, liars={"promote": 4}, seed=4)
    weight = np.random.default_rng(0).integers(0, 4, len(votes)).astype(float)
    weighted = replace(votes, weight=weight, time=10.0 * np.arange(len(votes)))
    written = weighted.written_out()
    assert len(written) == weight.sum()
    one, other = audit_voters(weighted), audit_voters(written)
    for name in ("votes", "decisive", "total", "flagged", "seconds", "agreement"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    for name in ("one", "other", "shared", "log_evidence", "flagged"):
        np.testing.assert_array_equal(getattr(one.pairs, name), getattr(other.pairs, name))
    assert one.why == other.why
    assert (one.crowd.log_evidence, one.crowd.differs) == (other.crowd.log_evidence, other.crowd.differs)
    assert one.flagged.any()
    assert (one.flagged_votes(weighted) == one.flagged[votes.voter]).all()
    weights = np.repeat(one.vote_weights(weighted), weight.astype(int))
    np.testing.assert_allclose(weights, other.vote_weights(written))


def test_weights_that_stand_for_too_many_votes_are_refused():
    votes = Votes.from_arrays("ab", [0], [1], [1], weight=[2.1e7], voter=[0], voters=["u"])
    with pytest.raises(BadInputError, match="21,000,000 votes"):
        audit_voters(votes)


def released(seed: int, *, at: float) -> Votes:
    """100 identical voters, one after the other; after its release, the best item is in half of the duels."""
    rng = np.random.default_rng([seed, 8])
    voter = np.repeat(np.arange(100), 50)
    first = rng.integers(1, 12, size=len(voter))
    second = 1 + (first + rng.integers(0, 10, len(voter))) % 11
    new = (voter >= 100 * at) & (rng.random(len(voter)) < 0.5)
    first = np.where(new & (rng.random(len(voter)) < 0.5), 0, first)
    second = np.where(new & (first != 0), 0, second)
    scores = np.append(2.5, np.linspace(1.2, -1.2, 11))
    won = rng.random(len(voter)) < expit(scores[first] - scores[second])
    names = [f"v{v}" for v in range(100)]
    return Votes.from_arrays("nabcdefghijk", first, second, won.astype(float), voter=voter, voters=names)


@pytest.mark.parametrize("at", [0.5, 0.93])
def test_a_release_is_no_campaign(at):
    votes = released(0, at=at)
    evidence = audit_voters(votes)
    assert evidence.settings["voters_who_choose_their_duels"] == 0
    late = find_meetings(votes)
    late = late.rate[(late.item == 0) & (late.voter == 98)]
    assert late == pytest.approx(0.5, abs=0.05)
    assert not any(audit_voters(released(seed, at=at)).flagged.any() for seed in range(1, 4))


def test_a_context_in_which_an_item_is_common_explains_seeing_it():
    votes, _ = arena(liars={}, seed=0)
    attacked = inject(votes, "promote", "Oak", size=200, voters=5)
    votes, mixed = attacked.votes, np.random.default_rng(0).permutation(len(attacked.votes))
    anywhere = Votes.from_arrays(
        votes.items, votes.first[mixed], votes.second[mixed], votes.result[mixed], voter=votes.voter[mixed],
        voters=votes.voters,
    )  # fmt: skip
    alone = replace(anywhere, context=attacked.fake[mixed].astype(np.int32), contexts=("here", "elsewhere"))
    assert audit_voters(anywhere).flagged.sum() == 5
    assert audit_voters(alone).settings["voters_who_choose_their_duels"] == 0


def test_a_level_is_between_0_and_1():
    votes, _ = arena(seed=0)
    for level in (0.0, 1.0, float("nan"), "5%"):
        with pytest.raises(BadInputError, match="level"):
            audit_voters(votes, level=level)


@pytest.mark.parametrize("items", ["ab", "abc"])
def test_one_voter_and_two_items_are_no_trouble(items):
    one = Votes.from_arrays(items, [0, 0, 1], [1, 1, 0], [1, 1, 1], voter=[0, 0, 0], voters=["u"])
    assert not audit_voters(one).flagged.any()


@pytest.mark.parametrize("light", [3, 20])
def test_a_busy_honest_voter_among_few_others_is_no_liar(light):
    flagged = 0
    for seed in range(60):
        rng = np.random.default_rng([seed, 9])
        voter = np.repeat(np.arange(light + 1), [300] + [1] * light)
        first = rng.integers(5, size=len(voter))
        second = (first + rng.integers(1, 5, len(voter))) % 5
        own = 0.5 * rng.normal(size=5) + 0.7 * rng.normal(size=(light + 1, 5))
        won = rng.random(len(voter)) < expit(own[voter, first] - own[voter, second])
        names = [f"v{v}" for v in range(light + 1)]
        evidence = audit_voters(Votes.from_arrays("abcde", first, second, won.astype(float), voter=voter, voters=names))
        flagged += evidence.flagged.any()
    assert flagged <= 6  # 5 % of 60, and two standard errors


def test_who_is_compared_with_too_few_votes_is_not_tested():
    voter = np.repeat([0, 1, 2], [60, 4, 5])
    won = np.ones(69)
    votes = Votes.from_arrays("abc", voter * 0, 1 + np.arange(69) % 2, won, voter=voter, voters=["u", "v", "w"])
    evidence = audit_voters(votes)
    assert evidence.settings["voters_not_tested"] == 0
    evidence = audit_voters(votes.select(np.arange(69) != 64))  # 8 votes of others, of 9 that 3 items need
    assert evidence.settings["voters_not_tested"] == 1
    assert not evidence.flagged[0]
