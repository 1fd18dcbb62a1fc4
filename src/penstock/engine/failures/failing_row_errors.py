"""Errors of failing rows: turns the failing rows of a stream into dead letters."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import LongType, StructField, StructType

from penstock.core.errors import RecordError, Rejected
from penstock.engine.build import Builder
from penstock.engine.catalyst.columns import to_arrow
from penstock.engine.row_checks.checked_plan import ROW
from penstock.engine.row_checks.failing_rows import (
    failing_names,
    node_of,
    read_failing_rows,
    remove_failing_rows,
)
from penstock.engine.row_checks.result_rows import ResultRows
from penstock.engine.row_checks.row_checks import Check, find_checks
from penstock.engine.row_checks.stream_checks import stage_of
from penstock.plan.model import Query
from penstock.plan.node import Node
from penstock.sdk.columns.row_json import row_payload

ROWS_PER_FILE = 10_000
"""The approximate number of failing rows in memory, and in one file of dead letters."""


@dataclass(frozen=True)
class FailingRowErrors:
    """The dead letters of the failing rows of one batch of a query, computed in `session`."""

    builder: Builder
    query: Query
    session: SparkSession

    def report(self, number: int) -> None:
        """Writes the failing rows of a batch to the spool with their errors, and removes them."""
        if self.builder.spool is None:
            return
        batch = self.builder.spool / self.query.name / str(number)
        for name in failing_names(batch):
            node = self.builder.plan.nodes[node_of(name)]
            results = self.builder.results.get(name)
            stage = stage_of(node) if results is None else results.stage
            spool = self.builder.make_spool(node, self.query, stage)
            prefix = "-".join(["sql", *name.split(".")[1:]])
            tables = read_failing_rows(batch, name, ROWS_PER_FILE)
            for part, (columns, table) in enumerate(tables):
                writer = spool.begin(number, f"{prefix}-{part}")
                errors = self._errors(node, results, table, columns)
                (rows,) = table.cast(to_arrow(columns)).combine_chunks().to_batches()
                for index, error in enumerate(errors):
                    writer.add(row_payload(rows, index), error)
                writer.close()
        remove_failing_rows(batch)

    def _errors(
        self, node: Node, results: ResultRows | None, table: pa.Table, columns: StructType
    ) -> list[RecordError]:
        """Returns the error of each input row of a node, or of each row of `results`."""
        numbers = pa.array(range(table.num_rows), pa.int64())
        numbered = self.session.createDataFrame(
            table.append_column(ROW, numbers),
            StructType([*columns.fields, StructField(ROW, LongType())]),
        )
        errors: dict[int, RecordError] = {}
        for check in self._checks(node, results, numbered):
            for number, error in check.errors(0, table.num_rows):
                errors.setdefault(number, error)
        return [errors.get(number) or _unknown_error() for number in range(table.num_rows)]

    def _checks(self, node: Node, results: ResultRows | None, numbered: DataFrame) -> list[Check]:
        if results is not None:
            return results.checks(numbered)
        input_ = numbered.drop(ROW)
        return find_checks(self.builder.output(node, input_, self.query), input_, numbered)


def _unknown_error() -> RecordError:
    return Rejected("the SQL failed once, and does not fail on this row again", code="sql-failed")
