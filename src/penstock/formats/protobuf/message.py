"""One message of Protocol Buffers: its columns, and rows from it and to it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.core.errors import DecodeError, EncodeError, MissingExtra, PlanError
from penstock.core.text import did_you_mean
from penstock.sdk.isolate import isolate
from penstock.sdk.kit.arrays import without_nulls
from penstock.sdk.kit.closely import decode_parts
from penstock.sdk.kit.columns import code_of, conform, gather_payloads, is_list, reason
from penstock.sdk.kit.tables import portable
from penstock.sdk.record import Decoded, Encoded


@dataclass(frozen=True)
class Message:
    """The message `name` of a FileDescriptorSet; `shown` is what a user knows that as.

    Raises PlanError where there is no such message, or where it has no columns.
    """

    descriptors: bytes
    name: str
    names_of_enums: bool
    shown: str

    def __getstate__(self) -> dict[str, Any]:
        made = ("_message", "_handler")
        return {name: value for name, value in self.__dict__.items() if name not in made}

    @cached_property
    def _message(self) -> Any:
        return _find(self)

    @cached_property
    def _handler(self) -> Any:
        try:
            import ptars
        except ModuleNotFoundError as error:
            raise MissingExtra.of("protobuf", "ptars") from error
        kinds = ptars.PtarsConfig(
            list_value_name="element",
            timestamp_unit="us",
            duration_unit="us",
            time_unit="us",
            enum_repr="string" if self.names_of_enums else "int32",
        )
        return ptars.HandlerPool([self._message.file], config=kinds).get_for_message(self._message)

    @property
    def columns(self) -> pa.Schema:
        """The fields."""
        return portable(_nullable(self._handler.schema()))

    def decode(self, payloads: pa.BinaryArray, schema: pa.Schema) -> Decoded:
        """As a format does."""
        handler = self._handler

        def read(some: pa.BinaryArray) -> pa.RecordBatch:
            return conform(handler.array_to_record_batch(_compact(some)), schema)

        return without_nulls(payloads, lambda some: decode_parts(some, schema, read, _undecodable))

    def encode(self, rows: pa.RecordBatch) -> Encoded:
        """As a format does."""
        known = {field.name for field in self._message.fields}
        unknown = [name for name in rows.schema.names if name not in known]
        if unknown:
            message = f'the message {self.name} has no field "{unknown[0]}"'
            raise PlanError(message, code="unknown-column", hint=did_you_mean(unknown[0], known))
        handler, wanted = self._handler, _nullable(self._handler.schema())

        def attempt(start: int, stop: int) -> pa.BinaryArray:
            some = conform(rows.slice(start, stop - start), wanted)
            if self.names_of_enums:
                for field in self._message.fields:
                    _check_enums(some.column(field.name), field)
            return handler.record_batch_to_array(some)

        return gather_payloads(isolate(rows.num_rows, attempt, _unencodable))


def _find(message: Message) -> Any:
    from google.protobuf import descriptor_pb2, descriptor_pool
    from google.protobuf.message import DecodeError as Malformed

    pool = descriptor_pool.DescriptorPool()
    try:
        files = descriptor_pb2.FileDescriptorSet.FromString(message.descriptors).file
        for each in files:
            pool.Add(each)
        found = pool.FindMessageTypeByName(message.name)
    except KeyError:
        names = [f"{f.package}.{m.name}".lstrip(".") for f in files for m in f.message_type]
        text = f'there is no message "{message.name}" in {message.shown}'
        hint = did_you_mean(message.name, names)
        raise PlanError(text, code="unknown-message", hint=hint) from None
    except (Malformed, TypeError) as error:
        text = f"{message.shown} is no descriptor set: {reason(error)}"
        raise PlanError(text, code="invalid-schema") from error
    _refuse_recursion(found, ())
    return found


def _refuse_recursion(message: Any, within: tuple[str, ...]) -> None:
    if message.full_name in within:
        text = f"the message {message.full_name} contains itself"
        raise PlanError(text, code="unsupported-type")
    for field in message.fields:
        if field.message_type is not None:
            _refuse_recursion(field.message_type, (*within, message.full_name))


def _nullable(schema: pa.Schema) -> pa.Schema:
    return pa.schema([pa.field(f.name, _nullable_type(f.type)) for f in schema])


def _nullable_type(type_: pa.DataType) -> pa.DataType:
    """Fields of messages may be null; elements of lists and maps never are."""
    if pa.types.is_struct(type_):
        return pa.struct([pa.field(f.name, _nullable_type(f.type)) for f in type_])
    if is_list(type_):
        return pa.list_(pa.field("element", _nullable_type(type_.value_type), nullable=False))
    if pa.types.is_map(type_):
        item = pa.field("value", _nullable_type(type_.item_type), nullable=False)
        return pa.map_(type_.key_type, item)
    return type_


def _check_enums(array: Any, field: Any) -> None:
    """Raises EncodeError for the name of an enum that it does not have."""
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
        wrong = values.filter(pc.invert(pc.is_in(values, names)))
        if len(wrong):
            name = wrong[0].as_py()
            message = f'field "{field.name}": "{name}" is not in the enum {field.enum_type.name}'
            raise EncodeError(message, code="wrong-type")


def _compact(payloads: pa.BinaryArray) -> pa.BinaryArray:
    return (
        pa.concat_arrays([payloads])
        if payloads.offset == 0
        else payloads.take(pa.array(range(len(payloads)), pa.int64()))
    )


def _undecodable(error: Exception) -> DecodeError:
    if isinstance(error, pa.ArrowInvalid):
        return DecodeError(reason(error), code=code_of(error))
    why = reason(error).removeprefix("failed to decode Protobuf message: ")
    return DecodeError(f"not the Protobuf message: {why}", code="not-protobuf")


def _unencodable(error: Exception) -> EncodeError:
    return EncodeError(f"the row does not fit the message: {reason(error)}")
