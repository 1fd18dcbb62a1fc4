"""From what a case gives to the sources that deliver it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from penstock.core.errors import PlanError
from penstock.core.text import did_you_mean
from penstock.engine.sentinel import sentinel
from penstock.plan.model import Node, Plan
from penstock.sdk.kit.rows import infer_rows
from penstock.spec.models import Given as GivenSpec
from penstock.spec.models import Rows, SourceSpec
from penstock.spec.nodes import Route
from penstock.testing.given import Batch, Given
from penstock.testing.values import Misfit, typed


@dataclass(frozen=True)
class Feed:
    """The sources of one case, whose `given` stands at `route` of the plan's document.

    A source that the case does not name delivers nothing, but a static table of `type: memory`
    its own rows. Columns that are not declared are those that are pinned, or those of the rows.
    """

    plan: Plan
    given: Mapping[str, GivenSpec | Rows]
    route: Route
    pinned: Mapping[str, pa.Schema]

    def sources(self, *, closing: bool, row_by_row: bool = False) -> dict[str, Given]:
        """The sources by name. With `closing` they end with a row that closes the windows, with
        `row_by_row` each row is a batch of its own, and a batch without rows stays one.

        Raises PlanError at the value that does not fit its column.
        """
        fed: dict[str, tuple[Node, pa.Schema, list[Batch]]] = {}
        for node in self.plan.of("source"):
            if not (node.static and node.type == "memory" and node.name not in self.given):
                columns = self._columns(node)
                batches = self._batches(node, columns)
                if row_by_row and not node.static:
                    batches = [b.slice(at, 1) for b in batches for at in range(max(len(b), 1))]
                fed[node.name] = node, columns, batches
        most = max((len(batches) for _, _, batches in fed.values()), default=1)
        sources = {}
        for name, (node, columns, batches) in fed.items():
            rows = _with_metadata(node, columns)
            nothing = rows.empty_table().to_batches() or [pa.RecordBatch.from_pylist([], rows)]
            batches += nothing * (max(most, 1) - len(batches))
            event_time = _event_time(node)
            end = sentinel(rows, event_time) if closing and event_time else None
            sources[name] = Given(node.source, batches, None if node.static else end)
            sources[name].columns = columns
        return sources

    def _columns(self, node: Node) -> pa.Schema:
        found = node.source.columns or self.pinned.get(node.name)
        if found is not None:
            return found
        _, groups = self._groups(node.name)
        rows = [row for _, group in groups for row in group]
        if rows:
            schema = infer_rows(rows)
            event_time = _event_time(node)
            utc = pa.timestamp("us", tz="UTC")
            return pa.schema([f.with_type(utc) if f.name == event_time else f for f in schema])
        payloads = self._payloads(node)
        form, inferred = node.source.format, None
        if form is not None and payloads:
            inferred = form.infer(form.records(payloads).texts)
        if inferred is not None and len(inferred):
            return inferred
        raise PlanError(
            f"{node.label} has no schema, and the case gives no rows to tell it from",
            code="no-schema", where=node.where,
            hint="declare it, as in schema: id LONG, name STRING, at TIMESTAMP",
        )  # fmt: skip

    def _batches(self, node: Node, columns: pa.Schema) -> list[Batch]:
        payloads = self._payloads(node)
        if payloads is not None:
            if node.source.format is None:
                where = self.plan.pipeline.document.key((*self.route, node.name, "payloads"))
                raise PlanError(
                    f"{node.label} delivers rows, not payloads", code="no-format",
                    where=where, hint="give rows, or give the source a format",
                )  # fmt: skip
            return [payloads]
        schema = _with_metadata(node, columns)
        base, groups = self._groups(node.name)
        return [self._batch(schema, rows, (*base, *route)) for route, rows in groups]

    def _payloads(self, node: Node) -> pa.BinaryArray | None:
        given = self.given.get(node.name)
        if not isinstance(given, GivenSpec) or given.payloads is None:
            return None
        base = (*self.route, node.name, "payloads")
        column = pa.field("payload", pa.binary())
        return pa.array(
            [self._value(each, column, (*base, at)) for at, each in enumerate(given.payloads)],
            pa.binary(),
        )

    def _groups(self, name: str) -> tuple[Route, list[tuple[Route, Rows]]]:
        """The batches of rows that a source is given, with the way to each."""
        given, base = self.given.get(name, []), (*self.route, name)
        if not isinstance(given, GivenSpec):
            return base, [((), given)]
        if given.batches is not None:
            return (*base, "batches"), [((at,), rows) for at, rows in enumerate(given.batches)]
        return (*base, "rows"), [((), given.rows or [])]

    def _batch(self, schema: pa.Schema, rows: Sequence[Mapping[str, Any]], base: Route) -> Batch:
        known = schema.names
        for at, row in enumerate(rows):
            for name in row:
                if name not in known:
                    raise self._mistake(
                        f'there is no column "{name}"', "unknown-column", (*base, at, name),
                        did_you_mean(name, known),
                    )  # fmt: skip
        columns = [
            pa.array(
                [self._cell(row, field, (*base, at)) for at, row in enumerate(rows)], field.type
            )
            for field in schema
        ]
        return pa.RecordBatch.from_arrays(columns, schema=schema)

    def _cell(self, row: Mapping[str, Any], field: pa.Field, route: Route) -> Any:
        value = self._value(row.get(field.name), field, (*route, field.name))
        if value is None and not field.nullable:
            raise self._mistake(f'"{field.name}" may not be null', "missing-value", route, None)
        return value

    def _value(self, value: Any, field: pa.Field, route: Route) -> Any:
        try:
            return typed(value, field.type)
        except Misfit as misfit:
            raise self._mistake(
                f'"{field.name}" {misfit.problem}', "wrong-type", (*route, *misfit.steps),
                misfit.hint,
            ) from None  # fmt: skip

    def _mistake(self, message: str, code: str, route: Route, hint: str | None) -> PlanError:
        document = self.plan.pipeline.document
        return PlanError(message, code=code, where=document.value(route), hint=hint)


def _event_time(node: Node) -> str | None:
    assert isinstance(node.spec, SourceSpec)
    return node.spec.watermark.column if node.spec.watermark else None


def _with_metadata(node: Node, columns: pa.Schema) -> pa.Schema:
    """The columns that a row of a source has in SQL, and so in a case."""
    offered = node.source.metadata()
    metadata = [
        offered.field(name).with_name(column).with_nullable(True)
        for column, name in node.source.metadata_columns.items()
    ]
    return pa.schema([*columns, *metadata])
