"""Separation: divides the rows of a batch into valid rows and rows on which SQL fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.compute as pc
from py4j.protocol import Py4JError
from pyspark import StorageLevel
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import broadcast
from pyspark.sql.utils import is_remote

from penstock.core.errors import RecordError
from penstock.engine.build import Builder
from penstock.engine.catalyst.columns import to_arrow
from penstock.engine.catalyst.logical_plans import Catalyst, named
from penstock.engine.catalyst.spark_plan import analyzed_plan, class_name, frame_of
from penstock.engine.catalyst.views import create_view
from penstock.engine.row_checks.checked_plan import ROW, without_ctes
from penstock.engine.row_checks.data_errors import require_data_error
from penstock.engine.row_checks.result_rows import ResultRows, combinations, divide, divide_window
from penstock.engine.row_checks.row_checks import Check, find_checks, number_rows
from penstock.engine.sinks.sink_rows import computed
from penstock.engine.tasks.dead_letter_writer import Stage
from penstock.engine.updating.checkpoint import checkpoint
from penstock.engine.updating.checks import UpdatingChecks, added_numbers, added_rows, result_checks
from penstock.engine.updating.rows import WEIGHT
from penstock.engine.updating.weighted import Weighted, weighted_leaf
from penstock.plan.graph import upstream
from penstock.plan.model import Query
from penstock.plan.node import Node
from penstock.sdk.columns.row_json import row_payload

ROWS_PER_FILE = 10_000
"""The maximum failing rows in memory, and in one file of dead letters."""


class NotSeparable(Exception):
    """An exception of rows whose failure Catalyst's `TryEval` does not show."""


@dataclass(frozen=True)
class _Failures:
    """The rows on which a node fails, with the column `ROW`.

    They are rows of its input, or at the stage `output` those of an operator that combines rows.
    """

    node: Node
    rows: DataFrame
    checks: list[Check]
    numbers: pa.Array
    stage: Stage = "transform"

    def parts(self) -> Iterator[tuple[pa.Table, list[RecordError]]]:
        """Yields failing rows in order, with their errors. Raises NotSeparable."""
        for start in range(0, len(self.numbers), ROWS_PER_FILE):
            numbers = self.numbers.slice(start, ROWS_PER_FILE)
            first, last = numbers[0].as_py(), numbers[-1].as_py()
            found: dict[int, RecordError] = {}
            for check in self.checks:
                for number, error in check.errors(first, last):
                    found.setdefault(number, error)
            if not found.keys() >= set(numbers.to_pylist()):
                raise NotSeparable
            errors = [found[number] for number in numbers.to_pylist()]
            within = self.rows.where(f"{ROW} BETWEEN {first} AND {last}")
            table = _join(within, numbers, "left_semi").toArrow().sort_by(ROW).drop([ROW])
            schema = to_arrow(self.rows.drop(ROW).schema)
            yield table.cast(schema).combine_chunks(), errors


@dataclass
class FailingRowFilter:
    """A search for failing rows in one batch of a query, for one sink.

    Each node that may fail is given the rows on which it does not fail. One pass over the input of
    the node finds the other rows; they become dead letters of the node. `check_stop` is called
    before each pass, and may raise an exception to end the search.
    """

    builder: Builder
    query: Query
    sink: Node
    root: DataFrame
    check_stop: Callable[[], None]
    _failures: list[_Failures] = field(default_factory=list)
    _stack: ExitStack = field(default_factory=ExitStack)

    def __post_init__(self) -> None:
        self._builder = self._without_failing_rows()

    @contextmanager
    def valid_rows(self, number: int) -> Iterator[DataFrame]:
        """Yields the rows for the sink, computed and in order, and reports the failing rows.

        Raises NotSeparable if rows fail that no check finds; some rows may then be reported.
        """
        if is_remote():
            raise NotSeparable
        branch = branch_of(self.builder, self.query, self.sink)
        with self._stack as stack:
            try:
                frames = self._builder.build_batch(branch, self.root, self._derive)
                rows = frames[self.sink.inputs[0]]
                self.check_stop()
                stack.enter_context(computed(rows))
                for index, failures in enumerate(self._failures):
                    self._report(failures, number, f"sql-{index}")
            except (Py4JError, PySparkException) as error:
                require_data_error(error)
                raise NotSeparable from error
            yield rows

    def _without_failing_rows(self) -> Builder:
        """Returns the builder of the branch; its updating transforms compute the valid rows."""
        updating = self.builder.updating
        if updating is None:
            return self.builder
        return replace(self.builder, updating=updating.again(self))

    def select_inputs(
        self, node: Node, weighted: Mapping[str, DataFrame]
    ) -> Mapping[str, DataFrame]:
        """Returns the rows of the weighted inputs on which an updating transform does not fail."""
        session = self.root.sparkSession
        valid = dict(weighted)
        for name, search in UpdatingChecks.of(node, weighted, session).items():
            rows = number_rows(weighted[name])
            try:
                checks = search.find(rows)
                numbers = self._failing_numbers(checks, rows)
            except (Py4JError, PySparkException) as error:
                require_data_error(error)
                raise NotSeparable from error
            if len(numbers):
                values = added_rows(rows, self.builder.plan.nodes[name].operation)
                added = _join(values, numbers, "left_semi").select(ROW).toArrow().column(0)
                reported = pc.unique(added.combine_chunks()).sort()
                self._failures.append(_Failures(node, values, checks, reported))
                valid[name] = _select(self._without(rows, numbers), weighted[name].columns)
        return valid

    def select_results(
        self, node: Node, leaves: frozenset[int], results: ResultRows, changes: Weighted
    ) -> Weighted:
        """Returns the rows of an operator on which the operators above do not fail.

        A row that fails before and after the batch is reported once, by the earlier batch.
        """
        session = self.root.sparkSession
        catalyst = Catalyst(session)
        weight = catalyst.column(changes.weight).alias(WEIGHT)
        frame = catalyst.frame(changes.plan).select(*results.columns(catalyst), weight)
        try:
            rows, checks = self._result_rows(
                frame, lambda rows: result_checks(results, rows, leaves)
            )
            numbers = self._failing_numbers(checks)
        except (Py4JError, PySparkException) as error:
            require_data_error(error)
            raise NotSeparable from error
        if not len(numbers):
            return changes
        reported = added_numbers(_join(rows, numbers, "left_semi"))
        values = added_rows(rows, None)
        self._failures.append(_Failures(node, values, checks, reported, "output"))
        valid = _select(self._without(rows, numbers), frame.columns)
        return weighted_leaf(catalyst, valid, results.rows, inserts_only=changes.inserts_only)

    def _derive(
        self, node: Node, frames: Mapping[str, DataFrame], query: Query, session: SparkSession
    ) -> DataFrame:
        """Returns the output of a transform for the rows on which it does not fail."""
        builder = self._builder
        frame = builder.derive(node, frames, query, session)
        inputs = [name for name in node.inputs if not self.builder.plan.nodes[name].static]
        if node.frame_transform is None or node.updating:
            return frame
        if len(inputs) != 1:
            return self._without_failing_results(node, frame)
        (name,) = inputs
        rows = number_rows(frames[name])
        checks = find_checks(frame, frames[name], rows)
        numbers = self._failing_numbers(checks, rows)
        if not len(numbers):
            return self._without_failing_results(node, frame)
        self._failures.append(_Failures(node, rows, checks, numbers))
        valid = self._without(rows, numbers).drop(ROW)
        create_view(valid, name)
        try:
            frame = builder.derive(node, {**frames, name: valid}, query, session)
            return self._without_failing_results(node, frame)
        finally:
            create_view(frames[name], name)

    def _without_failing_results(self, node: Node, frame: DataFrame) -> DataFrame:
        """Returns a frame without the rows of groups and windows on which results fail."""
        session = frame.sparkSession
        plan = whole = without_ctes(frame)
        for following in reversed(range(len(combinations(plan)))):
            part = combinations(plan)[-1 - following]
            is_window = class_name(part) == "Window"
            results = (divide_window if is_window else divide)(plan, part, session)
            if results is None:
                continue
            rows, checks = self._result_rows(results.frame(session), results.checks)
            numbers = self._failing_numbers(checks)
            if len(numbers):
                self._failures.append(_Failures(node, rows, checks, numbers, "output"))
                plan = results.plan_over(self._without(rows, numbers).drop(ROW))
            elif results.has_totals:
                plan = results.above
        if plan is whole:
            return frame
        frame = frame_of(plan, session)
        create_view(frame, node.name)
        return frame

    def _result_rows(
        self, frame: DataFrame, find: Callable[[DataFrame], list[Check]]
    ) -> tuple[DataFrame, list[Check]]:
        """Returns the rows of an operator with their numbers, and their checks.

        The rows are a leaf of plans: their columns have the IDs of the operator in the checks.
        """
        rows = number_rows(frame)
        if not find(rows.sparkSession.createDataFrame([], rows.schema)):
            return rows, []
        rows = checkpoint(rows)
        self._stack.callback(lambda: analyzed_plan(rows).rdd().unpersist(False))
        return rows, find(rows)

    def _without(self, rows: DataFrame, numbers: pa.Array) -> DataFrame:
        """Returns the rows without these numbers, as a leaf of plans.

        Otherwise Spark would evaluate filters above them on all rows, before it omits the rows.
        """
        valid = checkpoint(_join(rows, numbers, "left_anti"))
        self._stack.callback(lambda: analyzed_plan(valid).rdd().unpersist(False))
        return valid

    def _failing_numbers(
        self, checks: Sequence[Check], rows: DataFrame | None = None
    ) -> pa.Int64Array:
        """Returns the numbers of the rows that fail a check, in order. Keeps `rows` in memory."""
        numbers = pa.array([], pa.int64())
        if not checks:
            return numbers
        if rows is not None:
            rows.persist(StorageLevel.MEMORY_AND_DISK_DESER)
            self._stack.callback(rows.unpersist)
        for check in checks:
            self.check_stop()
            numbers = pa.concat_arrays([numbers, check.numbers()])
        return pc.unique(numbers).sort()

    def _report(self, failures: _Failures, number: int, name: str) -> None:
        spool = self.builder.make_spool(failures.node, self.query, failures.stage)
        for part, (table, errors) in enumerate(failures.parts()):
            self.check_stop()
            writer = spool.begin(number, f"{name}-{part}")
            (batch,) = table.to_batches()
            for index, error in enumerate(errors):
                writer.add(row_payload(batch, index), error)
            writer.close()


def branch_of(builder: Builder, query: Query, sink: Node) -> Query:
    """Returns a query with only the batch nodes upstream of a sink."""
    above = upstream([sink.name], builder.plan.nodes)
    return replace(query, batch_nodes=tuple(n for n in query.batch_nodes if n in above))


def _select(rows: DataFrame, columns: Sequence[str]) -> DataFrame:
    return rows.select(*map(named, columns))


def _join(rows: DataFrame, numbers: pa.Array, how: str) -> DataFrame:
    """Returns the rows with or without these numbers, in order and in the same partitions."""
    listed = rows.sparkSession.createDataFrame(pa.table({ROW: numbers}))
    return rows.join(broadcast(listed), ROW, how)
