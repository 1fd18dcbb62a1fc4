from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from penstock.connectors.http.opensearch import OpensearchSink, OpensearchSource
from penstock.sdk import BatchId, Read
from penstock.testing.contract import SinkContract, SourceContract
from penstock.testing.contract import rows as sample
from search_documents import ReadDocuments, WrittenDocuments
from servers.gate import Gate
from servers.opensearch import Opensearch


class ThroughGate:
    """The server behind a gate: where a gate is shut, the server seems to be stopped."""

    @pytest.fixture
    def server(self, opensearch: Opensearch) -> Iterator[Gate]:
        gate = Gate(opensearch.port)
        yield gate
        gate.stop()

    @pytest.fixture
    def url(self, server: Gate) -> str:
        return f"http://127.0.0.1:{server.port}"


class TestOpensearchSource(ThroughGate, ReadDocuments, SourceContract):
    component = OpensearchSource


class TestOpensearchSink(ThroughGate, WrittenDocuments, SinkContract):
    component = OpensearchSink

    def test_killed_server(
        self, create_sink: Any, index: str, opensearch: Opensearch, rows: Any
    ) -> None:
        """A write waits for the end of a restart, and stored documents and offsets remain valid."""
        sink = create_sink()
        sink.mode, sink.primary_key = "upsert", ("id",)
        self.write_batch(sink, 0, sample.make_rows(1, 2))
        options = {"url": opensearch.url, "index": index, "cursor_columns": ["id"]}
        source = OpensearchSource(OpensearchSource.config_type.model_validate(options))
        opensearch.call("POST", f"/{index}/_refresh")
        start = source.initial_offset()
        end = source.latest_offset(start)
        retry = {"attempts": 1000, "backoff": "50ms", "max_backoff": "100ms"}
        config = {"url": opensearch.url, "index": index, "retry": retry}
        waiting = OpensearchSink(OpensearchSink.config_type.model_validate(config))
        waiting.format, waiting.mode, waiting.primary_key = sink.format, "upsert", ("id",)
        opensearch.kill()
        client = waiting.open()
        writer = waiting.writer(client, BatchId("query-1", 1), 0, sample.SIMPLE)
        writing = ThreadPoolExecutor(1).submit(
            self.write_rows, waiting, writer, sample.make_rows(2, 3)
        )
        opensearch.start()
        assert writing.result(120) == []
        client.close()
        assert sample.sort_by_id(rows(sample.SIMPLE)) == sample.make_rows(1, 2, 3)
        (part,) = source.partitions(start, end)
        assert sum(batch.num_rows for batch in source.read(part, Read())) == 2
        source.close()
