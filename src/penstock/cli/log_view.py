"""The log of a run on standard error, for runs without a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from penstock.cli.metrics_table import format_executions, format_lag
from penstock.cli.summary import dead_letter_hint, describe_unwritten, reported_errors
from penstock.core import log
from penstock.core.error_report import format_error
from penstock.core.errors import PenstockError
from penstock.core.text import plural

if TYPE_CHECKING:
    from penstock.observe.metrics import Metrics
    from penstock.plan.model import Plan
    from penstock.runtime.outcome import Outcome

PERIOD = 10.0
"""Seconds between two lines of progress."""


class LogView:
    """A log of the start, the progress, the errors and the end of a run."""

    def __init__(self, plan: Plan, files: Sequence[Path], format: log.Format, level: str) -> None:
        self.plan, self.files, self.format, self.level = plan, files, format, level
        facts = {"pipeline": plan.name} if format == "json" else {}
        self.log = log.make(format, level, **facts)
        self._metrics: Metrics | None = None
        self._logged = 0.0

    def __enter__(self) -> Self:
        self.log.info("starting", name=self.plan.name, state=str(self.plan.state))
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
        """Logs the progress every `PERIOD` seconds. Called every second."""
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
            print(f"{self.plan.name}: {hint}", file=sys.stderr)

    def fail(self, error: PenstockError, **facts: Any) -> None:
        """Logs an error that ends a query or the run."""
        if self.format == "json":
            where = str(error.where) if error.where else None
            self.log.error(
                "error", code=error.code, error=error.message, hint=error.hint,
                detail=error.detail, where=where, **facts,
            )  # fmt: skip
        else:
            print(format_error(error), file=sys.stderr)

    def _log_metrics(self, event: str, **facts: Any) -> None:
        assert self._metrics is not None
        numbers = self._metrics.snapshot()
        if self.format == "console":
            executions = "; ".join(format_executions(numbers))
            nodes = "; ".join(f"{name} {_brief(flow)}" for name, flow in numbers["nodes"].items())
            for name in ("watermarks", "queries", "receivers"):
                numbers.pop(name)
            numbers |= {"nodes": nodes, "stalled": executions or None}
        self.log.info(event, **facts, **numbers)


def _join(names: Mapping[str, Sequence[str]]) -> dict[str, str]:
    return {kind: ", ".join(values) for kind, values in names.items()}


def _brief(flow: Mapping[str, Any]) -> str:
    parts = []
    if flow["kind"] != "transform":
        parts += [f"{flow['rows']:,} rows", f"{flow['rows_per_second']:,.0f}/s"]
    if flow["lag"]:
        parts.append(f"lag {format_lag(flow)}")
    if flow["dead_letters"]:
        parts.append(plural(flow["dead_letters"], "dead letter"))
    return ", ".join(parts)
