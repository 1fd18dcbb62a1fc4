"""A query whose sink is down, as status, live view and metrics show it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from pipelines import Workspace

from penstock.cli.metrics_table import format_executions
from penstock.connectors.memory import MemorySink
from penstock.core.errors import Transient
from penstock.runtime import backlog

pytestmark = pytest.mark.spark

PIPELINE = """
runtime: {restart: {backoff: 100ms, max_backoff: 100ms}}
sources:
  numbers: {type: generate, rate: 50, fields: {id: sequence}}
sinks:
  copy: {type: memory, from: numbers}
"""


def test_a_sink_that_is_down_is_named_and_unread_records_count(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise Transient("the sink is down")

    monkeypatch.setattr(backlog, "PERIOD", 0.1)
    handle = workspace.start(PIPELINE)

    def await_(holds: Callable[[dict[str, Any], dict[str, Any]], bool]) -> dict[str, Any]:
        """Waits for metrics for which a condition over query and source holds."""
        until = time.monotonic() + 60
        while True:
            numbers = handle.metrics.snapshot()
            if numbers["queries"] and holds(
                numbers["queries"]["numbers"], numbers["nodes"]["numbers"]
            ):
                return numbers
            assert handle.wait(0.05) is None and time.monotonic() < until, numbers

    try:
        await_(lambda query, source: source["rows"] > 0)
        with monkeypatch.context() as patch:
            patch.setattr(MemorySink, "commit", fail)
            numbers = await_(lambda query, source: query["failures"] > 1 and source["lag"] > 0)
            (line,) = format_executions(numbers)
            assert line.startswith("query numbers: retrying for ")
            assert "the sink is down" in line and "batch " in line
            first = numbers["nodes"]["numbers"]["lag"]
            await_(
                lambda query, source: query["state"] == "retrying" and source["lag"] > first + 50
            )
        await_(lambda query, source: query["state"] == "running" and source["lag"] < 50)
    finally:
        handle.stop()
    outcome = handle.wait(60)
    assert outcome is not None and (outcome.ending, outcome.errors) == ("stopped", {})
    ids = workspace.result("copy")["id"].to_list()
    assert ids == list(range(ids[0], ids[0] + len(ids)))
