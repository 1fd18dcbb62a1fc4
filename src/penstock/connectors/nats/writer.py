"""Publishing of messages to subjects and streams."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from penstock.connectors.nats.client import Connection, flush
from penstock.connectors.nats.config import NatsSinkConfig
from penstock.connectors.nats.errors import jetstream_error
from penstock.connectors.nats.publish_acks import AckedPublisher, PublishAck
from penstock.connectors.nats.subjects import overlap
from penstock.sdk import Rejected

if TYPE_CHECKING:
    from nats.aio.client import Client

_MAX_IN_FLIGHT = 1000
"""The maximum number of unacknowledged messages."""
_MAX_IN_FLIGHT_BYTES = 4 << 20
"""The maximum size of unacknowledged messages, unless a single message is larger."""
_MESSAGE_ERRORS = frozenset([10054, 10060])
"""Error codes of a single message: its size, and the subject of another stream."""
_HEADER_BYTES = 64


class OutgoingMessage(NamedTuple):
    """A message to publish."""

    subject: str
    payload: bytes
    headers: Mapping[str, str]

    @property
    def size(self) -> int:
        """An upper bound of the bytes that count towards the server's `max_payload`."""
        lines = sum(len(f"{name}{value}".encode()) + 4 for name, value in self.headers.items())
        return len(self.payload) + (lines + _HEADER_BYTES if lines else 0)


class Publisher:
    """A connection to the server, kept between batches. Raises Transient or Permanent."""

    def __init__(self, config: NatsSinkConfig) -> None:
        self._config = config
        self._connection = Connection(config)
        self._stream = config.acknowledging_stream or ""
        self._acked_publisher: AckedPublisher | None = None

    def check(self) -> None:
        """Checks that the server, and the stream that acknowledges, are available."""
        self._connection.run(self._action, self._check)

    def send(self, messages: Sequence[OutgoingMessage]) -> list[Rejected | None]:
        """Returns once the server has accepted or rejected each message."""
        publish = self._publish_with_acks if self._stream else self._publish
        results: list[Rejected | None] = []
        for chunk in _chunks(messages):
            results += self._connection.run(self._action, partial(publish, chunk))
        return results

    def close(self) -> None:
        """Closes the connection."""
        self._connection.close()

    @property
    def _action(self) -> str:
        return f'write to stream "{self._stream}"' if self._stream else "publish"

    async def _check(self, client: Client) -> None:
        if self._stream:
            await client.jetstream(timeout=self._config.timeout).stream_info(self._stream)

    async def _publish(
        self, messages: Sequence[OutgoingMessage], client: Client
    ) -> list[Rejected | None]:
        """Publishes to subjects: a later PONG confirms that the server has the messages."""
        results = [_size_error(client, message) for message in messages]
        for message, result in zip(messages, results, strict=True):
            if result is None:
                headers = dict(message.headers) or None
                await client.publish(message.subject, message.payload, headers=headers)
        await flush(client, self._config)
        return [
            result or self._permission_error(message)
            for message, result in zip(messages, results, strict=True)
        ]

    async def _publish_with_acks(
        self, messages: Sequence[OutgoingMessage], client: Client
    ) -> list[Rejected | None]:
        """Publishes to a stream: JetStream acknowledges each message."""
        results = [_size_error(client, message) for message in messages]
        publisher = await self._publisher_of(client)
        acks = {
            index: await publisher.publish(message.subject, message.payload, dict(message.headers))
            for index, message in enumerate(messages)
            if results[index] is None
        }
        try:
            await flush(client, self._config)
            for index in acks:
                results[index] = self._permission_error(messages[index])
            allowed = {index: ack for index, ack in acks.items() if results[index] is None}
            await publisher.await_acks(allowed.values())
        finally:
            publisher.clear()
        for index, ack in allowed.items():
            results[index] = await self._check_ack(client, messages[index], ack.result())
        return results

    async def _publisher_of(self, client: Client) -> AckedPublisher:
        if self._acked_publisher is None or self._acked_publisher.client is not client:
            self._acked_publisher = AckedPublisher(client, self._stream, self._config.timeout)
            await self._acked_publisher.subscribe()
        return self._acked_publisher

    async def _check_ack(
        self, client: Client, message: OutgoingMessage, ack: PublishAck
    ) -> Rejected | None:
        """Returns the error of a message. Raises Transient or Permanent for other errors."""
        if not ack.code:
            return None
        if ack.err_code in _MESSAGE_ERRORS:
            return Rejected(
                f'stream "{self._stream}" rejected the message: {ack.description}', code="rejected"
            )
        if ack.no_responders and not await self._stream_has(client, message.subject):
            return Rejected(
                f'stream "{self._stream}" does not have the subject "{message.subject}"',
                code="unknown-subject",
            )
        raise jetstream_error(self._action, ack.code, ack.description)

    async def _stream_has(self, client: Client, subject: str) -> bool:
        info = await client.jetstream(timeout=self._config.timeout).stream_info(self._stream)
        return any(overlap(subject, pattern) for pattern in info.config.subjects or ())

    def _permission_error(self, message: OutgoingMessage) -> Rejected | None:
        """Returns the error of a message whose subject the server denied."""
        text = f'publish to "{message.subject}"'.casefold()
        if any(text in str(error).casefold() for error in self._connection.server_errors):
            return Rejected(
                f'the user does not have permission to publish to "{message.subject}"',
                code="authorization",
            )
        return None


def _size_error(client: Client, message: OutgoingMessage) -> Rejected | None:
    if message.size <= client.max_payload:
        return None
    return Rejected(
        f"expected a message of at most {client.max_payload:,} bytes, found {message.size:,}",
        code="too-large",
        hint="Increase max_payload of the server.",
    )


def _chunks(messages: Sequence[OutgoingMessage]) -> Iterator[list[OutgoingMessage]]:
    chunk: list[OutgoingMessage] = []
    size = 0
    for message in messages:
        full = len(chunk) == _MAX_IN_FLIGHT or size + message.size > _MAX_IN_FLIGHT_BYTES
        if chunk and full:
            yield chunk
            chunk, size = [], 0
        chunk.append(message)
        size += message.size
    if chunk:
        yield chunk
