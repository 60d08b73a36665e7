"""Draw the pictures of the front page and of the algorithms' pages, each from a real run.

    python docs/pictures.py

Takes under a minute. The same seeds give the same pictures.
"""
# ruff: noqa: INP001  # a script

import inspect
import io
from collections.abc import Callable
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from PIL import Image

import fairduel
from fairduel import RCDB, Outcome
from fairduel.agents import DuelingAgent
from fairduel.duel import Matrix, Vector
from fairduel.report.drawing import STYLE, image
from fairduel.votes.attacking.liars import arena
from fairduel.votes.auditing.audit import Audit, audit

HERE = Path(__file__).parent
ALGORITHMS = HERE / "pictures"
ORANGE, BLUE, GREY, INK = "#D55E00", "#0072B2", "#BBBBBB", "#1d2330"

# A world to look at: twelve actions on a circle. The best points at 30°, and the first votes are lies.
ANGLES = 2.0 * np.pi * np.arange(12) / 12
ACTIONS = np.column_stack([np.cos(ANGLES), np.sin(ANGLES)])
THETA = 3.0 * ACTIONS[1]
LIES, VOTES = 10, 150
AGENTS = {  # by page
    "sceptic": fairduel.Sceptic,
    "rcdb": fairduel.RCDB,
    "rcdb-s": fairduel.RCDBS,
    "maxpairucb": fairduel.MaxPairUCB,
    "maxinp": fairduel.MaxInP,
    "maxminlcb": fairduel.MaxMinLCB,
    "colstim": fairduel.CoLSTIM,
    "ginop": fairduel.GINOP,
    "hcw": fairduel.HCW,
    "random-pairs": fairduel.RandomPairs,
    "rcdp": fairduel.RCDP,
    "vacdb": fairduel.VACDB,
    "fgts": fairduel.FGTS,
}


def play(agent: DuelingAgent, seed: int, lies: int, votes: int, look: Callable[[], Vector] | None = None) -> list:
    """Return each round's pair of actions, its weight, and what ``look`` sees after it; the first votes are lies."""
    rng, seen = np.random.default_rng(seed), []
    for vote in range(votes):
        duel = agent.ask(ACTIONS)
        lead = (ACTIONS[duel.first] - ACTIONS[duel.second]) @ THETA
        wins = lead < 0.0 if vote < lies else rng.random() < 1.0 / (1.0 + np.exp(-lead))
        agent.tell(duel, Outcome.FIRST if wins else Outcome.SECOND)
        seen.append((duel.first, duel.second, duel.weight, look().copy() if look else None))
    return seen


def draw_run(cls: type[DuelingAgent]) -> Figure:
    """Draw which actions an agent asks for, vote by vote."""
    settings = {"dimension": 2, "norm_bound": 3.0, "horizon": VOTES}
    settings |= {"flip_budget": LIES} if "flip_budget" in inspect.signature(cls).parameters else {}
    rounds = play(cls(**settings), 0, LIES, VOTES)
    loss = (ACTIONS[1] - ACTIONS) @ THETA
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(7.4, 1.9), layout="constrained")
        axis = figure.subplots()
        axis.axvspan(0.5, LIES + 0.5, color=ORANGE, alpha=0.15, lw=0)
        axis.text(LIES / 2, -0.8, "lies", color=ORANGE, ha="center", va="bottom", fontsize=9)
        most = max(weight for *_, weight, _ in rounds)
        for place in (0, 1):
            chosen = [each[place] for each in rounds]
            sizes = [6.0 + 30.0 * each[2] / most for each in rounds]
            axis.scatter(np.arange(VOTES) + 1, loss[chosen], s=sizes, color=BLUE, alpha=0.55, lw=0)
        axis.set_xlim(0, VOTES + 1)
        axis.set_ylim(6.6, -0.6)
        axis.set_yticks([0, 3, 6], ["best", "", "worst"])
        axis.set_xlabel("vote")
        return figure


def draw_weights() -> Figure:
    """Draw RCDB's estimate after five early lies, with its weights and without."""
    lies, runs, votes, shown = 5, 100, 60, 20
    kinds = {"without the weight": ({"trust": 1e9}, GREY), "with the weight": ({}, ORANGE)}
    truth = THETA / np.linalg.norm(THETA)
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(7.4, 3.1), layout="constrained")
        left, right = figure.subplots(1, 2, width_ratios=[1, 1.5])
        for name, (settings, colour) in kinds.items():
            paths = np.array([_directions(seed, lies, votes, settings) for seed in range(runs)])
            left.plot(*np.stack([np.zeros((2, runs)), paths[:, shown - 1].T], axis=1), color=colour, alpha=0.35, lw=1)
            wrong = np.degrees(np.arccos(np.clip(paths @ truth, -1.0, 1.0)))
            mean, error = wrong.mean(axis=0), wrong.std(axis=0) / np.sqrt(runs)
            at = np.arange(votes) + 1
            right.fill_between(at, mean - 2.0 * error, mean + 2.0 * error, color=colour, alpha=0.3, lw=0)
            right.plot(at, mean, color=colour, lw=2, label=name)
        left.plot(*ACTIONS.T, "o", color=INK, ms=3)
        left.plot(*(1.16 * truth), "*", color=INK, ms=11)
        left.set_aspect("equal")
        left.axis("off")
        left.set_title(f"estimates after {shown} votes")
        right.axvspan(0.5, lies + 0.5, color=ORANGE, alpha=0.15, lw=0)
        right.text(lies + 1, 168, "← lies", color=ORANGE, va="center", fontsize=9)
        right.set_ylim(0, 180)
        right.set_yticks([0, 45, 90, 135, 180], ["0°", "45°", "90°", "135°", "180°"])
        right.set_xlim(0.5, votes)
        right.set_xlabel("vote")
        right.set_title("angle between estimate and truth")
        right.legend(loc="upper right")
        return figure


def _directions(seed: int, lies: int, votes: int, settings: dict) -> Matrix:
    agent = RCDB(dimension=2, norm_bound=3.0, flip_budget=lies, self_duels=False, **settings)
    rounds = play(agent, seed, lies, votes, lambda: agent.estimate)
    estimates = np.array([each[3] for each in rounds])
    return estimates / np.linalg.norm(estimates, axis=1, keepdims=True)


def draw_front(found: Audit, liars: set[str], pushed: str) -> Figure:
    """Draw the demo's poll: every voter's evidence, and the scores with and without the flagged voters."""
    evidence = found.evidence
    assert evidence is not None
    lies = np.isin(found.votes.voters, list(liars))
    height = np.clip(evidence.total / np.log(10.0), -2.0, 17.0)
    with mpl.rc_context({**STYLE, "axes.grid": False}):
        figure = Figure(figsize=(10, 4.2), layout="constrained")
        left, right = figure.subplots(1, 2, width_ratios=[1.25, 1])
        left.axhline(evidence.settings["needed_log10_evidence"], color=GREY, ls="--", lw=1)
        for chosen, colour, name in ((~lies, BLUE, "honest"), (lies, ORANGE, "lies")):
            left.plot(evidence.votes[chosen], height[chosen], "o", color=colour, ms=7, alpha=0.6, mew=0, label=name)
        flagged = evidence.flagged
        left.plot(evidence.votes[flagged], height[flagged], "o", color=INK, ms=11, mfc="none", label="flagged")
        left.set_yticks([0, 4, 8, 12, 16], ["1", "10⁴", "10⁸", "10¹²", "10¹⁶"])
        left.set_xlabel("votes of the voter")
        left.set_title(f"{len(evidence.votes)} voters: the evidence against each", loc="left", fontweight="bold")
        left.legend(loc="center left", bbox_to_anchor=(0.0, 0.62))
        before, after = ({each.item: each.score for each in r.standings} for r in (found.everyone, found.shown))
        best = found.shown.standings[0].item
        for item in before:
            special = {pushed: ORANGE, best: BLUE}.get(item)
            line = (before[item], after[item])
            right.plot([0, 1], line, "o-", color=special or GREY, lw=3.5 if special else 1.2, ms=8 if special else 3)
            if special:
                right.text(-0.06, line[0], item, ha="right", va="center", color=special, fontweight="bold", fontsize=13)
                right.text(1.06, line[1], item, ha="left", va="center", color=special, fontweight="bold", fontsize=13)
        right.set_xlim(-0.35, 1.35)
        right.set_xticks([0, 1], ["all votes", "after the audit"], fontsize=11)
        right.set_yticks([])
        right.spines[:].set_visible(False)
        right.tick_params(length=0)
        right.set_title(f"{len(before)} trees: the score of each", loc="left", fontweight="bold")
        return figure


def poll() -> tuple[Audit, set[str], str]:
    """Return the audit of the poll of ``fairduel demo``, who lies, and whom they push."""
    votes, liars = arena(seed=0, liars={"promote": 12, "inverters": 4, "one-side": 2}, target="Fir")
    return audit(votes, top=1), set(liars), "Fir"


def save(figure: Figure, path: Path) -> None:
    """Write a picture in few enough colours to be small."""
    path.parent.mkdir(exist_ok=True)
    Image.open(io.BytesIO(image(figure, "png"))).convert("RGB").quantize(128).save(path, optimize=True)


if __name__ == "__main__":
    save(draw_front(*poll()), HERE / "gallery" / "front.png")
    save(draw_weights(), ALGORITHMS / "weights.png")
    for page, agent_class in AGENTS.items():
        save(draw_run(agent_class), ALGORITHMS / f"{page}.png")
