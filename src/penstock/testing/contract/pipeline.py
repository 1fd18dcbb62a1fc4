"""A pipeline around the component under test, run by Spark."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock import app
from penstock.connectors import memory
from penstock.testing.contract.rows import Row

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from penstock.runtime.supervise import Outcome

Node = dict[str, Any]

SCHEMA = "id BIGINT, name STRING"
"""The columns of `rows.SIMPLE`."""

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
        options = app.RunOptions(until="caught_up")
        return app.run(app.plan(file), spark=self._spark.newSession(), options=options)

    def mend(self) -> None:
        """From now on the step lets every row pass."""
        self._mark.touch()

    def kept(self) -> list[Row]:
        """The rows that came out, where there is no sink."""
        return list(memory.tables[self._kept].to_pylist()) if self._kept in memory.tables else []
