"""Base of formats whose payloads carry the ID of their schema in a registry."""

from __future__ import annotations

import json
import pickle
from abc import abstractmethod
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import asdict
from importlib.util import find_spec
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa

from penstock.core.errors import DecodeError, MissingExtra, PlanError, RecordError
from penstock.sdk.columns.binary_arrays import decode_non_null, sort_failures
from penstock.sdk.columns.conform import concat_batches
from penstock.sdk.format import Format
from penstock.sdk.record import Decoded, Encoded, Failure
from penstock.sdk.schema_registry.client import Draft, Registered, Registry
from penstock.sdk.schema_registry.options import RegistryOptions
from penstock.sdk.schema_registry.wire_format import Origin, header, split_header

PIN = b"penstock.registry"
"""Key of the schema metadata that holds the registry schema of pinned columns."""

Decode = Callable[[pa.BinaryArray, pa.Schema], Decoded]
Encode = Callable[[pa.RecordBatch], Encoded]


class Encoder(NamedTuple):
    """An encoder of rows, without the header, by the schema `draft`.

    `message` is the path of a Protobuf message in its file.
    """

    encode: Encode
    draft: Draft
    message: tuple[int, ...] = ()


class RegistryFormat(Format[Any]):
    """Base of formats with `registry`, for messages only.

    The schema of a payload is fetched by its ID, once in a process. An unreachable registry is a
    Transient error, never an error of a record.
    """

    kind: ClassVar[str]
    """The schema type of the registry: AVRO, PROTOBUF or JSON."""
    extra: ClassVar[str | None] = "registry"
    client_modules: ClassVar[tuple[str, ...]] = (
        "confluent_kafka",
        "attrs",
        "authlib",
        "cachetools",
    )

    def validate(self) -> None:
        for module in RegistryFormat.client_modules:
            if find_spec(module) is None:
                raise MissingExtra.of("registry", module)
        super().validate()

    _offline = False

    def check(self) -> None:
        self.registry.check()

    @abstractmethod
    def columns_of(self, schema: Registered) -> pa.Schema:
        """Returns the columns of a schema. Raises PlanError for a type without an Arrow type."""

    @abstractmethod
    def decoder(self, origin: Origin, writer: Registered, reader: Registered | None) -> Decode:
        """Returns a decoder of payloads without header written by `writer`.

        `reader` is the pinned schema. Raises DecodeError or PlanError if they do not resolve.
        """

    @abstractmethod
    def encoder(self, columns: pa.Schema, schema: Registered | None) -> Encoder:
        """Returns an encoder for these columns, by `schema` or by one to register.

        Raises PlanError if the columns do not fit the schema.
        """

    @property
    def options(self) -> RegistryOptions:
        """The options of the registry."""
        options: RegistryOptions = self.config.registry
        return options

    @property
    def registry(self) -> Registry:
        """The registry's client in this process."""
        return Registry.of(self.options)

    @property
    def subject(self) -> str:
        """The subject of the schema. Raises PlanError if it is unknown."""
        if self.options.subject is not None:
            return self.options.subject
        if self.context.topic is not None:
            return f"{self.context.topic}-value"
        raise PlanError(
            "the registry subject is unknown, because the node does not have exactly one topic",
            code="missing-option",
            hint="Set it, as in registry: {url: ..., subject: orders-value}.",
        )

    def infer_schema(self, payloads: pa.BinaryArray) -> pa.Schema:
        """Returns the columns of the subject's schema, with the schema as metadata.

        The sample is ignored.
        """
        schema = self.registry.get_subject_schema(self.subject)
        self._check_kind(schema, PlanError)
        columns = self.columns_of(schema)
        return columns.with_metadata({PIN: json.dumps(asdict(self.pinned(schema)))})

    def written_columns(self, payload: bytes) -> pa.Schema:
        """Returns the columns of the schema of a payload. Raises DecodeError, or PlanError."""
        origin, _ = split_header(payload, self.kind == "PROTOBUF")
        writer = self.registry.get_schema(origin.id)
        self._check_kind(writer, DecodeError)
        return self.columns_of_origin(origin, writer)

    def columns_of_origin(self, origin: Origin, writer: Registered) -> pa.Schema:
        """Returns the columns of a schema; of Protobuf those of the message of the origin."""
        return self.columns_of(writer)

    def pinned(self, schema: Registered) -> Registered:
        """Returns the form of a schema that can be used later without the registry."""
        return schema

    @staticmethod
    def pin(columns: pa.Schema) -> Registered | None:
        """Returns the registry schema in the metadata of columns, if any."""
        entry = (columns.metadata or {}).get(PIN)
        if entry is None:
            return None
        fields = json.loads(entry)
        return Registered(**{**fields, "references": tuple(map(tuple, fields["references"]))})

    def decode(self, payloads: pa.BinaryArray, schema: pa.Schema) -> Decoded:
        return decode_non_null(payloads, lambda present: self._decode(present, schema))

    def _decode(self, payloads: pa.BinaryArray, schema: pa.Schema) -> Decoded:
        """Decodes payloads, grouped by schema."""
        failures: list[Failure] = []
        groups: dict[Origin, tuple[list[int], list[bytes]]] = {}
        for index, payload in enumerate(payloads.to_pylist()):
            try:
                prefix, body = split_header(payload, self.kind == "PROTOBUF")
            except DecodeError as error:
                failures.append(Failure(index, error))
                continue
            origin = prefix._replace(id=self.options.replace_ids.get(prefix.id, prefix.id))
            indexes, bodies = groups.setdefault(origin, ([], []))
            indexes.append(index)
            bodies.append(body)
        reader = self.pin(schema)
        parts: list[tuple[np.ndarray, pa.RecordBatch]] = []
        for origin, (indexes, bodies) in groups.items():
            try:
                decode = self._decoder(origin, reader)
                decoded = decode(pa.array(bodies, pa.binary()), schema)
            except (RecordError, PlanError) as error:
                failed = _record_error(error, origin)
                failures += [Failure(index, failed) for index in indexes]
                continue
            failures += [Failure(indexes[row], error) for row, error in decoded.failures]
            payload_indexes = np.asarray(indexes)
            if decoded.index is not None:
                payload_indexes = payload_indexes[decoded.index.to_numpy()]
            parts.append((payload_indexes, decoded.rows))
        return _merge(parts, schema, sort_failures(failures))

    def _decoder(self, origin: Origin, reader: Registered | None) -> Decode:
        def create() -> Decode | RecordError:
            writer = self.registry.get_schema(origin.id)
            try:
                self._check_kind(writer, DecodeError)
                return self.decoder(origin, writer, reader)
            except (RecordError, PlanError) as error:
                return _record_error(error, origin)

        key = (type(self), pickle.dumps(self.config), origin, reader)
        result = self.registry.cached(key, create)
        if isinstance(result, RecordError):
            raise result
        return result  # type: ignore[no-any-return]

    def _check_kind(self, schema: Registered, error: type[PlanError | DecodeError]) -> None:
        if schema.kind != self.kind:
            raise error(
                f"schema {schema.id} of the registry is {schema.kind}, not {self.kind}",
                code="wrong-schema-type",
            )

    def prepare(self, columns: pa.Schema) -> None:
        """Registers the schema of these columns, or checks the registered one."""
        if self.options.compatibility is not None and self.options.registers:
            self.registry.set_compatibility(self.subject, self.options.compatibility)
        self._encoder(columns)

    def encode(self, rows: pa.RecordBatch) -> Encoded:
        if self._offline or not rows.num_rows:
            return self._encode_offline(rows)
        encode, head = self._encoder(rows.schema)
        payloads, index, failures = encode(rows)
        with_header = [head + payload for payload in payloads.to_pylist()]
        return Encoded(pa.array(with_header, pa.binary()), index, failures)

    def offline(self) -> Format[Any]:
        copied = copy(self)
        copied._offline = True
        return copied

    def _encode_offline(self, rows: pa.RecordBatch) -> Encoded:
        """Encodes payloads without header, as far as possible without the registry."""
        _ = self.subject
        if self.options.registers:
            return self.encoder(rows.schema, None).encode(rows)
        return Encoded(pa.array([b""] * rows.num_rows, pa.binary()), None, ())

    def _encoder(self, columns: pa.Schema) -> tuple[Encode, bytes]:
        """Returns the encoder for columns and the header of their payloads."""
        schema = columns.serialize().to_pybytes()
        key = (type(self), pickle.dumps(self.config), self.subject, schema)
        return self.registry.cached(key, lambda: self._create_encoder(columns))  # type: ignore[no-any-return]

    def _create_encoder(self, columns: pa.Schema) -> tuple[Encode, bytes]:
        if self.options.registers:
            encoder = self.encoder(columns, None)
            id_ = self.registry.register(self.subject, encoder.draft)
        else:
            registered = self.registry.get_subject_schema(self.subject)
            self._check_kind(registered, PlanError)
            encoder, id_ = self.encoder(columns, registered), registered.id
        return encoder.encode, header(Origin(id_, encoder.message))


def _record_error(error: RecordError | PlanError, origin: Origin) -> RecordError:
    """Returns the error of the payloads of a schema that cannot be used."""
    if isinstance(error, RecordError):
        return error
    return DecodeError(
        f"schema {origin.id} of the registry: {error.message}", code=error.code, hint=error.hint,
        detail=error.detail,
    )  # fmt: skip


def _merge(
    parts: Sequence[tuple[np.ndarray, pa.RecordBatch]], schema: pa.Schema, failures: list[Failure]
) -> Decoded:
    """Concatenates the rows of all parts in the order of their payloads."""
    rows = concat_batches([batch for _, batch in parts], schema)
    indexes = np.concatenate([index for index, _ in parts]) if parts else np.array([], np.int64)
    if len(parts) > 1:
        order = np.argsort(indexes)
        rows, indexes = rows.take(pa.array(order)), indexes[order]
    return Decoded(rows, pa.array(indexes, pa.int64()) if failures else None, failures)
