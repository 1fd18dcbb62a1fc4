"""Options of the Redis sink, and rejected commands."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.connectors.redis import RedisSink
from penstock.connectors.redis.config import RedisSinkConfig
from penstock.core.errors import UserError, flatten_errors
from penstock.sdk import BatchId, Permanent, Transient
from servers.certificates import Authority
from servers.redis import PASSWORD, Cluster, Redis
from servers.server import free_port

COLUMNS = pa.schema([("id", pa.int64()), ("room", pa.string())])
Write = Callable[..., list[tuple[int, str]]]


@pytest.fixture
def write(redis: Redis) -> Write:
    """Returns a function that writes rows with their IDs as payloads, and returns the failures."""

    def write(rows: list[tuple[int | None, str | None]], **options: Any) -> list[tuple[int, str]]:
        sink = RedisSink(RedisSinkConfig.model_validate({**redis.login, **options}))
        batch = pa.RecordBatch.from_pylist(
            [{"id": id_, "room": room} for id_, room in rows], COLUMNS
        )
        with closing(sink.open()) as client:
            writer = sink.writer(client, BatchId("q", 0), 0, COLUMNS)
            failures = writer.write(batch, pa.array([str(id_).encode() for id_, _ in rows]))
            assert writer.commit() == {"commands": len(rows) - len(failures)}
        return [(failure.index, failure.error.code) for failure in failures]

    return write


@pytest.fixture
def client(redis: Redis) -> Iterator[Any]:
    with redis.client() as client:
        yield client


@pytest.fixture
def key(redis: Redis) -> str:
    return redis.new_key()


def test_streams_by_template_with_more_fields(client: Any, key: str, write: Write) -> None:
    options = {"stream": key + ":{room}", "field": "body", "fields": {"from": "room {room}"}}
    failures = write([(1, "a"), (2, "b"), (3, None), (4, "a")], **options)
    assert failures == [(2, "invalid-key")]
    assert [fields for _, fields in client.xrange(f"{key}:a")] == [
        {b"body": b"1", b"from": b"room a"},
        {b"body": b"4", b"from": b"room a"},
    ]
    assert client.xlen(f"{key}:b") == 1


def test_a_null_field_is_omitted(client: Any, key: str, write: Write) -> None:
    assert write([(1, None)], stream=key, fields={"room": "{room}"}) == []
    assert [fields for _, fields in client.xrange(key)] == [{b"payload": b"1"}]


@pytest.mark.parametrize("approximate", [False, True])
def test_the_length_of_a_stream(client: Any, key: str, write: Write, approximate: bool) -> None:
    rows = [(number, "a") for number in range(1000)]
    write(rows, stream=key, max_length=10, approximate=approximate)
    assert (client.xlen(key) == 10) is not approximate
    assert client.xlen(key) < 1000


@pytest.mark.parametrize(("side", "expected"), [("right", [b"2", b"3"]), ("left", [b"3", b"2"])])
def test_the_length_of_a_list(
    client: Any, key: str, write: Write, side: str, expected: list[bytes]
) -> None:
    write([(1, "a"), (2, "a"), (3, "a"), (4, "b")], list=key + ":{room}", side=side, max_length=2)
    assert client.lrange(f"{key}:a", 0, -1) == expected
    assert client.lrange(f"{key}:b", 0, -1) == [b"4"]


def test_a_list_without_a_limit(client: Any, key: str, write: Write) -> None:
    write([(1, "a"), (2, "a")], list=key)
    assert client.lrange(key, 0, -1) == [b"1", b"2"]


def test_fields_of_hashes(client: Any, key: str, write: Write) -> None:
    failures = write([(1, "a"), (2, "b"), (3, "a"), (4, None)], hash=key, field="{room}")
    assert failures == [(3, "invalid-key")]
    assert client.hgetall(key) == {b"a": b"3", b"b": b"2"}


def test_ttl_of_a_key(client: Any, key: str, write: Write) -> None:
    write([(1, "a")], key=key + ":{room}", ttl="1h")
    assert 3_500_000 < client.pttl(f"{key}:a") <= 3_600_000
    write([(2, "a")], key=key + ":{room}")
    assert client.pttl(f"{key}:a") == -1 and client.get(f"{key}:a") == b"2"


def test_channels_by_template(client: Any, key: str, write: Write) -> None:
    with client.pubsub() as pubsub:
        pubsub.psubscribe(f"{key}:*")
        assert pubsub.get_message(timeout=10)["type"] == "psubscribe"
        write([(1, "a"), (2, "b")], channel=key + ":{room}")
        events = [pubsub.get_message(timeout=10) for _ in range(2)]
    assert [(event["channel"], event["data"]) for event in events] == [
        (f"{key}:a".encode(), b"1"),
        (f"{key}:b".encode(), b"2"),
    ]


def test_a_key_of_another_type(client: Any, key: str, write: Write) -> None:
    client.set(f"{key}:b", "text")
    rows = [(1, "a"), (2, "b"), (3, "a")]
    assert write(rows, list=key + ":{room}") == [(1, "rejected")]
    assert client.lrange(f"{key}:a", 0, -1) == [b"1", b"3"]


def test_a_user_without_permission(key: str, write: Write) -> None:
    with pytest.raises(Permanent) as caught:
        write([(1, "a")], list=key, auth={"username": "reader", "password": PASSWORD})
    assert caught.value.code == "authorization" and "ACL" in (caught.value.hint or "")


def test_a_server_without_memory(key: str, write: Write) -> None:
    with Redis() as server, server.client() as client:
        client.config_set("maxmemory", "1")
        with pytest.raises(Transient) as caught:
            write([(1, "a")], **server.login, list=key)
    assert caught.value.code == "busy"


def test_a_server_that_does_not_respond(redis: Redis, key: str, write: Write) -> None:
    redis.pause()
    resuming = threading.Timer(20, redis.resume)
    resuming.start()
    try:
        with pytest.raises(Transient) as caught:
            write([(1, "a")], list=key, timeout="200ms")
        assert resuming.is_alive() and caught.value.code == "unreachable"
    finally:
        resuming.cancel()
        redis.resume()


def test_a_client_outlives_its_server(redis: Redis, key: str) -> None:
    sink = RedisSink(RedisSinkConfig.model_validate({**redis.login, "list": key}))
    rows = pa.RecordBatch.from_pylist([{"id": 1, "room": "a"}], COLUMNS)
    with closing(sink.open()) as made:
        for _ in range(2):
            sink.writer(made, BatchId("q", 0), 0, COLUMNS).write(rows, pa.array([b"1"]))
            redis.kill()
            redis.start()
    with redis.client() as client:
        assert client.lrange(key, 0, -1) == [b"1", b"1"]


def test_upsert_requires_the_primary_key_in_the_name() -> None:
    sink = RedisSink(RedisSinkConfig.model_validate({"url": "redis://h", "key": "k:{room}"}))
    sink.mode, sink.primary_key = "upsert", ("room",)
    sink.check_schema(COLUMNS)
    sink.primary_key = ("room", "id")
    with pytest.raises(UserError, match="rows that differ only in id would overwrite each other"):
        sink.check_schema(COLUMNS)


def test_missing_columns() -> None:
    config = {"url": "redis://h", "stream": "{rom}", "field": "{idd}", "fields": {"x": "{y}"}}
    with pytest.raises(UserError) as caught:
        RedisSink(RedisSinkConfig.model_validate(config)).check_schema(COLUMNS)
    messages = [error.message.partition(",")[0] for error in flatten_errors(caught.value)]
    assert messages == [
        'stream: unknown column "rom"',
        'field: unknown column "idd"',
        'fields.x: unknown column "y"',
    ]


def test_tls(tmp_path: Path, write: Write) -> None:
    authority = Authority(tmp_path)
    with Redis(certificate=authority.issue("server"), root=authority.root) as server:
        url = f"rediss://localhost:{server.tls_port}"
        with pytest.raises(Permanent) as caught:
            write([(1, "a")], url=url, list="l")
        assert caught.value.code == "tls"
        certificate = str(authority.issue("client"))
        tls = {"ca": str(authority.root), "certificate": certificate, "key": certificate}
        assert write([(1, "a")], url=url, list="l", tls=tls) == []
        with server.client() as client:
            assert client.lrange("l", 0, -1) == [b"1"]


@pytest.mark.parametrize("kind", ["stream", "list", "hash", "key"])
def test_a_cluster(redis_cluster: Cluster, key: str, write: Write, kind: str) -> None:
    rows = [(number, "a") for number in range(20)]
    options = {kind: key + ":{id}", **({"field": "f"} if kind == "hash" else {})}
    if kind == "list":
        options["max_length"] = 1
    assert write(rows, **redis_cluster.login, **options) == []
    with closing(redis_cluster.client()) as client:
        assert sum(client.exists(f"{key}:{number}") for number in range(20)) == 20


def test_channels_of_a_cluster(redis_cluster: Cluster, key: str, write: Write) -> None:
    with redis_cluster.servers[2].client() as client, client.pubsub() as pubsub:
        pubsub.subscribe(key)
        assert pubsub.get_message(timeout=10)["type"] == "subscribe"
        assert write([(1, "a")], **redis_cluster.login, channel=key) == []
        assert pubsub.get_message(timeout=10)["data"] == b"1"


@pytest.mark.parametrize("kind", ["list", "channel"])
def test_an_unavailable_node_of_a_cluster(
    redis_cluster: Cluster, key: str, write: Write, kind: str
) -> None:
    urls = [f"redis://127.0.0.1:{free_port()}", redis_cluster.servers[1].url]
    assert write([(1, "a")], **redis_cluster.login | {"url": urls}, **{kind: key}) == []
    with pytest.raises(Transient) as caught:
        write([(1, "a")], **redis_cluster.login | {"url": urls[:1]}, **{kind: key})
    assert (caught.value.code, urls[0][8:] in caught.value.message) == ("unreachable", True)
