"""Texts from columns in requests and messages: URLs, headers, topics and subjects."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from penstock.connectors.http import HttpSink
from penstock.connectors.http.client import Request, Response
from penstock.connectors.http.request_lines import UrlTemplate, render_headers
from penstock.connectors.http.writer import HttpWriter
from penstock.connectors.mqtt.config import header_error as mqtt_header_error
from penstock.connectors.mqtt.config import topic_error
from penstock.connectors.nats.subjects import header_error as nats_header_error
from penstock.connectors.nats.subjects import subject_error
from penstock.sdk import Rejected
from penstock.sdk.columns.template import Template

BASE = "https://example.com"


def urls(template: str, **columns: list[Any]) -> list[str | None]:
    """Returns the URLs of rows; None for a rejected row."""
    rows = pa.RecordBatch.from_pydict(columns)
    return [
        None if isinstance(url, Rejected) else url
        for url in UrlTemplate(Template(template)).render(rows)
    ]


@pytest.mark.parametrize("value", ["", ".", "..", None])
def test_no_value_changes_the_path(value: str | None) -> None:
    column = pa.array([value, "ok"], pa.string())
    assert urls(BASE + "/a/{x}/b", x=column) == [None, f"{BASE}/a/ok/b"]
    assert urls(BASE + "/a/{x}?y=1", x=column) == [None, f"{BASE}/a/ok?y=1"]


def test_a_value_stays_in_its_segment() -> None:
    values = ["a/../b", "?q#f", "%2e%2e", "ü &+", "a.b-c_d~e"]
    assert urls(BASE + "/{x}", x=values) == [
        f"{BASE}/a%2F..%2Fb", f"{BASE}/%3Fq%23f", f"{BASE}/%252e%252e",
        f"{BASE}/%C3%BC%20%26%2B", f"{BASE}/a.b-c_d~e",
    ]  # fmt: skip


def test_segments_of_several_parts() -> None:
    assert urls(BASE + "/{x}{y}/z", x=[".", "", "."], y=[".", "", "a"]) == [
        None, None, f"{BASE}/.a/z",
    ]  # fmt: skip
    assert urls(BASE + "/.{x}", x=[".", "a"]) == [None, f"{BASE}/.a"]
    assert urls(BASE + "/%2e{x}", x=[".", "a"]) == [None, f"{BASE}/%2ea"]
    assert urls(BASE + "/orders{x}", x=["", "1"]) == [f"{BASE}/orders", f"{BASE}/orders1"]


def test_a_value_of_the_query_is_one_value() -> None:
    assert urls(BASE + "/a//b/../c?x={x}&y=1", x=["", "..", "a&y=2", "#"]) == [
        f"{BASE}/a//b/../c?x={value}&y=1" for value in ("", "..", "a%26y%3D2", "%23")
    ]


def test_addresses_of_columns() -> None:
    hosts = ["a", "a.b", "", "a/b", "a@b", "a:1", "a..b", "é"]
    assert urls("http://{x}.example.com/y", x=hosts) == [
        "http://a.example.com/y", "http://a.b.example.com/y", *[None] * 6,
    ]  # fmt: skip
    assert urls("http://localhost:{x}/", x=["80", "http", "99999"]) == [
        "http://localhost:80/", None, None,
    ]  # fmt: skip
    assert urls("{x}://localhost/", x=["http", "file"]) == ["http://localhost/", None]


@pytest.mark.parametrize("value", ["a\r\nHost: b", "a\nb", "a\0b", "a\rb", "a\x7fb"])
def test_headers_with_line_breaks_or_control_characters_are_rejected(value: str) -> None:
    rows = pa.RecordBatch.from_pydict({"x": [value, "a\tb ü", None]})
    first, second, third = render_headers({"X-Id": Template("{x}")}, rows)
    assert isinstance(first, Rejected) and first.code == "invalid-header"
    assert (second, third) == ({"X-Id": "a\tb ü"}, {})


class SentRequests:
    """A client that keeps requests."""

    def __init__(self) -> None:
        self.requests: list[Request] = []

    def send(self, requests: list[Request]) -> list[Response]:
        self.requests += requests
        return [Response(200, {}, b"") for _ in requests]


@pytest.mark.parametrize("framing", ["single", "lines", "array"])
def test_rows_without_a_valid_request_are_dead_letters(framing: str) -> None:
    config = HttpSink.config_type.model_validate(
        {"url": BASE + "/{to}", "headers": {"X-Id": "{id}"}, "framing": framing}
    )
    rows = pa.RecordBatch.from_pydict({"to": ["a", None, "a", ".."], "id": ["1", "1", "\n", "1"]})
    client: Any = SentRequests()
    writer = HttpWriter(client, config)
    failures = writer.write(rows, pa.array([b"{}"] * 4))
    codes = [(failure.index, failure.error.code) for failure in failures]
    assert codes == [(1, "invalid-url"), (2, "invalid-header"), (3, "invalid-url")]
    (request,) = client.requests
    assert request.url == f"{BASE}/a" and request.headers["X-Id"] == "1"


@pytest.mark.parametrize("text", ["a\nb", "a\0b", "a\x85b", "a\ufffeb", "x" * 65_536])
def test_mqtt_texts(text: str) -> None:
    assert topic_error(text) and mqtt_header_error("a", text)
    assert topic_error("a/b") is None and mqtt_header_error("a", "b ü") is None


def test_nats_texts() -> None:
    assert nats_header_error("a", "b\r\nc") and nats_header_error("a", "b\nc")
    assert nats_header_error("a", "b c") is None
    assert all(map(subject_error, ("a b", "a.*", "a.>", "a\n", "a..b", "")))
