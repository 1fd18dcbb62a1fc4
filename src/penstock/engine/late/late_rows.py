"""Late rows of a batch: counted row by row, and dead letters on request.

The rows with an event time up to the watermark are candidates. A candidate may be part of a window
that is still open, or be filtered out before it reaches a stateful operator. The operators between
the node and the stateful operator are therefore applied to the candidates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col

from penstock.core.errors import PlanError, RecordError
from penstock.core.text import plural
from penstock.engine.catalyst.columns import to_spark
from penstock.engine.late.late_paths import ROW, TIME, LatePath, NotExact, find_late_paths
from penstock.engine.row_checks.data_errors import to_record_error
from penstock.engine.tasks.dead_letter_writer import Spool, Stage
from penstock.engine.tasks.late_candidates import (
    RECORD,
    event_times,
    late_watermark,
    read_candidates,
)
from penstock.plan.model import Query
from penstock.plan.node import Node
from penstock.sdk import bisect_failures
from penstock.sdk.columns.row_json import row_payload

CODE = "late"
"""The code of late rows as dead letters."""
STAGES: tuple[Stage, Stage] = ("decode", "output")
"""The stages of a late record, and of a late row that is no record of its own."""


@dataclass(frozen=True)
class LateNode:
    """A node with a watermark in a query: the spools of its late rows.

    `records` is the spool of records, `rows` that of rows without a record of their own. With
    `to_dead_letters` late rows become dead letters.
    """

    name: str
    event_time: str
    records: Spool
    rows: Spool
    to_dead_letters: bool

    @staticmethod
    def of(node: Node, records: Spool, rows: Spool) -> LateNode:
        """Returns a node of a plan with spools of the stages `STAGES`."""
        assert node.watermark is not None
        to_dead_letters = node.late == "dead_letter"
        return LateNode(node.name, node.watermark.column, records, rows, to_dead_letters)


@dataclass(frozen=True)
class LateRows:
    """The late rows of a stateful query with a checkpoint.

    A row is late if a stateful operator drops it, or one of the rows that are computed from it. It
    becomes a dead letter if no operator keeps any of them.
    """

    session: SparkSession
    checkpoint: Path
    spool: Path
    nodes: Mapping[str, LateNode]
    paths: tuple[LatePath, ...]

    def report(self, batch: int) -> None:
        """Writes the counts and the dead letters of a batch that has been computed."""
        watermark = late_watermark(self.checkpoint, batch)
        if watermark is None:
            return
        for node in self.nodes.values():
            candidates = read_candidates(self.spool / str(batch), node.name, STAGES)
            if candidates is not None:
                self._report(node, candidates, batch, watermark)

    def _report(self, node: LateNode, candidates: pa.Table, batch: int, watermark: int) -> None:
        dropped, kept = self._separate(node.name, candidates, watermark)
        rows, records = node.rows.begin(batch, CODE), node.records.begin(batch, CODE)
        rows.late = len(dropped)
        if node.to_dead_letters:
            width = candidates.num_columns - len(RECORD)
            for number in sorted(dropped - kept):
                (row,) = candidates.slice(number, 1).to_batches()
                payload, origin, position, part = (c[0].as_py() for c in row.columns[width:])
                row = row.select(range(width))
                (time,) = event_times(row.column(node.event_time)).to_pylist()
                error = RecordError(lateness(time, watermark), code=CODE)
                if payload is None:
                    rows.add(row_payload(row, 0), error, origin, position, part)
                else:
                    records.add(payload, error, origin, position)
        rows.close()
        records.close()

    def _separate(
        self, node: str, candidates: pa.Table, watermark: int
    ) -> tuple[set[int], set[int]]:
        """Returns the numbers of the candidates that are dropped, and of those that are kept."""
        width = candidates.num_columns - len(RECORD)
        numbers = pa.array(range(candidates.num_rows), pa.int64())
        rows = candidates.select(range(width)).append_column(ROW, numbers)
        data: Any = rows
        frame = self.session.createDataFrame(data, to_spark(rows.schema))
        dropped: set[int] = set()
        kept: set[int] = set()
        for path in self.paths:
            if path.node != node:
                continue
            result = self._compute(path, frame, rows.num_rows)
            found = result.column(ROW)
            if path.event_time is not None:
                late = pc.less_equal(event_times(result.column(TIME)), watermark).fill_null(False)
                dropped.update(found.filter(late).to_pylist())
                found = found.filter(pc.invert(late))
            kept.update(found.to_pylist())
        return dropped, kept

    def _compute(self, path: LatePath, frame: DataFrame, count: int) -> pa.Table:
        """Returns the rows at the end of a path, without the rows on which its SQL fails.

        These are dead letters already.
        """

        def attempt(start: int, stop: int) -> pa.Table:
            part = frame.filter((col(ROW) >= start) & (col(ROW) < stop))
            return path.apply(frame if stop - start == count else part).toArrow()

        outcomes = [outcome for _, _, outcome in bisect_failures(count, attempt, to_record_error)]
        results = [outcome for outcome in outcomes if isinstance(outcome, pa.Table)]
        return pa.concat_tables(results or [attempt(0, 0)]).combine_chunks()


def find_exact_paths(
    query: Query, root: DataFrame, nodes: Sequence[Node], computed: Mapping[str, str]
) -> tuple[LatePath, ...] | None:
    """Returns the paths of late rows in a query; None if only Spark can count them.

    `nodes` have the watermarks of the query; for `computed` see `find_late_paths`. Raises PlanError
    if late rows become dead letters, and cannot be found row by row.
    """
    try:
        return tuple(find_late_paths(root, computed))
    except NotExact as error:
        for node in nodes:
            if node.late == "dead_letter":
                raise _late_rows_error(node, query, str(error)) from None
        return None


def _late_rows_error(node: Node, query: Query, reason: str) -> PlanError:
    return PlanError(
        f"{node.label} has late: dead_letter, and its late rows in query {query.name} cannot be "
        f"found one by one: {reason}",
        code="late-rows",
        hint="Remove late: dead_letter. Spark then drops and counts late rows.",
        where=node.where,
    )


def lateness(time: int, watermark: int) -> str:
    """Returns the message of a late row, from times in microseconds."""
    if time == watermark:
        return f"event time {_text(time)} is at the watermark"
    before = _span(watermark - time)
    return f"event time {_text(time)} is {before} before the watermark {_text(watermark)}"


def _text(microseconds: int) -> str:
    time = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=microseconds)
    return time.isoformat().replace("+00:00", "Z")


def _span(microseconds: int) -> str:
    """Returns a time span in the largest unit without a fraction, such as `5 minutes`."""
    seconds, fraction = divmod(microseconds, 10**6)
    if fraction:
        return f"{microseconds / 10**6:.6f}".rstrip("0") + " seconds"
    for size, unit in ((86400, "day"), (3600, "hour"), (60, "minute")):
        if seconds % size == 0:
            return plural(seconds // size, unit)
    return plural(seconds, "second")
