"""Lines of Graphite: templates, numbers, rows of declared columns, and failures."""

from __future__ import annotations

import datetime as dt
import io
from typing import Any

import pyarrow as pa
import pytest
from pydantic import ValidationError

from penstock.core.errors import DecodeError, PlanError
from penstock.formats.graphite import Graphite, GraphiteConfig
from penstock.formats.graphite.line import parse_seconds, parse_value
from penstock.formats.graphite.points import PointTable
from penstock.formats.graphite.template import Template, parse_templates
from penstock.handlers.metadata import COLUMN_TYPE, field_value, time_column
from penstock.sdk import Read

CPU = "*.cpu.*.percent.* host.measurement.cpu.type.field"
AT = pa.timestamp("us", "UTC")
LONG = pa.schema(
    [("time", AT), ("measurement", pa.string()), ("host", pa.string()), ("field", pa.string()),
     ("value", pa.float64())]
)  # fmt: skip


@pytest.mark.parametrize(
    ("template", "path", "expected"),
    [
        (CPU, "h1.cpu.0.percent.idle",
         ("cpu", {"cpu": "0", "host": "h1", "type": "percent"}, "idle")),
        (CPU, "h1.cpu.0.percent", None),
        ("measurement.field", "m.f", ("m", {}, "f")),
        ("measurement.field", "m.f.g", None),
        ("host.measurement*", "h.cpu.a.b", ("cpu_a_b", {"host": "h"}, "value")),
        ("cpu.* measurement.field*", "cpu.a.b", ("cpu", {}, "a_b")),
        ("cpu.* measurement.field*", "cpux.a", None),
        ("c+u.* measurement.field", "ccu.a", None),
        (".measurement.field", "x.m.f", ("m", {}, "f")),
        ("host.field", "a.b", ("", {"host": "a"}, "b")),
        ("host.host.field", "a.b.c", ("", {"host": "a_b"}, "c")),
        ("host*.field", "a.b", ("", {"host*": "a"}, "b")),
        ("measurement.host host=x,dc=y", "m.h", ("m", {"dc": "y", "host": "h"}, "value")),
        ("m.* measurement.field a=b", "m.f", ("m", {"a": "b"}, "f")),
    ],
)  # fmt: skip
def test_templates(template: str, path: str, expected: Any) -> None:
    metric = Template.parse(template).match(path, "_")
    found = metric and (metric.measurement, dict(metric.tags), metric.field)
    assert found == expected


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("a b c d", 'the template "a b c d" has 4 words, expected 1 to 3'),
        (" ", "has 0 words"),
        ("a.b x=y,z", 'expected NAME=VALUE in the template "a.b x=y,z", found "z"'),
        ("a.b x=y=z", 'found "x=y=z"'),
    ],
)
def test_wrong_templates(template: str, message: str) -> None:
    with pytest.raises(ValidationError) as caught:
        GraphiteConfig(templates=["measurement", template])
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1), ("-1", -1), ("+1", 1), ("007", 7), ("0", 0), ("-0", 0), ("00", 0),
        ("9223372036854775807", 2**63 - 1), ("9223372036854775808", 2.0**63),
        ("0.0", 0.0), ("1.5", 1.5), ("1e3", 1000.0), ("1.", 1.0), (".5", 0.5),
        ("inf", float("inf")), ("-Inf", float("-inf")), ("-9223372036854775808", -(2**63)),
        ("1" * 200, float("1" * 200)),
    ],
)  # fmt: skip
def test_numbers(text: str, value: float) -> None:
    found = parse_value(text)
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    "text",
    ["abc", "", "1_000", "1,5", "0x1A", "1e999", "-1e999", "1e", ".", "٣", "1 ", "nane", "1" * 400],
)  # fmt: skip
def test_wrong_numbers(text: str) -> None:
    with pytest.raises(DecodeError, match=r"is not a number|is out of range"):
        parse_value(text)


@pytest.mark.parametrize("text", ["abc", "1.9", "1e3", "", "9223372036854775808", "1" * 5000])
def test_wrong_times(text: str) -> None:
    with pytest.raises(DecodeError, match="is not an integer number of seconds"):
        parse_seconds(text)


def graphite(**options: Any) -> Graphite:
    return Graphite(GraphiteConfig(templates=["measurement.host.field", "measurement"], **options))


def decoded(schema: pa.Schema, *lines: bytes | None) -> tuple[list[Any], Any, list[Any]]:
    rows, indexes, failures = graphite().decode(pa.array(lines, pa.binary()), schema)
    assert rows.schema == schema
    found = [(index, error.code, error.message) for index, error in failures]
    return rows.to_pylist(), indexes.to_pylist(), found


def test_rows_with_the_name_of_the_field() -> None:
    lines = (
        b"cpu.a.idle 98.5 60",
        b"  cpu.a.user\t7  60\r",
        b"load 1",
        b"load 2 -1",
        b"load 3 5 x",
    )
    rows, indexes, failures = decoded(LONG, *lines)
    at = dt.datetime(1970, 1, 1, 0, 1, tzinfo=dt.UTC)
    assert [tuple(row.values()) for row in rows] == [
        (at, "cpu", "a", "idle", 98.5),
        (at, "cpu", "a", "user", 7.0),
        (None, "load", None, "value", 1.0),
        (None, "load", None, "value", 2.0),
        (None, "load", None, "value", 3.0),
    ]
    assert indexes == [0, 1, 2, 3, 4] and failures == []
    inferred = graphite().infer_schema(pa.array([], pa.binary()))
    assert inferred == LONG


def test_rows_with_a_column_for_each_field() -> None:
    schema = pa.schema([("time", AT), ("idle", pa.float64()), ("user", pa.int32())])
    lines = (b"cpu.a.idle 98 60", b"cpu.a.user 7 60", b"cpu.a.user 7.5 60", b"cpu.a.usr 7 60",
             b"cpu.a.user 3000000000 60")  # fmt: skip
    rows, indexes, failures = decoded(schema, *lines)
    assert [(row["idle"], row["user"]) for row in rows] == [(98.0, None), (None, 7)]
    assert indexes == [0, 1]
    assert [(index, code) for index, code, _ in failures] == [
        (2, "wrong-type"), (3, "missing-column"), (4, "wrong-type")
    ]  # fmt: skip
    assert failures[0][2] == 'column "user" is INT, found 7.5'
    assert failures[1][2] == 'there is no column for the field "usr"'


def test_failures_of_lines() -> None:
    lines = (None, b"x", b"\xff 1", b"a.b 1 60", b"load x 1", b"load 1 x", b"load 1 99999999999999")
    rows, indexes, failures = decoded(LONG, *lines)
    assert (rows, indexes) == ([], [])
    assert [code for _, code, _ in failures] == [
        "no-value", "not-graphite", "not-utf8", "no-template", "not-a-number", "not-a-number",
        "invalid-timestamp",
    ]  # fmt: skip


def test_a_time_that_is_not_null() -> None:
    schema = pa.schema([pa.field("time", AT, nullable=False), ("value", pa.int64())])
    rows, indexes, failures = decoded(schema, b"load 1", b"load 2 0", b"load 3")
    assert [row["value"] for row in rows] == [2] and indexes == [1]
    assert [(index, code) for index, code, _ in failures] == [
        (0, "missing-value"), (2, "missing-value")
    ]  # fmt: skip


def test_files() -> None:
    read = Read()
    content = b"load 1 0\n\nload x 0\r\nload 2 0"
    batches = list(graphite().read_file(io.BytesIO(content), LONG, "f", read))
    found = [row for rows, at in batches for row in zip(rows.column("value"), at, strict=True)]
    assert [(value.as_py(), line.as_py()) for value, line in found] == [(1.0, 1), (2.0, 4)]
    assert [(bad.payload, bad.position, bad.error.code) for bad in read.bad] == [
        (b"load x 0", 3, "not-a-number")
    ]


def test_types_of_columns() -> None:
    for name, kind in (("time", pa.string()), ("host", pa.int64()), ("value", pa.string())):
        for check in (graphite().check_columns, graphite().prepare):
            with pytest.raises(PlanError, match=f'column "{name}" is .*; expected'):
                check(pa.schema([(name, kind)]))
    graphite().check_columns(LONG)


def test_writing() -> None:
    at = dt.datetime(2020, 9, 13, 12, 26, 40, tzinfo=dt.UTC)
    rows = [
        (at, "cpu", "a", "idle", 98.5), (None, "load", None, None, 1.0),
        (at, "cpu", "a.b", "idle", 1.0), (at, "c d", None, None, 1.0),
        (at, "cpu", "a", "idle", None),
        (at.replace(microsecond=1), "cpu", "a", "idle", 1.0),
    ]  # fmt: skip
    given = [dict(zip(LONG.names, row, strict=True)) for row in rows]
    payloads, indexes, failures = graphite().encode(pa.RecordBatch.from_pylist(given, schema=LONG))
    assert payloads.to_pylist() == [b"cpu.a.idle 98.5 1600000000", b"load 1.0"]
    assert indexes.to_pylist() == [0, 1]
    assert [(index, error.code) for index, error in failures] == [
        (2, "no-template"), (3, "no-template"), (4, "no-value"), (5, "invalid-timestamp")
    ]  # fmt: skip
    read = graphite().decode(payloads, LONG).rows.to_pylist()
    assert read == [given[0], {**given[1], "field": "value"}]


def test_a_row_with_several_fields() -> None:
    schema = pa.schema([("host", pa.string()), ("measurement", pa.string()), ("x", pa.int64()),
                        ("y", pa.float64())])  # fmt: skip
    rows = pa.RecordBatch.from_pylist([{"host": "a", "measurement": "m", "x": 1, "y": 0.5}], schema)
    (payload,) = graphite().encode(rows).payloads.to_pylist()
    assert payload == b"m.a.x 1\nm.a.y 0.5"
    file = io.BytesIO()
    writer = graphite().file_writer(file, schema)
    writer.write(rows)
    writer.close()
    assert file.getvalue() == payload + b"\n"
    lines = graphite(framing="lines").rows(pa.array([payload], pa.binary()), schema)
    assert [(row["x"], row["y"]) for row in lines.rows.to_pylist()] == [(1, None), (None, 0.5)]


def test_points_are_merged() -> None:
    table = PointTable(parse_templates(["measurement.field.host"]), lambda: 50)
    text = "m.a.h 1 10\nm.b.h 2 10\nm.a.h 9 10\nm.a.g 4.5 10\nm.a.h 3\n\nm.x 1 1"
    rows, errors = table.parse(text)
    assert rows is not None and time_column(rows.schema) == "time"
    assert [tuple(row.values())[1:] for row in rows.to_pylist()] == [
        ("m", "g", 4.5, None), ("m", "h", 1.0, 2), ("m", "h", 3.0, None)
    ]  # fmt: skip
    assert rows.column("time").cast(pa.int64()).to_pylist() == [10, 10, 50]
    assert [field_value(field, COLUMN_TYPE) for field in rows.schema] == [
        "TIME", "MEASUREMENT", "TAG", "FIELD", "FIELD"
    ]  # fmt: skip
    assert [(line, error.code) for line, error in errors] == [(7, "no-template")]
    assert table.parse(" \n") == (None, [])
