"""The native decoder and encoder of Protobuf messages (ptars)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from penstock.core.errors import MissingExtra, PlanError
from penstock.core.panics import Panic, panics_as_exceptions
from penstock.formats.protobuf.groups import Fields, with_groups, without_groups
from penstock.formats.protobuf.projection import Projection
from penstock.sdk.columns.type_names import is_list


@dataclass(frozen=True)
class Codec:
    """The conversion between messages and rows of `columns`."""

    columns: pa.Schema
    handler: Any
    groups: Fields

    @classmethod
    def create(cls, projection: Projection, *, names_of_enums: bool) -> Codec:
        """Returns the codec of a projection. Raises PlanError for an unsupported message."""
        try:
            import ptars
        except ModuleNotFoundError as error:
            raise MissingExtra.of("protobuf", "ptars") from error
        config = ptars.PtarsConfig(
            list_value_name="element",
            timestamp_unit="us",
            duration_unit="us",
            time_unit="us",
            enum_repr="string" if names_of_enums else "int32",
        )
        descriptor = projection.descriptor
        try:
            with panics_as_exceptions():
                pool = ptars.HandlerPool([descriptor.file], config=config)
                handler = pool.get_for_message(descriptor)
                columns = _nullable(handler.schema())
        except Panic as error:
            raise PlanError(
                f"the message is not supported: {error}", code="unsupported-type",
                hint="Set as_json: true.",
            ) from error  # fmt: skip
        return cls(columns, handler, projection.groups)

    def decode(self, payloads: pa.BinaryArray) -> pa.RecordBatch:
        """Returns the rows of messages. Raises any Exception for an invalid message."""
        payloads = without_groups(payloads, self.groups) if self.groups else _compact(payloads)
        with panics_as_exceptions():
            rows = self.handler.array_to_record_batch(payloads)
        if rows.num_columns:
            return rows
        empty = pa.array([{}] * len(payloads), pa.struct([]))
        return pa.RecordBatch.from_struct_array(empty)

    def encode(self, rows: pa.RecordBatch) -> pa.BinaryArray:
        """Returns the messages of rows of `columns`. Raises any Exception for an invalid row."""
        with panics_as_exceptions():
            payloads = self.handler.record_batch_to_array(rows)
        return with_groups(payloads, self.groups) if self.groups else payloads


def _nullable(schema: pa.Schema) -> pa.Schema:
    return pa.schema([pa.field(field.name, _nullable_type(field.type)) for field in schema])


def _nullable_type(type_: pa.DataType) -> pa.DataType:
    """Makes fields of messages nullable; elements of lists and maps are not."""
    if pa.types.is_struct(type_):
        return pa.struct([pa.field(field.name, _nullable_type(field.type)) for field in type_])
    if is_list(type_):
        return pa.list_(pa.field("element", _nullable_type(type_.value_type), nullable=False))
    if pa.types.is_map(type_):
        item = pa.field("value", _nullable_type(type_.item_type), nullable=False)
        return pa.map_(type_.key_type, item)
    return type_


def _compact(payloads: pa.BinaryArray) -> pa.BinaryArray:
    return (
        pa.concat_arrays([payloads])
        if payloads.offset == 0
        else payloads.take(pa.array(range(len(payloads)), pa.int64()))
    )
