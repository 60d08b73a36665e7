"""Each tactic answers and chooses as its words say, for one duel and for many."""

import numpy as np
import pytest

from fairduel.errors import BadInputError
from fairduel.votes.attacking.injection import ATTACKS, CAMPAIGN_TACTICS, inject
from fairduel.votes.attacking.liars import TACTICS, Liar, arena, best_other, happens, lift_by_item
from fairduel.votes.ranking.bradley_terry import fit_scores, wins

MINE, LEADER, OTHER = 0, 1, 2
LIFT = np.array([0.5, -0.2, 0.1])
HONEST = 0.7  # for the first item
ANSWERS = {  # for (mine, other), (other, mine), (mine, leader), (leader, other)
    "head-to-head": (HONEST, HONEST, 1.0, HONEST),
    "promote": (1.0, 0.0, 1.0, HONEST),
    "demote": (0.0, 1.0, 0.0, HONEST),
    "mixed": (1.0, 0.0, 1.0, 0.0),
    "omnipresent": (1.0, 0.0, 1.0, 0.0),
    "clones": (1.0, 0.0, 1.0, HONEST),
    "half-honest": (0.85, 0.35, 0.85, HONEST),
    "inverters": (0.3, 0.3, 0.3, 0.3),
    "contrarians": (0.0, 0.0, 0.0, 0.0),
    "random-votes": (0.5, 0.5, 0.5, 0.5),
    "one-side": (1.0, 1.0, 1.0, 1.0),
}
FIRST, SECOND = np.array([MINE, OTHER, MINE, LEADER]), np.array([OTHER, MINE, LEADER, OTHER])
VOTES, _ = arena(voters=60, liars={}, seed=0)


@pytest.mark.parametrize("tactic", TACTICS)
def test_a_tactic_answers_many_duels_and_each_of_them_alike(tactic):
    liar = Liar(tactic, MINE, LEADER, LIFT)
    many = liar.chance(FIRST, SECOND, np.full(4, HONEST))
    np.testing.assert_allclose(many, ANSWERS[tactic], atol=1e-12)
    assert [float(liar.chance(*duel, HONEST)) for duel in zip(FIRST, SECOND, strict=True)] == many.tolist()


def test_liars_who_name_the_worse_item_name_it_on_either_side():
    assert Liar("contrarians").chance(0, 1, np.array([0.1, 0.9])).tolist() == [1.0, 0.0]


def test_answers_have_their_chance_and_certain_ones_need_no_luck():
    rng = np.random.default_rng(0)
    assert np.mean([happens(0.3, rng.random) for _ in range(4000)]) == pytest.approx(0.3, abs=0.03)
    assert [happens(chance, lambda: 1 / 0) for chance in (0.0, 1.0)] == [False, True]


@pytest.mark.parametrize("tactic", TACTICS)
def test_chosen_duels_are_about_the_item(tactic):
    liar = Liar(tactic, MINE, LEADER)
    coin, at_first = np.array([True, True, False, False]), np.array([True, False, True, False])
    first, second = liar.duels(FIRST, SECOND, coin, at_first)
    if not liar.chooses:
        assert (first.tolist(), second.tolist()) == (FIRST.tolist(), SECOND.tolist())
        return
    if tactic == "mixed":  # the leader's duels where the coins differ; the item's opponent may be the leader
        assert (first.tolist(), second.tolist()) == ([MINE, OTHER, LEADER, OTHER], [OTHER, LEADER, MINE, MINE])
        return
    opponents = [LEADER] * 4 if tactic == "head-to-head" else [OTHER, OTHER, LEADER, OTHER]
    assert np.where(at_first, first, second).tolist() == [MINE] * 4
    assert np.where(at_first, second, first).tolist() == opponents


def test_lift_is_what_a_vote_adds_to_the_smooth_rank():
    """By finite differences: one more hundredth of a vote for i over j."""
    won, item = wins(VOTES, ties="drop"), 3
    fitted = fit_scores(won)
    near = fitted.scores[item] - fitted.scores

    def smooth(scores):
        return (1.0 / (1.0 + np.exp(-(scores[item] - scores) / 0.25))).sum()

    lift = lift_by_item(fitted, item)
    for i, j in ((0, 1), (3, 5), (7, 3)):
        more = won.copy()
        more[i, j] += 0.01
        chance = 1.0 / (1.0 + np.exp(near[i] - near[j]))
        gained = 0.25 * (smooth(fit_scores(more).scores) - smooth(fitted.scores)) / 0.01
        assert gained == pytest.approx((1.0 - chance) * (lift[i] - lift[j]), rel=0.02, abs=1e-4)


def test_clones_cast_the_same_votes_and_half_honest_liars_lie_in_half():
    clones = inject(VOTES, "clones", "Oak", size=40, voters=4)
    ballots = [clones.votes.select(clones.fake & (clones.votes.cast_by == len(VOTES.voters) + n)) for n in range(4)]
    assert len({(*each.first, *each.second, *each.result) for each in ballots}) == 1
    oak = VOTES.items.index("Oak")
    half = inject(VOTES, "half-honest", "Oak", size=2000)
    met = (half.votes.first == oak) | (half.votes.second == oak)
    recorded = ((VOTES.first == oak) | (VOTES.second == oak)).mean()
    assert met[half.fake].mean() == pytest.approx(0.5 + 0.5 * recorded, abs=0.035)


def test_mixed_liars_push_their_item_in_half_of_their_duels_and_the_leader_down_in_the_rest():
    scores = fit_scores(wins(VOTES)).scores
    item, leader = np.argsort(-scores)[[4, 0]]
    fake = inject(VOTES, "mixed", VOTES.items[item], size=2000)
    cast = fake.votes.select(fake.fake)
    winner, loser = (np.where(cast.result == won, cast.first, cast.second) for won in (1.0, 0.0))
    assert ((winner == item) | (loser == leader)).all()
    assert not ((loser == item) | (winner == leader)).any()
    assert (winner == item).mean() == pytest.approx(0.5, abs=0.1)
    assert (cast.first == winner).mean() == pytest.approx(0.5, abs=0.04)


def test_head_to_head_beats_the_best_of_the_others():
    scores = fit_scores(wins(VOTES)).scores
    best, second = np.argsort(-scores)[:2]
    for item, leader in ((second, best), (best, second)):
        fake = inject(VOTES, "head-to-head", VOTES.items[item], size=50)
        cast = fake.votes.select(fake.fake)
        winner, loser = (np.where(cast.result == won, cast.first, cast.second) for won in (1.0, 0.0))
        assert (set(winner), set(loser)) == ({item}, {leader})
        assert best_other(scores, item) == leader


def test_lists_of_tactics_are_derived_from_one():
    assert set(TACTICS) <= set(ATTACKS)
    assert CAMPAIGN_TACTICS == ("head-to-head", "promote", "demote", "mixed", "omnipresent", "clones")
    with pytest.raises(BadInputError, match="did you mean 'promote'"):
        Liar("promot")
