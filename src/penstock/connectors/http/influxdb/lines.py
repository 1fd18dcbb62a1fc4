"""Rows as lines of the line protocol of InfluxDB."""

from __future__ import annotations

import time
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from penstock.connectors.http.influxdb.columns import field_type, fields_of
from penstock.connectors.http.influxdb.config import PRECISIONS, FieldType, InfluxdbSinkConfig
from penstock.connectors.http.influxdb.texts import (
    UNWRITABLE,
    escape_key,
    escape_keys,
    escape_measurement,
    is_unwritable_measurement,
    quote,
)
from penstock.core.errors import EncodeError
from penstock.sdk.columns.template import as_text

_LATEST = 2**63 - 2
"""The latest time of a point in nanoseconds since 1970, in 2262."""
_EARLIEST = -(2**63) + 2
_EXACT_IN_FLOAT = 2**53
"""The integers up to which a float of 64 bits has each integer."""

Texts = list[str | None]


class LineEncoder:
    """The lines of rows with the columns of `schema`."""

    def __init__(self, config: InfluxdbSinkConfig, schema: pa.Schema) -> None:
        self._config = config
        self._unit = PRECISIONS[config.precision]
        self._fields = [
            (
                f"{escape_key(name)}=",
                field.column,
                field_type(field, schema.field(field.column).type),
            )
            for name, field in fields_of(config, schema).items()
        ]
        self._last_time = 0

    def encode(self, rows: pa.RecordBatch) -> tuple[list[str], dict[int, EncodeError]]:
        """Returns the line of each row, and the errors of rows that have none, by index."""
        errors: dict[int, EncodeError] = {}
        measurements = self._measurements(rows, errors)
        tags = [self._tag(name, rows, errors) for name in sorted(self._config.tags)]
        fields = [
            self._field(key, rows.column(column), type_, column, errors)
            for key, column, type_ in self._fields
        ]
        times = self._times(rows, errors)
        lines = []
        count = rows.num_rows
        parts = zip(
            measurements, _joined(tags, count), _joined(fields, count), times, strict=True
        )  # fmt: skip
        for index, (measurement, tag, values, at) in enumerate(parts):
            if not values:
                errors.setdefault(index, _error("all fields of the point are null", "no-value"))
            lines.append(f"{measurement}{',' if tag else ''}{tag} {values} {at}")
        return lines, errors

    def _measurements(self, rows: pa.RecordBatch, errors: dict[int, EncodeError]) -> list[str]:
        names = []
        for index, name in enumerate(self._config.measurement.render(rows)):
            if not name:
                errors[index] = _error("the measurement is null or empty", "no-value")
            elif is_unwritable_measurement(name):
                errors[index] = _error(
                    f"{name!r} cannot be the name of a measurement in InfluxDB", "unencodable"
                )
            names.append(escape_measurement(name or ""))
        return names

    def _tag(self, name: str, rows: pa.RecordBatch, errors: dict[int, EncodeError]) -> Texts:
        column = self._config.tags[name]
        texts = as_text(rows.column(column))
        texts = pc.if_else(pc.equal(texts, ""), pa.scalar(None, texts.type), texts)
        for index in _indexes(pc.match_substring_regex(texts, UNWRITABLE)):
            errors.setdefault(index, _unwritable(f'the tag "{name}"'))
        return list(
            pc.binary_join_element_wise(f"{escape_key(name)}=", escape_keys(texts), "").to_pylist()
        )

    def _field(
        self, key: str, values: pa.Array, type_: FieldType | None, column: str,
        errors: dict[int, EncodeError],
    ) -> Texts:  # fmt: skip
        suffix = ""
        if type_ == "float":
            bad, reason = _not_in_floats(values)
            texts = values.cast(pa.float64(), safe=False).cast(pa.string())
        elif type_ in ("integer", "unsigned"):
            bad, reason = _not_in_integers(values, type_)
            texts, suffix = values.cast(pa.string()), type_[0]
        elif type_ == "boolean":
            bad, reason, texts = None, "", values.cast(pa.string())
        else:
            bad, reason, texts = None, "", quote(as_text(values))
        for index in _indexes(bad) if bad is not None else ():
            message = f'column "{column}": {values[index].as_py()} {reason}'
            errors.setdefault(index, _error(message, "unencodable"))
        return list(pc.binary_join_element_wise(key, texts, suffix, "").to_pylist())

    def _times(self, rows: pa.RecordBatch, errors: dict[int, EncodeError]) -> Sequence[int | None]:
        """Returns the time of each row in the unit of the writes."""
        name = self._config.timestamp
        if name is None:
            self._last_time = max(time.time_ns(), self._last_time + 1)
            first = self._last_time
            self._last_time += rows.num_rows
            return range(first, first + rows.num_rows)
        times = [_in_unit(value, self._unit) for value in _numbers(rows.column(name), self._unit)]
        for index, at in enumerate(times):
            if at is None:
                errors.setdefault(index, _error(f'the time "{name}" is null', "no-value"))
            elif not _EARLIEST <= at * self._unit <= _LATEST:
                message = f'the time "{name}" is not between 1677-09-21 and 2262-04-11'
                errors.setdefault(index, _error(message, "invalid-timestamp"))
        return times


def _joined(columns: Sequence[Texts], count: int) -> list[str]:
    """Returns the texts of each of `count` rows, with commas, without those that are None."""
    if not columns:
        return [""] * count
    return [",".join(filter(None, texts)) for texts in zip(*columns, strict=True)]


def _indexes(mask: pa.BooleanArray) -> list[int]:
    """Returns the indexes of true values."""
    return list(pc.indices_nonzero(mask.fill_null(False)).to_pylist())


def _not_in_floats(values: pa.Array) -> tuple[pa.BooleanArray | None, str]:
    """Returns the values that a float cannot hold, and the reason."""
    if pa.types.is_floating(values.type):
        return pc.invert(pc.is_finite(values)), "is not finite"
    if pa.types.is_integer(values.type) and values.type.bit_width == 64:
        outside = pc.greater(values, pa.scalar(_EXACT_IN_FLOAT, values.type))
        if pa.types.is_signed_integer(values.type):
            outside = pc.or_(outside, pc.less(values, -_EXACT_IN_FLOAT))
        return outside, "is not exact in a float of 64 bits"
    return None, ""


def _not_in_integers(values: pa.Array, type_: str) -> tuple[pa.BooleanArray | None, str]:
    """Returns the values that an integer field cannot hold, and the reason."""
    if type_ == "unsigned":
        return pc.less(values, 0), "is negative"
    if values.type == pa.uint64():
        return pc.greater(values, pa.scalar(2**63 - 1, pa.uint64())), "exceeds 64 bits"
    return None, ""


def _numbers(column: pa.Array, unit: int) -> list[int | None]:
    """Returns the values of a column of times as nanoseconds, integers in `unit` as they are."""
    if pa.types.is_date(column.type):
        column = column.cast(pa.timestamp("s"))
    if not pa.types.is_timestamp(column.type):
        return [None if value is None else value * unit for value in column.to_pylist()]
    factor = PRECISIONS[column.type.unit]
    numbers = column.cast(pa.int64()).to_pylist()
    return [None if value is None else value * factor for value in numbers]


def _in_unit(nanoseconds: int | None, unit: int) -> int | None:
    return None if nanoseconds is None else nanoseconds // unit


def _error(message: str, code: str) -> EncodeError:
    return EncodeError(message, code=code)


def _unwritable(subject: str) -> EncodeError:
    reason = "a line break, or a backslash before a comma, an equals sign, a space or the end"
    return _error(f"{subject} has {reason}, which InfluxDB cannot store", "unencodable")
