"""Connections of the HTTP server: their number, and peers that do not read."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from penstock.sdk.network.connection_limits import ConnectionCounter


class ServerConnection(asyncio.Protocol):
    """A connection that a limit may close, before the protocol `inner` of the server.

    A peer that reads no responses for `timeout` seconds is disconnected.
    """

    def __init__(self, inner: Any, counter: ConnectionCounter, timeout: float) -> None:
        self._inner, self._counter, self._timeout = inner, counter, timeout
        self._peername: Any = None
        self._counted = False
        self._transport: asyncio.Transport | None = None
        self._write_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._peername = transport.get_extra_info("peername")
        self._counted = self._counter.add(self._peername)
        if self._counted:
            self._inner.connection_made(transport)
        else:
            self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel_write_timer()
        if self._counted:
            self._counter.remove(self._peername)
            self._inner.connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._counted:
            self._inner.data_received(data)

    def eof_received(self) -> bool | None:
        return bool(self._inner.eof_received()) if self._counted else None

    def pause_writing(self) -> None:
        assert self._transport is not None
        self._cancel_write_timer()
        loop = asyncio.get_running_loop()
        self._write_timer = loop.call_later(self._timeout, self._transport.abort)
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        self._cancel_write_timer()
        self._inner.resume_writing()

    def _cancel_write_timer(self) -> None:
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None
