"""Sources of a Redis server, and what they read."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from penstock.connectors.redis import RedisSource
from penstock.connectors.redis.options import RedisSourceConfig
from penstock.sdk import Context, Read
from penstock.testing.contract.receiving import Receiving
from servers.redis import Redis

Make = Callable[..., Any]


def maker(redis: Redis, directory: Path) -> Make:
    """`make(stream="x")` is a source of the server; its state survives."""

    def make(**options: Any) -> Any:
        config = RedisSourceConfig.model_validate({**redis.login, **options})
        return RedisSource.of(config, Context("flow", "in", directory / "state"))

    return make


def read(source: Any, *metadata: str, start: Any = None, wanted: Read | None = None) -> list[Any]:
    """All that there is, batch by batch put together."""
    at = source.initial() if start is None else start
    end = source.advance(at, source.latest(at))
    wanted = wanted or Read(metadata=metadata)
    return [
        row
        for partition in source.partitions(at, end)
        for batch in source.read(partition, wanted)
        for row in batch.to_pylist()
    ]


def payloads(source: Any, **options: Any) -> list[bytes]:
    """The payloads of all that there is."""
    return [row["payload"] for row in read(source, **options)]


def received(source: Any, count: int, send: Callable[[], Any], *metadata: str) -> list[Any]:
    """So many messages, sent while it receives."""
    with closing(Receiving(source)) as receiving:
        receiving.await_ready()
        send()
        receiving.await_end(count)
        return read(source, *metadata)
