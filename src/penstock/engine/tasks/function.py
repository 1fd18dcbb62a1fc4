"""Batch functions in tasks: transforms as functions for `mapInArrow`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from penstock.core.error_codec import encode_errors
from penstock.core.errors import PenstockError, PlanError, RecordError, Rejected
from penstock.core.exits import exits_as_exceptions
from penstock.core.text import did_you_mean
from penstock.engine.tasks import task as spark_task
from penstock.engine.tasks.carried_rows import CarriedRows
from penstock.engine.tasks.crashes import crash_mark
from penstock.engine.tasks.dead_letter_writer import DeadLetterWriter, Spool
from penstock.engine.tasks.late_candidates import LateCapture, select_candidates
from penstock.engine.workers.open_transforms import OPEN_TRANSFORMS
from penstock.sdk import Carried, Failure, Transform, bisect_failures
from penstock.sdk.bisect_failures import as_record_error
from penstock.sdk.columns.conform import conform
from penstock.sdk.columns.conversion import Conversion
from penstock.sdk.columns.json_columns import check_json_columns
from penstock.sdk.columns.row_json import row_payload
from penstock.sdk.forked_calls import call_forked

Output = list[pa.RecordBatch | Failure | Carried]


@dataclass(frozen=True)
class Step:
    """A transform in a task. `rows` is the schema of its output. Bad records go to the spool.

    Tasks of the same `run_id` in the same process share an open transform. Rows without a value in
    the column `event_time` are counted. `input` marks columns of JSON text. `late` captures rows
    that may be late. `carried` is the directory of rows that the transform carries
    over from batch to batch.
    """

    transform: Transform[Any]
    rows: pa.Schema
    spool: Spool
    run_id: str = ""
    event_time: str | None = None
    input: pa.Schema | None = None
    late: LateCapture | None = None
    carried: Path | None = None

    def run(
        self, batches: Iterator[pa.RecordBatch], number: int | None, partition: int | str
    ) -> Iterator[pa.RecordBatch]:
        """Yields the output for the batches of a partition."""
        dead_letters = self.spool.begin(number, partition)
        watermark = self.late.watermark(number) if self.late is not None else None
        with OPEN_TRANSFORMS.using(self.transform, self.run_id, self._open) as transform:
            for batch in _joined(batches) if transform.whole_batches else batches:
                if self.event_time is not None:
                    dead_letters.untimed += batch.column(self.event_time).null_count
                if self.input is not None:
                    batch = pa.RecordBatch.from_arrays(batch.columns, schema=self.input)
                if self.late is not None and watermark is not None:
                    indexes = self.late.select(batch, watermark)
                    if len(indexes):
                        dead_letters.candidates.append(select_candidates(batch, indexes))
                if batch.num_rows:
                    carried = self._carried(number)
                    rows = batch if carried is None else carried.add_to(batch)
                    yield from self._apply(transform, rows, dead_letters, carried)
            dead_letters.close()

    def _carried(self, number: int | None) -> CarriedRows | None:
        if self.carried is None or number is None:
            return None
        return CarriedRows(self.carried, number, is_fixed=bool(self.spool.recomputed_for))

    def _open(self, function: Callable[[], None]) -> None:
        """Calls a function that opens the transform, which may end its process."""
        with crash_mark(f"{self.spool.node}-open") as crashed:
            if crashed:
                call_forked(function)
            function()

    def _apply(
        self, transform: Transform[Any], batch: pa.RecordBatch, dead_letters: DeadLetterWriter,
        carried: CarriedRows | None,
    ) -> Iterator[pa.RecordBatch]:  # fmt: skip
        def attempt(start: int, stop: int) -> Output:
            with exits_as_exceptions():
                output = list(transform.apply(batch.slice(start, stop - start)))
            return [
                each if isinstance(each, Failure | Carried) else self._conform(each)
                for each in output
            ]

        def attempt_forked(start: int, stop: int) -> Output:
            return call_forked(lambda: attempt(start, stop))

        separate = _fail_together if transform.whole_batches else bisect_failures
        with crash_mark(self.spool.node) as crashed:
            results = list(separate(batch.num_rows, attempt_forked if crashed else attempt))
        if carried is not None:
            carried.save(batch, [index for _, _, result in results for index in _indexes(result)])
        for start, _, result in results:
            if isinstance(result, RecordError):
                dead_letters.add(row_payload(batch, start), result)
                continue
            for each in result:
                if isinstance(each, Failure):
                    dead_letters.add(row_payload(batch, start + each.index), each.error)
                elif isinstance(each, pa.RecordBatch) and each.num_rows:
                    yield each

    def _conform(self, output: pa.RecordBatch) -> pa.RecordBatch:
        missing = [name for name in self.rows.names if name not in output.schema.names]
        if missing:
            raise PlanError(
                f'transform "{self.spool.node}" returned no column "{missing[0]}"',
                code="missing-column",
                hint=did_you_mean(missing[0], output.schema.names),
            )
        try:
            return check_json_columns(conform(output, self.rows, Conversion(nearest=True)))
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
            raise Rejected(str(error), code="wrong-type") from error


def _indexes(result: Output | RecordError) -> list[int]:
    """Returns the indexes of carried rows."""
    if isinstance(result, RecordError):
        return []
    return [each.index for each in result if isinstance(each, Carried)]


def _fail_together(
    count: int, attempt: Callable[[int, int], Output]
) -> Iterator[tuple[int, int, Output | RecordError]]:
    """Yields the result for all rows; after an error, the error of each row."""
    try:
        yield 0, count, attempt(0, count)
    except Exception as error:
        if isinstance(error, PenstockError) and not isinstance(error, RecordError):
            raise
        failure = as_record_error(error)
        yield from ((index, index + 1, failure) for index in range(count))


def _joined(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yields the rows of all batches as one batch, if there are any."""
    rows = [batch for batch in batches if batch.num_rows]
    if rows:
        yield from pa.Table.from_batches(rows).combine_chunks().to_batches()


@dataclass(frozen=True)
class Chain:
    """Adjacent transforms as one function for `mapInArrow`."""

    steps: Sequence[Step]

    @encode_errors
    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        number, partition = spark_task.batch_number(), spark_task.partition()
        for step in self.steps:
            batches = step.run(batches, number, partition)
        yield from batches
