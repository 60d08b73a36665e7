"""Analyses in another process: the same as here, whatever happens to that process."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import asdict

import pytest

from fairduel.service.analysis import background
from fairduel.service.analysis.analyse import analyse
from fairduel.service.analysis.inputs import Subject
from fairduel.service.commands import operating
from fairduel.service.service import Service
from helpers.electorate import Electorate
from helpers.waiting import wait_for


@pytest.fixture
def voted(tmp_path, monkeypatch):
    """A service whose study has votes, none of them few enough to be analysed here."""
    monkeypatch.setattr(background, "_FEW_VOTES", 0)
    monkeypatch.setattr(background, "_REST", 0.0)
    monkeypatch.setattr(background, "_RETRY_AFTER", 0.1)
    service = Service(tmp_path)
    simulated = Electorate(service)
    service.ledger.run(lambda ledger: operating.invite(ledger, simulated.study, ["gpt-x"], are_models=True))
    for _ in range(60):
        simulated.vote()
    yield service, simulated
    service.close()


def test_another_process_finds_the_same_and_another_one_follows_when_it_dies(voted):
    service, simulated = voted
    study, found = simulated.study, service.analyst
    wait_for(lambda: found.latest(study).votes == 60 and not found.is_stale(study), 60.0)
    about, position = service.ledger.run(
        lambda ledger: (Subject.of(ledger.state.studies[study]), ledger.state.position)
    )
    with service.ledger.store.engine.connect() as connection:
        here = analyse(connection, about, position)
    there = found.latest(study)
    assert json.loads(json.dumps(asdict(here) | {"computed": 0})) == asdict(there) | {"computed": 0}
    process = found._worker._process
    assert os.getpriority(os.PRIO_PROCESS, process.pid) > os.getpriority(os.PRIO_PROCESS, 0)
    process.send_signal(signal.SIGKILL)
    simulated.vote()
    wait_for(lambda: found.latest(study).votes == 61 and not found.is_stale(study), 60.0)
    assert found._worker._process.pid != process.pid
    found._worker._process.send_signal(signal.SIGSTOP)
    simulated.vote()
    wait_for(lambda: found._current == study, 60.0)
    began = time.monotonic()
    found.close()
    assert time.monotonic() - began < 2.0


def test_the_other_process_ends_with_the_server_even_while_it_computes():
    code = "import time; from fairduel.service.analysis.workers import answer_requests\n"
    code += "def answer(request, tell):\n    tell({'begun': True})\n    time.sleep(600)\nanswer_requests(answer)"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdin.write(b"{}\n")
        process.stdin.flush()
        assert json.loads(process.stdout.readline()) == {"begun": True}
        process.stdin.close()  # as when the server is killed
        assert process.wait(20.0) == 0


def test_a_server_starts_without_what_only_analyses_need():
    slow = "{'httpx', 'matplotlib', 'PIL', 'polars', 'scipy.optimize', 'scipy.stats', 'fairduel.experiments'}"
    load = "from fairduel.cli.command_list import app_for; app_for(['serve']); import sys, fairduel.cli.live.serving"
    code = f"{load}; print(sorted({slow} & set(sys.modules)))"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "[]\n"
