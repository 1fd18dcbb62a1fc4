"""One JSON text, looked at closely: what is wrong with it, or the same in canonical form."""

from __future__ import annotations

import json
from collections.abc import Callable
from json.encoder import encode_basestring
from typing import Any

import pyarrow as pa

from penstock.core.errors import DecodeError
from penstock.core.text import shorten
from penstock.sdk.kit.columns import article, is_list, sql_name
from penstock.sdk.kit.values import Times, canonical

_NOT_FINITE = {"NaN": "NaN", "Infinity": "Infinity", "-Infinity": "-Infinity"}


_quote: Callable[[str], str] = encode_basestring


class _Number(str):
    """A number as it is written."""


_DECODER = json.JSONDecoder(
    strict=False, parse_int=_Number, parse_float=_Number, parse_constant=_NOT_FINITE.get
)


class Mender:
    """Rewrites texts as the columns of a schema in one line of canonical JSON.

    Canonical: no unknown or repeated keys, text for what a STRING column takes as text, integers
    and decimals in plain digits. `closed` makes an unknown key an error.
    """

    def __init__(self, schema: pa.Schema, times: Times, closed: bool) -> None:
        self._row = _object(list(schema), times, closed)

    def mend(self, payload: bytes) -> bytes:
        """Raises DecodeError with the reason if the text is not a row."""
        try:
            value = _parse(payload)
            if not isinstance(value, dict):
                found = article(_kind(value))
                raise DecodeError(f"expected a JSON object, found {found}", code="not-an-object")
            return self._row(value).encode()
        except _Wrong as wrong:
            raise DecodeError(wrong.message(), code=wrong.code) from None
        except RecursionError:
            raise DecodeError("not JSON: nested too deeply", code="too-deep") from None
        except UnicodeEncodeError as error:
            text = f"not JSON: half of a surrogate pair, {error.object[error.start]!r}"
            raise DecodeError(text, code="not-json") from None


class _Wrong(Exception):
    """Something is wrong at `path`, which grows on the way up."""

    def __init__(self, text: str, code: str) -> None:
        self.text = text
        self.code = code
        self.path = ""

    def within(self, name: str) -> _Wrong:
        dot = "" if self.path[:1] in ("", "[") else "."
        self.path = f"{name}{dot}{self.path}"
        return self

    def message(self) -> str:
        return self.text.replace("{path}", shorten(self.path, 100), 1)


def text_of(payload: bytes) -> str:
    """The payload as text. Raises DecodeError where it is not UTF-8."""
    try:
        return payload.removeprefix(b"\xef\xbb\xbf").decode()
    except UnicodeDecodeError as error:
        wide = payload[:2] in (b"\xff\xfe", b"\xfe\xff")
        raise DecodeError(
            f"not UTF-8: byte 0x{payload[error.start]:02x} at byte {error.start + 1}",
            code="not-utf8",
            hint="it looks like UTF-16" if wide else None,
        ) from None


def _parse(payload: bytes) -> Any:
    text = text_of(payload)
    if not text.strip(" \t\r\n"):
        raise DecodeError("the record is empty", code="no-value")
    try:
        return _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise DecodeError(_syntax(error), code="not-json") from None


def _syntax(error: json.JSONDecodeError) -> str:
    found = {
        "Expecting value": "expected a value",
        "Expecting ':' delimiter": 'expected ":"',
        "Expecting ',' delimiter": 'expected ","',
        "Extra data": "unexpected text after the end (a record is one object)",
        "Expecting property name enclosed in double quotes": "expected a key in double quotes",
        "Unterminated string starting at": "a string without end, which starts",
    }.get(error.msg, error.msg[:1].lower() + error.msg[1:])
    if error.pos >= len(error.doc.rstrip()):
        found = f"{found}, but the text ends"
    return f"not JSON: {found} at character {error.pos + 1}"


def _kind(value: Any) -> str:
    if isinstance(value, _Number):
        return "number"
    names = {dict: "object", list: "array", str: "string", bool: "boolean"}
    return names.get(type(value), "null")


_Convert = Callable[[Any], str]
"""The canonical text of a value, which is not null. Raises _Wrong."""


def _object(fields: list[pa.Field], times: Times, closed: bool) -> _Convert:
    columns = [(f.name, f"{_quote(f.name)}:", _nullable(f, times, closed)) for f in fields]
    names = {field.name for field in fields}

    def convert(value: Any) -> str:
        unknown = closed and sorted(value.keys() - names)
        if unknown:
            raise _Wrong('unknown key "{path}"', "unknown-key").within(_shown(unknown[0]))
        parts = []
        for name, key, column in columns:
            try:
                parts.append(key + column(value.get(name)))
            except _Wrong as wrong:
                raise wrong.within(name) from None
        return "{" + ",".join(parts) + "}"

    return convert


def _nullable(field: pa.Field, times: Times, closed: bool) -> _Convert:
    inner, nullable = _value(field.type, times, closed), field.nullable

    def convert(value: Any) -> str:
        if value is not None:
            return inner(value)
        if not nullable:
            raise _Wrong('column "{path}" may not be null', "missing-value")
        return "null"

    return convert


def _value(type_: pa.DataType, times: Times, closed: bool) -> _Convert:
    if pa.types.is_struct(type_):
        return _only(dict, _object(list(type_), times, closed), type_)
    if is_list(type_):
        return _only(list, _array(_nullable(type_.value_field, times, closed)), type_)
    if pa.types.is_map(type_):
        item = _nullable(type_.item_field, times, closed)
        return _only(dict, _map(_leaf(type_.key_type, times), item), type_)
    return _leaf(type_, times)


def _only(kind: type, inner: _Convert, type_: pa.DataType) -> _Convert:
    def convert(value: Any) -> str:
        if not isinstance(value, kind):
            raise _not_a(value, type_)
        return inner(value)

    return convert


def _array(item: _Convert) -> _Convert:
    def convert(values: Any) -> str:
        parts = []
        for place, value in enumerate(values):
            try:
                parts.append(item(value))
            except _Wrong as wrong:
                raise wrong.within(f"[{place}]") from None
        return "[" + ",".join(parts) + "]"

    return convert


def _map(key: _Convert, item: _Convert) -> _Convert:
    def convert(values: Any) -> str:
        parts = []
        for name, value in values.items():
            try:
                text = key(name)
                text = text if text.startswith('"') else _quote(text)
                parts.append(f"{text}:{item(value)}")
            except _Wrong as wrong:
                raise wrong.within(_shown(name)) from None
        return "{" + ",".join(parts) + "}"

    return convert


def _leaf(type_: pa.DataType, times: Times) -> _Convert:
    if pa.types.is_string(type_):
        return lambda value: _quote(value if isinstance(value, str) else _render(value))
    if pa.types.is_boolean(type_):
        return _only(bool, lambda value: "true" if value else "false", type_)
    floating = pa.types.is_floating(type_) or (pa.types.is_timestamp(type_) and times != "iso")
    numeric = floating or pa.types.is_integer(type_) or pa.types.is_decimal(type_)
    digits = {64: 18, 32: 9}.get(type_.bit_width, 0) if pa.types.is_integer(type_) else 0

    def convert(value: Any) -> str:
        if type(value) is _Number:
            if floating or (len(value) <= digits and value.isdigit()):
                return value
            text = canonical(value, type_, times) if numeric else None
        elif isinstance(value, str):
            text = canonical(value, type_, times)
            if text is not None and (floating or not numeric):
                return _quote(text)
        else:
            text = None
        if text is None:
            raise _not_a(value, type_)
        return text

    return convert


def _not_a(value: Any, type_: pa.DataType) -> _Wrong:
    shown = shorten(_render(value), 100)
    text = f'column "{{path}}": {shown} is not {article(sql_name(type_))}'
    return _Wrong(text, "wrong-type")


def _shown(key: str) -> str:
    return shorten(json.dumps(key, ensure_ascii=False)[1:-1], 100)


def _render(value: Any) -> str:
    """Compact JSON, numbers as they were written."""
    if isinstance(value, _Number):
        return str(value)
    if isinstance(value, dict):
        return "{" + ",".join(f"{_quote(k)}:{_render(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_render, value)) + "]"
    return _quote(value) if isinstance(value, str) else json.dumps(value)
