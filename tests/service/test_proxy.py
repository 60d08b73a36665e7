"""Behind a real proxy that adds TLS and a subpath, as the documents say."""

import re
import shutil
import socket
import subprocess
import sys
import time

import httpx
import pytest

NGINX = """
daemon off; pid {folder}/nginx.pid; error_log {folder}/error.log;
events {{}}
http {{
  access_log {folder}/access.log;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxied;
  fastcgi_temp_path {folder}/fastcgi; uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
  server {{
    listen 127.0.0.1:{port} ssl;
    ssl_certificate {folder}/certificate.pem; ssl_certificate_key {folder}/key.pem;
    location /polls/ {{
      proxy_pass http://127.0.0.1:{behind}/;
      proxy_set_header Host $http_host;
      proxy_set_header X-Forwarded-For $remote_addr;
      proxy_set_header X-Forwarded-Proto $scheme;
    }}
  }}
}}
"""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


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
    (folder / "nginx.conf").write_text(NGINX.format(folder=folder, port=port, behind=behind))
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
        page.wait_for_function("document.body.innerText.includes('Voters')")
        assert page.locator(".link").first.inner_text() == f"{address}vote/{study}"


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
    assert 50 <= accepted <= 61 + (time.monotonic() - began)  # 60 at once, and one more each second
