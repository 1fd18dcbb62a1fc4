"""Bisection: isolates the records of a batch on which SQL fails, where no check finds them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import DataFrame

from penstock.core.errors import PlanError, RecordError
from penstock.core.text import plural
from penstock.engine.build import Builder
from penstock.engine.catalyst.columns import to_arrow
from penstock.engine.catalyst.executed_plan import compute
from penstock.engine.failures.separation import branch_of
from penstock.engine.row_checks.data_errors import SPARK_ERRORS, to_record_error
from penstock.engine.updating.row_parts import row_parts
from penstock.plan.graph import upstream
from penstock.plan.model import Query
from penstock.plan.node import Node
from penstock.sdk import bisect_failures
from penstock.sdk.columns.row_json import row_payload

MAX_FAILURES = 1000
"""The maximum failing records of one batch; more indicate an error in the SQL."""


@dataclass
class Bisection:
    """A search for failing records in one batch of a query, for one sink.

    A record fails by itself if SQL fails below the state of all updating transforms. Needs several
    jobs for each failing record. `check_stop` is called before each job, and may raise an exception
    to end the search.
    """

    builder: Builder
    query: Query
    sink: Node
    root: DataFrame
    check_stop: Callable[[], None]

    def __post_init__(self) -> None:
        self._branch = branch_of(self.builder, self.query, self.sink)
        self._silent = replace(self.builder, report_dead_letters=False, updating=None)

    def remove_failing_rows(self, number: int, error: Exception) -> DataFrame:
        """Returns the root's valid rows in one partition, in order.

        The failing rows become dead letters of the node that failed. Raises `error` if no single
        row fails alone, and PlanError beyond `MAX_FAILURES`.
        """
        table = self.root.toArrow().combine_chunks()
        failing: list[int] = []
        for start, _, result in bisect_failures(
            table.num_rows, lambda a, b: self._attempt(table.slice(a, b - a)), to_record_error
        ):
            if isinstance(result, RecordError):
                failing.append(start)
                if len(failing) > MAX_FAILURES:
                    raise PlanError(
                        f"{self.sink.label}: more than {plural(MAX_FAILURES, 'record')} of one "
                        f"batch fail: {result.message}",
                        code=result.code,
                        hint="Use try_cast, try_divide, try_to_timestamp or a filter.",
                    )
        if not failing:
            raise self._result_error(error) from error
        self._report(table, failing, number)
        valid = pa.array([i for i in range(table.num_rows) if i not in set(failing)], pa.int64())
        return self._frame(table.take(valid)).coalesce(1)

    def _attempt(self, rows: pa.Table, node: str | None = None) -> None:
        """Computes the input of the sink, or `node`, and discards the result."""
        self.check_stop()
        frames = self._silent.build_batch(self._branch, self._frame(rows))
        for frame in self._parts(node or self.sink.inputs[0], frames):
            compute(frame)

    def _parts(self, target: str, frames: Mapping[str, DataFrame]) -> list[DataFrame]:
        """Returns a node's frame, or the frames below the state of the updating ones above."""
        nodes = self.builder.plan.nodes
        above = [nodes[name] for name in nodes if name in {target, *upstream([target], nodes)}]
        updating = {node.name for node in above if node.updating}
        if not updating:
            return [frames[target]]
        first = [
            node
            for node in above
            if node.updating and updating.isdisjoint(upstream([node.name], nodes))
        ]
        session = self.root.sparkSession
        parts = []
        for node in first:
            tables = {n: self._silent.without_operation(n, frames[n]) for n in node.inputs}
            parts += row_parts(node, tables, session)
        return parts

    def _result_error(self, error: Exception) -> Exception:
        """Returns the error of the first updating transform whose result fails; or `error`."""
        for name in self._branch.batch_nodes:
            node = self.builder.plan.nodes[name]
            if not node.updating:
                continue
            try:
                frames = self.builder.build_batch(self._branch, self.root)
                compute(frames[name])
            except SPARK_ERRORS as failure:
                reason = to_record_error(failure)
                return PlanError(
                    f"{node.label}: SQL fails on a row of its result: {reason.message}",
                    code=reason.code,
                    hint="Use try_divide, try_cast or CASE.",
                    where=node.where,
                )
        return error

    def _frame(self, rows: pa.Table) -> DataFrame:
        session = self.root.sparkSession
        if rows.num_rows:
            return session.createDataFrame(rows, self.root.schema)
        return session.createDataFrame([], self.root.schema)

    def _report(self, table: pa.Table, failing: list[int], number: int) -> None:
        writers = {}
        for index in failing:
            row = table.slice(index, 1)
            node, error = self._find_failing_node(row)
            if node.name not in writers:
                spool = self.builder.make_spool(node, self.query, "transform")
                writers[node.name] = spool.begin(number, "sql")
            writers[node.name].add(self._input_payload(node, row), error)
        for writer in writers.values():
            writer.close()

    def _find_failing_node(self, row: pa.Table) -> tuple[Node, RecordError]:
        """Returns the first node upstream of the sink that fails on the row, and its error."""
        for name in self._branch.batch_nodes:
            node = self.builder.plan.nodes[name]
            try:
                self._attempt(row, name)
            except SPARK_ERRORS as error:
                return node, to_record_error(error)
        raise AssertionError("the failure of a record is not reproducible")

    def _input_payload(self, node: Node, row: pa.Table) -> bytes:
        """Returns the payload of the node's input row."""
        frames = self._silent.build_batch(self._branch, self._frame(row))
        streams = [n for n in node.inputs if n in frames and not self.builder.plan.nodes[n].static]
        for name in streams:
            inputs = frames[name].toArrow().cast(to_arrow(frames[name].schema))
            for batch in inputs.combine_chunks().to_batches():
                return row_payload(batch, 0)
        return b"{}"
