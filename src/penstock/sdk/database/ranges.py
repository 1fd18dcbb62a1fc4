"""Ranges of a column, which tasks read in parallel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from itertools import pairwise
from typing import Any

import pyarrow as pa

from penstock.core.errors import OptionError
from penstock.sdk.columns.type_names import sql_name
from penstock.sdk.database.dialect import Dialect

_EPOCH = datetime(1970, 1, 1)
_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True)
class Range:
    """A range of a column: values from `low`, below `high`. None is no bound.

    Nulls are in the range without `low`. NaN, which systems compare differently, is in the range
    without `high`, if the column may have it (`has_nan`).
    """

    column: str
    number: int
    low: Any
    high: Any
    has_nan: bool = False

    def condition(self, dialect: Dialect) -> tuple[str, tuple[Any, ...]]:
        """Returns the condition of the rows of the range, and its parameters."""
        name = dialect.quote(self.column)
        conditions, parameters = [], []
        if self.low is not None:
            is_last = self.has_nan and self.high is None
            beyond = "NOT ({} < {})" if is_last else "{} >= {}"
            conditions.append(beyond.format(name, dialect.parameter))
            parameters.append(self.low)
        if self.high is not None:
            conditions.append(f"{name} < {dialect.parameter}")
            parameters.append(self.high)
        condition = " AND ".join(conditions) or "1 = 1"
        if self.low is None and self.high is not None:
            condition = f"({condition} OR {name} IS NULL)"
        return condition, tuple(parameters)


def ranges_of(
    field: pa.Field, count: int, bounds: tuple[Any, Any], found: Sequence[Any]
) -> list[Range]:
    """Returns ranges of a column, which together have all its rows.

    `bounds` are the options; `found` has the values in place of missing ones. Raises OptionError
    for a column without ranges, and for a bound that is not a value of the column.
    """
    type_ = field.type
    is_number = (
        pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_decimal(type_)
    )
    if not (is_number or pa.types.is_date(type_) or pa.types.is_timestamp(type_)):
        raise OptionError.of(
            "partition_column", code="invalid-option",
            message=f'expected a column of numbers, dates or times, "{field.name}" is '
            f"{sql_name(type_)}",
        )  # fmt: skip
    names = ("lower_bound", "upper_bound")
    given = [_number(bound, type_, name) for name, bound in zip(names, bounds, strict=True)]
    pairs = zip(given, found, strict=True)
    lower, upper = (_number(value, type_, "") if bound is None else bound for bound, value in pairs)
    if lower is None or upper is None or lower >= upper:
        return [Range(field.name, 1, None, None)]
    step = (upper - lower) / count
    inner = [_value(lower + step * index, type_) for index in range(1, count)]
    edges = [None, *dict.fromkeys(inner), None]
    has_nan = pa.types.is_floating(type_)
    return [
        Range(field.name, index, *pair, has_nan) for index, pair in enumerate(pairwise(edges), 1)
    ]


def _number(value: Any, type_: pa.DataType, option: str) -> Fraction | None:
    """Returns a value of a column, or the text of one, as a number."""
    if value is None:
        return None
    try:
        if pa.types.is_date(type_):
            day = date.fromisoformat(value) if isinstance(value, str) else value
            return Fraction(day.toordinal())
        if pa.types.is_timestamp(type_):
            time = datetime.fromisoformat(value) if isinstance(value, str) else value
            plain = time.astimezone(UTC).replace(tzinfo=None) if time.tzinfo else time
            return Fraction((plain - _EPOCH) // _MICROSECOND)
        return Fraction(Decimal(str(value)))
    except (ValueError, AttributeError, InvalidOperation, OverflowError):
        if not option:
            return None
        raise OptionError.of(
            option, message=f"expected a value of {sql_name(type_)}, found {value}",
            code="invalid-option",
        ) from None  # fmt: skip


def _value(number: Fraction, type_: pa.DataType) -> Any:
    """Returns a number as a value of a column."""
    if pa.types.is_floating(type_):
        return float(number)
    whole = number.numerator // number.denominator
    if pa.types.is_date(type_):
        return date.fromordinal(whole)
    if pa.types.is_timestamp(type_):
        time = _EPOCH + whole * _MICROSECOND
        return time.replace(tzinfo=UTC) if type_.tz else time
    if pa.types.is_decimal(type_) and type_.scale:
        scale = 10**type_.scale
        return Decimal(number.numerator * scale // number.denominator).scaleb(-type_.scale)
    return whole
