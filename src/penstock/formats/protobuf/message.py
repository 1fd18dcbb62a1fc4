"""Protocol Buffers messages: columns, and conversion from and to rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from penstock.core.errors import DecodeError, EncodeError, MissingExtra, PlanError
from penstock.core.text import did_you_mean
from penstock.formats.protobuf.depth import check_depth
from penstock.formats.protobuf.nanoseconds import convert_in_range, has_saturated_times
from penstock.sdk.columns.binary_arrays import decode_non_null
from penstock.sdk.columns.conform import (
    collect_encoded,
    conform,
    decode_error,
    error_text,
    is_list,
)
from penstock.sdk.columns.conversion import Conversion, cast
from penstock.sdk.columns.names import find_name
from penstock.sdk.encoding.arrow_files import spark_compatible
from penstock.sdk.encoding.fallback import decode_in_parts
from penstock.sdk.isolate import isolate
from penstock.sdk.record import Decoded, Encoded


@dataclass(frozen=True)
class Message:
    """The message `name` of a FileDescriptorSet; `label` is the name of the set in error messages.

    Raises PlanError if the message does not exist or has no columns.
    """

    descriptors: bytes
    name: str
    names_of_enums: bool
    label: str
    conversion: Conversion = cast

    def __getstate__(self) -> dict[str, Any]:
        cached = ("_message", "_handler", "_nanosecond_handler")
        return {name: value for name, value in self.__dict__.items() if name not in cached}

    @cached_property
    def _message(self) -> Any:
        return _find(self)

    @cached_property
    def _handler(self) -> Any:
        return self._handler_of("us")

    @cached_property
    def _nanosecond_handler(self) -> Any:
        return self._handler_of("ns")

    def _handler_of(self, timestamp_unit: Literal["us", "ns"]) -> Any:
        try:
            import ptars
        except ModuleNotFoundError as error:
            raise MissingExtra.of("protobuf", "ptars") from error
        config = ptars.PtarsConfig(
            list_value_name="element",
            timestamp_unit=timestamp_unit,
            duration_unit="us",
            time_unit="us",
            enum_repr="string" if self.names_of_enums else "int32",
        )
        return ptars.HandlerPool([self._message.file], config=config).get_for_message(self._message)

    @property
    def columns(self) -> pa.Schema:
        """The columns of the message."""
        return spark_compatible(_nullable(self._handler.schema()))

    def decode(self, payloads: pa.BinaryArray, schema: pa.Schema) -> Decoded:
        """Decodes payloads to rows of `schema`."""
        descriptor = self._message

        def read(part: pa.BinaryArray) -> pa.RecordBatch:
            check_depth(part, descriptor)
            return self._rows(_compact(part), schema)

        return decode_non_null(
            payloads, lambda present: decode_in_parts(present, schema, read, _undecodable)
        )

    def _rows(self, payloads: pa.BinaryArray, schema: pa.Schema) -> pa.RecordBatch:
        """Returns rows whose timestamps are read with nanoseconds, if they are in their range."""
        rows = self._nanosecond_handler.array_to_record_batch(payloads)
        exact = conform(rows, schema, partial(convert_in_range, self.conversion))
        if not any(map(has_saturated_times, rows.columns)):
            return exact
        return conform(self._handler.array_to_record_batch(payloads), schema, self.conversion)

    def encode(self, rows: pa.RecordBatch) -> Encoded:
        """Encodes rows. Raises PlanError for a column without a field."""
        known = [field.name for field in self._message.fields]
        unknown = [name for name in rows.schema.names if find_name(name, known) < 0]
        if unknown:
            message = f'the message {self.name} has no field "{unknown[0]}"'
            raise PlanError(message, code="unknown-column", hint=did_you_mean(unknown[0], known))
        handler, schema = self._handler, _nullable(self._handler.schema())

        def attempt(start: int, stop: int) -> pa.BinaryArray:
            part = conform(rows.slice(start, stop - start), schema, self.conversion)
            if self.names_of_enums:
                for field in self._message.fields:
                    _check_enums(part.column(field.name), field)
            return handler.record_batch_to_array(part)

        return collect_encoded(isolate(rows.num_rows, attempt, _unencodable))


def _find(message: Message) -> Any:
    from google.protobuf import descriptor_pb2, descriptor_pool
    from google.protobuf.message import DecodeError as Malformed

    pool = descriptor_pool.DescriptorPool()
    try:
        files = descriptor_pb2.FileDescriptorSet.FromString(message.descriptors).file
        for file in files:
            pool.Add(file)
        descriptor = pool.FindMessageTypeByName(message.name)
    except KeyError:
        names = [
            f"{file.package}.{message_type.name}".lstrip(".")
            for file in files
            for message_type in file.message_type
        ]
        text = f'unknown message "{message.name}" in {message.label}'
        hint = did_you_mean(message.name, names)
        raise PlanError(text, code="unknown-message", hint=hint) from None
    except (Malformed, TypeError) as error:
        text = f"{message.label} is not a descriptor set: {error_text(error)}"
        raise PlanError(text, code="invalid-schema") from error
    _check_recursion(descriptor, ())
    return descriptor


def _check_recursion(message: Any, within: tuple[str, ...]) -> None:
    if message.full_name in within:
        text = f"the message {message.full_name} is recursive"
        raise PlanError(text, code="unsupported-type")
    for field in message.fields:
        if field.message_type is not None:
            _check_recursion(field.message_type, (*within, message.full_name))


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


def _check_enums(array: Any, field: Any) -> None:
    """Raises EncodeError for an unknown name of an enum."""
    if pa.types.is_map(array.type):
        _check_enums(array.items, field.message_type.fields_by_name["value"])
    elif is_list(array.type):
        _check_enums(array.values, field)
    elif pa.types.is_struct(array.type):
        for inner in field.message_type.fields:
            if array.type.get_field_index(inner.name) >= 0:
                _check_enums(array.field(inner.name), inner)
    elif field.enum_type is not None:
        names = pa.array([value.name for value in field.enum_type.values])
        values = array.drop_null()
        unknown = values.filter(pc.invert(pc.is_in(values, names)))
        if len(unknown):
            name = unknown[0].as_py()
            message = f'field "{field.name}": "{name}" is not in the enum {field.enum_type.name}'
            raise EncodeError(message, code="wrong-type")


def _compact(payloads: pa.BinaryArray) -> pa.BinaryArray:
    return (
        pa.concat_arrays([payloads])
        if payloads.offset == 0
        else payloads.take(pa.array(range(len(payloads)), pa.int64()))
    )


def _undecodable(error: Exception) -> DecodeError:
    if isinstance(error, DecodeError):
        return error
    if isinstance(error, pa.ArrowInvalid):
        return decode_error(error)
    reason = error_text(error).removeprefix("failed to decode Protobuf message: ")
    return DecodeError(f"not the Protobuf message: {reason}", code="not-protobuf")


def _unencodable(error: Exception) -> EncodeError:
    return EncodeError(f"the row does not fit the message: {error_text(error)}")
