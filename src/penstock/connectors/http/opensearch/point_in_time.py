"""Points in time: searches of several pages that see the same documents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from penstock.connectors.http.opensearch.api import SearchServer, index_path
from penstock.sdk import Permanent, Transient

KEEP_ALIVE = "10m"
"""The time for which a point in time outlives the last page."""


@dataclass(frozen=True)
class PointInTime:
    """The requests of a server for points in time."""

    path: str
    """The path below an index that opens a point in time, with its parameters."""
    key: str
    """The key of the ID in the response."""
    closing_path: str
    closes_list: bool
    """Whether a point in time is closed by a list of IDs."""
    tiebreakers: Sequence[str]
    """The fields that order documents with the same values of a sort."""

    @contextmanager
    def opened(self, server: SearchServer, index: str) -> Iterator[str]:
        """Opens a point in time and yields its ID. Closes it afterwards."""
        from msgspec import json

        path = f"{index_path(index)}{self.path}keep_alive={KEEP_ALIVE}"
        id_ = json.decode(server.call("POST", path, index=index))[self.key]
        try:
            yield id_
        finally:
            body: Any = {self.key: [id_] if self.closes_list else id_}
            with suppress(Transient, Permanent):
                server.call("DELETE", self.closing_path, body)


ELASTICSEARCH = PointInTime("/_pit?", "id", "/_pit", False, ("_shard_doc",))
OPENSEARCH = PointInTime(
    "/_search/point_in_time?allow_partial_pit_creation=false&", "pit_id",
    "/_search/point_in_time", True, ("_id", "_index"),
)  # fmt: skip
