"""Names of JetStream streams, their subjects, and key-value buckets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.connectors.nats.config import ConnectionConfig

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.js.api import StreamInfo

_BUCKET, _OBJECTS = "KV_", "OBJ_"
"""The prefixes of streams of key-value buckets, and of object stores."""


async def list_names(client: Client, config: ConnectionConfig, option: str) -> list[str]:
    """Returns the names of streams, the subjects of streams, or the names of buckets."""
    streams = await _streams(client, config)
    buckets = [name for name in streams if name.startswith(_BUCKET)]
    if option == "bucket":
        return [name.removeprefix(_BUCKET) for name in buckets]
    plain = {name: stream for name, stream in streams.items()
             if not name.startswith((_BUCKET, _OBJECTS))}  # fmt: skip
    if option == "stream":
        return [*plain]
    return [subject for stream in plain.values() for subject in stream.config.subjects or ()]


async def _streams(client: Client, config: ConnectionConfig) -> dict[str, StreamInfo]:
    """Returns all streams by their names. JetStream lists them by pages."""
    jetstream = client.jetstream(timeout=config.timeout)
    found: dict[str, StreamInfo] = {}
    while page := await jetstream.streams_info(offset=len(found)):
        known = len(found)
        found |= {str(stream.config.name): stream for stream in page}
        if len(found) == known:
            break
    return found
