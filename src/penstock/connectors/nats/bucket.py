"""The source of a key-value bucket: what becomes of its keys."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from penstock.connectors.nats.reading import Msg
from penstock.connectors.nats.stream import StreamSource

PUT = "PUT"
_OPERATION = "KV-Operation"
METADATA = pa.schema(
    [
        ("key", pa.string()),
        ("revision", pa.int64()),
        ("operation", pa.string()),
        ("timestamp", pa.timestamp("us", tz="UTC")),
    ]
)


class BucketSource(StreamSource):
    """Reads the stream that a bucket is made of."""

    parallelism = "a pattern of `key`, or the bucket"
    acknowledges = None

    @property
    def stream(self) -> str:
        return f"KV_{self.config.bucket}"

    @property
    def filters(self) -> list[str]:
        return [f"{self._prefix}{key}" for key in self.config.filtered_keys]

    def metadata(self) -> pa.Schema:
        return METADATA

    def payload(self, message: Msg) -> bytes | None:
        return bytes(message.data) if self._operation(message) == PUT else None

    def about(self, message: Msg, name: str) -> Any:
        if name == "key":
            return message.subject.removeprefix(self._prefix)
        if name == "operation":
            return self._operation(message).lower()
        return super().about(message, "sequence" if name == "revision" else name)

    @property
    def _prefix(self) -> str:
        return f"$KV.{self.config.bucket}."

    def _operation(self, message: Msg) -> str:
        """PUT, DEL or PURGE."""
        return str((message.headers or {}).get(_OPERATION, PUT))
