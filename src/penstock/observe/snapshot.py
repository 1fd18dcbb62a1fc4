"""Metrics of a run as JSON: the content of `status.json`, of the log and of `penstock status`.

An earlier version may have written a snapshot without the keys that are not required.
"""

from __future__ import annotations

from typing import NotRequired

from typing_extensions import TypedDict  # that of `typing` has no runtime types before Python 3.12


class ExecutionSnapshot(TypedDict):
    """The execution of a receiver. Times are in seconds since 1970."""

    state: str
    since: float
    error: str | None
    code: str | None
    sink: NotRequired[str | None]
    failures: int
    next_attempt: float | None
    batch: int | None
    batch_since: NotRequired[float | None]


class StateSnapshot(TypedDict, total=False):
    """The size of the state of a query; empty without a state."""

    state_rows: int
    state_bytes: int


class LateSnapshot(TypedDict, total=False):
    """The late rows of a query; empty if it has none."""

    late_rows: int
    late_rows_exact: bool
    late_rows_by_node: dict[str, int]


class BatchesSnapshot(TypedDict, total=False):
    """The batches of a query in this run; empty before the first one.

    `batch_durations` are the numbers of batches by the bounds `observe.progress.DURATIONS`.
    `phase_seconds` are the sums by phase. `watermark` is a Unix time.
    """

    batches: int
    batch_seconds: float
    batch_durations: list[int]
    phase_seconds: dict[str, float]
    watermark: float | None


class QuerySnapshot(ExecutionSnapshot, StateSnapshot, LateSnapshot, BatchesSnapshot):
    """The execution of a query, its batches, the size of its state, and its late rows."""

    open_windows: NotRequired[int | None]


class NodeSnapshot(TypedDict):
    """The rows of a node. `lag` is None if it is unknown; `last_batch` is in seconds since 1970.

    `labels` are those of the pipeline file.
    """

    kind: str
    type: str
    rows: int
    bytes: int | None
    rows_per_second: float
    lag: int | None
    lag_unit: str
    dead_letters: int
    lost: NotRequired[int]
    retained: NotRequired[int | None]
    retained_seconds: NotRequired[int | None]
    without_event_time: NotRequired[int]
    late_rows: NotRequired[int]
    last_batch: NotRequired[float | None]
    batch_seconds: NotRequired[float | None]
    labels: NotRequired[dict[str, str]]


class SideOutputSnapshot(TypedDict):
    """The batches of a side output. `missed` are those that were not passed, or failed."""

    batches: int
    rows: int
    missed: int
    failures: int
    error: str | None


class Snapshot(TypedDict):
    """The metrics of a run.

    `run` is the ID of the run, None for one that a user has started, and `version` that of
    Penstock. `began` is the Unix time of the start, and `seconds` the time from the start to the
    snapshot.
    """

    run: str | None
    version: str
    began: NotRequired[float]
    seconds: float
    started: NotRequired[bool]
    stopping: NotRequired[bool]
    batches: int
    restarts: int
    dead_letters: int
    watermarks: NotRequired[dict[str, str]]
    late_rows: NotRequired[int]
    late_rows_exact: NotRequired[bool]
    queries: dict[str, QuerySnapshot]
    receivers: NotRequired[dict[str, ExecutionSnapshot]]
    side_outputs: NotRequired[dict[str, SideOutputSnapshot]]
    nodes: dict[str, NodeSnapshot]
