"""Values written in YAML as those of a column: times, decimals, bytes, and what they nest in."""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa

from penstock.core.text import did_you_mean
from penstock.sdk.kit.columns import article, is_list, sql_name
from penstock.sdk.kit.values import from_text

Steps = tuple[str | int, ...]

_TOLERANCE = 1e-9


class Misfit(Exception):
    """A value that is not of its column's type. `steps` lead to it within the column's value."""

    def __init__(self, problem: str, steps: Steps, hint: str | None = None) -> None:
        super().__init__(problem)
        self.problem, self.steps, self.hint = problem, steps, hint


def typed(value: Any, type_: pa.DataType, steps: Steps = ()) -> Any:
    """`value` as Python has a value of `type_`. Raises Misfit.

    Times are ISO 8601, UTC where they have no offset; bytes are text (its UTF-8), `{hex: ...}` or
    `{base64: ...}`; structs and maps are maps. Fields that a struct leaves out stay out.
    """
    if value is None:
        return None
    if pa.types.is_struct(type_):
        return _struct(value, type_, steps)
    if pa.types.is_map(type_):
        entries = value.items() if isinstance(value, Mapping) else _refuse(value, type_, steps)
        return {
            typed(_key(key, type_.key_type), type_.key_type, (*steps, str(key))): typed(
                each, type_.item_type, (*steps, str(key))
            )
            for key, each in entries
        }
    if is_list(type_):
        if not isinstance(value, Sequence) or isinstance(value, str | bytes):
            _refuse(value, type_, steps)
        return [typed(each, type_.value_type, (*steps, at)) for at, each in enumerate(value)]
    return _leaf(value, type_, steps)


def same(expected: Any, got: Any) -> bool:
    """Whether a value is what `typed` gave; fields that are left out match anything."""
    if isinstance(expected, float) and isinstance(got, float):
        if math.isnan(expected) or math.isnan(got):
            return math.isnan(expected) and math.isnan(got)
        return math.isclose(expected, got, rel_tol=_TOLERANCE, abs_tol=_TOLERANCE)
    if isinstance(expected, Mapping) and isinstance(got, Sequence) and not isinstance(got, str):
        return isinstance(got, list) and _same_map(expected, dict(got))
    if isinstance(expected, Mapping) and isinstance(got, Mapping):
        return all(key in got and same(each, got[key]) for key, each in expected.items())
    if isinstance(expected, list) and isinstance(got, list):
        return len(expected) == len(got) and all(map(same, expected, got))
    return bool(expected == got)


def _same_map(expected: Mapping[Any, Any], got: Mapping[Any, Any]) -> bool:
    return expected.keys() == got.keys() and all(same(expected[key], got[key]) for key in got)


def _struct(value: Any, type_: pa.StructType, steps: Steps) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        _refuse(value, type_, steps)
    fields = {field.name: field.type for field in type_}
    for name in value:
        if name not in fields:
            raise Misfit(f'has no field "{name}"', (*steps, name), did_you_mean(name, fields))
    return {name: typed(each, fields[name], (*steps, name)) for name, each in value.items()}


def _leaf(value: Any, type_: pa.DataType, steps: Steps) -> Any:
    try:
        if pa.types.is_binary(type_):
            return _bytes(value)
        if isinstance(value, Mapping | list):
            raise pa.ArrowInvalid
        if pa.types.is_decimal(type_) and not isinstance(value, bool):
            return pa.scalar(Decimal(str(value)), type_).as_py()
        if pa.types.is_boolean(type_) != isinstance(value, bool):
            raise pa.ArrowInvalid
        if (pa.types.is_string(type_) or pa.types.is_temporal(type_)) != isinstance(value, str):
            raise pa.ArrowInvalid
        return from_text(pa.array([value]), type_, "iso")[0].as_py()
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, ArithmeticError,
            ValueError):  # fmt: skip
        _refuse(value, type_, steps)


def _bytes(value: Any) -> bytes:
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, Mapping) and len(value) == 1:
        ((how, text),) = value.items()
        if how == "hex":
            return bytes.fromhex(text)
        if how == "base64":
            return base64.b64decode(text, validate=True)
    raise ValueError


def _key(key: str, type_: pa.DataType) -> Any:
    """YAML's keys are text; those of a map may be numbers."""
    try:
        if pa.types.is_integer(type_):
            return int(key)
        return float(key) if pa.types.is_floating(type_) else key
    except ValueError:
        return key


def _refuse(value: Any, type_: pa.DataType, steps: Steps) -> Any:
    name = sql_name(type_)
    hint = None
    if pa.types.is_string(type_) and isinstance(value, int | float):
        hint = f'quote it: "{str(value).lower() if isinstance(value, bool) else value}"'
    elif pa.types.is_timestamp(type_):
        hint = "write it as 2024-05-01T12:00:00Z"
    raise Misfit(f"is {article(name)}, which {value!r} is not", steps, hint)
