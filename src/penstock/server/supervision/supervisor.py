"""Supervisor: compares the wishes of the store with the locks of state directories, and acts."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable

from penstock.core.errors import PenstockError
from penstock.core.log import Log
from penstock.observe.snapshot import Snapshot
from penstock.runtime.health import Health, Reason
from penstock.server.catalog import Catalog
from penstock.server.store.lease import Lease
from penstock.server.store.pipelines import Pipelines
from penstock.server.supervision.run_process import Launcher
from penstock.server.supervision.supervised import Supervised

PERIOD = 1.0
"""Seconds between two comparisons."""
REFRESH_SHARE = 200.0
"""The time between two searches of files, as a multiple of the CPU time of the last one."""
REFRESH_SECONDS = 15.0
"""The longest time between two searches of files."""


class Supervisor:
    """Starts, restarts and stops runs, in a thread of its own."""

    def __init__(
        self, pipelines: Pipelines, catalog: Catalog, launcher: Launcher, log: Log, lease: Lease
    ) -> None:
        self._lease = lease
        self._pipelines, self._catalog = pipelines, catalog
        self._launcher, self._log = launcher, log
        self._supervised: dict[str, Supervised] = {}
        self._closed, self._due = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._loop, name="supervisor", daemon=True)
        self._next_refresh = 0.0
        self._leases_taken = lease.times_taken
        self._errors: dict[str, str] = {}
        self.ready = False
        """Whether all pipelines have been compared once."""

    def start(self) -> None:
        """Starts the loop, which adopts the runs of an earlier server."""
        self._thread.start()

    def close(self) -> None:
        """Ends the loop. Runs continue."""
        self._closed.set()
        self._due.set()
        self._thread.join()

    def wake(self) -> None:
        """Compares at once, after a new wish."""
        self._due.set()

    def find(self, id: str) -> Supervised | None:
        """Returns a pipeline as of the last comparison; None before its first one."""
        return self._supervised.get(id)

    def snapshots(self) -> dict[str, Snapshot]:
        """Returns the metrics of the last run of each pipeline, as of the last comparison."""
        statuses = {id: each.status for id, each in self._supervised.copy().items()}
        return {
            id: status.numbers
            for id, status in statuses.items()
            if status is not None and status.numbers is not None
        }

    def compare(self) -> None:
        """Compares all pipelines once, and acts where a wish and its run differ.

        Raises StateError without the lease of the store.
        """
        self._lease.check()
        if self._leases_taken != self._lease.times_taken:
            self._supervised = {}  # another server may have started runs meanwhile
            self._leases_taken = self._lease.times_taken
        self._launcher.hosts.remove_ended()
        known = {pipeline.id: pipeline for pipeline in self._pipelines.all()}
        for id in self._supervised.keys() - known.keys():
            del self._supervised[id]
        for id in known.keys() - self._supervised.keys():
            self._supervised[id] = self._adopt(id)
        starting = sum(each.starting for each in self._supervised.values())
        limit = max((os.cpu_count() or 1) // 2, 1)
        for id, pipeline in known.items():
            supervised = self._supervised[id]
            entry = self._catalog.entry(id)
            try:
                if supervised.compare(pipeline, entry) and starting < limit and entry is not None:
                    supervised.start(pipeline, entry)
                    starting += 1
            except PenstockError as error:
                reason = Reason(error.code, error.message, error.hint)
                supervised.health = Health("unknown", None, reason)
            except OSError as error:
                reason = Reason("unusable-state", f"the state cannot be used: {error.strerror}")
                supervised.health = Health("unknown", None, reason)
            except Exception as error:  # of this pipeline only
                reason = Reason("bug", f"{type(error).__name__}: {error}")
                supervised.health = Health("unknown", None, reason)
                self._log_once(f"compare {pipeline.file}", error)
            else:
                self._errors.pop(f"compare {pipeline.file}", None)
        self.ready = True

    def _adopt(self, id: str) -> Supervised:
        start = self._pipelines.open_start(id)
        return Supervised(self._pipelines, self._launcher, self._log, start)

    def _loop(self) -> None:
        while not self._closed.is_set():
            self._due.clear()
            if time.monotonic() >= self._next_refresh:
                began = time.thread_time()
                self._attempt(self._catalog.refresh)
                pause = min(REFRESH_SHARE * (time.thread_time() - began), REFRESH_SECONDS)
                self._next_refresh = time.monotonic() + pause
            self._attempt(self.compare)
            self._due.wait(PERIOD)

    def _attempt(self, step: Callable[[], None]) -> None:
        """Performs a step. Logs its error, unless it is the same as before."""
        name = step.__name__
        try:
            step()
            self._errors.pop(name, None)
        except Exception as error:
            self._log_once(name, error)

    def _log_once(self, step: str, error: Exception) -> None:
        text = f"{type(error).__name__}: {error}"
        if self._errors.get(step) != text:
            self._errors[step] = text
            self._log.error("supervision failed", step=step, error=text)
