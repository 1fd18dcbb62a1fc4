"""Columns of streams of changes, after changes of the schema of their table."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from penstock.core.errors import Permanent
from penstock.sdk.columns.json_mark import json_field
from penstock.sdk.database.changes.evolution import evolve, widened
from penstock.sdk.database.changes.schemas import SchemaWriter, read_schemas, with_version

COLUMNS = pa.schema([("id", pa.int32()), ("n", pa.int32()), ("s", pa.string())])


def decimal(precision: int, scale: int) -> pa.DataType:
    return pa.decimal128(precision, scale)


@pytest.mark.parametrize(
    ("known", "found", "expected"),
    [
        (pa.int32(), pa.int64(), pa.int64()),
        (pa.int64(), pa.int32(), pa.int64()),
        (pa.int32(), decimal(5, 2), decimal(11, 2)),
        (decimal(5, 4), decimal(10, 2), decimal(12, 4)),
        (decimal(38, 2), decimal(38, 18), None),
        (pa.float32(), pa.float64(), pa.float64()),
        (pa.int32(), pa.float64(), pa.float64()),
        (pa.int64(), pa.float64(), None),
        (decimal(10, 2), pa.float64(), None),
        (pa.list_(pa.int32()), pa.list_(pa.int64()), pa.list_(pa.int64())),
        (pa.string(), pa.binary(), None),
        (pa.string(), pa.int32(), None),
        (pa.bool_(), pa.int8(), None),
        (pa.timestamp("us"), pa.timestamp("us", tz="UTC"), None),
    ],
)
def test_a_type_is_widened_if_it_has_all_values(
    known: pa.DataType, found: pa.DataType, expected: pa.DataType | None
) -> None:
    assert widened(known, found) == expected


def test_columns_only_grow() -> None:
    found = pa.schema([("id", pa.int64()), pa.field("new", pa.string(), False)])
    grown = evolve(COLUMNS, found, table="t", at="0/1")
    assert grown.names == ["id", "n", "s", "new"] and grown.field("id").type == pa.int64()
    assert grown.field("new").nullable
    assert evolve(grown, COLUMNS, table="t", at="0/2") == grown


@pytest.mark.parametrize("name", ["S", "_OP"])
def test_a_name_that_differs_by_case_is_an_error(name: str) -> None:
    with pytest.raises(Permanent, match=f'new column "{name}" of the table "t" at 0/1'):
        evolve(COLUMNS, pa.schema([(name, pa.int32())]), table="t", at="0/1", reserved=["_op"])


def test_text_that_becomes_json_is_an_error() -> None:
    with pytest.raises(Permanent, match="was STRING and is VARIANT"):
        found = pa.schema([json_field(pa.field("s", pa.string()))])
        evolve(COLUMNS, found, table="t", at="0/1")


def test_a_writer_continues_after_the_changes_of_before(tmp_path: Path) -> None:
    """A change is stored once; columns of a source that has some of the changes get the others."""
    more = pa.schema([*COLUMNS, ("more", pa.int32())])
    writer = SchemaWriter(tmp_path, "t", COLUMNS, ("_op",))
    assert writer.changed(COLUMNS, "0/1") is None
    changed = writer.changed(more, "0/1")
    assert changed is not None
    writer.add(7, changed)
    assert writer.changed(more, "0/2") is None
    again = SchemaWriter(tmp_path, "t", COLUMNS, ("_op",))
    assert again.changed(more, "0/3") is None
    assert SchemaWriter(tmp_path, "t", with_version(COLUMNS, 1), ()).changed(more, "0/4")
    assert [(each.position, each.columns) for each in read_schemas(tmp_path)] == [(7, more)]
