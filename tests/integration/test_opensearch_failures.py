"""Failures of writes to OpenSearch: missing and blocked indexes, sizes, credentials, options."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import pyarrow as pa
import pytest
from opensearch_writing import IDS, contents, messages, opened, sink_of

from interruptions import Interruptions
from penstock.connectors.http.opensearch import (
    ElasticsearchSink,
    ElasticsearchSource,
    OpensearchSink,
    OpensearchSource,
)
from penstock.core.errors import PenstockError, Permanent, Transient
from penstock.sdk import Read
from servers.gate import Gate
from servers.opensearch import Opensearch
from servers.web import PASSWORD, USER, Web

TYPES: dict[str, tuple[Any, Any]] = {
    "opensearch": (OpensearchSink, OpensearchSource),
    "elasticsearch": (ElasticsearchSink, ElasticsearchSource),
}


def test_missing_index(opensearch: Opensearch) -> None:
    """A missing index that must not be created is an error by its code, before and during a run."""
    index = opensearch.new_index()
    sink = sink_of(opensearch.url, index=index, create=False)
    with pytest.raises(Permanent, match=f'there is no index "{index}"') as raised:
        sink.check()
    assert raised.value.code == "unknown-index"
    with (
        opened(opensearch, IDS, index=index, create=False) as write,
        pytest.raises(Permanent, match=f'there is no index "{index}"'),
    ):
        write([{"a": "1"}])
    setting = {"transient": {"action.auto_create_index": "false"}}
    opensearch.call("PUT", "/_cluster/settings", setting)
    try:
        with opened(opensearch, IDS, index=index) as write:
            write.writer._server.known_indexes.add(index)
            with pytest.raises(Permanent) as raised:
                write([{"a": "1"}])
    finally:
        setting = {"transient": {"action.auto_create_index": None}}  # type: ignore[dict-item]
        opensearch.call("PUT", "/_cluster/settings", setting)
    assert raised.value.code == "unknown-index"


def test_busy_and_blocked_indexes(opensearch: Opensearch) -> None:
    """Documents are sent again after 429, and a denial stops the query."""
    index = opensearch.new_index()
    opensearch.call("PUT", f"/{index}")
    busy = "index.blocks.read_only_allow_delete"
    opensearch.call("PUT", f"/{index}/_settings", {busy: True})
    with opened(opensearch, IDS, index=index) as write, pytest.raises(Transient) as raised:
        write([{"a": "1"}])
    assert raised.value.code == "http-429" and "flood-stage" in raised.value.message
    retry = {"attempts": 500, "backoff": "20ms", "max_backoff": "20ms"}
    with opened(opensearch, IDS, index=index, retry=retry) as write:
        writing = ThreadPoolExecutor(1).submit(write, [{"a": "2"}, {"a": "3"}])
        while write.writer.commit()["requests"] < 2:
            assert not writing.done()
        opensearch.call("PUT", f"/{index}/_settings", {busy: None})
        assert writing.result(60) == []
    assert sorted(row["a"] for row in contents(opensearch, index).values()) == ["2", "3"]
    opensearch.call("PUT", f"/{index}/_settings", {"index.blocks.write": True})
    with opened(opensearch, IDS, index=index) as write, pytest.raises(Permanent) as denied:
        write([{"a": "4"}])
    assert denied.value.code == "http-403"


def test_size_of_requests(opensearch: Opensearch) -> None:
    """A document that is larger than the server accepts is a dead letter; others are stored."""
    index, chosen = opensearch.new_index(), random.Random(3)
    sizes = [400_000] * 14 + [9_000_000, 10]
    rows = [{"a": str(n), "b": chosen.randbytes(size // 2).hex()} for n, size in enumerate(sizes)]
    opensearch.call("PUT", f"/{index}", {"mappings": {"enabled": False}})
    with opened(opensearch, IDS, index=index, key="{a}", max_request_size="1MB") as write:
        assert write(rows[:4]) == []
        assert write.writer.commit()["requests"] == 2
    options = {"index": index, "key": "{a}", "compression": "none", "max_request_size": "16MB"}
    with opened(opensearch, IDS, **options) as write:
        failures = write(rows[4:])
    assert {n: code for n, (code, _) in messages(failures).items()} == {10: "too-large"}
    found = contents(opensearch, index)
    assert {id_: row["b"] for id_, row in found.items()} == {
        row["a"]: row["b"] for row in rows if row["a"] != "14"
    }


@pytest.mark.parametrize(
    ("auth", "header"),
    [
        (
            {"username": USER, "password": PASSWORD},
            "Basic bWFkZS11cC11c2VyOm1hZGUtdXAtcGFzc3dvcmQ=",
        ),
        ({"api_key": "made-up-key"}, "ApiKey made-up-key"),
        ({"token": "made-up-token"}, "Bearer made-up-token"),
    ],
)
def test_credentials(web_server: Web, auth: dict[str, str], header: str) -> None:
    sink_of(f"{web_server.url}/kept", index="i", auth=auth).check()
    assert web_server.requests("_bulk")[-1]["headers"]["authorization"] == header
    sink = sink_of(f"{web_server.url}/strict", index="i", auth=auth)
    if "username" in auth:
        sink.check()
        return
    with pytest.raises(Permanent) as raised:
        sink.check()
    assert (raised.value.code, raised.value.hint) == (
        "http-401", "Check the credentials of the option auth.",
    )  # fmt: skip
    assert "made-up" not in f"{raised.value.message}{sink.config!r}{sink.config.model_dump()}"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"index": "i-{missing}"}, 'index: unknown column "missing"'),
        ({"key": "a"}, 'expected a template, found the name of the column "a"'),
        ({"key": "{tags}"}, 'key: column "tags" has the type ARRAY<STRING>'),
        ({"key": "{raw}"}, 'key: column "raw" has the type BINARY'),
        ({"key": "x"}, "rows that differ only in a would overwrite each other"),
        ({"key": "{a}-{b}"}, 'column "b" is not in the primary key: after a change of it the old '
                             "document would remain"),
        ({"index": "i-{b}"}, 'column "b" is not in the primary key: after a change of it the old '
                             "document would remain"),
        ({"action": "create"}, "mode: upsert requires action: index"),
    ],
)  # fmt: skip
def test_options_that_do_not_fit_the_columns(options: dict[str, Any], expected: str) -> None:
    columns = pa.schema(
        [*IDS, ("tags", pa.list_(pa.string())), ("raw", pa.binary())]
    )  # fmt: skip
    sink = sink_of("http://localhost:1", ("a",), **{"index": "i", **options})
    with pytest.raises(PenstockError) as raised:
        sink.check_schema(columns)
    assert expected in str(raised.value)


def test_columns_and_formats_that_are_no_documents() -> None:
    sink = sink_of("http://localhost:1", index="i")
    with pytest.raises(PenstockError, match='column "_id" has the name of metadata') as raised:
        sink.check_schema(pa.schema([("_id", pa.string())]))
    assert raised.value.code == "reserved-column"
    sink = ElasticsearchSink(sink.config)
    sink.format = None
    with pytest.raises(PenstockError, match="expected format: json") as raised:
        sink.check_schema(IDS)
    assert raised.value.code == "wrong-format"


@pytest.mark.parametrize("name", ["opensearch", "elasticsearch"])
def test_interrupted_connections(name: str, opensearch: Opensearch, request: Any) -> None:
    """Elasticsearch has other requests for points in time."""
    sink_type, source_type = TYPES[name]
    index, secret = opensearch.new_index(), "made-up-password"
    opensearch.call("PUT", f"/{index}", {"mappings": {"dynamic": False}})
    with Gate(request.getfixturevalue(name).port) as gate:
        check = Interruptions(gate, secret)
        options = check.through(
            {"url": opensearch.url}, index=index, timeout="1s", retry={"attempts": 1},
            auth={"username": "made-up-user", "password": secret},
        )  # fmt: skip

        def write_batch(number: int) -> None:
            rows = [{"a": f"{number}-{place}", "b": "text " * 20} for place in range(20)]
            with opened(opensearch, IDS, sink_type, **options, key="{a}") as write:
                assert write(rows) == []

        def read_rows() -> list[str]:
            source = source_type(source_type.config_type.model_validate(options))
            with closing(source):
                start = source.initial_offset()
                return sorted(
                    str(payload)
                    for part in source.partitions(start, source.latest_offset(start))
                    for batch in source.read(part, Read())
                    for payload in batch.column(0).to_pylist()
                )

        check.check_writes(write_batch)
        opensearch.call("POST", f"/{index}/_refresh")
        assert len(contents(opensearch, index)) == check.batches * 20
        assert len(check.check_reads(read_rows, 3, 1)) == check.batches * 20
