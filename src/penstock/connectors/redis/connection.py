"""How a server or a cluster is reached: its options, and clients made of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any, Self
from urllib.parse import SplitResult, urlsplit

from pydantic import Field, field_validator, model_validator

from penstock.connectors.redis.faults import faults
from penstock.core.secret import revealed
from penstock.sdk import Config, Duration, Secret
from penstock.sdk.kit.address import url_of
from penstock.sdk.kit.tls import Tls

CONNECT_SECONDS = 10.0
PORT = 6379


class ConnectionConfig(Config):
    url: str | list[str]
    """The server, as `redis://host:port/database`, or `rediss://...` for TLS; for a cluster any of
    its servers, or several, of which one that answers is asked for the others."""
    cluster: bool = False
    """Whether it is a cluster, whose keys several servers share."""
    username: str | None = None
    """The user (ACL); `default` if only a password is given."""
    password: Secret | None = None
    """The user's password."""
    tls: Tls = Tls()
    """Whom to trust where the URL begins with rediss, and who we are."""
    timeout: Duration = Field(default=10.0, gt=0)
    """How long an answer may take."""

    @field_validator("url")
    @classmethod
    def _urls(cls, url: str | list[str]) -> str | list[str]:
        given = [url] if isinstance(url, str) else url
        for each in given:
            path = urlsplit(url_of("redis", "rediss")(each)).path
            if path not in ("", "/") and not path.removeprefix("/").isdigit():
                raise ValueError(
                    "what follows the port is the number of a database: redis://HOST/1"
                )
        if len({urlsplit(each).scheme for each in given}) != 1:
            raise ValueError("give at least one, and rediss:// either for all or for none")
        return url

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if not self.cluster and len(self._parts) > 1:
            raise ValueError("several servers as url are those of a cluster: cluster: true")
        if self.password is None and self.username is not None:
            raise ValueError("username needs password, too")
        if self.cluster and self.database:
            raise ValueError("a cluster has no other database than 0")
        if self.cluster and self.tls.key_password is not None:
            raise ValueError("tls: key_password does not go together with cluster")
        return self

    @property
    def database(self) -> int:
        return max(int(each.path.strip("/") or 0) for each in self._parts)

    @property
    def servers(self) -> list[tuple[str, int]]:
        """Host and port of each server that is named."""
        return [(str(each.hostname), each.port or PORT) for each in self._parts]

    @property
    def shown(self) -> str:
        """The servers as errors name them."""
        return ", ".join(f"{host}:{port}" for host, port in self.servers)

    @property
    def _parts(self) -> list[SplitResult]:
        return [urlsplit(each) for each in ([self.url] if isinstance(self.url, str) else self.url)]

    def arguments(self) -> dict[str, Any]:
        """What any client is made with. Raises Permanent if a certificate is missing."""
        given: dict[str, Any] = {
            "username": self.username,
            "password": revealed(self.password),
            "socket_timeout": self.timeout,
            "socket_connect_timeout": min(CONNECT_SECONDS, self.timeout),
        }
        if self._parts[0].scheme == "rediss":
            self.tls.need_files()
            given |= {
                "ssl": True,
                "ssl_ca_certs": self.tls.ca,
                "ssl_certfile": self.tls.certificate,
                "ssl_keyfile": self.tls.key,
                "ssl_cert_reqs": "required" if self.tls.verify else "none",
                "ssl_check_hostname": self.tls.verify and self.tls.verify_hostname,
            }
        return given

    def alone(self, server: tuple[str, int]) -> dict[str, Any]:
        """What a client of a single server is made with."""
        host, port = server
        given = {**self.arguments(), "host": host, "port": port, "db": self.database}
        if self.tls.key_password is not None:
            given["ssl_password"] = revealed(self.tls.key_password)
        return given


def client(config: ConnectionConfig, *, alone: bool = False) -> Any:
    """A client, of the whole cluster where it is one, unless one server is enough (`alone`).

    It tries nothing a second time.
    """
    import redis
    from redis.cluster import ClusterNode

    if config.cluster and not alone:
        with faults(config):
            nodes = [ClusterNode(*each) for each in config.servers]
            return redis.RedisCluster(startup_nodes=nodes, **config.arguments(), retry=_once())
    return redis.Redis(**_answering(config), retry=_once())


def _answering(config: ConnectionConfig) -> dict[str, Any]:
    """What a client of the first server that answers is made with: the last is not asked."""
    import redis

    *others, last = map(config.alone, config.servers)
    for each in others:
        with suppress(redis.RedisError, OSError):
            redis.Redis(**each, retry=_once(), single_connection_client=True).close()
            return each
    return last


def _once() -> Any:
    from redis.backoff import NoBackoff
    from redis.retry import Retry

    return Retry(NoBackoff(), 0)


@contextmanager
def connected(config: ConnectionConfig) -> Iterator[Any]:
    """A client for a while. What it raises within becomes Transient or Permanent."""
    with faults(config):
        made = client(config)
        try:
            yield made
        finally:
            made.close()


@asynccontextmanager
async def listening(config: ConnectionConfig, *, alone: bool = False) -> AsyncIterator[Any]:
    """The same for what is asynchronous."""
    from redis import asyncio as redis
    from redis.asyncio.cluster import ClusterNode
    from redis.asyncio.retry import Retry
    from redis.backoff import NoBackoff

    once = Retry(NoBackoff(), 0)
    with faults(config):
        made: Any
        if config.cluster and not alone:
            nodes = [ClusterNode(*each) for each in config.servers]
            made = redis.RedisCluster(startup_nodes=nodes, **config.arguments(), retry=once)
        else:
            made = redis.Redis(**await asyncio.to_thread(_answering, config), retry=once)
        try:
            yield made
        finally:
            await made.aclose()
