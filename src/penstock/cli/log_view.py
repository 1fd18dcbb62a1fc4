"""The log of a run on standard error, for runs without a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TextIO

from penstock.cli.metrics_table import format_executions
from penstock.cli.summary import dead_letter_hint, describe_unwritten, reported_errors
from penstock.core import log
from penstock.core.error_report import format_error
from penstock.core.errors import PenstockError
from penstock.core.run_id import given_run_id

if TYPE_CHECKING:
    from penstock.observe.metrics import Metrics
    from penstock.observe.snapshot import Snapshot
    from penstock.plan.model import Plan
    from penstock.runtime.outcome import Outcome

PERIOD = 10.0
"""Seconds between two lines of progress."""


class LogView:
    """A log of the start, the progress, the errors and the end of a run.

    `file` is by default standard error, and `run` the ID of the run of this process.
    """

    def __init__(
        self, plan: Plan, files: Sequence[Path], format: log.Format, level: str,
        file: TextIO | None = None, run: str | None = None,
    ) -> None:  # fmt: skip
        self.plan, self.files, self.format, self.level = plan, files, format, level
        self._output = file or sys.stderr
        facts = {"pipeline": plan.name, "run": run or given_run_id()} if format == "json" else {}
        self.log = log.make(format, level, file, **facts)
        self._metrics: Metrics | None = None
        self._logged = 0.0
        self._progress: dict[str, Any] = {}

    def __enter__(self) -> Self:
        self.log.info("starting", name=self.plan.name, state=str(self.plan.location))
        return self

    def __exit__(self, *raised: object) -> None:
        return None

    @property
    def dead_letters(self) -> int:
        """The dead letters of the run."""
        return self._metrics.dead_letters if self._metrics else 0

    def begin(self, plan: Plan, metrics: Metrics) -> None:
        """Logs the start of the queries."""
        self._metrics, self._logged = metrics, time.monotonic()
        names = {
            f"{kind}s": [name for name, flow in metrics.flows.items() if flow.kind == kind]
            for kind in ("source", "sink")
        }
        self.log.info("started", **(names if self.format == "json" else _join(names)))

    def tick(self) -> None:
        """Logs the progress every `PERIOD` seconds, if there is any. Called every second."""
        if self._metrics and time.monotonic() - self._logged >= PERIOD:
            self._logged = time.monotonic()
            self._log_metrics("progress")

    def note(self, text: str) -> None:
        """Logs a note to the user."""
        self.log.info(text)

    def end(self, outcome: Outcome) -> None:
        """Logs the end of the run."""
        for name, error in reported_errors(outcome).items():
            self.fail(error, query=name)
        assert self._metrics is not None
        hint = dead_letter_hint(self.plan, self.dead_letters, self.files)
        if hint and self.level not in ("debug", "info"):
            self._close_quietly(hint)
        unwritten = describe_unwritten(self.plan, outcome, self._metrics.snapshot())
        self._log_metrics(
            "ended", outcome=outcome.ending, reason=outcome.reason, hint=hint,
            unwritten="; ".join(unwritten) or None,
        )  # fmt: skip

    def _close_quietly(self, hint: str) -> None:
        """Reports the dead letters of a run whose end is below the level of the log."""
        if self.format == "json":
            self.log.error("dead letters", count=self.dead_letters, hint=hint)
        else:
            print(f"{self.plan.name}: {hint}", file=self._output)

    def fail(self, error: PenstockError, **facts: Any) -> None:
        """Logs an error that ends a query or the run."""
        if self.format == "json":
            log_error(self.log, error, **facts)
        else:
            print(format_error(error), file=self._output)

    def _log_metrics(self, event: str, **facts: Any) -> None:
        assert self._metrics is not None
        numbers = self._metrics.snapshot()
        found = _progress(numbers)
        if event == "progress" and found == self._progress:
            return
        self._progress = found
        fields = _fields(numbers) if self.format == "console" else numbers
        self.log.info(event, **facts, **fields)


def log_error(log: log.Log, error: PenstockError, **facts: Any) -> None:
    """Logs an error with its code, hint and place as facts."""
    where = str(error.where) if error.where else None
    log.error(
        "error", code=error.code, error=error.message, hint=error.hint, detail=error.detail,
        where=where, **facts,
    )  # fmt: skip


def _join(names: Mapping[str, Sequence[str]]) -> dict[str, str]:
    return {kind: ", ".join(values) for kind, values in names.items()}


def _progress(numbers: Snapshot) -> dict[str, Any]:
    """Returns the metrics that differ between two lines of progress that say something."""
    moments = ("rows_per_second", "last_batch", "batch_seconds")
    nodes = {
        name: {key: value for key, value in flow.items() if key not in moments}
        for name, flow in numbers["nodes"].items()
    }
    return {"batches": numbers["batches"], "nodes": nodes, "stalled": format_executions(numbers)}


def _fields(numbers: Snapshot) -> dict[str, Any]:
    """Returns metrics as fields, such as `orders.rows=5`, without counts of failures that are 0."""
    fields: dict[str, Any] = {"seconds": numbers["seconds"], "batches": numbers["batches"]}
    fields |= {name: numbers[name] for name in ("restarts", "dead_letters") if numbers[name]}
    if numbers["late_rows"]:
        name = "late_rows" if numbers["late_rows_exact"] else "late_rows_about"
        fields[name] = numbers["late_rows"]
    if untimed := sum(flow.get("without_event_time", 0) for flow in numbers["nodes"].values()):
        fields["rows_without_event_time"] = untimed
    for name, flow in numbers["nodes"].items():
        if flow["kind"] != "transform":
            fields[f"{name}.rows"] = flow["rows"]
            fields[f"{name}.rows_per_second"] = round(flow["rows_per_second"])
        if flow["lag"]:
            fields[f"{name}.lag_{flow['lag_unit']}"] = flow["lag"]
        if flow["dead_letters"]:
            fields[f"{name}.dead_letters"] = flow["dead_letters"]
    return {**fields, "stalled": "; ".join(format_executions(numbers)) or None}
