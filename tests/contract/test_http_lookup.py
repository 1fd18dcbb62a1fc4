"""Lookups of rows of a web service by key."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

from penstock.connectors.http.lookup import HttpLookupSource
from penstock.formats.json import Json
from penstock.sdk import Permanent, Read, Transient
from servers.web import Web

COLUMNS = pa.schema([("id", pa.int64()), ("name", pa.string())])
ROWS = [{"id": n, "name": f"n{n}"} for n in range(1, 8)]
SHAPES: dict[str, dict[str, Any]] = {
    "one": {"url": "/{id}"},
    "several": {"url": "?ids={id}", "max_keys": 3},
    "body": {"url": "", "method": "POST"},
    "array": {"url": "", "method": "POST", "max_keys": 3},
}
"""One key, or several keys, in a URL or in a body."""


@pytest.fixture(params=SHAPES)
def shape(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def name(web_server: Web) -> str:
    name = web_server.new_name()
    web_server.put_table(name, ROWS)
    return name


def make(
    web: Web, name: str, shape: str, columns: pa.Schema = COLUMNS, **options: Any
) -> HttpLookupSource:
    """Returns a source of the table of a web server."""
    config = {**SHAPES[shape], "pointer": "/data", "retry": {"backoff": "1ms", "attempts": 2}}
    config |= {"url": f"{web.url}/tables/{name}{SHAPES[shape]['url']}", **options}
    source = HttpLookupSource(HttpLookupSource.config_type.model_validate(config))
    source.columns, source.primary_key = columns, ("id",)
    source.format = Json(Json.config_type())
    source.prepare_lookup()
    source.validate()
    return source


def look_up(source: HttpLookupSource, keys: Sequence[Any]) -> tuple[dict[Any, Any], Read]:
    """Returns the payload of each key that has one, and the bad records."""
    assert source.columns is not None
    read = Read(metadata=("url",))
    client = source.open()
    try:
        found = source.lookup(
            client,
            pa.RecordBatch.from_pydict({"id": keys}, pa.schema([source.columns.field("id")])),
            read,
        )
    finally:
        source.close_client(client)
    assert found.column("url").equals(found.column("origin"))
    rows = found.to_pylist()
    assert len({row["position"] for row in rows}) == len(rows)
    return {keys[row["position"]]: json.loads(row["payload"]) for row in rows}, read


def test_keys_have_their_rows(web_server: Web, name: str, shape: str) -> None:
    """Keys without a row are left out, in any division into requests."""
    found, read = look_up(make(web_server, name, shape), [5, 99, 1, 2, 98, 97, 96, 7])
    assert found == {n: {"id": n, "name": f"n{n}"} for n in (5, 1, 2, 7)} and read.bad == []
    count = {"one": 8, "several": 3, "body": 8, "array": 3}[shape]
    assert len(web_server.requests(name)) == count


def test_no_keys(web_server: Web, name: str, shape: str) -> None:
    assert look_up(make(web_server, name, shape), []) == ({}, Read(metadata=("url",)))


def test_a_rejected_key_is_a_bad_record(web_server: Web, name: str, shape: str) -> None:
    """The other keys of its request have their rows."""
    found, read = look_up(make(web_server, name, shape), [1, 422, 2, 3])
    assert set(found) == {1, 2, 3}
    (record,) = read.bad
    assert (record.position, record.error.code) == (1, "http-422")
    assert record.origin.startswith(f"{web_server.url}/tables/{name}")


def test_busy_servers_are_asked_again(web_server: Web, name: str, shape: str) -> None:
    assert set(look_up(make(web_server, name, shape), [503, 1])[0]) == {1}
    web_server.put_table(name + "b", ROWS)
    with pytest.raises(Transient, match="503"):
        look_up(make(web_server, name + "b", shape, retry={"attempts": 1}), [503, 1])


def test_other_errors_end_the_lookup(web_server: Web, name: str, shape: str) -> None:
    """A status that neither `missing` nor `reject` lists says nothing about a key."""
    source = make(web_server, name, shape, reject=[400])
    with pytest.raises(Permanent, match="422"):
        look_up(source, [422, 1])
    with pytest.raises(Permanent, match="more than 10 bytes") as error:
        look_up(make(web_server, name, shape, max_message_size=10), [1])
    assert error.value.code == "too-large"


@pytest.mark.parametrize("shape", ["several", "array"])
def test_rows_of_arrays_without_one_key(web_server: Web, name: str, shape: str) -> None:
    """A key with several rows, and a row without a key, are bad records; others have their rows."""
    web_server.put_table(name, [*ROWS, {"id": 1, "name": "again"}])
    found, read = look_up(make(web_server, name, shape), [1, 2])
    assert found == {2: ROWS[1]}
    assert [(bad.position, bad.error.code) for bad in read.bad] == [(0, "several-rows")]
    wrong = [{"always": 1}, {"always": 1, "id": "x"}, {"always": 1, "id": 2.5}, 7, None]
    web_server.put_table(name, [ROWS[0], *wrong, {"always": 1, "id": 3}])
    found, read = look_up(make(web_server, name, shape), [1])
    assert found == {1: ROWS[0]}
    found_wrong = [json.loads(bad.payload or b"{}") for bad in read.bad]
    assert sorted(found_wrong, key=repr) == sorted(wrong, key=repr)


def test_keys_are_equal_by_value_and_not_by_text(web_server: Web, name: str) -> None:
    """A decimal, a time and a text with commas find their rows in an array."""
    cases: list[tuple[pa.DataType, Any, Any]] = [
        (pa.decimal128(10, 2), "1.50", 1.5),
        (pa.timestamp("us", "UTC"), "2026-01-01T00:00:00Z", "2026-01-01T01:00:00+01:00"),
        (pa.string(), "a,b/é ?", "a,b/é ?"),
        (pa.bool_(), True, True),
    ]
    for type_, key, written in cases:
        row = {"id": written, "always": 1}
        web_server.put_table(name, [row])
        (value,) = pa.array([key]).cast(type_).to_pylist()
        source = make(web_server, name, "array", pa.schema([("id", type_)]))
        found, read = look_up(source, [value])
        assert found == {value: row} and read.bad == []


def test_values_in_urls(web_server: Web, name: str) -> None:
    """A value stays in its segment, and a value that has none is a bad record."""
    columns = pa.schema([("id", pa.string())])
    keys = ["a/b?c#d", "é", "", "..", "x y"]
    web_server.put_table(name, [{"id": key} for key in keys])
    found, read = look_up(make(web_server, name, "one", columns), keys)
    assert set(found) == {"a/b?c#d", "é", "x y"}
    assert sorted(bad.position for bad in read.bad) == [2, 3]
    assert {bad.error.code for bad in read.bad} == {"invalid-url"}


@pytest.mark.parametrize("shape", ["several", "array"])
def test_a_body_without_an_array(web_server: Web, name: str, shape: str) -> None:
    """Each key of the request is a bad record, since none of them has an answer."""
    web_server.put_table(name, [{"always": 1}])
    found, read = look_up(make(web_server, name, shape, pointer="/data/0"), [1, 2])
    assert found == {} and sorted(bad.position for bad in read.bad) == [0, 1]
    assert {bad.payload for bad in read.bad} == {b'{"data": [{"always": 1}]}'}


def test_a_body_that_is_no_json(web_server: Web, name: str) -> None:
    web_server.put_table(name, ["text"])
    found, read = look_up(make(web_server, name, "several", pointer="/data/0/x/y"), [1])
    assert found == {} and [bad.position for bad in read.bad] == [0]


def test_check_connects(web_server: Web, name: str) -> None:
    make(web_server, name, "one").check()
    make(web_server, name, "body").check()
    with pytest.raises(Transient, match="could not reach"):
        make(web_server, name, "one", url="http://127.0.0.1:9/{id}").check()


def test_credentials_are_sent(web_server: Web) -> None:
    """A wrong login is an error, and never printed."""
    name = web_server.new_name()
    url = f"{web_server.url}/strict/{name}?id={{id}}"
    auth = {"username": "made-up-user", "password": "made-up-password"}
    source = make(web_server, name, "one", url=url, auth=auth, pointer="")
    assert look_up(source, [1]) == ({}, Read(metadata=("url",)))
    assert [each["query"] for each in web_server.requests(name)] == [{"id": "1"}]
    source = make(web_server, name, "one", url=url, auth={**auth, "password": "secret-9"})
    with pytest.raises(Permanent, match="401") as error:
        look_up(source, [1])
    assert "secret-9" not in str(error.value)
