"""Runs that are killed while the columns of a source change: the next run goes on."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from pipelines import Workspace
from pyspark import cloudpickle

from penstock.connectors import memory
from penstock.connectors.memory import MemorySource
from penstock.runtime.state.directory import StateDirectory
from penstock.sdk import Offset

pytestmark = pytest.mark.spark

WINDOWS = """\
runtime: {partitions: 1}
sources:
  clicks:
    type: memory
    rows:
      - {at: "2026-03-01T10:00:00Z", user: ann}
      - {at: "2026-03-01T10:01:00Z", user: bob}
      - {at: "2026-03-01T10:02:00Z", user: ann, page: home}
    watermark: {column: at, delay: 1 minute}
transforms:
  hourly:
    type: sql
    sql: SELECT window.start AS hour, count(*) AS n FROM clicks GROUP BY window(at, '1 hour')
sinks:
  out: {type: memory, from: hourly}
"""
COLUMNS = pa.schema([("at", pa.timestamp("us", tz="UTC")), ("user", pa.string())])
CHANGED = pa.schema([*COLUMNS, ("page", pa.string())])
CHANGE = 2
"""The number of rows before the first one with the other columns."""


class GrowingSource(MemorySource):
    """Rows of which later ones have a further column."""

    def schema(self) -> None:
        return None

    def infer_schema(self) -> pa.Schema:
        return COLUMNS

    def schema_change(self, start: Offset, end: Offset) -> Offset | None:
        if self.columns == CHANGED or end["rows"] <= CHANGE:
            return None
        return {"rows": max(start["rows"], CHANGE)}

    def changed_columns(self) -> pa.Schema | None:
        return None if self.columns == CHANGED else CHANGED


class Killed(BaseException):
    """The end of the process."""


@pytest.fixture
def growing_source(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The source of type `memory`, which Spark's workers receive by value."""
    module = sys.modules[__name__]
    cloudpickle.register_pickle_by_value(module)
    monkeypatch.setattr(memory, "MemorySource", GrowingSource)
    monkeypatch.setattr("penstock.engine.sources.source.pickle", cloudpickle)
    yield
    cloudpickle.unregister_pickle_by_value(module)


@pytest.mark.usefixtures("growing_source")
def test_a_run_that_ends_between_the_columns_and_the_plan_goes_on(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The state holds a plan and columns that fit each other, whichever of them are the new ones.

    A run writes both at its start, and both again after the change.
    """
    written: list[str] = []
    write = StateDirectory.write

    def write_three(state: StateDirectory, name: str, content: Any) -> None:
        if name in ("schemas.json", "plan.json"):
            if len(written) == 3:
                raise Killed
            written.append(name)
        write(state, name, content)

    with monkeypatch.context() as patch:
        patch.setattr(StateDirectory, "write", write_three)
        with pytest.raises(Killed):
            workspace.start(WINDOWS).wait(120)
    assert workspace.run(WINDOWS).ending == "complete"
    assert workspace.counts["clicks"]["rows"] == 3 - CHANGE
    assert workspace.result()["n"].to_list() == [3]
