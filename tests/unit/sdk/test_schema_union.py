"""Columns of several files as the columns of one table."""

from __future__ import annotations

import pyarrow as pa

from penstock.sdk.columns.schema_union import union_schemas


def required(name: str, type_: pa.DataType) -> pa.Field:
    return pa.field(name, type_, nullable=False)


def test_a_column_that_is_nullable_in_one_file_is_nullable() -> None:
    inner = pa.struct([required("a", pa.int32())])
    first = pa.schema([required("id", pa.int32()), required("s", inner), required("k", pa.int8())])
    other = pa.struct([pa.field("a", pa.int64()), pa.field("b", pa.string())])
    second = pa.schema([pa.field("ID", pa.int64()), required("s", other), required("k", pa.int8())])
    expected = pa.struct([pa.field("a", pa.int64()), pa.field("b", pa.string())])
    for schemas, name in (((first, second), "id"), ((second, first), "ID")):
        assert union_schemas(schemas) == pa.schema(
            [pa.field(name, pa.int64()), required("s", expected), required("k", pa.int8())]
        )
