"""Keys in the forms in which SQLite stores them: a column has values of any type."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import product
from typing import Any, Literal

import pyarrow as pa

Affinity = Literal["text", "number", "none"]
Forms = Callable[[Any], tuple[Any, ...]]
"""Returns the stored forms of a parameter that are read as the same value."""


def affinity(declared: str) -> Affinity:
    """Returns the types to which a column of a declared type converts values.

    Source: https://www.sqlite.org/datatype3.html, section 3.1.
    """
    text = declared.lower()
    if "int" in text:
        return "number"
    if any(part in text for part in ("char", "clob", "text")):
        return "text"
    return "none" if not text or "blob" in text else "number"


def forms_of(type_: pa.DataType, declared: str) -> Forms | None:
    """Returns the forms of keys of a column of rows; None if a value has any number of forms.

    A form may also be read as another value.
    """
    kind = affinity(declared)
    if pa.types.is_string(type_):
        return _texts if kind == "text" else _texts_and_numbers
    if pa.types.is_binary(type_):
        return _bytes
    is_number = (
        pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_decimal(type_)
    )
    if pa.types.is_boolean(type_) and kind == "number":
        return _booleans
    if pa.types.is_timestamp(type_) or pa.types.is_boolean(type_) or is_number:
        return _same if is_number and kind == "number" else None
    return _same


def with_forms(rows: Sequence[Sequence[Any]], forms: Sequence[Forms]) -> Iterator[tuple[Any, ...]]:
    """Yields the parameters of keys in each of their forms."""
    for row in rows:
        yield from product(*map(stored, forms, row))


def stored(forms: Forms, value: Any) -> tuple[Any, ...]:
    """Returns the stored forms of a parameter, which may be null."""
    return (None,) if value is None else forms(value)


def _same(value: Any) -> tuple[Any, ...]:
    return (value,)


def _booleans(value: Any) -> tuple[Any, ...]:
    text = str(value)
    return (value, text, text.lower(), text.upper())


def _texts(value: str) -> tuple[Any, ...]:
    return (value, value.encode())


def _texts_and_numbers(value: str) -> tuple[Any, ...]:
    with suppress(ValueError):
        if -(2**63) <= int(value) < 2**63:
            return (*_texts(value), int(value))
    with suppress(ValueError):
        return (*_texts(value), float(value))
    return _texts(value)


def _bytes(value: bytes) -> tuple[Any, ...]:
    with suppress(UnicodeDecodeError):
        return (value, value.decode())
    return (value,)
