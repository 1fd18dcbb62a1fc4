"""How a broker is reached."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field

from penstock.core.secret import revealed
from penstock.sdk import Config, Duration, Secret
from penstock.sdk.kit.address import url_of
from penstock.sdk.kit.tls import Tls, tls_context

if TYPE_CHECKING:
    from aio_pika.abc import AbstractChannel, AbstractConnection

CONNECT_SECONDS = 10.0
_LEAVE_SECONDS = 2.0
_PORTS = {"amqp": 5672, "amqps": 5671}


def _alone(text: str) -> str:
    parts = urlsplit(text)
    if parts.path.strip("/") or parts.query:
        raise ValueError("write the virtual host as the option virtual_host, and no parameters")
    return text


class ConnectionConfig(Config):
    url: Annotated[str, AfterValidator(url_of(*_PORTS)), AfterValidator(_alone)]
    """The broker, as `amqp://host:port`, or `amqps://host:port` for TLS."""
    username: str = "guest"
    """The user."""
    password: Secret = Secret("guest")
    """The user's password."""
    virtual_host: str = "/"
    """The virtual host, which has exchanges and queues of its own."""
    tls: Tls = Tls()
    """Whom to trust where the URL begins with amqps, and who we are."""
    heartbeat: Duration = Field(default=60.0, ge=1, le=65_535)
    """How often both sides show that they are there; after two that are missing the connection is
    made anew."""
    timeout: Duration = Field(default=30.0, gt=0)
    """How long an answer of the broker may take."""

    @property
    def address(self) -> str:
        """The host and the port."""
        parts = urlsplit(self.url)
        return f"{parts.hostname}:{parts.port or _PORTS[parts.scheme]}"


async def connected(config: ConnectionConfig) -> AbstractConnection:
    """A connection to the broker; what fails is the client's own."""
    import aio_pika

    for name in ("aio_pika", "aiormq"):
        logging.getLogger(name).addHandler(logging.NullHandler())
    parts = urlsplit(config.url)
    secure = parts.scheme == "amqps"
    return await aio_pika.connect(
        host=parts.hostname or "",
        port=parts.port or _PORTS[parts.scheme],
        login=config.username,
        password=revealed(config.password) or "",
        virtualhost=config.virtual_host,
        ssl=secure,
        ssl_context=tls_context(config.tls) if secure else None,
        timeout=CONNECT_SECONDS,
        heartbeat=round(config.heartbeat),
    )


@asynccontextmanager
async def channel(config: ConnectionConfig) -> AsyncIterator[AbstractChannel]:
    """A channel of a connection of its own; what fails is the client's own."""
    connection = await connected(config)
    try:
        yield await asyncio.wait_for(connection.channel(on_return_raises=True), CONNECT_SECONDS)
    finally:
        await left(connection)


def lost(connection: AbstractConnection) -> bool:
    """Whether there is no connection any more."""
    return not connection.connected.is_set()


async def left(connection: AbstractConnection) -> None:
    """Leaves, with a broker that does not answer, too."""
    with suppress(Exception):
        await asyncio.wait_for(connection.close(), _LEAVE_SECONDS)
