"""A server that runs as a process of the tests' own, and ends with them."""

from __future__ import annotations

import ctypes
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

SECONDS = 30


class Process:
    """Starts a command and waits until `ready` says so; `ready` is a real call of a client."""

    def __init__(self, command: Sequence[str], log: Path, ready: Callable[[], bool]) -> None:
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                command, stdout=output, stderr=output, start_new_session=True,
                preexec_fn=_end_with_parent,
            )  # fmt: skip
        until = time.monotonic() + SECONDS
        while not self._answers(ready):
            if self._process.poll() is not None or time.monotonic() > until:
                self.stop()
                raise RuntimeError(f"{command[0]} does not start:\n{log.read_text()[-2000:]}")
            time.sleep(0.05)

    def stop(self) -> None:
        """Ends the server; by force if it takes too long."""
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    @staticmethod
    def _answers(ready: Callable[[], bool]) -> bool:
        try:
            return ready()
        except OSError:
            return False


def _end_with_parent() -> None:
    """Linux ends the server with the tests, however these end."""
    try:
        ctypes.CDLL(None).prctl(1, signal.SIGTERM)
    except (OSError, AttributeError):
        return


def free_port() -> int:
    """A port of this machine that nobody listens at."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])
