"""The files in ``deploy/`` and the page about them, as far as a machine without a container engine can run them."""

import configparser
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import typer
import yaml

from fairduel.cli.command_list import app_for
from fairduel.service.events import backup

ROOT = Path(__file__).parents[3]
DEPLOY = ROOT / "deploy"
PAGE = (ROOT / "docs" / "serve" / "deploy.md").read_text(encoding="utf-8")
DOCKERFILE = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))


def parsed(words):
    """Return the options of ``fairduel serve`` as the command understands them; wrong ones raise an exception."""
    name, *options = words
    command = typer.main.get_command(app_for([name])).commands[name]
    return command.make_context(name, list(options)).params


def unit(name):
    found = configparser.ConfigParser(strict=False, interpolation=None)
    found.optionxform = str
    found.read_string((DEPLOY / name).read_text(encoding="utf-8"))
    return found


def test_the_image_has_all_that_it_copies_and_installs():
    for line in re.findall(r"^COPY (.*)$", DOCKERFILE, re.MULTILINE):
        assert all((ROOT / source).exists() for source in line.split()[:-1]), line
    extras = re.search(r"pip install --no-cache-dir '\.\[(.*)\]'", DOCKERFILE)[1].split(",")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert set(extras) <= project["optional-dependencies"].keys()
    needed = {project["readme"], *project.get("license-files", [])}
    assert needed <= set(re.search(r"^COPY (.*) \./$", DOCKERFILE, re.MULTILINE)[1].split())
    serve = parsed(yaml.safe_load(re.search(r"^CMD (.*)$", DOCKERFILE, re.MULTILINE)[1]))
    assert (serve["address"], serve["opens_page"]) == ("0.0.0.0", False)
    code = shlex.split(re.search(r"^RUN python (.*)$", DOCKERFILE, re.MULTILINE)[1])
    subprocess.run([sys.executable, *code], check=True)


def test_the_server_believes_the_proxy_of_the_compose_file_and_no_other():
    services = COMPOSE["services"]
    words = [re.sub(r"\$\{DOMAIN.*\}", "vote.example.org", word) for word in services["fairduel"]["command"]]
    serve = parsed(words)
    assert serve["proxy"] == [services["caddy"]["networks"]["inside"]["ipv4_address"]]
    assert serve["database"] == f"postgresql://{services['database']['environment']['POSTGRES_USER']}@database/fairduel"
    assert [name for name, service in services.items() if "ports" in service] == ["caddy"]
    assert "reverse_proxy fairduel:8000" in (DEPLOY / "Caddyfile").read_text()
    assert ":8000/readyz" in DOCKERFILE


def test_the_units_start_what_the_page_installs():
    words = shlex.split(unit("fairduel.service")["Service"]["ExecStart"])
    assert words[0] == "/opt/fairduel/bin/fairduel"
    assert "python3 -m venv /opt/fairduel" in PAGE
    serve = parsed(words[1:])
    assert (str(serve["folder"]), serve["proxy"], serve["address"]) == (
        "/var/lib/fairduel/votes",
        ["127.0.0.1"],
        "127.0.0.1",
    )
    program, store, _ = shlex.split(unit("fairduel-backup.service")["Service"]["ExecStart"])
    assert (store, f"deploy/backup.sh {program}" in PAGE) == (str(serve["folder"]), True)
    assert unit("fairduel-backup.timer")["Timer"]["Persistent"] == "true"
    if shutil.which("systemd-analyze"):
        for name in ("fairduel.service", "fairduel-backup.service", "fairduel-backup.timer"):
            found = subprocess.run(
                ["systemd-analyze", "verify", DEPLOY / name], capture_output=True, text=True, check=False
            )
            wrong = [line for line in found.stderr.splitlines() if "is not executable" not in line and name in line]
            assert wrong == []


def test_every_file_is_on_the_page_and_every_command_is_a_shells():
    named = {file.name for file in DEPLOY.iterdir()} - {"Dockerfile", "compose.yaml", "Caddyfile"}  # docker finds them
    assert {name for name in named if name not in PAGE} == set()
    for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL):
        subprocess.run(["sh", "-n"], input=block, text=True, check=True)


@pytest.fixture
def machine(tmp_path):
    """A folder that stands for a machine: runs a block of the page there, with stubs for what would change this one."""
    root, bin_, said = tmp_path / "machine", tmp_path / "stubs", tmp_path / "said"
    nginx = ("etc/nginx/sites-enabled", "etc/nginx/modules-enabled")
    for folder in ("opt", "etc/systemd/system", *nginx, "var/lib/fairduel"):
        (root / folder).mkdir(parents=True)
    (root / "etc/nginx/nginx.conf").write_text("events {\n\tworker_connections 768;\n}\n")  # as Debian has it
    bin_.mkdir()
    fairduel = f'#!/bin/sh\nexec {sys.executable} -m fairduel "$@"\n'
    stubs = {
        name: f'echo "{name} $*" >> {said}' for name in ("apt-get", "systemctl", "certbot", "journalctl", "docker")
    }
    stubs["pip"] = f'echo "pip $*" >> {said}; printf %s {shlex.quote(fairduel)} > {root}/opt/fairduel/bin/fairduel'
    stubs["pip"] += f"; chmod 755 {root}/opt/fairduel/bin/fairduel"
    stubs["python3"] = f'mkdir --parents {root}/opt/fairduel/bin; cp {bin_}/pip "$3/bin/pip"'
    stubs["git"] = f'cp --recursive {DEPLOY} "$3-files"; mkdir --parents "$3"; mv "$3-files" "$3/deploy"'
    for name, does in stubs.items():
        (bin_ / name).write_text(f"#!/bin/sh\n{does}\n")
        (bin_ / name).chmod(0o755)

    def run(begin):
        (block,) = (each for each in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL) if each.startswith(begin))
        there = re.sub(r"(?<![\w.])/(opt|etc|var)/", rf"{root}/\1/", block).replace("--owner 1000", "--owner $(id -u)")
        path = {"PATH": f"{bin_}:{os.environ['PATH']}"}
        subprocess.run(["sh", "-eu"], input=there, text=True, cwd=ROOT, env=os.environ | path, check=True)
        return said.read_text()

    return root, run


def test_the_commands_with_systemd_and_nginx_start_a_server(machine):
    """They are run as they are on the page; then so is what the unit starts, with the settings that they wrote."""
    root, run = machine
    said = run("apt-get")
    assert re.findall(r"^(\S+ \S+)", said, re.MULTILINE) == [
        "apt-get install",
        "pip install",
        "systemctl daemon-reload",
        "systemctl enable",
        "certbot certonly",
        "systemctl restart",
        "journalctl --unit",
    ]
    installed = {file.name for file in (root / "etc/systemd/system").iterdir()}
    assert installed == set(re.findall(r"fairduel[-a-z]*[.](?:service|timer)", PAGE))
    assert set(re.findall(r"enable --now (.*)", said)[0].split()) <= {
        each.removesuffix(".service") for each in installed
    }
    assert "server_name YOUR_DOMAIN;" in (root / "etc/nginx/sites-enabled/fairduel").read_text()
    assert (root / "etc/nginx/nginx.conf").read_text() == "events {\n\tworker_connections 16384;\n}\n"
    assert (root / "etc/nginx/modules-enabled/fairduel.conf").read_text() == "worker_rlimit_nofile 65536;\n"
    settings = dict(line.split("=") for line in (root / "etc/fairduel.env").read_text().split())
    service = unit("fairduel.service")["Service"]
    assert service["EnvironmentFile"] == "/etc/fairduel.env"
    command = service["ExecStart"].replace("${DOMAIN}", settings["DOMAIN"])
    words = shlex.split(re.sub(r"(?<!\S)/(opt|var)/", rf"{root}/\1/", command))
    with subprocess.Popen([*words, "--port", "0"], stdout=subprocess.PIPE, text=True) as process:
        first = process.stdout.readline()
        process.terminate()
    assert re.match(r"Operator: https://vote\.example\.org/#fdo_", first)
    backed = shlex.split(unit("fairduel-backup.service")["Service"]["ExecStart"])
    words = [re.sub("^/(opt|var)/", rf"{root}/\1/", word) for word in backed]
    path = {"PATH": f"{root}/opt/fairduel/bin:{os.environ['PATH']}"}
    subprocess.run(words, env=os.environ | path, check=True, capture_output=True)
    assert len(list((root / "var/lib/fairduel/backups").iterdir())) == 1


def test_the_commands_with_containers_write_the_settings_that_compose_reads(machine):
    root, run = machine
    said = run("git clone")
    assert said.splitlines() == ["docker compose up --build --detach", "docker compose logs fairduel"]
    deploy = root / "opt/fairduel/deploy"
    settings = dict(line.split("=") for line in (deploy / ".env").read_text().splitlines())
    assert settings["DOMAIN"] == "vote.example.org"
    assert len(bytes.fromhex(settings["PASSWORD"])) == 24
    assert (deploy / "backups").is_dir()
    needed = set(re.findall(r"\$\{(\w+):\?", (deploy / "compose.yaml").read_text()))
    assert needed == settings.keys()
    at_night = next(block for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL) if "exec -T" in block)
    words = shlex.split(at_night)
    assert words[words.index("sh") + 1] == re.search("COPY deploy/backup.sh (.*)", DOCKERFILE)[1]
    assert words[-2] == parsed(COMPOSE["services"]["fairduel"]["command"])["database"]
    assert COMPOSE["services"]["fairduel"]["volumes"] == [f"./backups:{words[-1]}"]


def test_backups_are_checked_restorable_and_few(booth, tmp_path):
    booth.vote(5)
    path = tmp_path / "bin"
    path.mkdir()
    (path / "fairduel").write_text(f'#!/bin/sh\nexec {sys.executable} -m fairduel "$@"\n')
    (path / "fairduel").chmod(0o755)
    folder = tmp_path / "our backups"
    for day in range(3):
        (folder / f"2020-01-0{day + 1}T000000Z").mkdir(parents=True)
    (folder / "2020-01-09T000000Z.part").mkdir()  # of a run that was killed

    def run(store):
        environment = os.environ | {"PATH": f"{path}:{os.environ['PATH']}"}
        words = ["sh", DEPLOY / "backup.sh", store, folder, "2"]
        return subprocess.run(words, env=environment, capture_output=True, text=True, check=False)

    assert run(tmp_path / "nothing").returncode != 0
    assert len(list(folder.iterdir())) == 3  # a backup that fails costs none of the others
    assert run(booth.folder).returncode == 0
    kept = sorted(each.name for each in folder.iterdir())
    assert (len(kept), kept[0]) == (2, "2020-01-03T000000Z")
    restored = backup.restore(folder / kept[1], tmp_path / "restored")
    assert (restored.head, restored.problems) == (booth.receipts()[-1], ())
