"""Clients of a Redis server or cluster, and their pool."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any

from penstock.connectors.redis.config import ConnectionConfig
from penstock.connectors.redis.errors import translate_errors
from penstock.core.secret import revealed
from penstock.sdk import ClientPool

_CONNECT_SECONDS = 10.0


def create_client(config: ConnectionConfig, *, single_node: bool = False) -> Any:
    """Returns a client without retries: of the cluster, or of one node if `single_node` is set."""
    import redis
    from redis.cluster import ClusterNode

    if config.cluster and not single_node:
        with translate_errors(config):
            nodes = [ClusterNode(host, port) for host, port in config.nodes]
            return redis.RedisCluster(
                startup_nodes=nodes, **_client_options(config), retry=_no_retry()
            )
    return redis.Redis(**_find_node(config), retry=_no_retry())


@contextmanager
def connection(config: ConnectionConfig) -> Iterator[Any]:
    """Yields a client and closes it. Client errors are raised as Transient or Permanent."""
    with translate_errors(config):
        client = create_client(config)
        try:
            yield client
        finally:
            client.close()


@asynccontextmanager
async def async_connection(
    config: ConnectionConfig, *, single_node: bool = False
) -> AsyncIterator[Any]:
    """Yields an asyncio client and closes it, like `connection`."""
    from redis import asyncio as redis
    from redis.asyncio.cluster import ClusterNode
    from redis.asyncio.retry import Retry
    from redis.backoff import NoBackoff

    retry = Retry(NoBackoff(), 0)
    with translate_errors(config):
        client: Any
        if config.cluster and not single_node:
            nodes = [ClusterNode(host, port) for host, port in config.nodes]
            client = redis.RedisCluster(startup_nodes=nodes, **_client_options(config), retry=retry)
        else:
            client = redis.Redis(**await asyncio.to_thread(_find_node, config), retry=retry)
        try:
            yield client
        finally:
            await client.aclose()


@contextmanager
def pooled_connection(config: ConnectionConfig) -> Iterator[Any]:
    """Yields the process's client for a configuration, like `connection`.

    An error discards the client.
    """
    with _POOL.using(config) as client, translate_errors(config):
        yield client


def _client_options(config: ConnectionConfig) -> dict[str, Any]:
    """Returns the options of any client. Raises Permanent if a certificate file is missing."""
    auth, tls = config.auth, config.tls_settings
    options: dict[str, Any] = {
        "username": auth and auth.username,
        "password": auth and revealed(auth.password),
        "socket_timeout": config.timeout,
        "socket_connect_timeout": min(_CONNECT_SECONDS, config.timeout),
    }
    if tls is not None:
        tls.check_files()
        options |= {
            "ssl": True,
            "ssl_ca_certs": tls.ca,
            "ssl_certfile": tls.certificate,
            "ssl_keyfile": tls.key,
            "ssl_cert_reqs": "required" if tls.verify else "none",
            "ssl_check_hostname": tls.verify and tls.verify_hostname,
        }
    return options


def _node_options(config: ConnectionConfig, node: tuple[str, int]) -> dict[str, Any]:
    host, port = node
    options = {**_client_options(config), "host": host, "port": port, "db": config.database}
    tls = config.tls_settings
    if tls is not None and tls.key_password is not None:
        options["ssl_password"] = revealed(tls.key_password)
    return options


def _find_node(config: ConnectionConfig) -> dict[str, Any]:
    """Returns the client options of the first node that responds, or of the last node."""
    import redis

    *candidates, last = (_node_options(config, node) for node in config.nodes)
    for options in candidates:
        with suppress(redis.RedisError, OSError):
            redis.Redis(**options, retry=_no_retry(), single_connection_client=True).close()
            return options
    return last


def _no_retry() -> Any:
    from redis.backoff import NoBackoff
    from redis.retry import Retry

    return Retry(NoBackoff(), 0)


_POOL = ClientPool[ConnectionConfig, Any](create_client, lambda client: client.close())
