"""Input of a test case: sources with the given rows or payloads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from penstock.core.errors import PlanError
from penstock.core.text import did_you_mean
from penstock.engine.sources.sentinel import sentinel
from penstock.plan.model import Plan
from penstock.plan.node import Node
from penstock.plan.operation_columns import with_operation
from penstock.sdk.columns.json_mark import is_json
from penstock.sdk.columns.json_text import text_value
from penstock.sdk.columns.rows import infer_rows
from penstock.spec.case_models import Given, Rows
from penstock.spec.node_models import SourceSpec
from penstock.spec.source_map import Route
from penstock.testing.given_source import Batch, GivenSource
from penstock.testing.given_table import GivenTable
from penstock.testing.values import ConversionError, convert_value


@dataclass(frozen=True)
class CaseInput:
    """The input of a test case. `route` leads to `given` in the pipeline.

    A source without input delivers no rows, and a dynamic table starts empty; a static table of
    `type: memory` keeps its own rows. Undeclared columns are the pinned columns of the
    source, or are inferred from the input.
    """

    plan: Plan
    given: Mapping[str, Given | Rows]
    route: Route
    pinned_schemas: Mapping[str, pa.Schema]

    def build_sources(
        self, *, close_windows: bool, row_by_row: bool = False
    ) -> dict[str, GivenSource]:
        """Returns the sources by name, all with the same number of batches.

        `close_windows` appends the sentinel row. `row_by_row` makes each row a batch and keeps
        empty batches. Raises PlanError if a value does not have the type of its column.
        """
        inputs: dict[str, tuple[Node, pa.Schema, list[Batch]]] = {}
        for node in self.plan.of("source"):
            if node.dynamic_table is not None:
                continue
            if node.static and node.type == "memory" and node.name not in self.given:
                continue
            columns = self._columns(node)
            batches = self._batches(node, columns)
            if row_by_row and not node.static:
                batches = [
                    batch.slice(index, 1)
                    for batch in batches
                    for index in range(max(len(batch), 1))
                ]
            inputs[node.name] = node, columns, batches
        count = max((len(batches) for _, _, batches in inputs.values()), default=1)
        sources = {}
        for name, (node, columns, batches) in inputs.items():
            schema = _with_metadata(node, columns)
            empty = pa.RecordBatch.from_pylist([], schema)
            batches += [empty] * (max(count, 1) - len(batches))
            event_time = _event_time(node)
            end = None
            if close_windows and event_time and not node.static:
                end = sentinel(schema, event_time)
            sources[name] = GivenSource(node.source, batches, end)
            sources[name].columns = columns
        return sources

    def build_tables(self) -> dict[str, GivenTable]:
        """Returns the values that dynamic tables have before the first batch. Raises PlanError."""
        tables = {}
        for node in self.plan.of("source"):
            if node.dynamic_table is not None:
                columns = self._columns(node)
                rows = [row for _, part in self._row_batches(node.name) for row in part]
                batch = self._batch(columns, rows, (*self.route, node.name))
                tables[node.name] = GivenTable(node.source.context, batch)
        return tables

    def _columns(self, node: Node) -> pa.Schema:
        known = node.source.columns or self.pinned_schemas.get(node.name)
        if known is not None:
            return known
        assert isinstance(node.spec, SourceSpec)
        return with_operation(self._inferred_columns(node), node.spec, node.source)

    def _inferred_columns(self, node: Node) -> pa.Schema:
        rows = [row for _, batch in self._row_batches(node.name) for row in batch]
        if rows:
            schema = infer_rows(rows)
            event_time = _event_time(node)
            utc = pa.timestamp("us", tz="UTC")
            return pa.schema([f.with_type(utc) if f.name == event_time else f for f in schema])
        payloads = self._payloads(node)
        format_, inferred = node.source.format, None
        if format_ is not None and payloads:
            inferred = format_.infer_schema(format_.records(payloads).texts)
        if inferred is not None and len(inferred):
            return inferred
        raise PlanError(
            f"{node.label} has no schema and no input to infer one from",
            code="missing-schema", where=node.where,
            hint="Declare the columns, as in schema: id LONG, name STRING, at TIMESTAMP.",
        )  # fmt: skip

    def _batches(self, node: Node, columns: pa.Schema) -> list[Batch]:
        payloads = self._payloads(node)
        if payloads is not None:
            if node.source.format is None:
                where = self.plan.pipeline.source_map.key((*self.route, node.name, "payloads"))
                raise PlanError(
                    f"expected rows, found payloads: {node.label} has no format",
                    code="no-format", where=where,
                    hint='Replace "payloads" by "rows", or set the format of the source.',
                )  # fmt: skip
            return [payloads]
        schema = _with_metadata(node, columns)
        return [self._batch(schema, rows, route) for route, rows in self._row_batches(node.name)]

    def _payloads(self, node: Node) -> pa.BinaryArray | None:
        given = self.given.get(node.name)
        if not isinstance(given, Given) or given.payloads is None:
            return None
        route = (*self.route, node.name, "payloads")
        payloads = [
            self._convert(payload, pa.binary(), "payload", (*route, index))
            for index, payload in enumerate(given.payloads)
        ]
        return pa.array(payloads, pa.binary())

    def _row_batches(self, name: str) -> list[tuple[Route, Rows]]:
        """Returns the given batches of rows of a source with their routes."""
        given, route = self.given.get(name, []), (*self.route, name)
        if not isinstance(given, Given):
            return [(route, given)]
        if given.batches is not None:
            batches = enumerate(given.batches)
            return [((*route, "batches", index), rows) for index, rows in batches]
        return [((*route, "rows"), given.rows or [])]

    def _batch(self, schema: pa.Schema, rows: Sequence[Mapping[str, Any]], route: Route) -> Batch:
        names = schema.names
        for index, row in enumerate(rows):
            for name in row:
                if name not in names:
                    raise self._error(
                        f'there is no column "{name}"', "unknown-column", (*route, index, name),
                        did_you_mean(name, names),
                    )  # fmt: skip
        columns = [
            pa.array(
                [self._cell(row, field, (*route, index)) for index, row in enumerate(rows)],
                field.type,
            )
            for field in schema
        ]
        return pa.RecordBatch.from_arrays(columns, schema=schema)

    def _cell(self, row: Mapping[str, Any], field: pa.Field, route: Route) -> Any:
        subject = f'column "{field.name}"'
        value = row.get(field.name)
        if is_json(field):
            value = text_value(value, field)
        else:
            value = self._convert(value, field.type, subject, (*route, field.name))
        if value is None and not field.nullable:
            message = f"{subject}: expected a value, found null"
            raise self._error(message, "missing-value", route, None)
        return value

    def _convert(self, value: Any, type_: pa.DataType, subject: str, route: Route) -> Any:
        try:
            return convert_value(value, type_)
        except ConversionError as error:
            message = f"{subject}: {error.message}"
            raise self._error(message, "wrong-type", (*route, *error.route), error.hint) from None

    def _error(self, message: str, code: str, route: Route, hint: str | None) -> PlanError:
        where = self.plan.pipeline.source_map.value(route)
        return PlanError(message, code=code, where=where, hint=hint)


def _event_time(node: Node) -> str | None:
    watermark = None if node.computes_event_time else node.watermark
    return watermark.column if watermark else None


def _with_metadata(node: Node, columns: pa.Schema) -> pa.Schema:
    """Returns the columns of a source together with its metadata columns."""
    available = node.source.metadata_schema()
    metadata = [
        available.field(name).with_name(column).with_nullable(True)
        for column, name in node.source.metadata_columns.items()
    ]
    return pa.schema([*columns, *metadata])
