"""Documents that a sink writes to OpenSearch, without Spark."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from penstock.connectors.http.opensearch import OpensearchSink
from penstock.formats.json import Json, JsonConfig
from penstock.sdk import BatchId, Failure
from servers.opensearch import Opensearch

IDS = pa.schema([("a", pa.string()), ("b", pa.string())])


def sink_of(
    url: str, primary_key: Sequence[str] = (), sink_type: Any = OpensearchSink, **options: Any
) -> Any:
    """Returns a sink as the planner makes it. With a primary key it has the mode `upsert`."""
    format_ = JsonConfig.model_validate(options.pop("format", {}))
    given = {"url": url, "retry": {"attempts": 2, "backoff": "10ms"}, **options}
    sink = sink_type(sink_type.config_type.model_validate(given))
    sink.format = Json(format_)
    if primary_key:
        sink.mode, sink.primary_key = "upsert", tuple(primary_key)
    return sink


@contextmanager
def opened(
    server: Opensearch, columns: pa.Schema, sink_type: Any = OpensearchSink, **options: Any
) -> Iterator[Any]:
    """Yields a function that writes rows and returns the failures. Its `writer` is the writer."""
    sink = sink_of(options.pop("url", server.url), sink_type=sink_type, **options)
    sink.check_schema(columns)
    client = sink.open()
    writer = sink.writer(client, BatchId("q", 0), 0, columns)

    def write(
        rows: Sequence[dict[str, Any]], operations: Sequence[str] | None = None
    ) -> Sequence[Failure]:
        batch = pa.RecordBatch.from_pylist(list(rows), schema=columns)
        assert sink.format is not None
        payloads = sink.format.encode(batch).payloads
        return writer.write(batch, payloads, None if operations is None else pa.array(operations))

    write.writer = writer  # type: ignore[attr-defined]
    try:
        yield write
    finally:
        client.close()


def contents(server: Opensearch, index: str) -> dict[str, Any]:
    return {id_: json.loads(text) for id_, text in server.documents(index).items()}


def messages(failures: Sequence[Failure]) -> dict[int, tuple[str, str]]:
    return {each.index: (str(each.error.code), each.error.message) for each in failures}
