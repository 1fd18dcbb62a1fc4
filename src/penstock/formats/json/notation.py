"""Single JSON texts whose numbers keep their notation: parsing and rendering."""

from __future__ import annotations

import json
from collections.abc import Callable
from json.encoder import encode_basestring
from typing import Any

from penstock.core.errors import DecodeError

quote: Callable[[str], str] = encode_basestring


class Number(str):
    """A number in its original notation."""


class NotFinite(Number):
    """`NaN`, `Infinity` or `-Infinity` without quotes."""


_DECODER = json.JSONDecoder(
    strict=False, parse_int=Number, parse_float=Number, parse_constant=NotFinite
)


def _text_of(payload: bytes) -> str:
    """Decodes a payload as UTF-8. Raises DecodeError."""
    try:
        return payload.removeprefix(b"\xef\xbb\xbf").decode()
    except UnicodeDecodeError as error:
        utf16 = payload[:2] in (b"\xff\xfe", b"\xfe\xff")
        raise DecodeError(
            f"not UTF-8: byte 0x{payload[error.start]:02x} at byte {error.start + 1}",
            code="not-utf8",
            hint="Encode the payload as UTF-8 instead of UTF-16." if utf16 else None,
        ) from None


def parse(payload: bytes) -> Any:
    """Returns the value of a JSON text, with numbers as `Number`. Raises DecodeError."""
    text = _text_of(payload)
    if not text.strip(" \t\r\n"):
        raise DecodeError("the record is empty", code="no-value")
    try:
        return _DECODER.decode(text)
    except json.JSONDecodeError as error:
        hint = "Set encoding to that of the text, such as utf-16-le." if "\0" in text else None
        raise DecodeError(_syntax(error), code="not-json", hint=hint) from None


def _syntax(error: json.JSONDecodeError) -> str:
    problem = {
        "Expecting value": "expected a value",
        "Expecting ':' delimiter": 'expected ":"',
        "Expecting ',' delimiter": 'expected ","',
        "Extra data": "unexpected text after the end (a record is one object)",
        "Expecting property name enclosed in double quotes": "expected a key in double quotes",
        "Unterminated string starting at": "unterminated string, which starts",
    }.get(error.msg, error.msg[:1].lower() + error.msg[1:])
    if error.pos >= len(error.doc.rstrip()):
        problem = f"{problem}, but the text ends"
    return f"not JSON: {problem} at character {error.pos + 1}"


def kind_of(value: Any) -> str:
    """Returns the kind of a parsed value in the words of JSON."""
    if isinstance(value, Number):
        return "number"
    names = {dict: "object", list: "array", str: "string", bool: "boolean"}
    return names.get(type(value), "null")


def render(value: Any) -> str:
    """Returns compact JSON. Numbers keep their notation; those that JSON lacks are text."""
    if isinstance(value, Number) and not isinstance(value, NotFinite):
        return str(value)
    if isinstance(value, dict):
        return "{" + ",".join(f"{quote(key)}:{render(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(render, value)) + "]"
    return quote(value) if isinstance(value, str) else json.dumps(value)
