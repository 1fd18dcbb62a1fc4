"""Receivers of a run: one supervised process for the receiving sources that share one."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from penstock.core.error_codec import decode
from penstock.core.errors import PenstockError, Transient
from penstock.core.files.durable import create_directory_durably
from penstock.core.files.private_files import open_private
from penstock.core.location import Location
from penstock.core.log import Log
from penstock.observe.execution import Execution
from penstock.observe.metrics import Metrics
from penstock.plan.model import Plan
from penstock.plan.node import Node
from penstock.runtime.receiving.receiver_process import CAUGHT_UP, LOG, READY
from penstock.runtime.retry import RetryState
from penstock.runtime.state.files import writing
from penstock.sdk import ReceivingSource
from penstock.sdk.phases import PhasedSource, receiving_source
from penstock.sdk.retained_log import RetainedLog
from penstock.spec.runtime_models import Restart

SHUTDOWN_SECONDS = 15.0
"""Time for a receiver to acknowledge to its senders and to flush its journal."""
PYTHON: str | Path = sys.executable
"""The interpreter of receivers, or a program that forks them."""
OUTPUT_SECONDS = 5.0
"""Time to read the remaining output of an ended receiver."""


class Receivers:
    """Receivers of a plan, shared by the queries of a source.

    A source has a receiver of its own, or one with other sources (`shared_receiver`).
    """

    def __init__(self, plan: Plan, policy: Restart, metrics: Metrics, log: Log) -> None:
        self._receivers = {}
        self._phases = [
            phase for node in plan.of("source")
            if isinstance(node.source, PhasedSource)
            and (phase := receiving_source(node.source)) is not None
        ]  # fmt: skip
        for first, *others in _groups(plan):
            execution = metrics.receivers.setdefault(first.name, Execution())
            metrics.receivers.update(dict.fromkeys((node.name for node in others), execution))
            retries = RetryState(policy, log, execution=execution)
            self._receivers[first.name] = Receiver(
                _source(first), log, retries, first.where, execution=execution,
                others=[_source(node) for node in others],
            )  # fmt: skip

    def poll(self) -> Iterator[tuple[str, PenstockError]]:
        """Starts the due receivers. Yields the error of each permanent failure, once.

        It has the name of the first source of a receiver.
        """
        for name, receiver in self._receivers.items():
            error = receiver.poll()
            if error is not None:
                yield name, error

    @property
    def phases_have_begun(self) -> bool:
        """Whether each last phase of a source is received: the phases before it may be read."""
        return not self.awaited

    @property
    def awaited(self) -> list[str]:
        """The sources whose last phase is not received yet."""
        return [phase.context.node for phase in self._phases if not phase.has_begun()]

    @property
    def caught_up(self) -> bool:
        """Whether the journal of each source that catches up has the backlog of its system."""
        return all(
            receiver.caught_up.is_set() or not receiver.source.catches_up
            for receiver in self._receivers.values()
        )

    @property
    def is_half_full(self) -> bool:
        """Whether a journal must be read so that its receiver can continue."""
        return any(source.is_half_full() for source in self._sources)

    def lost(self) -> dict[str, int]:
        """Returns the number of lost messages of each source."""
        return {source.context.node: source.lost() for source in self._sources}

    def retained(self) -> dict[str, RetainedLog]:
        """Returns the logs that systems retain for sources, where they are measured."""
        logs = {source.context.node: source.retained() for source in self._sources}
        return {name: log for name, log in logs.items() if log is not None}

    @property
    def _sources(self) -> Iterator[ReceivingSource[Any]]:
        for receiver in self._receivers.values():
            yield from receiver.sources

    def close(self) -> None:
        """Stops all receivers and waits for their ends."""
        for receiver in self._receivers.values():
            receiver.request_stop()
        deadline = time.monotonic() + SHUTDOWN_SECONDS
        for receiver in self._receivers.values():
            receiver.wait(deadline)


def _groups(plan: Plan) -> Iterable[list[Node]]:
    """Returns the receiving sources that share a receiver."""
    groups: dict[tuple[str, str], list[Node]] = {}
    for node in plan.of("source"):
        source = receiving_source(node.source)
        if source is not None:
            shared = source.shared_receiver()
            key = ("source", node.name) if shared is None else ("shared", shared)
            groups.setdefault(key, []).append(node)
    return groups.values()


def _source(node: Node) -> ReceivingSource[Any]:
    source = receiving_source(node.source)
    assert source is not None
    return source


class Receiver:
    """The receiver process of a source, over its restarts.

    `python` is its interpreter, by default `PYTHON`. It also receives for `others`, which share the
    receiver of the source.
    """

    def __init__(
        self,
        source: ReceivingSource[Any],
        log: Log,
        retries: RetryState,
        where: Location | None = None,
        python: str | Path | None = None,
        execution: Execution | None = None,
        others: Sequence[ReceivingSource[Any]] = (),
    ) -> None:
        self.source, self.sources = source, [source, *others]
        self._execution = execution or Execution()
        self._python = python or PYTHON
        self.ready = threading.Event()
        """Set while the process receives messages."""
        self.caught_up = threading.Event()
        """Set when the journal has the backlog of the system."""
        self._name = ", ".join(each.context.node for each in self.sources)
        self._log, self._retries, self._where = log, retries, where
        self._process: subprocess.Popen[bytes] | None = None
        self._output: list[str] = []
        self._reader: threading.Thread | None = None
        self._start_at: float | None = 0.0

    def poll(self) -> PenstockError | None:
        """Starts the process if it is due. Returns the error of a permanent failure, once."""
        if self._process is not None and self._process.poll() is not None:
            error = self._error(self._process)
            self._process = None
            self.ready.clear()
            progress = [each.latest_offset(each.initial_offset()) for each in self.sources]
            self._start_at = self._retries.next_attempt(error, progress, source=self._name)
            if self._start_at is None:
                return error
        if (
            self._process is None
            and self._start_at is not None
            and time.monotonic() >= self._start_at
        ):
            self._start_at = None
            self._start()
        return None

    def kill(self) -> None:
        """Kills the process. `poll` may run in another thread."""
        process = self._process
        if process is not None:
            process.kill()
            process.wait()

    def request_stop(self) -> None:
        """Requests a stop by closing the standard input of the process."""
        if self._process is not None and self._process.stdin is not None:
            with suppress(BrokenPipeError):
                self._process.stdin.close()

    def wait(self, deadline: float) -> None:
        """Waits for the end of the process, and kills it at the monotonic time `deadline`."""
        if self._process is None:
            return
        try:
            self._process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None

    def _start(self) -> None:
        directory = self.source.directory
        with writing(directory):
            create_directory_durably(directory)
            (directory / LOG).unlink(missing_ok=True)
            log = open_private(directory / LOG, "ab")
        with log:
            process = subprocess.Popen(
                [self._python, "-m", "penstock.runtime.receiving.receiver_process"],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
                start_new_session=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            )  # fmt: skip
        self._output = []
        assert process.stdin is not None and process.stdout is not None
        self._reader = threading.Thread(
            target=self._read_output, args=(process.stdout,), daemon=True
        )
        self._reader.start()
        self._process = process
        with suppress(BrokenPipeError):
            process.stdin.write(pickle.dumps(self.sources))
            process.stdin.flush()

    def _read_output(self, lines: IO[bytes]) -> None:
        with lines:
            for line in lines:
                if line.strip() == READY.encode():
                    self.ready.set()
                    self._execution.run()
                    self._log.info("receiving", source=self._name)
                elif line.strip() == CAUGHT_UP.encode():
                    self.caught_up.set()
                    self._log.info("caught up", source=self._name)
                else:
                    self._output.append(line.decode())

    def _error(self, process: subprocess.Popen[bytes]) -> PenstockError:
        """Returns the error of a process that ended by itself."""
        if self._reader is not None:
            self._reader.join(OUTPUT_SECONDS)
        name, code = self.source.context.node, _exit_text(process.returncode)
        error = decode("".join(self._output)) or Transient(
            f'the receiver of source "{name}" ended ({code})',
            code="receiver-ended",
            hint=f"See the log of the receiver in {self.source.directory / LOG}.",
        )
        error.where = error.where or self._where
        return error


def _exit_text(code: int) -> str:
    return signal.Signals(-code).name if code < 0 else f"exit code {code}"
