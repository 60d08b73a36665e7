"""The learner is a fold of the log: live, replayed, and restarted from a save, it is the same bit by bit."""

import random

import numpy as np
import pytest

from fairduel.agents.parts.state_file import same_state
from fairduel.core.information import UPDATES, Information
from fairduel.service.commands import operating
from fairduel.service.events import backup
from fairduel.service.events.database import read_events
from fairduel.service.events.kinds import DuelIssued, Refolded, VoterJoined
from fairduel.service.study import learner
from fairduel.service.study.gold import compared
from fairduel.service.study.learner import DivergedError, Learner
from fairduel.service.study.study import new_agent
from helpers.booth import about
from helpers.clusters import in_both
from helpers.torture import torture

AGENTS = {"sceptic": {}, "rcdb": {"flip_budget": 5}}


@pytest.mark.parametrize(
    ("items", "given", "recorded"),
    [
        (5, {}, {"allowance": 2.0}),
        (5, {"agent_settings": {"allowance": 0.5, "growth": 1.0}}, {"allowance": 0.5, "growth": 1.0}),
        (5, {"agent": "rcdb", "agent_settings": {"flip_budget": 5}}, {"flip_budget": 5}),
        (201, {}, {"allowance": 2.0, "estimator": "lazy"}),
    ],
)
def test_a_new_study_records_what_its_agent_does_in_live_voting(booth, items, given, recorded):
    study = booth.run(operating.create_study, about(items, **given))
    assert study.about.agent_settings == recorded
    assert {name: study.learner.agent.settings[name] for name in recorded} == recorded


def events(booth):
    return booth.run(lambda ledger: list(read_events(ledger.connection(), study=booth.study)))


def folded(study, log, start=None):
    found = start or Learner(study)
    for event in log:
        found.fold(event)
    return found


@torture(12, "replay of the log", small=60, full=20_000, unit="votes")
@in_both
@pytest.mark.usefixtures("often_saved")
@pytest.mark.parametrize("agent", AGENTS)
def test_a_replay_learns_the_same_state_bit_by_bit(trial, new_booth, agent):
    booth = new_booth(agent=agent, agent_settings=AGENTS[agent], items=7)
    booth.vote(60)
    booth.crowd(trial.size - 60)
    live = booth.state.learner
    again = folded(booth.state.about, events(booth))
    assert np.array_equal(live.agent.information.matrix, again.agent.information.matrix)
    assert np.array_equal(live.agent.estimate, again.agent.estimate)
    assert same_state(live.state(), again.state())
    assert [each.problem for each in backup.replay(booth.folder)] == [""]
    trial.found = f"{live.agent.title}: Σ, θ and all other state equal bit by bit"


@torture(13, "restart from the last saved learner and the rest of the log", small=25, full=1000, unit="moments")
@pytest.mark.usefixtures("often_saved")
def test_a_save_and_the_rest_of_the_log_are_the_whole_log(trial, new_booth, tmp_path):
    booth = new_booth(items=6)
    booth.vote(50)
    booth.crowd(trial.size - 25)
    log, study = events(booth), booth.state.about
    growing, saves = Learner(study), [(0, None)]
    for place, event in enumerate(log, start=1):
        growing.fold(event)
        if growing.saved is not None:
            path = tmp_path / f"{place}.npz"
            learner.save(path, growing.saved)
            saves.append((place, path))
            growing.saved = None
    assert len(saves) == len(log) // 20 + 1
    for cut in np.linspace(1, len(log), trial.size).astype(int):
        place, path = max(save for save in saves if save[0] <= cut)
        restarted = folded(study, log[place:cut], None if path is None else learner.read_learner(path, study))
        assert same_state(restarted.state(), folded(study, log[:cut]).state())
    trial.found = f"in a log of {len(log):,} events with {len(saves) - 1} saves, always the state of a full replay"


def test_a_pair_that_someone_else_chose_is_asked_and_replayed(new_booth):
    booth = new_booth(items=5)
    booth.vote(5)

    def give(ledger):
        proposal = booth.state.learner.propose_given(None, 4, 2)
        shown = {"first_is_left": True, "deadline": ledger.now() + 60}
        ledger.append(booth.study, DuelIssued.of(proposal, "d" * 32, booth.voters[0].voter, **shown))
        return proposal

    proposal = booth.run(give)
    assert {proposal.first, proposal.second} == {2, 4}
    booth.answer("d" * 32)
    booth.vote(5)
    assert same_state(folded(booth.state.about, events(booth)).state(), booth.state.learner.state())


@torture(11, "restart with open duels", small=60, full=1000, unit="open duels")
@in_both
@pytest.mark.usefixtures("often_saved")
def test_a_restart_with_open_duels_goes_on_as_if_nothing_had_happened(trial, new_booth):
    booth, twin = new_booth(items=6, seed=3), new_booth(items=6, seed=3)
    for each in (booth, twin):
        each.vote(30)
    booth.restart()
    for each in (booth, twin):
        each.join(trial.size)
    opened = [[duel for voter in range(trial.size) for duel in each.ask(4 + voter)] for each in (booth, twin)]
    booth.restart()
    states = [each.state.learner.state() for each in (booth, twin)]
    for name in ("random", "belief"):
        assert same_state(states[0]["agent"][name], states[1]["agent"][name])
    for voter, duel in enumerate(opened[0], start=4):
        assert booth.answer(duel["duel"], voter=voter)["counted"]
    assert len(opened[0]) >= trial.size
    assert booth.state.counts["open"] == 0
    trial.found = "all can be answered, and the learner is that of a twin without a restart"


@in_both
@pytest.mark.usefixtures("often_saved")
def test_a_voter_set_aside_is_forgotten_by_the_learner(new_booth):
    booth = new_booth(items=5, undo_seconds=0)
    booth.vote(40)
    liar = booth.voters[1].voter
    booth.run(operating.set_voter_aside, booth.study, liar, set_aside=True)
    before = events(booth)
    refolded = Learner(booth.state.about)
    refolded.impose(before, {liar})
    booth.run(lambda ledger: ledger.adopt(booth.state, refolded))
    without = [e for e in before if getattr(e.body, "voter", None) != liar or isinstance(e.body, VoterJoined)]
    plain = Learner(booth.state.about)
    plain.impose(without, ())
    agent, other = booth.state.learner.agent, plain.agent
    assert np.allclose(agent.information.matrix, other.information.matrix, rtol=1e-12)
    assert agent.belief.estimator.outcomes == other.belief.estimator.outcomes < 40
    booth.vote(20, seed=1)
    live = booth.state.learner.state()
    booth.restart()
    assert same_state(booth.state.learner.state(), live)
    assert booth.state.refolded_without == {liar}


@in_both
def test_a_learner_that_diverges_is_refolded(booth, monkeypatch):
    booth.vote(10)
    monkeypatch.setattr(learner, "new_agent", lambda *study, seed=1: new_agent(*study[:3], seed))
    with pytest.raises(DivergedError, match="where the log has"):
        folded(booth.state.about, events(booth))
    booth.restart()
    assert isinstance(events(booth)[-1].body, Refolded)
    assert booth.state.learner.agent.asked == sum(booth.state.counts.values()) - booth.state.counts["undone"]
    booth.vote(5, seed=1)
    live = booth.state.learner.state()
    booth.restart()
    assert same_state(booth.state.learner.state(), live)


@pytest.mark.parametrize("damage", [b"", b"garbage", None])
def test_a_missing_or_damaged_save_does_no_harm(new_booth, damage, monkeypatch):
    monkeypatch.setattr("fairduel.service.study.learner.SAVE_EVERY", 20)
    booth = new_booth()
    booth.vote(20)
    live = booth.state.learner.state()
    booth.ledger.close()
    path = booth.folder / "learners" / f"{booth.study}.npz"
    assert path.is_file()
    path.unlink() if damage is None else path.write_bytes(damage)
    booth.open()
    assert same_state(booth.state.learner.state(), live)


@torture(
    16, "the clock jumps by up to an hour, while the server runs and between restarts", small=5, full=150, unit="jumps"
)
def test_the_clock_does_not_decide_the_order(trial, new_booth):
    booth, twin = (new_booth(items=5, seed=1, duel_seconds=30 * 86_400, undo_seconds=0) for _ in range(2))
    rng = random.Random(0)
    for number in range(trial.size):
        booth.clock.now += rng.choice([3600.0, -3600.0, rng.uniform(-3600.0, 3600.0)])
        booth.vote(2, seed=number)
        booth.restart()
        twin.vote(2, seed=number)
        twin.restart()
    log = events(booth)
    assert [event.at for event in log] == sorted(event.at for event in log)
    assert [event.body.kind for event in log] == [event.body.kind for event in events(twin)]
    for name in ("random", "belief"):
        states = [each.state.learner.state()["agent"][name] for each in (booth, twin)]
        assert same_state(*states)
    assert backup.check(booth.folder).problems == ()
    trial.found = (
        f"{len(log):,} events in the order of their positions; the learner is that of a twin with a good clock"
    )


def test_a_skip_computes_no_matrix_again(monkeypatch):
    """So that a stranger who skips on and on keeps nobody waiting, however many items there are."""
    found, seen, shown = Learner(about(100)), set(), [0] * 100
    computed = []
    keep, determinant = Information._keep_gram, np.linalg.slogdet
    monkeypatch.setattr(Information, "_keep_gram", lambda *given: (computed.append("Gram matrix"), keep(*given)))
    monkeypatch.setattr(np.linalg, "slogdet", lambda *given: (computed.append("det Σ"), determinant(*given))[1])
    declined = 0
    for number in range(60):
        proposal = found.propose(seen, shown, lead=number % 100 if number % 2 else None)
        found.ask(f"{number}", proposal)
        declined += proposal.declined
        for item in (proposal.first, proposal.second):
            shown[item] += 1
        seen.add(compared(None, proposal.first, proposal.second))
        found.cancel(f"{number}")
        if number == 1:
            updates = found.agent.information.arrays.marks[UPDATES]
            computed.clear()
    assert declined > 10  # the agent wanted another pair
    assert computed == []
    assert found.agent.information.arrays.marks[UPDATES] == updates
    assert np.allclose(found.agent.information.matrix, Learner(about(100)).agent.information.matrix)
