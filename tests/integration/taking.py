"""Sources that receive while a test runs, and what they received."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.sdk import Read, ReceivingSource
from penstock.testing.contract.receiving import Receiving

Take = Callable[..., Any]


class Taking:
    """A source that receives."""

    def __init__(self, source: ReceivingSource[Any]) -> None:
        self.source = source
        self.receiving = Receiving(source)
        self.receiving.await_ready()

    def rows(self, count: int, *metadata: str) -> list[dict[str, Any]]:
        """The first messages, once there are so many."""
        self.receiving.await_end(count)
        return self.there(*metadata)

    def there(self, *metadata: str) -> list[dict[str, Any]]:
        """The messages that are there."""
        start = self.source.initial()
        return [
            row
            for partition in self.source.partitions(start, self.source.latest(start))
            for batch in self.source.read(partition, Read(metadata=metadata))
            for row in batch.to_pylist()
        ]

    def payloads(self, count: int) -> list[bytes]:
        """The payloads of the first messages, once there are so many."""
        return [row["payload"] for row in self.rows(count)]
