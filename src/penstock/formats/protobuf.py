"""Protocol Buffers: one message a record; a file has each message behind its length."""

from __future__ import annotations

import io
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, Literal

import pyarrow as pa
import pyarrow.compute as pc

from penstock.core.errors import DecodeError, EncodeError, MissingExtra, PlanError
from penstock.core.text import did_you_mean
from penstock.sdk.component import Context
from penstock.sdk.config import Config, UserPath
from penstock.sdk.format import FileFormat, FileWriter
from penstock.sdk.isolate import isolate
from penstock.sdk.kit.arrays import without_nulls
from penstock.sdk.kit.closely import decode_parts
from penstock.sdk.kit.columns import code_of, conform, gather_payloads, is_list, reason
from penstock.sdk.kit.streams import buffered
from penstock.sdk.kit.tables import portable
from penstock.sdk.record import Decoded, Encoded, Read

_BLOCK = 4096
_LONGEST = 64 << 20


class ProtobufConfig(Config):
    """Options of `protobuf`."""

    schema_file: UserPath
    """A `.proto` file, or a compiled descriptor set (`protoc --include_imports -o`)."""
    message: str
    """The message, with its package: `shop.Order`."""
    include: list[UserPath] = []
    """Directories of imported files, beside that of `schema_file`."""
    enums: Literal["name", "number"] = "name"
    """Whether an enum is STRING or INT."""


class Protobuf(FileFormat[ProtobufConfig]):
    """Protocol Buffers: one message a payload; in files (`.pb`) each is behind its length (varint).

    ```yaml
    format: {type: protobuf, schema_file: shop.proto, message: shop.Order}
    ```

    Fields are columns, by name: `int32` INT, `int64` BIGINT, `uint32` BIGINT, `uint64`
    DECIMAL(20, 0), `bytes` BINARY, an enum its name (a number without name stays a number, as
    text), `repeated` ARRAY, messages STRUCT, `google.protobuf.Timestamp` TIMESTAMP. Recursive
    messages are not possible.

    A field without presence (proto3 without `optional`) is never null: absent is its default, and
    null is written as absent. Other absent fields are null. An empty payload is a message of
    defaults. Unknown fields are ignored; so, as in any Protobuf library, is a known field of
    another wire type, so that a payload of another message may pass. Text that is not UTF-8, and
    what is cut off, are errors. A broken length ends a file with one error. The position is the
    number of the message.
    """

    extra: ClassVar[str | None] = "protobuf"
    extension: ClassVar[str] = ".pb"
    concatenable: ClassVar[bool] = True

    def __init__(self, config: ProtobufConfig, context: Context | None = None) -> None:
        super().__init__(config, context)
        self.descriptors = _descriptors(config)

    def __getstate__(self) -> dict[str, Any]:
        made = ("_message", "_handler")
        return {name: value for name, value in self.__dict__.items() if name not in made}

    @cached_property
    def _message(self) -> Any:
        return _find(self.descriptors, self.config)

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
            enum_repr="string" if self.config.enums == "name" else "int32",
        )
        return ptars.HandlerPool([self._message.file], config=kinds).get_for_message(self._message)

    def declared(self) -> pa.Schema | None:
        return portable(_nullable(self._handler.schema()))

    def decode(self, payloads: pa.BinaryArray, schema: pa.Schema) -> Decoded:
        handler = self._handler

        def read(some: pa.BinaryArray) -> pa.RecordBatch:
            return conform(handler.array_to_record_batch(_compact(some)), schema)

        return without_nulls(payloads, lambda some: decode_parts(some, schema, read, _undecodable))

    def encode(self, rows: pa.RecordBatch) -> Encoded:
        known = {field.name for field in self._message.fields}
        unknown = [name for name in rows.schema.names if name not in known]
        if unknown:
            message = f'the message {self.config.message} has no field "{unknown[0]}"'
            raise PlanError(message, code="unknown-column", hint=did_you_mean(unknown[0], known))
        handler, wanted = self._handler, _nullable(self._handler.schema())

        def attempt(start: int, stop: int) -> pa.BinaryArray:
            some = conform(rows.slice(start, stop - start), wanted)
            if self.config.enums == "name":
                for field in self._message.fields:
                    _check_enums(some.column(field.name), field)
            return handler.record_batch_to_array(some)

        return gather_payloads(isolate(rows.num_rows, attempt, _unencodable))

    def read_file(
        self, file: BinaryIO, schema: pa.Schema, origin: str, read: Read
    ) -> Iterator[tuple[pa.RecordBatch, pa.Int64Array]]:
        before = 0
        for payloads, error in _messages(file):
            found = self.decode(pa.array(payloads, pa.binary()), schema)
            for failure in found.failures:
                at = failure[0]
                read.reject(payloads[at], origin, before + at + 1, failure.error)
            places = range(len(payloads)) if found[1] is None else found[1].to_pylist()
            if found.rows.num_rows:
                yield found.rows, pa.array([before + at + 1 for at in places], pa.int64())
            before += len(payloads)
            if error is not None:
                read.reject(None, origin, before + 1, error)

    def file_writer(self, file: BinaryIO, schema: pa.Schema) -> FileWriter:
        return _Writer(file, self)

    def infer_file(self, file: BinaryIO) -> pa.Schema | None:
        return self.declared()


class _Writer(FileWriter):
    def __init__(self, file: BinaryIO, format_: Protobuf) -> None:
        self.file = file
        self.format = format_

    def write(self, rows: pa.RecordBatch) -> Encoded | None:
        encoded = self.format.encode(rows)
        out = io.BytesIO()
        for payload in encoded.payloads.to_pylist():
            out.write(_varint(len(payload)))
            out.write(payload)
        self.file.write(out.getbuffer())
        return encoded if encoded.failures else None

    def close(self) -> None:
        pass


def _descriptors(config: ProtobufConfig) -> bytes:
    """A serialized FileDescriptorSet."""
    path = Path(config.schema_file)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise PlanError(f"cannot read {path}: {error.strerror}", code="unreadable-file") from error
    return _compiled(path, config.include) if path.suffix == ".proto" else content


def _compiled(path: Path, include: list[str]) -> bytes:
    try:
        import grpc_tools
    except ModuleNotFoundError as error:
        raise MissingExtra.of("protobuf", "grpcio-tools") from error
    standard = Path(str(grpc_tools.__file__)).parent / "_proto"
    roots = [f"-I{root}" for root in (path.parent, *include, standard)]
    with tempfile.TemporaryDirectory() as directory:
        out = Path(directory) / "set"
        command = [sys.executable, "-m", "grpc_tools.protoc", *roots, "--include_imports"]
        command += [f"--descriptor_set_out={out}", str(path)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        if done.returncode or not out.exists():
            message = f"{path.name} does not compile"
            raise PlanError(message, code="invalid-schema", detail=done.stderr)
        return out.read_bytes()


def _find(descriptors: bytes, config: ProtobufConfig) -> Any:
    from google.protobuf import descriptor_pb2, descriptor_pool
    from google.protobuf.message import DecodeError as Malformed

    pool = descriptor_pool.DescriptorPool()
    try:
        files = descriptor_pb2.FileDescriptorSet.FromString(descriptors).file
        for each in files:
            pool.Add(each)
        found = pool.FindMessageTypeByName(config.message)
    except KeyError:
        names = [f"{f.package}.{m.name}".lstrip(".") for f in files for m in f.message_type]
        message = f'there is no message "{config.message}" in {config.schema_file}'
        hint = did_you_mean(config.message, names)
        raise PlanError(message, code="unknown-message", hint=hint) from None
    except (Malformed, TypeError) as error:
        message = f"{config.schema_file} is no descriptor set: {reason(error)}"
        raise PlanError(message, code="invalid-schema") from error
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


def _messages(file: BinaryIO) -> Iterator[tuple[list[bytes], DecodeError | None]]:
    """Messages in groups; with the last, what is wrong with the rest of the file."""
    stream = buffered(file)
    found: list[bytes] = []
    size = 0
    while True:
        length, error = _length(stream)
        if length is not None:
            payload = stream.read(length)
            if len(payload) == length:
                found.append(payload)
                size += length
            else:
                length, error = None, DecodeError("the file ends within a message", code="cut-off")
        if length is None or len(found) >= _BLOCK or size >= 1 << 22:
            if found or error is not None:
                yield found, error
            found, size = [], 0
        if length is None:
            return


def _length(stream: io.BufferedReader) -> tuple[int | None, DecodeError | None]:
    value = 0
    for place in range(10):
        byte = stream.read(1)
        if not byte:
            cut = DecodeError("the file ends within a length", code="cut-off")
            return None, cut if place else None
        value |= (byte[0] & 0x7F) << (7 * place)
        if byte[0] < 0x80:
            break
    if value > _LONGEST:
        return None, DecodeError(f"a message of {value:,} bytes", code="too-long")
    return value, None


def _varint(value: int) -> bytes:
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])


def _undecodable(error: Exception) -> DecodeError:
    if isinstance(error, pa.ArrowInvalid):
        return DecodeError(reason(error), code=code_of(error))
    why = reason(error).removeprefix("failed to decode Protobuf message: ")
    return DecodeError(f"not the Protobuf message: {why}", code="not-protobuf")


def _unencodable(error: Exception) -> EncodeError:
    return EncodeError(f"the row does not fit the message: {reason(error)}")
