"""Options of Elasticsearch and OpenSearch, names of indexes, IDs of documents, and orders."""

from __future__ import annotations

import itertools

import pyarrow as pa
import pytest

from option_errors import Case, assert_option_error
from penstock.connectors.http.opensearch.config import DocumentSinkConfig, DocumentSourceConfig
from penstock.connectors.http.opensearch.cursor import CursorField, DocumentOrder
from penstock.connectors.http.opensearch.documents import Document, rounds
from penstock.connectors.http.opensearch.errors import reason_of
from penstock.connectors.http.opensearch.names import index_error, key_parts, render_ids
from penstock.sdk import Permanent
from penstock.sdk.columns.template import Template

URL = {"url": "http://h:9200"}
NO_NAME = "cannot be the name of an index: expected lower case"


@pytest.mark.parametrize(
    "case",
    [
        ({"url": "opensearch://h"}, "url", "expected http://HOST"),
        ({"index": "Orders"}, "index", f"'Orders' {NO_NAME}"),
        ({"index": "a,b"}, "index", f"'a,b' {NO_NAME}"),
        ({"index": ""}, "index", "the name of the index is null or empty"),
        ({"key": "{a}{b}"}, "key", "expected a text between two columns, as in"),
        ({"action": "replace"}, "action", "'index', 'create' or 'update'"),
        ({"auth": {"username": "made-up"}}, "auth", "expected username and password, or api_key"),
        ({"auth": {"api_key": "a", "token": "b"}}, "auth", "expected username and password, or"),
    ],
)  # fmt: skip
def test_invalid_options_of_sinks(case: Case) -> None:
    assert_option_error(DocumentSinkConfig, {**URL, "index": "i"}, case)


@pytest.mark.parametrize(
    "case",
    [
        ({"index": ""}, "index", "at least 1 character"),
        ({"query": "country:CH"}, "query", "Input should be a valid dictionary"),
        ({"watch": True}, "", "watch requires cursor_columns"),
        ({"min_age": "1s"}, "", "min_age requires cursor_columns"),
        ({"max_records": 5}, "", "max_records requires cursor_columns"),
    ],
)
def test_invalid_options_of_sources(case: Case) -> None:
    assert_option_error(DocumentSourceConfig, {**URL, "index": "i"}, case)


@pytest.mark.parametrize("name", ["a", ".hidden", "logs-2024.01", "ü" * 127, "a_+b"])
def test_names_of_indexes(name: str) -> None:
    assert index_error(name) is None


@pytest.mark.parametrize(
    "name", ["_a", "-a", "+a", "a*", "a b", "a#", "a:b", "..", "ü" * 128, "a\n"]
)
def test_wrong_names_of_indexes(name: str) -> None:
    assert NO_NAME in str(index_error(name))


@pytest.mark.parametrize("template", ["{a}-{b}", "{a}%{b}", "x{a}é/{b}y", None])
def test_different_values_have_different_ids(template: str | None) -> None:
    parts = Template(template).parts if template else key_parts(["a", "b"])
    texts = ["".join(each) for size in range(4) for each in itertools.product("-%:é2", repeat=size)]
    pairs = [(a, b) for a in texts for b in texts[:40]]
    rows = pa.RecordBatch.from_pydict({"a": [a for a, _ in pairs], "b": [b for _, b in pairs]})
    assert len({*render_ids(parts, rows)}) == len(pairs)


def test_ids() -> None:
    rows = pa.RecordBatch.from_pydict({"a": ["x-%1", None, ""], "n": [1, 2, 3]})
    assert render_ids(Template("{a}").parts, rows) == ["x-%1", None, ""]
    assert render_ids(Template("k{a}-{n}").parts, rows) == ["kx%2D%251-1", None, "k-3"]
    assert render_ids(Template("all").parts, rows) == ["all"] * 3
    assert render_ids(key_parts(["n", "a"]), rows) == ["1:x-%251", None, "3:"]


def test_rounds_keep_the_order_of_an_id() -> None:
    ids = ["a", "b", "a", None, "a", None, "b"]
    documents = [Document(row, "i", id_, b"{}") for row, id_ in enumerate(ids)]
    documents.append(Document(7, "other", "a", b"{}"))
    found = [[document.row for document in each] for each in rounds(documents)]
    assert found == [[0, 1, 3, 5, 7], [2, 6], [4]]


def test_conditions_of_several_fields() -> None:
    order = DocumentOrder((CursorField("a", "long"), CursorField("b", "keyword")))

    def holds(condition: object, row: tuple[int, str]) -> bool:
        assert isinstance(condition, dict)
        ((kind, value),) = condition.items()
        if kind == "range":
            ((name, bounds),) = value.items()
            ((operator, bound),) = bounds.items()
            left = row[0] if name == "a" else row[1]
            return bool({"gt": left > bound, "gte": left >= bound, "lt": left < bound,
                         "lte": left <= bound}[operator])  # fmt: skip
        if "filter" in value:
            return all(holds(each, row) for each in value["filter"])
        assert value["minimum_should_match"] == 1
        return any(holds(each, row) for each in value["should"])

    rows = [(a, b) for a in (1, 2, 3) for b in "xyz"]
    for last in rows:
        assert [row for row in rows if holds(order.after(last), row)] == [
            r for r in rows if r > last
        ]
        assert [row for row in rows if holds(order.until(last), row)] == [
            r for r in rows if r <= last
        ]


@pytest.mark.parametrize(
    ("type_", "value", "time"),
    [
        ("date", 0, "1970-01-01T00:00:00.000Z"),
        ("date", -1, "1969-12-31T23:59:59.999Z"),
        ("date", -62135596800000, "0001-01-01T00:00:00.000Z"),
        ("date_nanos", 1704067200123456789, "2024-01-01T00:00:00.123456789Z"),
        ("date_nanos", 5, "1970-01-01T00:00:00.000000005Z"),
    ],
)
def test_times_of_a_cursor(type_: str, value: int, time: str) -> None:
    condition = CursorField("at", type_).compare("gt", value)
    expected = {"gt": time, "format": "strict_date_optional_time"}
    assert condition == {"range": {"at": expected}}


def test_types_of_a_cursor() -> None:
    assert CursorField.of("a", ["date", "date_nanos", "unmapped"]) == ("a", "date_nanos")
    with pytest.raises(Permanent, match="of the type long and text") as raised:
        CursorField.of("a", ["text", "long"])
    assert '"a.keyword"' in str(raised.value.hint)
    with pytest.raises(Permanent, match="not between the years 1 and 9999"):
        CursorField("a", "date").compare("gt", 10**15)


def test_reasons() -> None:
    cause = {"type": "t", "reason": "inner", "caused_by": {"type": "no_reason", "reason": None}}
    assert reason_of({"reason": "outer", "caused_by": cause}) == "outer; inner; no_reason"
    assert reason_of({"root_cause": [{"reason": "root"}], "reason": "all failed"}) == "root"
    assert reason_of("text") == "text"
