"""`penstock` as a user runs it: on a terminal that a test can read, or without one."""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
import sys
import time
from pathlib import Path

TIMEOUT_SECONDS = 300.0
PENSTOCK = [sys.executable, "-m", "penstock"]
ESCAPES = re.compile(rb"\x1b\[[0-9;?]*[a-zA-Z]")


def penstock(directory: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*PENSTOCK, *words], cwd=directory, capture_output=True, text=True, timeout=TIMEOUT_SECONDS
    )


class Terminal:
    """A command on a terminal of its own, 30 lines of 100 columns."""

    def __init__(self, command: list[str], directory: Path) -> None:
        self.screen, other = pty.openpty()
        os.set_blocking(self.screen, False)
        environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100", "LINES": "30"}
        self.process = subprocess.Popen(
            command, cwd=directory, env=environment, stdin=other, stdout=other, stderr=other,
            start_new_session=True,
        )  # fmt: skip
        os.close(other)
        self.said = b""

    @property
    def text(self) -> str:
        """All that was written, without its colours and movements."""
        return ESCAPES.sub(b"", self.said).decode("utf-8", "replace").replace("\r", "")

    def read(self) -> bool:
        """Takes what is there. False when the command has left the terminal."""
        if self._waits(0.1):
            try:
                self.said += os.read(self.screen, 65536)
            except OSError:
                return False
        return True

    def _waits(self, seconds: float) -> bool:
        """Whether there is something to read, or the command has left, within that time."""
        poll = select.poll()
        poll.register(self.screen, select.POLLIN)
        return bool(poll.poll(seconds * 1000))

    def enter(self, line: str) -> None:
        """Types a line."""
        os.write(self.screen, line.encode() + b"\r")

    def until(self, shown: str) -> None:
        """Reads until a text was shown."""
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while not re.search(shown, self.text):
            assert self.read(), self.text
            assert time.monotonic() < deadline, self.text

    def end(self) -> int:
        """Reads to the end. Returns the exit code."""
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while self.read() and self.process.poll() is None:
            assert time.monotonic() < deadline, self.text
        while self.read() and self._waits(0):
            pass
        return self.process.wait(TIMEOUT_SECONDS)

    def close(self) -> None:
        """Ends the command, if it is still there, and the terminal."""
        self.process.kill()
        self.process.wait()
        os.close(self.screen)
