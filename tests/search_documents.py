"""Fixtures of contracts with indexes of OpenSearch."""

from __future__ import annotations

from itertools import count
from typing import Any, ClassVar

import pyarrow as pa
import pytest

from servers.opensearch import Opensearch

PLACE = "place_"
"""A field with the place of a document, in whose order documents are read."""


class Documents:
    """Fixtures of sources and sinks. Define the fixture `url`."""

    payload_kind: ClassVar[Any] = "rows"

    @pytest.fixture
    def index(self, opensearch: Opensearch) -> str:
        return opensearch.new_index()

    @pytest.fixture
    def options(self, url: str, index: str) -> dict[str, Any]:
        return _options(url, index)


class ReadDocuments(Documents):
    """Fixtures of sources."""

    batch_limit: ClassVar[dict[str, Any]] = {"max_records": 1}

    @pytest.fixture
    def options(self, url: str, index: str, opensearch: Opensearch) -> dict[str, Any]:
        fields = {"dynamic": False, "properties": {PLACE: {"type": "long"}}}
        settings = {"number_of_shards": 1}
        opensearch.call("PUT", f"/{index}", {"mappings": fields, "settings": settings})
        return {**_options(url, index), "cursor_columns": [PLACE]}

    @pytest.fixture
    def put(self, opensearch: Opensearch, index: str) -> Any:
        places = count()

        def put(rows: Any, schema: pa.Schema) -> None:
            payloads = self.encode(rows, schema)  # type: ignore[attr-defined]
            place = PLACE.encode()
            opensearch.put(index, [b'{"%b":%d,%b' % (place, next(places), p[1:]) for p in payloads])

        return put


class WrittenDocuments(Documents):
    """Fixtures of sinks."""

    @pytest.fixture
    def rows(self, opensearch: Opensearch, index: str) -> Any:
        def rows(schema: pa.Schema) -> Any:
            return self.decode([*opensearch.documents(index).values()], schema)  # type: ignore[attr-defined]

        return rows


def _options(url: str, index: str) -> dict[str, Any]:
    retry = {"attempts": 2, "backoff": "100ms"}
    return {"url": url, "index": index, "retry": retry, "timeout": "3s"}
