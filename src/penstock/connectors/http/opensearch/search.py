"""Searches in an index."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from penstock.connectors.http.opensearch.api import SearchServer, index_path
from penstock.connectors.http.opensearch.cursor import Query, all_of
from penstock.connectors.http.opensearch.point_in_time import KEEP_ALIVE, PointInTime
from penstock.sdk import Permanent

if TYPE_CHECKING:
    from penstock.connectors.http.opensearch.hits import Hit

_COMPLETE = "allow_partial_search_results=false"
"""A search that misses a part of the index fails."""
_PAGE, _MAX_PAGE = 1_000, 10_000
"""The documents of the first page of a point in time, and of the largest one."""
_PAGE_BYTES = 4 << 20
"""The size of a response above which the next page has no more documents."""


class Search:
    """Searches for the documents of a query in an index."""

    def __init__(self, server: SearchServer, index: str, query: Query) -> None:
        self._server, self._index, self._query = server, index, query
        self._largest = _MAX_PAGE
        """The documents of a page of `nth` that the server has not rejected."""

    def query(self, conditions: Sequence[Query]) -> Query:
        """Returns the query with further conditions."""
        return all_of([self._query, *conditions])

    def types(self, names: Sequence[str]) -> Mapping[str, Sequence[str]]:
        """Returns the types of fields in the indexes that have them, by name."""
        from msgspec import json

        if not names:
            return {}
        fields = ",".join(quote(name, safe="") for name in names)
        path = f"{index_path(self._index)}/_field_caps?fields={fields}"
        found = json.decode(self._server.call("GET", path, index=self._index))
        return {name: [*types] for name, types in found["fields"].items()}

    def count(self, conditions: Sequence[Query], limit: int | None = None) -> int:
        """Returns the number of documents, or at most `limit`."""
        from msgspec import json

        body = {"size": 0, "query": self.query(conditions), "track_total_hits": limit or True}
        found = json.decode(self._post(f"{index_path(self._index)}/_search", body))
        return int(found["hits"]["total"]["value"])

    def hits(self, body: Mapping[str, Any]) -> list[Hit]:
        """Returns the documents of one search, fewer if the response would be too large."""
        full = {"query": self.query([]), "track_total_hits": False, **body}
        return self._page(f"{index_path(self._index)}/_search", full)[0]

    def nth(
        self, number: int, conditions: Sequence[Query], sort: Sequence[Query]
    ) -> list[Any] | None:
        """Returns the values of a sort of the `number`th document; None if there are fewer.

        Documents with the same values at the end of a page count as one.
        """
        body: dict[str, Any] = {
            "_source": False,
            "query": self.query(conditions),
            "sort": sort,
            "track_total_hits": False,
        }
        while True:
            requested = body["size"] = min(number, self._largest)
            hits, _ = self._page(f"{index_path(self._index)}/_search", body)
            if body["size"] < requested:
                self._largest = body["size"]
            if not hits:
                return None
            number -= len(hits)
            if not number:
                return hits[-1].sort
            body["search_after"] = hits[-1].sort

    def pages(
        self, point_in_time: PointInTime, conditions: Sequence[Query], sort: Sequence[Query]
    ) -> Iterator[list[Hit]]:
        """Yields the documents of a point in time, page by page. Small documents have larger pages.

        The server sorts all remaining documents for each page.
        """
        with point_in_time.opened(self._server, self._index) as id_:
            body: dict[str, Any] = {
                "pit": {"id": id_, "keep_alive": KEEP_ALIVE},
                "query": self.query(conditions),
                "sort": [*sort, *({name: "asc"} for name in point_in_time.tiebreakers)],
                "size": _PAGE,
                "track_total_hits": False,
                "seq_no_primary_term": True,
            }
            largest = _MAX_PAGE
            while True:
                requested = body["size"]
                hits, size = self._page("/_search", body)
                if hits:
                    yield hits
                if len(hits) < body["size"]:
                    return
                body["search_after"] = hits[-1].sort
                if body["size"] < requested:
                    largest = body["size"]
                if size <= _PAGE_BYTES:
                    body["size"] = min(2 * body["size"], largest)

    def _page(self, path: str, body: dict[str, Any]) -> tuple[list[Hit], int]:
        """Returns a page and the size of the response in bytes.

        Halves the number of documents of a page that is too large, for the client or the server.
        """
        from penstock.connectors.http.opensearch.hits import hits_of

        while True:
            try:
                response = self._post(path, body)
                return hits_of(response), len(response)
            except Permanent as error:
                if error.code != "too-large":
                    raise
                if body["size"] == 1:
                    error.hint = "Exclude the document by the option query."
                    raise
                body["size"] //= 2

    def _post(self, path: str, body: Mapping[str, Any]) -> bytes:
        return self._server.call("POST", f"{path}?{_COMPLETE}", body, self._index)
