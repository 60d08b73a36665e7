"""Servers in processes of their own, which can be killed, and clients that take no time of their own."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import psutil

LAUNCHER = """
import json, logging, os, resource, socket, sys
from pathlib import Path
import uvicorn
from fairduel.service.commands import team
from fairduel.service.api.app import create_app
from fairduel.service.api.connections import server_config
from fairduel.service.api.limits import PRESETS
from fairduel.service.local import local_server
from fairduel.service.service import Service

def serve(folder, port, new_key, preset, descriptors):
    if descriptors:
        resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors))
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    service = Service(Path(folder))
    key = service.ledger.run(team.replace_operator) if new_key else None
    limits = PRESETS[preset]()
    app = create_app(service, limits=limits)
    print(json.dumps({"key": key}), flush=True)
    uvicorn.Server(server_config(app, limits, timeout_graceful_shutdown=2)).run(sockets=[listener])
    service.close()

logging.disable()
with local_server():
    pass  # loads and compiles everything once, for all servers
print("{}", flush=True)
for line in sys.stdin:
    child = os.fork()
    if child == 0:
        sys.stdin.close()
        try:
            serve(*json.loads(line))
        finally:
            os._exit(0)
    print(json.dumps({"pid": child}), flush=True)
    os.waitpid(child, 0)
"""


def in_a_loop(coroutine):
    """Run a coroutine on another thread, because a browser may have a loop on this one."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, coroutine).result()


class Launcher:
    """Starts one server after another without importing everything again."""

    def __init__(self):
        command = [sys.executable, "-c", LAUNCHER]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.read()
        self.server = None

    def read(self):
        return json.loads(self.process.stdout.readline())

    def start(self, folder, port=None, *, new_key=True, preset="none", descriptors=None):
        """Start a server, after ending the one that a failed test may have left; it may not be ready yet."""
        if self.server is not None:
            self.server.end(signal.SIGKILL)
        if port is None:
            with socket.create_server(("127.0.0.1", 0)) as listener:
                port = listener.getsockname()[1]
        began = time.perf_counter()
        self.process.stdin.write(json.dumps([str(folder), port, new_key, preset, descriptors]) + "\n")
        self.process.stdin.flush()
        self.server = Server(self, folder, port, self.read()["pid"], began)
        return self.server

    def close(self):
        if self.server is not None:
            self.server.end(signal.SIGKILL)
        self.process.communicate()


class Server:
    """A running server."""

    def __init__(self, launcher, folder, port, pid, began):
        self.launcher, self.folder, self.port, self.pid, self.began = launcher, folder, port, pid, began
        self.process = psutil.Process(pid)
        self.key = None

    def wait(self):
        """Wait until it is ready; return how many seconds that took from its start."""
        self.key = self.launcher.read()["key"]
        while True:
            with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 5) as connection:
                connection.sendall(b"GET /readyz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
                if connection.recv(100).startswith(b"HTTP/1.1 200"):
                    return time.perf_counter() - self.began
            time.sleep(0.005)

    def end(self, how=signal.SIGTERM):
        """End it, and wait until it is gone."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, how)
        while psutil.pid_exists(self.pid):
            time.sleep(0.002)
        self.launcher.server = None

    def megabytes(self):
        return self.process.memory_info().rss / 1e6


class Link:
    """One kept-alive HTTP connection, made again when it breaks."""

    def __init__(self, port, key=""):
        self.port, self.key, self.streams = port, key, None
        self.seconds, self.refused = [], 0  # how long accepted requests took
        self.pause = 0.02  # before a request is repeated

    async def send(self, method, path, body, **headers):
        """Return status, headers and body; raises OSError or EOFError if there is no reply."""
        if self.streams is None:
            self.streams = await asyncio.open_connection("127.0.0.1", self.port)
        reader, writer = self.streams
        content = json.dumps(body).encode()
        lines = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", f"Authorization: Bearer {self.key}"]
        lines += ["Content-Type: application/json", f"Content-Length: {len(content)}"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        try:
            writer.write("\r\n".join([*lines, "", ""]).encode() + content)
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            found = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:] if line)}
            reply = await reader.readexactly(int(found.get("content-length", 0)))
        except (OSError, EOFError):
            self.close()
            raise
        return int(head[0][9:12]), found, json.loads(reply or "null")

    async def post(self, path, body, **headers):
        return await self.send("POST", path, body, **headers)

    async def insist(self, method, path, body, **headers):
        """Repeat a request until there is a reply that does not ask to come back; return its status and body."""
        while True:
            with suppress(OSError, EOFError):
                began = time.perf_counter()
                status, found, reply = await self.send(method, path, body, **headers)
                if status not in {429, 503}:
                    self.seconds.append(time.perf_counter() - began)
                    return status, reply
                assert int(found["retry-after"]) >= 1
                self.refused += 1
            await asyncio.sleep(self.pause)

    def close(self):
        if self.streams is not None:
            self.streams[1].close()
            self.streams = None


def called_from(app, address):
    """Return the app as callers at this address reach it; starlette's client cannot set one in every version."""

    async def reached(scope, receive, send):
        await app({**scope, "client": (address, 1)}, receive, send)

    return reached
