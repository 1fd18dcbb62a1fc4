"""Connections to a RabbitMQ broker, and creation of exchanges, queues and bindings."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

from penstock.connectors.rabbitmq.config import (
    Binding,
    ConnectionConfig,
    ExchangeConfig,
    QueueConfig,
)
from penstock.core.secret import revealed

if TYPE_CHECKING:
    from aio_pika.abc import AbstractChannel, AbstractConnection, AbstractQueue

CONNECT_TIMEOUT = 10.0
"""The longest time to wait for a connection, in seconds."""
_CLOSE_TIMEOUT = 2.0


async def connect(config: ConnectionConfig) -> AbstractConnection:
    """Returns a connection to the broker. Raises errors of the client library."""
    import aio_pika
    from aio_pika.connection import make_url

    for name in ("aio_pika", "aiormq"):
        logging.getLogger(name).addHandler(logging.NullHandler())
    host, port = config.host_and_port
    tls = config.resolved_tls
    url = make_url(
        host=host,
        port=port,
        login=config.auth.username or "",
        password=revealed(config.auth.password) or "",
        virtualhost=config.virtual_host,
        ssl=tls is not None,
        heartbeat=round(config.keep_alive),
    )
    connection = aio_pika.Connection(url, ssl_context=tls.context() if tls is not None else None)
    try:
        await connection.connect(timeout=CONNECT_TIMEOUT)
    except BaseException:
        await close_connection(connection)
        raise
    return connection


@asynccontextmanager
async def open_channel(config: ConnectionConfig) -> AsyncIterator[AbstractChannel]:
    """Yields a channel of a new connection. Raises errors of the client library."""
    connection = await connect(config)
    try:
        yield await asyncio.wait_for(connection.channel(on_return_raises=True), CONNECT_TIMEOUT)
    finally:
        await close_connection(connection)


def is_closed(connection: AbstractConnection) -> bool:
    """Returns whether the connection was closed or lost."""
    return not connection.connected.is_set()


async def close_connection(connection: AbstractConnection) -> None:
    """Closes a connection, also if the broker does not respond."""
    with suppress(Exception):
        await asyncio.wait_for(connection.close(), _CLOSE_TIMEOUT)


async def create_exchange(
    channel: AbstractChannel, name: str, create: ExchangeConfig | bool
) -> None:
    """Creates an exchange unless it exists."""
    exchange = create if isinstance(create, ExchangeConfig) else ExchangeConfig()
    await channel.declare_exchange(
        name,
        exchange.type,
        durable=exchange.durable,
        auto_delete=exchange.auto_delete,
        arguments=exchange.arguments,
    )


async def create_queue(
    channel: AbstractChannel, name: str, create: QueueConfig | bool
) -> AbstractQueue:
    """Creates a queue unless it exists."""
    queue = create if isinstance(create, QueueConfig) else QueueConfig()
    return await channel.declare_queue(
        name,
        durable=queue.durable,
        auto_delete=queue.auto_delete,
        arguments={"x-queue-type": queue.type, **queue.arguments},
    )


async def bind_queue(channel: AbstractChannel, queue: AbstractQueue, binding: Binding) -> None:
    """Binds a queue to an exchange; creates the exchange as configured."""
    if binding.create:
        await create_exchange(channel, binding.exchange, binding.create)
    arguments: Any = {"x-match": binding.match, **binding.headers} if binding.headers else None
    keys = binding.routing_key
    for key in [keys] if isinstance(keys, str) else keys:
        await queue.bind(binding.exchange, key, arguments=arguments)
