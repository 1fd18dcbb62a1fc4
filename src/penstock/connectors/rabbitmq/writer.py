"""Publishes messages to a RabbitMQ broker."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import pyarrow as pa

from penstock.connectors.rabbitmq.client import (
    CONNECT_TIMEOUT,
    close_connection,
    connect,
    create_exchange,
    is_closed,
)
from penstock.connectors.rabbitmq.config import RabbitmqSinkConfig
from penstock.connectors.rabbitmq.errors import reason, translate_error, translate_errors
from penstock.sdk import Rejected, Transient
from penstock.sdk.messages.acknowledged_writer import AcknowledgedWriter
from penstock.sdk.network.event_loop import EventLoopThread

if TYPE_CHECKING:
    from aio_pika.abc import AbstractChannel, AbstractConnection

T = TypeVar("T")
MAX_SHORT_STRING = 255
"""The largest number of bytes of a name or a routing key in AMQP."""


class OutgoingMessage(NamedTuple):
    """A message to publish."""

    exchange: str
    routing_key: str
    payload: bytes
    headers: Mapping[str, str]
    message_id: str | None
    type: str | None


class Publisher:
    """A connection that publishes, kept between batches. Raises Transient and Permanent."""

    def __init__(self, config: RabbitmqSinkConfig, create: bool = True) -> None:
        self._config = config
        self._action = f'publish to exchange "{config.exchange}"'
        self._loop = EventLoopThread()
        self._connection: AbstractConnection | None = None
        self._channel: AbstractChannel | None = None
        try:
            self._run(self._open(create))
        except BaseException:
            self.close()
            raise

    def publish(self, messages: Sequence[OutgoingMessage]) -> list[Rejected | None]:
        """Returns the outcome of each message once the broker has confirmed or rejected all."""
        return self._run(self._publish_all(messages))

    def close(self) -> None:
        """Closes the connection."""
        connection, self._connection = self._connection, None
        if connection is not None:
            self._loop.run(close_connection(connection))
        self._loop.close()

    def _run(self, operation: Coroutine[Any, Any, T]) -> T:
        with translate_errors(self._config, self._action):
            return self._loop.run(operation)

    async def _open(self, create: bool) -> None:
        config = self._config
        self._connection = await connect(config)
        async with asyncio.timeout(CONNECT_TIMEOUT):
            channel = await self._open_channel()
            exchange, key = config.exchange.constant, config.routing_key.constant
            if config.create and create:
                await create_exchange(channel, exchange or "", config.create)
            elif not config.create and exchange:
                await channel.get_exchange(exchange, ensure=True)
            elif exchange == "" and key:
                await channel.get_queue(key)

    async def _open_channel(self) -> AbstractChannel:
        """Returns an open channel.

        The broker closes the channel of a rejected message. The next channel needs a new
        connection: messages in flight to a closed channel make the broker close the connection.
        """
        closed = self._channel is not None and self._channel.is_closed
        if self._connection is not None and (closed or is_closed(self._connection)):
            await close_connection(self._connection)
            self._connection = self._channel = None
        if self._connection is None:
            self._connection = await connect(self._config)
        if self._channel is None:
            self._channel = await self._connection.channel(on_return_raises=True)
        return self._channel

    async def _publish_all(self, messages: Sequence[OutgoingMessage]) -> list[Rejected | None]:
        outcomes: list[Rejected | None] = []
        for window in _windows(messages, self._config.max_in_flight):
            results = await self._publish_window(window)
            for message, result in zip(window, results, strict=True):
                if len(window) > 1 and _closed_channel(result):
                    (result,) = await self._publish_window([message])
                outcomes.append(self._outcome(result))
        return outcomes

    async def _publish_window(self, messages: Sequence[OutgoingMessage]) -> list[Any]:
        """Returns None or an exception for each message."""
        channel = await asyncio.wait_for(self._open_channel(), self._config.timeout)
        return await asyncio.gather(
            *(self._publish(channel, message) for message in messages), return_exceptions=True
        )

    async def _publish(self, channel: AbstractChannel, message: OutgoingMessage) -> None:
        from aio_pika import DeliveryMode, Message

        config = self._config
        mode = DeliveryMode.PERSISTENT if config.persistent else DeliveryMode.NOT_PERSISTENT
        exchange = await channel.get_exchange(message.exchange, ensure=False)
        await exchange.publish(
            Message(
                message.payload, headers=dict(message.headers), message_id=message.message_id,
                content_type=config.content_type, type=message.type, priority=config.priority,
                expiration=config.ttl, delivery_mode=mode,
            ),
            message.routing_key, mandatory=config.mandatory, timeout=config.timeout,
        )  # fmt: skip

    def _outcome(self, result: Any) -> Rejected | None:
        """Returns the rejection of a message. Raises errors that concern all messages."""
        from aio_pika.exceptions import AMQPChannelError, DeliveryError, PublishError

        if result is None:
            return None
        if isinstance(result, PublishError):
            message = f"the message was not routed to a queue: {reason(result)}"
            return Rejected(message, code="unroutable")
        if isinstance(result, DeliveryError):
            raise Transient(
                f"could not {self._action}: the broker did not confirm a message",
                code="not-confirmed",
                hint="Check the queues: a full queue with x-overflow: reject-publish rejects "
                "messages.",
            )
        if isinstance(result, AMQPChannelError):
            error = translate_error(result, self._config, self._action)
            if not isinstance(error, Transient):
                message = f"the broker rejected the message: {reason(result)}"
                return Rejected(message, code=error.code)
            raise error
        raise result


class RabbitmqWriter(AcknowledgedWriter[OutgoingMessage]):
    """Publishes the rows of a partition."""

    def __init__(self, publisher: Publisher, config: RabbitmqSinkConfig) -> None:
        self._publisher, self._config = publisher, config

    def messages(self, rows: pa.RecordBatch, payloads: Any) -> Iterator[OutgoingMessage | Rejected]:
        columns = {option: template.render(rows) for option, template in self._config.templates()}
        for index, payload in enumerate(payloads.to_pylist()):
            texts = {option: values[index] for option, values in columns.items()}
            error = _check_texts(texts)
            if error is not None:
                yield Rejected(error, code="invalid-address")
            else:
                yield _message(payload, texts)

    def send(self, messages: Sequence[OutgoingMessage]) -> list[Rejected | None]:
        return self._publisher.publish(messages)


Texts = Mapping[tuple[str, ...], str | None]
"""The filled templates of a message by option."""


def _check_texts(texts: Texts) -> str | None:
    """Returns the error of a message; None for a valid message."""
    for option, text in texts.items():
        name = ".".join(option)
        if text is None and option in (("exchange",), ("routing_key",)):
            return f"{name} is null"
        if text is not None and len(option) == 1 and len(text.encode()) > MAX_SHORT_STRING:
            return f"{name} has more than {MAX_SHORT_STRING} bytes"
    return None


def _message(payload: bytes | None, texts: Texts) -> OutgoingMessage:
    headers = {option[1]: text for option, text in texts.items() if len(option) > 1}
    return OutgoingMessage(
        exchange=texts[("exchange",)] or "",
        routing_key=texts[("routing_key",)] or "",
        payload=payload or b"",
        headers={name: text for name, text in headers.items() if text is not None},
        message_id=texts.get(("message_id",)),
        type=texts.get(("type",)),
    )


def _windows(
    messages: Sequence[OutgoingMessage], max_in_flight: int
) -> Iterator[list[OutgoingMessage]]:
    """Yields messages in lists without duplicate IDs, by which the client matches returns."""
    window: list[OutgoingMessage] = []
    ids: set[str] = set()
    for message in messages:
        if len(window) == max_in_flight or message.message_id in ids:
            yield window
            window, ids = [], set()
        window.append(message)
        if message.message_id:
            ids.add(message.message_id)
    if window:
        yield window


def _closed_channel(result: Any) -> bool:
    """Returns whether the channel was closed, possibly because of another message."""
    from aio_pika.exceptions import AMQPChannelError, ChannelInvalidStateError

    return isinstance(result, AMQPChannelError | ChannelInvalidStateError)
