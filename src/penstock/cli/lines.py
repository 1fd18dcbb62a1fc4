"""A run as log lines on standard error, for where nobody watches."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from penstock.cli.ending import dead_letter_hint, ending
from penstock.cli.flows import lag
from penstock.core import log
from penstock.core.errors import PenstockError, report

if TYPE_CHECKING:
    from penstock.observe.metrics import Metrics
    from penstock.plan.model import Plan
    from penstock.runtime.supervise import Outcome

PERIOD = 10.0
"""Seconds between two lines of progress."""


class Lines:
    """Log lines: started, progress now and then, what goes wrong, ended."""

    def __init__(self, plan: Plan, files: Sequence[Path], format: log.Format, level: str) -> None:
        self.plan, self.files, self.format = plan, files, format
        facts = {"pipeline": plan.name} if format == "json" else {}
        self.log = log.make(format, level, **facts)
        self._metrics: Metrics | None = None
        self._told = 0.0

    def __enter__(self) -> Self:
        self.log.info("starting", name=self.plan.name, state=str(self.plan.state))
        return self

    def __exit__(self, *raised: object) -> None:
        return None

    def begin(self, plan: Plan, metrics: Metrics) -> None:
        """The queries start."""
        self._metrics, self._told = metrics, time.monotonic()
        self.log.info("started", queries=len(plan.queries), nodes=", ".join(metrics.flows))

    def tick(self) -> None:
        """Called every second."""
        if self._metrics and time.monotonic() - self._told >= PERIOD:
            self._told = time.monotonic()
            self._numbers("progress")

    def note(self, text: str) -> None:
        """Something that the user should know."""
        self.log.info(text)

    def end(self, outcome: Outcome) -> None:
        """The run is over."""
        for name, error in outcome.errors.items():
            self.fail(error, query=name)
        assert self._metrics is not None
        hint = dead_letter_hint(self.plan, self._metrics.dead_letters, self.files)
        self._numbers("ended", how=ending(outcome), hint=hint)

    def fail(self, error: PenstockError, **facts: Any) -> None:
        """An error that ends a query or the run."""
        if self.format == "json":
            where = str(error.where) if error.where else None
            self.log.error(
                "error", code=error.code, error=error.message, hint=error.hint,
                detail=error.detail, where=where, **facts,
            )  # fmt: skip
        else:
            print(report(error), file=sys.stderr)

    def _numbers(self, event: str, **facts: Any) -> None:
        assert self._metrics is not None
        numbers = self._metrics.snapshot()
        nodes = numbers.pop("nodes")
        if self.format == "console":
            numbers.pop("watermarks")
            nodes = "; ".join(f"{name} {_brief(flow)}" for name, flow in nodes.items())
        self.log.info(event, **facts, **numbers, nodes=nodes)


def _brief(flow: Mapping[str, Any]) -> str:
    told = []
    if flow["kind"] != "transform":
        told += [f"{flow['rows']:,} rows", f"{flow['rows_per_second']:,.0f}/s"]
    if flow["lag"]:
        told.append(f"lag {lag(flow)}")
    if flow["dead_letters"]:
        told.append(f"{flow['dead_letters']:,} dead letters")
    return ", ".join(told)
