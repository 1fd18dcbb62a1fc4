"""Messages of connections, on their way into the journal."""

from __future__ import annotations

import asyncio
import socket

from penstock.connectors.tcp.connection import ConnectionConfig
from penstock.core.errors import PenstockError, Transient
from penstock.sdk import Journal, Message
from penstock.sdk.kit.framing import Divider, divider

CHUNK = 256 << 10
_TOGETHER = 1000
"""The most messages of one append: even if they are empty, they fit into any journal."""


class Taking:
    """Takes messages of at most `most` bytes from connections.

    As what serves connections it is called for each of them, and `failed` is done when the
    journal takes no more for good.
    """

    def __init__(self, config: ConnectionConfig, most: int, journal: Journal) -> None:
        self._config, self._most, self._journal = config, most, journal
        self._tasks: set[asyncio.Task[None]] = set()
        self.failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            await self.take(reader, writer)
        except Transient:
            pass
        except PenstockError as error:
            if not self.failed.done():
                self.failed.set_exception(error)
        finally:
            self._tasks.discard(task)
            writer.transport.abort()

    async def take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Takes what comes until the other side leaves. Raises Transient if it is gone."""
        sock = writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        host, port, *_ = writer.get_extra_info("peername")
        about = {"remote": host, "remote_port": port}
        messages = divider(self._config.framing, self._most)
        try:
            while data := await reader.read(CHUNK):
                await self._keep(messages.divided(data), about)
                self._count(messages)
            await self._keep(messages.ended(), about)
        except OSError as error:
            messages.ended()
            raise self._config.lost(error.strerror or str(error)) from None
        finally:
            self._count(messages)

    async def close(self) -> None:
        """Ends all connections that others made."""
        for task in [*self._tasks]:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _keep(self, payloads: list[bytes], about: dict[str, object]) -> None:
        every = [Message(payload, about) for payload in payloads]
        parts = [every[at : at + _TOGETHER] for at in range(0, len(every), _TOGETHER)]
        await asyncio.gather(*(self._journal.append(part) for part in parts))

    def _count(self, messages: Divider) -> None:
        if messages.lost:
            self._journal.lose(messages.lost)
            messages.lost = 0
