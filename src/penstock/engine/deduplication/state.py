"""The state of the deduplications of a query on the driver: begun and committed with each batch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from pyspark.sql import SparkSession

from penstock.engine.catalyst.java_trees import children_of
from penstock.engine.catalyst.spark_plan import class_name
from penstock.engine.checkpoints.offset_log import OffsetLog
from penstock.engine.deduplication.attempt import FOLDER, Attempt
from penstock.engine.deduplication.task import BUCKETS
from penstock.engine.updating.files import BucketFiles
from penstock.engine.updating.versions import OperatorStateDirectory, StateVersion
from penstock.sdk import BatchId

_OPERATOR = "StreamingDeduplicateExec"


@dataclass(frozen=True)
class KeptRows:
    """The kept rows of the deduplications `operators` of a query.

    With `follows_joins` rows of joins come later than the watermark of the query: their operators
    have earlier ones in Spark.
    """

    session: SparkSession
    checkpoint: Path
    operators: tuple[str, ...]
    follows_joins: bool

    def begin(self, batch: BatchId) -> None:
        """Begins an attempt of a batch. Raises StateError if the state before it is damaged."""
        self._directory.before(batch.number)
        name = f"{batch.number}-{uuid4().hex[:8]}"
        Attempt(batch.number, name, self._watermark(batch)).write(self._directory.path)

    def commit(self, batch: BatchId) -> StateVersion:
        """Makes the state after a batch, which all tasks have written, the current one."""
        attempt = Attempt.read(self._directory.path)
        before = self._directory.before(batch.number)
        chains = {}
        for operator in self.operators:
            files = BucketFiles(
                str(self._directory.path),
                f"{operator}/{attempt.name}",
                before.chains.get(operator, {}),
            )
            chains[operator] = files.written()
        version = StateVersion(batch.number, BUCKETS, chains)
        self._directory.save(version)
        return version

    def _watermark(self, batch: BatchId) -> int:
        """Returns the watermark up to which rows of a batch are late, in milliseconds."""
        if not batch.number:
            return 0
        watermark = OffsetLog(self.checkpoint).watermark(batch.number - 1)
        if not self.follows_joins:
            return watermark
        query: Any = self.session.streams.get(batch.query)
        plan = query._jsq.streamingQuery().lastExecution().executedPlan()
        return min([watermark, *_late_watermarks(plan)])

    @property
    def _directory(self) -> OperatorStateDirectory:
        return OperatorStateDirectory(self.checkpoint / FOLDER)


def _late_watermarks(plan: Any) -> Iterator[int]:
    """Yields the watermarks by which the deduplications of a physical plan drop late rows."""
    if class_name(plan) == _OPERATOR:
        watermark = plan.eventTimeWatermarkForLateEvents()
        yield int(watermark.get()) if watermark.isDefined() else 0
    for child in children_of(plan):
        yield from _late_watermarks(child)
