"""The commands, and a server in a process of its own that is killed."""

import os
import pty
import re
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress

import httpx
import pytest
from PIL import Image

from fairduel.cli import main
from fairduel.errors import BadInputError
from fairduel.service.client import Client, UnreachableError
from fairduel.service.commands import polls
from fairduel.service.events import backup
from fairduel.service.events.database import FolderStore
from fairduel.service.events.ledger import Ledger
from fairduel.service.local import local_server
from fairduel.service.problems import Problem
from fairduel.service.service import Service
from helpers.waiting import wait_for


def run(monkeypatch, capsys, *words):
    monkeypatch.setattr(sys, "argv", ["fairduel", *map(str, words)])
    with pytest.raises(SystemExit) as ended:
        main()
    return ended.value.code, capsys.readouterr()


def test_store_commands(booth, tmp_path, monkeypatch, capsys):
    booth.vote(8)
    receipt = booth.answer(booth.ask()[0]["duel"])["receipt"]
    booth.ledger.close()
    code, said = run(monkeypatch, capsys, "store", "check", booth.folder)
    assert code == 0
    assert "is intact" in said.out
    assert run(monkeypatch, capsys, "store", "backup", booth.folder, tmp_path / "copy")[0] == 0
    code, said = run(monkeypatch, capsys, "store", "backup", booth.folder, tmp_path / "copy")
    assert (code, "not empty" in said.err) == (2, True)
    assert run(monkeypatch, capsys, "store", "restore", tmp_path / "copy", tmp_path / "new")[0] == 0
    code, said = run(monkeypatch, capsys, "store", "replay", tmp_path / "new")
    assert code == 0
    assert "same state after" in said.out
    code, said = run(monkeypatch, capsys, "store", "receipt", tmp_path / "new", receipt)
    assert code == 0
    assert "left" in said.out
    code, said = run(monkeypatch, capsys, "store", "receipt", tmp_path / "new", f"1-{'0' * 64}")
    assert (code, "not in the log" in said.err) == (2, True)
    code, said = run(monkeypatch, capsys, "store", "check", tmp_path / "nothing")
    assert (code, "no fairduel store" in said.err) == (2, True)
    file = tmp_path / "copy" / "fairduel.db"
    file.write_bytes(file.read_bytes().replace(b'"answer":"left"', b'"answer":"tie" '))
    code, said = run(monkeypatch, capsys, "store", "check", tmp_path / "copy")
    assert (code, "damaged" in said.err) == (2, True)
    code, said = run(monkeypatch, capsys, "store", "restore", tmp_path / "copy", tmp_path / "other")
    assert (code, "nothing was restored" in said.err) == (2, True)
    booth.open()


def test_a_poll_from_files_and_texts(tmp_path):
    Image.new("RGB", (9, 9), "red").save(tmp_path / "red logo.png")
    (tmp_path / "names.txt").write_text("Ada\n\nBob\n")
    service = Service(tmp_path / "store")
    try:
        study = polls.create_poll(
            service, [str(tmp_path / "red logo.png"), str(tmp_path / "names.txt"), "tea"], {"question": "Which?"}
        )
        items = service.ledger.state.studies[study].about.items
        assert [item.name for item in items] == ["red logo", "Ada", "Bob", "tea"]
        assert items[0].image
        (tmp_path / "bad.png").write_bytes(b"no image")
        for words, problem in (
            (["tea"], "at least 2 items"),
            (["tea", "tea"], "two items named 'tea'"),
            (["tea", str(tmp_path / "bad.png")], "not a PNG"),
            (["tea", str(tmp_path / "missing.png")], "cannot read"),
        ):
            with pytest.raises(BadInputError, match=problem):
                polls.create_poll(service, words, {"question": "Which?"})
        assert len(service.ledger.state.studies) == 1
    finally:
        service.close()


def test_a_folder_belongs_to_one_server(booth):
    with pytest.raises(BadInputError, match="another fairduel server"):
        FolderStore(booth.folder)


def test_a_store_of_another_version_is_refused_in_one_sentence(booth):
    booth.ledger.connection().exec_driver_sql("UPDATE layout SET version = 9999")
    booth.ledger._connection.commit()
    booth.ledger.close()
    with pytest.raises(BadInputError, match=r"reads stores with schema 1, not 9999; open .* made it\.$"):
        Ledger(booth.folder)
    booth.__init__(booth.folder / "other", booth.clock, booth.settings)


def _start(folder, *words):
    """Start a server in a process of its own; return it and the links that it printed."""
    command = [sys.executable, "-m", "fairduel", "poll", "tea", "milk", "water", "--folder", str(folder), "--port", "0"]
    process = subprocess.Popen(
        [*command, *words], stdout=subprocess.PIPE, text=True, env=os.environ | {"COLUMNS": "500"}
    )
    lines = [process.stdout.readline() for _ in range(2)]
    voters = re.search(r"Voters: (http://\S+)/vote/(\S+)", lines[0])
    return process, voters[1], voters[2], re.search("#(fdo_.+)", lines[1])


def _vote_until_it_is_gone(url, study, acknowledged):
    with suppress(UnreachableError, Problem):
        while True:
            with Client(url, patience=0.0) as client, client.join(study) as voter:
                while duels := voter.ask().duels:
                    acknowledged.append(voter.answer(duels[0].duel, "left").receipt)


def test_a_killed_server_has_every_vote_that_it_acknowledged(tmp_path):
    process, url, study, key = _start(tmp_path / "store")
    assert key
    acknowledged = []
    while True:
        with suppress(httpx.TransportError):
            assert httpx.get(f"{url}/readyz").status_code == 200
            break
        time.sleep(0.05)
    arguments = (url, study, acknowledged)
    threads = [threading.Thread(target=_vote_until_it_is_gone, args=arguments) for _ in range(8)]
    for thread in threads:
        thread.start()
    while len(acknowledged) < 40 and any(thread.is_alive() for thread in threads):
        time.sleep(0.01)
    process.kill()
    process.communicate()
    for thread in threads:
        thread.join()
    assert len(acknowledged) >= 40
    with backup.reading(tmp_path / "store") as connection:
        receipts = {event.receipt for event in backup.read_events(connection)}
    assert set(acknowledged) <= receipts
    assert backup.check(tmp_path / "store").problems == ()
    again, _, _, key = _start(tmp_path / "store")
    assert key is None  # the operator's key is the old one
    again.send_signal(signal.SIGTERM)
    again.communicate(timeout=20)
    assert again.returncode == 143


@pytest.mark.parametrize("options", [[], ["--no-open"]])
def test_the_operators_page_opens_for_someone_at_a_terminal(tmp_path, options):
    browser, opened = tmp_path / "browser", tmp_path / "opened"
    browser.write_text(f'#!/bin/sh\ncp "${{1#file://}}" {opened}.part\nmv {opened}.part {opened}\n')
    browser.chmod(0o755)
    command = [sys.executable, "-m", "fairduel", "serve", "--port", "0", "--folder", str(tmp_path / "store"), *options]
    screen, terminal = pty.openpty()
    environment = os.environ | {"BROWSER": str(browser), "DISPLAY": ":0"}
    with subprocess.Popen(command, stdout=terminal, env=environment) as process:
        os.close(terminal)
        shown = b""
        while (found := re.search(rb"(http://\S+/)#fdo_\S+\s", shown)) is None:
            shown += os.read(screen, 1000)
        assert httpx.get(found[1].decode(), timeout=30.0).status_code == 200
        if not options:
            wait_for(opened.exists, 20.0)
            assert f'url={found[0].decode().strip()}"' in opened.read_text()
            assert (tmp_path / "store" / "operator.html").stat().st_mode & 0o777 == 0o600
        process.send_signal(signal.SIGINT)
    os.close(screen)
    assert opened.exists() == (options == [])
    assert not (tmp_path / "store" / "operator.html").exists()  # it holds the key


def test_a_poll_is_added_to_a_server_that_runs(tmp_path, monkeypatch, capsys):
    Image.new("RGB", (2, 2)).save(tmp_path / "red.png")
    (tmp_path / "votes.csv").write_text("left,right,winner,voter\nred,tea,left,Ann\nred,tea,left,Bob\n")
    (tmp_path / "study.toml").write_text('question = "?"\nitems = ["tea", {name = "red", image = "red.png"}]\n')
    settings = ("platform=prolific", "completion_code=AB1", "closes=2030-05-31T18:00:00Z")
    words = [tmp_path / "study.toml", *(word for each in settings for word in ("--set", each))]
    with local_server() as (url, key), Client(url, key) as client:
        code, said = run(
            monkeypatch, capsys, "poll", *words, "--votes", tmp_path / "votes.csv", "--server", f"{url}/#{key}"
        )
        assert (code, said.err) == (0, "")
        (study,) = (each.study for each in client.studies())
        assert f"To paste at Prolific: {url}/vote/{study}?PROLIFIC_PID=" in said.out.replace("\n", "")
        about = client.study(study)
        assert (about.access, about.closes, about.completion_code) == ("platform", 1906480800.0, "AB1")
        assert about.items[1].image
        assert about.counts.imported == 2
        monkeypatch.delenv("FAIRDUEL_KEY", raising=False)
        code, said = run(monkeypatch, capsys, "poll", "tea", "milk", "--server", url)
        assert (code, "needs a valid key" in said.err) == (2, True)
