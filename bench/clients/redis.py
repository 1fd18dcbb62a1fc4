"""Redis with redis-py."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from clients.system import Ready, System
from penstock.connectors.redis import RedisSink, RedisSource
from servers.redis import PASSWORD, USER, Redis

GROUP = 1000


class _OnRedis(System):
    source, sink = RedisSource, RedisSink

    @classmethod
    def server(cls) -> Any:
        return Redis()

    def __init__(self, server: Any) -> None:
        self._login, self._port, self._key = server.login, server.port, server.new_key()

    def _client(self) -> Any:
        import redis

        return redis.Redis(port=self._port, username=USER, password=PASSWORD)


class RedisStream(_OnRedis):
    name = "redis (stream)"

    def options(self) -> dict[str, Any]:
        return {**self._login, "stream": self._key}

    def send(self, payloads: list[bytes]) -> None:
        with self._client() as client:
            for some in _groups(payloads):
                with client.pipeline(transaction=False) as pipeline:
                    for payload in some:
                        pipeline.xadd(self._key, {"payload": payload})
                    pipeline.execute()

    def take(self, count: int, ready: Ready) -> int:
        with self._client() as client:
            ready()
            taken, after = 0, b"0"
            while taken < count:
                ((_, found),) = client.xread({self._key: after}, GROUP)
                taken, after = taken + len(found), found[-1][0]
        return taken


class RedisList(_OnRedis):
    name = "redis (list)"

    def options(self) -> dict[str, Any]:
        return {**self._login, "list": self._key}

    def send(self, payloads: list[bytes]) -> None:
        with self._client() as client:
            for some in _groups(payloads):
                client.rpush(self._key, *some)

    def take(self, count: int, ready: Ready) -> int:
        with self._client() as client:
            ready()
            taken = 0
            while taken < count:
                taken += len(client.lpop(self._key, GROUP))
        return taken


def _groups(payloads: list[bytes]) -> Iterator[list[bytes]]:
    return (payloads[at : at + GROUP] for at in range(0, len(payloads), GROUP))
