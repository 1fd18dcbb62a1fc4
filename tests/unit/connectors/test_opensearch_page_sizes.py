"""Sizes of the pages of searches, with a server in memory."""

from __future__ import annotations

import json
from typing import Any

from penstock.connectors.http.opensearch.search import Search
from penstock.sdk import Permanent

DOCUMENTS, WINDOW = 12_000, 500


class Server:
    """A server whose index has numbered documents and a `max_result_window`."""

    def __init__(self) -> None:
        self.requested: list[int] = []

    def call(self, method: str, path: str, body: Any, index: str) -> bytes:
        size, first = body["size"], body.get("search_after", [0])[0]
        self.requested.append(size)
        if size > WINDOW:
            raise Permanent("too many documents", code="too-large")
        numbers = range(first + 1, min(first + size, DOCUMENTS) + 1)
        hits = [{"_index": index, "_id": str(n), "sort": [n]} for n in numbers]
        return json.dumps({"hits": {"hits": hits}}).encode()


def test_a_size_that_is_rejected_is_not_requested_again() -> None:
    server: Any = Server()
    search = Search(server, "orders", {"match_all": {}})
    assert search.nth(10_000, [], []) == [10_000]
    rejected = [size for size in server.requested if size > WINDOW]
    assert rejected == [10_000, 5000, 2500, 1250, 625] == server.requested[:5]
    server.requested.clear()
    assert search.nth(3, [], []) == [3] and search.nth(13_000, [], []) is None
    assert max(server.requested) == 312
