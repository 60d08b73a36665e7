"""The replay experiment on a small folder of votes, and its figures on the misfit of the linear model by hand."""

import numpy as np
import pytest
from scipy.special import expit
from typer.testing import CliRunner

from fairduel.cli.command_list import app_for
from fairduel.errors import BadInputError
from fairduel.experiments import replayed_votes as declared
from fairduel.experiments.replayed_votes import (
    CONTENDERS,
    FIRST_FLIPPED,
    HORIZON,
    NO_FLIPS,
    PANELS,
    RADII,
    WITH_RADIUS,
    misfit,
    replay_experiments,
)
from fairduel.worlds.replay import load


@pytest.fixture
def folder(tmp_path):
    """Three contexts of four items, every pair voted on four to six times, with ties."""
    rng = np.random.default_rng(2)
    phi = rng.uniform(-0.5, 0.5, (12, 3))
    lines = ["topic,arg_a,arg_b,winner"]
    for topic in range(3):
        for one in range(4 * topic, 4 * topic + 4):
            for other in range(one + 1, 4 * topic + 4):
                chance = 0.8 * expit(6.0 * (phi[one] - phi[other]).sum())
                winners = rng.choice(["a", "b", "tie"], size=4 + other % 3, p=[chance, 0.8 - chance, 0.2])
                lines += [f"{topic},{one},{other},{winner}" for winner in winners]
    (tmp_path / "votes").mkdir()
    (tmp_path / "votes" / "votes.csv").write_text("\n".join(lines) + "\n")
    np.savez(tmp_path / "votes" / "features.npz", phi=phi)
    return tmp_path / "votes"


def test_every_agent_meets_every_attack_with_rcdb_as_reference(folder):
    experiment = replay_experiments(folder)[0]
    assert len(experiment.entries) == len(CONTENDERS) * len(PANELS)
    assert {entry.cell.horizon for entry in experiment.entries} == {3000}
    for attack in PANELS:
        cells = [entry.cell for entry in experiment.entries if entry.panel == attack.panel]
        assert {cell.agent for cell in cells} == {
            "sceptic", "rcdb", "rcdb-s", "maxpairucb", "maxinp", "maxminlcb", "colstim", "ginop", "hcw", "random-pairs",
            "rcdp", "vacdb", "fgts",
        }  # fmt: skip
        assert len({(cell.attack, cell.budget, str(cell.attack_settings)) for cell in cells}) == 1
        [reference] = [e for e in experiment.entries if e.panel == attack.panel and e.is_reference]
        assert (reference.cell.agent, dict(reference.cell.agent_settings)) == ("rcdb", {})
    budgets = [(attack.name, attack.budget) for attack in PANELS]
    assert budgets[:3] == [("none", 150), ("greedy", 150), ("greedy", 600)]
    for entry in experiment.entries:
        entry.cell.start(seed=0)


def test_agents_know_the_budget_or_do_not(folder):
    def tolerated(words, panel):
        entries = replay_experiments(folder)[0].entries
        [entry] = [e for e in entries if (e.cell.agent, e.setting, e.panel) == ("rcdb", words, panel)]
        return entry.cell.start(seed=0)[0].settings["flip_budget"]

    panels = [attack.panel for attack in PANELS]
    assert [tolerated("practical", panel) for panel in panels] == [150, 150, 600, 150, 150]
    assert [tolerated("C unknown", panel) for panel in panels] == [55] * 5


def test_every_radius_is_tried_for_all_alike(folder):
    experiment = replay_experiments(folder)[1]
    for panel in [attack.panel for attack in (NO_FLIPS, FIRST_FLIPPED)]:
        for radius in RADII:
            entries = [e for e in experiment.entries if (e.panel, e.x) == (panel, radius)]
            assert sorted(e.cell.agent for e in entries) == sorted(WITH_RADIUS)
            assert {e.cell.start(seed=0)[0].current_radius for e in entries} == {radius}
            assert [e.cell.agent for e in entries if e.is_reference] == ["rcdb"]


def test_misfit_by_hand(folder):
    recording = load(folder)
    votes = [line.split(",") for line in (folder / "votes.csv").read_text().split()[1:]]
    phi = np.load(folder / "features.npz")["phi"]
    phi = phi / np.linalg.norm(phi, axis=1).max()

    def slow(thetas, chance=None):
        """Accuracy and log-loss vote by vote, for θ by topic or for a ``chance`` of each pair."""
        right, decided, loss = 0.0, 0, 0.0
        for topic, one, other, winner in votes:
            p = chance[one, other] if chance else expit((phi[int(one)] - phi[int(other)]) @ thetas[int(topic)])
            result = {"a": 1.0, "b": 0.0, "tie": 0.5}[winner]
            loss -= (result * np.log(p) if result else 0.0) + ((1 - result) * np.log(1 - p) if result < 1 else 0.0)
            if winner != "tie":
                decided += 1
                right += 0.5 if p == 0.5 else (p > 0.5) == (winner == "a")
        return right / decided, loss / len(votes)

    measured = misfit(recording)
    thetas = [recording.parameter] * 3
    assert (measured.linear.accuracy, measured.linear.log_loss) == pytest.approx(slow(thetas))
    picks = [4 * k + int(np.argmax(phi[4 * k : 4 * k + 4] @ recording.parameter)) for k in range(3)]
    borda = np.concatenate([context.rewards for context in recording.contexts])
    assert measured.linear.pick == pytest.approx(borda[picks].mean())

    others = [recording.pairs.fit(recording.pairs.context != k) for k in range(3)]
    assert (measured.held_out.accuracy, measured.held_out.log_loss) == pytest.approx(slow(others))
    assert measured.held_out.log_loss > measured.linear.log_loss

    results = {}
    for _, one, other, winner in votes:
        results.setdefault((one, other), []).append({"a": 1.0, "b": 0.0, "tie": 0.5}[winner])
    shares = {pair: np.mean(values) for pair, values in results.items()}
    assert (measured.ceiling.accuracy, measured.ceiling.log_loss) == pytest.approx(slow(None, shares))
    assert measured.ceiling.pick == pytest.approx(borda.reshape(3, 4).max(axis=1).mean())
    assert measured.random_pick == pytest.approx(0.5)


def test_notes_state_the_misfit_and_what_it_costs(folder):
    experiment = replay_experiments(folder)[0]
    measured = misfit(load(folder))
    text = " ".join(experiment.notes)
    assert f"{measured.linear.accuracy:.1%}" in text
    assert f"{measured.held_out.pick:.3f}" in text
    assert f"a regret of {2 * HORIZON * (measured.ceiling.pick - measured.linear.pick):,.0f};" in text
    assert "Every pair has votes" in text
    assert "90 votes on 18 pairs in 3 contexts of 4 items, d = 3" in text


def test_gaps_are_filled_and_said(folder):
    lines = (folder / "votes.csv").read_text().splitlines()
    (folder / "votes.csv").write_text("\n".join(line for line in lines if not line.startswith("0,0,1")) + "\n")
    experiment = replay_experiments(folder)[0]
    assert "Pairs without votes: 1, answered by the linear model" in experiment.notes[0]
    experiment.entries[0].cell.start(seed=0)


def test_one_context_has_no_other_to_hold_out(folder):
    lines = (folder / "votes.csv").read_text().splitlines()
    (folder / "votes.csv").write_text("\n".join(line for line in lines if line[0] in "t0") + "\n")
    assert misfit(load(folder)).held_out is None
    assert "not seen" not in " ".join(replay_experiments(folder)[0].notes)


def test_without_votes_one_sentence_says_where_from():
    with pytest.raises(BadInputError, match=r"--data.*UKPConvArg1"):
        replay_experiments(None)


def test_the_command_writes_its_report(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(declared, "HORIZON", 12)
    monkeypatch.setattr(declared, "CONTENDERS", CONTENDERS[:1] + CONTENDERS[4:5])
    monkeypatch.setattr(declared, "RADII", (1.0, 3.0))
    out = tmp_path / "out"
    command = ["reproduce", "replay", "--data", str(folder), "--runs", "2", "--jobs", "1", f"--out={out}", "--figures"]
    done = CliRunner().invoke(app_for(command), command, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    page = (out / "report.html").read_text(encoding="utf-8")
    for attack in PANELS:
        assert attack.panel in page
    assert "The linear model, which all agents here assume, is wrong." in page
    assert (out / "replay.svg").exists()


def test_data_is_for_replay_alone(tmp_path):
    with pytest.raises(BadInputError, match="--data is for replay only"):
        CliRunner().invoke(app_for(), ["reproduce", "figure1", "--data", str(tmp_path)], catch_exceptions=False)


def test_ukpconvarg1_is_misfitted_as_its_readme_says(data):
    measured = misfit(load(data / "ukpconvarg1"))
    assert measured.held_out.accuracy == pytest.approx(0.714, abs=0.003)
    assert measured.held_out.pick == pytest.approx(0.729, abs=0.003)
    assert measured.ceiling.accuracy == pytest.approx(0.840, abs=0.001)
    assert measured.ceiling.pick == pytest.approx(0.836, abs=0.001)
