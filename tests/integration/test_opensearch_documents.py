"""Documents that are written to OpenSearch: types, IDs, rejected rows, and indexes."""

from __future__ import annotations

import datetime as dt
import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from opensearch_writing import IDS, contents, messages, opened, sink_of

from crossing import by_hand, hostile, systems
from penstock.core.errors import PlanError
from penstock.sdk import BatchId
from servers.opensearch import Opensearch

NAN, INFINITY = float("nan"), float("inf")
REJECTED = {".", "..", "a.b"}
"""Names of fields that OpenSearch does not accept, or that are objects beside the text `a`."""


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
    texts = ["".join(chosen.choices("a-%:2D", k=number % 4)) for number in range(16)]
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
    for start in range(0, len(rows), 100):
        batch = pa.RecordBatch.from_pylist(rows[start : start + 100], schema=columns)
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


def test_updates(opensearch: Opensearch) -> None:
    """An update sets the fields of the row, keeps all others, and adds a missing document."""
    index = opensearch.new_index()
    with opened(opensearch, IDS, index=index, key="{b}") as write:
        assert write([{"a": "1", "b": "x"}]) == []
    columns = pa.schema([("b", pa.string()), ("c", pa.struct([("n", pa.int64())]))])
    rows = [{"b": "x", "c": {"n": 2}}, {"b": "y", "c": {"n": 3}}, {"b": "x"}]
    options = {"index": index, "key": "{b}", "action": "update"}
    with opened(opensearch, columns, **options) as write:
        for _ in range(2):
            assert write(rows) == []
    expected = {"x": {"a": "1", "b": "x", "c": {"n": 2}}, "y": {"b": "y", "c": {"n": 3}}}
    assert contents(opensearch, index) == expected


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


def test_rows_of_every_type(opensearch: Opensearch, tmp_path: Path) -> None:
    assert by_hand.check(systems.opensearch(opensearch), tmp_path) == []


def test_hostile_names_and_texts(opensearch: Opensearch) -> None:
    """A field whose name OpenSearch does not accept is a dead letter. IDs have any text."""
    index = opensearch.new_index()
    stored: dict[str, dict[str, str]] = {}
    for number, name in enumerate(name for name in hostile.NAMES if "\0" not in name):
        columns = pa.schema([("a", pa.string()), (name, pa.string())])
        rows: list[dict[str, Any]] = [
            {"a": f"{number}", name: "x"},
            {"a": f"{number}b", name: None},
        ]
        with opened(opensearch, columns, index=index, key="n{a}") as write:
            failures = write(rows)
        rejected = {failure.index for failure in failures}
        for place in {0, 1} - rejected:
            stored[f"n{rows[place]['a']}"] = {k: v for k, v in rows[place].items() if v is not None}
        assert bool(rejected) == (name in REJECTED), (name, messages(failures))
    with opened(opensearch, IDS, index=index, key="{a}") as write:
        assert write([{"a": text, "b": text} for text in hostile.TEXTS]) == []
    stored |= {text: {"a": text, "b": text} for text in hostile.TEXTS}
    assert contents(opensearch, index) == stored
    with pytest.raises(PlanError, match=r"a\\0b"):
        sink_of(opensearch.url, index=index).check_schema(pa.schema([("a\0b", pa.string())]))
