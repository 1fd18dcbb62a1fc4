"""Reads ranges of offsets of a stream, and finds the end of a stream.

The broker delivers a stream from any offset. It does not report the end of a stream: a consumer of
the last chunk of messages receives the chunk, whose last message has the last offset.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, closing, suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from penstock.connectors.rabbitmq.bytes_in_flight import BytesInFlight
from penstock.connectors.rabbitmq.client import close_connection, connect, is_closed
from penstock.connectors.rabbitmq.config import RabbitmqStreamConfig
from penstock.connectors.rabbitmq.errors import translate_errors
from penstock.connectors.rabbitmq.metadata import OFFSET_HEADER
from penstock.sdk import ClientPool
from penstock.sdk.network.event_loop import EventLoopThread

if TYPE_CHECKING:
    from aio_pika.abc import AbstractChannel, AbstractConnection
    from aiormq.abc import DeliveredMessage

T = TypeVar("T")
_EMPTY_TIMEOUT, _SHORT_EMPTY_TIMEOUT = 2.0, 0.5
"""Seconds to wait for a message of a stream that may be empty, and that was empty before."""
_MAX_CHUNK = 65_535
"""More messages than the last chunk of a stream contains."""

Delivery = tuple[int, "DeliveredMessage"]
"""A message and its offset."""


class Bounds(NamedTuple):
    """Offsets of a stream."""

    first: int | None
    """The offset of the first message at or after the requested start; None without one."""
    end: int
    """The offset after the last message; 0 for an empty stream."""


class StreamConsumer:
    """A consumer of a stream, which receives at most `max_in_flight` messages ahead.

    The consumer uses the client's lower layer, which calls back in the order of the protocol.
    """

    def __init__(self, channel: AbstractChannel) -> None:
        self._channel = channel
        self._underlay: Any = None
        self._in_flight = BytesInFlight()
        self._deliveries: list[Delivery] = []
        self._changed = asyncio.Event()
        self._error: BaseException | None = None
        self._discards = False

    async def start(
        self, stream: str, start: str | int | datetime, max_in_flight: int, bounded: bool = False
    ) -> None:
        """Starts to consume at an offset, a time, `first` or `last`.

        With `bounded` the connection is not read while too many bytes await `take`.
        """
        self._underlay = await self._channel.get_underlay_channel()
        if bounded:
            self._in_flight.attach(self._underlay)
        self._channel.close_callbacks.add(self._on_close)
        self._underlay.on_consumer_cancel_callbacks.add(self._on_cancel)
        await self._channel.set_qos(prefetch_count=max_in_flight)
        await self._underlay.basic_consume(
            stream, self._on_message, arguments={OFFSET_HEADER: start}
        )

    async def wait(self, seconds: float) -> None:
        """Waits for a message, at most `seconds`."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._changed.wait()
        if self._error is not None:
            raise self._error

    async def receive(self) -> list[Delivery]:
        """Waits for messages, acknowledges and returns them."""
        await self._changed.wait()
        if not self._deliveries and self._error is not None:
            raise self._error
        deliveries = self.take()
        await self._underlay.basic_ack(deliveries[-1][1].delivery_tag, multiple=True)
        return deliveries

    def take(self) -> list[Delivery]:
        """Returns the messages that have arrived."""
        deliveries, self._deliveries = self._deliveries, []
        if self._error is None:
            self._changed.clear()
        for _, message in deliveries:
            self._in_flight.release(message.delivery_tag)
        return deliveries

    def discard(self) -> None:
        """Discards the messages that have arrived and those that follow."""
        self._discards = True
        self._deliveries.clear()
        self._in_flight.release_all()

    async def _on_message(self, message: DeliveredMessage) -> None:
        if self._discards:
            return
        headers: Any = message.header.properties.headers
        self._deliveries.append((headers[OFFSET_HEADER], message))
        self._changed.set()

    def _on_close(self, sender: Any, error: BaseException | None) -> None:
        self._end(error or ConnectionError("the connection was lost"))

    def _on_cancel(self, frame: Any) -> None:
        self._end(ConnectionError("the broker cancelled the consumer"))

    def _end(self, error: BaseException) -> None:
        self._error = self._error or error
        self._changed.set()


class StreamReader:
    """A connection that reads one stream.

    Methods raise Transient and Permanent. An error closes the connection.
    """

    def __init__(self, config: RabbitmqStreamConfig) -> None:
        self._config = config
        self._action = f'read stream "{config.stream}"'
        self._loop = EventLoopThread()
        self._connection: AbstractConnection | None = None
        self._closed = False
        self._empty_timeout = _EMPTY_TIMEOUT
        self._run(self._open())

    @property
    def closed(self) -> bool:
        """Whether the connection was closed or lost."""
        return self._closed or self._connection is None or is_closed(self._connection)

    def bounds(self, start: str | datetime | None = None) -> Bounds:
        """Returns the offset of the first message from `start` on, and the end of the stream."""
        bounds = self._run(self._bounds(start))
        self._empty_timeout = _EMPTY_TIMEOUT if bounds.end else _SHORT_EMPTY_TIMEOUT
        return bounds

    def read(self, start: int, end: int, on_gap: Callable[[int], None]) -> Iterator[list[Delivery]]:
        """Yields the messages from offset `start` to before `end`, which follows a message.

        Calls `on_gap` with the first available offset if earlier messages were deleted. The broker
        deletes whole segments, each of which begins with an offset of the broker's own.
        """
        channel, consumer = self._run(self._consume(start))
        try:
            next_offset = start
            while next_offset < end:
                received = self._run(consumer.receive())
                deliveries = [delivery for delivery in received if delivery[0] >= next_offset]
                if deliveries and next_offset == start > 0 and deliveries[0][0] > start + 1:
                    first = self._first_offset()
                    if first is not None and first > start + 1:
                        on_gap(first)
                if deliveries:
                    next_offset = deliveries[-1][0] + 1
                in_range = [delivery for delivery in deliveries if delivery[0] < end]
                if in_range:
                    yield in_range
        finally:
            if not self.closed:
                self._run(self._close_channel(channel, consumer))

    def close(self) -> None:
        """Closes the connection."""
        if self._closed:
            return
        self._closed = True
        if self._connection is not None:
            self._loop.run(close_connection(self._connection))
        self._loop.close()

    def _run(self, operation: Coroutine[Any, Any, T]) -> T:
        async def run_with_timeout() -> T:
            async with asyncio.timeout(self._config.timeout):
                return await operation

        try:
            with translate_errors(self._config, self._action):
                return self._loop.run(run_with_timeout())
        except BaseException:
            self.close()
            raise

    async def _open(self) -> None:
        self._connection = await connect(self._config)
        async with self._channel() as channel:
            await channel.get_queue(self._config.stream)

    async def _consume(self, start: int) -> tuple[AbstractChannel, StreamConsumer]:
        assert self._connection is not None
        channel = await self._connection.channel()
        consumer = StreamConsumer(channel)
        await consumer.start(self._config.stream, start, self._config.max_in_flight, bounded=True)
        return channel, consumer

    async def _bounds(self, start: str | datetime | None) -> Bounds:
        """Consumes at `start` and at the last chunk.

        The broker delivers to all consumers of a channel before it responds to `get_queue`.
        """
        stream = self._config.stream
        async with self._channel() as channel:
            from_start, from_last = StreamConsumer(channel), StreamConsumer(channel)
            if start is not None:
                await from_start.start(stream, start, 1)
            await from_last.start(stream, "last", _MAX_CHUNK)
            await from_last.wait(self._empty_timeout)
            await channel.get_queue(stream)
            first, chunk = from_start.take(), from_last.take()
        if not chunk:
            return Bounds(None, 0)
        return Bounds(first[0][0] if first else None, chunk[-1][0] + 1)

    @asynccontextmanager
    async def _channel(self) -> AsyncIterator[AbstractChannel]:
        assert self._connection is not None
        channel = await self._connection.channel()
        try:
            yield channel
        finally:
            if not channel.is_closed:
                await channel.close()

    async def _close_channel(self, channel: AbstractChannel, consumer: StreamConsumer) -> None:
        consumer.discard()
        await channel.close()

    def _first_offset(self) -> int | None:
        """Returns the first offset, by another connection: this one may wait for `take`."""
        with closing(StreamReader(self._config)) as reader:
            return reader.bounds("first").first


_pool = ClientPool(StreamReader, StreamReader.close)


def pooled_reader(config: RabbitmqStreamConfig) -> StreamReader:
    """Returns the process's reader of a configuration."""
    reader = _pool.get(config)
    if not reader.closed:
        return reader
    _pool.discard(config)
    return _pool.get(config)
