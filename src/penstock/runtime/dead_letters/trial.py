"""Trial of a dead letter: whether it passes a plan now, and its rows at the sinks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from penstock.core.errors import PenstockError, RecordError
from penstock.core.files.temporary import temporary_directory
from penstock.engine.failures.dead_letter_files import read_batch
from penstock.engine.sinks.sink_rows import make_sink_task, partitioning_of, write_rows
from penstock.engine.tasks.dead_letter_writer import Spool
from penstock.plan.model import Plan
from penstock.plan.node import Node
from penstock.runtime.capture_sink import Capture
from penstock.runtime.dead_letters.dead_letter import DeadLetter
from penstock.runtime.dead_letters.replay import Replay
from penstock.runtime.dead_letters.replayable import select_replayable
from penstock.runtime.diagnose import diagnose
from penstock.runtime.state.directory import StateDirectory
from penstock.runtime.state.primary_keys import resolve_primary_keys
from penstock.runtime.state.schemas import resolve_schemas
from penstock.sdk import BatchId, Context

MAX_ROWS = 100


@dataclass(frozen=True)
class Trial:
    """The result of a trial: the rows at each sink, or the error of the record.

    `reason` is the reason for which a plan cannot replay the dead letter, if there is one.
    """

    rows: Mapping[str, pa.Table] = field(default_factory=dict)
    error: PenstockError | None = None
    reason: str | None = None

    @property
    def passes(self) -> bool:
        return self.error is None and self.reason is None


def try_letter(plan: Plan, state: StateDirectory, letter: DeadLetter, spark: SparkSession) -> Trial:
    """Runs a plan on one dead letter, from the node where the record failed.

    Stateful nodes compute that row alone. Raises PenstockError if the plan cannot run.
    """
    plan = resolve_primary_keys(plan, state)
    resolve_schemas(plan, state, pin=False)
    chosen, skipped = select_replayable(plan, [letter], True)
    if skipped:
        return Trial(reason=skipped[0].reason)
    replay = Replay(plan, spark, state)
    try:
        if not replay.find_valid(chosen):
            return Trial(error=next(iter(replay.failures.values())))
        with temporary_directory() as directory:
            return _written(plan, list(replay.rows.sink_rows(chosen)), directory)
    except PenstockError:
        raise
    except Exception as error:
        raise diagnose(plan, replay.rows.query, error) from error


def _written(plan: Plan, sinks: list[tuple[Node, DataFrame]], spool: Path) -> Trial:
    """Encodes the rows for each sink as the sink would, and returns them."""
    rows: dict[str, pa.Table] = {}
    for sink, frame in sinks:
        capture = Capture(Context(plan.name, sink.name, None), sink.sink, MAX_ROWS)
        capture.operation = sink.operation
        node = replace(sink, component=capture)
        task = make_sink_task(
            node, Spool(plan.name, "trial", sink.name, "sink", sink.on_error, str(spool))
        )
        batch = BatchId("trial", 0)
        partitioning = partitioning_of(capture, frame.schema, node.removed_operation)
        capture.commit(batch, write_rows(capture, task, frame, batch, partitioning))
        for error in _failures(spool):
            return Trial(error=error)
        rows[sink.name] = pa.table({}) if capture.table is None else capture.table
    return Trial(rows)


def _failures(spool: Path) -> Iterator[RecordError]:
    """Yields the errors of rows that a sink could not encode."""
    if next(spool.rglob("[!.]*.arrow"), None) is not None:
        for row in read_batch(spool).to_pylist():
            yield RecordError(row["message"], code=row["code"])
