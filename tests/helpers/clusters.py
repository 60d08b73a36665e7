"""A throw-away PostgreSQL."""

import itertools
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

import pytest
from sqlalchemy import NullPool, text

from fairduel.errors import BadInputError
from fairduel.service.events.database import connect, database, open_postgres
from helpers.waiting import free_port

in_both = pytest.mark.parametrize("new_location", ["folder", "postgres"], indirect=True)
"""Runs a test with a folder and with a database."""
PASSWORD = "not to be shown"
_PLACES = ("/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin")
_NUMBERS = itertools.count()


def _programs():
    """The folder of the newest PostgreSQL's programs, or None."""
    found = [Path(shutil.which("initdb")).parent] if shutil.which("initdb") else []
    found += [path for place in _PLACES for path in Path("/").glob(place[1:])]
    return max((path for path in found if (path / "initdb").exists()), key=_version, default=None)


def _version(path):
    said = subprocess.run([path / "postgres", "--version"], capture_output=True, text=True, check=True).stdout
    return float(said.split()[2].partition("(")[0])


@contextmanager
def cluster():
    """Run a PostgreSQL that asks for a password; yields the address of its database, or skips where there is none."""
    pytest.importorskip("psycopg", reason="psycopg is not installed: pip install '.[postgres]'")
    found = _programs()
    if found is None:
        pytest.skip("there is no PostgreSQL on this machine: install postgresql")
    as_other = []  # PostgreSQL refuses to run as root
    if os.getuid() == 0:
        owner = pwd.getpwnam("postgres")
        as_other = ["setpriv", f"--reuid={owner.pw_uid}", f"--regid={owner.pw_gid}", "--clear-groups"]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder, port = Path(name), free_port()
        secret = folder / "secret"
        secret.write_text(PASSWORD)
        if as_other:
            os.chown(folder, owner.pw_uid, owner.pw_gid)
            os.chown(secret, owner.pw_uid, owner.pw_gid)
        new = ["--username=owner", "--auth=scram-sha-256", f"--pwfile={secret}", "--encoding=UTF8", "--no-sync"]
        make = [*as_other, found / "initdb", "-D", folder / "data", "--locale=C", *new]
        subprocess.run(make, check=True, capture_output=True, cwd="/")
        settings = {"listen_addresses": "127.0.0.1", "port": port, "unix_socket_directories": "", "max_connections": 80}
        options = [f"-c{setting}={value}" for setting, value in settings.items()]
        start = [*as_other, found / "postgres", "-D", folder / "data", *options]
        with (folder / "log").open("wb") as log:
            server = subprocess.Popen(start, stdout=log, stderr=log, cwd="/")
        try:
            url = f"postgresql://owner:{quote(PASSWORD)}@127.0.0.1:{port}/postgres"
            _wait_for(url, server, folder / "log")
            yield url
        finally:
            server.send_signal(signal.SIGQUIT)  # at once; it is thrown away
            server.wait()


def _wait_for(url, server, log):
    for _ in range(200):
        with suppress(BadInputError):
            execute(url, "SELECT 1")
            return
        assert server.poll() is None, log.read_text()
        time.sleep(0.05)
    raise TimeoutError(log.read_text())


def execute(url, statement, **values):
    """Run a statement, and return its rows if there are any."""
    engine = open_postgres(database(url), poolclass=NullPool, isolation_level="AUTOCOMMIT")
    with connect(engine) as connection:
        found = connection.execute(text(statement), values)
        return found.all() if found.returns_rows else None


def new_database(url):
    """Return the address of a new, empty schema, which is to servers what a database of their own is."""
    name = f"store{next(_NUMBERS)}"
    execute(url, f"CREATE SCHEMA {name}")
    return f"{url}?options=-csearch_path%3D{name}"
