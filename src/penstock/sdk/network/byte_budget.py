"""The bytes in flight of a receiver: incomplete and unappended messages of all connections."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Self

BYTES_IN_FLIGHT = 64 << 20
"""The default bound of a receiver. Beyond the bound it stops reading from connections."""


class ByteBudget:
    """A bound of the bytes that all connections of an event loop hold.

    The share that has held bytes for the longest time may exceed the bound: its message becomes
    complete, and its bytes are released.
    """

    def __init__(self, size: int = BYTES_IN_FLIGHT) -> None:
        self._size = size
        self._shares: dict[Share, int] = {}
        self._waiting: list[asyncio.Future[None]] = []
        self.used = 0

    def share(self) -> Share:
        """Returns the share of a connection, which is released at the end of its context."""
        return Share(self)

    def has_room(self, share: Share) -> bool:
        """Returns whether a share may grow."""
        return self.used < self._size or next(iter(self._shares), share) is share

    def resize(self, share: Share, size: int) -> None:
        """Sets the bytes that a share holds."""
        before = self._shares.get(share, 0)
        self.used += size - before
        if size:
            self._shares[share] = size
        else:
            self._shares.pop(share, None)
        if size < before:
            waiting, self._waiting = self._waiting, []
            for future in waiting:
                if not future.done():
                    future.set_result(None)

    async def await_room(self, share: Share) -> None:
        """Returns once a share may grow."""
        while not self.has_room(share):
            future = asyncio.get_running_loop().create_future()
            self._waiting.append(future)
            await future


class Share:
    """The bytes of one connection in a budget."""

    def __init__(self, budget: ByteBudget) -> None:
        self._budget = budget

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.resize(0)

    async def await_room(self) -> None:
        """Waits until the budget has room for more bytes of this connection."""
        await self._budget.await_room(self)

    def resize(self, size: int) -> None:
        """Sets the bytes that the connection holds."""
        self._budget.resize(self, size)
