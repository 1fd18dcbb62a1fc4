"""Values of rows as parameters of statements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from penstock.connectors.jdbc.dialects import JdbcDialect
from penstock.connectors.jdbc.types import ARRAY, JdbcColumn
from penstock.sdk.columns.display import json_of, leaf_text
from penstock.sdk.columns.type_names import is_list
from penstock.sdk.database.values import check_second_digits
from penstock.sdk.java import java_class

Set = Callable[[Any, int, Any], None]
"""Sets a parameter of a statement, by its number."""
_NULL = 0
_MICROSECONDS = 10**6


def set_values(statement: Any, values: Sequence[Any], dialect: JdbcDialect) -> None:
    """Sets the parameters of a statement to values of Python."""
    for index, value in enumerate(values, 1):
        if isinstance(value, date) and dialect.times_as_texts:
            value = str(value)
        elif isinstance(value, datetime) and dialect.sends_times_as_texts:
            value = f"{_in_utc(value):%Y-%m-%d %H:%M:%S.%f}"
        _set_value(statement, index, value)


def _set_value(statement: Any, index: int, value: Any) -> None:
    match value:
        case None:
            statement.setNull(index, _NULL)
        case bool():
            statement.setBoolean(index, value)
        case int():
            if -(2**63) <= value < 2**63:
                statement.setLong(index, value)
            else:
                statement.setBigDecimal(index, java_class("java.math.BigDecimal")(str(value)))
        case float():
            statement.setDouble(index, value)
        case bytes():
            statement.setBytes(index, value)
        case Decimal():
            statement.setBigDecimal(index, java_class("java.math.BigDecimal")(format(value, "f")))
        case datetime():
            statement.setTimestamp(index, _timestamp(value))
        case date():
            statement.setDate(index, java_class("java.sql.Date").valueOf(value.isoformat()))
        case _:
            statement.setString(index, str(value))


def _timestamp(value: datetime) -> Any:
    return java_class("java.sql.Timestamp").valueOf(f"{_in_utc(value):%Y-%m-%d %H:%M:%S.%f}")


def _in_utc(value: datetime) -> datetime:
    return value if value.tzinfo is None else value.astimezone(UTC)


class RowSetter:
    """The parameters of a statement for rows, whose columns are those of a table.

    Times of drivers that do not have Java's classes of times are `java.sql.Timestamp`.
    """

    def __init__(self, targets: Sequence[JdbcColumn], dialect: JdbcDialect, client: Any) -> None:
        self._targets, self._dialect, self._client = targets, dialect, client

    def values(self, rows: pa.RecordBatch) -> list[tuple[Set, Sequence[Any]]]:
        """Returns for each column the function that sets a value, and the values.

        Raises Rejected for a value that the table would round.
        """
        return [
            self._column(column, field, target)
            for column, field, target in zip(rows.columns, rows.schema, self._targets, strict=True)
        ]

    def _column(
        self, column: pa.Array, field: pa.Field, target: JdbcColumn
    ) -> tuple[Set, Sequence[Any]]:
        code, type_ = target.code, field.type
        if pa.types.is_nested(type_):
            if is_list(type_) and code == ARRAY:
                return self._array(column, target)
            texts = [json_of(value, field) if value.is_valid else None for value in column]
            return self._text(target), texts
        if pa.types.is_timestamp(type_):
            check_second_digits(column, field.name, target.second_digits)
            if self._dialect.times_as_texts:
                return _nullable(_by("setString"), code), _time_texts(column, target)
            setter = _zoned_setter() if target.is_zoned else _timestamp_setter()
            return _nullable(setter, code), column.cast(pa.int64()).to_pylist()
        if pa.types.is_boolean(type_):
            return _nullable(_by("setBoolean"), code), column.to_pylist()
        if pa.types.is_integer(type_):
            return _nullable(_by("setLong"), code), column.to_pylist()
        if pa.types.is_float32(type_):
            return _nullable(_by("setFloat"), code), column.to_pylist()
        if pa.types.is_floating(type_):
            return _nullable(_by("setDouble"), code), column.to_pylist()
        if pa.types.is_binary(type_) or pa.types.is_large_binary(type_):
            return _nullable(_by("setBytes"), code), column.to_pylist()
        if pa.types.is_decimal(type_) or pa.types.is_date(type_):
            texts = [leaf_text(value) if value.is_valid else None for value in column]
            setter = _decimal_setter() if pa.types.is_decimal(type_) else _date_setter()
            if pa.types.is_date(type_) and self._dialect.times_as_texts:
                setter = _by("setString")
            return _nullable(setter, code), texts
        return self._text(target), column.to_pylist()

    def _text(self, target: JdbcColumn) -> Set:
        if target.type_name.lower() in self._dialect.texts_as_bytes:
            return _nullable(
                lambda statement, index, value: statement.setBytes(index, value.encode()),
                target.code,
            )
        return _nullable(_by("setString"), target.code)

    def _array(self, column: pa.Array, target: JdbcColumn) -> tuple[Set, Sequence[Any]]:
        name = target.element_name

        def set_array(statement: Any, index: int, values: list[Any]) -> None:
            statement.setArray(index, self._client.createArrayOf(name, values))

        as_bytes = name.lower() in self._dialect.texts_as_bytes
        lists = [
            None if not value.is_valid
            else [_element(each, as_bytes=as_bytes) for each in value.values]
            for value in column
        ]  # fmt: skip
        return _nullable(set_array, target.code), lists


def _time_texts(times: pa.Array, target: JdbcColumn) -> list[str | None]:
    """Returns the texts of times; with an offset for a column of points in time."""
    texts = times.cast(pa.timestamp("us")).cast(pa.string()).to_pylist()
    offset = "+00:00" if target.is_zoned else ""
    return [None if text is None else f"{text}{offset}" for text in texts]


def _element(value: pa.Scalar, *, as_bytes: bool) -> Any:
    """Returns an element of an array as the drivers convert it; with `as_bytes` a text as bytes."""
    type_ = value.type
    if not value.is_valid:
        return None
    if pa.types.is_boolean(type_) or pa.types.is_signed_integer(type_):
        return java_class("java.lang.Boolean" if pa.types.is_boolean(type_) else "java.lang.Long")(
            value.as_py()
        )
    if pa.types.is_floating(type_):
        return java_class("java.lang.Double")(value.as_py())
    if pa.types.is_binary(type_) or pa.types.is_large_binary(type_):
        return _java_bytes(value.as_py())
    return _java_bytes(leaf_text(value).encode()) if as_bytes else leaf_text(value)


def _java_bytes(value: bytes) -> Any:
    import jpype

    return jpype.JArray(jpype.JByte)(value)


def _by(method: str) -> Set:
    return lambda statement, index, value: getattr(statement, method)(index, value)


def _nullable(setter: Set, code: int) -> Set:
    """Returns a setter that passes null with the type of the column."""

    def set_value(statement: Any, index: int, value: Any) -> None:
        if value is None:
            statement.setNull(index, code)
        else:
            setter(statement, index, value)

    return set_value


def _decimal_setter() -> Set:
    number = java_class("java.math.BigDecimal")
    return lambda statement, index, text: statement.setBigDecimal(index, number(text))


def _date_setter() -> Set:
    day = java_class("java.time.LocalDate")
    return _with_fallback(
        lambda text: day.parse(text), lambda value: java_class("java.sql.Date").valueOf(value),
        "setDate",
    )  # fmt: skip


def _timestamp_setter() -> Set:
    return _with_fallback(
        _local_time, lambda value: java_class("java.sql.Timestamp").valueOf(value), "setTimestamp"
    )


def _zoned_setter() -> Set:
    utc = java_class("java.time.ZoneOffset").UTC
    return _with_fallback(
        lambda micros: _local_time(micros).atOffset(utc),
        lambda value: java_class("java.sql.Timestamp").valueOf(value.toLocalDateTime()),
        "setTimestamp",
    )


def _local_time(micros: int) -> Any:
    seconds, rest = divmod(micros, _MICROSECONDS)
    utc = java_class("java.time.ZoneOffset").UTC
    return java_class("java.time.LocalDateTime").ofEpochSecond(seconds, rest * 1000, utc)


def _with_fallback(make: Callable[[Any], Any], older: Callable[[Any], Any], method: str) -> Set:
    """Returns a setter of an object, or of its older form for a driver that rejects the object."""
    is_rejected = False

    def set_time(statement: Any, index: int, value: Any) -> None:
        import jpype

        nonlocal is_rejected
        made = make(value)
        if not is_rejected:
            try:
                statement.setObject(index, made)
                return
            except jpype.JException:
                is_rejected = True
        getattr(statement, method)(index, older(made))

    return set_time
