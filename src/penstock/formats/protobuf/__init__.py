"""Protocol Buffers: one message a record; a file has each message behind its length."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import BinaryIO, ClassVar, Literal, Self

import pyarrow as pa
from pydantic import model_validator

from penstock.core.errors import DecodeError
from penstock.formats.protobuf.compiled import descriptors_of
from penstock.formats.protobuf.message import Message
from penstock.sdk.component import Component, Context
from penstock.sdk.config import Config, UserPath
from penstock.sdk.format import FileFormat, FileWriter
from penstock.sdk.kit.registry import RegistryOptions
from penstock.sdk.kit.streams import buffered
from penstock.sdk.record import Decoded, Encoded, Read

_BLOCK = 4096
_LONGEST = 64 << 20


class ProtobufConfig(Config):
    """Options of `protobuf`."""

    schema_file: UserPath | None = None
    """A `.proto` file, or a compiled descriptor set (`protoc --include_imports -o`)."""
    message: str | None = None
    """The message, with its package: `shop.Order`."""
    include: list[UserPath] = []
    """Directories of imported files, beside that of `schema_file`."""
    enums: Literal["name", "number"] = "name"
    """Whether an enum is STRING or INT."""
    registry: RegistryOptions | None = None
    """A schema registry: each payload begins with the id of its schema there and says which of its
    messages it is. `schema_file` and `message` can be left out then."""

    @model_validator(mode="after")
    def _of_something(self) -> Self:
        if self.registry is None and (self.schema_file is None or self.message is None):
            raise ValueError("give schema_file and message, or a registry")
        if self.schema_file is not None and self.message is None:
            raise ValueError("which message of schema_file? as in message: shop.Order")
        return self


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

    With `registry` a payload is read as the message given here or, where none is and no columns are
    declared, as that of the registry's schema which the first run found: the one called `message`,
    or the first. Where columns are declared they are taken from what was written, by name. A
    payload of another message is an error. A sink registers `schema_file`, which must not import
    files other than those of `google/protobuf`.
    """

    extra: ClassVar[str | None] = "protobuf"
    clients = ("ptars", "grpc_tools")
    extension: ClassVar[str] = ".pb"
    concatenable: ClassVar[bool] = True

    def __init__(self, config: ProtobufConfig, context: Context | None = None) -> None:
        super().__init__(config, context)
        self.message = given(config)

    @classmethod
    def of(
        cls, config: ProtobufConfig, context: Context | None = None
    ) -> Component[ProtobufConfig]:
        if config.registry is None:
            return cls(config, context)
        from penstock.formats.protobuf.registered import RegisteredProtobuf

        return RegisteredProtobuf(config, context)

    def declared(self) -> pa.Schema | None:
        columns: pa.Schema = self.message.columns
        return columns

    def decode(self, payloads: pa.BinaryArray, schema: pa.Schema) -> Decoded:
        return self.message.decode(payloads, schema)

    def encode(self, rows: pa.RecordBatch) -> Encoded:
        return self.message.encode(rows)

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


def given(config: ProtobufConfig) -> Message:
    """The message that the options name."""
    assert config.schema_file is not None
    assert config.message is not None
    descriptors = descriptors_of(config.schema_file, config.include)
    return Message(descriptors, config.message, config.enums == "name", config.schema_file)


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
