"""Rows of lookup tables after changes."""

from __future__ import annotations

import pyarrow as pa

from penstock.engine.lookups.lookup_rows import apply_changes

ROWS = pa.table({"id": [1, 2, None], "name": ["a", "b", "n"]})
CHANGES = pa.schema([*ROWS.schema, pa.field("_op", pa.string())])


def changed(*changes: tuple[int | None, str | None, str | None]) -> list[tuple[object, ...]]:
    table = pa.Table.from_pylist(
        [dict(zip(CHANGES.names, change, strict=True)) for change in changes], CHANGES
    )
    rows = apply_changes(ROWS, table, ["id"], "_op")
    return [tuple(row.values()) for row in rows.to_pylist()]


def test_the_last_row_of_a_key_remains() -> None:
    assert changed((2, "c", "u"), (3, "d", "i"), (2, "e", "u"), (4, "f", None)) == [
        (1, "a"), (None, "n"), (3, "d"), (2, "e"), (4, "f"),
    ]  # fmt: skip


def test_deleted_rows_and_former_keys_are_removed() -> None:
    assert changed((1, None, "d"), (9, None, "d"), (2, "b", "ub"), (5, "b", "u")) == [
        (None, "n"), (5, "b"),
    ]  # fmt: skip
    assert changed((1, None, "d"), (1, "again", "i"), (None, None, "d")) == [
        (2, "b"), (1, "again"),
    ]  # fmt: skip


def test_rows_without_a_key_are_added() -> None:
    rows = apply_changes(ROWS, ROWS, [], None)
    assert rows.num_rows == 6 and rows.schema == ROWS.schema
