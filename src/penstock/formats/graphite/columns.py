"""Lines of Graphite as rows of declared columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.core.errors import DecodeError, PlanError
from penstock.core.text import did_you_mean
from penstock.formats.graphite.line import NOW, Point, parse_line
from penstock.formats.graphite.template import DEFAULT_FIELD, FIELD, Template
from penstock.sdk.columns.conform import conform_each
from penstock.sdk.columns.type_names import sql_name
from penstock.sdk.record import Decoded, Failure

_NUMBERS = (pa.int32(), pa.int64(), pa.float32(), pa.float64())
_FIRST, _LAST = -62_135_596_800, 253_402_300_799
"""The seconds of the years 1 to 9999."""


@dataclass(frozen=True)
class GraphiteColumns:
    """The columns of rows, and the names of those with a role."""

    templates: Sequence[Template]
    separator: str
    time: str
    measurement: str
    schema: pa.Schema

    @property
    def tags(self) -> frozenset[str]:
        """The names of the tags of all templates."""
        return frozenset[str]().union(*(template.tag_names for template in self.templates))

    @property
    def _has_field_column(self) -> bool:
        return FIELD in self.schema.names and DEFAULT_FIELD in self.schema.names

    @property
    def _fields(self) -> frozenset[str]:
        """The columns with values."""
        if self._has_field_column:
            return frozenset([DEFAULT_FIELD])
        return frozenset(self.schema.names) - self.tags - {self.time, self.measurement}

    def values_of(self, row: Mapping[str, Any]) -> dict[str, int | float]:
        """Returns the values of a row by field, without nulls."""
        if self._has_field_column:
            found = {row[FIELD] or DEFAULT_FIELD: row[DEFAULT_FIELD]}
        else:
            found = {name: row[name] for name in sorted(self._fields)}
        return {name: value for name, value in found.items() if value is not None}

    def check(self) -> None:
        """Checks the types of the columns. Raises PlanError."""
        for field in self.schema:
            if field.name == self.time:
                allowed, is_valid = "TIMESTAMP", pa.types.is_timestamp(field.type)
            elif field.name in self._fields:
                allowed, is_valid = "INT, BIGINT, FLOAT or DOUBLE", field.type in _NUMBERS
            else:
                allowed, is_valid = "STRING", pa.types.is_string(field.type)
            if not is_valid:
                raise PlanError(
                    f'column "{field.name}" is {sql_name(field.type)}; expected {allowed}',
                    code="unsupported-type",
                )

    def decode(self, lines: pa.BinaryArray) -> Decoded:
        """Returns the rows of lines, and the failures."""
        points, indexes, failures = list[Point](), list[int](), list[Failure]()
        for index, line in enumerate(lines.to_pylist()):
            try:
                points.append(self._point(line))
                indexes.append(index)
            except DecodeError as error:
                failures.append(Failure(index, error))
        rows = pa.record_batch(
            [self._values(field, points) for field in self.schema], names=self.schema.names
        )
        decoded = conform_each(rows, self.schema)
        kept = np.array(indexes, np.int64)
        failures += [Failure(int(kept[index]), error) for index, error in decoded.failures]
        if decoded[1] is not None:
            kept = kept[decoded[1].to_numpy()]
        return Decoded(decoded.rows, pa.array(kept, pa.int64()), sorted(failures, key=_index))

    def _point(self, line: bytes | None) -> Point:
        """Returns the point of a line. Raises DecodeError."""
        if line is None:
            raise DecodeError("the record has no value", code="no-value")
        try:
            text = line.decode()
        except UnicodeDecodeError:
            raise DecodeError("not UTF-8", code="not-utf8") from None
        point = parse_line(text, self.templates, self.separator)
        name = point.metric.field
        if not self._has_field_column and name not in self._fields:
            raise DecodeError(
                f'there is no column for the field "{name}"',
                code="missing-column",
                hint=did_you_mean(name, self._fields),
            )
        column = DEFAULT_FIELD if self._has_field_column else name
        kind = self.schema.field(column).type
        if pa.types.is_integer(kind) and isinstance(point.value, float):
            raise DecodeError(
                f'column "{column}" is {sql_name(kind)}, found {point.value}', code="wrong-type"
            )
        if not _FIRST <= point.time <= _LAST:
            raise DecodeError(f"the time {point.time} is out of range", code="invalid-timestamp")
        return point

    def _values(self, field: pa.Field, points: Sequence[Point]) -> pa.Array:
        name = field.name
        if name == self.time:
            seconds = [None if point.time == NOW else point.time for point in points]
            return pa.array(seconds, pa.timestamp("s", field.type.tz))
        if name == self.measurement:
            return pa.array([point.metric.measurement for point in points], pa.string())
        if name in self._fields:
            values = [
                point.value if self._has_field_column or point.metric.field == name else None
                for point in points
            ]
            return _numbers(values, field.type)
        if self._has_field_column and name == FIELD:
            return pa.array([point.metric.field for point in points], pa.string())
        return pa.array([dict(point.metric.tags).get(name) for point in points], pa.string())


def _numbers(values: Sequence[int | float | None], kind: pa.DataType) -> pa.Array:
    if pa.types.is_integer(kind):
        return pa.array(values, pa.int64())
    return pa.array([None if value is None else float(value) for value in values], pa.float64())


def _index(failure: Failure) -> int:
    return failure[0]
