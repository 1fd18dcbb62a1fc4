"""The sink of NATS: subjects, streams and buckets."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Self

import pyarrow as pa
from pydantic import AfterValidator, field_validator, model_validator

from penstock.connectors.nats.connection import ConnectionConfig
from penstock.connectors.nats.publishing import Outgoing, Publisher
from penstock.connectors.nats.subjects import key_mistake, name_mistake, need_name
from penstock.core.errors import OptionError, raise_all
from penstock.sdk import (
    BatchId,
    Capability,
    Context,
    Rejected,
    Sink,
    Writer,
)
from penstock.sdk.kit.confirmed import ConfirmedWriter
from penstock.sdk.kit.template import Template

Name = Annotated[str, AfterValidator(need_name)]
_ID = "Nats-Msg-Id"
_HEADER = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_DELETED = {"KV-Operation": "DEL"}


class NatsSinkConfig(ConnectionConfig):
    subject: Template | None = None
    """The subject. `{column}` in it is replaced by the row's value: `orders.{country}`."""
    stream: Name | None = None
    """The JetStream stream that must take what is published, and confirm it."""
    bucket: Name | None = None
    """A key-value bucket to put values into, instead of publishing to a subject."""
    key: Template | None = None
    """The key in the bucket, as `user.{id}`; the primary key, joined with dots, if left out."""
    headers: dict[str, Template] = {}
    """Headers; `{column}` in them is replaced by the row's value."""
    message_id: Template | None = None
    """The message's id, by which a stream drops what it has had within its duplicate window. If
    left out it is made of the batch and the row, so that a batch that is repeated is dropped."""

    @field_validator("subject")
    @classmethod
    def _named(cls, subject: Template | None) -> Template | None:
        constant = None if subject is None else subject.constant
        if constant is not None and (mistake := name_mistake(constant)) is not None:
            raise ValueError(mistake)
        return subject

    @field_validator("headers")
    @classmethod
    def _tokens(cls, headers: dict[str, Template]) -> dict[str, Template]:
        for name in headers:
            if not _HEADER.fullmatch(name):
                raise ValueError(f'"{name}" is not the name of a header')
        return headers

    @model_validator(mode="after")
    def _one_of(self) -> Self:
        if (self.subject is None) == (self.bucket is None):
            raise ValueError("give either subject or bucket")
        if self.bucket is not None and self.stream is not None:
            raise ValueError("stream is for a subject; a bucket has its own")
        if self.key is not None and self.bucket is None:
            raise ValueError("key is for a bucket")
        if self.message_id is not None and self.confirming is None:
            raise ValueError("message_id is for a stream or bucket")
        return self

    @property
    def confirming(self) -> str | None:
        """The stream that confirms what is published; None where nobody does."""
        return self.stream if self.bucket is None else f"KV_{self.bucket}"


class NatsSink(Sink[NatsSinkConfig]):
    """Publishes rows to subjects of NATS, or puts them into a key-value bucket.

    With `stream` or `bucket` a batch is done when JetStream has confirmed each message, which comes
    with an id, so that a batch that is repeated within the stream's duplicate window is dropped.
    With `subject` alone it is done when the server has taken the messages: who listens then gets
    them. With `mode: upsert` the primary key is the key in the bucket.

    ```yaml
    type: nats
    from: orders
    url: nats://localhost:4222
    subject: orders.{country}
    stream: ORDERS
    ```
    """

    acknowledges: str | None = "JetStream has confirmed each message"
    variants = ("subject: orders.new", "subject: orders.new, stream: ORDERS", "bucket: totals")
    capabilities = frozenset({Capability.BYTES, Capability.ORDERED})
    by_option = {Capability.UPSERT: "bucket"}
    extra = "nats"
    clients = ("nats", "nkeys")

    def __init__(self, config: NatsSinkConfig, context: Context | None = None) -> None:
        super().__init__(config, context)
        if config.bucket is not None:
            self.capabilities = self.capabilities | self.by_option.keys()
        if config.confirming is None:
            self.acknowledges = "the server has taken the messages, for those who listen then"

    def accepts(self, columns: pa.Schema) -> None:
        super().accepts(columns)
        config = self.config
        if config.bucket is not None and config.key is None and not self.primary_key:
            raise OptionError.of(
                "bucket", message="a bucket needs key, or mode: upsert and a primary key",
                code="no-key",
            )  # fmt: skip
        texts = [
            *((("headers", name), text) for name, text in config.headers.items()),
            *(((name,), getattr(config, name)) for name in ("subject", "key", "message_id")),
        ]
        raise_all(
            each for option, text in texts if text is not None
            for each in text.mistakes(columns, *option)
        )  # fmt: skip

    def check(self) -> None:
        publisher = self.open()
        try:
            publisher.check()
        finally:
            publisher.close()

    def open(self) -> Publisher:
        return Publisher(self.config)

    def writer(self, client: Any, batch: BatchId, partition: int, schema: pa.Schema) -> Writer:
        origin = [self.context.pipeline, self.context.node, batch.query]
        return NatsWriter(client, self, [*origin, str(batch.number), str(partition)])

    @property
    def address(self) -> Template:
        """The subject of a row: that of its key in the bucket, where there is one."""
        if self.config.bucket is None:
            return self.config.subject or Template("")
        key = self.config.key or ".".join(f"{{{name}}}" for name in self.primary_key)
        return Template(f"$KV.{self.config.bucket}.{key}")


class NatsWriter(ConfirmedWriter[Outgoing]):
    def __init__(self, publisher: Publisher, sink: NatsSink, origin: Sequence[str]) -> None:
        self._publisher, self._sink, self._config = publisher, sink, sink.config
        self._origin = "\0".join(origin).encode()
        self._seen: Counter[bytes] = Counter()

    def messages(self, rows: pa.RecordBatch, payloads: Any) -> Iterator[Outgoing | Rejected]:
        headers = {name: text.fill(rows) for name, text in self._config.headers.items()}
        if self._config.message_id is not None:
            headers[_ID] = self._config.message_id.fill(rows)
        subjects = self._sink.address.fill(rows)
        for at, (subject, payload) in enumerate(zip(subjects, payloads.to_pylist(), strict=True)):
            mistake = self._mistake(subject)
            if subject is None or mistake is not None:
                yield Rejected(f"{mistake}", code="subject")
                continue
            own = {name: text for name, texts in headers.items() if (text := texts[at]) is not None}
            yield self._outgoing(subject, payload, own)

    def send(self, messages: Sequence[Outgoing]) -> list[Rejected | None]:
        return self._publisher.send(messages)

    def _mistake(self, subject: str | None) -> str | None:
        if subject is None:
            return "the subject is null"
        if self._config.bucket is not None:
            return key_mistake(subject.removeprefix(f"$KV.{self._config.bucket}."))
        return name_mistake(subject)

    def _outgoing(self, subject: str, payload: bytes | None, headers: dict[str, str]) -> Outgoing:
        if payload is None and self._config.bucket is not None:
            headers = {**headers, **_DELETED}
        if self._config.confirming is not None and _ID not in headers:
            headers = {**headers, _ID: self._id(subject, payload, headers)}
        return Outgoing(subject, payload or b"", headers)

    def _id(self, subject: str, payload: bytes | None, headers: dict[str, str]) -> str:
        """The same when the batch is repeated, in whatever order the rows come.

        Equal rows are counted, so that none of them is taken for a repeated one.
        """
        row = hashlib.blake2b(self._origin, digest_size=16)
        for part in (subject.encode(), payload or b"", repr(sorted(headers.items())).encode()):
            row.update(b"%d:" % len(part))
            row.update(part)
        self._seen[row.digest()] += 1
        return f"{row.hexdigest()}-{self._seen[row.digest()]}"
