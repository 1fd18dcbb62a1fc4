"""Reading a stream between two offsets, and finding where it ends.

A stream hands its messages out from any offset, to a consumer that asks for that. It does not tell
where it ends: a consumer that asks for the last chunk of messages gets it, and with it the offset
of the last one.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from penstock.connectors.rabbitmq.connection import connected, left, lost
from penstock.connectors.rabbitmq.deliveries import Deliveries, Received
from penstock.connectors.rabbitmq.faults import told
from penstock.sdk.kit.background import Background

if TYPE_CHECKING:
    from aio_pika.abc import AbstractChannel, AbstractConnection

    from penstock.connectors.rabbitmq.stream import RabbitmqStreamConfig

T = TypeVar("T")
_DOUBT, _SHORT_DOUBT = 2.0, 0.5
"""How long a message is waited for where there may be none, and where there was none before."""
_CHUNK = 65_535
"""More messages than the last chunk of a stream has."""


class Bounds(NamedTuple):
    """Offsets of a stream as it is now; 0 where nothing is in it."""

    at: int | None
    """Where the messages begin that were asked for; None if there are none."""
    last: int
    """Where the last chunk of messages begins."""
    end: int
    """The one after that of the last message."""


class Cursor:
    """A connection that reads one stream. Raises Transient or Permanent, and is closed then."""

    def __init__(self, config: RabbitmqStreamConfig) -> None:
        self.config = config
        self._doing = f'read the stream "{config.stream}"'
        self._background = Background()
        self._connection: AbstractConnection | None = None
        self._left = False
        self._doubt = _DOUBT
        self._run(self._opened())

    @property
    def closed(self) -> bool:
        """Whether nothing can be read with it any more."""
        return self._left or self._connection is None or lost(self._connection)

    def bounds(self, start: str | datetime | None = None) -> Bounds:
        """Where the messages from `start` on begin, and where the stream ends."""
        found = self._run(self._bounds(start))
        self._doubt = _DOUBT if found.end else _SHORT_DOUBT
        return found

    def read(self, start: int, end: int, gone: Callable[[int], None]) -> Iterator[list[Received]]:
        """The messages between two offsets; `end` is one after that of a message.

        `gone` is told the first offset that is there, if messages before it are gone: files of a
        stream go as a whole, and each begins with an offset of the broker's own.
        """
        channel, deliveries = self._run(self._begun(start))
        try:
            at = start
            while at < end:
                some = [each for each in self._run(deliveries.some()) if each[0] >= at]
                if some and at == start > 0 and some[0][0] > start + 1:
                    first = self.bounds("first").at
                    if first is not None and first > start + 1:
                        gone(first)
                if some:
                    at = some[-1][0] + 1
                found = [each for each in some if each[0] < end]
                if found:
                    yield found
        finally:
            if not self.closed:
                self._run(self._done(channel))

    def close(self) -> None:
        """Leaves."""
        if self._left:
            return
        self._left = True
        if self._connection is not None:
            self._background.run(left(self._connection))
        self._background.close()

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        async def limited() -> T:
            async with asyncio.timeout(self.config.timeout):
                return await work

        try:
            with told(self.config, self._doing):
                return self._background.run(limited())
        except BaseException:
            self.close()
            raise

    async def _opened(self) -> None:
        self._connection = await connected(self.config)
        async with self._channel() as channel:
            await channel.get_queue(self.config.stream)

    async def _begun(self, start: int) -> tuple[AbstractChannel, Deliveries]:
        assert self._connection is not None
        channel = await self._connection.channel()
        deliveries = Deliveries(channel)
        await deliveries.begin(self.config.stream, start, self.config.prefetch)
        return channel, deliveries

    async def _bounds(self, start: str | datetime | None) -> Bounds:
        """The broker sends to all consumers of a channel what there is for them, then answers."""
        stream = self.config.stream
        async with self._channel() as channel:
            asked, last = Deliveries(channel), Deliveries(channel)
            if start is not None:
                await asked.begin(stream, start, 1)
            await last.begin(stream, "last", _CHUNK)
            await last.arrival(self._doubt)
            await channel.get_queue(stream)
            first, chunk = asked.taken(), last.taken()
        if not chunk:
            return Bounds(None, 0, 0)
        return Bounds(first[0][0] if first else None, chunk[0][0], chunk[-1][0] + 1)

    @asynccontextmanager
    async def _channel(self) -> AsyncIterator[AbstractChannel]:
        assert self._connection is not None
        channel = await self._connection.channel()
        try:
            yield channel
        finally:
            if not channel.is_closed:
                await channel.close()

    async def _done(self, channel: AbstractChannel) -> None:
        await channel.close()


_kept: list[Cursor] = []
"""Those of this process."""


def kept(config: RabbitmqStreamConfig) -> Cursor:
    """The process's cursor of a configuration, made if need be."""
    for each in [each for each in _kept if each.closed]:
        _kept.remove(each)
        each.close()
    found = next((each for each in _kept if each.config == config), None)
    if found is None:
        found = Cursor(config)
        _kept.append(found)
    return found
