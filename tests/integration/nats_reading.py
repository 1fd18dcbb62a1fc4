"""Sources of a NATS server and their rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from penstock.connectors.nats import NatsSource
from penstock.sdk import Context, Read
from servers.nats import Nats


def make_source(nats: Nats, state: Path | None = None, **options: Any) -> Any:
    config = NatsSource.config_type.model_validate({**nats.login, **options})
    return NatsSource.create(config, Context("tests", "in", state))


def rows(source: Any, *metadata: str, start: Any = None, read: Read | None = None) -> Any:
    """Returns all rows, and the offset after them."""
    start = start or source.initial_offset()
    end = source.latest_offset(start)
    read = read or Read(metadata=metadata)
    read_rows = [
        row
        for partition in source.partitions(start, end)
        for batch in source.read(partition, read)
        for row in batch.to_pylist()
    ]
    return read_rows, end


def payloads(source: Any) -> list[bytes]:
    return [row["payload"] for row in rows(source)[0]]


def message_count(nats: Nats, stream: str) -> int:
    """Returns the number of messages in the stream."""
    info: Any = nats.ask(lambda client: client.jetstream().stream_info(stream))
    return int(info.state.messages)
