"""Rows as lines of the line protocol of InfluxDB."""

from __future__ import annotations

import time

import numpy as np
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

    def encode(self, rows: pa.RecordBatch) -> tuple[pa.StringArray, dict[int, EncodeError]]:
        """Returns the line of each row, and the errors of rows that have none, by index."""
        errors: dict[int, EncodeError] = {}
        measurements = self._measurements(rows, errors)
        tags = [self._tag(name, rows, errors) for name in sorted(self._config.tags)]
        fields = [
            self._field(key, rows.column(column), type_, column, errors)
            for key, column, type_ in self._fields
        ]
        times = self._times(rows, errors)
        is_empty = pc.is_null(pc.coalesce(*fields))
        for index in _indexes(is_empty):
            errors.setdefault(index, _error("all fields of the point are null", "no-value"))
        fields[0] = pc.if_else(is_empty, "", fields[0])
        points = _joined(measurements, *tags, ",")
        return _joined(points, _joined(*fields, ","), times, " "), errors

    def _measurements(self, rows: pa.RecordBatch, errors: dict[int, EncodeError]) -> pa.Array:
        constant = self._config.measurement.constant
        if constant is not None:
            return pa.repeat(escape_measurement(constant), rows.num_rows)
        names = []
        for index, name in enumerate(self._config.measurement.render(rows)):
            if not name:
                errors[index] = _error("the measurement is null or empty", "no-value")
            elif is_unwritable_measurement(name):
                errors[index] = _error(
                    f"{name!r} cannot be the name of a measurement in InfluxDB", "unencodable"
                )
            names.append(escape_measurement(name or ""))
        return pa.array(names, pa.string())

    def _tag(self, name: str, rows: pa.RecordBatch, errors: dict[int, EncodeError]) -> pa.Array:
        column = self._config.tags[name]
        texts = as_text(rows.column(column))
        texts = pc.if_else(pc.equal(texts, ""), pa.scalar(None, texts.type), texts)
        for index in _indexes(pc.match_substring_regex(texts, UNWRITABLE)):
            errors.setdefault(index, _unwritable(f'the tag "{name}"'))
        return pc.binary_join_element_wise(f"{escape_key(name)}=", escape_keys(texts), "")

    def _field(
        self, key: str, values: pa.Array, type_: FieldType | None, column: str,
        errors: dict[int, EncodeError],
    ) -> pa.Array:  # fmt: skip
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
        return pc.binary_join_element_wise(key, texts, suffix, "")

    def _times(self, rows: pa.RecordBatch, errors: dict[int, EncodeError]) -> pa.Array:
        """Returns the text of the time of each row, in the unit of the writes."""
        name = self._config.timestamp
        if name is None:
            return self._times_of_write(rows.num_rows).cast(pa.string())
        times, outside = _in_unit(rows.column(name), self._unit)
        for index in _indexes(pc.is_null(rows.column(name))):
            errors.setdefault(index, _error(f'the time "{name}" is null', "no-value"))
        for index in _indexes(outside):
            message = f'the time "{name}" is not between 1677-09-21 and 2262-04-11'
            errors.setdefault(index, _error(message, "invalid-timestamp"))
        return times.cast(pa.string())

    def _times_of_write(self, count: int) -> pa.Array:
        first = max(time.time_ns(), self._last_time + 1)
        self._last_time = first + count
        return pa.array(np.arange(first, first + count))


def _joined(*parts: pa.Array | str) -> pa.StringArray:
    """Returns the parts of each row without nulls, with the last argument between them.

    A row has a part: Arrow leaves out a row of nulls.
    """
    return pc.binary_join_element_wise(*parts, null_handling="skip")


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


def _in_unit(column: pa.Array, unit: int) -> tuple[pa.Int64Array, pa.BooleanArray]:
    """Returns times in a unit of nanoseconds, and whether each is outside of the times of points.

    Integers are in this unit already. A time outside is null.
    """
    if pa.types.is_date(column.type):
        column = column.cast(pa.timestamp("s"))
    known = PRECISIONS[column.type.unit] if pa.types.is_timestamp(column.type) else unit
    if column.type == pa.uint64():
        column = pc.min_element_wise(column, pa.scalar(2**63 - 1, pa.uint64()))
    times = _floor_divided(column.cast(pa.int64()), max(unit // known, 1))
    largest = max(unit, known)
    outside = pc.or_(
        pc.less(times, -(-_EARLIEST // largest)), pc.greater(times, _LATEST // largest)
    )
    times = pc.if_else(outside, pa.scalar(None, pa.int64()), times)
    return pc.multiply(times, max(known // unit, 1)), outside


def _floor_divided(numbers: pa.Int64Array, divisor: int) -> pa.Int64Array:
    quotients = pc.divide(numbers, divisor)
    remainders = pc.subtract(numbers, pc.multiply(quotients, divisor))
    return pc.subtract(quotients, pc.less(remainders, 0).cast(pa.int64()))


def _error(message: str, code: str) -> EncodeError:
    return EncodeError(message, code=code)


def _unwritable(subject: str) -> EncodeError:
    reason = "a line break, or a backslash before a comma, an equals sign, a space or the end"
    return _error(f"{subject} has {reason}, which InfluxDB cannot store", "unencodable")
