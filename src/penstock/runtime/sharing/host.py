"""Loop of a host: it starts runs as requested, each in a thread, until the last one has ended."""

from __future__ import annotations

import os
import select
import signal
import threading
import time
from collections.abc import Iterator
from typing import Protocol

from penstock.runtime.sharing.directory import HostDirectory, Request, RunEnd, parse_request

POLL_SECONDS = 0.2
FIRST_SECONDS = 60.0
"""The time in which the first request must come. The server may be slow, or killed."""


class Runs(Protocol):
    """The runs of a host."""

    def perform(self, request: Request) -> RunEnd:
        """Performs a run to its end, in a thread of its own."""
        ...

    def cancel(self, run: str) -> None:
        """Ends a run that has not locked its state as soon as its thread continues."""
        ...

    def stop(self) -> None:
        """Stops all runs after their batches, or at once when called again."""
        ...

    @property
    def broken(self) -> bool:
        """Whether no further run can start, because Spark has ended."""
        ...


class Host:
    """The host of a share. `pipe` has the requests."""

    def __init__(self, directory: HostDirectory, pipe: int, runs: Runs) -> None:
        self._directory, self._pipe, self._runs = directory, pipe, runs
        self._threads: dict[str, threading.Thread] = {}
        self._open: set[str] = set()
        self._rest = b""
        self._stops_requested = self._stops_made = 0
        self._first_until = time.monotonic() + FIRST_SECONDS

    def request_stop(self) -> None:
        """Requests the stop of all runs. May be called by a handler of a signal."""
        self._stops_requested += 1

    def serve(self) -> None:
        """Serves requests until the last run has ended."""
        while True:
            for request in self._requests():
                thread = threading.Thread(
                    target=self._perform, args=(request,), name=f"run-{request.run}", daemon=True
                )
                self._open.add(request.run)
                self._threads[request.run] = thread
                thread.start()
                self._first_until = 0.0
            self._cancel_runs()
            self._threads = {run: each for run, each in self._threads.items() if each.is_alive()}
            if self._runs.broken:
                self._directory.close_now()
            while self._stops_made < self._stops_requested:
                self._stops_made += 1
                self._directory.close_now()
                self._runs.stop()
                self._first_until = 0.0
            has_waited = time.monotonic() >= self._first_until
            if has_waited and not self._threads and self._directory.close(self._pipe):
                return

    def _perform(self, request: Request) -> None:
        end = RunEnd(exit_code=1)
        try:
            end = self._runs.perform(request)
        finally:
            while self._close(request.run) and not self._record(request.run, end):
                self._open.add(request.run)
                time.sleep(POLL_SECONDS)

    def _cancel_runs(self) -> None:
        """Ends the runs whose starts are cancelled. Their threads do not keep the host running."""
        for run in [run for run in self._threads if self._directory.is_cancelled(run)]:
            if self._close(run):
                self._runs.cancel(run)
                if not self._record(run, RunEnd(exit_code=1)):
                    self._open.add(run)
                    continue
                del self._threads[run]

    def _close(self, run: str) -> bool:
        """Returns whether the caller is the first to end a run: its thread, or its cancellation."""
        try:
            self._open.remove(run)
        except KeyError:
            return False
        return True

    def _record(self, run: str, end: RunEnd) -> bool:
        """Records the end of a run. Returns False if a full disk, for example, prevents this."""
        try:
            if end.needs_new_host or end.host_ended:
                self._directory.close_now()
            self._directory.end(run, end)
        except OSError:
            return not self._directory.root.exists()
        return True

    def _requests(self) -> Iterator[Request]:
        """Yields the requests of the pipe, for which it waits `POLL_SECONDS`."""
        if select.select([self._pipe], [], [], POLL_SECONDS)[0]:
            *lines, self._rest = (self._rest + os.read(self._pipe, 65536)).split(b"\n")
            yield from map(parse_request, lines)


def serve(directory: HostDirectory, runs: Runs) -> None:
    """Serves the requests of the standard input until the last run has ended.

    SIGINT and SIGTERM stop all runs.
    """
    host = Host(directory, _requests_of_input(), runs)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: host.request_stop())
    host.serve()


def _requests_of_input() -> int:
    """Returns the pipe that is the standard input, which children of the process do not inherit."""
    pipe = os.dup(0)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    return pipe
