"""Votes per second of other systems that collect comparisons, beside ``fairduel serve`` on the same machine.

``python -m benchmarks.live_peers PEERS [SECONDS]``, where PEERS is an environment made by ``python -m venv PEERS`` and
``PEERS/bin/pip install optuna-dashboard potato-annotation``. Each of 32 clients sends one vote at a time:

- fairduel: an answer with its idempotency key; the reply, sent once the vote is on disk, brings the next duel;
- optuna-dashboard: ``POST /api/studies/1/preference`` on SQLite; it has no voters and returns no next pair;
- potato: ``POST /updateinstance`` by a logged-in annotator on the same pair again and again, which writes and syncs the
  annotator's file; it returns no next pair.

The peers close the connection after each reply, so their clients open one per vote.
"""

import asyncio
import contextlib
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.live_voting import CLIENTS, Server, Tally, check_durable, load

NEW_STUDY = """
import optuna, optuna_dashboard.preferential as preferential
sampler = optuna.samplers.RandomSampler()  # the default needs BoTorch
study = preferential.create_study(n_generate=4, storage="sqlite:///votes.db", sampler=sampler)
for _ in range(12):
    study.ask().suggest_float("x", 0, 1)
"""
POTATO = """
annotation_task_name: votes
task_dir: .
data_files: [items.json]
item_properties: {id_key: id, text_key: text}
output_annotation_dir: annotations
output_annotation_format: jsonl
user_config: {allow_all_users: true, users: []}
require_password: false
annotation_schemes:
  - {annotation_type: pairwise, name: which, description: "Which is better?", mode: binary, labels: [A, B]}
"""


async def request(port, method, path, body=b"", headers=""):
    """Return the status, the headers and the body of the reply to one request on a connection of its own."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Length: {len(body)}\r\n"
    writer.write(f"{head}{headers}\r\n".encode() + body)
    reply = await reader.read()
    writer.close()
    top, _, content = reply.partition(b"\r\n\r\n")
    return int(top[9:12]), top.decode("latin-1"), content


async def vote(port, tally, until, path, body, headers):
    while time.perf_counter() < until:
        began = time.perf_counter()
        status, _, reply = await request(port, "POST", path, json.dumps(body).encode(), headers)
        assert status < 300 or status >= 500, reply[-500:]
        if status < 300:
            tally.seconds.append(time.perf_counter() - began)
        else:
            tally.refused += 1


async def votes_to_optuna(port, seconds):
    tally, until = Tally(), time.perf_counter() + seconds
    body = {"mode": "ChooseWorst", "candidates": [1, 2], "clicked": 2}
    clients = (
        vote(port, tally, until, "/api/studies/1/preference", body, "Content-Type: application/json\r\n")
        for _ in range(CLIENTS)
    )
    await asyncio.gather(*clients)
    return tally


async def votes_to_potato(port, seconds):
    async def join(number):
        form = f"action=login&email=voter{number}&pass=".encode()
        kind = "Content-Type: application/x-www-form-urlencoded\r\n"
        _, top, _ = await request(port, "POST", "/auth", form, kind)
        cookie = f"Cookie: {re.search('[Ss]et-[Cc]ookie: ([^;]+)', top)[1]}\r\n"
        _, _, page = await request(port, "GET", "/annotate", headers=cookie)
        item = re.search(rb'name="instance_id" type="hidden" value="([^"]+)"', page)[1].decode()
        return {"instance_id": item, "annotations": {"which:A": "A"}}, f"{cookie}Content-Type: application/json\r\n"

    voters = [await join(number) for number in range(CLIENTS)]
    tally, until = Tally(), time.perf_counter() + seconds
    clients = (vote(port, tally, until, "/updateinstance", body, headers) for body, headers in voters)
    await asyncio.gather(*clients)
    return tally


@contextlib.contextmanager
def running(folder, command):
    """Run a peer's server in a folder until its port is open; ``{port}`` stands for a free one."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    arguments = [part.format(port=port) for part in command]
    process = subprocess.Popen(arguments, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        until = time.perf_counter() + 120
        while time.perf_counter() < until and process.poll() is None:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                break
            time.sleep(0.1)
        yield port
    finally:
        process.kill()
        process.wait()


def measure(name, peers, seconds):
    """Return what the clients of one system saw."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        if name == "fairduel":
            with Server(folder) as server:
                _, study = load(server, seconds=2)
                tally, _ = load(server, study, seconds=seconds)
            check_durable(folder, tally)
            return tally
        if name == "optuna-dashboard":
            subprocess.run([peers / "bin/python", "-c", NEW_STUDY], cwd=folder, check=True, capture_output=True)
            command = [str(peers / "bin/optuna-dashboard"), "sqlite:///votes.db", "--port", "{port}"]
            with running(folder, command) as port:
                return asyncio.run(votes_to_optuna(port, seconds))
        items = [json.dumps({"id": str(n), "text": [f"first {n}", f"second {n}"]}) for n in range(200)]
        (folder / "items.json").write_text("\n".join(items))
        (folder / "config.yaml").write_text(POTATO)
        with running(folder, [str(peers / "bin/potato"), "start", "config.yaml", "-p", "{port}"]) as port:
            return asyncio.run(votes_to_potato(port, seconds))


def main(peers, seconds=10):
    table = Table("system", "votes/s", "median, ms", "p99, ms", "failed/s", "fairduel ÷ this", box=None)
    rates = {}
    for name in ("fairduel", "optuna-dashboard", "potato"):
        try:
            tally = measure(name, Path(peers).absolute(), seconds)
        except Exception as error:  # noqa: BLE001  # the others can still be measured
            table.add_row(name, f"failed: {type(error).__name__}: {error}"[:60])
            continue
        rates[name] = len(tally.seconds) / seconds
        ratio = f"{rates['fairduel'] / rates[name]:.1f}" if "fairduel" in rates else ""
        table.add_row(
            name,
            f"{rates[name]:,.1f}",
            *(f"{q:,.0f}" for q in tally.quantiles()),
            f"{tally.refused / seconds:.1f}",
            ratio,
        )
    Console(width=None if sys.stdout.isatty() else 120).print(table)
    print(f"{os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f}, {CLIENTS} clients.")


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
