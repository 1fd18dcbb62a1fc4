"""Plans of earlier batches of a query, applied to later batches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame

from penstock.engine.catalyst.executed_plan import PhysicalRows
from penstock.engine.sink_job import SinkJob
from penstock.engine.updating.batch import UpdatingBatch
from penstock.engine.updating.reusable_changes import ReusableChanges, depends_on_state_only
from penstock.plan.model import Query
from penstock.sdk import BatchId


class KeptPlans:
    """The plans of the sinks of a query, and those of its updating transforms."""

    def __init__(self, query: Query, jobs: Mapping[str, SinkJob]) -> None:
        self._query, self._jobs = query, jobs
        self._changes: ReusableChanges | None = None
        self._keeps_changes = not query.observed

    def receipts(
        self, root: DataFrame, batch: BatchId, sinks: Sequence[str], updating: UpdatingBatch | None
    ) -> Mapping[str, DataFrame | PhysicalRows]:
        """Returns the receipts of sinks by the plans of earlier batches; {} unless all have one."""
        receipts: dict[str, DataFrame | PhysicalRows] = {}
        if updating is not None:
            if self._changes is None or len(sinks) < len(self._query.sinks):
                return receipts
            if not all(self._jobs[name].divides_as_before(batch) for name in sinks):
                return receipts
            return self._changes.apply(updating, root) or receipts
        for name in sinks:
            frame = self._jobs[name].reuse_plan(root)
            if frame is None:
                return {}
            receipts[name] = frame
        return receipts

    def keep(self, root: DataFrame, updating: UpdatingBatch) -> None:
        """Keeps the plans of a batch for the next ones, unless they depend on the batch."""
        if not self._keeps_changes:
            return
        jobs = {name: self._jobs[name].receipts for name in self._query.sinks}
        receipts = {name: frame for name, frame in jobs.items() if frame is not None}
        if len(receipts) == len(jobs) and depends_on_state_only(updating):
            self._changes = ReusableChanges.of(updating, root, receipts)
            self._keeps_changes = self._changes is not None
