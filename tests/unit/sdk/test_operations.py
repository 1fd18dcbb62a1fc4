"""Operations of rows: columns of changes, and batches that keep the rows of an update together."""

from __future__ import annotations

import pyarrow as pa
import pytest

from penstock.sdk.operations import add_operation, whole_updates


def batch(*operations: str) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"op": pa.array(operations, pa.string())})


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([["i", "ub"], ["u", "ub"], ["u"]], [["i"], ["ub", "u"], ["ub", "u"]]),
        ([["ub"], [], ["u"]], [[], [], ["ub", "u"]]),
        ([["u"], ["ub"]], [["u"], [], ["ub"]]),
        ([], []),
    ],
    ids=["pairs", "empty", "end", "none"],
)
def test_a_batch_holds_whole_updates(given: list[list[str]], expected: list[list[str]]) -> None:
    batches = whole_updates([batch(*each) for each in given], "op")
    assert [rows.column("op").to_pylist() for rows in batches] == expected
    unchanged = whole_updates([batch(*each) for each in given], None)
    assert [rows.column("op").to_pylist() for rows in unchanged] == given


def test_columns_of_changes_are_nullable() -> None:
    columns = pa.schema([pa.field("id", pa.int32(), nullable=False)])
    added = add_operation(columns, "_op")
    assert added == pa.schema([("id", pa.int32()), ("_op", pa.string())])
    assert add_operation(added, "_op") == added
