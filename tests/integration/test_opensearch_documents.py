"""Documents that are written to OpenSearch: types, IDs, rejected rows, indexes, and retries."""

from __future__ import annotations

import datetime as dt
import json
import random
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from penstock.connectors.http.opensearch import ElasticsearchSink, OpensearchSink
from penstock.core.errors import PenstockError, Permanent, Transient
from penstock.formats.json import Json, JsonConfig
from penstock.sdk import BatchId, Failure
from servers.opensearch import Opensearch
from servers.web import PASSWORD, USER, Web

IDS = pa.schema([("a", pa.string()), ("b", pa.string())])
NAN, INFINITY = float("nan"), float("inf")


def sink_of(url: str, primary_key: Sequence[str] = (), **options: Any) -> OpensearchSink:
    """Returns a sink as the planner makes it. With a primary key it has the mode `upsert`."""
    format_ = JsonConfig.model_validate(options.pop("format", {}))
    given = {"url": url, "retry": {"attempts": 2, "backoff": "10ms"}, **options}
    sink = OpensearchSink(OpensearchSink.config_type.model_validate(given))  # type: ignore[arg-type]
    sink.format = Json(format_)
    if primary_key:
        sink.mode, sink.primary_key = "upsert", tuple(primary_key)
    return sink


@contextmanager
def opened(server: Opensearch, columns: pa.Schema, **options: Any) -> Iterator[Any]:
    """Yields a function that writes rows and returns the failures. Its `writer` is the writer."""
    sink = sink_of(server.url, **options)
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


def test_types(opensearch: Opensearch) -> None:
    """Values are exact, the fields of a new index have the types of the columns, and NaN is bad."""
    columns = pa.schema(
        [
            ("id", pa.int64()), ("u", pa.uint64()), ("d", pa.decimal128(38, 10)),
            ("whole", pa.float64()), ("half", pa.float32()), ("ok", pa.bool_()),
            ("at", pa.timestamp("us", "UTC")), ("day", pa.date32()), ("raw", pa.binary()),
            ("text", pa.string()), ("tags", pa.list_(pa.float64())),
            ("place", pa.struct([("city", pa.string()), ("size", pa.float64())])),
            ("kinds", pa.map_(pa.string(), pa.float64())),
        ]
    )  # fmt: skip
    at = dt.datetime(1, 1, 1, 0, 0, 0, 123456, dt.UTC)
    good: dict[str, Any] = {
        "id": 2**63 - 1, "u": 2**64 - 1, "d": Decimal("1234567890123456789012345678.0000000001"),
        "whole": 1.7976931348623157e308, "half": 0.5, "ok": True, "at": at, "day": at.date(),
        "raw": b"\0\xff", "text": "2024-01-01", "tags": [0.1, None],
        "place": {"city": "Bern", "size": 1e300}, "kinds": [("x", 1e300)],
    }  # fmt: skip
    bad = [
        {"id": 1, "whole": NAN}, {"id": 2, "half": -INFINITY}, {"id": 3, "tags": [1.0, INFINITY]},
        {"id": 4, "place": {"size": NAN}}, {"id": 5, "kinds": [("x", 1.0), ("y", NAN)]},
    ]  # fmt: skip
    index = opensearch.new_index()
    with opened(opensearch, columns, key="{id}", index=index) as write:
        failures = write([bad[0], good, *bad[1:], {"id": 6, "text": "no date"}])
    assert messages(failures) == {
        row: ("unencodable", f'column "{name}" has NaN or an infinity, which is no number in JSON')
        for row, name in ((0, "whole"), (2, "half"), (3, "tags"), (4, "place"), (5, "kinds"))
    }
    found = opensearch.documents(index)
    assert found.keys() == {str(2**63 - 1), "6"}
    text = found[str(2**63 - 1)]
    assert b'"d":1234567890123456789012345678.0000000001' in text
    assert b'"u":18446744073709551615' in text and b'"raw":"AP8="' in text
    assert b'"at":"0001-01-01T00:00:00.123456Z"' in text
    (field,) = opensearch.call("GET", f"/{index}/_mapping").values()
    types = {name: each.get("type") for name, each in field["mappings"]["properties"].items()}
    assert types == {
        "id": "long", "u": "unsigned_long", "d": "double", "whole": "double", "half": "float",
        "ok": "boolean", "at": "date", "day": "date", "raw": "binary", "text": "text",
        "tags": "double", "place": None, "kinds": None,
    }  # fmt: skip
    kinds = field["mappings"]["properties"]["kinds"]["properties"]
    assert kinds == {"x": {"type": "double"}}


def test_forms_of_times_and_decimals(opensearch: Opensearch) -> None:
    columns = pa.schema([("at", pa.timestamp("us", "UTC")), ("d", pa.decimal128(38, 2))])
    row = {"at": dt.datetime(2024, 1, 1, tzinfo=dt.UTC), "d": Decimal("12345678901234567890.10")}
    for times, type_, value in (("millis", "date", 1704067200000),
                                ("micros", "long", 1704067200000000)):  # fmt: skip
        index = opensearch.new_index()
        form = {"timestamps": times, "decimals": "string"}
        with opened(opensearch, columns, index=index, format=form) as write:
            assert write([row]) == []
        (found,) = contents(opensearch, index).values()
        assert found == {"at": value, "d": "12345678901234567890.10"}
        (field,) = opensearch.call("GET", f"/{index}/_mapping").values()
        assert {n: e["type"] for n, e in field["mappings"]["properties"].items()} == {
            "at": type_, "d": "keyword",
        }  # fmt: skip


@pytest.mark.parametrize("key", ["{a}-{b}", None])
def test_different_keys_have_different_ids(opensearch: Opensearch, key: str | None) -> None:
    """Rows of one key replace each other in order, also in one call; a delete removes the last."""
    chosen, index = random.Random(1), opensearch.new_index()
    texts = ["".join(chosen.choices("a-%:2D", k=number % 4)) for number in range(24)]
    columns = pa.schema([*IDS, ("n", pa.int64())])
    rows = [{"a": a, "b": b, "n": 0} for a in texts for b in texts]
    rows = [{**row, "n": number} for number, row in enumerate(rows)]
    last = {(row["a"], row["b"]): row["n"] for row in rows}
    options: dict[str, Any] = {"index": index, "key": key} if key else {"index": index}
    sink = sink_of(opensearch.url, ("a", "b"), **options)
    sink.check_schema(columns)
    client = sink.open()
    writer = sink.writer(client, BatchId("q", 0), 0, columns)
    assert sink.format is not None
    for start in range(0, len(rows), 200):
        batch = pa.RecordBatch.from_pylist(rows[start : start + 200], schema=columns)
        assert writer.write(batch, sink.format.encode(batch).payloads) == []
    found = [*contents(opensearch, index).values()]
    assert {(row["a"], row["b"]): row["n"] for row in found} == last
    assert len(found) == len(last)
    gone = [*[*last][:30], ("missing", "")]
    batch = pa.RecordBatch.from_pylist([{"a": a, "b": b} for a, b in gone], schema=columns)
    deletes = pa.array(["d"] * len(gone))
    assert writer.write(batch, pa.nulls(len(gone), pa.binary()), deletes) == []
    client.close()
    found = [*contents(opensearch, index).values()]
    assert {(row["a"], row["b"]) for row in found} == {*last} - {*gone}


def test_rows_without_an_id(opensearch: Opensearch) -> None:
    index = opensearch.new_index()
    with opened(opensearch, IDS, index=index, key="{a}") as write:
        failures = write([{"a": None}, {"a": ""}, {"a": "x" * 513}, {"a": "ü%-"}])
    empty = ("invalid-key", "the ID of the document is null or empty")
    long = ("invalid-key", "the ID of the document has 513 bytes, more than 512")
    assert messages(failures) == {0: empty, 1: empty, 2: long}
    assert [*contents(opensearch, index)] == ["ü%-"]


def test_rejected_documents(opensearch: Opensearch) -> None:
    """A rejected document is one dead letter, and a conflict is one if the content differs."""
    index = opensearch.new_index()
    fields = {"properties": {"a": {"type": "integer"}}}
    opensearch.call("PUT", f"/{index}", {"mappings": fields})
    rows = [{"a": str(n) if n % 40 else f"x{n}", "b": f"k{n}"} for n in range(100)]
    with opened(opensearch, IDS, index=index, key="{b}", action="create") as write:
        first = messages(write(rows))
        assert [*first] == [0, 40, 80]
        assert first[40][0] == "http-400"
        assert "failed to parse field [a] of type [integer]" in first[40][1]
        assert "x40" in first[40][1]
        again = messages(write([*rows[1:4], {"a": "9", "b": "k4"}, {"a": "1", "b": "new"}]))
    assert [*again] == [3] and again[3][0] == "http-409"
    assert "document already exists" in again[3][1]
    found = contents(opensearch, index)
    assert len(found) == 98 and found["k4"] == {"a": "4", "b": "k4"}


def test_indexes_of_rows(opensearch: Opensearch) -> None:
    name = opensearch.new_index()
    with opened(opensearch, IDS, index=f"{name}-{{a}}", key="{b}") as write:
        failures = write(
            [{"a": "x", "b": "1"}, {"a": "Y", "b": "1"}, {"a": None, "b": "1"},
             {"a": "z", "b": "1"}, {"a": "a,b", "b": "1"}, {"a": "x", "b": "2"}]
        )  # fmt: skip
        assert write([{"a": "gone", "b": "1"}], ["d"]) == []
    assert {index: code for index, (code, _) in messages(failures).items()} == dict.fromkeys(
        (1, 2, 4), "invalid-index"
    )
    assert contents(opensearch, f"{name}-x") == {
        "1": {"a": "x", "b": "1"},
        "2": {"a": "x", "b": "2"},
    }
    assert len(contents(opensearch, f"{name}-*")) == 2
    with opened(opensearch, IDS, index=f"{name}-{{a}}", create=False) as write:
        failures = write([{"a": "x", "b": "3"}, {"a": "missing", "b": "4"}])
    assert messages(failures) == {1: ("unknown-index", f'there is no index "{name}-missing"')}


def test_missing_index(opensearch: Opensearch) -> None:
    """An index that nobody may create is an error by its code, before and during a run."""
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


def test_data_stream(opensearch: Opensearch) -> None:
    """An index template decides on the fields, and on a data stream."""
    name = opensearch.new_index()
    fields = {"properties": {"@timestamp": {"type": "date"}, "a": {"type": "keyword"}}}
    template = {"index_patterns": [f"{name}*"], "data_stream": {}, "template": {"mappings": fields}}
    opensearch.call("PUT", f"/_index_template/{name}", template)
    columns = pa.schema([("@timestamp", pa.timestamp("us", "UTC")), ("a", pa.string())])
    row = {"@timestamp": dt.datetime(2024, 1, 1, tzinfo=dt.UTC), "a": "x"}
    with opened(opensearch, columns, index=name, action="create") as write:
        assert write([row]) == []
    assert opensearch.call("GET", f"/_data_stream/{name}")["data_streams"][0]["name"] == name
    assert [row["a"] for row in contents(opensearch, name).values()] == ["x"]


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
