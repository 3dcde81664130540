"""A real service in a process of its own."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

PATIENCE = 120.0  # seconds, as machines are shared


class Service:
    """`streammetrics live serve` of a configuration, on a port of its own."""

    def __init__(self, config, port=None, program=("-m", "streammetrics")):
        self.config, self.port, self.program = config, port or free_port(), program
        self.url = f"http://127.0.0.1:{self.port}"
        self.process = None

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.communicate()

    def start(self):
        words = [*self.program, "live", "serve", str(self.config)]
        self.process = subprocess.Popen(
            [sys.executable, *words, "--port", str(self.port)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        until(lambda: self.get("/ready") is not None, self.process)
        return self

    def end(self, number=signal.SIGTERM):
        """End it, and return what it wrote to standard error."""
        os.kill(self.process.pid, number)
        return self.process.communicate(timeout=PATIENCE)[1]

    def get(self, path):
        """Return what JSON it answers, nothing where nobody answers."""
        try:
            with urllib.request.urlopen(f"{self.url}{path}", timeout=20) as answer:
                return json.loads(answer.read())
        except (OSError, urllib.error.URLError):
            return None

    def post(self, events):
        body = "\n".join(map(json.dumps, events)).encode()
        with urllib.request.urlopen(f"{self.url}/events", body, timeout=30) as answer:
            return json.loads(answer.read())


def until(is_so, process=None, seconds=PATIENCE):
    """Wait until something is so."""
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end, "it did not become so"
        if process is not None:
            assert process.poll() is None, process.stderr.read()
        time.sleep(0.1)


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as found:
        return found.getsockname()[1]


def resident(pid):
    """Return the bytes that a process and its workers hold in memory."""
    found = 0
    for each in [pid, *children(pid)]:
        with open(f"/proc/{each}/statm") as file:
            found += int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return found


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return [int(each) for each in file.read().split()]
