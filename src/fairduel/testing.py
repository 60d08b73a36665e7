"""Checks for agents and feature maps, fairduel's and your own: :func:`check_agent` and :func:`check_map`."""

import inspect
import math
import operator
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from fairduel.agents.parts.state_file import same_state
from fairduel.core.links import LOGISTIC
from fairduel.duel import Duel, Matrix, Outcome, Pull
from fairduel.errors import LockInWarning, unknown_name
from fairduel.features import FeatureMap, Network, TrainingVotes

Kind = Literal["duel", "reward"]
ACTIONS: Matrix = np.array([[0.9, 0.0, 0.0], [0.0, 0.9, 0.0], [0.0, 0.0, 0.9], [-0.6, 0.3, 0.5], [0.1, -0.2, 0.3]])
"""The default actions of :func:`check_agent`: five, with three features."""
_BUDGETS = ("flip_budget", "corruption_budget")


def check_agent(
    make: Callable[..., Any], *, kind: Kind = "duel", actions: ArrayLike = ACTIONS, rounds: int = 60
) -> list[str]:
    """Run all checks on an agent.

    Args:
        make: Returns a new agent with a fixed seed: any object with ``ask`` and ``tell``. If it takes ``flip_budget``
            or ``corruption_budget``, the agent is also checked with a budget of 0.
        kind: ``"duel"`` or ``"reward"``: what the agent learns from.
        actions: The actions to choose from, shape (K, d).
        rounds: The number of rounds that each check plays.

    Returns:
        The checks that were skipped, with the reason: a check of a method that the agent does not have (``save``,
        ``cancel``, ``pending``).

    Raises:
        AssertionError: The agent fails a check.

    >>> from functools import partial
    >>> from fairduel import RCDB
    >>> check_agent(partial(RCDB, dimension=3, norm_bound=2.0, flip_budget=5, horizon=60))
    []
    """
    if kind not in get_args(Kind):
        raise unknown_name("kind of agent", str(kind), get_args(Kind))
    game = _Game(make, kind, np.array(actions, dtype=np.float64), rounds)
    agent = make()
    for needed in ("ask", "tell"):
        assert callable(getattr(agent, needed, None)), f"interface: the agent has no method {needed!r}."
    skipped = []
    for name, (check, needs) in _CHECKS.items():
        missing = [part for part in needs if not hasattr(agent, part)]
        if missing:
            skipped.append(f"{name}: the agent has no {' and no '.join(missing)}")
        elif name == "budget 0" and not game.budgets:
            skipped.append("budget 0: the agent takes no budget")
        elif name == "ties" and kind == "reward":
            skipped.append("ties: rewards have none")
        else:
            with _named(name):
                check(game)
    return skipped


def check_map(made: FeatureMap, *, dimension: int, actions: ArrayLike | None = None) -> None:
    """Run all checks on a feature map: it is deterministic, its norms are at most 1, and saving loses nothing.

    A network must also begin at 0, treat every action alone, and learn.

    Args:
        made: The map, not fitted yet.
        dimension: d, the number of features that it gets.
        actions: Actions to fit it to, shape (n, d), if it needs some.

    Raises:
        AssertionError: The map fails a check.

    >>> from fairduel.features import Quadratic
    >>> check_map(Quadratic(), dimension=3)
    """
    known = None if actions is None else np.array(actions, dtype=np.float64)
    rows = np.random.default_rng(0).standard_normal((20, dimension))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True) * 1.001
    fitted, again = made.fit(dimension, known, seed=1), made.fit(dimension, known, seed=1)
    assert not made.is_fitted, "fit: it changed the map instead of returning a new one."
    first = fitted(rows)
    assert first.shape == (20, fitted.size), f"shape: size is {fitted.size}, but features have shape {first.shape}."
    assert np.isfinite(first).all(), "finite: some features are not finite."
    longest = float(np.linalg.norm(first, axis=1).max())
    assert longest <= 1.0 + 1e-6, (
        f"norm: a new action has features of norm {longest:.6g}; norms of at most 1 are needed."
    )
    assert np.array_equal(first, fitted(rows)), "determinism: the same actions have other features the second time."
    assert np.array_equal(first, again(rows)), "determinism: fitted anew with the same seed, it has other features."
    loaded = FeatureMap.from_state(fitted.state())
    assert np.array_equal(first, loaded(rows)), "state: after saving and loading, the features differ."
    assert np.array_equal(fitted.reference, loaded.reference), "state: its reference was not saved."
    if isinstance(fitted, Network):
        _check_network(fitted, rows)


def _check_network(network: Network, rows: Matrix) -> None:
    """Check what only a network must do: begin at 0, treat every action alone, learn, and lose nothing when saved."""
    assert not network.rewards(rows).any(), "start: the rewards of a network that was not trained are not 0."
    alone = np.concatenate([network(row[None]) for row in rows])
    assert np.allclose(alone, network(rows), atol=1e-5), (
        "alone: an action's features depend on the other actions; use no batch normalisation."
    )
    votes = TrainingVotes(rows[:10], rows[10:], np.ones(10), np.ones(10))
    trained, again = (network.trained(votes, link=LOGISTIC, ridge=0.01, actions=rows) for _ in range(2))
    assert not network.rewards(rows).any(), "training: it changed the network instead of returning a new one."
    leads = trained.rewards(rows[:10]) - trained.rewards(rows[10:])
    assert leads.mean() > 0.0, "training: after ten wins, the winners are not ahead."
    assert np.array_equal(trained(rows), again(rows)), "determinism: trained anew on the same votes, it differs."
    loaded = FeatureMap.from_state(trained.state())
    assert isinstance(loaded, Network)
    assert np.array_equal(trained.rewards(rows), loaded.rewards(rows)), "state: saving a trained network changes it."


class _Game:
    """The function that makes agents, and a hidden truth: an action with a higher index is better."""

    def __init__(self, make: Callable[..., Any], kind: Kind, actions: Matrix, rounds: int) -> None:
        self.make, self.kind, self.actions, self.rounds = make, kind, actions, rounds
        self.values = np.linspace(-1.0, 1.0, len(actions))
        takes = inspect.signature(make).parameters
        self.budgets = {name: 0 for name in _BUDGETS if name in takes}

    def ask(self, agent: Any, actions: Matrix | None = None) -> Any:
        """Ask, and check the result."""
        table = self.actions if actions is None else actions
        return self.checked(agent.ask(table.copy()))

    def checked(self, asked: Any) -> Any:
        """Return what was asked after checking its indices and numbers."""
        self.indices(asked)
        for name in ("difference", "features", "weight"):
            value = getattr(asked, name, 0.0)
            assert np.isfinite(value).all(), f"the agent asked something whose {name} is not finite: {asked!r}."
        return asked

    def indices(self, asked: Any) -> tuple[int, ...]:
        """The indices of the actions that were asked."""
        expected = "a pair of indices" if self.kind == "duel" else "an index"
        try:
            if self.kind == "reward":
                found: tuple[Any, ...] = (getattr(asked, "action", asked),)
            else:
                found = (asked.first, asked.second) if hasattr(asked, "first") else tuple(asked)
            numbers = tuple(operator.index(index) for index in found)
        except TypeError:
            raise AssertionError(f"ask must return {expected}, or an object with them, not {asked!r}.") from None
        assert len(numbers) == (1 if self.kind == "reward" else 2), f"ask must return {expected}, not {asked!r}."
        count = len(self.actions)
        assert all(0 <= number < count for number in numbers), f"ask returned {asked!r}, out of {count} actions."
        return numbers

    def answer(self, asked: Any, rng: np.random.Generator, ties: float = 0.0) -> Any:
        """A noisy answer; for a duel, a tie with probability ``ties``."""
        numbers = self.indices(asked)
        if ties and rng.random() < ties:
            return Outcome.TIE
        if self.kind == "reward":
            return float(rng.random() < 0.5 + 0.4 * self.values[numbers[0]])
        margin = float(self.values[numbers[0]] - self.values[numbers[1]])
        return Outcome.FIRST if rng.random() < 1.0 / (1.0 + math.exp(-2.0 * margin)) else Outcome.SECOND

    def play(self, agent: Any, rounds: int, seed: int = 0, ties: float = 0.0) -> list[tuple[int, ...]]:
        """Play with immediate answers; return the indices that were asked."""
        rng = np.random.default_rng(seed)
        history = []
        for _ in range(rounds):
            asked = self.ask(agent)
            history.append(self.indices(asked))
            agent.tell(asked, self.answer(asked, rng, ties))
        return history

    def refuses(self, agent: Any, what: str, act: Callable[[], Any]) -> None:
        """Check that ``act`` raises and leaves the agent unchanged."""
        before = agent.state() if hasattr(agent, "state") else None
        try:
            act()
        except Exception:  # noqa: BLE001  # an agent may raise any error
            if before is not None:
                assert same_state(agent.state(), before), f"{what} was refused, but it changed the agent."
            return
        raise AssertionError(f"{what} was not refused.")


def _determinism(game: _Game) -> None:
    one, other = game.make(), game.make()
    assert game.play(one, game.rounds) == game.play(other, game.rounds), (
        "two agents with the same seed and the same answers asked differently; draw all randomness from the seed."
    )


def _resume(game: _Game, ties: float = 0.0) -> None:
    for rounds in (3, game.rounds):  # early and late
        agent = game.make()
        game.play(agent, rounds, ties=ties)
        waiting = game.ask(agent)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "agent.npz"
            agent.save(path)
            again = type(agent).load(path)
        answer = game.answer(waiting, np.random.default_rng(1), ties)
        for each in (agent, again):
            each.tell(waiting, answer)
        assert game.play(agent, game.rounds, 2, ties) == game.play(again, game.rounds, 2, ties), (
            "after saving and loading, the agent asks something different."
        )


def _delay(game: _Game) -> None:
    agent, rng = game.make(), np.random.default_rng(3)
    waiting = []
    for _ in range(game.rounds):
        waiting.append(game.ask(agent))
        if len(waiting) > 10:  # in random order; ten are never answered
            asked = waiting.pop(int(rng.integers(len(waiting))))
            agent.tell(asked, game.answer(asked, rng))
    if hasattr(agent, "pending"):
        left = sorted(asked.number for asked in agent.pending)
        assert left == sorted(asked.number for asked in waiting), (
            "pending differs from what was asked but not yet told."
        )


def _cancel(game: _Game) -> None:
    agent, rng = game.make(), np.random.default_rng(4)
    for _ in range(game.rounds):
        lost, asked = game.ask(agent), game.ask(agent)
        agent.cancel(lost)
        agent.tell(asked, game.answer(asked, rng))
    assert not getattr(agent, "pending", ()), "a cancelled duel or pull is still pending."
    game.refuses(agent, "telling what was cancelled", lambda: agent.tell(lost, game.answer(lost, rng)))
    game.refuses(agent, "cancelling twice", lambda: agent.cancel(lost))


def _bad_actions(game: _Game) -> None:
    agent = game.make()
    game.play(agent, 5)
    game.refuses(agent, "an empty set of actions", lambda: agent.ask(game.actions[:0]))
    before = agent.state() if hasattr(agent, "state") else None
    try:
        asked = agent.ask(np.full_like(game.actions, math.nan))
    except Exception:  # noqa: BLE001
        assert before is None or same_state(agent.state(), before), (
            "NaN features were refused, but they changed the agent."
        )
    else:
        game.checked(asked)  # an agent without features may accept them


def _bad_answers(game: _Game) -> None:
    agent = game.make()
    game.play(agent, 5)
    asked = game.ask(agent)
    for wrong in (None, "first", math.nan):
        game.refuses(agent, f"the answer {wrong!r}", partial(agent.tell, asked, wrong))
    agent.tell(asked, game.answer(asked, np.random.default_rng(6)))


def _told_twice(game: _Game) -> None:
    agent, rng = game.make(), np.random.default_rng(7)
    game.play(agent, 5)
    asked = game.ask(agent)
    agent.tell(asked, game.answer(asked, rng))
    game.refuses(agent, "telling the same answer twice", lambda: agent.tell(asked, game.answer(asked, rng)))


def _never_asked(game: _Game) -> None:
    agent, rng = game.make(), np.random.default_rng(8)
    game.play(agent, 5)
    invented: Duel | Pull = Duel(99, 0, 1) if game.kind == "duel" else Pull(99, 0)
    game.refuses(agent, "telling what was never asked", lambda: agent.tell(invented, game.answer(invented, rng)))


def _equal_actions(game: _Game) -> None:
    agent, rng = game.make(), np.random.default_rng(9)
    equal = np.tile(game.actions[0], (len(game.actions), 1))
    for _ in range(game.rounds):
        asked = game.ask(agent, equal)
        agent.tell(asked, game.answer(asked, rng))


def _ties(game: _Game) -> None:
    for ties in (1.0, 0.4):  # only ties, and some ties
        agent = game.make()
        game.play(agent, game.rounds, ties=ties)
        estimate = np.asarray(getattr(agent, "estimate", 0.0))
        assert np.isfinite(estimate).all(), f"after ties, the estimate is {estimate}."
        if ties == 1.0 and estimate.shape == game.actions.shape[1:]:
            rewards = game.actions @ estimate
            assert np.ptp(rewards) <= 1e-6, f"after nothing but ties, the estimated rewards differ: {rewards}."
        if hasattr(agent, "save") and hasattr(agent, "load"):
            _resume(game, ties)


def _budget(game: _Game) -> None:
    for name in game.budgets:
        game.play(game.make(**{name: 0}), game.rounds)


_CHECKS: dict[str, tuple[Callable[[_Game], None], tuple[str, ...]]] = {
    "determinism": (_determinism, ()),
    "delay": (_delay, ()),
    "equal actions": (_equal_actions, ()),
    "bad actions": (_bad_actions, ()),
    "bad answers": (_bad_answers, ("pending",)),
    "told twice": (_told_twice, ("pending",)),
    "never asked": (_never_asked, ("pending",)),
    "cancel": (_cancel, ("cancel",)),
    "resume": (_resume, ("save", "load")),
    "ties": (_ties, ()),
    "budget 0": (_budget, ()),
}
"""Every check by name, and the attributes that it needs."""


@contextmanager
def _named(name: str) -> Iterator[None]:
    """Prefix failures with the check's name; an error raised by the agent is a failure too."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", LockInWarning)  # expected in so few rounds
            yield
    except AssertionError as error:
        raise AssertionError(f"{name}: {error}") from error
    except Exception as error:
        raise AssertionError(f"{name}: the agent raised {type(error).__name__}: {error}") from error
