"""What the live pages draw follows from the votes alone, and ends at the verdict."""

import numpy as np

from fairduel.service.analysis.charts import beats, course
from fairduel.votes.auditing.audit import audit
from fairduel.votes.deciding import decide
from fairduel.votes.ranking.rank import rank
from fairduel.votes.votes import Votes


def some_votes():
    """300 votes of 15 people on 5 items."""
    rng = np.random.default_rng(0)
    first, step = rng.integers(5, size=300), rng.integers(1, 5, size=300)
    second = (first + step) % 5
    result = rng.random(300) < 1.0 / (1.0 + np.exp(0.6 * (first - second)))
    return Votes.from_arrays("abcde", first, second, result, voter=np.arange(300) % 15, voters=[*map(str, range(15))])


def test_the_course_ends_at_the_verdict_and_earlier_points_follow_from_the_first_votes():
    votes = some_votes()
    found = audit(votes, top=1)
    points, verdict = course(found), found.verdicts[0]
    assert [point["votes"] for point in points] == sorted({point["votes"] for point in points})
    last = points[-1]
    assert last["votes"] == len(votes)
    assert [last[name] for name in ("evidence", "bar", "state")] == [verdict.evidence, verdict.bar, verdict.state]
    best = {each.item: each.best for each in found.shown.standings}
    assert last["best"] == {item: best[item] for item in last["best"]}
    first = points[0]
    prefix = votes.select(np.arange(len(votes)) < first["votes"])
    weights = np.ones(len(votes)) if found.shown is found.everyone else found.shown.weights
    again = decide(prefix, rank(prefix, reliability=weights[: first["votes"]], draws=2000))[0]
    assert (first["evidence"], first["state"]) == (again.evidence, again.state)
    assert course(found) == points


def test_beats_counts_each_vote_between_the_first_items_once():
    votes = some_votes()
    found = beats(audit(votes, top=1))
    wins = np.zeros((len(found["items"]),) * 2)
    place = {name: number for number, name in enumerate(found["items"])}
    for one, other, result in zip(votes.first, votes.second, votes.result, strict=True):
        row, column = (place.get(votes.items[item]) for item in (one, other))
        if row is not None and column is not None:
            wins[row, column] += result
            wins[column, row] += 1.0 - result
    assert found["wins"] == wins.tolist()
