"""A pipeline around the component under test, run by Spark."""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock import app
from penstock.connectors import memory
from penstock.core.errors import PenstockError
from penstock.core.log import Log, Silent
from penstock.testing.contract.rows import Row

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from penstock.plan.model import Plan
    from penstock.runtime.supervise import Outcome

Node = dict[str, Any]

SCHEMA = "id BIGINT, name STRING"
"""The columns of `rows.SIMPLE`."""
SECONDS_TO_COME = 60

_STEP = """
import pathlib
from penstock.sdk import Permanent
def transform(batch):
    if {id} in batch["id"].to_pylist() and not pathlib.Path({mark!r}).exists():
        raise Permanent("cannot go on")
    return batch
"""


class Pipeline:
    """A source, a sink and a step between them, with the state of a directory.

    A node is as in a pipeline file. The step fails on the row with the id `fails_on`, until it is
    `mended`.
    """

    def __init__(self, directory: Path, spark: SparkSession, fails_on: int = -1) -> None:
        self._directory, self._spark = directory, spark
        self._mark = directory / "mended"
        self._step = _STEP.format(id=fails_on, mark=str(self._mark))
        self._kept = f"kept-{uuid.uuid4().hex}"

    def run(self, *, source: Node | None = None, sink: Node | None = None) -> Outcome:
        """Runs until all is done that is there. Rows are kept where there is no sink."""
        options = app.RunOptions(until="caught_up")
        return app.run(self._plan(source, sink), spark=self._spark.newSession(), options=options)

    @contextmanager
    def going(self, *, source: Node) -> Iterator[Going]:
        """Runs while the block does, beside it."""
        plan = self._plan(source, None)
        going = Going(lambda log: app.run(
            plan, spark=self._spark.newSession(), options=app.RunOptions(until="stopped", log=log)
        ), self.kept)  # fmt: skip
        going.start()
        try:
            yield going
        finally:
            while going.is_alive():
                (plan.state / "stop").touch()
                going.join(0.5)

    def _plan(self, source: Node | None, sink: Node | None) -> Plan:
        step = {"type": "python", "from": "in", "schema": SCHEMA, "code": self._step}
        document = {
            "name": "contract",
            "runtime": {"state": str(self._directory / "runs"), "restart": {"attempts": 1}},
            "sources": {"in": source},
            "transforms": {"step": {**step, "deterministic": True}},
            "sinks": {"out": {**(sink or {"type": "memory", "name": self._kept}), "from": "step"}},
        }
        file = self._directory / "contract.yaml"
        file.write_text(json.dumps(document))
        return app.plan(file)

    def mend(self) -> None:
        """From now on the step lets every row pass."""
        self._mark.touch()

    def kept(self) -> list[Row]:
        """The rows that came out, where there is no sink."""
        return list(memory.tables[self._kept].to_pylist()) if self._kept in memory.tables else []


class Going(threading.Thread):
    """A run that goes on beside the test."""

    def __init__(self, run: Callable[[Log], Outcome], kept: Callable[[], list[Row]]) -> None:
        super().__init__(daemon=True)
        self._run, self._kept = run, kept
        self._receiving = Hears("receiving")
        self._outcome: Outcome | None = None

    @property
    def errors(self) -> dict[str, PenstockError]:
        """What went wrong until it ended."""
        assert self._outcome is not None, "the run could not begin"
        return self._outcome.errors

    def run(self) -> None:
        self._outcome = self._run(self._receiving)

    def await_receiving(self) -> None:
        """Returns when what is sent is received."""
        self._await(self._receiving.heard.is_set, "it does not receive")

    def await_kept(self, rows: int) -> None:
        """Returns when so many rows came out."""
        self._await(lambda: len(self._kept()) >= rows, "rows are missing")

    def await_failure(self) -> None:
        """Returns when the run has ended by itself, which must be by an error."""
        self.join(SECONDS_TO_COME)
        assert not self.is_alive() and self.errors

    def _await(self, done: Callable[[], bool], otherwise: str) -> None:
        until = time.monotonic() + SECONDS_TO_COME
        while not done():
            assert self.is_alive(), "the run has ended"
            assert time.monotonic() < until, otherwise
            time.sleep(0.05)


class Hears(Silent):
    """A log that waits for an event."""

    def __init__(self, event: str) -> None:
        self._event, self.heard = event, threading.Event()

    def info(self, event: str, **facts: Any) -> None:
        if event == self._event:
            self.heard.set()
