"""The receivers of a run: one process for each receiving source, looked after and ended."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from penstock.core.errors import PenstockError, Transient, decode
from penstock.core.location import Location
from penstock.core.log import Log
from penstock.plan.model import Plan
from penstock.runtime.receive import READY
from penstock.runtime.restart import Tries
from penstock.runtime.state import writing
from penstock.sdk import ReceivingSource

LOG = "receiver.log"
ENDS_IN = 15.0
"""Seconds in which a receiver tells its senders, and makes durable what it has."""
LAST_WORDS = 5.0


class Receivers:
    """Those of all receiving sources of a plan. A source that several queries read has one."""

    def __init__(self, plan: Plan, log: Log) -> None:
        policy = plan.spec.runtime.restart
        self._receivers = {
            node.name: Receiver(node.source, log, Tries(policy, log), node.where)
            for node in plan.of("source")
            if isinstance(node.source, ReceivingSource)
        }

    def look(self) -> Iterator[tuple[str, PenstockError]]:
        """Starts those that do not run and are due. Yields the sources that have failed for good,

        once each.
        """
        for name, receiver in self._receivers.items():
            error = receiver.look()
            if error is not None:
                yield name, error

    def lost(self) -> dict[str, int]:
        """How many messages of each source could not be taken."""
        return {name: each.source.lost() for name, each in self._receivers.items()}

    def close(self) -> None:
        """Ends all of them, and waits for that."""
        for receiver in self._receivers.values():
            receiver.end()
        until = time.monotonic() + ENDS_IN
        for receiver in self._receivers.values():
            receiver.wait(until)


class Receiver:
    """One of them, over its restarts; `python` is the program that runs it."""

    def __init__(
        self, source: ReceivingSource[Any], log: Log, tries: Tries, where: Location | None = None,
        python: str | Path = sys.executable,
    ) -> None:  # fmt: skip
        self.source = source
        self._python = python
        self.ready = threading.Event()
        """Set while what is sent is received."""
        self._name = source.context.node
        self._log, self._tries, self._where = log, tries, where
        self._process: subprocess.Popen[bytes] | None = None
        self._told: list[str] = []
        self._listening: threading.Thread | None = None
        self._due: float | None = 0.0

    def look(self) -> PenstockError | None:
        """Starts it if it is due. Returns the error if it has just failed for good."""
        if self._process is not None and self._process.poll() is not None:
            error = self._error(self._process)
            self._process = None
            self.ready.clear()
            progress = self.source.latest(self.source.initial())
            self._due = self._tries.failed(error, progress, source=self._name)
            if self._due is None:
                return error
        if self._process is None and self._due is not None and time.monotonic() >= self._due:
            self._due = None
            self._start()
        return None

    def kill(self) -> None:
        """Ends it without a word, as a machine that loses power does."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def end(self) -> None:
        """Asks it to end."""
        if self._process is not None and self._process.stdin is not None:
            with suppress(BrokenPipeError):
                self._process.stdin.close()

    def wait(self, until: float) -> None:
        """Until it has ended; it is killed if it has not by then."""
        if self._process is None:
            return
        try:
            self._process.wait(max(0.0, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None

    def _start(self) -> None:
        directory = self.source.directory
        with writing(directory):
            directory.mkdir(parents=True, exist_ok=True)
            log = (directory / LOG).open("wb")
        with log:
            process = subprocess.Popen(
                [self._python, "-m", "penstock.runtime.receive"],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
                start_new_session=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            )  # fmt: skip
        self._told = []
        assert process.stdin is not None and process.stdout is not None
        self._listening = threading.Thread(target=self._listen, args=(process.stdout,), daemon=True)
        self._listening.start()
        self._process = process
        with suppress(BrokenPipeError):
            process.stdin.write(pickle.dumps(self.source))
            process.stdin.flush()

    def _listen(self, lines: IO[bytes]) -> None:
        with lines:
            for line in lines:
                if line.strip() == READY.encode():
                    self.ready.set()
                    self._log.info("receiving", source=self._name)
                else:
                    self._told.append(line.decode())

    def _error(self, process: subprocess.Popen[bytes]) -> PenstockError:
        """What ended a receiver that was not asked to end."""
        if self._listening is not None:
            self._listening.join(LAST_WORDS)
        error = decode("".join(self._told)) or Transient(
            f'the receiver of source "{self._name}" ended ({_how(process.returncode)})',
            code="receiver-ended",
            hint=f"its last words are in {self.source.directory / LOG}",
        )
        error.where = error.where or self._where
        return error


def _how(code: int) -> str:
    return signal.Signals(-code).name if code < 0 else f"exit code {code}"
