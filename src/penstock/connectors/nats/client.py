"""Connections for code that is not asynchronous, which a process keeps."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

from penstock.connectors.nats.connection import ConnectionConfig, connected, faults
from penstock.core.secret import revealed
from penstock.sdk.kit.background import Background

if TYPE_CHECKING:
    from nats.aio.client import Client

T = TypeVar("T")


class Connection:
    """A connection that is made when it is first needed, and made anew after it was lost."""

    def __init__(self, config: ConnectionConfig) -> None:
        self._config = config
        self._background = Background()
        self.heard: list[Exception] = []
        """What the server complained of since the last call began."""
        self._client: Client | None = None
        self._making = asyncio.Lock()

    def run(self, doing: str, call: Callable[[Client], Awaitable[T]]) -> T:
        """What the call gives. Raises Transient or Permanent."""
        return self._background.run(self._run(doing, call))

    def close(self) -> None:
        """Leaves."""
        if self._client is not None:
            self._background.run(self._client.close())
        self._background.close()

    async def _run(self, doing: str, call: Callable[[Client], Awaitable[T]]) -> T:
        async with self._making:
            self.heard.clear()
            if self._client is None or not self._client.is_connected:
                self._client = await connected(self._config, self.heard)
        with faults(self._config, doing):
            return await call(self._client)


_kept: dict[Any, Connection] = {}
"""Those of this process, by their options."""


def kept(config: ConnectionConfig) -> Connection:
    """The process's connection to a server, as one user."""
    given = (config.password, config.token, config.nkey, config.jwt)
    secrets = [revealed(each) for each in given]
    key = repr(([getattr(config, name) for name in ConnectionConfig.model_fields], secrets))
    if key not in _kept:
        _kept[key] = Connection(config)
    return _kept[key]
