"""Gold duels: what they say about voters, that nobody can tell them apart, and what the learner does with them."""

import math
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate

from fairduel.agents.parts.state_file import same_state
from fairduel.service.analysis.analyse import analyse, recorded_votes
from fairduel.service.analysis.inputs import Subject
from fairduel.service.commands import operating, voting
from fairduel.service.events import backup
from fairduel.service.events.database import read_events
from fairduel.service.events.kinds import GoldChanged
from fairduel.service.problems import Problem
from fairduel.service.study import gold
from fairduel.service.study.learner import Learner
from fairduel.service.study.study import GoldDuels
from fairduel.votes.auditing import known_answers
from helpers.crowd import Crowd

H = known_answers.HONEST
ANSWERS = [{"winner": f"item {n}", "loser": f"item {n - 2}"} for n in range(2, 6)]


def log(booth):
    return booth.run(lambda ledger: list(read_events(ledger.connection(), study=booth.study)))


def replayed(booth):
    again = Learner(booth.state.about)
    for event in log(booth):
        again.fold(event)
    return again


@given(st.integers(0, 12), st.integers(0, 12))
def test_the_evidence_is_the_average_likelihood_ratio(right, wrong):
    h = float(H)
    ratio, _ = integrate.quad(lambda q: (q / h) ** right * ((1 - q) / (1 - h)) ** wrong / h, 0.0, h)
    assert math.isclose(float(known_answers.evidence_against(right, right + wrong)), ratio, rel_tol=1e-9)


@given(st.integers(0, 30), st.integers(0, 30), st.fractions(H, 1))
def test_the_evidence_against_an_honest_voter_does_not_grow_on_average(right, wrong, chance):
    now, n = known_answers.evidence_against(right, right + wrong), right + wrong + 1
    after = chance * known_answers.evidence_against(right + 1, n) + (1 - chance) * gold.evidence_against(right, n)
    assert after <= now
    assert (after == now) == (chance == H)


def ever_doubted(chance, level, answers=120):
    """The exact probability that someone with this chance of each right answer is doubted at some time."""
    alive, hit = {0: 1.0}, 0.0
    for of in range(1, answers + 1):
        after = Counter()
        for right, mass in alive.items():
            after[right] += mass * (1.0 - chance)
            after[right + 1] += mass * chance
        alive = {}
        for right, mass in after.items():
            if mass > 1e-12 and known_answers.evidence_against(right, of) >= 1 / level:
                hit += mass
            elif mass > 1e-12:
                alive[right] = mass
    return hit


def test_honest_voters_are_doubted_at_the_stated_level_only():
    """Exact, and so close to the level that one twice as large would break the promise."""
    assert gold.LEVEL / 2 < ever_doubted(float(H), gold.LEVEL) <= gold.LEVEL < ever_doubted(float(H), 2 * gold.LEVEL)
    assert ever_doubted(0.9, gold.LEVEL) < 0.002
    assert ever_doubted(0.0, gold.LEVEL, answers=3) == 1.0
    assert ever_doubted(0.5, gold.LEVEL, answers=20) > 0.6


@given(st.integers(1, 12), st.integers(2, 12), st.text(max_size=5))
def test_one_duel_of_each_block_is_gold(first, every, voter):
    turns = [gold.is_gold_turn(b"key", voter, n, first=first, every=every) for n in range(first + 5 * every)]
    blocks = [turns[:first]] + [turns[n : n + every] for n in range(first, len(turns), every)]
    assert [sum(block) for block in blocks] == [1] * 6


def test_nobody_can_predict_which_one():
    places = Counter(
        next(n for n in range(5) if gold.is_gold_turn(secret, voter, n, first=5, every=10))
        for secret in (b"one", b"other")
        for voter in map(str, range(1000))
    )
    assert all(abs(places[n] - 400) < 5 * math.sqrt(400 * 0.8) for n in range(5))


def test_the_words():
    assert gold.tested(3, 9)["gold"] == "3 of 9 known answers right; someone who answers at random gets 4.5"
    assert gold.tested(3, 9)["gold_low"] == pytest.approx(0.0749, abs=1e-4)  # Clopper–Pearson, from a table
    assert gold.tested(3, 9)["gold_high"] == pytest.approx(0.7007, abs=1e-4)
    assert gold.tested(0, 0) == {"gold_right": 0, "gold_of": 0, "gold_low": None, "gold_high": None, "gold": ""}


@pytest.mark.parametrize("repeat_pairs", [False, True])
def test_gold_duels_look_like_others_and_are_neither_ranked_nor_learned(new_booth, repeat_pairs):
    booth = new_booth(
        items=6, repeat_pairs=repeat_pairs, undo_seconds=0, gold={"answers": ANSWERS, "first": 3, "every": 4}
    )
    known = {frozenset((each["winner"], each["loser"])): each["winner"] for each in ANSWERS}
    right, asked, looks = Counter(), Counter(), set()
    for number in range(44):
        voter = number % 4
        duel = booth.ask(voter)[0]
        event = log(booth)[-1]
        looks.add((tuple(duel), tuple(duel["left"])))
        pair = frozenset((duel["left"]["text"], duel["right"]["text"]))
        if getattr(event.body, "gold", False):
            asked[voter] += 1
            right[voter] += duel["left"]["text"] == known[pair]
        reply = booth.answer(duel["duel"], "left", voter)
        assert reply["counted"]
        assert reply["progress"]["votes"] == 1 + number // 4
    assert len(looks) == 1
    tests = sum(asked.values())
    assert tests == 12 or (not repeat_pairs and 4 <= tests < 12)  # of 11 duels: one of 3, one of 4, one of 4
    learner = booth.state.learner
    assert [learner.tested(each.voter) for each in booth.voters] == [(right[v], asked[v]) for v in range(4)]
    assert learner.agent.belief.estimator.outcomes <= 44 - tests + len(ANSWERS)
    with booth.ledger.store.engine.connect() as connection:
        about = Subject.of(booth.state)
        assert len(recorded_votes(connection, about)) == 44 - tests
        assert any(f"{tests} answers to gold duels" in note for note in analyse(connection, about, 0).results["notes"])
    before = [booth.state.voters[each.voter] for each in booth.voters]
    booth.restart()
    assert [booth.state.voters[each.voter] for each in booth.voters] == before
    assert same_state(replayed(booth).state(), booth.state.learner.state())
    assert backup.check(booth.folder).problems == ()


def test_a_known_answer_is_learned_once_when_it_is_given(new_booth):
    booth = new_booth(items=6, undo_seconds=0, gold={"answers": ANSWERS[:2]})
    agent = booth.state.learner.agent
    assert agent.belief.estimator.outcomes == 2
    booth.run(operating.change_gold, booth.study, GoldDuels(answers=ANSWERS, first=2))
    assert agent.belief.estimator.outcomes == 4
    booth.run(operating.change_gold, booth.study, GoldDuels(answers=ANSWERS, first=2))
    assert [event.body.kind for event in log(booth)].count(GoldChanged.kind) == 2
    booth.vote(6)
    corrected = [{"winner": "item 0", "loser": "item 2"}, *ANSWERS[1:]]
    tested = dict(booth.state.learner._tested)
    booth.run(operating.change_gold, booth.study, GoldDuels(answers=corrected))
    assert booth.state.learner._tested == tested  # the answers stay, and are judged by the corrected ones
    assert same_state(replayed(booth).state(), booth.state.learner.state())


def test_undone_skipped_tied_and_expired_answers_say_nothing(new_booth):
    booth = new_booth(items=6, duel_seconds=10, gold={"answers": ANSWERS, "first": 1, "every": 2})
    tally = booth.state.learner.tested

    def answer_gold(voter, given):
        duel = booth.ask(voter)[0]["duel"]
        assert log(booth)[-1].body.gold
        booth.answer(duel, given, voter)
        return duel

    answer_gold(0, "tie")
    answer_gold(1, "skip")
    again = booth.undo(answer_gold(2, "left"), 2)["duel"]
    assert log(booth)[-1].body.gold
    booth.answer(again["duel"], "right", 2)
    booth.ask(3)
    booth.ledger._began += 61
    booth.run(voting.sweep)
    assert [tally(each.voter)[1] for each in booth.voters] == [0, 0, 1, 0]
    assert booth.state.learner._tests == {}
    assert same_state(replayed(booth).state(), booth.state.learner.state())


@pytest.mark.parametrize(
    ("answers", "problem"),
    [
        ([{"winner": "item 0", "loser": "stranger"}], "not an item"),
        ([{"winner": "item 0", "loser": "item 0"}], "two different items"),
        ([{"winner": "item 0", "loser": "item 1"}, {"winner": "item 1", "loser": "item 0"}], "no pair twice"),
        ([{"winner": "item 0", "loser": "item 1", "context": "prompt"}], "no such context"),
    ],
)
def test_wrong_known_answers_are_refused_and_change_nothing(booth, answers, problem):
    before = len(log(booth))
    with pytest.raises(Problem, match=problem) as refused:
        booth.run(operating.change_gold, booth.study, GoldDuels(answers=answers))
    assert refused.value.status == 422
    assert len(log(booth)) == before


def test_known_answers_in_contexts(new_booth):
    contents = {f"item {n}": f"answer {n}" for n in range(4)}
    contexts = [{"name": name, "contents": contents} for name in ("one", "two")]
    known = [{"winner": "item 3", "loser": "item 0", "context": "two"}]
    booth = new_booth(items=5, contexts=contexts, undo_seconds=0, gold={"answers": known, "first": 1})
    assert booth.ask()[0]["context"]["name"] == "two"
    assert log(booth)[-1].body.gold
    for wrong in ({"context": None}, {"context": "three"}, {"loser": "item 4"}):
        with pytest.raises(Problem):
            booth.run(operating.change_gold, booth.study, GoldDuels(answers=[known[0] | wrong]))


def test_gold_duels_keep_liars_from_choosing_the_winner(monkeypatch):
    """Three of ten voters always lie; the same crowds with and without the rule."""
    caught, wrong = Counter(), Counter()
    for rule in (gold.is_doubtful, lambda _right, _of: False):
        monkeypatch.setattr("fairduel.service.study.learner.is_doubtful", rule)
        for seed in range(6):
            crowd = Crowd(seed)
            crowd.vote(40)
            wrong[rule] += not crowd.is_right
            for voter in crowd.doubted:
                caught[rule, crowd.voters.index(voter) < crowd.liars] += 1
    assert wrong[gold.is_doubtful] <= 1
    assert list(wrong.values())[-1] >= 4
    assert caught[gold.is_doubtful, True] >= 0.9 * 6 * 6
    assert caught[gold.is_doubtful, False] <= 3  # of 84; the level allows 4.2 of those right 4 times in 5


def test_someone_who_recovers_is_learned_again():
    crowd = Crowd(0, voters=2, liars=1, items=12, answers=20)
    crowd.vote(40)
    assert crowd.doubted == ["voter 0"]
    crowd.liars = 0
    before = crowd.learner.agent.belief.estimator.outcomes
    while crowd.doubted:
        crowd.vote(10)
    crowd.vote(5)
    assert crowd.learner.agent.belief.estimator.outcomes > before
    again = Learner(crowd.study)
    for event in crowd.log:
        again.fold(event)
    assert same_state(again.state(), crowd.learner.state())


@settings(max_examples=4, deadline=None)
@given(seed=st.integers(0, 2**20))
def test_a_replay_is_the_live_learner_with_all_of_it(seed, tmp_path_factory):
    from helpers.booth import Booth, Clock  # noqa: PLC0415

    folder = tmp_path_factory.mktemp("all")
    booth = Booth(
        folder,
        Clock(),
        {
            "items": 6,
            "repeat_pairs": bool(seed % 2),
            "least_views": 3,
            "seed": seed % 9,
            "gold": {"answers": ANSWERS, "first": 2, "every": 3},
        },
    )
    try:
        model = booth.run(operating.invite, booth.study, ["m"], are_models=True)[0]["voter"]
        booth.voters.append(type(booth.voters[0])("voter", booth.study, model))
        booth.vote(15, seed)
        booth.run(operating.change_item, booth.study, 4, {"priority": True, "least_views": 9})
        booth.vote(15, seed + 1)
        booth.run(operating.set_voter_aside, booth.study, booth.voters[0].voter, set_aside=True)
        without = booth.state.set_aside
        booth.run(lambda ledger: ledger.adopt(booth.state, refolded(ledger, booth, without)))
        booth.vote(10, seed + 2)
        live, voters = booth.state.learner.state(), booth.state.voters
        assert sum(each.tests != set() for each in voters.values()) >= 3
        booth.restart()
        assert same_state(booth.state.learner.state(), live)
        assert booth.state.voters == voters
        assert [found.problem for found in backup.replay(folder)] == [""]
        assert backup.check(folder).problems == ()
    finally:
        booth.ledger.close()


def refolded(ledger, booth, without):
    learner = Learner(booth.state.about)
    learner.impose(read_events(ledger.connection(), study=booth.study), without)
    return learner
