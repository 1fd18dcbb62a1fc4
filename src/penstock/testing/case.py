"""Test cases: execution of the pipeline, and comparison with the expected output."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from penstock.core.errors import PenstockError, PlanError
from penstock.core.files.temporary import temporary_directory
from penstock.core.text import did_you_mean
from penstock.spec.case_models import ExpectedRows, Rows
from penstock.spec.source_map import Route
from penstock.testing.case_definition import CaseDefinition
from penstock.testing.difference import Difference, Row, compare_rows
from penstock.testing.report import format_result
from penstock.testing.result import (
    DeadLetterDifference,
    Result,
    compare_dead_letters,
    matches_error,
)
from penstock.testing.result_table import result_table
from penstock.testing.values import ConversionError, convert_value

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from penstock.runtime.preview import Preview


RunMode = Literal["as_given", "restarted", "row_by_row"]
"""The batches of a run: as given, with a restart after the first one, or one row per batch with a
restart after the second one."""
_RESTARTS: Mapping[RunMode, int] = {"restarted": 1, "row_by_row": 2}


@dataclass(frozen=True)
class Case(CaseDefinition):
    """An executable test case. `pinned_schemas` are the pinned schemas of the plan by source."""

    pinned_schemas: Mapping[str, pa.Schema] = field(default_factory=dict)

    def run(self, session: SparkSession, mode: RunMode = "as_given") -> Result:
        """Runs the case in a new session of the same Spark application, with temporary state."""
        started = time.perf_counter()
        expected = self.spec.error
        differences: dict[str, Difference] = {}
        dead_letters = DeadLetterDifference()
        try:
            preview = self._preview(session, mode)
            error = preview.error
            if error is None and expected is None:
                differences = self._compare_rows(preview.tables)
                dead_letters = compare_dead_letters(
                    self.spec.dead_letters or (), preview.dead_letters.to_pylist()
                )
        except PenstockError as raised:
            error = raised
        error_missing = expected is not None and error is None
        if expected is not None and error is not None and matches_error(expected, error):
            error = None
        seconds = time.perf_counter() - started
        return Result(self, seconds, differences, dead_letters, error, error_missing)

    def check(self, session: SparkSession, mode: RunMode = "as_given") -> None:
        """Runs the case. Raises AssertionError with a report if the case fails."""
        result = self.run(session, mode)
        assert result.passed, format_result(result)

    def _preview(self, session: SparkSession, mode: RunMode) -> Preview:
        from penstock.engine.build import Builder
        from penstock.engine.catalyst.columns import sink_schema
        from penstock.engine.checks.column_types import column_types
        from penstock.plan.rewrite import isolate_tables, replace_sources
        from penstock.runtime.capture import capture_nodes
        from penstock.runtime.preview import Preview, PreviewRun
        from penstock.testing.case_input import CaseInput

        case_session = session.newSession()
        for name, value in self.plan.spec.runtime.spark.items():
            if case_session.conf.isModifiable(name):
                text = str(value).lower() if isinstance(value, bool) else str(value)
                case_session.conf.set(name, text)
        with temporary_directory() as directory:
            plan, captures = capture_nodes(self.plan, self.nodes_to_capture())
            # The sentinel row of a source cannot pass a transform that computes the event time.
            closes_later = any(node.computes_event_time for node in plan.nodes.values())
            close_windows = bool(plan.with_windows) and not closes_later
            route = ("tests", self.index, "given")
            case_input = CaseInput(plan, self.spec.given, route, self.pinned_schemas)
            sources = case_input.build_sources(
                close_windows=close_windows, row_by_row=mode == "row_by_row"
            )
            plan = replace(replace_sources(plan, sources), state=directory)
            plan = isolate_tables(plan, case_input.build_tables())
            for stop_before in (_RESTARTS[mode], None) if mode in _RESTARTS else (None,):
                run = PreviewRun(plan, case_session, directory, stop_before=stop_before)
                builder = Builder(
                    plan, case_session, run.state.spool, with_sentinel=close_windows,
                    checks_rows=True,
                )  # fmt: skip
                run.run(builder, "closed" if close_windows else "caught_up")
            if closes_later and plan.with_windows and run.error is None:
                run.run(replace(builder, sentinel_only=True), "closed", plan.with_windows)
            tables = {}
            for name, capture in captures.items():
                table = capture.table
                expectation = self.spec.expect.get(name, [])
                rows_expected = any(rows for _, rows in _parts(expectation))
                if table is None and run.error is None and rows_expected:
                    input_name = plan.nodes[capture.context.node].inputs[0]
                    table = sink_schema(column_types(builder)[input_name]).empty_table()
                tables[name] = table
            return Preview(tables, run.dead_letters(), run.error)

    def _compare_rows(self, tables: Mapping[str, pa.Table]) -> dict[str, Difference]:
        """Returns the differences by node; of a part of a map by `NODE.table` or `NODE.changes`."""
        differences = {}
        for name, expectation in self.spec.expect.items():
            node, table = self.plan.nodes[name], tables[name]
            key = node.sink.primary_key if node.kind == "sink" else node.primary_key
            changes: Sequence[Row] = table.to_pylist() if table is not None else []
            for part, rows in _parts(expectation):
                route = ("expect", name, *part)
                label = ".".join((name, *part))
                expected = self._convert_rows(name, route, rows, table)
                in_table = part == ("table",)
                actual = result_table(changes, key, node.operation) if in_table else changes
                ordered = self.spec.ordered and not in_table
                differences[label] = compare_rows(
                    expected, actual, ordered=ordered, route=route, operation=node.operation
                )
        return differences

    def _convert_rows(
        self, node: str, rows_route: Route, rows: Sequence[Row], table: pa.Table
    ) -> list[Row]:
        expected: list[Row] = []
        for index, row in enumerate(rows):
            values: dict[str, Any] = {}
            for name, value in row.items():
                route = (*rows_route, index, name)
                if name not in table.column_names:
                    raise PlanError(
                        f'"{node}" has no column "{name}"', code="unknown-column",
                        where=self.locate(*route), hint=did_you_mean(name, table.column_names),
                    )  # fmt: skip
                try:
                    values[name] = convert_value(value, table.schema.field(name).type)
                except ConversionError as error:
                    raise PlanError(
                        f'column "{name}": {error.message}', code="wrong-type",
                        where=self.locate(*route, *error.route), hint=error.hint,
                    ) from None  # fmt: skip
            expected.append(values)
        return expected


def _parts(expectation: ExpectedRows | Rows) -> list[tuple[tuple[str, ...], Rows]]:
    """Returns the expected rows of a node, each with its key below the node."""
    if not isinstance(expectation, ExpectedRows):
        return [((), expectation)]
    parts = [(("table",), expectation.table), (("changes",), expectation.changes)]
    return [(part, rows) for part, rows in parts if rows is not None]
