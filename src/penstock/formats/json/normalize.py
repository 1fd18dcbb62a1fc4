"""Canonical form of a single JSON text, or the error in it."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import pyarrow as pa

from penstock.core.errors import DecodeError
from penstock.core.text import shorten
from penstock.formats.json.decimals import Decimals, canonical_bytes
from penstock.formats.json.notation import Number, kind_of, parse, quote, render
from penstock.sdk.columns.conversion import is_number
from penstock.sdk.columns.json_mark import is_json
from penstock.sdk.columns.json_text import check_json
from penstock.sdk.columns.names import fold
from penstock.sdk.columns.scalar_parsing import (
    ISO,
    NumberTimes,
    TimeForm,
    canonical,
    time_hint,
)
from penstock.sdk.columns.type_names import is_list, sql_name, with_article

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class _Leaves(NamedTuple):
    """The forms of timestamps and decimals."""

    form: TimeForm
    numbers: NumberTimes
    decimals: Decimals
    days: bool


class Normalizer:
    """A normalizer of JSON texts to canonical JSON of the columns of a schema, on one line.

    Canonical JSON has no unknown or repeated keys, text for STRING columns, and integers and
    decimals in plain digits. With `closed` an unknown key is an error, with `days` a number is a
    date in days since 1970.
    """

    def __init__(
        self, schema: pa.Schema, form: TimeForm, closed: bool, numbers: NumberTimes = "reject",
        decimals: Decimals = "number", days: bool = False,
    ) -> None:  # fmt: skip
        self._row = _object(list(schema), _Leaves(form, numbers, decimals, days), closed)

    def normalize(self, payload: bytes) -> bytes:
        """Returns the canonical form. Raises DecodeError if the text is not a row."""
        try:
            value = parse(payload)
            if not isinstance(value, dict):
                kind = with_article(kind_of(value))
                raise DecodeError(f"expected a JSON object, found {kind}", code="not-an-object")
            return self._row(value).encode()
        except _InvalidValue as error:
            raise DecodeError(error.message(), code=error.code, hint=error.hint) from None
        except RecursionError:
            raise DecodeError("not JSON: nested too deeply", code="too-deep") from None
        except UnicodeEncodeError as error:
            text = f"not JSON: lone surrogate {error.object[error.start]!r}"
            raise DecodeError(text, code="not-json") from None


class _InvalidValue(Exception):
    """An invalid value at `path`, which is extended while the error propagates."""

    def __init__(self, text: str, code: str, hint: str | None = None) -> None:
        self.text = text
        self.code = code
        self.hint = hint
        self.path = ""

    def within(self, name: str) -> _InvalidValue:
        dot = "" if self.path[:1] in ("", "[") else "."
        self.path = f"{name}{dot}{self.path}"
        return self

    def message(self) -> str:
        return self.text.replace("{path}", shorten(self.path, 100), 1)


_Convert = Callable[[Any], str]
"""Returns the canonical text of a value that is not null. Raises _InvalidValue."""


def _object(fields: list[pa.Field], leaves: _Leaves, closed: bool) -> _Convert:
    columns = [
        (field.name, f"{quote(field.name)}:", _nullable(field, leaves, closed)) for field in fields
    ]
    names = {field.name for field in fields}
    folded = {fold(name) for name in names}

    def convert(value: Any) -> str:
        others = sorted(value.keys() - names)
        unknown = closed and [key for key in others if fold(key) not in folded]
        if unknown:
            raise _InvalidValue('unknown key "{path}"', "unknown-key").within(
                _shorten_key(unknown[0])
            )
        parts = []
        for name, key, column in columns:
            try:
                item = value.get(name)
                if item is None and others:
                    item = _alike(value, name, others)
                parts.append(key + column(item))
            except _InvalidValue as error:
                raise error.within(name) from None
        return "{" + ",".join(parts) + "}"

    return convert


def _alike(value: dict[str, Any], name: str, others: list[str]) -> Any:
    """Returns the value of the key that differs from a name only by case, if any."""
    keys = [key for key in others if fold(key) == fold(name) and value[key] is not None]
    if len(keys) > 1:
        listed = ", ".join(f'"{_shorten_key(key)}"' for key in keys)
        raise _InvalidValue(f'expected one key "{{path}}", found {listed}', "ambiguous-column")
    return value[keys[0]] if keys else None


def _nullable(field: pa.Field, leaves: _Leaves, closed: bool) -> _Convert:
    inner = _json_text if is_json(field) else _value(field.type, leaves, closed)
    nullable = field.nullable

    def convert(value: Any) -> str:
        if value is not None:
            return inner(value)
        if not nullable:
            raise _InvalidValue('column "{path}" is null; expected a value', "missing-value")
        return "null"

    return convert


def _json_text(value: Any) -> str:
    """Returns the text of a column of JSON text."""
    text = render(value)
    try:
        check_json(text)
    except ValueError as error:
        raise _InvalidValue(f'column "{{path}}": {error}', "wrong-type") from None
    return quote(text)


def _value(type_: pa.DataType, leaves: _Leaves, closed: bool) -> _Convert:
    if pa.types.is_struct(type_):
        return _require_kind(dict, _object(list(type_), leaves, closed), type_)
    if is_list(type_):
        return _require_kind(list, _array(_nullable(type_.value_field, leaves, closed)), type_)
    if pa.types.is_map(type_):
        item = _nullable(type_.item_field, leaves, closed)
        return _require_kind(dict, _map(_leaf(type_.key_type, leaves), item), type_)
    return _leaf(type_, leaves)


def _require_kind(kind: type, inner: _Convert, type_: pa.DataType) -> _Convert:
    def convert(value: Any) -> str:
        if not isinstance(value, kind):
            raise _wrong_type(value, type_)
        return inner(value)

    return convert


def _array(item: _Convert) -> _Convert:
    def convert(values: Any) -> str:
        parts = []
        for index, value in enumerate(values):
            try:
                parts.append(item(value))
            except _InvalidValue as error:
                raise error.within(f"[{index}]") from None
        return "[" + ",".join(parts) + "]"

    return convert


def _map(key: _Convert, item: _Convert) -> _Convert:
    def convert(values: Any) -> str:
        parts = []
        for name, value in values.items():
            try:
                text = key(name)
                text = text if text.startswith('"') else quote(text)
                parts.append(f"{text}:{item(value)}")
            except _InvalidValue as error:
                raise error.within(_shorten_key(name)) from None
        return "{" + ",".join(parts) + "}"

    return convert


def _leaf(type_: pa.DataType, leaves: _Leaves) -> _Convert:
    form = leaves.form
    if pa.types.is_decimal(type_) and leaves.decimals == "bytes":
        return _decimal_bytes(type_)
    if pa.types.is_string(type_):
        return lambda value: quote(value if isinstance(value, str) else render(value))
    if pa.types.is_boolean(type_):
        return _require_kind(bool, lambda value: "true" if value else "false", type_)
    is_time = pa.types.is_timestamp(type_)
    floating = pa.types.is_floating(type_)
    numeric = is_number(type_) or (is_time and form.times != "iso")
    nanos = TimeForm("nanos", form.nanoseconds) if leaves.numbers == "nanos" else None
    days = pa.types.is_date(type_) and leaves.days
    digits = {64: 18, 32: 9}.get(type_.bit_width, 0) if pa.types.is_integer(type_) else 0

    def convert(value: Any) -> str:
        if type(value) is Number:
            if len(value) <= digits and value.isdigit():
                return value
            if days and (date := _of_days(value)) is not None:
                return quote(date)
            if is_time and form.times == "iso" and nanos is not None:
                time = canonical(value, type_, nanos)
                text = None if time is None else _iso_of_nanos(time)
                if text is not None:
                    return quote(text)
            text = canonical(value, type_, form) if numeric else None
        elif isinstance(value, str) and (floating or not isinstance(value, Number)):
            text = canonical(value, type_, form)
            if text is not None and (floating or not numeric):
                return quote(text)
        else:
            text = None
        if text is None:
            raise _wrong_type(value, type_, form)
        return text

    return convert


def _decimal_bytes(type_: pa.DataType) -> _Convert:
    def convert(value: Any) -> str:
        is_number = type(value) is Number
        text = None
        if isinstance(value, str):
            text = canonical_bytes(value, type_, is_number=is_number)
        if text is None:
            raise _wrong_type(value, type_)
        return quote(text)

    return convert


def _of_days(text: str) -> str | None:
    """Returns days since 1970 as ISO 8601; None for another number and out of range."""
    days = canonical(text, pa.int32(), ISO)
    if days is None:
        return None
    try:
        return (_EPOCH + timedelta(days=int(days))).date().isoformat()
    except OverflowError:
        return None


def _iso_of_nanos(text: str) -> str | None:
    """Returns whole microseconds in nanoseconds since 1970 as ISO 8601; None out of range."""
    try:
        return (_EPOCH + timedelta(microseconds=int(text) // 1000)).isoformat()
    except OverflowError:
        return None


def _wrong_type(value: Any, type_: pa.DataType, form: TimeForm = ISO) -> _InvalidValue:
    text = shorten(render(value), 100)
    message = f'column "{{path}}": {text} is not {with_article(sql_name(type_))}'
    hint = time_hint(value, type_, form) if isinstance(value, str) else None
    return _InvalidValue(message, "wrong-type", hint)


def _shorten_key(key: str) -> str:
    return shorten(json.dumps(key, ensure_ascii=False)[1:-1], 100)
