"""Row numbers as a primary key: `ROW_NUMBER() OVER (PARTITION BY ...)` and conditions on it."""

from __future__ import annotations

from sqlglot import exp

from penstock.sql.parsing import conjuncts
from penstock.sql.selected import Selected

_FIRST: dict[type[exp.Expr], int] = {exp.EQ: 1, exp.LTE: 1, exp.LT: 2}
"""The comparisons of a row number with a constant that only the first row fulfils."""
_FLIPPED: dict[type[exp.Expr], int] = {exp.EQ: 1, exp.GTE: 1, exp.GT: 2}
"""The same of a constant with a row number."""


def numbered_key(select: exp.Select, selected: Selected) -> tuple[str, ...]:
    """Returns the columns with the partition of a row number, and the number as the last one.

    Returns none if a column of the partition is not selected, or for the name of a window.
    """
    if selected.columns is None or selected.has_generators or select.args.get("laterals"):
        return ()
    lower = [column.lower() for column in selected.columns]
    for output in select.expressions:
        window, number = output.unalias(), output.alias_or_name
        if not isinstance(window, exp.Window) or not isinstance(window.this, exp.RowNumber):
            continue
        if window.args.get("alias"):
            continue
        parts = [_selected(each, selected) for each in window.args.get("partition_by") or ()]
        if all(parts) and lower.count(number.lower()) == 1:
            return (*parts, number)
    return ()


def _selected(part: exp.Expr, selected: Selected) -> str:
    """Returns the column of the output with the value of a column of a source, or none."""
    if not isinstance(part, exp.Column) or part.is_star:
        return ""
    name = part.table.lower()
    sources = [i for i, each in enumerate(selected.names) if not name or each == name]
    found = selected.find(sources[0], [part.name], {}) if len(sources) == 1 else ()
    return found[0] if found else ""


def is_first(select: exp.Select, source: str, number: str) -> bool:
    """Returns whether WHERE keeps only rows of a source with the row number 1.

    A name with another qualifier is a field of a struct.
    """
    where = select.args.get("where")
    conditions = conjuncts(where.this) if where is not None else ()
    return any(
        _compares(each, each.left, each.right, _FIRST, (source, number))
        or _compares(each, each.right, each.left, _FLIPPED, (source, number))
        for each in conditions
        if isinstance(each, exp.Binary)
    )


def _compares(
    comparison: exp.Expr, column: exp.Expr, value: exp.Expr,
    limits: dict[type[exp.Expr], int], number: tuple[str, str],
) -> bool:  # fmt: skip
    limit = limits.get(type(comparison))
    if limit is None or not isinstance(column, exp.Column) or not isinstance(value, exp.Literal):
        return False
    source, name = number
    if len(column.parts) > 2 or column.table.lower() not in ("", source):
        return False
    return column.name.lower() == name.lower() and value.is_int and int(value.name) == limit
