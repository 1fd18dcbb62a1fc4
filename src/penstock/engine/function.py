"""Batch functions in tasks: what `mapInArrow` runs for a transform."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from penstock.core.errors import PenstockError, PlanError, RecordError, Rejected
from penstock.core.text import did_you_mean
from penstock.engine import task as spark_task
from penstock.engine.spool import Letters, Spool
from penstock.sdk import Transform, isolate
from penstock.sdk.kit.columns import conform
from penstock.sdk.kit.rowtext import payload_of


@dataclass(frozen=True)
class Step:
    """One transform in a task: rows in, rows of exactly `rows` out, bad records to the spool."""

    transform: Transform[Any]
    rows: pa.Schema
    spool: Spool

    def run(
        self, batches: Iterator[pa.RecordBatch], number: int | None, partition: int | str
    ) -> Iterator[pa.RecordBatch]:
        """The output for the batches of one partition."""
        letters = self.spool.begin(number, partition)
        self._open()
        try:
            for batch in batches:
                if batch.num_rows:
                    yield from self._apply(batch, letters)
            letters.close()
        finally:
            self.transform.close()

    def _open(self) -> None:
        try:
            self.transform.open()
        except PenstockError:
            raise
        except Exception as error:
            raise PlanError(
                f'transform "{self.spool.node}" cannot be opened: {type(error).__name__}: {error}',
                code="failed-open",
            ) from error

    def _apply(self, batch: pa.RecordBatch, letters: Letters) -> Iterator[pa.RecordBatch]:
        def attempt(start: int, stop: int) -> list[pa.RecordBatch]:
            given = self.transform.apply(batch.slice(start, stop - start))
            return [self._conform(each) for each in given]

        for start, _, result in isolate(batch.num_rows, attempt):
            if isinstance(result, RecordError):
                letters.add(payload_of(batch, start), result)
            else:
                yield from (each for each in result if each.num_rows)

    def _conform(self, given: pa.RecordBatch) -> pa.RecordBatch:
        missing = [name for name in self.rows.names if name not in given.schema.names]
        if missing:
            raise PlanError(
                f'transform "{self.spool.node}" gave no column "{missing[0]}"',
                code="missing-column",
                hint=did_you_mean(missing[0], given.schema.names),
            )
        try:
            return conform(given, self.rows)
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
            raise Rejected(str(error), code="wrong-type") from error


@dataclass(frozen=True)
class Chain:
    """Neighbouring transforms as one function for `mapInArrow`."""

    steps: Sequence[Step]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        number, partition = spark_task.batch_number(), spark_task.partition()
        for step in self.steps:
            batches = step.run(batches, number, partition)
        return batches
