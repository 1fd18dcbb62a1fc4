"""The table that the changes of a node lead to."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from penstock.sdk.operations import Operation

Row = Mapping[str, Any]


def result_table(changes: Sequence[Row], key: Sequence[str], operation: str | None) -> list[Row]:
    """Returns the rows that remain after changes, without the operation column.

    A row replaces the row with the same `key`, and a delete removes it. Without a key a delete, or
    the row before an update, removes one equal row.
    """
    table: dict[str, list[Row]] = {}
    for change in changes:
        row = {name: value for name, value in change.items() if name != operation}
        kind = change.get(operation) if operation else None
        identity = _text([row.get(name) for name in key] if key else row)
        rows = table.setdefault(identity, [])
        if kind == Operation.DELETE:
            rows[:] = rows[1:]
        elif kind == Operation.UPDATE_BEFORE:
            rows[:] = [] if key and rows == [row] else rows if key else rows[1:]
        elif key:
            rows[:] = [row]
        else:
            rows.append(row)
    return [row for rows in table.values() for row in rows]


def _text(value: Any) -> str:
    return json.dumps(value, default=repr, sort_keys=True)
