"""The recorded cases of stream-data-processor as rows of one stream, and options of `handlers`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from penstock.handlers.metadata import TIME_COLUMN, TIME_UNIT, field_value, group_of, schema_value
from penstock.testing.handler_cases.case_file import HandlerCase, Reference, read_cases
from penstock.testing.handler_cases.handlers import HANDLERS
from penstock.testing.handler_cases.options import parse_options
from penstock.testing.handler_cases.place import Place
from penstock.testing.handler_cases.run import _run

RECORDED = Path(__file__).parents[1] / "golden" / "handlers" / "recorded.json"
CASE, BATCH = "case", "batch_number"
MICROSECONDS = pa.timestamp("us", "UTC")


@dataclass(frozen=True)
class RecordedCase:
    """A case: its handlers as options, its batches by call, and the output of the handlers."""

    title: str
    handlers: list[dict[str, Any]]
    calls: list[list[pa.RecordBatch]]
    outputs: list[pa.RecordBatch]
    is_error: bool

    @property
    def options(self) -> dict[str, Any]:
        """The options of the transform."""
        schemas = [batch.schema for call in self.calls for batch in call]
        times = {schema_value(schema, TIME_COLUMN) for schema in schemas} - {None}
        measurements = {schema_value(schema, "measurement_column_name") for schema in schemas}
        group = dict.fromkeys(name for schema in schemas for name in group_of(schema))
        found: dict[str, Any] = {
            "by": [CASE], "batch": [BATCH], "time": next(iter(times), None),
            "measurement": next(iter(measurements - {None}), None),
            "handlers": [*([{"type": "group", "by": [*group]}] if group else []), *self.handlers],
        }  # fmt: skip
        return found

    def rows(self, schema: pa.Schema) -> pa.RecordBatch:
        """Returns the rows of all batches, with a row that ends the last batch."""
        joins = any(each["type"] == "join" for each in self.handlers)
        parts, number = [], 0
        for call in self.calls:
            for batch in call:
                number += not joins
                parts.append(widened(batch, schema, self.title, number))
            number += joins
        end = [{CASE: self.title, BATCH: number + 1}]
        return pa.Table.from_batches([*parts, pa.RecordBatch.from_pylist(end, schema)])


def widened(batch: pa.RecordBatch, schema: pa.Schema, case: str, number: int) -> pa.RecordBatch:
    """Returns a batch in the columns of a stream."""
    group = {name: pa.scalar(value) for name, value in group_of(batch.schema).items()}
    constants = {**group, CASE: pa.scalar(case), BATCH: pa.scalar(number)}
    arrays = []
    for field in schema:
        if field.name in batch.schema.names:
            arrays.append(plain(batch.column(field.name)).cast(field.type))
        elif field.name in constants:
            arrays.append(pa.repeat(constants[field.name], batch.num_rows))
        else:
            arrays.append(pa.nulls(batch.num_rows, field.type))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def plain(column: pa.Array) -> pa.Array:
    """Returns a column with the types that Spark has."""
    return column.cast(MICROSECONDS) if pa.types.is_timestamp(column.type) else column


def stream_schema(cases: list[RecordedCase]) -> pa.Schema:
    """Returns the columns of all cases; two cases must not disagree about a type."""
    fields = [pa.field(CASE, pa.string()), pa.field(BATCH, pa.int64())]
    for case in cases:
        for batch in [batch for call in case.calls for batch in call]:
            absent = group_of(batch.schema).keys() - {*batch.schema.names}
            fields += [pa.field(name, pa.string()) for name in sorted(absent)]
            fields += [pa.field(f.name, plain(pa.nulls(0, f.type)).type) for f in batch.schema]
    return pa.unify_schemas([pa.schema([each]) for each in fields])


def recorded_cases() -> Iterator[RecordedCase]:
    """Yields the cases of handlers, without those of parsers."""
    outputs: dict[str, list[pa.RecordBatch]] = {}
    for case in read_cases(str(RECORDED)).cases:
        assert isinstance(case, HandlerCase)
        run = _run(case, outputs)
        outputs[case.title] = [batch for _, batch in run.batches]
        if case.parser is None:
            calls = [
                [
                    batch
                    for item in call
                    for batch in (outputs[item.title] if isinstance(item, Reference) else [item])
                ]
                for call in case.calls
            ]
            is_error = any("ERROR" in status for status in run.status)
            yield RecordedCase(case.title, _handlers(case), calls, outputs[case.title], is_error)


def _handlers(case: HandlerCase) -> list[dict[str, Any]]:
    document = case.document
    kinds = document["handler"].split("|")
    known = {}
    for kind in kinds:
        known.update(HANDLERS[kind].options)
    values = parse_options(document["options"] or "", known, Place("x", "{}"))
    units = {field_value(f, TIME_UNIT) for call in case.calls for b in call
             if not isinstance(b, Reference) for f in b.schema} - {None}  # fmt: skip
    return [_handler(kind, values, units) for kind in kinds]


def _handler(kind: str, v: dict[str, Any], units: set[str | None]) -> dict[str, Any]:
    def seconds(name: str) -> str:
        return f"{v[name]}s"

    window: dict[str, Any] = {}
    if "period" in v:
        window = {
            "period": seconds("period"), "every": seconds("every"), "fill_period": v["fill"],
        }  # fmt: skip
    match kind:
        case "aggregate":
            function, name = v["time"]
            columns = [
                {"function": each.function, "column": each.column, "as": each.result}
                for each in v["agg"]
            ]
            return {"type": kind, "columns": columns, "time": function, "time_as": name}
        case "group" | "sort":
            return {"type": kind, "by": v["by"]}
        case "default":
            named = {n: d.value.as_py() for k in ("int",) for n, d in v[k].items()}
            return {"type": kind, "columns": named}
        case "join":
            return {"type": kind, "on": v["on"], "tolerance": seconds("tol")}
        case "window":
            return {"type": kind, **window}
        case "dwindow":
            unit = {"unit": "s"} if units == {"SECOND"} else {}
            return {
                "type": "dynamic_window", **window, **unit,
                "period_column": v["pc"], "every_column": v["ec"],
            }  # fmt: skip
        case "derivative":
            columns = {n: {"column": c.column, "order": c.order} for n, c in v["cases"].items()}
            return {
                "type": kind, "columns": columns, "no_wait": v["nowait"],
                "unit": f"{v['unit'] // 10**6}ms", "neighbourhood": f"{v['nb'] // 10**6}ms",
            }  # fmt: skip
    assert kind == "threshold"
    decrease = {
        "trigger": v["dectrig"], "factor": v["dec"], "duration": seconds("decafter"),
    }  # fmt: skip
    return {
        "type": kind, "column": v["watch"], "as": v["as"], "default": v["default"],
        "increase": {"factor": v["inc"], "duration": seconds("incafter")},
        "decrease": decrease if v["decafter"] else None, "min": v["min"], "max": v["max"],
    }  # fmt: skip


def expected_rows(case: RecordedCase) -> list[dict[str, Any]]:
    """Returns the rows of the output of the handlers, with the types that Spark has."""
    rows = []
    for batch in case.outputs:
        columns = {n: plain(c) for n, c in zip(batch.schema.names, batch.columns, strict=True)}
        columns = {n: c for n, c in columns.items() if not pa.types.is_null(c.type)}
        rows += [{**group_of(batch.schema), **row} for row in pa.table(columns).to_pylist()]
    return rows
