"""The sources of Elasticsearch and OpenSearch."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from penstock.connectors.http.opensearch.api import SearchServer
from penstock.connectors.http.opensearch.config import DocumentSourceConfig
from penstock.connectors.http.opensearch.cursor import (
    CursorField,
    DocumentOrder,
    Query,
    Values,
    all_of,
)
from penstock.connectors.http.opensearch.point_in_time import ELASTICSEARCH, OPENSEARCH, PointInTime
from penstock.connectors.http.opensearch.search import Search
from penstock.sdk import PAYLOAD, Capability, Offset, Permanent, Read
from penstock.sdk.polling import PolledSource

_METADATA = pa.schema([("index", pa.string()), ("id", pa.string())])
_DEFAULT_MIN_AGE = 5.0
Range = tuple[Values | None, Values]


class DocumentSource(PolledSource[DocumentSourceConfig]):
    """Base class of the sources of Elasticsearch and OpenSearch."""

    capabilities = frozenset(
        {
            Capability.REPLAY,
            Capability.LIMIT,
            Capability.BOUNDED,
            Capability.TAIL,
            Capability.ORDERED,
            Capability.BYTES,
        }
    )
    parallelism = "the index"
    extra = "http"
    client_modules = ("aiohttp", "msgspec")
    point_in_time: ClassVar[PointInTime]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._open: SearchServer | None = None
        self._fields: DocumentOrder | None = None

    def __getstate__(self) -> Mapping[str, Any]:
        return {**super().__getstate__(), "_open": None, "_fields": None}

    def check(self) -> None:
        """Runs the query, and finds the fields of `cursor_columns`."""
        try:
            self._search.count([])
            self._search.types(self.config.cursor_columns)
        finally:
            self.close()

    def metadata_schema(self) -> pa.Schema:
        return _METADATA

    def record_metadata(self, origin: str, position: int) -> Mapping[str, Any]:
        index, _, id_ = origin.partition("/")
        return {"index": index, "id": id_}

    @property
    def poll_interval(self) -> float | None:
        return self.config.interval if self.config.watch else None

    def sample(self, max_records: int) -> pa.BinaryArray:
        hits = self._search.hits({"size": max_records})
        return pa.array([hit.content for hit in hits], pa.binary())

    def initial_offset(self) -> Offset:
        return {"after": None}

    def find_end(self, start: Offset) -> Offset:
        if not self.config.cursor_columns:
            return {"after": []} if self._search.count([], limit=1) else start
        order = self._find_order()
        if order is None:
            return start
        if self._search.count([order.has_nulls()], limit=1):
            raise self._null_cursor()
        hits = self._search.hits(
            {
                "size": 1,
                "_source": False,
                "query": self._search.query([*_after(order, start["after"]), *self._old(order)]),
                "sort": order.sort("desc"),
            }
        )
        return {"after": hits[0].sort} if hits else start

    def limit_batch(self, start: Offset, end: Offset) -> Offset:
        limit = self.config.max_records
        if limit is None or not end["after"]:
            return end
        order = self._known_order()
        conditions = [*_after(order, start["after"]), order.until(end["after"])]
        last = self._search.nth(limit, conditions, order.sort())
        return end if last is None else {"after": last}

    def partitions(self, start: Offset, end: Offset) -> Sequence[Range]:
        return [] if start == end else [(start["after"], end["after"])]

    def read(self, partition: Range, read: Read) -> Iterator[pa.RecordBatch]:
        start, end = partition
        sort: list[Query] = []
        conditions: list[Query] = []
        if end:
            order = self._known_order()
            sort = order.sort()
            conditions = [*_after(order, start), order.until(end)]
        for hits in self._search.pages(self.point_in_time, conditions, sort):
            indexes = pa.array([hit.index for hit in hits], pa.string())
            ids = pa.array([hit.id for hit in hits], pa.string())
            arrays = [
                pa.array([hit.content for hit in hits], pa.binary()),
                pc.binary_join_element_wise(indexes, ids, "/"),
                pa.array([hit.number for hit in hits], pa.int64()),
            ]
            arrays += [{"index": indexes, "id": ids}[name] for name in read.metadata]
            yield pa.RecordBatch.from_arrays(arrays, [*PAYLOAD.names, *read.metadata])

    def min_offset(self, first: Offset, second: Offset) -> Offset:
        left, right = first["after"], second["after"]
        if left is None or right is None:
            return {"after": None}
        # An empty list is the end of documents without order.
        return first if left and (not right or left <= right) else second

    def lag(self, current: Offset, latest: Offset) -> int | None:
        if current == latest or not self.config.cursor_columns:
            return 0 if current == latest else None
        order = self._known_order()
        return self._search.count([*_after(order, current["after"]), order.until(latest["after"])])

    def close(self) -> None:
        if self._open is not None:
            self._open.close()
            self._open = None

    @property
    def _search(self) -> Search:
        if self._open is None:
            self._open = SearchServer(self.config)
        return Search(self._open, self.config.index, self.config.query)

    def _find_order(self) -> DocumentOrder | None:
        """Returns the order of documents; None while no document has the fields.

        Raises Permanent if there are documents without one of the fields.
        """
        if self._fields is None:
            names = self.config.cursor_columns
            types = self._search.types(names)
            if not all(types.get(name) for name in names):
                if self._search.count([], limit=1):
                    raise self._null_cursor()
                return None
            self._fields = DocumentOrder(
                tuple(CursorField.of(name, types[name]) for name in names)
            )  # fmt: skip
        return self._fields

    def _known_order(self) -> DocumentOrder:
        order = self._find_order()
        if order is None:
            raise Permanent(
                f'the index "{self.config.index}" has lost the documents that were to be read',
                code="data-gone", hint="Restore the index, or start again with --fresh.",
            )  # fmt: skip
        return order

    def _old(self, order: DocumentOrder) -> list[Query]:
        """Returns the condition of documents that are old enough to be read."""
        first, age = order.fields[0], self.config.min_age
        if not self.config.watch or not first.is_time:
            return []
        seconds = math.ceil(_DEFAULT_MIN_AGE if age is None else age)
        return [first.compare_time("lte", f"now-{seconds}s")] if seconds else []

    def _null_cursor(self) -> Permanent:
        return Permanent(
            f'the index "{self.config.index}" has documents without a value in one of the fields '
            f"{', '.join(self.config.cursor_columns)}, which have no place in the order",
            code="null-cursor",
            hint="Set cursor_columns to fields that all documents have, or exclude the others: "
            f"query: {{exists: {{field: {self.config.cursor_columns[0]}}}}}",
        )


def _after(order: DocumentOrder, values: Values | None) -> list[Query]:
    return [] if values is None else [all_of([order.after(values)])]


class ElasticsearchSource(DocumentSource):
    """Reads the documents of an Elasticsearch index.

    Each batch is read from a point in time, page by page, in the order of `cursor_columns`. With
    `watch` documents whose values grow are read as they become visible. A document that changes
    without growing values is not read again, and deletions are not read.

    The metadata are `index` and `id`.

    ```yaml
    type: elasticsearch
    url: http://localhost:9200
    auth: {api_key: "${env:ELASTIC_API_KEY}"}
    index: orders
    query: {term: {country: CH}}
    cursor_columns: [changed_at, number]
    schema: number BIGINT, country STRING, total DECIMAL(10, 2), changed_at TIMESTAMP
    ```
    """

    point_in_time = ELASTICSEARCH


class OpensearchSource(DocumentSource):
    """Reads the documents of an OpenSearch index.

    It has the options and guarantees of the source `elasticsearch`. Documents with the same values
    of `cursor_columns` are ordered by their IDs, which the server then keeps in memory.

    ```yaml
    type: opensearch
    url: http://localhost:9200
    index: orders
    cursor_columns: [changed_at, number]
    watch: true
    schema: number BIGINT, country STRING, total DECIMAL(10, 2), changed_at TIMESTAMP
    ```
    """

    point_in_time = OPENSEARCH
