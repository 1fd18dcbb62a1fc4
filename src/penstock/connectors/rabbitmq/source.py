"""RabbitMQ source of queues."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.connectors.rabbitmq.bytes_in_flight import BytesInFlight
from penstock.connectors.rabbitmq.client import bind_queue, create_queue, open_channel
from penstock.connectors.rabbitmq.config import RabbitmqSourceConfig
from penstock.connectors.rabbitmq.errors import translate_error, translate_errors
from penstock.connectors.rabbitmq.metadata import DELIVERY_METADATA, METADATA, message_metadata
from penstock.core.errors import StateError
from penstock.sdk import Journal, Message, Permanent, ReceivingSource, Transient

if TYPE_CHECKING:
    from aio_pika.abc import AbstractChannel, AbstractIncomingMessage, AbstractQueue


class RabbitmqSource(ReceivingSource[RabbitmqSourceConfig]):
    """Receives the messages of a queue of a RabbitMQ broker, classic or quorum.

    A message is acknowledged after it was written to the journal. The broker redelivers
    unacknowledged messages. While the journal is full, messages stay in the queue; while messages
    of more than 64 MiB await the journal, the connection is not read. Use
    `rabbitmq_stream` to read streams.

    ```yaml
    type: rabbitmq
    url: amqp://localhost
    queue: large-orders
    create: {type: quorum}
    bind:
      - {exchange: shop, routing_key: [order.*.large, order.eu.#]}
    metadata: {kind: routing_key, again: redelivered}
    ```
    """

    parallelism = "the connection"
    acknowledges = "basic.ack once the message is on disk"
    extra = "rabbitmq"
    client_modules = ("aio_pika",)

    def message_metadata_schema(self) -> pa.Schema:
        return pa.schema([*METADATA, *DELIVERY_METADATA])

    def check(self) -> None:
        async def check_queue() -> None:
            async with asyncio.timeout(self.config.timeout), open_channel(self.config) as channel:
                if not self.config.create:
                    await channel.get_queue(self.config.queue)

        with translate_errors(self.config, self._action):
            asyncio.run(check_queue())

    async def receive(self, journal: Journal) -> None:
        with translate_errors(self.config, self._action):
            async with open_channel(self.config) as channel:
                consumer = Consumer(self.config, self._action, journal)
                await consumer.start(channel)
                journal.ready.set()
                await consumer.ended

    @property
    def _action(self) -> str:
        return f'receive from queue "{self.config.queue}"'


class Consumer:
    """Appends the messages of a queue to the journal and acknowledges them.

    `ended` completes with the error that ends the consumer.
    """

    def __init__(self, config: RabbitmqSourceConfig, action: str, journal: Journal) -> None:
        self._config, self._action, self._journal = config, action, journal
        self._in_flight = BytesInFlight()
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def start(self, channel: AbstractChannel) -> None:
        """Starts to consume. Raises errors of the client library."""
        config = self._config
        async with asyncio.timeout(config.timeout):
            await channel.set_qos(prefetch_count=config.max_in_flight)
            queue = await self._prepare_queue(channel)
            channel.close_callbacks.add(self._on_close)
            underlay = await channel.get_underlay_channel()
            underlay.on_consumer_cancel_callbacks.add(self._on_cancel)
            self._in_flight.attach(underlay)
            arguments: Any = None if config.priority is None else {"x-priority": config.priority}
            await queue.consume(self._on_message, exclusive=config.exclusive, arguments=arguments)

    async def _prepare_queue(self, channel: AbstractChannel) -> AbstractQueue:
        config = self._config
        if config.create:
            queue = await create_queue(channel, config.queue, config.create)
        else:
            queue = await channel.get_queue(config.queue)
        for binding in config.bind:
            await bind_queue(channel, queue, binding)
        return queue

    async def _on_message(self, message: AbstractIncomingMessage) -> None:
        """Appends and acknowledges a message; messages are appended in their order."""
        try:
            await self._journal.append([Message(message.body, message_metadata(message))])
        except (StateError, Permanent) as error:
            self._end(error)
        else:
            await message.ack()
        finally:
            self._in_flight.release(message.delivery_tag)

    def _on_close(self, sender: Any, error: BaseException | None) -> None:
        self._end(translate_error(error, self._config, self._action))

    def _on_cancel(self, frame: Any) -> None:
        self._end(
            Transient(
                f"could not {self._action}: the broker cancelled the consumer",
                code="queue-gone",
                hint="Check that the queue still exists.",
            )
        )

    def _end(self, error: Transient | Permanent | StateError) -> None:
        if not self.ended.done():
            self.ended.set_exception(error)
