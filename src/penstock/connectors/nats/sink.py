"""The sink of NATS: subjects, streams and buckets."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from penstock.connectors.nats.config import NatsSinkConfig
from penstock.connectors.nats.subjects import (
    header_error,
    key_error,
    length_error,
    subject_error,
)
from penstock.connectors.nats.writer import OutgoingMessage, Publisher
from penstock.core.errors import OptionError, raise_all
from penstock.sdk import BatchId, Capability, Context, Rejected, Sink, Writer
from penstock.sdk.columns.checks import check_primary_key
from penstock.sdk.columns.template import Template
from penstock.sdk.messages.acknowledged_writer import AcknowledgedWriter

_MESSAGE_ID = "Nats-Msg-Id"
_DELETE_HEADERS = {"KV-Operation": "DEL"}


class NatsSink(Sink[NatsSinkConfig]):
    """Publishes rows to subjects of NATS, or writes them to a key-value bucket.

    With `stream` or `bucket` a batch is done when JetStream has acknowledged each message. Messages
    have IDs, so a batch that is repeated within the stream's duplicate window is dropped. With
    `subject` alone a batch is done when the server has accepted the messages, which it delivers to
    current subscribers. With `mode: upsert` the primary key is the key in the bucket, and a delete
    writes the marker of a deleted key.

    ```yaml
    type: nats
    from: orders
    url: nats://localhost:4222
    subject: orders.{country}
    stream: ORDERS
    ```
    """

    acknowledges: str | None = "JetStream has acknowledged each message"
    variants = ("subject: orders.new", "subject: orders.new, stream: ORDERS", "bucket: totals")
    capabilities = frozenset({Capability.BYTES, Capability.ORDERED})
    optional_capabilities = {Capability.UPSERT: "bucket", Capability.DELETE: "bucket"}
    extra = "nats"
    client_modules = ("nats", "nkeys")

    def __init__(self, config: NatsSinkConfig, context: Context | None = None) -> None:
        super().__init__(config, context)
        if config.bucket is not None:
            self.capabilities = self.capabilities | self.optional_capabilities.keys()
            self.uses_primary_key = True
        if config.acknowledging_stream is None:
            self.acknowledges = "the server has accepted the messages, for current subscribers"

    def check_schema(self, columns: pa.Schema) -> None:
        super().check_schema(columns)
        config = self.config
        if config.bucket is not None and config.key is None and not self.primary_key:
            raise OptionError.of(
                "bucket",
                message="expected key, or mode: upsert with a primary key",
                code="missing-option",
                hint="Set key to a template, or set mode: upsert and primary_key.",
            )
        templates = [
            *((("headers", name), template) for name, template in config.headers.items()),
            *(((name,), getattr(config, name)) for name in ("subject", "key", "message_id")),
        ]
        raise_all(
            error for option, template in templates if template is not None
            for error in template.check(columns, *option)
        )  # fmt: skip

        if self.mode == "upsert":
            used = self.subject_template.columns
            raise_all(check_primary_key(self.primary_key, used, "key"))

    @property
    def overwriting_columns(self) -> Sequence[str] | None:
        return None if self.config.bucket is None else sorted(self.subject_template.columns)

    def check(self) -> None:
        publisher = self.open()
        try:
            publisher.check()
        finally:
            publisher.close()

    def open(self) -> Publisher:
        return Publisher(self.config)

    def writer(self, client: Any, batch: BatchId, partition: int, schema: pa.Schema) -> Writer:
        node_path = [self.context.pipeline, self.context.node, batch.query]
        number = f"{batch.number}-{batch.content}" if batch.content else str(batch.number)
        return NatsWriter(client, self, [*node_path, number, str(partition)])

    @property
    def subject_template(self) -> Template:
        """The template of a row's subject, or of the subject of its key in the bucket."""
        if self.config.bucket is None:
            return self.config.subject or Template("")
        key = self.config.key or ".".join(f"{{{name}}}" for name in self.primary_key)
        return Template(f"$KV.{self.config.bucket}.{key}")


class NatsWriter(AcknowledgedWriter[OutgoingMessage]):
    """Publishes the rows of a partition. `batch_path` identifies the partition of the batch."""

    def __init__(self, publisher: Publisher, sink: NatsSink, batch_path: Sequence[str]) -> None:
        self._publisher, self._sink, self._config = publisher, sink, sink.config
        self._batch_key = "\0".join(batch_path).encode()
        self._row_counts: Counter[bytes] = Counter()

    def messages(self, rows: pa.RecordBatch, payloads: Any) -> Iterator[OutgoingMessage | Rejected]:
        headers = {name: template.render(rows) for name, template in self._config.headers.items()}
        if self._config.message_id is not None:
            headers[_MESSAGE_ID] = self._config.message_id.render(rows)
        subjects = self._sink.subject_template.render(rows)
        for index, (subject, payload) in enumerate(
            zip(subjects, payloads.to_pylist(), strict=True)
        ):
            error = self._subject_error(subject)
            if subject is None or error is not None:
                yield Rejected(f"{error}", code="invalid-subject")
                continue
            row_headers = {
                name: value
                for name, values in headers.items()
                if (value := values[index]) is not None
            }
            errors = [error for item in row_headers.items() if (error := header_error(*item))]
            if errors:
                yield Rejected(errors[0], code="invalid-header")
            else:
                yield self._message(subject, payload, row_headers)

    def send(self, messages: Sequence[OutgoingMessage]) -> list[Rejected | None]:
        return self._publisher.send(messages)

    def _subject_error(self, subject: str | None) -> str | None:
        if subject is None:
            return "the subject is null"
        if self._config.bucket is not None:
            key = subject.removeprefix(f"$KV.{self._config.bucket}.")
            return key_error(key) or length_error(subject)
        return subject_error(subject)

    def _message(
        self, subject: str, payload: bytes | None, headers: dict[str, str]
    ) -> OutgoingMessage:
        if payload is None and self._config.bucket is not None:
            headers = {**headers, **_DELETE_HEADERS}
        if self._config.acknowledging_stream is not None and _MESSAGE_ID not in headers:
            headers = {**headers, _MESSAGE_ID: self._message_id(subject, payload, headers)}
        return OutgoingMessage(subject, payload or b"", headers)

    def _message_id(self, subject: str, payload: bytes | None, headers: dict[str, str]) -> str:
        """Returns an ID that is the same when the batch is repeated, in any order of rows.

        Equal rows are numbered, so that they are not dropped as duplicates.
        """
        digest = hashlib.blake2b(self._batch_key, digest_size=16)
        for part in (subject.encode(), payload or b"", repr(sorted(headers.items())).encode()):
            digest.update(b"%d:" % len(part))
            digest.update(part)
        self._row_counts[digest.digest()] += 1
        return f"{digest.hexdigest()}-{self._row_counts[digest.digest()]}"
