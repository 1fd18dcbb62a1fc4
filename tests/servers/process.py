"""A process of the tests' own, which ends with them however they end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

SECONDS_TO_STOP = 60

# Linux ends a process with the thread that started it: so with one that lives as long as the tests.
_STARTER = ThreadPoolExecutor(1, "starts-servers")
_TIE_AND_RUN = """
import ctypes, os, sys
if sys.platform == "linux":
    ctypes.CDLL(None).prctl(1, 9)
if os.getppid() == int(sys.argv[1]):
    os.execvp(sys.argv[2], sys.argv[2:])
"""


class Process:
    """Runs `command` in a session of its own, with what it prints at the end of `log`."""

    def __init__(
        self, command: Sequence[str], log: Path, environment: Mapping[str, str] | None = None
    ) -> None:
        tied = [sys.executable, "-ISc", _TIE_AND_RUN, str(os.getpid()), *command]
        with log.open("ab") as output:
            self._process = _STARTER.submit(
                subprocess.Popen, tied, cwd=log.parent, stdin=subprocess.DEVNULL, stdout=output,
                stderr=output, start_new_session=True, env={**os.environ, **(environment or {})},
            ).result()  # fmt: skip
        self.pid = self._process.pid

    @property
    def running(self) -> bool:
        """Whether it has not ended; a paused one is running."""
        return self._process.poll() is None

    def wait(self, seconds: float) -> int:
        """Returns its exit code. Raises subprocess.TimeoutExpired if it does not end in time."""
        return self._process.wait(seconds)

    def stop(self) -> None:
        """Asks it to end, even when paused; by force if it takes too long."""
        self._process.terminate()
        self.resume()
        try:
            self._process.wait(SECONDS_TO_STOP)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """Ends it at once, as kill -9 does, with all that it started."""
        self._send(signal.SIGKILL)
        self._process.wait()

    def pause(self) -> None:
        """Holds it where it is: its connections stay open, nothing is answered any more."""
        self._send(signal.SIGSTOP)
        os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def resume(self) -> None:
        """Lets it go on."""
        self._send(signal.SIGCONT)

    def _send(self, number: signal.Signals) -> None:
        if self.running:
            with suppress(ProcessLookupError):
                os.killpg(self.pid, number)
