"""Rows compared with a target's schema."""

from __future__ import annotations

import pyarrow as pa
import pytest

from penstock.sdk import compare_schemas
from penstock.sdk.schema_changes import promote


@pytest.mark.parametrize(
    ("first", "second", "promoted"),
    [
        (pa.int32(), pa.int64(), pa.int64()),
        (pa.int32(), pa.float64(), pa.float64()),
        (pa.int64(), pa.float64(), None),
        (pa.decimal128(5, 2), pa.decimal128(9, 3), pa.decimal128(9, 3)),
        (pa.timestamp("us", "UTC"), pa.timestamp("us"), None),
        (pa.string(), pa.int64(), None),
    ],
)
def test_types_are_promoted_without_loss(
    first: pa.DataType, second: pa.DataType, promoted: pa.DataType | None
) -> None:
    assert promote(first, second) == promote(second, first) == promoted


def test_equal_schemas_need_no_changes() -> None:
    rows = pa.schema([("id", pa.int32()), ("name", pa.string())])
    target = pa.schema([("name", pa.string()), ("id", pa.int64()), ("note", pa.string())])
    assert not compare_schemas(rows, target)


def test_changes_are_grouped_and_described() -> None:
    rows = pa.schema([("id", pa.int64()), ("new", pa.string()), ("at", pa.string())])
    required = pa.field("user", pa.string(), nullable=False)
    target = pa.schema([("id", pa.int32()), ("at", pa.date32()), required])
    changes = compare_schemas(rows, target)
    assert [(each.name, each.promoted) for each in changes.widened] == [("id", pa.int64())]
    assert [each.name for each in changes.missing] == ["new"]
    assert [each.name for each in changes.incompatible] == ["at", "user"]
    assert str(changes) == (
        '"at" is STRING in the rows and DATE in the target; '
        '"user" is required by the target and missing in the rows; '
        '"new" STRING is missing in the target; '
        '"id" is BIGINT in the rows and INT in the target'
    )
