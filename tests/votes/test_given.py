"""Votes may be given as votes, a reading, a file or a table; agents and votes are at the top of the package."""

import numpy as np
import pandas as pd
import pytest

import fairduel
from fairduel import BadInputError, SuspectInputWarning, agents, rank, read_votes
from fairduel.agents import AGENTS
from fairduel.votes import audit, certify, cost_of_manipulation, decide, explain, find_camps, review, stress
from fairduel.words import as_options

ROWS = [
    {"left": one, "right": other, "winner": min(one, other), "voter": f"v{voter}"}
    for voter in range(6)
    for one, other in (("ale", "beer"), ("cider", "ale"), ("beer", "cider"))
]


def test_any_form_of_the_same_votes_gives_the_same_ranking(tmp_path):
    frame = pd.DataFrame(ROWS)
    frame.to_csv(tmp_path / "votes.csv", index=False)
    reading = read_votes(frame)
    expected = [(row.item, row.score) for row in rank(reading.votes).standings]
    assert expected[0][0] == "ale"
    for given in (reading, frame, ROWS, tmp_path / "votes.csv", str(tmp_path / "votes.csv")):
        assert [(row.item, row.score) for row in rank(given).standings] == expected
    assert [(row.item, row.score) for row in rank(votes=frame).standings] == expected


@pytest.mark.parametrize(
    "function",
    [audit, certify, cost_of_manipulation, decide, explain, find_camps, review, stress],
    ids=lambda f: f.__name__,
)
def test_every_function_of_votes_reads_them(function):
    """The missing file is what each complains about, rather than a missing attribute."""
    with pytest.raises(BadInputError, match=r"cannot read no-such\.csv: No such file or directory"):
        function("no-such.csv")


def test_unusable_rows_are_warned_of_and_too_many_refused():
    with pytest.warns(SuspectInputWarning, match=r"1 of 19 rows are unusable .* no second item \(1\)"):
        rank([*ROWS, {"left": "ale", "right": None, "winner": "ale", "voter": "v1"}])
    with pytest.raises(BadInputError, match="too few votes for a result: 2 of 3 rows are unusable"):
        rank([ROWS[0], *[ROWS[0] | {"right": None}] * 2])


def test_columns_are_named_as_arguments_and_errors_name_the_arguments():
    table = pd.DataFrame(ROWS).rename(columns={"winner": "best"})
    assert len(read_votes(table, winner="best", voter=None).votes) == len(ROWS)
    with pytest.raises(BadInputError, match="no column found for the winner: name it with winner=…") as error:
        read_votes(table)
    assert "name it with --winner;" in as_options(str(error.value))


def test_agents_and_votes_are_at_the_top():
    for kind in AGENTS.values():
        assert getattr(fairduel, kind.__name__) is kind
    assert {name for name in dir(agents) if name in fairduel.__all__} >= {kind.__name__ for kind in AGENTS.values()}
    assert fairduel.rank is rank
    assert fairduel.Votes.__name__ in dir(fairduel)


@pytest.mark.parametrize("name", ["", "/", "."])
def test_an_agent_is_not_saved_as_a_folder(name):
    with pytest.raises(BadInputError, match="it is a folder; name a file in it"):
        fairduel.Sceptic(items=3).save(name)


def test_long_names_and_links_are_written(tmp_path):
    agent = fairduel.Sceptic(items=3)
    long = tmp_path / ("x" * 250)
    agent.save(long)
    (tmp_path / "link").symlink_to(long)
    agent.ask()
    agent.save(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert fairduel.Sceptic.load(long).asked == 1
    assert [path.name for path in tmp_path.iterdir() if path.name.endswith(".part")] == []


def test_settings_whose_square_vanishes_are_refused():
    with pytest.raises(BadInputError, match="norm_bound must be a positive number, not 1e-300"):
        fairduel.RCDB(dimension=2, norm_bound=1e-300, flip_budget=1)
    assert np.isfinite(fairduel.RCDB(dimension=2, norm_bound=1e-3, flip_budget=1).norm_bound)
