"""JSON texts to batches and back, with the columns of each batch."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

from penstock.core.errors import DecodeError

_FAR_NUMBER = re.compile(r"[0-9][eE]|[0-9]{300}")
"""A text that may have a number beyond all doubles."""


def decode_json(payloads: Iterable[bytes | None]) -> pa.RecordBatch:
    """Returns the rows of payloads, each of one or several lines. Raises DecodeError."""
    return rows_to_batch([row for payload in payloads for row in _objects(payload)])


def _objects(payload: bytes | None) -> list[dict[str, Any]]:
    if payload is None:
        raise DecodeError("the payload is null", code="no-value")
    try:
        text = payload.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DecodeError(f"the payload is not UTF-8: {error.reason}", code="not-utf8") from error
    rows = list(_values(text))
    if not rows:
        raise DecodeError("the payload is empty", code="no-value")
    for row in rows:
        if not isinstance(row, dict):
            raise DecodeError(
                f"expected a JSON object, found {json.dumps(row)[:40]}", code="not-an-object"
            )
    return rows


def _values(text: str) -> Iterable[Any]:
    """Yields the JSON values of a text, which are separated by blanks or not at all."""
    parse_float = _double if _FAR_NUMBER.search(text) else None
    decoder = json.JSONDecoder(parse_constant=_reject_constant, parse_float=parse_float)
    position, end = 0, len(text)
    while True:
        while position < end and text[position] in " \t\r\n":
            position += 1
        if position == end:
            return
        try:
            value, position = decoder.raw_decode(text, position)
        except (ValueError, RecursionError) as error:
            raise DecodeError(f"the payload is not JSON: {error}", code="not-json") from error
        yield value


def _double(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError(f"the number {text[:20]} is too large for a double")
    return value


def _reject_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def rows_to_batch(rows: Sequence[Mapping[str, Any]]) -> pa.RecordBatch:
    """Returns rows as a batch with all their columns, in the order of their first appearance.

    Raises DecodeError if the values of a column have different types.
    """
    names = list(dict.fromkeys(name for row in rows for name in row))
    arrays = []
    for name in names:
        values = [row.get(name) for row in rows]
        try:
            arrays.append(pa.array(values))
        except (pa.ArrowException, OverflowError, ValueError, TypeError):
            arrays.append(_mixed(name, values))
    if not names:
        return pa.RecordBatch.from_struct_array(pa.array([{}] * len(rows), pa.struct([])))
    return pa.RecordBatch.from_arrays(arrays, names=names)


def _mixed(name: str, values: Sequence[Any]) -> pa.Array:
    """Returns a column of integers and fractions. Raises DecodeError."""
    numbers = [value for value in values if value is not None]
    if all(isinstance(value, int) and _is_number(value) for value in numbers):
        raise DecodeError(f'an integer of "{name}" has more than 64 bits', code="integer-too-large")
    if all(_is_number(value) for value in numbers):
        return pa.array([None if value is None else float(value) for value in values], pa.float64())
    raise DecodeError(f'the values of "{name}" have different types', code="mixed-types")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def encode_json(batch: pa.RecordBatch) -> list[bytes]:
    """Returns each row as a JSON object, without its nulls."""
    names = [json.dumps(name, ensure_ascii=False) for name in batch.schema.names]
    columns = [json_values(column) for column in batch.columns]
    return [
        _object_text(names, [column[index] for column in columns]).encode()
        for index in range(batch.num_rows)
    ]


def json_values(column: pa.Array) -> list[str | None]:
    """Returns each value of a column as JSON text; None for a null."""
    if pa.types.is_decimal(column.type):
        return [None if value is None else f"{value:f}" for value in column.to_pylist()]
    return [
        None if value is None else _text(plain(value, column.type)) for value in column.to_pylist()
    ]


def _object_text(names: Sequence[str], values: Sequence[str | None]) -> str:
    """Returns a JSON object, in which a name may occur twice, as in the rows of a join."""
    pairs = zip(names, values, strict=True)
    return "{" + ",".join(f"{name}:{value}" for name, value in pairs if value is not None) + "}"


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def plain(value: Any, type_: pa.DataType) -> Any:
    """Returns a value of Arrow as data of JSON."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Decimal):
        return float(value) if value % 1 else int(value)
    if isinstance(value, datetime):
        return _time_text(value)
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return _duration_text(value)
    if isinstance(value, pa.MonthDayNano):
        return _interval_text(value)
    return _nested(value, type_)


def _duration_text(value: timedelta) -> str:
    """Returns a duration as DataFusion writes it, in seconds."""
    nanos = (value // timedelta(microseconds=1)) * 1000 + getattr(value, "nanoseconds", 0)
    seconds, fraction = divmod(abs(nanos), 1_000_000_000)
    text = f"{seconds}.{fraction:09d}".rstrip("0").rstrip(".")
    return f"{'-' if nanos < 0 else ''}PT{text}S"


def _interval_text(value: pa.MonthDayNano) -> str:
    """Returns an interval as DataFusion writes it: its parts that are not zero."""
    sign = "-" if value.nanoseconds < 0 else ""
    minutes, nanos = divmod(abs(value.nanoseconds), 60_000_000_000)
    hours, minutes = divmod(minutes, 60)
    parts = [(value.months, "mons"), (value.days, "days")]
    parts += [(int(f"{sign}{hours}"), "hours"), (int(f"{sign}{minutes}"), "mins")]
    texts = [f"{number} {unit}" for number, unit in parts if number]
    if nanos:
        texts.append(f"{sign}{nanos // 10**9}.{nanos % 10**9:09d} secs")
    return " ".join(texts) or "0 secs"


def _nested(value: Any, type_: pa.DataType) -> Any:
    if pa.types.is_map(type_):
        pairs = value.items() if isinstance(value, dict) else value
        return {str(key): plain(item, type_.item_type) for key, item in pairs}
    if pa.types.is_struct(type_):
        return {
            field.name: plain(value[field.name], field.type)
            for field in type_
            if value[field.name] is not None
        }
    if isinstance(value, list):
        return [plain(item, type_.value_type) for item in value]
    return str(value)


def _time_text(value: datetime) -> str:
    nanosecond = getattr(value, "nanosecond", 0)
    text = value.replace(tzinfo=None).isoformat(timespec="seconds")
    fraction = (
        f"{value.microsecond:06d}{nanosecond:03d}".rstrip("0")
        if value.microsecond or nanosecond
        else ""
    )
    fraction = fraction.ljust(3 * math.ceil(len(fraction) / 3), "0") if fraction else ""
    offset = value.utcoffset()
    zone = "" if offset is None else value.isoformat()[-6:] if offset else "Z"
    return text + (f".{fraction}" if fraction else "") + zone
