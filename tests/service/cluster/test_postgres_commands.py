"""Commands with a database, and databases that cannot be used."""

import json
import re
import signal
import subprocess
import sys
from contextlib import closing
from urllib.parse import quote

import pytest
from sqlalchemy import text

from fairduel.agents.parts.state_file import same_state
from fairduel.cli import main
from fairduel.errors import BadInputError
from fairduel.service.client import Client
from fairduel.service.cluster.postgres import DatabaseSession
from fairduel.service.events.database import database
from helpers.clusters import PASSWORD, execute, new_database
from helpers.waiting import wait_for


def run(monkeypatch, capsys, *words):
    monkeypatch.setattr(sys, "argv", ["fairduel", *map(str, words)])
    with pytest.raises(SystemExit) as ended:
        main()
    said = capsys.readouterr()
    assert PASSWORD not in said.out + said.err
    assert quote(PASSWORD) not in said.out + said.err
    return ended.value.code, said


def test_a_poll_in_a_database(url, monkeypatch, capsys):
    command = [sys.executable, "-m", "fairduel", "poll", "tea", "milk", "--database", url, "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        address, study = re.search(r"Voters: (http://\S+)/vote/(\S+)", process.stdout.readline()).groups()
        with Client(address) as client, client.join(study) as voter:
            receipt = voter.answer(voter.ask().duels[0].duel, "left").receipt
        for words in (["poll", "tea", "milk"], ["serve", "--demo"], ["serve", "--new-key"]):
            code, said = run(monkeypatch, capsys, *words, "--database", url, "--port", "0")
            assert (code, "another fairduel server leads" in said.err) == (2, True)
        code, said = run(monkeypatch, capsys, "store", "receipt", url, receipt)
        assert (code, "left" in said.out) == (0, True)
    finally:
        process.send_signal(signal.SIGTERM)
        said = "".join(process.communicate())
    assert process.returncode == 143
    assert PASSWORD not in said


def test_a_store_moves_between_a_folder_and_a_database(url, stored, tmp_path, monkeypatch, capsys, postgres):
    stored.vote(10)
    ranked = stored.state.learner.state()
    code, said = run(monkeypatch, capsys, "store", "check", url, "--json")
    head = json.loads(said.out)["head"]
    assert code == 0
    code, said = run(monkeypatch, capsys, "store", "backup", url, tmp_path / "backup")
    assert (code, head in said.out) == (0, True)
    code, said = run(monkeypatch, capsys, "store", "restore", tmp_path / "backup", url)
    assert (code, "another fairduel server leads" in said.err) == (2, True)
    stored.ledger.close()
    code, said = run(monkeypatch, capsys, "store", "restore", tmp_path / "backup", url)
    assert (code, "is not empty" in said.err) == (2, True)
    other = new_database(postgres)
    code, said = run(monkeypatch, capsys, "store", "check", other)
    assert (code, "has no fairduel store" in said.err) == (2, True)
    code, said = run(monkeypatch, capsys, "store", "restore", tmp_path / "backup", other)
    assert (code, head in said.out) == (0, True)
    code, said = run(monkeypatch, capsys, "store", "replay", other)
    assert (code, "same state" in said.out) == (0, True)
    for where in (tmp_path / "backup", database(other)):
        stored.folder = where
        stored.open()
        assert same_state(stored.state.learner.state(), ranked)
        stored.ledger.close()
    stored.open()
    execute(other, "UPDATE events SET at = at + 1 WHERE position = 3")
    code, said = run(monkeypatch, capsys, "store", "check", other)
    assert (code, "is damaged" in said.err) == (2, True)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda url: url.replace(quote(PASSWORD), "wrong"), "password authentication failed"),
        (lambda url: url.replace("127.0.0.1", "nowhere.invalid"), "nowhere.invalid"),
        (lambda url: re.sub(r":\d+/", ":1/", url), "Connection refused"),
        (lambda url: url.replace("/postgres?", "/nothing?"), 'database "nothing" does not exist'),
        (lambda url: f"{url}&wrong=1", "wrong"),
        (lambda url: url.replace("postgresql:", "mysql:"), "looks like postgresql://"),
        (lambda url: re.sub(r":\d+/", ":port/", url), "looks like postgresql://"),
        (lambda url: f"{url}%20-cdefault_transaction_read_only%3Don", "is read-only"),
    ],
)
def test_a_wrong_database_is_one_sentence(url, monkeypatch, capsys, change, problem):
    for words in (["serve", "--port", "0", "--database"], ["store", "check"]):
        if problem == "is read-only" and words[0] == "store":
            continue
        code, said = run(monkeypatch, capsys, *words, change(url))
        assert code == 2
        assert problem in said.err
        assert "Traceback" not in said.err
        assert "wrong@" not in said.err


def test_a_folder_and_a_database_exclude_each_other(url, tmp_path, monkeypatch, capsys):
    code, said = run(monkeypatch, capsys, "serve", "--database", url, "--folder", tmp_path)
    assert (code, "--folder or --database, not both" in said.err) == (2, True)


def test_a_database_of_another_version_is_refused(url, stored, monkeypatch, capsys):
    execute(url, "UPDATE layout SET version = 9999")
    code, said = run(monkeypatch, capsys, "serve", "--database", url, "--port", "0")
    assert (code, "schema 1, not 9999" in said.err) == (2, True)
    code, said = run(monkeypatch, capsys, "store", "check", url)
    assert (code, "schema 1, not 9999" in said.err) == (2, True)
    assert stored.ask()  # the leader goes on


@pytest.mark.parametrize("setting", ["fsync", "full_page_writes"])
def test_a_database_that_could_lose_votes_is_refused(url, setting):
    execute(url, f"ALTER SYSTEM SET {setting} = off")
    try:
        execute(url, "SELECT pg_reload_conf()")
        wait_for(lambda: execute(url, f"SHOW {setting}") == [("off",)])
        with pytest.raises(BadInputError, match=f"has {setting} = off, so a crash could lose votes"):
            DatabaseSession(database(url))
    finally:
        execute(url, f"ALTER SYSTEM RESET {setting}")
        execute(url, "SELECT pg_reload_conf()")
        wait_for(lambda: execute(url, f"SHOW {setting}") == [("on",)])


def test_commits_wait_for_the_disk_even_if_the_database_would_not(url):
    with closing(DatabaseSession(database(f"{url}%20-csynchronous_commit%3Doff"))) as session:
        assert session.connection.execute(text("SHOW synchronous_commit")).scalar() == "on"
