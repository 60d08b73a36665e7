"""The recipe "Add a ranking column" of CONTRIBUTING.md, followed to the letter in a copy."""

import csv
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import fairduel

PACKAGE = Path(fairduel.__file__).parent
CONTRIBUTING = (Path(__file__).parent.parent / "CONTRIBUTING.md").read_text(encoding="utf-8")
VOTES = "first,second,winner,voter\ntea,milk,first,Ann\ntea,milk,first,Bob\nmilk,tea,tie,Cleo\ntea,milk,second,Dan\n"
LOSSES = {"tea": 1.5, "milk": 2.5}
SERVED = """
import json, sys, time
from pathlib import Path
from starlette.testclient import TestClient
from fairduel.service.api.app import create_app
from fairduel.service.commands import team
from fairduel.service.service import Service

service = Service(Path(sys.argv[1]))
key = service.ledger.run(team.ensure_operator)
client = TestClient(create_app(service), headers={"Authorization": f"Bearer {key}"}, base_url="http://127.0.0.1")
about = {"question": "?", "items": [{"name": "tea"}, {"name": "milk"}]}
study = client.post("/api/studies", json=about).json()["study"]
path = f"/api/studies/{study}/import?name=votes.csv"
done = client.post(path, content=sys.argv[2].encode(), headers={"Content-Type": "application/octet-stream"})
assert done.status_code < 300, done.text
found = {"ranking": []}
while not found["ranking"]:
    time.sleep(0.1)
    found = client.get(f"/api/studies/{study}/results").json()
print(json.dumps({"found": found, "schema": client.get("/openapi.json").json()}))
service.close()
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Runs Python in a folder, with a copy of the package in which the recipe was followed."""
    folder = tmp_path_factory.mktemp("column")
    shutil.copytree(PACKAGE, folder / "fairduel", ignore=shutil.ignore_patterns("__pycache__"))
    recipe = CONTRIBUTING.split("## Add a ranking column\n")[1].split("\n## ")[0]
    name, code = re.search(r"```py\n# (\S+)\n(.*?)```", recipe, re.DOTALL).groups()
    file = folder / "fairduel" / name
    text, entries = file.read_text(encoding="utf-8").split("\nRANKING: ", 1)
    head, columns = entries.split("[\n", 1)
    file.write_text(f"{text}\nRANKING: {head}[\n{code.rstrip()},\n{columns}", encoding="utf-8")
    (folder / "votes.csv").write_text(VOTES)

    def python(*arguments):
        environment = os.environ | {"PYTHONPATH": str(folder), "NUMBA_DISABLE_JIT": "1"}  # nothing is compiled anew
        done = subprocess.run(
            [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return python, folder


def test_it_is_in_the_terminal_csv_json_and_the_report(run):
    python, folder = run
    printed = python("-m", "fairduel", "rank", "votes.csv", "--out", "out").split("\n\n")[1]
    header, _, *rows = [re.split(" {2,}", line.strip()) for line in printed.splitlines()]
    assert {row[header.index("item")]: float(row[header.index("losses")]) for row in rows} == LOSSES
    with (folder / "out" / "ranking.csv").open() as file:
        assert {row["item"]: float(row["losses"]) for row in csv.DictReader(file)} == LOSSES
    record = json.loads((folder / "out" / "ranking.json").read_text())
    assert {row["item"]: row["losses"] for row in record["ranking"]} == LOSSES
    page = (folder / "out" / "report.html").read_text(encoding="utf-8")
    assert 'title="The votes that it lost; a tie counts as half a loss.">losses</th>' in page
    assert 'data-label="losses" class="">1.5</td>' in page


def test_it_is_in_the_interface_its_schema_and_the_live_table(run):
    python, folder = run
    reply = json.loads(python("-c", SERVED, str(folder / "data"), VOTES))
    found, schema = reply["found"], reply["schema"]
    assert {row["item"]: row["losses"] for row in found["ranking"]} == LOSSES
    described = schema["components"]["schemas"]["Standing"]["properties"]["losses"]
    assert described["description"] == "the votes that it lost; a tie counts as half a loss"
    columns, rows = found["table"]["columns"], found["table"]["rows"]
    [place] = [place for place, each in enumerate(columns) if each["heading"] == "losses"]
    [item] = [place for place, each in enumerate(columns) if each["heading"] == "item"]
    assert {row[item]: float(row[place]) for row in rows} == LOSSES
