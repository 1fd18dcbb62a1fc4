"""Sources of a NATS server, and what they read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from penstock.connectors.nats import NatsSource
from penstock.sdk import Context, Read
from servers.nats import Nats


def made(nats: Nats, state: Path | None = None, **options: Any) -> Any:
    config = NatsSource.config_type.model_validate({**nats.login, **options})
    return NatsSource.of(config, Context("tests", "in", state))


def rows(source: Any, *metadata: str, start: Any = None, read: Read | None = None) -> Any:
    """All that is there, and the position after it."""
    start = start or source.initial()
    end = source.latest(start)
    read = read or Read(metadata=metadata)
    found = [
        row
        for partition in source.partitions(start, end)
        for batch in source.read(partition, read)
        for row in batch.to_pylist()
    ]
    return found, end


def payloads(source: Any) -> list[bytes]:
    return [row["payload"] for row in rows(source)[0]]


def left(nats: Nats, stream: str) -> int:
    """How many messages the stream has."""
    info: Any = nats.ask(lambda client: client.jetstream().stream_info(stream))
    return int(info.state.messages)
