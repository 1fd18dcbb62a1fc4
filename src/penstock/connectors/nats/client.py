"""Connections to NATS, and their pool for code that is not asynchronous."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from penstock.connectors.nats.config import ConnectionConfig, NatsAuth
from penstock.connectors.nats.errors import translate_errors
from penstock.core.secret import revealed
from penstock.sdk import ClientPool, Permanent
from penstock.sdk.network.event_loop import EventLoopThread
from penstock.sdk.network.tls import Tls

if TYPE_CHECKING:
    from nats.aio.client import Client

T = TypeVar("T")
_CLOSE_SECONDS = 1.0
"""The timeout of closing after a failed handshake, which nats-py does not end by itself."""


async def connect(
    config: ConnectionConfig, server_errors: list[Exception] | None = None, **callbacks: Any
) -> Client:
    """Returns a connection that does not reconnect. Raises Transient or Permanent.

    Asynchronous errors of the server are appended to `server_errors`.
    """
    from nats.aio.client import Client

    client = Client()
    errors: list[Exception] = [] if server_errors is None else server_errors

    async def append_error(error: Exception) -> None:
        errors.append(error)

    connecting = client.connect(
        servers=config.servers, **_auth_options(config.auth),
        tls=(config.tls if isinstance(config.tls, Tls) else Tls()).context(),
        name="penstock", allow_reconnect=False,
        max_reconnect_attempts=1, reconnect_time_wait=0, ping_interval=20,
        **{"error_cb": append_error, **callbacks},
    )  # fmt: skip
    try:
        with translate_errors(config, "connect", errors):
            await asyncio.wait_for(connecting, config.timeout)
        _check_tls(client, config)
    except BaseException:
        with suppress(Exception):
            await asyncio.wait_for(client.close(), _CLOSE_SECONDS)
        raise
    return client


async def flush(client: Client, config: ConnectionConfig) -> None:
    """Returns once the server has processed all sent messages. Raises the client's errors.

    The client's PING overtakes messages in its buffer (nats-py 2.16). The first PONG means that
    the buffer is written, so the second PING follows the messages.
    """
    for _ in range(2):
        await client.flush(max(1, round(config.timeout)))


def _auth_options(auth: NatsAuth | None) -> dict[str, Any]:
    if auth is None:
        return {}
    if auth.creds is not None and not Path(auth.creds).is_file():
        raise Permanent(
            f"cannot read the file of auth.creds: {auth.creds} does not exist",
            code="authentication",
            hint="Check the path. A relative path starts at the pipeline file; "
            "every machine of a cluster needs the file.",
        )
    jwt = (revealed(auth.jwt) or "").strip().encode()
    return {
        "user": auth.username,
        "password": revealed(auth.password),
        "token": revealed(auth.token),
        "nkeys_seed_str": revealed(auth.nkey),
        "user_jwt_cb": (lambda: jwt) if jwt else None,
        "user_credentials": auth.creds,
    }


def _check_tls(client: Client, config: ConnectionConfig) -> None:
    encrypted = bool(client._server_info.get("tls_required"))
    if config.requires_tls and not encrypted:
        raise Permanent(
            f"cannot connect to {config.server_names} with TLS: the server does not offer TLS",
            code="tls",
            hint="Enable TLS at the server, or set url to nats://HOST without tls.",
        )
    if config.tls is False and encrypted:
        raise Permanent(
            f"cannot connect to {config.server_names} without TLS: the server requires TLS",
            code="tls",
            hint="Remove tls: false.",
        )


class Connection:
    """A connection on an event loop thread, opened on first use and again after a loss."""

    def __init__(self, config: ConnectionConfig) -> None:
        self._config = config
        self._event_loop = EventLoopThread()
        self.server_errors: list[Exception] = []
        """Asynchronous errors of the server since the start of the last call."""
        self._client: Client | None = None
        self._lock = asyncio.Lock()

    def run(self, action: str, call: Callable[[Client], Awaitable[T]]) -> T:
        """Returns the result of `call`. Raises Transient or Permanent; `action` is for messages."""
        return self._event_loop.run(self._run(action, call))

    def close(self) -> None:
        """Closes the connection."""
        if self._client is not None:
            self._event_loop.run(self._client.close())
        self._event_loop.close()

    async def _run(self, action: str, call: Callable[[Client], Awaitable[T]]) -> T:
        async with self._lock:
            self.server_errors.clear()
            if self._client is None or not self._client.is_connected:
                self._client = await connect(self._config, self.server_errors)
        with translate_errors(self._config, action):
            return await call(self._client)


_POOL = ClientPool[ConnectionConfig, Connection](Connection, Connection.close)


def pooled_connection(config: ConnectionConfig) -> Connection:
    """Returns the process's connection to a server with the credentials of `config`."""
    return _POOL.get(config.connection)
