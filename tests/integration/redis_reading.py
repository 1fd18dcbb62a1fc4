"""Sources of a Redis server and their rows."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from receiving_here import ReceivingHere

from penstock.connectors.redis import RedisSource
from penstock.connectors.redis.config import RedisSourceConfig
from penstock.sdk import Context, Read
from servers.redis import Redis

Make = Callable[..., Any]


def maker(redis: Redis, directory: Path) -> Make:
    """Returns a function that makes sources of the server, which share a state directory."""

    def make(**options: Any) -> Any:
        config = RedisSourceConfig.model_validate({**redis.login, **options})
        return RedisSource.create(config, Context("flow", "in", directory / "state"))

    return make


def read(source: Any, *metadata: str, start: Any = None, options: Read | None = None) -> list[Any]:
    """Returns all rows."""
    at = source.initial_offset() if start is None else start
    end = source.limit_batch(at, source.latest_offset(at))
    options = options or Read(metadata=metadata)
    return [
        row
        for partition in source.partitions(at, end)
        for batch in source.read(partition, options)
        for row in batch.to_pylist()
    ]


def payloads(source: Any, **kwargs: Any) -> list[bytes]:
    """Returns the payloads of all rows."""
    return [row["payload"] for row in read(source, **kwargs)]


def received(source: Any, count: int, send: Callable[[], Any], *metadata: str) -> list[Any]:
    """Returns the rows of `count` messages, sent while the source receives."""
    with closing(ReceivingHere(source)) as receiving:
        receiving.await_ready()
        send()
        receiving.await_end(count)
        return read(source, *metadata)
