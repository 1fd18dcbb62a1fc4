"""Exact conversion of values to another type."""

from __future__ import annotations

import base64
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from penstock.sdk.columns.decimal_arrays import as_decimal, parse_plain, reduce_scale, shift_point
from penstock.sdk.columns.scalar_parsing import ISO, TimeForm, canonical
from penstock.sdk.columns.times import duration_text, iso_text, parse_timestamps

_PLAIN_INTEGER = r"^-?[0-9]{1,18}$"
_PLAIN_NUMBER = r"^-?[0-9]{1,18}(\.[0-9]{1,18})?$"
_DECIMAL_PLACES = {"seconds": 6, "millis": 3, "micros": 0, "nanos": -3}
"""The places by which the decimal point of a number moves to make microseconds."""
_INTEGERS = pa.decimal128(20, 0)
"""A type of all integers of 64 bits."""
_WIDE_SCALE = {"seconds": 19, "millis": 19, "micros": 19, "nanos": 16}


@dataclass(frozen=True)
class Conversion:
    """A conversion of arrays that are not nested, without loss.

    A value converts if it can be converted back: 1 and 0 to BOOLEAN, 1.0 to INT, midnight to DATE,
    0.1 to DECIMAL, 2^53 to DOUBLE. Text converts as in the format `json`, to the nearest FLOAT or
    DOUBLE; with `nearest` so does a DOUBLE to FLOAT. Binary is not a number, even if its bytes are
    digits. Null converts to each type that is not nested. `form` is that of timestamps in text and
    numbers. The result for a value does not depend on the other values of the array. Raises
    ArrowInvalid or ArrowNotImplementedError for another value.
    """

    form: TimeForm = ISO
    nearest: bool = False

    def __call__(self, array: pa.Array, type_: pa.DataType) -> pa.Array:
        array = _simple(array)
        source = array.type
        if source == type_:
            return array
        if pa.types.is_null(source):
            return pa.nulls(len(array), type_)
        if pa.types.is_nested(source) or pa.types.is_nested(type_):
            raise pa.ArrowInvalid
        if array.null_count == len(array):
            return pa.nulls(len(array), type_)
        if pa.types.is_binary(source) and (is_number(type_) or pa.types.is_boolean(type_)):
            raise pa.ArrowInvalid
        if pa.types.is_temporal(source) or pa.types.is_temporal(type_):
            return self._convert_times(array, type_)
        if pa.types.is_string(source):
            return self._parse(array, type_)
        if self.nearest and pa.types.is_float64(source) and pa.types.is_float32(type_):
            return _nearest(array, type_)
        for accepts, convert in _TARGETS:
            if accepts(type_):
                return convert(array, type_)
        return array.cast(type_)

    def _parse(self, array: pa.StringArray, type_: pa.DataType) -> pa.Array:
        """Converts text; binary is its UTF-8."""
        if pa.types.is_binary(type_) or pa.types.is_large_string(type_):
            return array.cast(type_)
        if not (is_number(type_) or pa.types.is_boolean(type_)):
            return array.cast(type_)
        plain = _parse_plain(array, type_)
        if plain is not None:
            return plain
        texts = [_canonical(text, type_, self.form) for text in array.to_pylist()]
        return pa.array(texts, pa.string()).cast(type_)

    def _convert_times(self, array: pa.Array, type_: pa.DataType) -> pa.Array:
        source = array.type
        if pa.types.is_string(type_):
            return duration_text(array) if pa.types.is_duration(source) else _iso_text(array)
        if pa.types.is_timestamp(type_):
            return self._to_timestamps(array, type_)
        if pa.types.is_string(source):
            return self._parse(array, type_)
        if pa.types.is_timestamp(source) and is_number(type_):
            return self._to_numbers(array, type_)
        if not _is_kind_of_time(source, type_):
            raise pa.ArrowInvalid
        days = array.cast(type_)
        if pa.types.is_date(type_):
            _check_equal(days.cast(source), array)
        return days

    def _to_timestamps(self, array: pa.Array, type_: pa.TimestampType) -> pa.TimestampArray:
        source = array.type
        if pa.types.is_string(source):
            if self.form.times == "iso":
                return parse_timestamps(array, type_, self.form.nanoseconds)
            return self._parse_numbers(array, type_)
        if is_number(source) and self.form.times != "iso":
            return self._from_numbers(array, type_)
        if pa.types.is_timestamp(source):
            if source.unit == "ns" and type_.unit != "ns" and self.form.nanoseconds == "truncate":
                array = pc.floor_temporal(array, unit="microsecond")
            return array.cast(type_)
        if not pa.types.is_date(source):
            raise pa.ArrowInvalid
        return array.cast(pa.timestamp(type_.unit)).cast(type_)

    def _parse_numbers(self, texts: pa.StringArray, type_: pa.TimestampType) -> pa.TimestampArray:
        if _match(texts, _PLAIN_INTEGER):
            return self._from_numbers(texts.cast(pa.int64()), type_)
        scale = _WIDE_SCALE[self.form.times]
        return self._from_numbers(self._parse(texts, pa.decimal128(38, scale)), type_)

    def _from_numbers(self, array: pa.Array, type_: pa.TimestampType) -> pa.TimestampArray:
        """Converts numbers since 1970."""
        places = _DECIMAL_PLACES[self.form.times]
        if pa.types.is_floating(array.type) and places >= 0:
            with suppress(pa.ArrowInvalid):
                array = array.cast(pa.int64())
        if pa.types.is_integer(array.type) and places >= 0:
            micros = pc.multiply_checked(array.cast(pa.int64()), 10**places)
        else:
            wide = pa.decimal128(38, _WIDE_SCALE[self.form.times])
            exact = shift_point(as_decimal(array, wide), places)
            if self.form.nanoseconds == "truncate":
                exact = pc.floor(exact)
            micros = reduce_scale(exact, 0).cast(pa.int64())
        return micros.cast(pa.timestamp("us", type_.tz)).cast(type_)

    def _to_numbers(self, array: pa.TimestampArray, type_: pa.DataType) -> pa.Array:
        """Converts timestamps to numbers since 1970."""
        if self.form.times == "iso":
            raise pa.ArrowInvalid
        places = _DECIMAL_PLACES[self.form.times]
        micros = array.cast(pa.timestamp("us", array.type.tz)).cast(pa.int64())
        if places < 0:
            return self(pc.multiply_checked(micros, 10**-places), type_)
        return self(shift_point(as_decimal(micros, pa.decimal128(25, 0)), -places), type_)


@dataclass(frozen=True)
class TextConversion(Conversion):
    """A conversion of values that were read from text, in which binary is base64."""

    nearest: bool = True

    def _parse(self, array: pa.StringArray, type_: pa.DataType) -> pa.Array:
        if not pa.types.is_binary(type_):
            return super()._parse(array, type_)
        values = array.to_pylist()
        return pa.array([v and base64.b64decode(v, validate=True) for v in values], type_)


cast = Conversion()
"""The conversion without options."""


def is_number(type_: pa.DataType) -> bool:
    """Returns whether the values of a type are integers, floats or decimals."""
    return bool(
        pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_decimal(type_)
    )


def _simple(array: pa.Array) -> pa.Array:
    """Returns an array with the plain layout of its values."""
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if pa.types.is_large_string(array.type) or pa.types.is_string_view(array.type):
        return array.cast(pa.string())
    if (
        pa.types.is_large_binary(array.type)
        or pa.types.is_binary_view(array.type)
        or pa.types.is_fixed_size_binary(array.type)
    ):
        return array.cast(pa.binary())
    return array.cast(pa.float32()) if pa.types.is_float16(array.type) else array


def _is_kind_of_time(source: pa.DataType, target: pa.DataType) -> bool:
    if pa.types.is_date(target):
        return bool(pa.types.is_date(source) or pa.types.is_timestamp(source))
    return bool(
        (pa.types.is_time(source) and pa.types.is_time(target))
        or (pa.types.is_duration(source) and pa.types.is_duration(target))
    )


def _parse_plain(texts: pa.StringArray, type_: pa.DataType) -> pa.Array | None:
    """Converts numbers in plain digits; None if a text has another form."""
    if pa.types.is_decimal(type_):
        return parse_plain(texts, type_)
    if pa.types.is_integer(type_) and _match(texts, _PLAIN_INTEGER):
        return texts.cast(type_)
    if pa.types.is_floating(type_) and _match(texts, _PLAIN_NUMBER):
        return texts.cast(type_)
    return None


def _match(texts: pa.StringArray, pattern: str) -> bool:
    """Returns whether all texts match a pattern."""
    return pc.all(pc.match_substring_regex(texts, pattern)).as_py() is not False


def _iso_text(times: pa.Array) -> pa.StringArray:
    texts = iso_text(times)
    _check_all(pc.invert(pc.starts_with(texts, "<")))  # Arrow's text of a value out of range
    return texts


def _canonical(text: str | None, type_: pa.DataType, form: TimeForm) -> str | None:
    value = None if text is None else canonical(text, type_, form)
    if value is None and text is not None:
        raise pa.ArrowInvalid
    return value


def _to_boolean(array: pa.Array, type_: pa.DataType) -> pa.Array:
    if not pa.types.is_integer(array.type):
        raise pa.ArrowInvalid
    values = array.cast(type_)
    _check_equal(values.cast(array.type), array)
    return values


def _to_integer(array: pa.Array, type_: pa.DataType) -> pa.Array:
    if pa.types.is_decimal(array.type):
        return as_decimal(array, _INTEGERS).cast(type_)
    return array.cast(type_)


def _to_float(array: pa.Array, type_: pa.DataType) -> pa.Array:
    if pa.types.is_boolean(array.type):
        return array.cast(type_)
    try:
        if pa.types.is_integer(array.type):
            return array.cast(type_)
    except pa.ArrowInvalid:
        pass
    if pa.types.is_decimal(array.type):
        values = array.cast(pa.string()).cast(type_)  # Arrow's cast of decimals is not the nearest
        _check_equal(as_decimal(values, array.type), array)
        return values
    values = array.cast(type_, safe=False)
    if pa.types.is_floating(array.type):
        _check_all(pc.or_(pc.equal(values.cast(array.type), array), pc.is_nan(array)))
    else:
        _check_equal(as_decimal(values, _INTEGERS), as_decimal(array, _INTEGERS))
    return values


def _nearest(array: pa.Array, type_: pa.DataType) -> pa.Array:
    values = array.cast(type_, safe=False)
    _check_all(pc.equal(pc.is_inf(values), pc.is_inf(array)))
    return values


def _to_text(array: pa.Array, type_: pa.DataType) -> pa.Array:
    if pa.types.is_decimal(array.type):
        texts = [None if value is None else format(value, "f") for value in array.to_pylist()]
        return pa.array(texts, type_)
    return array.cast(type_)


def _to_decimal(array: pa.Array, type_: pa.DataType) -> pa.Array:
    if pa.types.is_boolean(array.type):
        raise pa.ArrowInvalid
    return as_decimal(array, type_)


def _check_equal(left: pa.Array, right: pa.Array) -> None:
    _check_all(pc.equal(left, right))


def _check_all(matches: pa.BooleanArray) -> None:
    if pc.all(matches).as_py() is False:
        raise pa.ArrowInvalid


_Convert = Callable[[pa.Array, pa.DataType], pa.Array]
_TARGETS: tuple[tuple[Callable[[pa.DataType], bool], _Convert], ...] = (
    (pa.types.is_string, _to_text),
    (pa.types.is_boolean, _to_boolean),
    (pa.types.is_integer, _to_integer),
    (pa.types.is_floating, _to_float),
    (pa.types.is_decimal, _to_decimal),
)
