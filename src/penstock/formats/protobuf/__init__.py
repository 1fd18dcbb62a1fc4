"""Protocol Buffers: one message a record; a file has each message behind its length."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO, ClassVar, Literal, Self

import pyarrow as pa
from pydantic import model_validator

from penstock.core.errors import DecodeError
from penstock.formats.protobuf.compiled import descriptors_of
from penstock.formats.protobuf.lengths import behind_length, messages, unpacked
from penstock.formats.protobuf.message import Message
from penstock.sdk.component import Component, Context
from penstock.sdk.config import Config, UserPath
from penstock.sdk.format import FileFormat, FileWriter
from penstock.sdk.kit.registry import RegistryOptions
from penstock.sdk.record import Decoded, Encoded, Failure, Read


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
    length_delimited: bool = False
    """Whether each payload is a message behind its length (varint), as `writeDelimitedTo` of
    Google's libraries writes it. In files it always is."""
    registry: RegistryOptions | None = None
    """A schema registry: each payload begins with the id of its schema there and says which of its
    messages it is. `schema_file` and `message` can be left out then."""

    @model_validator(mode="after")
    def _of_something(self) -> Self:
        if self.registry is None and (self.schema_file is None or self.message is None):
            raise ValueError("give schema_file and message, or a registry")
        if self.schema_file is not None and self.message is None:
            raise ValueError("which message of schema_file? as in message: shop.Order")
        if self.registry is not None and self.length_delimited:
            raise ValueError("payloads of a registry have no length: leave out length_delimited")
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
        if self.config.length_delimited:
            return self._decode_behind_lengths(payloads, schema)
        return self.message.decode(payloads, schema)

    def _decode_behind_lengths(self, payloads: pa.BinaryArray, schema: pa.Schema) -> Decoded:
        found: list[bytes | None] = []
        wrong: dict[int, DecodeError] = {}
        for at, payload in enumerate(payloads.to_pylist()):
            try:
                found.append(None if payload is None else unpacked(payload))
            except DecodeError as error:
                found.append(None)
                wrong[at] = error
        rows, index, failures = self.message.decode(pa.array(found, pa.binary()), schema)
        return Decoded(rows, index, [Failure(at, wrong.get(at, error)) for at, error in failures])

    def encode(self, rows: pa.RecordBatch) -> Encoded:
        encoded = self.message.encode(rows)
        if not self.config.length_delimited:
            return encoded
        payloads = [behind_length(each) for each in encoded.payloads.to_pylist()]
        return encoded._replace(payloads=pa.array(payloads, pa.binary()))

    def read_file(
        self, file: BinaryIO, schema: pa.Schema, origin: str, read: Read
    ) -> Iterator[tuple[pa.RecordBatch, pa.Int64Array]]:
        before = 0
        for payloads, error in messages(file):
            found = self.message.decode(pa.array(payloads, pa.binary()), schema)
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
        return _Writer(file, self.message)

    def infer_file(self, file: BinaryIO) -> pa.Schema | None:
        return self.declared()


def given(config: ProtobufConfig) -> Message:
    """The message that the options name."""
    assert config.schema_file is not None
    assert config.message is not None
    descriptors = descriptors_of(config.schema_file, config.include)
    return Message(descriptors, config.message, config.enums == "name", config.schema_file)


class _Writer(FileWriter):
    def __init__(self, file: BinaryIO, message: Message) -> None:
        self.file = file
        self.message = message

    def write(self, rows: pa.RecordBatch) -> Encoded | None:
        encoded = self.message.encode(rows)
        self.file.write(b"".join(map(behind_length, encoded.payloads.to_pylist())))
        return encoded if encoded.failures else None

    def close(self) -> None:
        pass
