"""What a release needs agrees with the project: the wheel, the conda recipe, the action of GitHub, the citation."""

import re
import tomllib
import zipfile
from pathlib import Path

import yaml
from hatchling.build import build_wheel

import fairduel
from fairduel.cli.votes.audit_command import FailReason
from helpers.documents import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_the_wheel_holds_every_file_of_the_package(tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    with zipfile.ZipFile(tmp_path / build_wheel(str(tmp_path))) as wheel:
        held = {name for name in wheel.namelist() if name.startswith("fairduel/")}
    source = Path(fairduel.__file__).parent
    files = (path.relative_to(source.parent) for path in source.rglob("*") if path.is_file())
    assert held == {path.as_posix() for path in files if "__pycache__" not in path.parts}


def test_the_conda_recipe_needs_what_the_project_needs():
    recipe = (ROOT / "conda" / "meta.yaml").read_text()
    run = recipe.split("  run:\n")[1].split("\ntest:")[0]
    listed = dict(re.findall(r"- ([a-z0-9-]+) >=([0-9.]+)", run.replace("matplotlib-base", "matplotlib")))
    extras = PROJECT["optional-dependencies"]
    needed = [*PROJECT["dependencies"], *extras["bench"], *extras["votes"][1:]]
    assert listed == dict(each.split(">=") for each in needed) | {
        "python": PROJECT["requires-python"].removeprefix(">=")
    }
    assert f'set version = "{fairduel.__version__}"' in recipe


def test_the_action_names_options_that_exist():
    action = yaml.safe_load((ROOT / "action" / "action.yml").read_text())
    reasons = set(re.findall(r"[a-z]+", action["inputs"]["fail-on"]["description"].split(":")[1]))
    assert reasons == {reason.value for reason in FailReason}
    assert action["inputs"]["fail-on"]["default"] in reasons


def test_everything_says_the_same_version():
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text())["version"] == fairduel.__version__
    assert f"## {fairduel.__version__}" in (ROOT / "CHANGELOG.md").read_text()
