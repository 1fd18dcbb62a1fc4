"""Pipelines with the component under test, run by Spark."""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import pyarrow as pa

from penstock import app
from penstock.connectors import memory
from penstock.core.errors import PenstockError
from penstock.core.log import Log, Silent
from penstock.engine.catalyst.columns import to_spark
from penstock.runtime.dead_letters.store import DeadLetters
from penstock.runtime.receiving import receivers
from penstock.runtime.state.directory import StateDirectory
from penstock.testing.contract.receiver_harness import start_warm_python
from penstock.testing.contract.rows import EVERY_TYPE, Row

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from penstock.plan.model import Plan
    from penstock.runtime.outcome import Outcome

Node = dict[str, Any]

RUN_TIMEOUT = 60
_METADATA = "metadata "

_STEP = """
import pathlib
from penstock.sdk import Permanent
def transform(batch):
    if {id} in batch["id"].to_pylist() and not pathlib.Path({marker!r}).exists():
        raise Permanent("the test requested this failure")
    return batch
"""


class Pipeline:
    """A source, a transform and a sink, with state below a directory.

    Nodes are maps as in a pipeline file. The transform fails on the row with the id `fails_on`
    until `disable_failure` is called. Without a sink, the pipeline writes to a table in memory.
    """

    def __init__(
        self, directory: Path, spark: SparkSession, *, fails_on: int = -1,
        schema: pa.Schema = EVERY_TYPE, metadata: pa.Schema | None = None,
    ) -> None:  # fmt: skip
        self._directory, self._spark = directory, spark
        self._schema, self._metadata = schema, metadata or pa.schema([])
        self._state: Path | None = None
        self._marker = directory / "failure-disabled"
        self._step = _STEP.format(id=fails_on, marker=str(self._marker))
        self._output = f"output-{uuid.uuid4().hex}"

    def run(self, *, source: Node | None = None, sink: Node | None = None) -> Outcome:
        """Runs until all available data is processed. Returns the outcome."""
        options = app.RunOptions(until="caught_up")
        return app.run(self._plan(source, sink), spark=self._spark.newSession(), options=options)

    @contextmanager
    def running(self, *, source: Node) -> Iterator[BackgroundRun]:
        """Runs in a thread until the end of the block. Receivers are forked."""
        plan = self._plan(source, None)
        run = BackgroundRun(lambda log: app.run(
            plan, spark=self._spark.newSession(), options=app.RunOptions(until="stopped", log=log)
        ), self.read_output)  # fmt: skip
        with patch.object(receivers, "PYTHON", start_warm_python().launcher):
            run.start()
            try:
                yield run
            finally:
                while run.is_alive():
                    (plan.state / "stop").touch()
                    run.join(0.5)

    def disable_failure(self) -> None:
        """Lets all rows pass from now on."""
        self._marker.touch()

    def read_output(self) -> list[Row]:
        """Returns the rows in memory, without metadata."""
        return list(self._select_output(self._schema.names).to_pylist())

    def read_metadata(self) -> pa.Table:
        """Returns the metadata of the rows in memory, under the names of the source."""
        names = self._metadata.names
        output = self._select_output([_METADATA + name for name in names])
        return output.rename_columns(names)

    def count_dead_letters(self) -> int:
        """Returns the number of dead letters."""
        assert self._state is not None
        return DeadLetters(StateDirectory(self._state).dead_letters).count()

    def _plan(self, source: Node | None, sink: Node | None) -> Plan:
        metadata = [field.with_name(_METADATA + field.name) for field in self._metadata]
        columns = _ddl(pa.schema([*self._schema, *metadata]))
        step = {"type": "python", "from": "in", "schema": columns, "code": self._step}
        source = {**(source or {}), "schema": _ddl(self._schema)}
        if metadata:
            names = {_METADATA + name: name for name in self._metadata.names}
            source = {**source, "metadata": names}
        if "primary_key" in source:
            step["primary_key"] = source["primary_key"]
        sink = sink or {"type": "memory", "name": self._output}
        document = {
            "name": "contract",
            "runtime": {"state": str(self._directory / "runs"), "restart": {"attempts": 1}},
            "sources": {"in": source},
            "transforms": {"step": {**step, "deterministic": True}},
            "sinks": {"out": {**sink, "from": "step"}},
        }
        file = self._directory / "contract.yaml"
        file.write_text(json.dumps(document))
        plan = app.plan(file)
        self._state = plan.state
        return plan

    def _select_output(self, names: list[str]) -> pa.Table:
        if self._output not in memory.tables:
            return pa.table({name: [] for name in names})
        return memory.tables[self._output].select(names)


class BackgroundRun(threading.Thread):
    """A run in a thread."""

    def __init__(self, run: Callable[[Log], Outcome], output: Callable[[], list[Row]]) -> None:
        super().__init__(daemon=True)
        self._run, self._output = run, output
        self._log = EventLog("receiving")
        self._outcome: Outcome | None = None

    @property
    def errors(self) -> dict[str, PenstockError]:
        """The errors of the ended run, by query."""
        assert self._outcome is not None, "expected an outcome, found a run that failed to start"
        return self._outcome.errors

    def run(self) -> None:
        self._outcome = self._run(self._log)

    def await_receiving(self) -> None:
        """Waits until the receivers are ready."""
        self._await(self._log.occurred.is_set, "expected ready receivers, found none")

    def await_rows(self, count: int) -> None:
        """Waits until the output has at least `count` rows."""
        self._await(lambda: len(self._output()) >= count, f"expected {count} rows, found fewer")

    def await_failure(self) -> None:
        """Waits for the end of the run and checks that it failed."""
        self.join(RUN_TIMEOUT)
        assert not self.is_alive() and self.errors

    def _await(self, condition: Callable[[], bool], message: str) -> None:
        deadline = time.monotonic() + RUN_TIMEOUT
        while not condition():
            assert self.is_alive(), f"{message}; the run ended"
            assert time.monotonic() < deadline, f"{message} after {RUN_TIMEOUT} s"
            time.sleep(0.05)


class EventLog(Silent):
    """A log that records the occurrence of an event."""

    def __init__(self, event: str) -> None:
        self._event, self.occurred = event, threading.Event()

    def info(self, event: str, **facts: Any) -> None:
        if event == self._event:
            self.occurred.set()


def _ddl(schema: pa.Schema) -> str:
    """Returns a schema as the DDL of a pipeline file."""
    fields = to_spark(schema)
    return ", ".join(f"`{field.name}` {field.dataType.simpleString()}" for field in fields)
