"""Metrics of a run by source and sink, for the live view and `penstock status`."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from penstock.core.version import __version__
from penstock.observe.batches import BatchReports
from penstock.observe.execution import Execution
from penstock.observe.late import LateCount
from penstock.observe.progress import QueryProgress
from penstock.observe.snapshot import BatchesSnapshot, LateSnapshot, Snapshot, StateSnapshot
from penstock.sdk.retained_log import RetainedLog

WINDOW = 10.0
"""Seconds over which a rate is computed."""


@dataclass
class Flow:
    """Metrics of a source or sink."""

    kind: str
    type: str
    rows: int = 0
    bytes: int | None = None
    """The size of the written payloads; None if the sink writes no payloads."""
    dead_letters: int = 0
    untimed: int = 0
    """The rows without an event time, which belong to no window."""
    lost: int = 0
    """The messages that a receiving source has lost."""
    retained: RetainedLog = field(default_factory=RetainedLog)
    """The log that a system retains for a source."""
    unread: dict[str, int] = field(default_factory=dict)
    """The records that a query has not read, at the end of its last batch or at a later count."""
    pending: int = 0
    """The records in batches that not all sinks have written."""
    lag_unit: str = "records"
    last_batch: float | None = None
    """The time of the last batch with rows."""
    batch_seconds: float | None = None
    _marks: deque[tuple[float, int]] = field(default_factory=lambda: deque(maxlen=1000))

    def add(self, rows: int) -> None:
        """Adds the rows of a batch."""
        if rows:
            self.rows += rows
            self.last_batch = time.time()
            self._marks.append((self.last_batch, rows))

    def measure(self, query: str, unread: int, unit: str) -> None:
        """Sets the records that a query has not read."""
        self.unread = {**self.unread, query: unread}
        self.lag_unit = unit

    @property
    def lag(self) -> int | None:
        """The records that not all sinks have written; None if unknown."""
        if not self.unread:
            return self.pending or None
        return max(self.unread.values()) + self.pending

    def rate(self, started: float) -> float:
        """Returns rows per second over the last `WINDOW` seconds."""
        since = max(time.time() - WINDOW, started)
        rows = sum(count for time_, count in self._marks if time_ >= since)
        return rows / max(time.time() - since, 0.001)


@dataclass
class Observed:
    """Metrics of a side output: handled batches and rows, missed batches, and failures."""

    batches: int = 0
    rows: int = 0
    missed: int = 0
    failures: int = 0
    error: str | None = None
    """The reason of the last failure."""


class StateSize(NamedTuple):
    """The rows and the bytes of a state."""

    rows: int
    bytes: int


class Metrics:
    """Metrics of a run, written by the threads of queries and read by views.

    `run` is the ID of the run, and `labels` are those of nodes in the pipeline file.
    """

    def __init__(
        self, run: str = "", labels: Mapping[str, Mapping[str, str]] | None = None
    ) -> None:
        self.run = run
        self.labels = labels or {}
        self.began = time.time()
        self.flows: dict[str, Flow] = {}
        self.queries: dict[str, Execution] = {}
        self.receivers: dict[str, Execution] = {}
        self.batches = 0
        self.batch_reports = BatchReports()
        self.restarts = 0
        self.watermarks: dict[str, str] = {}
        self.progress: dict[str, QueryProgress] = {}
        self.updating: dict[str, StateSize] = {}
        """The state of the updating transforms of each query."""
        self.late: dict[str, LateCount] = {}
        """The late rows of each query with windows, joins or deduplication."""
        self.side_outputs: dict[str, Observed] = {}
        self.all_started = False
        """Whether all queries have been started."""
        self.stopping = False
        """Whether a stop of the run is requested."""
        self._lock = threading.Lock()

    def flow(self, name: str, kind: str, type_: str, lag_unit: str = "records") -> Flow:
        """Returns the flow of a node, created on first use."""
        with self._lock:
            return self.flows.setdefault(name, Flow(kind, type_, lag_unit=lag_unit))

    def resume(self, earlier: Mapping[str, Any], queries: Iterable[str]) -> None:
        """Sets the open windows and watermarks of queries to those of the run before.

        They hold until the first batch of a query, as its state does.
        """
        for name in queries:
            windows = earlier.get("queries", {}).get(name, {}).get("open_windows", 0)
            watermark = earlier.get("watermarks", {}).get(name)
            if windows:
                self.progress[name] = QueryProgress(open_windows=windows)
            if watermark:
                self.watermarks[name] = watermark

    @property
    def failures(self) -> dict[str, str]:
        """The error codes of the queries and receivers that have failed permanently."""
        executions = {**self.queries, **self.receivers}
        return {
            name: execution.code or ""
            for name, execution in executions.items()
            if execution.state == "failed"
        }

    @property
    def started(self) -> bool:
        """Whether all queries have been started, and all sources have subscribed."""
        executions = [*self.queries.values(), *self.receivers.values()]
        return self.all_started and all(execution.subscribed for execution in executions)

    @property
    def dead_letters(self) -> int:
        return sum(flow.dead_letters for flow in self.flows.values())

    def state(self, query: str) -> StateSize | None:
        """Returns the state of a query after its last batch; None for a query without state."""
        progress, updating = self.progress.get(query), self.updating.get(query)
        if progress is None or progress.state_rows is None or progress.state_bytes is None:
            return updating
        rows, size = updating or (0, 0)
        return StateSize(rows + progress.state_rows, size + progress.state_bytes)

    def snapshot(self) -> Snapshot:
        """Returns all metrics as JSON."""
        with self._lock:
            flows = dict(self.flows)
        late_rows = dict(self.late)
        return {
            "run": self.run,
            "version": __version__,
            "began": self.began,
            "seconds": round(time.time() - self.began, 1),
            "started": self.started,
            "stopping": self.stopping,
            "batches": self.batches,
            "restarts": self.restarts,
            "dead_letters": self.dead_letters,
            "watermarks": dict(self.watermarks),
            "late_rows": sum(late.total for late in late_rows.values()),
            "late_rows_exact": all(late.exact for late in late_rows.values()),
            "queries": {
                name: {
                    **query.snapshot(),
                    **_batches_snapshot(self.progress.get(name)),
                    **_state_snapshot(self.state(name)),
                    "open_windows": self.progress.get(name, QueryProgress()).open_windows,
                    **_late_snapshot(late_rows.get(name)),
                }
                for name, query in self.queries.items()
            },
            "side_outputs": {
                name: {
                    "batches": observed.batches,
                    "rows": observed.rows,
                    "missed": observed.missed,
                    "failures": observed.failures,
                    "error": observed.error,
                }
                for name, observed in list(self.side_outputs.items())
            },
            "receivers": {name: process.snapshot() for name, process in self.receivers.items()},
            "nodes": {
                name: {
                    "kind": flow.kind,
                    "type": flow.type,
                    "rows": flow.rows,
                    "bytes": flow.bytes,
                    "rows_per_second": round(flow.rate(self.began), 1),
                    "lag": flow.lag,
                    "lag_unit": flow.lag_unit,
                    "dead_letters": flow.dead_letters,
                    "lost": flow.lost,
                    "retained": flow.retained.size,
                    "retained_seconds": flow.retained.seconds,
                    "without_event_time": flow.untimed,
                    "late_rows": sum(late.nodes.get(name, 0) for late in late_rows.values()),
                    "last_batch": flow.last_batch,
                    "batch_seconds": flow.batch_seconds,
                    "labels": dict(self.labels.get(name, {})),
                }
                for name, flow in flows.items()
            },
        }


def _batches_snapshot(progress: QueryProgress | None) -> BatchesSnapshot:
    """Returns the batches of a query as JSON; empty before its first one."""
    if progress is None or not progress.batches:
        return {}
    return {
        "batches": progress.batches,
        "batch_seconds": round(progress.seconds, 3),
        "batch_durations": list(progress.durations),
        "phase_seconds": dict(progress.phases),
        "watermark": progress.watermark,
    }


def _state_snapshot(state: StateSize | None) -> StateSnapshot:
    """Returns the state of a query as JSON; empty for a query without state."""
    return {} if state is None else {"state_rows": state.rows, "state_bytes": state.bytes}


def _late_snapshot(late: LateCount | None) -> LateSnapshot:
    """Returns the late rows of a query as JSON; empty for a query that has none."""
    if late is None:
        return {}
    return {
        "late_rows": late.total,
        "late_rows_exact": late.exact,
        "late_rows_by_node": dict(late.nodes),
    }
