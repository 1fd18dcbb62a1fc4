from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any, ClassVar

import pyarrow as pa
import pytest

from penstock.connectors.http.opensearch import OpensearchSink, OpensearchSource
from penstock.testing.contract import SinkContract, SourceContract
from servers.gate import Gate
from servers.opensearch import Opensearch

NUMBER = "place_"
"""A field with the place of a document, in whose order documents are read."""


class OnOpensearch:
    """Fixtures of both contracts. The server is behind a gate, whose end is that of the server."""

    payload_kind: ClassVar[Any] = "rows"

    @pytest.fixture
    def server(self, opensearch: Opensearch) -> Iterator[Gate]:
        gate = Gate(opensearch.port)
        yield gate
        gate.stop()

    @pytest.fixture
    def index(self, opensearch: Opensearch) -> str:
        return opensearch.new_index()

    @pytest.fixture
    def options(self, server: Gate, index: str) -> dict[str, Any]:
        return {
            "url": f"http://127.0.0.1:{server.port}",
            "index": index,
            "retry": {"attempts": 2, "backoff": "100ms"},
            "timeout": "3s",
        }


class TestOpensearchSource(OnOpensearch, SourceContract):
    component = OpensearchSource
    batch_limit = {"max_records": 1}

    @pytest.fixture
    def options(self, server: Gate, index: str, opensearch: Opensearch) -> dict[str, Any]:
        fields = {"dynamic": False, "properties": {NUMBER: {"type": "long"}}}
        settings = {"number_of_shards": 2}
        opensearch.call("PUT", f"/{index}", {"mappings": fields, "settings": settings})
        options = OnOpensearch.options.__wrapped__(self, server, index)  # type: ignore[attr-defined]
        return {**options, "cursor_columns": [NUMBER]}

    @pytest.fixture
    def put(self, opensearch: Opensearch, index: str) -> Any:
        places = count()

        def put(rows: Any, schema: pa.Schema) -> None:
            payloads = self.encode(rows, schema)
            opensearch.put(
                index, [b'{"%b":%d,%b' % (NUMBER.encode(), next(places), p[1:]) for p in payloads]
            )

        return put


class TestOpensearchSink(OnOpensearch, SinkContract):
    component = OpensearchSink

    @pytest.fixture
    def rows(self, opensearch: Opensearch, index: str) -> Any:
        def rows(schema: pa.Schema) -> list[dict[str, Any]]:
            return self.decode([*opensearch.documents(index).values()], schema)

        return rows

    def test_back_pressure_bounds_memory(
        self, create_sink: Any, rows: Any, server: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("penstock.testing.contract.sink.WRITTEN_MEGABYTES", 60)
        monkeypatch.setattr("penstock.testing.contract.sink.MAX_MEGABYTES", 50)
        super().test_back_pressure_bounds_memory(create_sink, rows, server)  # type: ignore[misc]
