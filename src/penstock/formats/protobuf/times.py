"""Times of Protocol Buffers, read from the fields of their messages without loss.

The native library cuts digits below a microsecond, reads 1970-01-01 for an invalid date and the
nearest time for one out of its range. So it reads the fields of these messages, with marked names.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from penstock.sdk.columns.conform import WrongType
from penstock.sdk.columns.conversion import Conversion, cast
from penstock.sdk.columns.scalar_parsing import TRUNCATE_HINT, TimeForm

_Integers = npt.NDArray[np.int64]
_SECOND = 10**9
_UTC = pa.timestamp("us", "UTC")


def mark(message: str, field: str) -> str:
    """Returns the marked name of a field of a message of times."""
    return f"{message.replace('.', '_')}__{field}"


def convert_with_times(conversion: Conversion, array: pa.Array, type_: pa.DataType) -> pa.Array:
    """Converts an array, which may have structs with marked names in place of times.

    Raises ArrowInvalid for a value that cannot be converted without loss.
    """
    time = _BY_FIELDS.get(_names(array.type))
    if time is None:
        return conversion(array, type_)
    try:
        return _convert(time, conversion, array, type_)
    except pa.ArrowException as error:
        leaf = partial(_convert, time, conversion)
        raise _WrongTime(array, type_, leaf, time) from error


@dataclass(frozen=True)
class _Time:
    """A message of times.

    `convert` returns the values of its fields, which are arrays of integers, as a type of Arrow. It
    raises ArrowInvalid.
    """

    name: str
    fields: tuple[str, ...]
    convert: Callable[[TimeForm, list[_Integers], pa.DataType], pa.Array]
    declaration: str

    @property
    def marked(self) -> tuple[str, ...]:
        return tuple(mark(self.name, field) for field in self.fields)


def _convert(
    time: _Time, conversion: Conversion, array: pa.StructArray, type_: pa.DataType
) -> pa.Array:
    present = array.drop_null()
    fields = [field.fill_null(0).cast(pa.int64()).to_numpy() for field in present.flatten()]
    converted = conversion(time.convert(conversion.form, fields, type_), type_)
    if not array.null_count:
        return converted
    valid = array.is_valid().to_numpy(zero_copy_only=False)
    return converted.take(pa.array(np.maximum(np.cumsum(valid) - 1, 0), mask=~valid))


def _timestamps(
    form: TimeForm, fields: list[_Integers], type_: pa.DataType
) -> pa.TimestampArray | pa.StringArray:
    seconds, nanos = _normalize(*fields)
    if pa.types.is_timestamp(type_) and form.nanoseconds == "truncate":
        nanos -= nanos % 1000
    is_fine = nanos % 1000 != 0
    micros = pc.add_checked(pc.multiply_checked(seconds, 10**6), pa.array(nanos // 1000))
    if not is_fine.any():
        return micros.cast(_UTC)
    if not pa.types.is_string(type_):
        raise pa.ArrowInvalid("digits below a microsecond")
    whole = cast(seconds.cast(pa.timestamp("s", "UTC")), type_).to_pylist()
    exact = cast(micros.cast(_UTC), type_).to_pylist()
    for index in np.flatnonzero(is_fine):
        exact[index] = f"{whole[index].removesuffix('Z')}.{nanos[index]:09d}Z"
    return pa.array(exact, pa.string())


def _normalize(seconds: _Integers, nanos: _Integers) -> tuple[pa.Int64Array, _Integers]:
    """Returns seconds, and nanoseconds from 0 to less than a second. Raises ArrowInvalid."""
    return pc.add_checked(pa.array(seconds), pa.array(nanos // _SECOND)), nanos % _SECOND


def _durations(
    _form: TimeForm, fields: list[_Integers], type_: pa.DataType
) -> pa.DurationArray | pa.StringArray:
    if pa.types.is_string(type_):
        return pa.array(map(_duration_text, *(field.tolist() for field in fields)), pa.string())
    seconds, nanos = _normalize(*fields)
    if (nanos % 1000).any():
        raise pa.ArrowInvalid("digits below a microsecond")
    micros = pc.add_checked(pc.multiply_checked(seconds, 10**6), pa.array(nanos // 1000))
    return micros.cast(pa.duration("us"))


def _duration_text(seconds: int, nanos: int) -> str:
    total = seconds * _SECOND + nanos
    whole, rest = divmod(abs(total), _SECOND)
    fraction = f".{rest:09d}".rstrip("0") if rest else ""
    return f"{'-' if total < 0 else ''}PT{whole}{fraction}S"


def _dates(_form: TimeForm, fields: list[_Integers], _type: pa.DataType) -> pa.Date32Array:
    year, month, day = fields
    _check((year != 0) & (month >= 1) & (month <= 12) & (day >= 1) & (day <= 31))
    months = ((year - 1970) * 12 + month - 1).astype("datetime64[M]")
    days = months.astype("datetime64[D]") + (day - 1).astype("timedelta64[D]")
    _check(days.astype("datetime64[M]") == months)
    return pa.array(days.astype(np.int64)).cast(pa.int32()).view(pa.date32())


def _times_of_day(_form: TimeForm, fields: list[_Integers], _type: pa.DataType) -> pa.Time64Array:
    hours, minutes, seconds, nanos = fields
    parts = (hours, 24), (minutes, 60), (seconds, 60), (nanos, _SECOND)
    for part, limit in parts:
        _check((part >= 0) & (part < limit))
    return pa.array(((hours * 60 + minutes) * 60 + seconds) * _SECOND + nanos).cast(pa.time64("ns"))


def _check(are_valid: npt.NDArray[np.bool_]) -> None:
    if not are_valid.all():
        raise pa.ArrowInvalid("an invalid time")


TIMES = {
    time.name: time
    for time in (
        _Time(
            "google.protobuf.Timestamp", ("seconds", "nanos"), _timestamps,
            "STRUCT<seconds: BIGINT, nanos: INT>",
        ),
        _Time(
            "google.protobuf.Duration", ("seconds", "nanos"), _durations,
            "STRUCT<seconds: BIGINT, nanos: INT>",
        ),
        _Time(
            "google.type.Date", ("year", "month", "day"), _dates,
            "STRUCT<year: INT, month: INT, day: INT>",
        ),
        _Time(
            "google.type.TimeOfDay", ("hours", "minutes", "seconds", "nanos"), _times_of_day,
            "STRUCT<hours: INT, minutes: INT, seconds: INT, nanos: INT>",
        ),
    )
}  # fmt: skip
"""The messages of times by full name."""
_BY_FIELDS = {time.marked: time for time in TIMES.values()}


def _names(type_: pa.DataType) -> tuple[str, ...]:
    return tuple(field.name for field in type_) if pa.types.is_struct(type_) else ()


class _WrongTime(WrongType):
    """A time that cannot be converted to the type of its column."""

    def __init__(
        self, array: pa.StructArray, type_: pa.DataType, leaf: Callable[..., pa.Array], time: _Time
    ) -> None:
        super().__init__(array, type_, leaf)
        self.time = time

    @property
    def source(self) -> str:
        return self.time.name

    def value_text(self, index: int) -> str:
        value = self.array.slice(index, 1)
        with suppress(pa.ArrowException):
            return str(self.leaf(value, pa.string())[0].as_py())
        fields = zip(self.time.fields, (field[0].as_py() for field in value.flatten()), strict=True)
        return ", ".join(f"{name}: {number or 0}" for name, number in fields)

    @property
    def hint(self) -> str | None:
        """The option of formats, or the type of the column, that has the value, if any."""
        index = self.index
        if index is None or not (pa.types.is_temporal(self.type) or pa.types.is_string(self.type)):
            return None
        truncating = Conversion(TimeForm(nanoseconds="truncate"))
        with suppress(pa.ArrowException):
            _convert(self.time, truncating, self.array.slice(index, 1), self.type)
            return TRUNCATE_HINT
        return f"Declare the type {self.time.declaration}."
