"""Streams of events, parts of JSON texts, and URLs of pages."""

from __future__ import annotations

import pytest
from pydantic import TypeAdapter

from penstock.connectors.http.asking import Answer
from penstock.connectors.http.jsontext import part
from penstock.connectors.http.poll.paging import Paging, with_parameter
from penstock.connectors.http.sse.events import Event, Events
from penstock.sdk import Permanent

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
FOUND = [
    Event("message", b"one", ""),
    Event("change", b"two\n lines\n", "7"),
    Event("message", b"no id any more", ""),
]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize("size", [1, 2, 3, 10_000])
def test_a_stream_is_divided(end: bytes, size: int) -> None:
    stream = STREAM.replace(b"\n", end)
    events = Events()
    found = [
        event
        for at in range(0, len(stream), size)
        for event in events.taken(stream[at : at + size])
    ]
    assert found == FOUND
    assert (events.last_id, events.retry) == ("8", 1.5)


def test_an_event_without_an_id_keeps_the_last() -> None:
    events = Events("5")
    assert events.taken(b"data: 1\n\n") == [Event("message", b"1", "5")]
    assert events.taken(b"id: 6\ndata: half") == [] and events.last_id == "5"


@pytest.mark.parametrize("stream", [b"data: " + b"x" * 101, b"data: 12345\n" * 20])
def test_an_event_that_is_too_large(stream: bytes) -> None:
    with pytest.raises(Permanent, match="more than 100 bytes"):
        Events(most=100).taken(stream)


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
def test_a_part_of_a_json_text(pointer: str, expected: str | None) -> None:
    text = ' {"a": [1.10, {"b/c": " x"}], "~": {"": null}, "\\u00e9": 2} '
    assert part(text, pointer) == expected and part(text, "") == text


@pytest.mark.parametrize("text", ['{"a": 1', '{"a" 1}', '{"a": 1,}', '{"b": 1} 2', "{,}"])
def test_what_is_no_json(text: str) -> None:
    with pytest.raises(ValueError):
        part(text, "/none")


def following(
    paging: dict[str, object], url: str, body: str = "", count: int = 1, **headers: str
) -> str | None:
    made = TypeAdapter(Paging).validate_python(paging)
    return made.following(url, Answer(200, headers, body.encode()), count)  # type: ignore[no-any-return]


def test_a_page_that_a_header_links_to() -> None:
    link = '<http://h/x?p=1>; rel="prev", <?p=3&q=a,b>; title="x"; rel="next"'
    assert following({"by": "link"}, "http://h/x?p=2", Link=link) == "http://h/x?p=3&q=a,b"
    assert following({"by": "link"}, "http://h/x?p=2", Link='<?p=1>; rel="prev"') is None
    assert following({"by": "link"}, "http://h/x") is None


def test_a_page_that_the_body_links_to() -> None:
    paging = {"by": "link", "pointer": "/links/next"}
    assert following(paging, "http://h/a/b", '{"links": {"next": "/c"}}') == "http://h/c"
    assert following(paging, "http://h/a/b", '{"links": {"next": null}}') is None
    with pytest.raises(Permanent, match="another server: http://other"):
        following(paging, "http://h/a/b", '{"links": {"next": "http://other/c"}}')
    with pytest.raises(Permanent, match="no JSON"):
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
    found = following(
        {"by": "cursor", "parameter": "c", "pointer": "/n"}, "http://h/x?c=1", f'{{"n": {value}}}'
    )
    assert found == (expected and f"http://h/x?{expected}")


def test_a_cursor_that_is_none() -> None:
    with pytest.raises(Permanent, match="neither text nor a number"):
        following({"by": "cursor", "pointer": "/n"}, "http://h/x", '{"n": {}}')


def test_a_parameter_replaces_the_one_of_its_name() -> None:
    assert with_parameter("http://h/x?a=1&b=&a=2#f", "a", "3") == "http://h/x?b=&a=3#f"
