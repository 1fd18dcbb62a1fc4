"""Documents that are read from OpenSearch: orders, batches, points in time, and errors."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from pipelines import Workspace

from penstock.connectors.http.opensearch import OpensearchSource, search
from penstock.core.errors import Permanent, Transient
from penstock.sdk import Offset, Read
from servers.opensearch import Opensearch

START = datetime(1969, 12, 31, 23, 59, 59, 999000, tzinfo=UTC)


def source_of(server: Opensearch, index: str, **options: Any) -> OpensearchSource:
    given = {"url": server.url, "index": index, "retry": {"attempts": 1}, **options}
    return OpensearchSource(OpensearchSource.config_type.model_validate(given))  # type: ignore[arg-type]


def read(source: OpensearchSource, start: Offset, end: Offset) -> Iterator[tuple[str, Any]]:
    """Yields the ID and the content of each document of a range."""
    for part in source.partitions(start, end):
        for rows in source.read(part, Read(metadata=("id",))):
            for row in rows.to_pylist():
                yield row["id"], json.loads(row["payload"])


def open_searches(server: Opensearch) -> set[str]:
    """Returns the points in time, among which are those of other tests with lost connections."""
    return {each["pit_id"] for each in server.call("GET", "/_search/point_in_time/_all")["pits"]}


def read_batches(server: Opensearch, index: str, **options: Any) -> list[list[tuple[str, Any]]]:
    """Reads each batch with a source of its own, which continues at the stored offset."""
    offset = source_of(server, index, **options).initial_offset()
    batches = []
    while True:
        source = source_of(server, index, **options)
        end = source.latest_offset(offset)
        if end == offset:
            source.close()
            return batches
        end = json.loads(json.dumps(source.limit_batch(offset, end)))
        batches.append([*read(source, offset, end)])
        source.close()
        offset = end


def fill(
    server: Opensearch, index: str, fields: Any, documents: Sequence[Any], shards: int = 3
) -> None:
    body = {"mappings": {"properties": fields}, "settings": {"number_of_shards": shards}}
    server.call("PUT", f"/{index}", body)
    if documents:
        server.put(index, [json.dumps(document).encode() for document in documents])


def _millis(number: int) -> str:
    return (START + timedelta(milliseconds=number)).isoformat(timespec="milliseconds")


ORDERS: dict[str, Any] = {
    "date": _millis,
    "date_nanos": lambda n: f"1970-01-01T00:00:00.123456{n:03d}Z",
    "keyword": lambda n: f"é\U0001f600{n:04d}",
    "double": lambda n: n / 7 - 20,
    "float": lambda n: n / 7 - 20,
    "long": lambda n: 2**63 - 1 - 400 + n,
    "unsigned_long": lambda n: 2**64 - 1 - 400 + n,
}


@pytest.fixture(scope="module")
def ordered(opensearch: Opensearch) -> str:
    """Returns an index whose documents have two values of `n` for each value of the others."""
    index = opensearch.new_index()
    fields = {kind: {"type": kind} for kind in ORDERS}
    documents = [
        {"n": n % 3 // 2, "place": n, **{kind: value(n // 3) for kind, value in ORDERS.items()}}
        for n in range(150)
    ]
    random.Random(1).shuffle(documents)
    # More shards than are searched at once: the later ones know results of the earlier ones.
    fill(opensearch, index, {**fields, "n": {"type": "byte"}}, documents, shards=8)
    return index


@pytest.mark.parametrize("kind", ORDERS)
def test_batches_and_pages(
    opensearch: Opensearch, ordered: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All documents are read once, in order; those with the same values are in one batch."""
    monkeypatch.setattr(search, "_PAGE", 7)
    monkeypatch.setattr(search, "_MAX_PAGE", 11)
    before = open_searches(opensearch)
    batches = read_batches(opensearch, ordered, cursor_columns=[kind, "n"], max_records=25)
    found = [[(each["place"] // 3, each["n"]) for _, each in batch] for batch in batches]
    places = [place for batch in found for place in batch]
    assert places == sorted((n // 3, n % 3 // 2) for n in range(150))
    assert len(batches) > 2 and all(25 <= len(batch) <= 40 for batch in batches[:-1])
    assert all(before[-1] < after[0] for before, after in pairwise(found))
    ids = {id_ for batch in batches for id_, _ in batch}
    assert len(ids) == 150
    assert open_searches(opensearch) <= before


def test_documents_without_order(opensearch: Opensearch, monkeypatch: pytest.MonkeyPatch) -> None:
    """Indexes of a pattern have documents with the same ID, and the query selects documents."""
    monkeypatch.setattr(search, "_PAGE", 3)
    name = opensearch.new_index()
    for index in (f"{name}-1", f"{name}-2"):
        opensearch.call("PUT", f"/{index}")
        lines = [b'{"index":{"_index":"%b","_id":"%d"}}\n{"n":%d}\n' % (index.encode(), n, n)
                 for n in range(10)]  # fmt: skip
        opensearch.call("POST", "/_bulk?refresh=true", b"".join(lines))
    (batch,) = read_batches(opensearch, f"{name}-*", query={"range": {"n": {"gte": 4}}})
    assert sorted(id_ for id_, _ in batch) == sorted([str(n) for n in range(4, 10)] * 2)
    assert read_batches(opensearch, f"{name}-missing-*", cursor_columns=["n"]) == []
    assert read_batches(opensearch, f"{name}-missing-*") == []


def test_large_documents(opensearch: Opensearch, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page that is too large is read in smaller parts."""
    monkeypatch.setattr("penstock.connectors.http.opensearch.api.MAX_RESPONSE", 300_000)
    index = opensearch.new_index()
    documents = [{"n": n, "text": "x" * 60_000} for n in range(20)]
    fill(opensearch, index, {"n": {"type": "long"}, "text": {"enabled": False, "type": "object"}},
         documents)  # fmt: skip
    (batch,) = read_batches(opensearch, index, cursor_columns=["n"])
    assert [document for _, document in batch] == documents
    source = source_of(opensearch, index)
    assert 1 <= len(source.sample(100)) < 5
    source.close()
    opensearch.put(index, [json.dumps({"n": 20, "text": "x" * 400_000}).encode()])
    with pytest.raises(Permanent, match="more than 300,000 bytes") as raised:
        read_batches(opensearch, index, cursor_columns=["n"])
    assert raised.value.hint == "Exclude the document by the option query."


def test_pages_of_an_index_with_a_limit(opensearch: Opensearch) -> None:
    """A page has no more documents than `max_result_window`, nor does a search for a limit."""
    index = opensearch.new_index()
    fill(opensearch, index, {"n": {"type": "long"}}, [{"n": n} for n in range(40)])
    opensearch.call("PUT", f"/{index}/_settings", {"index.max_result_window": 10})
    batches = read_batches(opensearch, index, cursor_columns=["n"], max_records=25)
    assert [[each["n"] for _, each in batch] for batch in batches] == [
        [*range(25)], [*range(25, 40)],
    ]  # fmt: skip


def test_watch(opensearch: Opensearch) -> None:
    """New documents are read at the age of `min_age`, also those of an index that was empty."""
    index = opensearch.new_index()
    fill(opensearch, index, {"at": {"type": "date"}}, [])
    options = {"cursor_columns": ["at"], "watch": True, "interval": "1ms"}
    source = source_of(opensearch, index, **options, min_age="1h")
    start = source.initial_offset()
    assert not source.is_bounded() and source.latest_offset(start) == start
    now = datetime.now(UTC)
    times = [now - timedelta(minutes=minutes) for minutes in (61, 30, 90)]
    opensearch.put(index, [json.dumps({"at": time.isoformat()}).encode() for time in times])
    end = source.latest_offset(start)
    assert [each["at"] for _, each in read(source, start, end)] == [
        times[2].isoformat(), times[0].isoformat(),
    ]  # fmt: skip
    assert source.lag(start, end) == 2 and source.latest_offset(end) == end
    source.close()
    eager = source_of(opensearch, index, **options, min_age="0s")
    assert len([*read(eager, end, eager.latest_offset(end))]) == 1
    eager.close()
    with pytest.raises(ValueError, match="watch requires cursor_columns"):
        source_of(opensearch, index, watch=True)


def test_point_in_time_that_is_gone(
    opensearch: Opensearch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch whose point in time is lost fails, and can be read again from a new one."""
    monkeypatch.setattr(search, "_PAGE", 2)
    index = opensearch.new_index()
    fill(opensearch, index, {"n": {"type": "long"}}, [{"n": n} for n in range(6)])
    source = source_of(opensearch, index, cursor_columns=["n"])
    start = source.initial_offset()
    end = source.latest_offset(start)
    (part,) = source.partitions(start, end)
    pages = source.read(part, Read())
    next(pages)
    opensearch.put(index, [b'{"n": 2}'])
    assert b'{"n": 2}' not in next(pages).column("payload").to_pylist()[1:]
    opensearch.call("DELETE", "/_search/point_in_time/_all")
    with pytest.raises(Transient, match="point in time of the search has expired") as raised:
        list(pages)
    assert raised.value.code == "http-404"
    assert [each["n"] for _, each in read(source, start, end)] == [0, 1, 2, 2, 3, 4, 5]
    source.close()


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        ({"index": "missing"}, "unknown-index", 'there is no index "missing"'),
        ({"query": {"terms": {"n": 1}}}, "http-400", "terms"),
        ({"cursor_columns": ["text"]}, "cursor-type", 'the field "text" of the type text'),
        ({"cursor_columns": ["flag"]}, "cursor-type", 'the field "flag" of the type boolean'),
        ({"cursor_columns": ["nowhere"]}, "null-cursor", "without a value in one of the fields"),
        ({"cursor_columns": ["some", "n"]}, "null-cursor", "in one of the fields some, n"),
    ],
)
def test_errors(opensearch: Opensearch, options: dict[str, Any], code: str, message: str) -> None:
    index = opensearch.new_index()
    fields = {"n": {"type": "long"}, "some": {"type": "long"}, "text": {"type": "text"},
              "flag": {"type": "boolean"}}  # fmt: skip
    document = {"n": 1, "text": "x", "flag": True}
    fill(opensearch, index, fields, [document, {**document, "some": 1}])
    source = source_of(opensearch, **{"index": index, **options})
    start = source.initial_offset()
    with pytest.raises(Permanent) as raised:
        [*read(source, start, source.latest_offset(start))]
    source.close()
    assert raised.value.code == code and message in raised.value.message
    assert raised.value.hint
    if code in ("unknown-index", "http-400"):
        with pytest.raises(Permanent) as checked:
            source.check()
        assert checked.value.code == code


@pytest.mark.spark
def test_a_pipeline(workspace: Workspace, opensearch: Opensearch) -> None:
    """Documents are read with metadata, and written under their keys; bad ones are dead letters."""
    index, target = opensearch.new_index(), opensearch.new_index()
    documents = [
        {"n": n, "name": f"n{n % 4}", "total": "12345678901234567890.10", "at": _millis(n)}
        for n in range(20)
    ]
    fields = {"n": {"type": "long"}, "at": {"type": "keyword"}}
    fill(opensearch, index, fields, [*documents, {"n": 20, "at": "never"}])
    text = f"""\
sources:
  orders:
    type: opensearch
    url: {opensearch.url}
    index: {index}
    query: {{range: {{n: {{gte: 4}}}}}}
    cursor_columns: [n]
    max_records: 8
    schema: n BIGINT, name STRING, total DECIMAL(22, 2), at TIMESTAMP
    metadata: {{document: id, origin_index: index}}
transforms:
  named:
    type: sql
    from: orders
    sql: SELECT name, n, total, at, origin_index, document FROM orders
sinks:
  copies:
    type: opensearch
    from: named
    mode: upsert
    primary_key: [name]
    url: {opensearch.url}
    index: {target}
"""
    workspace.run(text)
    workspace.run(text, fresh=True)
    found = {id_: json.loads(text) for id_, text in opensearch.documents(target).items()}
    ids = {json.loads(text)["n"]: id_ for id_, text in opensearch.documents(index).items()}
    assert found == {
        f"n{n % 4}": {
            "name": f"n{n % 4}", "n": n, "total": 12345678901234567890.10,
            "at": _millis(n).replace("+00:00", "Z"),
            "origin_index": index, "document": ids[n],
        }
        for n in range(16, 20)
    }  # fmt: skip
    (letter,) = workspace.dead_letters()[-1:]
    assert letter["origin"] == f"{index}/{ids[20]}" and b"never" in letter["payload"]
