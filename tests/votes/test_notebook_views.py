"""Results show themselves briefly, whatever their size, and become tables."""

import pkgutil
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fairduel.votes
from fairduel.votes import Votes, audit, clean, fragility, preferences, rank, read_votes
from fairduel.votes.attacking.liars import arena
from helpers.documents import ROOT

LONGEST, LONGEST_HTML = 350, 40_000
HOSTILE = "<script>alert('1')</script>\x1b[31m" + "x" * 10_000


@pytest.fixture(scope="module")
def results():
    votes, _ = arena(voters=60, votes_each=20, seed=4)
    reading = read_votes(votes.to_frame())
    found, cleaned = audit(votes, top=1), clean(reading)
    return [votes, reading, found, found.evidence, found.trusted, *found.fragility, cleaned, preferences(cleaned)]


class Tags(HTMLParser):
    """Counts the tags that open and the rows of the table; ``open`` is empty if all of them close."""

    def __init__(self, text):
        super().__init__()
        self.open, self.seen = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):  # noqa: ARG002
        self.open.append(tag)
        self.seen.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def check_brief(result):
    assert repr(result).startswith(f"{type(result).__name__}(")
    assert len(repr(result)) <= LONGEST
    assert "\n" not in repr(result)
    html = result._repr_html_()
    tags = Tags(html)
    assert tags.open == []
    assert set(tags.seen) <= {"p", "table", "thead", "tbody", "tr", "th", "td"}
    assert tags.seen.count("tr") <= 21
    assert len(html) <= LONGEST_HTML


def test_every_result_is_brief_and_becomes_a_table(results):
    for result in results:
        check_brief(result)
        assert isinstance(result.to_frame(), pl.DataFrame)


def test_what_results_say(results):
    shown = [repr(result) for result in results]
    assert shown[0] == "Votes(1,368 votes, 12 items, 60 voters)"
    assert shown[1] == "Reading(1,368 votes, 12 items, 60 voters)"
    assert shown[2] == f"Audit({results[2].summary()[0]})"
    assert "of 60 voters flagged" in shown[3]
    assert "… and 1,348 more rows" in results[0]._repr_html_()
    assert results[4].standings[0].item in results[4]._repr_html_()


@given(count=st.integers(2, 40), size=st.integers(1, 300), longest=st.integers(1, 3000), seed=st.integers(0, 99))
def test_the_repr_of_any_votes_is_short(count, size, longest, seed):
    rng = np.random.default_rng(seed)
    names = [f"{number}{chr(rng.integers(1, 0xD000)) * longest}" for number in range(count)]
    first = rng.integers(count, size=size)
    second = (first + rng.integers(1, count, size)) % count
    votes = Votes.from_arrays(names, first, second, rng.choice([0, 0.5, 1], size))
    check_brief(votes)
    check_brief(read_votes(votes.to_frame()))


def test_a_million_votes_print_one_line():
    rng = np.random.default_rng(0)
    first = rng.integers(1000, size=1_000_000)
    second, voter = (first + 1 + rng.integers(999, size=first.size)) % 1000, rng.integers(20_000, size=first.size)
    names, people = [f"item {i}" for i in range(1000)], [f"voter {i}" for i in range(20_000)]
    votes = Votes.from_arrays(names, first, second, rng.choice([0.0, 1.0], first.size), voter=voter, voters=people)
    assert repr(votes) == "Votes(1,000,000 votes, 1,000 items, 20,000 voters)"
    check_brief(votes)


def test_hostile_names_are_escaped_and_clipped():
    votes = Votes.from_arrays([HOSTILE, "=1+1"], [0, 0, 1], [1, 1, 0], [1, 1, 0.5])
    for result in (votes, read_votes(votes.to_frame()), rank(votes), *fragility(votes)):
        check_brief(result)
        assert "<script" not in result._repr_html_()
        assert "\x1b" not in repr(result) + result._repr_html_()


def test_votes_survive_their_table():
    votes, _ = arena(voters=20, votes_each=5, seed=1)
    rng = np.random.default_rng(0)
    votes = replace(
        votes,
        context=rng.integers(3, size=len(votes), dtype=np.int32),
        contexts=("breakfast", "lunch", "tea"),
        weight=rng.choice([1.0, 2.5], len(votes)),
        time=np.where(rng.random(len(votes)) < 0.1, np.nan, np.arange(len(votes)) / 2),
    )
    again = read_votes(votes.to_frame()).votes
    for name in ("first", "second", "result", "weight", "context", "time"):
        np.testing.assert_array_equal(getattr(again, name), getattr(votes, name))
    assert (again.items, again.contexts) == (votes.items, votes.contexts)
    assert [again.voters[v] for v in again.voter] == [votes.voters[v] for v in votes.voter]


def test_an_audits_table_has_both_ranks(results):
    found = results[2]
    table = found.to_frame()
    assert table["item"].to_list() == [standing.item for standing in found.trusted.standings]
    everyone = {standing.item: standing.rank for standing in found.everyone.standings}
    assert dict(zip(table["item"], table["rank_by_all"], strict=True)) == everyone


def test_the_names_of_the_package_are_its_interface():
    assert set(dir(fairduel.votes)) == set(fairduel.votes.__all__)
    assert {"read_votes", "rank", "audit", "audit_voters", "fragility", "stress", "clean", "export"} <= set(
        dir(fairduel.votes)
    )


def test_the_reference_lists_every_name():
    page = (ROOT / "docs" / "api" / "votes.md").read_text()
    assert sorted(re.findall(r"^\.\. auto(?:function|class):: (\w+)$", page, re.MULTILINE)) == fairduel.votes.__all__


def test_no_module_hides_a_name_of_the_package():
    """Importing fairduel.votes.x sets the attribute x of the package, so no name may be that of a module."""
    modules = {module.name for module in pkgutil.iter_modules(fairduel.votes.__path__)}
    assert "votes" in modules
    assert modules & set(fairduel.votes.__all__) == set()
