"""Recorder of the history: a sample of all pipelines every ten seconds, in a thread of its own."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from math import inf
from pathlib import Path

from penstock.core.errors import StateError
from penstock.core.files.private_files import create_directory
from penstock.core.log import Log
from penstock.observe.snapshot import Snapshot
from penstock.server.history.levels import HOUR, LEVELS, bucket
from penstock.server.history.sampling import Baseline, Series, sample
from penstock.server.history.store import FILE, HistoryStore, Row, Wanted

PERIOD = LEVELS[0].step
CACHE_SECONDS = 15.0
THROUGHPUT = Series("rows_per_second")

Throughput = dict[str, list[tuple[int, float]]]
"""The rows per second of pipelines by minute, as pairs of a time and a rate."""


class History:
    """The history of all pipelines of a server: recorded, and read by routes.

    `snapshots` returns the last metrics of each pipeline, and `known` the IDs of all pipelines. An
    error of the store is logged once, and affects nothing else.
    """

    def __init__(
        self, data: Path, snapshots: Callable[[], Mapping[str, Snapshot]],
        known: Callable[[], Iterable[str]], log: Log,
    ) -> None:  # fmt: skip
        self._snapshots, self._known, self._log = snapshots, known, log
        self._store = open_store(data, log)
        self._baselines = self._store.baselines()
        self._cleaned = 0
        self._error: str | None = None
        self._throughput: tuple[float, Throughput] = (-inf, {})
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="history", daemon=True)

    def start(self) -> None:
        """Starts the thread that takes samples."""
        self._thread.start()

    def close(self) -> None:
        """Takes the last sample, and ends the thread."""
        self._closed.set()
        self._thread.join()
        self._attempt()
        self._store.close()

    def read(self, id: str, start: float, end: float, resolution: int, wanted: Wanted) -> list[Row]:
        """Returns the chosen series of a pipeline. Raises StateError."""
        with _reading():
            return self._store.read(id, start, end, resolution, time.time(), wanted)

    def throughput(self) -> Throughput:
        """Returns the rows per second that each pipeline has read in the last hour, by minute.

        Raises StateError.
        """
        read, found = self._throughput
        if time.monotonic() - read > CACHE_SECONDS:
            with _reading():
                found = self._store.minutes(THROUGHPUT, time.time() - HOUR)
            self._throughput = time.monotonic(), found
        return found

    def record(self, now: float) -> None:
        """Takes a sample of all pipelines whose metrics have changed. Raises sqlite3.Error."""
        samples: dict[str, dict[Series, float]] = {}
        baselines: dict[str, Baseline] = {}
        for id, snapshot in self._snapshots().items():
            try:
                earlier, current = self._baselines.get(id), Baseline.of(snapshot)
                if current is None or (earlier is not None and current.time <= earlier.time):
                    continue
                samples[id] = sample(snapshot, current, earlier)
                baselines[id] = current
            except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
                continue  # a run of another version may write other metrics
        self._store.add(now, samples, baselines)
        self._baselines |= baselines
        if self._cleaned != bucket(now, HOUR):
            known = set(self._known())
            self._store.keep_only(known)
            self._baselines = {id: each for id, each in self._baselines.items() if id in known}
            self._cleaned = bucket(now, HOUR)

    def _loop(self) -> None:
        while not self._closed.wait(PERIOD - time.time() % PERIOD):
            self._attempt()

    def _attempt(self) -> None:
        """Takes a sample. Logs its error, unless it is the same as before."""
        try:
            self.record(time.time())
            self._error = None
        except Exception as error:
            text = f"{type(error).__name__}: {error}"
            if text != self._error:
                self._error = text
                self._log.error("history not written", error=text)


@contextmanager
def _reading() -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise StateError(
            "the history of metrics cannot be read", code="store-failed", detail=str(error),
            hint="Free space on the disk, or restart the server.",
        ) from error  # fmt: skip


def open_store(data: Path, log: Log) -> HistoryStore:
    """Opens the store of a data directory. A damaged file is kept under another name."""
    create_directory(data)
    path = data / FILE
    try:
        return HistoryStore(path)
    except sqlite3.DatabaseError as error:
        if isinstance(error, sqlite3.OperationalError):
            raise
        damaged = path.with_name(f"{FILE}.damaged")
        path.replace(damaged)
        for suffix in ("-wal", "-shm"):
            path.with_name(FILE + suffix).unlink(missing_ok=True)
        log.warning("history damaged, a new one begins", kept=str(damaged), error=str(error))
        return HistoryStore(path)
