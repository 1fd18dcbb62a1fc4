"""What one consumer of a stream is sent."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any

from penstock.connectors.rabbitmq.about import OFFSET

if TYPE_CHECKING:
    from aio_pika.abc import AbstractChannel
    from aiormq.abc import DeliveredMessage

Received = tuple[int, "DeliveredMessage"]
"""A message and its offset."""


class Deliveries:
    """The messages of a stream in order: at most `prefetch` more whenever `some` is asked.

    It is the client's lower layer that tells in the order in which the broker speaks.
    """

    def __init__(self, channel: AbstractChannel) -> None:
        self._channel = channel
        self._low: Any = None
        self._messages: list[Received] = []
        self._changed = asyncio.Event()
        self._error: BaseException | None = None

    async def begin(self, stream: str, start: str | int | datetime, prefetch: int) -> None:
        """Asks for the messages."""
        self._low = await self._channel.get_underlay_channel()
        self._channel.close_callbacks.add(self._closed)
        self._low.on_consumer_cancel_callbacks.add(self._cancelled)
        await self._channel.set_qos(prefetch_count=prefetch)
        await self._low.basic_consume(stream, self._took, arguments={OFFSET: start})

    async def arrival(self, seconds: float) -> None:
        """Returns when a message has arrived, or after that time."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._changed.wait()
        if self._error is not None:
            raise self._error

    async def some(self) -> list[Received]:
        """Those that have arrived, at least one; the broker may send as many again."""
        await self._changed.wait()
        if not self._messages and self._error is not None:
            raise self._error
        some = self.taken()
        await self._low.basic_ack(some[-1][1].delivery_tag, multiple=True)
        return some

    def taken(self) -> list[Received]:
        """Those that have arrived."""
        some, self._messages = self._messages, []
        if self._error is None:
            self._changed.clear()
        return some

    async def _took(self, message: DeliveredMessage) -> None:
        headers: Any = message.header.properties.headers
        self._messages.append((headers[OFFSET], message))
        self._changed.set()

    def _closed(self, sender: Any, error: BaseException | None) -> None:
        self._end(error or ConnectionError("the connection was lost"))

    def _cancelled(self, frame: Any) -> None:
        self._end(ConnectionError("the broker does not send any more"))

    def _end(self, error: BaseException) -> None:
        self._error = self._error or error
        self._changed.set()
