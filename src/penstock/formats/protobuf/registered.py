"""Protocol Buffers whose payloads start with a schema ID and message indexes."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa

from penstock.core.errors import DecodeError, PlanError
from penstock.formats.protobuf.compiled import compile_text
from penstock.formats.protobuf.message import Message
from penstock.formats.protobuf.plain import configured_message
from penstock.formats.protobuf.serialized_descriptors import serialized_set
from penstock.sdk.component import Context
from penstock.sdk.encoding.type_column import (
    check_type_column,
    with_type_name,
    without_column,
)
from penstock.sdk.record import Decoded
from penstock.sdk.schema_registry import Draft, Registered, RegistryFormat
from penstock.sdk.schema_registry.format import Decode, Encoder
from penstock.sdk.schema_registry.wire_format import Origin

_STANDARD = "google/protobuf/"


class RegisteredProtobuf(RegistryFormat):
    """Protocol Buffers read as the configured or pinned message, with fields matched by number."""

    kind = "PROTOBUF"
    extra: ClassVar[str | None] = "protobuf"
    client_modules = ("ptars", "grpc_tools")

    def __init__(self, config: Any, context: Context | None = None) -> None:
        super().__init__(config, context)
        self.message = None if config.schema_file is None else configured_message(config)

    def declared_schema(self) -> pa.Schema | None:
        return None if self.message is None else self.message.columns

    def check_columns(self, columns: pa.Schema) -> None:
        check_type_column(columns, self.config.type_column)
        if self.message is not None:
            self.message.check_columns(columns)

    def columns_of(self, schema: Registered) -> pa.Schema:
        if self.config.type_column is not None:
            raise PlanError(
                "the columns of several messages are not known", code="missing-schema",
                hint="Declare the columns in schema.",
            )  # fmt: skip
        return self._select_message(schema).columns

    def columns_of_origin(self, origin: Origin, writer: Registered) -> pa.Schema:
        return self._writer_message(writer, origin).columns

    def pinned(self, schema: Registered) -> Registered:
        message = self._select_message(schema)
        pinned = {"message": message.name, "set": base64.b64encode(message.descriptors).decode()}
        return replace(schema, text=json.dumps(pinned), references=())

    def decoder(self, origin: Origin, writer: Registered, reader: Registered | None) -> Decode:
        written = self._writer_message(writer, origin)
        if self.config.type_column is not None:
            return _typed_decoder(written, self.config.type_column)
        message = self.message or self._pinned_message(reader) or written
        expected = self.config.message or message.name
        if written.name != expected:
            raise DecodeError(
                f"expected the message {expected}, found {written.name} of schema {origin.id}",
                code="another-message",
            )
        return message.decode

    def _pinned_message(self, reader: Registered | None) -> Message | None:
        if reader is None:
            return None
        pinned = json.loads(reader.text)
        return self._message(base64.b64decode(pinned["set"]), pinned["message"], reader)

    def _writer_message(self, schema: Registered, origin: Origin) -> Message:
        descriptors = self._descriptors(schema)
        try:
            name = {path: name for name, path in list_messages(descriptors)}[origin.message]
        except KeyError:
            path = ".".join(map(str, origin.message))
            raise DecodeError(
                f"schema {schema.id} has no message at {path}", code="unknown-message"
            ) from None
        return self._message(descriptors, name, schema)

    def _select_message(self, schema: Registered) -> Message:
        """Returns the message named by the option `message`, or the first message."""
        descriptors = self._descriptors(schema)
        first = next(list_messages(descriptors), None)
        if first is None:
            raise PlanError(f"schema {schema.id} has no message", code="unknown-message")
        return self._message(descriptors, self.config.message or first[0], schema)

    def _message(self, descriptors: bytes, name: str, schema: Registered) -> Message:
        label = f"schema {schema.id} of the registry"
        names = self.config.enums == "name"
        config = self.config
        return Message(descriptors, name, names, label, config.conversion, config.as_json)

    def _descriptors(self, schema: Registered) -> bytes:
        def compile_schema() -> bytes:
            imported: dict[str, str] = {}
            self._collect(schema, imported)
            serialized = serialized_set(schema.text, imported)
            if serialized is not None:
                return serialized
            return compile_text(f"penstock-{schema.id}.proto", schema.text, imported)

        descriptors: bytes = self.registry.cached(("descriptors", schema.id), compile_schema)
        return descriptors

    def _collect(self, schema: Registered, imported: dict[str, str]) -> None:
        for name, other in self.registry.get_references(schema):
            if name not in imported:
                imported[name] = other.text
                self._collect(other, imported)

    def encoder(self, columns: pa.Schema, schema: Registered | None) -> Encoder:
        message = self._configured_message() if schema is None else self._select_message(schema)
        draft = schema if schema is not None else Draft(self.kind, self._text(message))
        message.encode(pa.RecordBatch.from_pylist([], columns))
        path = dict(list_messages(message.descriptors))[message.name]
        return Encoder(message.encode, draft, path)

    def _configured_message(self) -> Message:
        if self.message is None or not str(self.config.schema_file).endswith(".proto"):
            raise PlanError(
                "expected a Protobuf schema; none can be derived from columns",
                code="missing-schema",
                hint="Set schema_file and message, or registry.register: false for a schema of the "
                "registry.",
            )
        return self.message

    def _text(self, message: Message) -> str:
        for path in _files(message.descriptors)[-1].dependency:
            if not path.startswith(_STANDARD):
                raise PlanError(
                    f"{message.label} imports {path}, but only single files can be registered",
                    code="unsupported-import",
                    hint="Register the files with other tools and set registry.register: false.",
                )
        return Path(self.config.schema_file).read_text(encoding="utf-8")


def _typed_decoder(message: Message, type_column: str) -> Decode:
    def decode(payloads: pa.BinaryArray, schema: pa.Schema) -> Decoded:
        decoded = message.decode(payloads, without_column(schema, type_column))
        return with_type_name(decoded, schema, type_column, message.name)

    return decode


def list_messages(descriptors: bytes) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yields the names and indexes of the messages in the last file of a set."""
    file = _files(descriptors)[-1]
    yield from _nested(file.message_type, f"{file.package}." if file.package else "", ())


def _nested(
    types: Any, prefix: str, path: tuple[int, ...]
) -> Iterator[tuple[str, tuple[int, ...]]]:
    for index, message in enumerate(types):
        nested_path = (*path, index)
        yield prefix + message.name, nested_path
        yield from _nested(message.nested_type, f"{prefix}{message.name}.", nested_path)


def _files(descriptors: bytes) -> Any:
    from google.protobuf.descriptor_pb2 import FileDescriptorSet

    return FileDescriptorSet.FromString(descriptors).file
