"""Which rows meet the conjuncts of a read, with exactly Spark's answers."""

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


def meeting(rows: pa.RecordBatch, conjuncts: Sequence[Conjunct]) -> pa.BooleanArray:
    """Whether each row meets all conjuncts (at least one); null counts as no.

    Literals are of their column's type, and NaN is none of them.
    """
    return reduce(pc.and_, (_meeting(rows.column(each.column), each) for each in conjuncts))


def _meeting(column: pa.Array, conjunct: Conjunct) -> pa.BooleanArray:
    op, value = conjunct.op, conjunct.value
    if op == "null":
        return column.is_null()
    if op == "notnull":
        return column.is_valid()
    if op == "in":
        return pc.is_in(column, pa.array(value, column.type))
    found = _COMPARE[op](column, pa.scalar(value, column.type))
    if op in (">", ">=") and pa.types.is_floating(column.type):
        return pc.or_(found, pc.is_nan(column))  # to Spark, NaN is greater than any number
    return found


def shown(conjunct: Conjunct) -> str:
    """The conjunct as it would be written in SQL."""
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
