"""Sources of key-value buckets, whose streams are read."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from penstock.connectors.nats.reader import StreamMessage
from penstock.connectors.nats.stream import StreamSource

_BUCKET_METADATA = pa.schema(
    [
        ("key", pa.string()),
        ("revision", pa.int64()),
        ("operation", pa.string()),
        ("timestamp", pa.timestamp("us", tz="UTC")),
    ]
)
_OPERATION_HEADER = "KV-Operation"
_PUT = "PUT"


class BucketSource(StreamSource):
    """Reads the stream of a key-value bucket."""

    parallelism = "a pattern of `keys`, or the bucket"
    acknowledges = None

    @property
    def stream(self) -> str:
        return f"KV_{self.config.bucket}"

    @property
    def filters(self) -> list[str]:
        return [f"{self._prefix}{key}" for key in self.config.key_filters]

    def metadata_schema(self) -> pa.Schema:
        return _BUCKET_METADATA

    def payload(self, message: StreamMessage) -> bytes | None:
        return bytes(message.data) if _operation(message) == _PUT else None

    def metadata_value(self, message: StreamMessage, name: str) -> Any:
        if name == "key":
            return message.subject.removeprefix(self._prefix)
        if name == "operation":
            return _operation(message).lower()
        return super().metadata_value(message, "sequence" if name == "revision" else name)

    @property
    def _prefix(self) -> str:
        return f"$KV.{self.config.bucket}."


def _operation(message: StreamMessage) -> str:
    """Returns PUT, DEL or PURGE."""
    return str((message.headers or {}).get(_OPERATION_HEADER, _PUT))
