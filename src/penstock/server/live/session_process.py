"""One worker process with a Spark session, from the view of the server."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from penstock.core.errors import Transient
from penstock.server.workers.memory import ProcessTree, memory_error, worker_limit

POLL_SECONDS = 0.1
MEMORY_POLL_SECONDS = 0.5
START_SECONDS = 90.0
"""The time that the start of a session may add to an operation."""
CANCEL_SECONDS = 5.0
"""The time after which an operation that does not end by itself is killed."""
_BLOCK = 1 << 16

OnEvent = Callable[[str, dict[str, Any]], None]


class SessionProcess:
    """A worker process, in a process group of its own with its Java and Python processes.

    `group` is the directory of the pipelines that it may run: their modules stay in its memory.
    """

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], group: str) -> None:
        self.group, self.requests, self.ended = group, 0, False
        self._process = subprocess.Popen(
            [*command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            env=dict(environment), start_new_session=True, bufsize=0,
        )  # fmt: skip
        self._unread, self._memory_limit = b"", worker_limit()

    def perform(
        self, request: Mapping[str, Any], on_event: OnEvent, cancelled: Callable[[], bool],
        timeout: float,
    ) -> None:  # fmt: skip
        """Sends a request and passes its events on, until its end.

        An operation that is cancelled, or takes longer than `timeout` seconds and the start of a
        session, is first asked to end and then killed. Raises Transient if the process ends, and
        UserError if it needs too much memory.
        """
        self.requests += 1
        self._send(request)
        deadline, asked = time.monotonic() + timeout + START_SECONDS, False
        next_poll = 0.0
        while True:
            if time.monotonic() > next_poll:
                self._check_memory()
                next_poll = time.monotonic() + MEMORY_POLL_SECONDS
            for event, facts in self._read():
                if event == "end":
                    return
                on_event(event, facts)
            late = time.monotonic() > deadline
            if (late or cancelled()) and not asked:
                self._send({"cancel": True})
                deadline, asked = time.monotonic() + CANCEL_SECONDS, True
            elif late:
                self.kill()
                raise Transient(
                    f"the operation took longer than {timeout:.0f} s", code="timeout",
                    hint="Simplify the pipeline, or try again when the machine is less busy.",
                )  # fmt: skip

    @property
    def alive(self) -> bool:
        return not self.ended and self._process.poll() is None

    def kill(self) -> None:
        """Kills the process and its children."""
        self.ended = True
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, 9)
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with suppress(OSError):
                    stream.close()

    def _check_memory(self) -> None:
        """Kills the processes and raises UserError if they exceed the memory limit."""
        processes = ProcessTree.of(self._process.pid)
        if processes.memory > self._memory_limit:
            processes.kill()
            self.kill()
            raise memory_error(self._memory_limit)

    def _send(self, content: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None
        try:
            unsent = memoryview(json.dumps(content).encode() + b"\n")
            while unsent:
                unsent = unsent[self._process.stdin.write(unsent) or 0 :]
        except (OSError, ValueError) as error:
            raise self._end_error() from error

    def _read(self) -> list[tuple[str, dict[str, Any]]]:
        """Returns the events that arrive within a short time."""
        assert self._process.stdout is not None
        output = self._process.stdout.fileno()
        with selectors.DefaultSelector() as selector:
            selector.register(output, selectors.EVENT_READ)
            if not selector.select(POLL_SECONDS):
                return []
        chunk = os.read(output, _BLOCK)
        if not chunk:
            raise self._end_error()
        *lines, self._unread = (self._unread + chunk).split(b"\n")
        found = [json.loads(line) for line in lines]
        return [(each["event"], each["facts"]) for each in found]

    def _end_error(self) -> Transient:
        self.kill()
        return Transient(
            "the worker of the server has ended", code="worker-ended",
            hint="Reduce the rows or the memory that the pipeline needs, and try again.",
        )  # fmt: skip
