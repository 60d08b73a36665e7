"""What the votes decide, against brute force and simulation."""

import html
import itertools
import math
import re
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from scipy import integrate, stats
from scipy.special import expit

from fairduel.errors import BadInputError
from fairduel.report.votes.audit_page import audit_sections
from fairduel.report.votes.ranking_page import ranking_sections, write_votes_report
from fairduel.report.votes.review_page import review_sections
from fairduel.service.analysis.analyse import _findings
from fairduel.votes import Votes, audit, clean, decide, rank
from fairduel.votes.attacking.liars import arena
from fairduel.votes.certifying.certificates import with_certificates
from fairduel.votes.certifying.proof import Proof
from fairduel.votes.certifying.search import Group
from fairduel.votes.deciding import log_evidence
from fairduel.votes.judging import ranking_after_audit
from fairduel.votes.ranking.bradley_terry import fit_scores
from fairduel.votes.ranking.rank import summarise
from fairduel.votes.reading.read import votes_of
from fairduel.votes.reviewing.review import review
from fairduel.votes.verdict import CONFIDENCE, LEAST_VOTES, headlines


def poll(seed: int, scores: list[float], count: int, voters: int = 0, taste: float = 0.0) -> Votes:
    """Random pairs of items with these scores, by voters with their own tastes if there are any."""
    rng, items = np.random.default_rng(seed), len(scores)
    first = rng.integers(items, size=count)
    second = (first + rng.integers(1, items, size=count)) % items
    own = np.array(scores) + taste * rng.normal(size=(max(voters, 1), items))
    voter = rng.integers(max(voters, 1), size=count)
    won = (rng.random(count) < expit(own[voter, first] - own[voter, second])).astype(float)
    people = {"voter": voter, "voters": [f"v{k}" for k in range(voters)]} if voters else {}
    return Votes.from_arrays([f"i{k}" for k in range(items)], first, second, won, **people)


@pytest.mark.parametrize(("gap", "variance"), [(0.0, 0.3), (0.5, 0.01), (1.2, 2.0), (-0.4, 0.1)])
def test_evidence_is_the_average_over_gaps(gap, variance):
    def integrand(delta):
        return 2.0 * stats.norm.pdf(delta) * math.exp(delta * gap / variance - delta**2 / (2.0 * variance))

    expected = integrate.quad(integrand, 0.0, 20.0, points=[max(gap, 0.01)])[0]
    assert log_evidence(gap, variance) == pytest.approx(math.log(expected), rel=1e-8, abs=1e-8)


def test_five_percent_of_leads_without_a_difference_ever_win():
    """Looking at 600 times while the information grows 10⁷-fold; a bar too high or too low by two would fail."""
    rng, runs = np.random.default_rng(0), 4000
    information = np.geomspace(1e-3, 1e4, 600)
    steps = np.sqrt(np.diff(information, prepend=0.0)) * rng.normal(size=(runs, len(information)))
    gaps = np.cumsum(steps, axis=1) / information
    won = (log_evidence(gaps, 1.0 / information) >= math.log(1.0 / 0.05)).any(axis=1)
    assert 0.034 < won.mean() < 0.058


def test_no_flips_leave_less_than_the_least_gap():
    votes = poll(2, [0.9, 0.0, -0.5], 60)
    group = Group(votes)
    kinds, fitted = group.by_vote.kinds, group.fitted
    leader, *others = np.argsort(-fitted.scores).tolist()
    for rival in others:
        bounds = [Proof(kinds, fitted, "false").least_gap(size, (leader, rival)) for size in range(3)]
        assert bounds[0] == pytest.approx(fitted.scores[leader] - fitted.scores[rival])
        assert np.isfinite(bounds).all()
        for size in (1, 2):
            takings = itertools.combinations_with_replacement(range(len(kinds.count)), size)
            counts = (np.bincount(kind, minlength=len(kinds.count)) for kind in takings)
            fits = [
                fit_scores(kinds.after(taken, "flipped")).scores for taken in counts if (taken <= kinds.count).all()
            ]
            least = min(scores[leader] - scores[rival] for scores in fits)
            assert bounds[size] <= least
            assert bounds[0] - bounds[size] < 2.0 * (bounds[0] - least)  # not far below it


def test_a_clear_poll_has_a_winner_and_false_votes_make_it_harder():
    votes = poll(3, [1.2, 0.0, -0.3, -0.6], 600)
    verdicts = [decide(votes, rank(votes), lies=count)[0] for count in (0, 5, 10, 60)]
    assert [verdict.state for verdict in verdicts] == ["won", "won", "won", "leads"]
    evidence = [verdict.evidence for verdict in verdicts]
    assert evidence == sorted(evidence, reverse=True)
    assert verdicts[0].bar == pytest.approx(math.log(3 / 0.05))
    assert {verdict.leader for verdict in verdicts} == {"i0"}
    assert verdicts[3].forecast.low > 60
    assert verdicts[0].forecast is None
    assert "at most 60 counted votes are false" in verdicts[3].assumes


def test_without_votes_a_winner_that_ranges_do_not_show_cannot_be_named():
    assert rank(poll(0, [0.3, 0.0], 8)).verdicts[0].state == "too early"
    assert "8 votes on 2 items are fewer than 5 per item." in rank(poll(0, [0.3, 0.0], 8)).verdicts[0].reasons
    assert "1 vote on 2 items is fewer than 5 per item." in rank(poll(0, [0.3, 0.0], 1)).verdicts[0].reasons


def test_equal_items_tie_once_the_votes_show_that_they_are_equal():
    few, many = (rank(Votes.from_arrays("ab", [0] * n, [1] * n, [1, 0] * (n // 2))).verdicts[0] for n in (40, 1000))
    assert (few.state, few.leader) == ("too early", None)
    assert (many.state, many.leader, many.equal) == ("tie", None, True)
    assert many.headline == "a and b are tied for first of 2 items."
    assert "They are practically equal: the better of two would win at most 56% of their duels." in many.details
    assert many.missing.startswith("If they are equal, no number of votes makes a winner.")


def test_a_few_items_tie_once_the_others_are_ruled_out():
    verdict = rank(poll(0, [0.5, 0.5, -1.5, -1.5, -2.0], 800)).verdicts[0]
    assert verdict.state == "tie"
    assert set(verdict.items) == {"i0", "i1"}
    assert verdict.leader is None


def test_a_leader_is_the_best_as_often_as_is_said():
    """Few votes on items that are drawn at random."""
    said, right = [], []
    for seed in range(200):
        scores = np.random.default_rng(1000 + seed).normal(size=6)
        verdict = rank(poll(seed, scores.tolist(), 120), draws=400).verdicts[0]
        if verdict.state == "leads":
            said.append(verdict.best)
            right.append(verdict.leader == f"i{np.argmax(scores)}")
    assert min(said) >= 0.94
    assert len(said) >= 25
    assert abs(np.mean(said) - np.mean(right)) < 0.05


def test_one_of_two_equal_items_is_seldom_named_at_a_look():
    """If items were ruled out at 95% confidence at one look alone, one in ten would be named."""
    named = [rank(poll(seed, [0.5, 0.5, -1.0, -1.0], 400), draws=1000).verdicts[0].leader for seed in range(150)]
    assert sum(each is not None for each in named) <= 4


def test_one_of_two_equal_items_is_seldom_named_however_often_one_looks():
    """Twenty looks: three of five studies named one before items had to be told apart at many looks."""
    named = 0
    for seed in range(40):
        votes, places = poll(seed, [0.0, 0.0], 2000), np.arange(2000)
        looks = (rank(votes.select(places < n), draws=100) for n in np.geomspace(40, 2000, 20).astype(int))
        named += any(ranking.verdicts[0].leader is not None for ranking in looks)
    assert named <= stats.binom.ppf(0.95, 40, 0.2)


def test_nobody_leads_while_a_newcomer_may_be_the_best():
    """Seven wins of ten against the others: P(best) of the old leader is above 95%, but by the prior alone."""
    votes = poll(0, [1.7, 0.0, -0.2, -0.4, -0.6], 800).to_frame()
    late = {"first": ["new"] * 10, "second": ["i1", "i2"] * 5, "winner": ["first"] * 7 + ["second"] * 3}
    verdict = rank(pl.concat([votes.select(*late), pl.DataFrame(late)])).verdicts[0]
    assert verdict.best >= CONFIDENCE
    assert (verdict.state, verdict.leader, set(verdict.items)) == ("tie", None, {"i0", "new"})
    assert rank(votes).verdicts[0].leader == "i0"


def test_few_voters_never_win():
    for voters in (1, 2, 4):
        verdict = rank(poll(0, [2.0, 0.0, -1.0], 600, voters=voters)).verdicts[0]
        assert verdict.evidence >= verdict.bar
        assert (verdict.state, verdict.leader) == ("too early", None)
        assert "speak for others." in " ".join(verdict.details)
        assert len(verdict.tiers) > 1
        assert "Tiers" not in " ".join(verdict.details)  # they would name the first item, which the verdict does not
        assert verdict.missing == ""
    assert rank(poll(0, [2.0, 0.0, -1.0], 600, voters=20)).verdicts[0].can_stop


def test_a_voter_who_casts_nearly_all_votes_counts_as_one():
    votes = poll(0, [2.0, 0.0, -1.0], 600, voters=20)
    alone = replace(votes, voter=np.where(np.arange(600) < 550, 0, votes.voter).astype(np.int32))
    verdict = rank(alone).verdicts[0]
    assert verdict.voters < 5
    assert not verdict.can_stop
    assert verdict.details[0] == (
        "A few of 19 voters cast so many of the votes that these say no more than those of 1.1 equally active voters; "
        "it takes 5."
    )


def test_a_poll_without_a_best_item_is_seldom_won_at_any_look():
    """Two equal items, ten looks, voters with tastes; ``python -m benchmarks.decisions`` has many more."""
    wrong = 0
    for seed in range(60):
        votes = poll(seed, [0.0, 0.0, -1.0], 1000, voters=15, taste=0.7)
        looks = (rank(votes.select(np.arange(1000) < count), draws=100) for count in range(100, 1001, 100))
        wrong += any(ranking.verdicts[0].can_stop for ranking in looks)
    assert wrong <= stats.binom.ppf(0.99, 60, 0.05)


def test_the_winner_comes_within_the_forecast():
    """At every look, in at least 80% of the polls that are decided in time or not."""
    held, looks = np.zeros(3), np.zeros(3)
    counts = (100, 300, 800)
    for seed in range(25):
        scores = 0.7 * np.random.default_rng(500 + seed).normal(size=5)
        votes = poll(seed, scores.tolist(), 6000, voters=300, taste=0.3)
        places = np.arange(len(votes))
        grid = np.unique(np.geomspace(60, 6000, 24).astype(int)).tolist()
        found = {n: rank(votes.select(places < n), draws=100).verdicts[0] for n in {*counts, *grid}}
        end = next((n for n in sorted(found) if found[n].can_stop), math.inf)
        for look, count in enumerate(counts):
            forecast = found[count].forecast
            if count >= end or forecast is None:
                continue
            looks[look] += 1
            low, high = count + forecast.low, count + forecast.high
            held[look] += high >= 6000 if math.isinf(end) else low <= end <= 1.22 * high  # a step of the grid
    assert looks.min() >= 8
    assert (held / looks >= 0.8).all()


def test_the_forecast_shrinks_as_votes_come_in():
    votes = poll(1, [0.5, 0.2, -0.4], 3000)
    found = [rank(votes.select(np.arange(3000) < n)).verdicts[0].forecast for n in (150, 600)]
    assert found[0].high > found[1].high
    assert 150 + found[0].low < 600 + found[1].high


def test_the_forecast_hardly_depends_on_how_items_and_voters_are_numbered():
    """The same votes come from files, where names are sorted, and from live studies, where they are not."""
    votes = poll(7, [0.5, 0.3, 0.1, 0.0, -0.2, -0.3], 700, voters=40, taste=0.3)
    rng, lows = np.random.default_rng(0), []
    for _ in range(6):
        item, voter = rng.permutation(6), rng.permutation(40)
        names = np.array(votes.items, dtype=object)[np.argsort(item)].tolist()
        people = [f"v{k}" for k in np.argsort(voter)]
        numbered = Votes.from_arrays(
            names, item[votes.first], item[votes.second], votes.result, voter=voter[votes.voter], voters=people
        )
        verdict = rank(numbered).verdicts[0]
        lows.append(verdict.forecast.low)
    assert max(lows) < 1.45 * min(lows)  # two steps of the forecast's grid


def test_votes_are_counted_in_voters_at_their_quota():
    votes = poll(1, [0.5, 0.2, -0.4], 150, voters=30)
    own, quota = (decide(votes, rank(votes), votes_per_voter=each)[0].forecast for each in (None, 20))
    assert own.per_voter == pytest.approx(5.0)
    assert "with 20 votes each" in quota.sentence
    assert "(1 voter with 20 votes)" in replace(quota, low=3.0, high=math.inf).sentence
    assert (own.low, own.high) == (quota.low, quota.high)


def test_groups_share_the_level():
    votes = Votes.from_arrays("abcde", [0] * 60 + [2] * 60, [1] * 60 + [3] * 60, [1] * 55 + [0] * 5 + [1, 0] * 30)
    one, other = decide(votes, rank(votes), lies=1)
    assert one.bar == other.bar == pytest.approx(math.log(2 / 0.05))
    assert one.headline == "Group 1: a has won against 1 other item, so you can stop."
    assert "at most 1 counted vote is false" in one.assumes
    assert other.headline == "Group 2: It is too early to say which of 2 items is the best."
    assert headlines((one, other) * 2)[-1].startswith("1 more groups are in the table; 2 of all have a winner")


def test_another_count_of_the_votes_that_contradicts_takes_the_win_away():
    votes = poll(3, [1.2, 0.0, -0.3, -0.6], 600)
    verdict = decide(votes, rank(votes), doubts={"i2": "If votes at night do not count, i2 has the highest score."})[0]
    assert (verdict.state, verdict.items, verdict.leader) == ("tie", ("i0", "i2"), None)
    assert verdict.details[0] == "If votes at night do not count, i2 has the highest score."
    assert decide(votes, rank(votes), doubts={"i0": "no doubt"})[0].state == "won"


def test_a_runaway_winner_wins_although_its_errors_are_large():
    """Twelve items, 400 votes, and a leader that wins nearly all of its votes."""
    won = 0
    for seed in range(8):
        scores = np.append(4.0, 0.5 * np.random.default_rng(seed).normal(size=11))
        verdict = rank(poll(seed, scores.tolist(), 400)).verdicts[0]
        assert verdict.leader == "i0"
        won += verdict.can_stop
    assert won >= 6


def test_false_votes_need_a_ranking_without_features():
    votes = poll(0, [0.5, 0.0], 60)
    votes = replace(votes, features=np.random.default_rng(0).normal(size=(60, 1)), feature_names=("length",))
    assert rank(votes).verdicts[0].of == 2
    with pytest.raises(BadInputError, match="with features"):
        decide(votes, rank(votes), lies=1)


def test_a_negative_number_of_false_votes_is_refused():
    votes = poll(0, [0.5, 0.0], 20)
    with pytest.raises(BadInputError, match="lies"):
        decide(votes, rank(votes), lies=-1)


def liked(votes):
    """A tenth of the votes are by voters who contradict the others, too few to be flagged."""
    return replace(votes, result=np.where(np.arange(len(votes)) % 10 == 0, 1.0 - votes.result, votes.result))


def undecided(votes):
    """A seventh of the votes are ties."""
    return replace(votes, result=np.where(np.arange(len(votes)) % 7 == 0, 0.5, votes.result))


@pytest.mark.parametrize(
    ("scores", "count", "change"),
    [
        *itertools.product([[1.0, 0.0, -0.4]], [500], [lambda votes: votes, liked, undecided]),
        *itertools.product([[0.0, 0.0, -0.1]], [300], [lambda votes: votes, liked, undecided]),
        ([0.2, 0.0], 9, undecided),
        # another order by reliability, although nobody is found
        *itertools.product([np.linspace(1.0, -1.0, 10).tolist()], [100, 300, 800], [lambda votes: votes]),
    ],
)
def test_every_place_says_the_same(scores, count, change, tmp_path):
    """Rank, audit, review and export, as summaries, records, notebooks and pages, and the service."""
    reading = votes_of(change(poll(7, scores, count, voters=12)).to_frame())
    votes = reading.votes
    ranking = with_certificates(votes, rank(votes))
    audited, reviewed, cleaned = audit(votes, top=1), review(votes), clean(reading)
    [verdict] = ranking.verdicts
    after = ranking_after_audit(votes).verdicts
    for each in (audited.verdicts, reviewed.ranking.verdicts, cleaned.ranking.verdicts, after):
        assert each == (verdict,)
    said = verdict.sentences
    for summary in (summarise(ranking), audited.summary(), reviewed.summary()):
        assert summary[: len(said)] == said
    for result in (ranking, audited, reviewed, cleaned):
        assert result.brief().startswith(said[0])
        assert said[0][:60] in repr(result)
        assert said[0] in html.unescape(result._repr_html_())
    for record in (audited.record(), reviewed.record(), _findings(audited)):
        assert record["verdicts"] == [verdict.record()]
    np.testing.assert_array_equal(cleaned.trust, 1.0)  # nobody differs
    pages = {
        "rank": (summarise(ranking), ranking_sections(ranking, votes)),
        "audit": (audited.summary(), audit_sections(audited)),
        "review": (reviewed.summary(), review_sections(reviewed)),
    }
    for name, (summary, sections) in pages.items():
        page = write_votes_report(tmp_path, title=name, summary=summary, sections=sections, settings={}, command=name)
        text = html.unescape(page.read_text())
        assert all(sentence in text for sentence in said)
        if verdict.leader is None:
            assert not re.search(r"\b(leads|has won|is first)\b", f"{' '.join(summary)} {text}")
    assert (f"{len(votes)} votes on" in " ".join(said)) == (count < LEAST_VOTES * len(scores))


def test_pairs_in_one_order_with_an_effect_of_position_have_no_leader():
    """Position passes for quality: P(best) says above 99%, and a tenth of the items named would be wrong."""
    rng = np.random.default_rng(0)
    one, other = np.triu_indices(5, 1)
    first, second = np.tile(one, 300), np.tile(other, 300)
    scores = np.array([0.9, 0.1, 0.0, -0.3, -0.7])
    result = (rng.random(3000) < expit(scores[first] - scores[second] + 0.6)).astype(float)
    votes = Votes.from_arrays("abcde", first, second, result)
    found = review(votes)
    verdict = found.ranking.verdicts[0]
    assert verdict.best > 0.99
    assert (verdict.state, verdict.leader) == ("too early", None)
    assert "show each pair in both orders" in " ".join(verdict.details)
    said = f"of two equal items the one shown first would win {found.position.share:.0%} of the votes"
    assert found.position.verdict == "biased"
    assert said in " ".join(verdict.details)
    turned = replace(votes, first=second.astype(np.int32), second=first.astype(np.int32), result=1.0 - result)
    both = votes.select(np.arange(3000) % 2 == 0), turned.select(np.arange(3000) % 2 == 1)
    mixed = Votes.from_arrays(
        "abcde", *(np.concatenate([getattr(each, name) for each in both]) for name in ("first", "second", "result"))
    )
    assert rank(mixed).verdicts[0].leader == "a"


def test_the_winner_of_a_poll_with_a_clear_best_comes_within_the_forecast():
    """A gap as large as in polls that people start is rare in the prior, so the forecast must not start too late."""
    scores, most = [0.7, 0.1, 0.0, -0.2, -0.4, -0.5], 3000
    counts, held, looks = (60, 120, 300), np.zeros(3), np.zeros(3)
    for seed in range(15):
        votes = poll(900 + seed, scores, most, voters=200, taste=0.3)
        places = np.arange(most)
        grid = [*counts, *np.geomspace(350, most, 14).astype(int).tolist()]
        end, forecasts = math.inf, {}
        for count in grid:
            verdict = rank(votes.select(places < count), draws=400).verdicts[0]
            if verdict.can_stop:
                end = count
                break
            if count in counts and verdict.forecast is not None:
                forecasts[count] = verdict.forecast
        for count, forecast in forecasts.items():
            looks[counts.index(count)] += 1
            held[counts.index(count)] += count + forecast.low <= end <= 1.22 * (count + forecast.high)
    assert looks.min() >= 12
    assert (held / looks >= 0.8).all()


def test_a_doubt_that_tells_nothing_new_changes_nothing():
    """Nobody would be named, and every item may be the best: another count of the votes says no more than that."""
    votes = poll(0, [0.0, 0.0, 0.0], 100)
    ranking = rank(votes)
    [verdict] = ranking.verdicts
    other = verdict.items[-1]
    assert decide(votes, ranking, doubts={other: "another count"}) == (verdict,)
    tied = poll(0, [0.5, 0.5, -1.5, -1.5, -2.0], 800)
    outside = next(item for item in tied.items if item not in rank(tied).verdicts[0].items)
    [doubted] = decide(tied, rank(tied), doubts={outside: "another count"})
    assert (doubted.state, doubted.items[-1], doubted.details[0]) == ("tie", outside, "another count")


def test_a_review_forecasts_nothing_while_it_is_too_early():
    votes = poll(1, [0.5, 0.2, 0.0, -0.4], 18)
    found = review(votes)
    assert found.ranking.verdicts[0].has_few_votes
    assert found.plan.sentences[0].endswith("it is too early to tell how many votes the rest need.")
    assert not any("Separating" in sentence for sentence in found.plan.sentences)
    assert found.to_frame()["votes"].null_count() == 3


def test_a_review_asks_which_item_is_the_best_until_one_has_won():
    """One look may tell the first item apart from all others before many looks do."""
    asked = {}
    for seed in range(40):
        votes = poll(seed, [0.6, 0.0, -0.3, -0.6], 400)
        found = review(votes) if rank(votes).standings[0].rank_high == 1 else None
        if found is not None:
            asked.setdefault(found.ranking.verdicts[0].state, set()).add(found.plan.question)
        if len(asked) == 2:
            break
    assert asked == {"leads": {"which item is the best"}, "won": {"which neighbours differ"}}


def test_practically_equal_items_are_not_sent_to_collect_more_votes():
    audited = audit(Votes.from_arrays("ab", [0] * 1000, [1] * 1000, [1, 0] * 500))
    assert audited.verdicts[0].equal
    assert "Announce a tie between a and b." in audited.advice()


def stretched(votes):
    """A stretch of the votes is for the last item."""
    inside = (np.arange(len(votes)) // 60 == 3) & ((votes.first == 3) | (votes.second == 3))
    return replace(votes, result=np.where(inside, (votes.first == 3).astype(float), votes.result))


@pytest.mark.parametrize(
    "votes",
    [
        arena(seed=4)[0],
        arena(liars={"inverters": 30}, seed=1)[0],
        stretched(poll(5, [0.6, 0.1, 0.0, -0.2], 700, voters=40)),
        poll(6, [0.0, 0.0], 900, voters=60, taste=0.3),
    ],
    ids=["liars", "inverters", "a stretch", "equal items"],
)
def test_a_ranking_after_an_audit_says_what_the_audit_says(votes):
    audited, ranking = audit(votes, top=1), ranking_after_audit(votes)
    assert ranking.verdicts == audited.verdicts
    assert [each.item for each in ranking.standings] == [each.item for each in audited.shown.standings]
    assert any("all votes count the same" in note for note in ranking.notes) == (audited.shown is audited.everyone)


def test_a_leader_without_a_rival_is_told_what_a_winner_takes_beyond_that():
    """One look may rule out all other items before many looks do."""
    said = []
    for seed in range(20):
        votes = poll(seed, [1.0, 0.0, -0.3, -0.6], 250)
        for lies in (0, 2):
            verdict = decide(votes, rank(votes, draws=400), lies=lies)[0]
            if verdict.state == "leads" and len(verdict.items) == 1:
                said.append((lies, verdict.reasons[0]))
            assert verdict.state != "leads" or len(verdict.items) > 1 or "i0 and" not in verdict.tiered
    assert {lies for lies, _ in said} == {0, 2}
    for lies, reason in said:
        false = ", even if 2 votes are false" if lies else ""
        assert reason == (
            "By these votes no other item may be the best, but a winner takes more: that must hold no matter how often "
            f"you look{false}."
        )
