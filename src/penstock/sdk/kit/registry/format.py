"""A format whose payloads name their schemas: what the kinds of schemas have in common."""

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
from penstock.sdk.format import Format
from penstock.sdk.kit.arrays import in_order, without_nulls
from penstock.sdk.kit.columns import one_batch
from penstock.sdk.kit.registry.client import Draft, Registered, Registry
from penstock.sdk.kit.registry.frame import Origin, header, opened
from penstock.sdk.kit.registry.options import RegistryOptions
from penstock.sdk.record import Decoded, Encoded, Failure

PIN = b"penstock.registry"
"""Where a source's columns, which are pinned, carry the schema that they came from."""

Decode = Callable[[pa.BinaryArray, pa.Schema], Decoded]
Encode = Callable[[pa.RecordBatch], Encoded]


class Encoder(NamedTuple):
    """Encodes rows, less the frame, by `draft`; of a file of messages, by that at `message`."""

    encode: Encode
    draft: Draft
    message: tuple[int, ...] = ()


class RegistryFormat(Format[Any]):
    """Base of the formats with `registry`. Their payloads are messages; they are not for files.

    A payload's schema is fetched by its id, once in a process. That the registry does not answer
    is Transient, never an error of a record.
    """

    kind: ClassVar[str]
    """The registry's word for such schemas: AVRO, PROTOBUF, JSON."""
    extra: ClassVar[str | None] = "registry"
    clients: ClassVar[tuple[str, ...]] = ("confluent_kafka", "attrs", "authlib", "cachetools")

    def examine(self) -> None:
        for module in RegistryFormat.clients:
            if find_spec(module) is None:
                raise MissingExtra.of("registry", module)
        super().examine()

    _alone = False

    def check(self) -> None:
        self.registry.check()

    @abstractmethod
    def columns_of(self, schema: Registered) -> pa.Schema:
        """The columns of a schema. Raises PlanError where Arrow has no such type."""

    @abstractmethod
    def decoder(self, origin: Origin, writer: Registered, reader: Registered | None) -> Decode:
        """Decodes what was written by `writer`, less the frame; `reader` is the pinned schema.

        Raises DecodeError or PlanError if nothing of `writer` can be read.
        """

    @abstractmethod
    def encoder(self, columns: pa.Schema, schema: Registered | None) -> Encoder:
        """For rows of these columns: by a schema of the registry, or by one to be registered.

        Raises PlanError if such rows do not fit.
        """

    @property
    def options(self) -> RegistryOptions:
        """How the registry is reached."""
        options: RegistryOptions = self.config.registry
        return options

    @property
    def registry(self) -> Registry:
        """The registry."""
        return Registry.of(self.options)

    @property
    def subject(self) -> str:
        """The name under which the schema is kept. Raises PlanError if there is none."""
        if self.options.subject is not None:
            return self.options.subject
        if self.context.topic is not None:
            return f"{self.context.topic}-value"
        raise PlanError(
            "the registry's subject is not known, because the node has not just one topic",
            code="no-subject",
            hint="say it, as in registry: {url: ..., subject: orders-value}",
        )

    def infer(self, payloads: pa.BinaryArray) -> pa.Schema:
        """The columns of the subject's schema, which they carry; whatever the sample holds."""
        found = self.registry.of_subject(self.subject)
        self._need_kind(found, PlanError)
        columns = self.columns_of(found)
        return columns.with_metadata({PIN: json.dumps(asdict(self.pinned(found)))})

    def pinned(self, schema: Registered) -> Registered:
        """What is kept of a schema to read by it later, without the registry."""
        return schema

    @staticmethod
    def pin(columns: pa.Schema) -> Registered | None:
        """The schema that columns came from, if they carry it."""
        found = (columns.metadata or {}).get(PIN)
        if found is None:
            return None
        fields = json.loads(found)
        return Registered(**{**fields, "references": tuple(map(tuple, fields["references"]))})

    def decode(self, payloads: pa.BinaryArray, schema: pa.Schema) -> Decoded:
        return without_nulls(payloads, lambda some: self._decode(some, schema))

    def _decode(self, payloads: pa.BinaryArray, schema: pa.Schema) -> Decoded:
        """Payloads of the same origin together."""
        failures: list[Failure] = []
        groups: dict[Origin, tuple[list[int], list[bytes]]] = {}
        for index, payload in enumerate(payloads.to_pylist()):
            try:
                named, body = opened(payload, self.kind == "PROTOBUF")
            except DecodeError as error:
                failures.append(Failure(index, error))
                continue
            origin = named._replace(id=self.options.replace_ids.get(named.id, named.id))
            places, bodies = groups.setdefault(origin, ([], []))
            places.append(index)
            bodies.append(body)
        reader = self.pin(schema)
        parts: list[tuple[np.ndarray, pa.RecordBatch]] = []
        for origin, (places, bodies) in groups.items():
            try:
                decode = self._decoder(origin, reader)
            except RecordError as error:
                failures += [Failure(place, error) for place in places]
                continue
            found = decode(pa.array(bodies, pa.binary()), schema)
            good = np.asarray(places)
            failures += [Failure(places[at], error) for at, error in found.failures]
            parts.append((good if found[1] is None else good[found[1].to_numpy()], found.rows))
        return _merged(parts, schema, in_order(failures))

    def _decoder(self, origin: Origin, reader: Registered | None) -> Decode:
        def make() -> Decode | RecordError:
            writer = self.registry.by_id(origin.id)
            try:
                self._need_kind(writer, DecodeError)
                return self.decoder(origin, writer, reader)
            except RecordError as error:
                return error
            except PlanError as error:
                return DecodeError(
                    f"schema {origin.id} of the registry: {error.message}", code=error.code,
                    hint=error.hint, detail=error.detail,
                )  # fmt: skip

        key = (type(self), pickle.dumps(self.config), origin, reader)
        found = self.registry.kept(key, make)
        if isinstance(found, RecordError):
            raise found
        return found  # type: ignore[no-any-return]

    def _need_kind(self, schema: Registered, error: type[PlanError | DecodeError]) -> None:
        if schema.kind != self.kind:
            raise error(
                f"schema {schema.id} of the registry is {schema.kind}, not {self.kind}",
                code="wrong-schema-type",
            )

    def prepare(self, columns: pa.Schema) -> None:
        """Registers the schema of these columns, or looks at the one that is there."""
        if self.options.compatibility is not None and self.options.registers:
            self.registry.set_compatibility(self.subject, self.options.compatibility)
        self._ready(columns)

    def encode(self, rows: pa.RecordBatch) -> Encoded:
        if self._alone or not rows.num_rows:
            return self._encode_alone(rows)
        encode, head = self._ready(rows.schema)
        payloads, index, failures = encode(rows)
        framed = [head + payload for payload in payloads.to_pylist()]
        return Encoded(pa.array(framed, pa.binary()), index, failures)

    def offline(self) -> Format[Any]:
        found = copy(self)
        found._alone = True
        return found

    def _encode_alone(self, rows: pa.RecordBatch) -> Encoded:
        """Payloads without a frame, as far as they are known without the registry."""
        _ = self.subject
        if self.options.registers:
            return self.encoder(rows.schema, None).encode(rows)
        return Encoded(pa.array([b""] * rows.num_rows, pa.binary()), None, ())

    def _ready(self, columns: pa.Schema) -> tuple[Encode, bytes]:
        """How rows are written, and what their payloads begin with."""
        about = columns.serialize().to_pybytes()
        key = (type(self), pickle.dumps(self.config), self.subject, about)
        return self.registry.kept(key, lambda: self._made(columns))  # type: ignore[no-any-return]

    def _made(self, columns: pa.Schema) -> tuple[Encode, bytes]:
        if self.options.registers:
            encoder = self.encoder(columns, None)
            id_ = self.registry.register(self.subject, encoder.draft)
        else:
            found = self.registry.of_subject(self.subject)
            self._need_kind(found, PlanError)
            encoder, id_ = self.encoder(columns, found), found.id
        return encoder.encode, header(Origin(id_, encoder.message))


def _merged(
    parts: Sequence[tuple[np.ndarray, pa.RecordBatch]], schema: pa.Schema, failures: list[Failure]
) -> Decoded:
    """The rows of all parts, in the order of their payloads."""
    rows = one_batch([each for _, each in parts], schema)
    places = np.concatenate([each for each, _ in parts]) if parts else np.array([], np.int64)
    if len(parts) > 1:
        order = np.argsort(places)
        rows, places = rows.take(pa.array(order)), places[order]
    return Decoded(rows, pa.array(places, pa.int64()) if failures else None, failures)
