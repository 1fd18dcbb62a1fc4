"""Protocol Buffers messages without a schema registry."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import BinaryIO, ClassVar, Literal, Self

import pyarrow as pa
from pydantic import model_validator

from penstock.core.errors import DecodeError
from penstock.formats.protobuf.compiled import read_descriptors
from penstock.formats.protobuf.lengths import delimit, read_messages, undelimit
from penstock.formats.protobuf.message import Message
from penstock.sdk.component import Context
from penstock.sdk.config import UserFile, UserPath
from penstock.sdk.encoding.time_options import TimeOptions
from penstock.sdk.format import FileFormat, FileWriter
from penstock.sdk.record import Decoded, Encoded, Failure, Read
from penstock.sdk.schema_registry import RegistryOptions


class ProtobufConfig(TimeOptions):
    """Options of `protobuf`."""

    schema_file: UserFile | None = None
    """A `.proto` file, or a compiled descriptor set (`protoc --include_imports -o`)."""
    message: str | None = None
    """The full name of the message, such as `shop.Order`."""
    include: list[UserPath] = []
    """Directories of imported files, in addition to that of `schema_file`."""
    enums: Literal["name", "number"] = "name"
    """Read enums as STRING (names) or INT (numbers)."""
    as_json: bool = False
    """Read each message, also a recursive one, as one STRING or VARIANT column, by default `value`,
    with its JSON text in the JSON mapping of Protobuf: `int64` and `bytes` are texts, and fields
    without a value are omitted."""
    type_column: str | None = None
    """A STRING column with the full name of the message, for a topic with several messages of the
    `registry`: each payload is decoded as its own message. The columns must be declared."""
    length_delimited: bool = False
    """Each payload is a message after its length (varint), as written by `writeDelimitedTo` of
    Google's libraries. Messages in files are always length-delimited."""
    registry: RegistryOptions | None = None
    """A schema registry: each payload starts with the ID of its schema and the index of its
    message. `schema_file` and `message` are optional then."""

    @model_validator(mode="after")
    def _check_schema(self) -> Self:
        if self.registry is None and (self.schema_file is None or self.message is None):
            raise ValueError("expected schema_file and message, or a registry")
        if self.schema_file is not None and self.message is None:
            raise ValueError("expected a message of schema_file, as in message: shop.Order")
        if self.type_column is not None and (self.registry is None or self.message is not None):
            raise ValueError("expected a registry without a message with type_column")
        if self.type_column is not None and self.as_json:
            raise ValueError("expected no type_column with as_json")
        if self.registry is not None and self.length_delimited:
            raise ValueError("expected no length_delimited with a registry")
        return self


class PlainProtobuf(FileFormat[ProtobufConfig]):
    """Protocol Buffers messages without a schema registry."""

    extra: ClassVar[str | None] = "protobuf"
    client_modules = ("ptars", "grpc_tools")
    extension: ClassVar[str] = ".pb"
    concatenable: ClassVar[bool] = True

    def __init__(self, config: ProtobufConfig, context: Context | None = None) -> None:
        super().__init__(config, context)
        self.message = configured_message(config)

    def declared_schema(self) -> pa.Schema | None:
        columns: pa.Schema = self.message.columns
        return columns

    def check_columns(self, columns: pa.Schema) -> None:
        self.message.check_columns(columns)

    def decode(self, payloads: pa.BinaryArray, schema: pa.Schema) -> Decoded:
        if self.config.length_delimited:
            return self._decode_delimited(payloads, schema)
        return self.message.decode(payloads, schema)

    def _decode_delimited(self, payloads: pa.BinaryArray, schema: pa.Schema) -> Decoded:
        messages: list[bytes | None] = []
        errors: dict[int, DecodeError] = {}
        for number, payload in enumerate(payloads.to_pylist()):
            try:
                messages.append(None if payload is None else undelimit(payload))
            except DecodeError as error:
                messages.append(None)
                errors[number] = error
        rows, index, failures = self.message.decode(pa.array(messages, pa.binary()), schema)
        return Decoded(
            rows, index, [Failure(number, errors.get(number, error)) for number, error in failures]
        )

    def encode(self, rows: pa.RecordBatch) -> Encoded:
        encoded = self.message.encode(rows)
        if not self.config.length_delimited:
            return encoded
        payloads = [delimit(payload) for payload in encoded.payloads.to_pylist()]
        return encoded._replace(payloads=pa.array(payloads, pa.binary()))

    def read_file(
        self, file: BinaryIO, schema: pa.Schema, origin: str, read: Read
    ) -> Iterator[tuple[pa.RecordBatch, pa.Int64Array]]:
        before = 0
        for payloads, error in read_messages(file):
            decoded = self.message.decode(pa.array(payloads, pa.binary()), schema)
            for failure in decoded.failures:
                index = failure[0]
                read.reject(payloads[index], origin, before + index + 1, failure.error)
            indexes = range(len(payloads)) if decoded[1] is None else decoded[1].to_pylist()
            if decoded.rows.num_rows:
                positions = [before + index + 1 for index in indexes]
                yield decoded.rows, pa.array(positions, pa.int64())
            before += len(payloads)
            if error is not None:
                read.reject(None, origin, before + 1, error)

    def read_record(
        self, payload: bytes, header: bytes, schema: pa.Schema, origin: str, read: Read
    ) -> Iterator[tuple[pa.RecordBatch, pa.Int64Array]]:
        return self.read_file(io.BytesIO(delimit(payload)), schema, origin, read)

    def file_writer(self, file: BinaryIO, schema: pa.Schema) -> FileWriter:
        return _Writer(file, self.message)

    def infer_file(self, file: BinaryIO) -> pa.Schema | None:
        return self.declared_schema()


def configured_message(config: ProtobufConfig) -> Message:
    """Returns the configured message."""
    assert config.schema_file is not None
    assert config.message is not None
    descriptors = read_descriptors(config.schema_file, config.include)
    return Message(
        descriptors, config.message, config.enums == "name", config.schema_file,
        config.conversion, config.as_json,
    )  # fmt: skip


class _Writer(FileWriter):
    def __init__(self, file: BinaryIO, message: Message) -> None:
        self.file = file
        self.message = message

    def write(self, rows: pa.RecordBatch) -> Encoded | None:
        encoded = self.message.encode(rows)
        self.file.write(b"".join(map(delimit, encoded.payloads.to_pylist())))
        return encoded if encoded.failures else None

    def close(self) -> None:
        pass
