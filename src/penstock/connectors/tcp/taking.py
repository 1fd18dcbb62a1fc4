"""Messages of connections, on their way into the journal."""

from __future__ import annotations

import asyncio
import socket

from penstock.connectors.tcp.connection import ConnectionConfig
from penstock.core.errors import PenstockError, Transient
from penstock.core.log import make
from penstock.sdk import Journal, Message
from penstock.sdk.kit.framing import Divider, divider

CHUNK = 256 << 10
_TOGETHER = 1000
"""The most messages of one append: even if they are empty, they fit into any journal."""
_MOST_TOLD = 100


class Taking:
    """Takes messages of at most `most` bytes from connections.

    As what serves connections it is called for each of them, and `failed` is done when the
    journal takes no more for good.
    """

    def __init__(self, config: ConnectionConfig, most: int, journal: Journal) -> None:
        self._config, self._most, self._journal = config, most, journal
        self._tasks: set[asyncio.Task[None]] = set()
        self._told: set[str] = set()
        self.failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            await self.take(reader, writer)
        except Transient as error:
            self._tell(error)
        except PenstockError as error:
            if not self.failed.done():
                self.failed.set_exception(error)
        finally:
            self._tasks.discard(task)
            writer.transport.abort()

    async def take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Takes what comes until the other side leaves.

        Raises Transient if it is gone, or if what comes cannot be divided.
        """
        sock = writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        host, port, *_ = writer.get_extra_info("peername")
        about = {"remote": host, "remote_port": port}
        messages = divider(self._config.framing, self._most)
        try:
            while data := await reader.read(CHUNK):
                payloads = messages.divided(data)
                self._count(messages)
                await self._keep(payloads, about)
                if messages.out_of_step is not None:
                    raise self._config.out_of_step(messages.out_of_step, host)
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

    def _tell(self, error: Transient) -> None:
        """Writes into the receiver's log, once, what a sender has to mend."""
        new = error.message not in self._told and len(self._told) < _MOST_TOLD
        if error.code == "out-of-step" and new:
            self._told.add(error.message)
            make().warning(error.message, code=error.code, hint=error.hint)

    async def _keep(self, payloads: list[bytes], about: dict[str, object]) -> None:
        every = [Message(payload, about) for payload in payloads]
        parts = [every[at : at + _TOGETHER] for at in range(0, len(every), _TOGETHER)]
        await asyncio.gather(*(self._journal.append(part) for part in parts))

    def _count(self, messages: Divider) -> None:
        if messages.lost:
            self._journal.lose(messages.lost)
            messages.lost = 0
