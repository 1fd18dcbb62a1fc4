"""Evaluation of pushed-down predicates with the semantics of Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.sdk.record import Conjunct

_COMPARE: Mapping[str, Callable[[pa.Array, pa.Scalar], pa.BooleanArray]] = {
    "=": pc.equal, "!=": pc.not_equal, "<": pc.less, "<=": pc.less_equal,
    ">": pc.greater, ">=": pc.greater_equal,
}  # fmt: skip


def matching(rows: pa.RecordBatch, conjuncts: Sequence[Conjunct]) -> pa.BooleanArray:
    """Returns whether each row matches all conjuncts (at least one). Null counts as no match.

    Literals have the type of their column and are not NaN.
    """
    return reduce(
        pc.and_, (_matches(rows.column(conjunct.column), conjunct) for conjunct in conjuncts)
    )


def _matches(column: pa.Array, conjunct: Conjunct) -> pa.BooleanArray:
    op, value = conjunct.op, conjunct.value
    if op == "null":
        return column.is_null()
    if op == "notnull":
        return column.is_valid()
    if op == "in":
        return pc.is_in(column, pa.array(value, column.type))
    result = _COMPARE[op](column, pa.scalar(value, column.type))
    if op in (">", ">=") and pa.types.is_floating(column.type):
        return pc.or_(result, pc.is_nan(column))  # Spark: NaN is greater than any number
    return result


def conjunct_sql(conjunct: Conjunct) -> str:
    """Returns a conjunct as SQL."""
    if conjunct.op in ("null", "notnull"):
        return f"{conjunct.column} IS {'NOT ' if conjunct.op == 'notnull' else ''}NULL"
    if conjunct.op == "in":
        return f"{conjunct.column} IN ({', '.join(map(_literal, conjunct.value))})"
    return f"{conjunct.column} {conjunct.op} {_literal(conjunct.value)}"


def _literal(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return str(value)
    text = str(value).removesuffix("+00:00").replace("'", "''")
    return text if value.__class__.__name__ == "Decimal" else f"'{text}'"
