"""A fleet of pipelines and the server on it, each a process of its own."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil

FLEET = Path(__file__).with_name("fleet.py")
START_SECONDS = 300.0


class Served:
    """A server that is ready, with its address, its token and its process."""

    def __init__(self, directory: Path, port: int) -> None:
        self.directory, self.address = directory, f"http://127.0.0.1:{port}"
        self._words = [sys.executable, "-m", "penstock", "serve", str(directory),
                       "--port", str(port)]  # fmt: skip
        self.process = self._start()

    @property
    def token(self) -> str:
        return (self.directory / ".penstock" / "server" / "token").read_text()

    def get(self, path: str) -> Any:
        """Returns the answer to a request."""
        headers = {"Authorization": f"Bearer {self.token}"}
        request = urllib.request.Request(self.address + path, headers=headers)
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)

    def restart(self) -> float:
        """Kills the server and starts it. Returns the seconds until all pipelines are compared."""
        self.process.kill()
        self.process.wait()
        began = time.monotonic()
        self.process = self._start()
        return time.monotonic() - began

    def usage(self, seconds: float) -> tuple[float, float]:
        """Returns the memory in MB, and the share of a core over a time, of all its processes."""
        root = psutil.Process(self.process.pid)
        processes = [root, *root.children(recursive=True)]
        before = sum(sum(each.cpu_times()[:2]) for each in processes)
        time.sleep(seconds)
        after = sum(sum(each.cpu_times()[:2]) for each in processes)
        memory = sum(each.memory_full_info().pss for each in processes)
        return memory / 2**20, (after - before) / seconds

    def memory(self) -> tuple[float, float]:
        """Returns the memory of the server in MB, and that with all its processes."""
        root, found = psutil.Process(self.process.pid), []
        for process in (root, *root.children(recursive=True)):
            with suppress(psutil.Error):
                found.append(process.memory_full_info().pss / 2**20)
        return found[0], sum(found)

    def _start(self) -> psutil.Popen:
        output = (self.directory / "server.txt").open("ab")
        process = psutil.Popen(self._words, stdout=output, stderr=output)
        until = time.monotonic() + START_SECONDS
        while time.monotonic() < until and process.poll() is None:
            with suppress(OSError), urllib.request.urlopen(f"{self.address}/ready", timeout=5):
                return process
            time.sleep(0.05)
        raise RuntimeError((self.directory / "server.txt").read_text()[-2000:])


@contextmanager
def serving(directory: Path, count: int, nodes: int = 50) -> Iterator[Served]:
    """Serves a fleet of running pipelines during the block."""
    holder = subprocess.Popen(
        [sys.executable, str(FLEET), str(directory), str(count), "--nodes", str(nodes)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    try:
        assert holder.stdout is not None and holder.stdout.readline() == b"ready\n"
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        served = Served(directory, port)
        try:
            yield served
        finally:
            served.process.terminate()
            served.process.wait(20)
    finally:
        holder.terminate()
        holder.wait()
