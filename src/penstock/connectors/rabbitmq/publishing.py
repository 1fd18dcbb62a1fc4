"""Messages on their way to the broker."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from penstock.connectors.rabbitmq.connection import CONNECT_SECONDS, connected, left, lost
from penstock.connectors.rabbitmq.faults import fault, said, told
from penstock.sdk import Rejected, Transient
from penstock.sdk.kit.background import Background

if TYPE_CHECKING:
    from aio_pika.abc import AbstractChannel, AbstractConnection

    from penstock.connectors.rabbitmq.sink import RabbitmqSinkConfig

T = TypeVar("T")


class Outgoing(NamedTuple):
    """A message to publish."""

    exchange: str
    routing_key: str
    payload: bytes
    headers: Mapping[str, str]
    message_id: str | None
    type: str | None


class Publisher:
    """A connection to the broker, kept between batches. Raises Transient or Permanent."""

    def __init__(self, config: RabbitmqSinkConfig, declares: bool = True) -> None:
        self._config = config
        self._doing = f'publish to the exchange "{config.exchange}"'
        self._background = Background()
        self._connection: AbstractConnection | None = None
        self._channel: AbstractChannel | None = None
        try:
            self._run(self._opened(declares))
        except BaseException:
            self.close()
            raise

    def send(self, messages: Sequence[Outgoing]) -> list[Rejected | None]:
        """Returns when the broker has confirmed each message, or refused it for good."""
        return self._run(self._sent(messages))

    def close(self) -> None:
        """Leaves."""
        connection, self._connection = self._connection, None
        if connection is not None:
            self._background.run(left(connection))
        self._background.close()

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        with told(self._config, self._doing):
            return self._background.run(work)

    async def _opened(self, declares: bool) -> None:
        config = self._config
        self._connection = await connected(config)
        async with asyncio.timeout(CONNECT_SECONDS):
            channel = await self._ready()
            exchange, key = config.exchange.constant, config.routing_key.constant
            if config.declare is not None and declares:
                await config.declare.make(channel, exchange or "")
            elif config.declare is None and exchange:
                await channel.get_exchange(exchange, ensure=True)
            elif exchange == "" and key:
                await channel.get_queue(key)

    async def _ready(self) -> AbstractChannel:
        """A channel that is open: the broker closes one when it refuses a message.

        The next one is of another connection: what is still on its way to a closed channel makes
        the broker close its connection, too.
        """
        closed = self._channel is not None and self._channel.is_closed
        if self._connection is not None and (closed or lost(self._connection)):
            await left(self._connection)
            self._connection = self._channel = None
        if self._connection is None:
            self._connection = await connected(self._config)
        if self._channel is None:
            self._channel = await self._connection.channel(on_return_raises=True)
        return self._channel

    async def _sent(self, messages: Sequence[Outgoing]) -> list[Rejected | None]:
        found: list[Rejected | None] = []
        for some in _windows(messages, self._config.in_flight):
            answers = await self._together(some)
            for message, answer in zip(some, answers, strict=True):
                alone = len(some) > 1 and _closed(answer)
                (last,) = await self._together([message]) if alone else [answer]
                found.append(self._judged(last))
        return found

    async def _together(self, messages: Sequence[Outgoing]) -> list[Any]:
        """What became of each: None, or an exception."""
        channel = await asyncio.wait_for(self._ready(), self._config.timeout)
        return await asyncio.gather(
            *(self._publish(channel, message) for message in messages), return_exceptions=True
        )

    async def _publish(self, channel: AbstractChannel, message: Outgoing) -> None:
        from aio_pika import DeliveryMode, Message

        config = self._config
        mode = DeliveryMode.PERSISTENT if config.persistent else DeliveryMode.NOT_PERSISTENT
        exchange = await channel.get_exchange(message.exchange, ensure=False)
        await exchange.publish(
            Message(
                message.payload, headers=dict(message.headers), message_id=message.message_id,
                content_type=config.content_type, type=message.type, priority=config.priority,
                expiration=config.expiration, delivery_mode=mode,
            ),
            message.routing_key, mandatory=config.mandatory, timeout=config.timeout,
        )  # fmt: skip

    def _judged(self, answer: Any) -> Rejected | None:
        """A refusal of one message. Raises what hinders the others as well."""
        from aio_pika.exceptions import AMQPChannelError, DeliveryError, PublishError

        if answer is None:
            return None
        if isinstance(answer, PublishError):
            return Rejected(f"no queue gets it: {said(answer)}", code="unroutable")
        if isinstance(answer, DeliveryError):
            raise Transient(
                f"could not {self._doing}: the broker did not take a message",
                code="not-taken",
                hint="is a queue full that refuses more (x-overflow: reject-publish)?",
            )
        if isinstance(answer, AMQPChannelError):
            error = fault(answer, self._config, self._doing)
            if not isinstance(error, Transient):
                return Rejected(f"the broker refuses it: {said(answer)}", code=error.code)
            raise error
        raise answer


def _windows(messages: Sequence[Outgoing], most: int) -> Iterator[list[Outgoing]]:
    """Parts in which no id is twice: by it the client knows a message that comes back."""
    some: list[Outgoing] = []
    known: set[str] = set()
    for message in messages:
        if len(some) == most or message.message_id in known:
            yield some
            some, known = [], set()
        some.append(message)
        if message.message_id:
            known.add(message.message_id)
    if some:
        yield some


def _closed(answer: Any) -> bool:
    """Whether the channel was closed, perhaps by another message."""
    from aio_pika.exceptions import AMQPChannelError, ChannelInvalidStateError

    return isinstance(answer, AMQPChannelError | ChannelInvalidStateError)
