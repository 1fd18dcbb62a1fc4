"""Roles of the columns of a stream, whose batches have no metadata."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from penstock.handlers.metadata import (
    TIME_UNIT,
    Role,
    TimeUnit,
    with_field_value,
    with_measurement,
    with_role,
    with_time,
)


@dataclass(frozen=True)
class Roles:
    """The time, the measurement, the role of other columns, and the units of integers."""

    time: str | None = None
    measurement: str | None = None
    columns: Mapping[str, Role] = field(default_factory=dict)
    units: Mapping[str, TimeUnit] = field(default_factory=dict)

    def schema(self, schema: pa.Schema) -> pa.Schema:
        """Returns a schema with the roles. Raises HandlerError."""
        schema = pa.schema([self._field(each) for each in schema])
        if self.time is not None:
            schema = with_time(schema, self.time)
        if self.measurement is not None:
            schema = with_measurement(schema, self.measurement)
        return schema

    def apply(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Returns a batch with the roles."""
        return pa.RecordBatch.from_arrays(batch.columns, schema=self.schema(batch.schema))

    def _field(self, field: pa.Field) -> pa.Field:
        field = pa.field(field.name, field.type, metadata=field.metadata)
        if field.name in self.columns:
            field = with_role(field, self.columns[field.name])
        if field.name in self.units:
            field = with_field_value(field, TIME_UNIT, self.units[field.name])
        return field
