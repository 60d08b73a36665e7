"""Every built-in agent passes the generic checks, and each check catches the fault that it is there for."""

import functools
import inspect
from dataclasses import replace

import numpy as np
import pytest

from fairduel import RCDB, BadInputError, Outcome
from fairduel.agents import AGENTS, RewardAgent, VersatileDB
from fairduel.testing import ACTIONS, check_agent

KNOWN = {
    "dimension": 3,
    "norm_bound": 1.0,
    "noise": 0.5,
    "arms": len(ACTIONS),
    "horizon": 300,
    "flip_budget": 5,
    "corruption_budget": 5,
    "seed": 11,
}


def maker(kind, **settings):
    """Like a run: give an agent what its constructor names."""
    named = inspect.signature(kind).parameters
    return functools.partial(kind, **{name: value for name, value in KNOWN.items() if name in named} | settings)


@pytest.mark.parametrize("name", AGENTS)
def test_every_built_in_agent_passes(name):
    kind = AGENTS[name]
    of_rewards = issubclass(kind, RewardAgent)
    skipped = check_agent(maker(kind), kind="reward" if of_rewards else "duel", rounds=40)
    takes_budget = {"flip_budget", "corruption_budget"} & set(inspect.signature(kind).parameters)
    expected = ["ties: rewards have none"] if of_rewards else []
    assert skipped == expected + ([] if takes_budget else ["budget 0: the agent takes no budget"])


@pytest.mark.parametrize("settings", [{"form": "one-learner"}, {"rate": 4.0}], ids=str)
def test_the_other_forms_of_versatile_db_pass(settings):
    check_agent(maker(VersatileDB, **settings))


class Coin:
    """The shortest agent of duels."""

    def __init__(self, seed=0):
        self.rng = np.random.default_rng(seed)

    def ask(self, actions):
        return tuple(self.rng.choice(len(actions), 2))

    def tell(self, pair, outcome):
        pass


class Arm:
    """The shortest agent of rewards."""

    def ask(self, actions):
        return len(actions) // 2 if len(actions) else -1

    def tell(self, arm, reward):
        pass


def test_an_agent_with_ask_and_tell_alone_passes_what_applies():
    skipped = check_agent(Coin)
    assert [line.split(":")[0] for line in skipped] == [
        "bad answers",
        "told twice",
        "never asked",
        "cancel",
        "resume",
        "budget 0",
    ]
    assert skipped[3] == "cancel: the agent has no cancel"
    assert skipped[4] == "resume: the agent has no save and no load"


class NoTell:
    def ask(self, actions):
        return 0, len(actions) - 1


class Forgetful(Coin):
    """Its randomness is not the seed's."""

    drawn = 0

    def ask(self, actions):
        Forgetful.drawn += 1
        return Forgetful.drawn // 7 % len(actions), 0 * len(actions[0])


class TooFar(Coin):
    def ask(self, actions):
        return 0, len(actions)


class ThreeAtOnce(Coin):
    def ask(self, actions):
        return 0, 1, len(actions) - 3


class Fractions(Coin):
    def ask(self, actions):
        return 0.0, 1.0 * len(actions[0])


class Impatient(Coin):
    """Waits for each answer before it goes on."""

    waits = False

    def ask(self, actions):
        if self.waits:
            raise RuntimeError("tell me first")
        self.waits = True
        return super().ask(actions)

    def tell(self, pair, outcome):
        super().tell(pair, outcome)
        self.waits = False


class Divides(Coin):
    """Divides by a distance that may be 0."""

    def ask(self, actions):
        distances = np.linalg.norm(actions - actions[0], axis=1)
        return 0, int(float(distances.argmax()) / float(distances.max()) > 1)


class EmptyIsFine(Coin):
    def ask(self, actions):
        return (0, 0) if len(actions) == 0 else super().ask(actions)


class LetsNanIn(RCDB):
    def _table(self, actions):
        return np.array(actions, dtype=float)

    def ask(self, actions=None):
        return super().ask(actions) if len(actions) else self._refuse()

    def _refuse(self):
        raise BadInputError("nothing to choose from.")


class DrawsFirst(RCDB):
    """Looks at the features only after a draw."""

    def _ask(self, actions):
        if len(actions):
            self._rng.random()
        return super()._ask(actions)


class TakesAnyAnswer(RCDB):
    def _checked_answer(self, answer):
        return answer if isinstance(answer, Outcome) else Outcome.SECOND


class TellsTwice(RCDB):
    def _release(self, asked):
        kept = self._pending.pop(asked.number, None)
        return kept or asked


class HalfRefuses(RCDB):
    """Refuses what it was told already, but counts it."""

    def _release(self, asked):
        if asked.number not in self._pending:
            self._self_duel_streak += 1
        return super()._release(asked)


class BelievesStrangers(RCDB):
    def _release(self, asked):
        strange = asked.number >= self._asked
        return replace(asked, difference=np.ones(3)) if strange else super()._release(asked)


class CancelsOften(RCDB):
    def cancel(self, asked):
        self._pending.pop(asked.number, None)


class KeepsTheCancelled(RCDB):
    def cancel(self, asked):
        pass


class ForgetsItsStream(RCDB):
    def _restore(self, state):
        super()._restore(state)
        self._rng = np.random.default_rng(99)


class KnowsTwoOutcomes(Coin):
    def tell(self, pair, outcome):
        {Outcome.FIRST: pair[0], Outcome.SECOND: pair[1]}[outcome]


class TieIsALoss(RCDB):
    def _tell(self, asked, answer):
        super()._tell(asked, Outcome.FIRST if answer is Outcome.FIRST else Outcome.SECOND)


class DividesByWins(RCDB):
    """Its estimate is NaN until somebody wins."""

    wins = 0

    def _tell(self, asked, answer):
        super()._tell(asked, answer)
        self.wins += answer is not Outcome.TIE

    @property
    def estimate(self):
        return super().estimate if self.wins else np.full(3, np.nan)


class ForgetsTies(RCDB):
    """What it does after a tie is not saved."""

    tied = False

    def _ask(self, actions):
        if self.tied:
            self._rng.random()
        return super()._ask(actions)

    def _tell(self, asked, answer):
        super()._tell(asked, answer)
        self.tied = self.tied or answer is Outcome.TIE


class DividesByItsBudget(RCDB):
    def __post_init__(self):
        super().__post_init__()
        self.share = 1 / self.flip_budget


@pytest.mark.parametrize(
    ("agent", "finding"),
    [
        (NoTell, "^interface: the agent has no method 'tell'"),
        (Forgetful, "^determinism: two agents with the same seed and the same answers asked differently"),
        (TooFar, "^determinism: ask returned .0, 5., out of 5 actions"),
        (ThreeAtOnce, "^determinism: ask must return a pair of indices, not .0, 1, 2."),
        (Fractions, "^determinism: ask must return a pair of indices, or an object with them"),
        (Impatient, "^delay: the agent raised RuntimeError: tell me first"),
        (Divides, "^equal actions: the agent raised ZeroDivisionError"),
        (EmptyIsFine, "^bad actions: an empty set of actions was not refused"),
        (maker(LetsNanIn), "^bad actions: the agent asked something whose difference is not finite"),
        (maker(DrawsFirst), "^bad actions: NaN features were refused, but they changed the agent"),
        (maker(TakesAnyAnswer), "^bad answers: the answer None was not refused"),
        (maker(TellsTwice), "^told twice: telling the same answer twice was not refused"),
        (maker(HalfRefuses), "^told twice: telling the same answer twice was refused, but it changed the agent"),
        (maker(BelievesStrangers), "^never asked: telling what was never asked was not refused"),
        (maker(CancelsOften), "^cancel: cancelling twice was not refused"),
        (maker(KeepsTheCancelled), "^cancel: a cancelled duel or pull is still pending"),
        (maker(ForgetsItsStream), "^resume: after saving and loading, the agent asks something different"),
        (KnowsTwoOutcomes, "^ties: the agent raised KeyError: <Outcome.TIE"),
        (maker(TieIsALoss), "^ties: after nothing but ties, the estimated rewards differ: "),
        (maker(DividesByWins), "^ties: after ties, the estimate is .*nan"),
        (maker(ForgetsTies), "^ties: after saving and loading, the agent asks something different"),
        (maker(DividesByItsBudget), "^budget 0: the agent raised ZeroDivisionError"),
    ],
    ids=lambda value: getattr(value, "func", value).__name__ if callable(value) else "",
)
def test_each_fault_is_caught_by_its_check(agent, finding):
    with pytest.raises(AssertionError, match=finding):
        check_agent(agent)


def test_pending_must_be_the_unanswered_duels():
    class Lists(RCDB):
        @property
        def pending(self):
            return super().pending[1:]

    with pytest.raises(AssertionError, match=r"^delay: pending differs from what was asked but not yet told"):
        check_agent(maker(Lists))


def test_rewards_are_numbers_and_one_index_is_asked():
    check_agent(functools.partial(Refusing, Arm), kind="reward")
    with pytest.raises(AssertionError, match="ask must return an index"):
        check_agent(Coin, kind="reward")
    with pytest.raises(AssertionError, match="ask must return a pair of indices"):
        check_agent(Arm, kind="duel")


class Refusing:
    """An agent around another, that refuses an empty set."""

    def __init__(self, inner):
        self.inner = inner()

    def ask(self, actions):
        if not len(actions):
            raise BadInputError("nothing to choose from.")
        return self.inner.ask(actions)

    def tell(self, asked, answer):
        assert isinstance(answer, (float, Outcome))
        self.inner.tell(asked, answer)


def test_an_unknown_kind_is_refused():
    with pytest.raises(BadInputError, match="unknown kind of agent 'duels': did you mean 'duel'"):
        check_agent(Coin, kind="duels")
