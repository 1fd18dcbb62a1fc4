"""Types of computed values that do not depend on their operands."""

from __future__ import annotations

from sqlglot import exp

_SPECIAL = {"BYTE": "TINYINT", "SHORT": "SMALLINT", "INTEGER": "INT", "LONG": "BIGINT"}
_OF_FUNCTIONS: dict[type[exp.Expr], str] = {
    exp.Count: "BIGINT",
    exp.Day: "INT",
    exp.DayOfMonth: "INT",
    exp.DenseRank: "INT",
    exp.Hour: "INT",
    exp.Minute: "INT",
    exp.Month: "INT",
    exp.Quarter: "INT",
    exp.Rank: "INT",
    exp.RowNumber: "INT",
    exp.Second: "INT",
    exp.TimeToStr: "STRING",
    exp.TimestampTrunc: "TIMESTAMP",
    exp.TsOrDsToDate: "DATE",
    exp.Year: "INT",
}
"""The types of functions of Spark, `date_format`, `date_trunc` and `to_date` among them."""


def sql_type(text: str) -> str:
    """Returns the type of Spark SQL that a text names."""
    upper = text.upper()
    return _SPECIAL.get(upper, upper)


def computed_type(value: exp.Expr) -> str:
    """Returns the type of a cast or of a function; none of other values."""
    while isinstance(value, exp.Filter | exp.Window):
        value = value.this
    if isinstance(value, exp.Cast):
        return sql_type(value.to.sql("spark"))
    return _OF_FUNCTIONS.get(type(value), "")
