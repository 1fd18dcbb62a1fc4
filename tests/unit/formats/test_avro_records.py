"""Records of Avro with unions, recursion and defaults, beside fastavro."""

from __future__ import annotations

import io
import json
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from format_samples import read
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.core.errors import OptionError, PlanError
from penstock.formats.avro import Avro, AvroConfig
from penstock.formats.avro.datum import codec, parse_schema
from penstock.formats.avro.defaults import convert_defaults
from penstock.formats.avro.rows import RowReader
from penstock.sdk.columns.avro_types import arrow_schema
from penstock.sdk.columns.json_mark import json_field

TREE: dict[str, Any] = {
    "type": "record",
    "name": "shop.Tree",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "value", "type": ["null", "string", "long", {"type": "array", "items": "int"}]},
        {"name": "child", "type": ["null", "shop.Tree"]},
        {"name": "tags", "type": {"type": "map", "values": ["string", "double"]}},
        {"name": "huge", "type": {"type": "bytes", "logicalType": "decimal", "precision": 50}},
    ],
}
AVRO = Avro(AvroConfig())
_leaf = st.fixed_dictionaries(
    {
        "id": st.integers(-(2**63), 2**63 - 1),
        "value": st.none() | st.text("aü", max_size=3) | st.integers(0, 9) | st.just([1, 2]),
        "tags": st.dictionaries(st.text("k", max_size=2), st.text("v", max_size=2) | st.just(0.5)),
        "huge": st.just(Decimal(7)),
    }
)
_tree = st.recursive(
    _leaf.map(lambda leaf: {**leaf, "child": None}),
    lambda inner: st.tuples(_leaf, inner).map(lambda pair: {**pair[0], "child": pair[1]}),
    max_leaves=5,
)


def datums(schema: Any, *values: Any) -> pa.BinaryArray:
    parsed, payloads = fastavro.parse_schema(schema), []
    for value in values:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, parsed, value)
        payloads.append(out.getvalue())
    return pa.array(payloads, pa.binary())


def container(schema: Any, *values: Any) -> bytes:
    out = io.BytesIO()
    fastavro.writer(out, schema, values)
    return out.getvalue()


def plain(value: Any) -> Any:
    """A value without the fields that are not declared."""
    return value and {"id": value["id"]}


COLUMNS = pa.schema(
    [
        ("id", pa.int64()),
        ("child", pa.struct([("id", pa.int64()), ("child", pa.struct([("id", pa.int64())]))])),
        ("value", pa.string()),
        json_field(pa.field("tags", pa.string())),
    ]
)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(values=st.lists(_tree, min_size=1, max_size=5))
def test_declared_parts_of_recursive_records_and_text_of_unions(values: list[Any]) -> None:
    format_ = Avro(AvroConfig(schema=TREE))
    format_.check_columns(COLUMNS)
    decoded = format_.decode(datums(TREE, *values), COLUMNS)
    assert not decoded.failures
    in_file, _, asked = read(AVRO, container(TREE, *values), COLUMNS)
    assert (in_file, asked.bad) == (decoded.rows.to_pylist(), [])
    for value, row in zip(values, decoded.rows.to_pylist(), strict=True):
        child = value["child"]
        grandchild = child and plain(child["child"])
        assert row["child"] == (child and {**plain(child), "child": grandchild})
        text = value["value"]
        assert row["value"] == (
            text if text is None or isinstance(text, str) else json.dumps(text).replace(" ", "")
        )
        assert json.loads(row["tags"]) == value["tags"]


def test_types_that_are_no_columns_are_errors_unless_others_are_declared() -> None:
    format_ = Avro(AvroConfig(schema=TREE))
    with pytest.raises(PlanError, match="a union of 3 types") as caught:
        format_.declared_schema()
    assert "STRING or VARIANT" in str(caught.value.hint)
    for name, type_ in (("huge", pa.decimal128(38, 0)), ("child", pa.int64())):
        with pytest.raises(PlanError, match=r"50 digits|recursive|union"):
            format_.check_columns(pa.schema([(name, type_)]))
    format_.check_columns(pa.schema([("id", pa.int64())]))


@pytest.mark.parametrize("as_json", [False, True])
def test_values_that_are_too_deep_are_errors(as_json: bool) -> None:
    """The native reader of fastavro overflows its stack."""
    schema = {
        "type": "record", "name": "R", "fields": [{"name": "next", "type": ["null", "R"]}],
    }  # fmt: skip
    columns = pa.schema([("value", pa.string())] if as_json else [("next", pa.struct([]))])
    payloads = pa.array([b"\x02" * 50 + b"\0", b"\x02" * 100_000 + b"\0"])
    decoded = Avro(AvroConfig(schema=schema, as_json=as_json)).decode(payloads, columns)
    assert decoded.rows.num_rows == 1
    assert [failure.error.code for failure in decoded.failures] == ["too-deep"]


PLACED = {
    "type": "record", "name": "shop.Placed",
    "fields": [{"name": "id", "type": "long"}, {"name": "total", "type": "double"}],
}  # fmt: skip
SHIPPED = {
    "type": "record", "name": "shop.Shipped",
    "fields": [{"name": "id", "type": "long"}, {"name": "carrier", "type": "string"}],
}  # fmt: skip
EVENTS = [
    ("shop.Placed", {"id": 1, "total": 2.5}),
    ("shop.Shipped", {"id": 1, "carrier": "sea"}),
    ("shop.Placed", {"id": 2, "total": 1.0}),
]


def test_a_union_of_records_with_the_name_of_each() -> None:
    format_ = Avro(AvroConfig(schema=[PLACED, SHIPPED], type_column="kind"))
    columns = format_.declared_schema()
    assert columns is not None
    assert columns.equals(
        pa.schema(
            [
                pa.field("id", pa.int64(), nullable=False),
                ("total", pa.float64()),
                ("carrier", pa.string()),
                pa.field("kind", pa.string(), nullable=False),
            ]
        )
    )
    payloads = datums([PLACED, SHIPPED], *EVENTS).to_pylist()
    decoded = format_.decode(pa.array([*payloads, b"\x04\x02", payloads[0] + b"x"]), columns)
    rows = [{"total": None, "carrier": None, **row, "kind": kind} for kind, row in EVENTS]
    assert decoded.rows.to_pylist() == rows
    assert [failure.error.code for failure in decoded.failures] == ["not-avro", "not-avro"]
    in_file, _, _ = read(format_, container([PLACED, SHIPPED], *EVENTS), columns)
    assert in_file == rows


def test_containers_of_several_records() -> None:
    format_ = Avro.create(AvroConfig(framing="container", type_column="kind"))
    columns = pa.schema([("id", pa.int32()), ("kind", pa.string()), ("carrier", pa.string())])
    large = ("shop.Placed", {"id": 2**40, "total": 0.0})
    payloads = [
        container([PLACED, SHIPPED], *EVENTS[:2], large), container(SHIPPED, EVENTS[1][1]),
    ]  # fmt: skip
    rows, index, (bad,) = format_.rows(pa.array(payloads), columns)  # type: ignore[attr-defined]
    assert index.to_pylist() == [0, 0, 1]
    assert rows.column("kind").to_pylist() == ["shop.Placed", "shop.Shipped", "shop.Shipped"]
    assert (bad.index, bad.part, bad.error.code) == (0, 2, "wrong-type")
    assert list(fastavro.reader(io.BytesIO(bad.text))) == [large[1]]


def test_a_type_column_must_be_a_column() -> None:
    format_ = Avro(AvroConfig(schema=PLACED, type_column="kind"))
    with pytest.raises(OptionError, match='no column "kind"'):
        format_.check_columns(pa.schema([("id", pa.int64())]))
    with pytest.raises(PlanError, match="several types"):
        other = {**SHIPPED, "fields": [{"name": "id", "type": "string"}]}
        Avro(AvroConfig(schema=[PLACED, other])).declared_schema()


INNER = {
    "type": "record", "name": "Inner",
    "fields": [
        {"name": "p", "type": "int"},
        {"name": "q", "type": "string", "default": "dq"},
        {"name": "z", "type": "bytes", "default": "\u00fe"},
    ],
}  # fmt: skip
DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}
FIXED = {
    "type": "fixed", "name": "D", "size": 2, "logicalType": "decimal", "precision": 4, "scale": 1,
}  # fmt: skip


@pytest.mark.parametrize(
    ("type_", "default", "expected"),
    [
        ("bytes", "\u00ff\u0001", b"\xff\x01"),
        ({"type": "fixed", "name": "F", "size": 2}, "\u00ff\u0000", b"\xff\x00"),
        (DECIMAL, "\u0001\u0000", Decimal("2.56")),
        (DECIMAL, "\u00ff", Decimal("-0.01")),
        (FIXED, "\u0000\u0007", Decimal("0.7")),
        (INNER, {"p": 3}, {"p": 3, "q": "dq", "z": b"\xfe"}),
        (["bytes", "null"], "\u0080", b"\x80"),
        (["null", DECIMAL], None, None),
        (["null", DECIMAL], "\u0001", Decimal("0.01")),
        ({"type": "map", "values": "bytes"}, {"k": "\u0081"}, [("k", b"\x81")]),
        ({"type": "array", "items": INNER}, [{"p": 1, "z": ""}], [{"p": 1, "q": "dq", "z": b""}]),
        ({"type": "enum", "name": "E", "symbols": ["X", "Y"]}, "Y", "Y"),
        ({"type": "long", "logicalType": "timestamp-millis"}, 5, 5),
        ("double", 1, 1.0),
    ],
)
def test_defaults_of_the_reader_schema(type_: Any, default: Any, expected: Any) -> None:
    written = {"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}
    field = {"name": "x", "type": type_, "default": default}
    reader = {**written, "fields": [*written["fields"], field]}  # type: ignore[misc]
    writer, parsed = parse_schema(written), parse_schema(reader)
    columns = arrow_schema(parsed)
    row_reader = RowReader(writer, columns, reader=parsed)
    (payload,) = datums(written, {"a": 1}).to_pylist()
    rows = row_reader.rows([row_reader.read(io.BytesIO(payload))])
    value = rows.column("x")[0].as_py()
    if default == 5:
        value = rows.column("x").cast(pa.int64())[0].as_py()
    assert value == expected


def test_an_endless_default_is_an_error() -> None:
    schema = {"type": "record", "name": "R", "fields": [{"name": "r", "type": "R", "default": {}}]}
    with pytest.raises(PlanError, match="endless"):
        convert_defaults(codec(parse_schema(schema)))
