"""Protocol Buffers messages: columns, and conversion from and to rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.core.errors import DecodeError, EncodeError, PlanError
from penstock.core.text import did_you_mean
from penstock.formats.protobuf.codec import Codec
from penstock.formats.protobuf.depth import check_depth
from penstock.formats.protobuf.json_text import json_texts
from penstock.formats.protobuf.projection import project
from penstock.formats.protobuf.times import convert_with_times
from penstock.sdk.bisect_failures import bisect_failures
from penstock.sdk.columns.binary_arrays import decode_non_null
from penstock.sdk.columns.conform import collect_encoded, conform, decode_error, error_text
from penstock.sdk.columns.conversion import Conversion, cast
from penstock.sdk.columns.names import find_name
from penstock.sdk.columns.type_names import is_list
from penstock.sdk.encoding.arrow_files import spark_compatible
from penstock.sdk.encoding.fallback import decode_in_parts
from penstock.sdk.encoding.json_texts import COLUMNS as TEXT_COLUMNS
from penstock.sdk.encoding.json_texts import check_text_column, text_rows
from penstock.sdk.record import Decoded, Encoded

_FORMAT = "protobuf"


@dataclass(frozen=True)
class Message:
    """The message `name` of a FileDescriptorSet; `label` is the name of the set in error messages.

    With `as_json` each message is read as JSON text. Raises PlanError if the message does not exist
    or has no columns.
    """

    descriptors: bytes
    name: str
    names_of_enums: bool
    label: str
    conversion: Conversion = cast
    as_json: bool = False

    def __getstate__(self) -> dict[str, Any]:
        cached = ("descriptor", "_codecs")
        return {name: value for name, value in self.__dict__.items() if name not in cached}

    @cached_property
    def descriptor(self) -> Any:
        """The descriptor of the message."""
        return _find(self)

    @cached_property
    def _codecs(self) -> dict[tuple[pa.Schema | None, bool], Codec]:
        return {}

    def _codec(self, columns: pa.Schema | None, *, native_times: bool) -> Codec:
        """Returns the codec of columns; without columns that of all fields. Raises PlanError."""
        key = columns, native_times
        if key not in self._codecs:
            projection = project(self.descriptor, columns, native_times=native_times)
            self._codecs[key] = Codec.create(projection, names_of_enums=self.names_of_enums)
        return self._codecs[key]

    @property
    def columns(self) -> pa.Schema:
        """The columns of the message."""
        if self.as_json:
            return TEXT_COLUMNS
        return spark_compatible(self._codec(None, native_times=True).columns)

    def check_columns(self, columns: pa.Schema) -> None:
        """Raises PlanError if messages cannot be decoded to rows of these columns."""
        if self.as_json:
            check_text_column(columns, _FORMAT)
        else:
            self._codec(columns, native_times=False)

    def decode(self, payloads: pa.BinaryArray, schema: pa.Schema) -> Decoded:
        """Decodes payloads to rows of `schema`."""
        descriptor = self.descriptor
        codec = None if self.as_json else self._codec(schema, native_times=False)
        convert = partial(convert_with_times, self.conversion)

        def read(part: pa.BinaryArray) -> pa.RecordBatch:
            check_depth(part, descriptor)
            if codec is not None:
                return conform(codec.decode(part), schema, convert)
            texts = json_texts(part, descriptor, names_of_enums=self.names_of_enums)
            return text_rows(texts, schema, _FORMAT)

        return decode_non_null(
            payloads, lambda present: decode_in_parts(present, schema, read, _undecodable)
        )

    def encode(self, rows: pa.RecordBatch) -> Encoded:
        """Encodes rows. Raises PlanError for a column without a field."""
        known = [field.name for field in self.descriptor.fields]
        unknown = [name for name in rows.schema.names if find_name(name, known) < 0]
        if unknown:
            message = f'the message {self.name} has no field "{unknown[0]}"'
            raise PlanError(message, code="unknown-column", hint=did_you_mean(unknown[0], known))
        codec = self._codec(rows.schema, native_times=True)
        _check_names(pa.struct(list(rows.schema)), pa.struct(list(codec.columns)), self.name)
        fields = [field for field in self.descriptor.fields if field.name in codec.columns.names]

        def attempt(start: int, stop: int) -> pa.BinaryArray:
            part = conform(rows.slice(start, stop - start), codec.columns, self.conversion)
            if self.names_of_enums:
                for field in fields:
                    _check_enums(part.column(field.name), field)
            return codec.encode(part)

        return collect_encoded(bisect_failures(rows.num_rows, attempt, _unencodable))


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
    return descriptor


def _check_names(type_: pa.DataType, target: pa.DataType, path: str) -> None:
    """Raises PlanError for a field within a column that the message does not have."""
    if is_list(type_) and is_list(target):
        _check_names(type_.value_type, target.value_type, path)
    elif pa.types.is_map(type_) and pa.types.is_map(target):
        _check_names(type_.item_type, target.item_type, path)
    elif pa.types.is_struct(type_) and pa.types.is_struct(target):
        names = [field.name for field in target]
        for field in type_:
            index = find_name(field.name, names)
            if index < 0:
                hint = did_you_mean(field.name, names)
                text = f'the message {path} has no field "{field.name}"'
                raise PlanError(text, code="unknown-column", hint=hint)
            _check_names(field.type, target.field(index).type, f"{path}.{field.name}")


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


def _undecodable(error: Exception) -> DecodeError:
    if isinstance(error, DecodeError):
        return error
    if isinstance(error, pa.ArrowInvalid):
        return decode_error(error)
    reason = error_text(error).removeprefix("failed to decode Protobuf message: ")
    return DecodeError(f"not the Protobuf message: {reason}", code="not-protobuf")


def _unencodable(error: Exception) -> EncodeError:
    return EncodeError(f"the row does not fit the message: {error_text(error)}")
