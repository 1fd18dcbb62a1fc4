"""Sources that receive while a test runs, and what they received."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

from receiving_here import ReceivingHere

from penstock.sdk import Read, ReceivingSource

Take = Callable[..., Any]


class Taking:
    """A source that receives: in this process, if not otherwise said."""

    def __init__(
        self,
        source: ReceivingSource[Any],
        receiving: Callable[[ReceivingSource[Any]], Any] = ReceivingHere,
    ) -> None:
        self.source = source
        self.receiving = receiving(source)
        self.receiving.await_ready()

    def rows(self, count: int, *metadata: str) -> list[dict[str, Any]]:
        """The first messages, once there are so many."""
        self.receiving.await_end(count)
        return self.there(*metadata)

    def there(self, *metadata: str) -> list[dict[str, Any]]:
        """The messages that are there."""
        start = self.source.initial_offset()
        return [
            row
            for partition in self.source.partitions(start, self.source.latest_offset(start))
            for batch in self.source.read(partition, Read(metadata=metadata))
            for row in batch.to_pylist()
        ]

    def payloads(self, count: int) -> list[bytes]:
        """The payloads of the first messages, once there are so many."""
        return [row["payload"] for row in self.rows(count)]


def is_closed(connection: socket.socket) -> bool:
    """Returns whether the server closes a connection."""
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True
