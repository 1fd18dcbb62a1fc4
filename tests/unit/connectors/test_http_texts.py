"""Event streams, JSON pointers, and the URLs of pages."""

from __future__ import annotations

import pytest
from pydantic import TypeAdapter

from penstock.connectors.http.client import Response
from penstock.connectors.http.framing import resolve_pointer, split_body
from penstock.connectors.http.poll.config import Paging
from penstock.connectors.http.poll.paging import next_url, set_query_parameter
from penstock.connectors.http.sse.parser import Event, EventParser
from penstock.sdk import DecodeError, Permanent

STREAM = """\ufeff: a comment
retry: 1500
data: one

event: change
id: 7
data:two
data:  lines
ignored: field
data

id
data: no id any more

event: empty

id: 8

retry: soon
data: last""".encode()
EVENTS = [
    Event("message", b"one", ""),
    Event("change", b"two\n lines\n", "7"),
    Event("message", b"no id any more", ""),
]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize("size", [1, 2, 3, 10_000])
def test_events_of_a_stream(end: bytes, size: int) -> None:
    stream = STREAM.replace(b"\n", end)
    parser = EventParser()
    events = [
        event
        for start in range(0, len(stream), size)
        for event in parser.feed(stream[start : start + size])
    ]
    assert events == EVENTS
    assert (parser.last_id, parser.retry) == ("8", 1.5)


def test_an_event_without_an_id_keeps_the_last() -> None:
    parser = EventParser("5")
    assert parser.feed(b"data: 1\n\n") == [Event("message", b"1", "5")]
    assert parser.feed(b"id: 6\ndata: half") == [] and parser.last_id == "5"


def test_an_id_with_a_null_character_is_ignored() -> None:
    parser = EventParser("5")
    assert parser.feed(b"id: 6\0\ndata: 1\n\n") == [Event("message", b"1", "5")]
    assert parser.feed(b"id\ndata: 2\n\n") == [Event("message", b"2", "")]


@pytest.mark.parametrize("stream", [b"data: " + b"x" * 101, b"data: 12345\n" * 20])
def test_an_event_above_the_maximum_size(stream: bytes) -> None:
    with pytest.raises(Permanent, match="more than 100 bytes"):
        EventParser(max_size=100).feed(stream)


@pytest.mark.parametrize(
    ("pointer", "expected"),
    [
        ("/a", '[1.10, {"b/c": " x"}]'),
        ("/a/0", "1.10"),
        ("/a/1/b~1c", '" x"'),
        ("/~0/", "null"),
        ("/é", "2"),
        ("/a/2", None),
        ("/a/-", None),
        ("/a/0/x", None),
        ("/none", None),
    ],
)
def test_the_part_that_a_json_pointer_locates(pointer: str, expected: str | None) -> None:
    text = ' {"a": [1.10, {"b/c": " x"}], "~": {"": null}, "\\u00e9": 2} '
    part = resolve_pointer(text.encode(), pointer)
    assert (None if part is None else bytes(part).decode()) == expected
    assert resolve_pointer(text.encode(), "") == text.encode()


@pytest.mark.parametrize("text", ['{"a": 1', '{"a" 1}', '{"a": 1,}', '{"b": 1} 2', "{,}"])
def test_a_json_pointer_into_invalid_json(text: str) -> None:
    with pytest.raises(ValueError):
        resolve_pointer(text.encode(), "/none")


def following(
    paging: dict[str, object], url: str, body: str = "", count: int = 1, **headers: str
) -> str | None:
    options = TypeAdapter(Paging).validate_python(paging)
    return next_url(url, options, Response(200, headers, body.encode()), count)


def test_a_page_that_a_header_links_to() -> None:
    link = '<http://h/x?p=1>; rel="prev", <?p=3&q=a,b>; title="x"; rel="next"'
    assert following({"by": "link"}, "http://h/x?p=2", Link=link) == "http://h/x?p=3&q=a,b"
    assert following({"by": "link"}, "http://h/x?p=2", Link='<?p=1>; rel="prev"') is None
    assert following({"by": "link"}, "http://h/x") is None


def test_a_page_that_the_body_links_to() -> None:
    paging = {"by": "link", "pointer": "/links/next"}
    assert following(paging, "http://h/a/b", '{"links": {"next": "/c"}}') == "http://h/c"
    assert following(paging, "http://h/a/b", '{"links": {"next": null}}') is None
    for other in ("http://other", "https://h", "http://h:81"):
        with pytest.raises(Permanent, match=f"another server: {other}"):
            following(paging, "http://h/a/b", f'{{"links": {{"next": "{other}/c"}}}}')
    with pytest.raises(Permanent, match="not valid JSON"):
        following(paging, "http://h/a/b", "<html>")


def test_a_page_by_its_number() -> None:
    paging = {"by": "page", "parameter": "p"}
    assert following(paging, "http://h/x?p=9&a=%26") == "http://h/x?a=%26&p=10"
    assert following(paging, "http://h/x?p=9", count=0) is None


@pytest.mark.parametrize(
    ("value", "expected"),
    [('"a b&c"', "c=a+b%26c"), ("12345678901234567890", "c=12345678901234567890"), ('""', None),
     ("null", None), ("false", None)],
)  # fmt: skip
def test_a_page_after_a_cursor(value: str, expected: str | None) -> None:
    url = following(
        {"by": "cursor", "parameter": "c", "pointer": "/n"}, "http://h/x?c=1", f'{{"n": {value}}}'
    )
    assert url == (expected and f"http://h/x?{expected}")


def test_a_cursor_of_another_type() -> None:
    with pytest.raises(Permanent, match="expected text or a number at /n, found an object"):
        following({"by": "cursor", "pointer": "/n"}, "http://h/x", '{"n": {}}')


def test_a_parameter_replaces_the_one_of_its_name() -> None:
    assert set_query_parameter("http://h/x?a=1&b=&a=2#f", "a", "3") == "http://h/x?b=&a=3#f"


def test_deep_body_is_not_an_array() -> None:
    deep = b"[" * 50_000 + b"]" * 50_000
    with pytest.raises(DecodeError, match="expected a JSON array"):
        split_body(b"[" + deep + b"]", "array")
    with pytest.raises(DecodeError, match="expected a JSON array at /a"):
        split_body(b'{"b":' + deep + b',"a":[]}', "array", "/a")
    with pytest.raises(ValueError, match="too deeply"):
        resolve_pointer(b'{"b":' + deep + b"}", "/a")


@pytest.mark.parametrize(
    ("header", "seconds"),
    [("", None), ("7", 7.0), (" 7 ", 7.0), ("²", None), ("soon", None), ("9" * 999, 3600.0)],
)
def test_the_pause_that_a_server_requests(header: str, seconds: float | None) -> None:
    assert Response(429, {"Retry-After": header}, b"").retry_after == seconds
