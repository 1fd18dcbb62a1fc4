"""The source of queues."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pydantic import Field

from penstock.connectors.rabbitmq.about import ABOUT, DELIVERY, about
from penstock.connectors.rabbitmq.connection import ConnectionConfig, channel
from penstock.connectors.rabbitmq.declaration import Binding, QueueDeclaration
from penstock.connectors.rabbitmq.faults import fault, told
from penstock.core.errors import StateError
from penstock.sdk import (
    Journal,
    Message,
    Permanent,
    ReceivingConfig,
    ReceivingSource,
    Transient,
)

if TYPE_CHECKING:
    from aio_pika.abc import AbstractChannel, AbstractIncomingMessage, AbstractQueue


class RabbitmqSourceConfig(ConnectionConfig, ReceivingConfig):
    queue: str = Field(min_length=1)
    """The queue, classic or quorum."""
    prefetch: int = Field(default=500, ge=1, le=65_535)
    """How many messages the broker may send before the first of them is acknowledged."""
    declare: QueueDeclaration | None = None
    """Makes the queue if it is not there: `{}`, or what it is to be."""
    bind: list[Binding] = []
    """The exchanges whose messages the queue gets from now on."""
    priority: int | None = None
    """Of several that receive from the queue, those with the highest get the messages."""
    exclusive: bool = False
    """Whether nobody else may receive from the queue."""


class RabbitmqSource(ReceivingSource[RabbitmqSourceConfig]):
    """Receives from a queue of a RabbitMQ broker, classic or quorum.

    A message is acknowledged once it is on disk. The broker keeps what is not, and what arrives
    while we are away, and hands it out again. A full journal lets messages wait in the queue.
    (`rabbitmq_stream` reads streams.)

    ```yaml
    type: rabbitmq
    url: amqp://localhost
    queue: large-orders
    declare: {type: quorum}
    bind:
      - {exchange: shop, routing_key: [order.*.large, order.eu.#]}
    metadata: {kind: routing_key, again: redelivered}
    ```
    """

    parallelism = "the connection"
    acknowledges = "basic.ack once the message is on disk"
    extra = "rabbitmq"
    clients = ("aio_pika",)

    def about(self) -> pa.Schema:
        return pa.schema([*ABOUT, *DELIVERY])

    def check(self) -> None:
        async def tried() -> None:
            async with channel(self.config) as opened:
                if self.config.declare is None:
                    await opened.get_queue(self.config.queue)

        self._run(tried())

    async def receive(self, journal: Journal) -> None:
        with told(self.config, self._doing):
            async with channel(self.config) as opened:
                consumer = Consumer(self.config, self._doing, journal)
                await consumer.start(opened)
                journal.ready.set()
                await consumer.ended

    @property
    def _doing(self) -> str:
        return f'receive from the queue "{self.config.queue}"'

    def _run(self, work: Any) -> None:
        async def limited() -> None:
            async with asyncio.timeout(self.config.timeout):
                await work

        with told(self.config, self._doing):
            asyncio.run(limited())


class Consumer:
    """Puts into the journal what a queue hands out.

    `ended` is done with the error that ended it.
    """

    def __init__(self, config: RabbitmqSourceConfig, doing: str, journal: Journal) -> None:
        self._config, self._doing, self._journal = config, doing, journal
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def start(self, channel: AbstractChannel) -> None:
        """Returns when the broker sends messages."""
        config = self._config
        async with asyncio.timeout(config.timeout):
            await channel.set_qos(prefetch_count=config.prefetch)
            queue = await self._queue(channel)
            channel.close_callbacks.add(self._closed)
            low = await channel.get_underlay_channel()
            low.on_consumer_cancel_callbacks.add(self._cancelled)
            arguments: Any = None if config.priority is None else {"x-priority": config.priority}
            await queue.consume(self._took, exclusive=config.exclusive, arguments=arguments)

    async def _queue(self, channel: AbstractChannel) -> AbstractQueue:
        config = self._config
        if config.declare is not None:
            queue = await config.declare.make(channel, config.queue)
        else:
            queue = await channel.get_queue(config.queue)
        for each in config.bind:
            await each.make(channel, queue)
        return queue

    async def _took(self, message: AbstractIncomingMessage) -> None:
        """Messages are given to the journal in the order of their arrival."""
        try:
            await self._journal.append([Message(message.body, about(message))])
        except (StateError, Permanent) as error:
            self._end(error)
        else:
            await message.ack()

    def _closed(self, sender: Any, error: BaseException | None) -> None:
        self._end(fault(error, self._config, self._doing))

    def _cancelled(self, frame: Any) -> None:
        self._end(
            Transient(
                f"could not {self._doing}: the broker does not send any more",
                code="queue-gone",
                hint="was the queue deleted?",
            )
        )

    def _end(self, error: Transient | Permanent | StateError) -> None:
        if not self.ended.done():
            self.ended.set_exception(error)
