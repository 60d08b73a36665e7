"""Behind a real proxy that adds TLS and a subpath, as the documents say."""

import re
import shutil
import socket
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

from helpers.waiting import free_port

PAGE = Path(__file__).parents[3].joinpath("docs", "serve", "deploy.md").read_text(encoding="utf-8")
CONNECTIONS, FILES = (
    re.search(f"({name} [0-9]+);", PAGE)[1] for name in ("worker_connections", "worker_rlimit_nofile")
)
NGINX = """
daemon off; pid {folder}/nginx.pid; error_log {folder}/error.log; {files};
events {{ {connections}; }}
http {{
  access_log {folder}/access.log;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxied;
  fastcgi_temp_path {folder}/fastcgi; uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
  {server}
}}
"""


def deployed(folder, port, behind):
    """Return the server in the file for deployment, below a subpath and on other ports, with our certificate."""
    text = Path(__file__).parents[3].joinpath("deploy", "nginx.conf").read_text(encoding="utf-8")
    for old, new in (
        ("    listen [::]:443 ssl;\n", ""),
        ("listen 443 ssl", f"listen 127.0.0.1:{port} ssl"),
        ("server_name vote.example.org", "server_name localhost"),
        ("/etc/letsencrypt/live/vote.example.org/fullchain.pem", f"{folder}/certificate.pem"),
        ("/etc/letsencrypt/live/vote.example.org/privkey.pem", f"{folder}/key.pem"),
        ("location / {", "location /polls/ {"),
        ("proxy_pass http://127.0.0.1:8000;", f"proxy_pass http://127.0.0.1:{behind}/;"),
    ):
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


def wait_until_open(port):
    deadline = time.monotonic() + 60
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port)).close()
        except ConnectionRefusedError:
            assert time.monotonic() < deadline, "nothing listens"
            time.sleep(0.05)


@pytest.fixture(scope="module")
def proxied(tmp_path_factory):
    """The address of a poll behind nginx, and the operator's key."""
    for program in ("nginx", "openssl"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")
    folder, port, behind = tmp_path_factory.mktemp("nginx"), free_port(), free_port()
    certificate = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -keyout key.pem"
    subprocess.run([*certificate.split(), "-out", "certificate.pem"], cwd=folder, check=True, capture_output=True)
    settings = {"folder": folder, "server": deployed(folder, port, behind), "files": FILES, "connections": CONNECTIONS}
    (folder / "nginx.conf").write_text(NGINX.format(**settings))
    poll = "poll tea milk --host-name localhost --proxy 127.0.0.1 --root-path /polls"
    started = [
        subprocess.Popen(["nginx", "-e", folder / "error.log", "-c", folder / "nginx.conf"]),
        subprocess.Popen(
            [sys.executable, "-m", "fairduel", *poll.split(), "--port", str(behind), "--folder", folder / "store"],
            stdout=subprocess.PIPE,
            text=True,
        ),
    ]
    try:
        said = [started[1].stdout.readline() for _ in range(2)]
        study = re.search("https://localhost/polls/vote/(.*)", said[0])[1]
        key = re.search("https://localhost/polls/#(.*)", said[1])[1]
        for each in (port, behind):
            wait_until_open(each)
        yield f"https://localhost:{port}/polls/", study, key
    finally:
        for process in reversed(started):
            process.terminate()
            process.communicate()


def test_a_poll_works_behind_a_proxy_with_tls_and_a_subpath(proxied, browser):
    address, study, key = proxied
    with browser.new_context(ignore_https_errors=True) as context:
        page = context.new_page()
        page.goto(f"{address}vote/{study}")
        page.click("#start")
        page.wait_for_selector("#duel:not([hidden])")
        page.wait_for_timeout(400)  # clicks that come too fast to be meant are ignored
        page.click("#left")
        page.wait_for_selector("#end:not([hidden])")
        (cookie,) = context.cookies()
        assert cookie["secure"]
        assert cookie["path"] == f"/polls/api/studies/{study}"
    with browser.new_context(ignore_https_errors=True) as context:
        page = context.new_page()
        page.goto(f"{address}#{key}")
        page.click("text=Which is better?")
        page.get_by_role("link", name="Voters", exact=True).wait_for()
        page.get_by_role("button", name="Share").click()
        page.locator("dialog .link", has_text=f"{address}vote/{study}").wait_for()


def test_events_pass_through_the_proxy_at_once(proxied):
    address, study, key = proxied
    with (
        httpx.Client(base_url=address, verify=False, headers={"Authorization": f"Bearer {key}"}) as operator,
        operator.stream("GET", f"api/studies/{study}/events") as stream,
    ):
        lines = (line for line in stream.iter_lines() if line.startswith("data"))
        first = next(lines)
        operator.patch(f"api/studies/{study}", json={"title": "Drinks"}).raise_for_status()
        assert next(lines) != first


def test_limits_are_per_caller_whom_the_proxy_names(proxied):
    """nginx overwrites what callers claim, so all of these come from one address."""
    address, study, _ = proxied
    join, accepted, began = f"api/studies/{study}/voters", 0, time.monotonic()
    with httpx.Client(base_url=address, verify=False) as anyone:
        while (
            status := anyone.post(join, json={}, headers={"X-Forwarded-For": f"10.0.0.{accepted}"}).status_code
        ) == 201:
            accepted += 1
            assert accepted < 1000
    assert status == 429
    assert 140 <= accepted <= 151 + (time.monotonic() - began)  # 150 at once, and one more each second


def test_half_sent_headers_lock_nobody_out_of_the_proxy(proxied):
    """nginx's usual 768 connections for each of its processes, of which there is one here, would be taken."""
    address, *_ = proxied
    with ExitStack() as opened:
        for _ in range(1500):
            half = opened.enter_context(socket.create_connection(("127.0.0.1", httpx.URL(address).port), 20))
            half.sendall(b"\x16")
        with httpx.Client(base_url=address, verify=False, timeout=20.0) as anyone:
            assert anyone.get("readyz").status_code == 200
