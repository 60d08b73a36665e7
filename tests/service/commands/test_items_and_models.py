"""Items that are asked more often or at least so often, and language models as voters."""

from collections import Counter

import numpy as np
import pytest

from fairduel.service.analysis import language_models
from fairduel.service.analysis.analyse import analyse, recorded_votes
from fairduel.service.analysis.inputs import Subject
from fairduel.service.commands import operating
from fairduel.service.keys import Holder
from fairduel.service.problems import Problem
from fairduel.votes import Votes, rank


def add_model(booth, name="gpt-x"):
    added = booth.run(operating.invite, booth.study, [name], are_models=True)[0]
    booth.voters.append(Holder("voter", booth.study, added["voter"]))
    return len(booth.voters) - 1


def analysed(booth):
    with booth.ledger.store.engine.connect() as connection:
        return analyse(connection, Subject.of(booth.state), 0).results


@pytest.mark.parametrize("repeat_pairs", [False, True])
def test_every_item_is_shown_so_often_before_the_agent_is_free(new_booth, repeat_pairs):
    booth = new_booth(items=7, least_views=4, repeat_pairs=repeat_pairs)
    booth.run(operating.change_item, booth.study, 3, {"least_views": 8})
    booth.run(operating.change_item, booth.study, 5, {"enabled": False})
    needed = (5 * 4 + 8) // 2
    booth.join(4)
    for number in range(needed):
        assert booth.state.missing_views()
        duel = booth.ask(number % 8)[0]["duel"]
        booth.answer(duel, voter=number % 8)
    assert booth.state.missing_views() == {}
    assert booth.state.shown == [4, 4, 4, 8, 4, 0, 4]
    booth.run(operating.change_item, booth.study, 3, {"least_views": None})
    assert booth.state.item_settings(3)["least_views"] is None
    with pytest.raises(Problem, match="no such item"):
        booth.run(operating.change_item, booth.study, 7, {"least_views": 1})


def test_an_item_with_priority_is_in_every_other_duel(new_booth):
    booth, plain = new_booth(items=8, seed=2), new_booth(items=8, seed=2)
    booth.run(operating.change_item, booth.study, 6, {"priority": True})
    for each in (booth, plain):
        each.vote(60)
    assert booth.state.shown[6] >= 30 > 1.5 * plain.state.shown[6]
    booth.run(operating.change_item, booth.study, 6, {"priority": False})
    assert booth.state.lead() is None
    before = booth.state.learner.agent.estimate.copy()
    booth.restart()
    assert np.array_equal(booth.state.learner.agent.estimate, before)


def test_models_kept_apart_are_not_learned_and_ranked_on_their_own(new_booth):
    booth = new_booth(items=4, undo_seconds=0)
    place = add_model(booth)
    before = booth.state.learner.agent.state()
    for _ in range(30):
        duel = booth.ask(place)[0]
        given = "left" if duel["left"]["text"] < duel["right"]["text"] else "right"
        booth.answer(duel["duel"], given, place)
    after = booth.state.learner.agent
    assert after.asked == before["asked"]
    assert np.array_equal(after.information.matrix, before["belief"]["information"]["matrix"])
    assert booth.state.shown == [0] * 4
    found = analysed(booth)
    assert found["needs"] is not None
    assert found["models"]["votes"] == 30
    assert [row["item"] for row in found["models"]["ranking"]] == [f"item {n}" for n in range(4)]
    assert found["models"]["agreement"][0]["of"] == 0
    for number in range(40):
        duel = booth.ask(number % 4)[0]
        given = "left" if duel["left"]["text"] > duel["right"]["text"] else "right"
        booth.answer(duel["duel"], given, number % 4)
    found = analysed(booth)
    assert found["ranking"][0]["item"] == "item 3"
    assert found["models"]["ranking"][0]["item"] == "item 0"
    told = found["models"]["agreement"][0]
    assert told["agreed"] == 0
    assert 15 <= told["of"] <= 30  # people's ranking may leave two items equal
    assert told["sentence"].startswith(f"gpt-x (voter 5): 0 of {told['of']} votes agree with people's ranking (0%, 95%")
    assert told["sentence"].endswith("people's own votes do in 100%.")
    with booth.ledger.store.engine.connect() as connection:
        assert len(recorded_votes(connection, Subject.of(booth.state))) == 40


def test_models_that_are_counted_are_learned_and_the_results_say_so_first(new_booth):
    booth = new_booth(items=3, undo_seconds=0, models="counted")
    place = add_model(booth)
    for number in range(20):
        voter = place if number < 5 else number % 4
        booth.answer(booth.ask(voter)[0]["duel"], "left", voter)
    assert booth.state.learner.agent.belief.estimator.outcomes == 20
    found = analysed(booth)
    assert found["models"] is None
    assert found["details"][0] == "5 of 20 votes came from 1 language model: gpt-x (voter 5)."


def test_fifty_voters_at_once_get_different_duels(new_booth):
    """The agent counts duels that wait for an answer, so it need not be told that they are open."""
    booth = new_booth(items=12, repeat_pairs=False)
    booth.join(46)
    pairs = Counter(frozenset(booth.ask(voter)[0][side]["text"] for side in ("left", "right")) for voter in range(50))
    assert max(pairs.values()) == 1


def test_agreement_is_that_counted_by_hand():
    rng = np.random.default_rng(3)
    first = rng.integers(0, 5, 200)
    second = (first + rng.integers(1, 5, 200)) % 5
    result, voter = rng.choice([0.0, 0.5, 1.0], 200), rng.integers(0, 3, 200)
    votes = Votes.from_arrays("abcde", first, second, result, voter=voter, voters=list("xyz"))
    rows = rank(votes).records()
    score = {row["item"]: row["score"] for row in rows}
    agreed, decided = Counter(), Counter()
    for one, other, won, who in zip(first, second, result, voter, strict=True):
        if won != 0.5:
            decided[who] += 1
            agreed[who] += (score["abcde"[one]] > score["abcde"[other]]) == (won == 1.0)
    found = language_models.agreement(votes, rows)
    assert [list(each) for each in found] == [[agreed[n] for n in range(3)], [decided[n] for n in range(3)]]
