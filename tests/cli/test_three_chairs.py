"""The first hour of an engineer, an operator and a researcher: each has something to show within minutes.

Each test follows README or a tutorial, reads what came out as that person would, and takes far less than the ten
minutes that they would have; ``pytest --durations`` says how long.
"""

import json
import random
import re
import time

import pytest

from fairduel.service.client import Client
from fairduel.service.local import local_server
from fairduel.votes.attacking.liars import arena
from helpers.documents import ROOT, page_files
from helpers.waiting import wait_for

MINUTES = 10


@pytest.fixture(autouse=True)
def _in_time():
    """Fail if a chair takes longer than the minutes that it has, by the processor's clock."""
    started = time.process_time()
    yield
    assert time.process_time() - started < 60 * MINUTES


def test_an_engineer_with_a_file_of_votes(here, tmp_path):
    poll, _ = arena(seed=0, liars={"promote": 12, "inverters": 4, "one-side": 2}, target="Fir")  # of fairduel demo
    poll.to_frame().write_csv(tmp_path / "votes.csv")
    votes = "votes.csv"
    audited = here("audit", votes, cwd=tmp_path)
    winner = re.match(r"Without the \d+ flagged voters: (\w+) has won", audited.stdout)[1]
    ranked = here("rank", votes, "--audited", "--markdown", cwd=tmp_path).stdout
    assert re.search(r"^\|---\|", ranked, re.MULTILINE)
    assert f"{winner} has won" in ranked
    page = (tmp_path / "results/audit/votes/report.html").read_text()
    assert winner in re.search(r'class="conclusion">\s*<ul>\s*<li>(.*?)</li>', page)[1]
    assert len(page) < 1_000_000
    assert here("audit", votes, "--fail-on", "flag", cwd=tmp_path).returncode == 1
    assert here("export", votes, cwd=tmp_path).returncode == 0
    assert (tmp_path / "results/export/votes/ranking.csv").is_file()


def test_an_operator_of_a_live_poll():
    people = random.Random(0)
    with local_server() as (url, key), Client(url, key) as client:
        items = [{"name": name} for name in ("tea", "milk", "water")]
        study = client.create_study(question="Which do you prefer?", items=items)
        for _ in range(25):
            with client.join(study.study) as voter:
                while duels := voter.ask().duels:
                    [duel] = duels
                    left_wins = "tea" in (duel.left.text, duel.right.text) and people.random() < 0.95
                    likes = "left" if (duel.left.text == "tea") == left_wins else "right"
                    voter.answer(duel.duel, likes)
        # computed by another process, which may still be starting
        results = wait_for(lambda: (found := client.results(study.study)).ranking and not found.stale and found)
    assert results.ranking[0].item == "tea"
    assert "tea" in results.verdicts[0].headline


def test_a_researcher_with_an_agent(here, tmp_path):
    (tmp_path / "my_agents.py").write_text(page_files(ROOT / "docs/benchmarks/index.md")["my_agents.py"])
    agents = ("--agent", "rcdb", "--agent", "my_agents:TopTwo")
    command = ("simulate", *agents, "--attack", "greedy", "--horizon", "300", "--runs", "4", "--jobs", "1")
    found = here(*command, "--json", "--figures", cwd=tmp_path)
    assert found.returncode == 0, found.stderr
    said = json.loads(found.stdout)
    assert any("TopTwo" in sentence for sentence in said["experiments"][0]["conclusions"])
    page = (tmp_path / "results/simulate/report.html").read_text()
    assert "Git commit" in page
    assert list((tmp_path / "results/simulate").glob("table-*.tex"))
