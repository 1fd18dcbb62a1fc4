"""Kills a server and its runs at random, amid starts, stops, restarts and new texts.

Afterwards each pipeline is as the last acknowledged request wished, with one process or none; the
versions are those that were acknowledged; and no run that should continue was touched by a kill of
the server. The runs are stand-ins without Spark.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

TESTS = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS))

from penstock.runtime.state.directory import StateDirectory  # noqa: E402
from server_console import PIPELINE, add_pipeline, wait_for  # noqa: E402
from servers.server import free_port  # noqa: E402

WORDS = ("start", "stop", "restart", "apply")


@dataclass
class Served:
    """A server in a process of its own, and a client of it."""

    directory: Path
    port: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> float:
        """Starts the server and waits until it is ready. Returns the seconds it has taken."""
        began = time.monotonic()
        output = (self.directory / "server.txt").open("ab")
        self.process = subprocess.Popen(
            [sys.executable, str(TESTS / "serve_stand_ins.py"), str(self.directory),
             str(self.port)],
            stdout=output, stderr=output, env={**os.environ, "PYTHONPATH": str(TESTS)},
        )  # fmt: skip
        wait_for(self._ready, lambda: (self.directory / "server.txt").read_text()[-2000:])
        return time.monotonic() - began

    def kill(self) -> None:
        """Kills the server alone, not its runs."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def request(self, method: str, path: str, body: Any = None) -> Any:
        """Returns the answer to a request. Raises OSError without one."""
        token = self.directory / ".penstock" / "server" / "token"
        content = json.dumps(body or {}).encode() if method == "POST" else None
        request = urllib.request.Request(
            f"http://localhost:{self.port}{path}", content, method=method,
            headers={"Content-Type": "application/json",
                     "Authorization": f"Bearer {token.read_text()}"},
        )  # fmt: skip
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                return json.load(answer)
        except http.client.HTTPException as error:
            raise ConnectionError("the answer was cut") from error

    def _ready(self) -> bool:
        with suppress(OSError):
            return bool(self.request("GET", "/ready")["ready"])
        return False


@dataclass
class Expected:
    """What the acknowledged requests for a pipeline imply. None is unknown: the answer was lost."""

    id: str
    wish: str | None = "stopped"
    texts: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)


class Chaos:
    """Random requests and kills, with the expectations that follow."""

    def __init__(self, directory: Path, pipelines: int, seed: int) -> None:
        self.directory, self.random = directory, random.Random(seed)
        self.names = [f"shop{number}" for number in range(pipelines)]
        for name in self.names:
            add_pipeline(directory, name, f"run {self.random.choice((0, 0.3, 1.5))}")
        self.served = Served(directory)
        self.served.start()
        found = {each["name"]: each["id"] for each in self.served.request("GET", PIPELINES)}
        self.expected = {name: Expected(found[name]) for name in self.names}
        self.slowest_start = 0.0

    def request(self, name: str, word: str) -> None:
        """Sends a request, and records what follows if it is acknowledged."""
        expected, text = self.expected[name], ""
        body: dict[str, Any] = {}
        if word == "apply":
            text = f"{PIPELINE.format(name=name)}# {self.random.random()}\n"
            body = {"text": text}
        try:
            self.served.request("POST", f"{PIPELINES}/{expected.id}/{word}", body)
        except urllib.error.HTTPError as error:
            assert error.code == 409, error.read()
        except OSError:
            expected.lost.append(text)
            if word != "apply":
                expected.wish = None
        else:
            if word == "apply":
                expected.texts.append(text)
            else:
                expected.wish = "stopped" if word == "stop" else "running"

    def step(self) -> None:
        """Sends a request, or kills the server, a run or both."""
        act = self.random.random()
        if act < 0.75:
            self.request(self.random.choice(self.names), self.random.choice(WORDS))
            return
        if act < 0.85:
            self._kill_run()
            return
        name, word = self.random.choice(self.names), self.random.choice(WORDS)
        delay = self.random.random() * 0.15
        process = self.served.process
        assert process is not None
        killer = subprocess.Popen(["sh", "-c", f"sleep {delay}; kill -9 {process.pid}"])
        self.request(name, word)
        killer.wait()
        process.wait()
        if act > 0.93:
            self._kill_run()
        self.slowest_start = max(self.slowest_start, self.served.start())

    def _kill_run(self) -> None:
        owner = self.owner(self.random.choice(self.names))
        if owner is not None:
            with suppress(ProcessLookupError):
                os.kill(owner, signal.SIGKILL)

    def owner(self, name: str) -> int | None:
        """Returns the process that holds the lock of a pipeline's state."""
        state = StateDirectory(self.directory / name / ".penstock" / name)
        owner = state.owner() if state.root.exists() else None
        return None if owner is None else int(owner["pid"])

    def await_wishes(self) -> None:
        """Waits until each pipeline is as wished. A lost request may have had its effect or not."""
        for expected in self.expected.values():
            if expected.wish is None:
                detail = self.served.request("GET", f"{PIPELINES}/{expected.id}")
                expected.wish = "stopped" if detail["wish"] == "stopped" else "running"
        deadline = time.monotonic() + 60
        while found := self.differences():
            assert time.monotonic() < deadline, found
            time.sleep(0.5)

    def differences(self) -> list[str]:
        """Returns what is not as the acknowledged requests imply."""
        found = []
        runs = self.processes()
        for name, expected in self.expected.items():
            detail = self.served.request("GET", f"{PIPELINES}/{expected.id}")
            owner, state = self.owner(name), detail["health"]["state"]
            due = 1 if expected.wish == "running" else 0
            if (owner is not None) != bool(due) or len(runs.get(name, ())) != due:
                found.append(f"{name}: {expected.wish}, {state}, {owner}, {runs.get(name)}")
            elif due and state not in ("running", "idle"):
                found.append(f"{name}: {detail['health']}")
            versions = self.served.request("GET", f"{PIPELINES}/{expected.id}/versions?limit=1000")
            texts = [each["text"] for each in versions]
            missing = [text for text in expected.texts if text not in texts]
            if missing or (texts and detail["text"] not in texts[:1]):
                found.append(f"{name}: {len(missing)} versions are missing, or the file differs")
        return found

    def processes(self) -> dict[str, list[int]]:
        """Returns the processes of runs by pipeline, whether they hold a lock or not."""
        found: dict[str, list[int]] = {}
        for entry in Path("/proc").iterdir():
            with suppress(OSError):
                if entry.name.isdigit() and (entry / "cwd").resolve().parent == self.directory:
                    words = (entry / "cmdline").read_bytes()
                    if b"stand_in_run" in words:
                        name = (entry / "cwd").resolve().name
                        found.setdefault(name, []).append(int(entry.name))
        return found

    def close(self) -> None:
        """Kills the server and all runs."""
        self.served.kill()
        for pids in self.processes().values():
            for pid in pids:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


PIPELINES = "/api/v1/pipelines"


def kill_server(directory: Path, pipelines: int, steps: int, seed: int) -> float:
    """Takes random steps, and compares. Returns the slowest start of a server, in seconds."""
    chaos = Chaos(directory, pipelines, seed)
    try:
        for _ in range(steps):
            chaos.step()
        chaos.await_wishes()
        before = {name: chaos.owner(name) for name in chaos.names}
        chaos.served.kill()
        chaos.slowest_start = max(chaos.slowest_start, chaos.served.start())
        chaos.await_wishes()
        after = {name: chaos.owner(name) for name in chaos.names}
        assert after == before, "a run was touched by a kill of the server"
        return chaos.slowest_start
    finally:
        chaos.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pipelines", type=int, default=10)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        slowest = kill_server(
            Path(directory).resolve(), options.pipelines, options.steps, options.seed
        )
    print(f"nothing was lost; the slowest start of the server took {slowest:.1f} s")


if __name__ == "__main__":
    main()
