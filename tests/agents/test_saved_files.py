"""Damaged and made-up files of saved agents: refused with one sentence that names the file, or loaded as they were."""

import copy
import dataclasses
import os
import sys

import numpy as np
import pytest

from fairduel import RCDB, Agent, BadInputError, MaxPairUCB
from fairduel.agents import AGENTS, COBE
from fairduel.agents.parts.state_file import same_state, write_state
from helpers.every_agent import ACTIONS, SETTINGS, play, small, tell, waiting

FLIPS = 200  # of each agent


@pytest.fixture(params=AGENTS)
def agent(request):
    return waiting(AGENTS[request.param])


@pytest.fixture
def loaded(tmp_path, monkeypatch):
    """Write a state with a right checksum, and load it."""
    monkeypatch.setattr(os, "fsync", lambda _: None)  # hundreds of files

    def write_and_load(state):
        write_state(tmp_path / "agent.npz", state)
        return Agent.load(tmp_path / "agent.npz")

    return write_and_load


def leaves(state, path=()):
    for name, value in state.items():
        if isinstance(value, dict):
            yield from leaves(value, (*path, name))
        else:
            yield (*path, name), value


def changed(state, path, value):
    twin = copy.deepcopy(state)
    place = twin
    for name in path[:-1]:
        place = place[name]
    place[path[-1]] = value
    return twin


def refused(loaded, state):
    with pytest.raises(BadInputError, match=r"^cannot load .*agent\.npz: [^\n]*\.$"):
        loaded(state)


def test_a_flipped_bit_is_noticed_wherever_it_is(agent, tmp_path):
    path = tmp_path / "agent.npz"
    agent.save(path)
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    for bit in rng.choice(8 * len(whole), FLIPS, replace=False).tolist():
        content = bytearray(whole)
        content[bit // 8] ^= 1 << bit % 8
        path.write_bytes(content)
        with pytest.raises(BadInputError, match=r"agent\.npz is corrupt or not a saved agent: [^\n]*\.$"):
            Agent.load(path)


def test_a_file_without_its_checksum_is_refused(tmp_path):
    path = tmp_path / "agent.npz"
    small(RCDB).save(path)
    path.write_bytes(path.read_bytes().replace(b"sha256:", b"sha255:"))
    with pytest.raises(BadInputError, match="checksum is missing"):
        Agent.load(path)


def test_arrays_of_another_shape_or_type_or_with_nan_are_refused(agent, loaded):
    state = agent.state()
    arrays = [(path, value) for path, value in leaves(state) if isinstance(value, np.ndarray)]
    for path, array in arrays:
        if path[0] == "sets":  # of any length
            continue
        longer = np.zeros((len(array) + 1, *array.shape[1:]), array.dtype)
        deeper, other = array[None], array.astype(np.complex128)
        wrong = [longer, deeper, other, None, "x"]
        if array.dtype == np.float64 and array.size:
            wrong += [np.where(np.arange(array.size).reshape(array.shape) == 0, np.nan, array), array[:-1]]
        for value in wrong:
            refused(loaded, changed(state, path, value))


def test_numbers_that_no_agent_has_are_refused(agent, loaded):
    state = agent.state()
    for name in state["memory"]:
        value = state["memory"][name]
        if isinstance(value, (int, float)):
            for wrong in (None, np.nan, "x", []):
                refused(loaded, changed(state, ("memory", name), wrong))
    for path, wrong in [
        (("asked",), -1),
        (("asked",), 1.5),
        (("asked",), 3),  # fewer than the numbers of what is pending
        (("random", "state", "state"), -1),
        (("random", "state", "inc"), 2),
        (("random", "uinteger"), 2**32),
        (("random", "bit_generator"), "MT19937"),
        (("settings", "seed"), "x"),
        (("agent",), None),
    ]:
        refused(loaded, changed(state, path, wrong))


def test_pending_duels_must_be_ones_that_the_agent_can_have_asked(agent, loaded):
    state = agent.state()
    number = next(iter(state["pending"]))
    for name, value in state["pending"][number].items():
        wrongs = [None, "x"] if isinstance(value, np.ndarray) else [-1, None, "x", -np.inf]
        if name == "number":
            wrongs = [-1, 10**6, 1.0, None]
        elif name in {"layer", "place"}:  # None where no layer learns, or nothing is explored
            wrongs.remove(None)
        for wrong in wrongs:
            refused(loaded, changed(state, ("pending", number, name), wrong))
    if "arms" in state["settings"]:
        index = "first" if "first" in state["pending"][number] else "action"
        refused(loaded, changed(state, ("pending", number, index), SETTINGS["arms"]))


@pytest.mark.parametrize(
    ("name", "field", "wrong"),
    [
        ("arm-race", "layer", 8),
        ("barbar", "epoch", 0),
        ("barbar", "epoch", 99),
        ("barbar", "epoch", True),
        ("cobe", "base", 99),
        ("cobe", "base_number", 99),
        ("cobe", "restarts", 99),
        ("fgts", "chain", 2),
        ("fgts", "first_features", np.zeros(2)),
        ("fgts", "first_features", np.zeros((2, 3))),
        ("multilevel-oful", "level", 0),
        ("multilevel-oful", "level", 10),
        ("phased-elimination", "epoch", 0),
        ("sbe", "place", 3),
        ("sbe", "place", 1.0),
        ("vacdb", "level", 6),
        ("versatile-db", "player", 2),
        ("versatile-db", "first_chance", 0.0),
        ("versatile-db", "second_chance", 1.5),
        ("versatile-db", "second_chance", np.nan),
        ("wiwr", "epoch", 0),
        ("wiwr", "epoch", 99),
        ("wiwr", "challenger_first", 1),
    ],
)
def test_a_pending_field_out_of_its_range_is_refused(name, field, wrong, loaded):
    state = waiting(AGENTS[name]).state()
    assert field in next(iter(state["pending"].values()))
    refused(loaded, changed(state, ("pending", next(iter(state["pending"])), field), wrong))


@pytest.mark.parametrize("name", ["barbar", "cobe", "fgts", "vacdb", "versatile-db", "wiwr"])
def test_pending_duels_have_all_their_fields_and_no_others(name, loaded):
    state = waiting(AGENTS[name]).state()
    number = next(iter(state["pending"]))
    fields = state["pending"][number]
    own = list(fields)[-1]
    refused(loaded, changed(state, ("pending", number), {key: fields[key] for key in fields if key != own}))
    refused(loaded, changed(state, ("pending", number), fields | {"note": []}))


def broken_information(state, path):
    """Σ that is not symmetric, not positive definite, or not the inverse of its inverse."""
    place = state
    for name in path:
        place = place[name]
    lopsided, negative = place["matrix"].copy(), place["matrix"].copy()
    lopsided[0, 1] += 0.5
    negative[0, 0] = -1.0
    yield changed(state, (*path, "matrix"), lopsided)
    yield changed(state, (*path, "matrix"), negative)
    yield changed(state, (*path, "matrix"), 2 * place["matrix"])
    yield changed(state, (*path, "inverse"), 2 * place["inverse"])
    yield changed(state, (*path, "updates"), -1)
    yield changed(state, (*path, "log_determinant"), 99.0)


def broken_comparisons(state, path):
    """Wins above weights or below 0, one difference twice, from the other side, or too long."""
    place = state
    for name in path:
        place = place[name]
    rows = place["differences"]
    yield changed(state, (*path, "wins"), place["weights"] + 1e-9)
    yield changed(state, (*path, "wins"), np.full_like(place["wins"], -1e-9))
    yield changed(state, (*path, "weights"), -place["weights"])
    yield changed(state, (*path, "differences"), -rows)
    yield changed(state, (*path, "differences"), 3 * rows)
    yield changed(state, (*path, "differences"), np.tile(rows[:1], (len(rows), 1)))


def test_made_up_matrices_and_outcomes_are_refused(agent, loaded):
    state = agent.state()
    tables = {path[:-1] for path, _ in leaves(state)}
    seen = 0
    for path in tables:
        if path[-1:] in {("information",), ("local_information",)}:
            seen += 1
            for wrong in broken_information(state, path):
                refused(loaded, wrong)
        told = path[-1:] == ("told",) and len(dict(leaves(state))[*path, "weights"])
        if told and told > 1:
            seen += 1
            for wrong in broken_comparisons(state, path):
                refused(loaded, wrong)
    assert seen > 0 or "dimension" not in state["settings"] or "_actions" in state["memory"]


@pytest.mark.parametrize(
    ("part", "wrong"),
    [
        ("outcomes", 1000),
        ("outcomes", -1),
        ("fitted_outcomes", 1000),
        ("root", np.zeros((3, 3))),
        ("root", np.eye(2)),
        ("fitted_at", np.nan),
        ("fitted_at", 1),
        ("stale", 1),
        ("theta", np.array([np.nan, 0.0, 0.0])),
        ("theta", np.zeros(2)),
    ],
)
def test_an_estimator_out_of_its_range_is_refused(part, wrong, loaded):
    refused(loaded, changed(waiting(AGENTS["rcdb"]).state(), ("belief", "estimator", part), wrong))


@pytest.mark.parametrize(
    ("name", "memory", "wrong"),
    [
        ("rcdb", "_self_duel_streak", 1000),
        ("arm-race", "_pulls", np.full((8, 4), -1)),
        ("arm-race", "_pulls", np.full((8, 4), np.iinfo(np.int64).max)),
        ("barbar", "_gaps", np.zeros(4)),
        ("barbar", "_epoch", 0),
        ("barbar", "_awaited", 0),
        ("cobe", "_smallest", 1000),
        ("cobe", "_smallest", -1),
        ("cobe", "_restarts", -1),
        ("cobe", "_pulls", []),
        ("cobe", "_rewards", [np.nan] * 4),
        ("fgts", "_rounds", 0),
        ("phased-elimination", "_actions", None),
        ("phased-elimination", "_actions", 9 * ACTIONS),
        ("phased-elimination", "_active", np.zeros(4, np.bool_)),
        ("phased-elimination", "_counts", -np.ones(4)),
        ("phased-elimination", "_length", 0.0),
        ("phased-elimination", "_epoch", 0),
        ("sbe", "_basis", [0, 1, 4]),
        ("sbe", "_basis", [0, 1, -1]),
        ("sbe", "_basis", []),
        ("sbe", "_incumbent", 4),
        ("sbe", "_incumbent", -1),
        ("sbe", "_share", 0.0),
        ("sbe", "_coefficients", np.zeros((4, 2))),
        ("versatile-db", "_losses", -np.ones((2, 4))),
        ("wiwr", "_candidate", 4),
        ("wiwr", "_candidate", -1),
        ("wiwr", "_leads", np.ones((4, 4))),
        ("wiwr", "_gaps", np.zeros(4)),
        ("wiwr", "_due", np.zeros(4)),
        ("wiwr", "_told", 10**9),
        ("wiwr", "_wins", -np.ones((4, 4))),
    ],
)
def test_a_memory_out_of_its_range_is_refused(name, memory, wrong, loaded):
    refused(loaded, changed(waiting(AGENTS[name]).state(), ("memory", memory), wrong))


def test_cobe_refuses_bases_that_are_not_its_own(loaded):
    state = waiting(COBE).state()
    refused(loaded, changed(state, ("bases", "0"), small(RCDB).state()))
    refused(loaded, changed(state, ("bases", "0"), small(AGENTS["cw-oful"], dimension=2).state()))
    numbers = list(state["pending"])
    first = state["pending"][numbers[0]]
    refused(loaded, changed(state, ("bases", str(first["base"]), "pending"), {}))
    refused(loaded, changed(state, ("pending", numbers[1]), first | {"number": int(numbers[1])}))


def test_fgts_refuses_sets_and_counts_that_it_cannot_have_kept(loaded):
    state = waiting(AGENTS["fgts"]).state()
    for path, wrong in [
        (("set_counts",), [0]),
        (("set_counts",), [1000]),
        (("set_counts",), [1, 1]),
        (("sets",), {}),
        (("sets", "0"), np.full((4, 3), np.nan)),
        (("sets", "0"), np.zeros((4, 2))),
    ]:
        refused(loaded, changed(state, path, wrong))


@pytest.mark.parametrize("estimator", ["exact", "lazy", "one-pass"])
def test_an_accepted_state_is_the_saved_one(agent, estimator, loaded):
    if isinstance(agent, RCDB):
        agent = waiting(RCDB, estimator=estimator)
    again = loaded(agent.state())
    assert same_state(again.state(), agent.state())
    assert [dataclasses.replace(a) for a in again.pending] == list(agent.pending)


# ------------------------------------------------------------------ classes


@pytest.fixture
def classes():
    """Undo what a test defines."""
    before = dict(Agent._classes)
    yield Agent._classes
    Agent._classes.clear()
    Agent._classes.update(before)


def test_a_class_of_the_users_called_rcdb_is_another(tmp_path, classes):
    original = small(RCDB)
    original.save(tmp_path / "fairduel.npz")
    mine = type("RCDB", (MaxPairUCB,), {"__module__": "mine", "__qualname__": "RCDB"})
    small(mine).save(tmp_path / "mine.npz")
    assert type(RCDB.load(tmp_path / "fairduel.npz")) is RCDB
    assert type(Agent.load(tmp_path / "mine.npz")) is mine
    with pytest.raises(
        BadInputError, match=r"it contains an agent of class mine:RCDB, not fairduel\.agents\.rcdb:RCDB"
    ):
        RCDB.load(tmp_path / "mine.npz")
    del classes["mine:RCDB"]
    with pytest.raises(
        BadInputError, match=r"mine\.npz: the saved agent's class mine:RCDB is not defined; import its module"
    ):
        Agent.load(tmp_path / "mine.npz")


def test_a_class_of_a_script_is_found_when_the_script_is_imported(tmp_path, classes):
    script = type("Scripted", (MaxPairUCB,), {"__module__": "__main__", "__qualname__": "Scripted"})
    small(script).save(tmp_path / "agent.npz")
    del classes["__main__:Scripted"]
    with pytest.raises(BadInputError, match="not defined"):
        Agent.load(tmp_path / "agent.npz")
    imported = type("Scripted", (MaxPairUCB,), {"__module__": "script", "__qualname__": "Scripted"})
    assert type(Agent.load(tmp_path / "agent.npz")) is imported


@pytest.mark.parametrize("base", ["antigravity:fly", "subprocess:run", "fairduel:Outcome"])
def test_a_file_imports_and_calls_nothing(base, loaded):
    state = changed(waiting(COBE).state(), ("settings", "base"), base)
    refused(loaded, state)
    assert "antigravity" not in sys.modules


# ------------------------------------------------------------------ settings and what is handed out


def test_settings_may_be_numbers_of_numpy(agent, tmp_path):
    kind = type(agent)
    given = {field.name: getattr(agent, field.name) for field in dataclasses.fields(kind)}
    makers = {bool: np.bool_, int: np.int64, float: np.float32, str: np.str_}
    plain = {name: value for name, value in given.items() if type(value) in makers}
    twin = kind(**given | {name: makers[type(value)](value) for name, value in plain.items()})
    twin.save(tmp_path / "agent.npz")
    again = Agent.load(tmp_path / "agent.npz")
    for name, value in plain.items():
        assert type(getattr(again, name)) is type(value)
        assert getattr(again, name) == getattr(twin, name)
        assert getattr(again, name) == (np.float32(value) if type(value) is float else value)


@pytest.mark.parametrize("setting", ["self_duels", "constrained"])
@pytest.mark.parametrize("value", ["no", "False", 0, 1, np.int64(1)])
def test_whether_is_true_or_false(agent, setting, value):
    if setting in {field.name for field in dataclasses.fields(agent)}:
        with pytest.raises(BadInputError, match=f"{setting} must be true or false"):
            small(type(agent), **{setting: value})


def test_base_settings_of_cobe_may_be_numbers_of_numpy(tmp_path):
    small(COBE, base_settings={"ridge": np.float32(0.5)}).save(tmp_path / "agent.npz")
    assert Agent.load(tmp_path / "agent.npz").base_settings == {"ridge": 0.5}


def test_pending_is_handed_out_as_copies_that_cannot_be_written_to(agent):
    before = agent.state()
    for asked in agent.pending:
        for name in ("difference", "features"):
            array = getattr(asked, name, np.empty(0))
            if array.size:
                assert not array.flags.writeable
                array.setflags(write=True)
                array += 1.0
    assert same_state(agent.state(), before)


@pytest.mark.filterwarnings("ignore::fairduel.LockInWarning")
def test_cancelling_leaves_nothing_behind(agent):
    size = len(repr(agent.state()))
    for _ in range(300):
        agent.cancel(agent.ask(ACTIONS))
    assert len(repr(agent.state())) < size + 1000


def test_an_agent_that_was_loaded_learns_what_was_pending(agent, loaded):
    again, rng = loaded(agent.state()), np.random.default_rng(3)
    for asked in again.pending:
        tell(again, asked, rng)
    assert play(again, 5, rng)
    assert not again.pending
