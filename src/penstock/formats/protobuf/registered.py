"""Protocol Buffers whose payloads begin with the id of their schema and the way to the message."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa

from penstock.core.errors import DecodeError, PlanError
from penstock.formats.protobuf import given
from penstock.formats.protobuf.compiled import compiled_text
from penstock.formats.protobuf.message import Message
from penstock.formats.protobuf.serialized import serialized_set
from penstock.sdk.component import Context
from penstock.sdk.kit.registry import Draft, Registered, RegistryFormat
from penstock.sdk.kit.registry.format import Decode, Encoder
from penstock.sdk.kit.registry.frame import Origin

_STANDARD = "google/protobuf/"


class RegisteredProtobuf(RegistryFormat):
    """Reads payloads as the message given, or pinned: fields by their numbers."""

    kind = "PROTOBUF"
    extra: ClassVar[str | None] = "protobuf"
    clients = ("ptars", "grpc_tools")

    def __init__(self, config: Any, context: Context | None = None) -> None:
        super().__init__(config, context)
        self.message = None if config.schema_file is None else given(config)

    def declared(self) -> pa.Schema | None:
        return None if self.message is None else self.message.columns

    def columns_of(self, schema: Registered) -> pa.Schema:
        return self._chosen(schema).columns

    def pinned(self, schema: Registered) -> Registered:
        message = self._chosen(schema)
        kept = {"message": message.name, "set": base64.b64encode(message.descriptors).decode()}
        return replace(schema, text=json.dumps(kept), references=())

    def decoder(self, origin: Origin, writer: Registered, reader: Registered | None) -> Decode:
        wrote = self._written(writer, origin)
        meant = self.message or self._pinned(reader) or wrote
        wanted = self.config.message or meant.name
        if wrote.name != wanted:
            raise DecodeError(
                f"the payload is a {wrote.name} of schema {origin.id}, not a {wanted}",
                code="another-message",
            )
        return meant.decode

    def _pinned(self, reader: Registered | None) -> Message | None:
        if reader is None:
            return None
        kept = json.loads(reader.text)
        return self._message(base64.b64decode(kept["set"]), kept["message"], reader)

    def _written(self, schema: Registered, origin: Origin) -> Message:
        descriptors = self._descriptors(schema)
        try:
            name = {way: name for name, way in messages(descriptors)}[origin.message]
        except KeyError:
            way = ".".join(map(str, origin.message))
            raise DecodeError(
                f"schema {schema.id} has no message at {way}", code="unknown-message"
            ) from None
        return self._message(descriptors, name, schema)

    def _chosen(self, schema: Registered) -> Message:
        """The message called `message`, or the first."""
        descriptors = self._descriptors(schema)
        first = next(messages(descriptors), None)
        if first is None:
            raise PlanError(f"schema {schema.id} has no message", code="unknown-message")
        return self._message(descriptors, self.config.message or first[0], schema)

    def _message(self, descriptors: bytes, name: str, schema: Registered) -> Message:
        shown = f"schema {schema.id} of the registry"
        return Message(descriptors, name, self.config.enums == "name", shown)

    def _descriptors(self, schema: Registered) -> bytes:
        def compiled() -> bytes:
            imported: dict[str, str] = {}
            self._collect(schema, imported)
            found = serialized_set(schema.text, imported)
            name = f"penstock-{schema.id}.proto"
            return compiled_text(name, schema.text, imported) if found is None else found

        found: bytes = self.registry.kept(("descriptors", schema.id), compiled)
        return found

    def _collect(self, schema: Registered, imported: dict[str, str]) -> None:
        for name, other in self.registry.referenced(schema):
            if name not in imported:
                imported[name] = other.text
                self._collect(other, imported)

    def encoder(self, columns: pa.Schema, schema: Registered | None) -> Encoder:
        message = self._own() if schema is None else self._chosen(schema)
        draft = schema if schema is not None else Draft(self.kind, self._text(message))
        message.encode(pa.RecordBatch.from_pylist([], columns))
        way = dict(messages(message.descriptors))[message.name]
        return Encoder(message.encode, draft, way)

    def _own(self) -> Message:
        if self.message is None or not str(self.config.schema_file).endswith(".proto"):
            raise PlanError(
                "rows become Protobuf by a schema, which cannot be made from columns",
                code="missing-schema",
                hint="say `schema_file: FILE.proto` and `message:`; or `register: false` in "
                "`registry`, if it has the schema already",
            )
        return self.message

    def _text(self, message: Message) -> str:
        for path in _files(message.descriptors)[-1].dependency:
            if not path.startswith(_STANDARD):
                raise PlanError(
                    f"{message.shown} imports {path}, and only single files can be registered",
                    code="unsupported-import",
                    hint="register them with the registry's own tools, and say `register: false`",
                )
        return Path(self.config.schema_file).read_text(encoding="utf-8")


def messages(descriptors: bytes) -> Iterator[tuple[str, tuple[int, ...]]]:
    """The messages of the last file of a set, with the way to each."""
    file = _files(descriptors)[-1]
    yield from _inside(file.message_type, f"{file.package}." if file.package else "", ())


def _inside(found: Any, prefix: str, way: tuple[int, ...]) -> Iterator[tuple[str, tuple[int, ...]]]:
    for index, each in enumerate(found):
        here = (*way, index)
        yield prefix + each.name, here
        yield from _inside(each.nested_type, f"{prefix}{each.name}.", here)


def _files(descriptors: bytes) -> Any:
    from google.protobuf.descriptor_pb2 import FileDescriptorSet

    return FileDescriptorSet.FromString(descriptors).file
