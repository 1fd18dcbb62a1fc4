"""Options of the Redis source: receiving and connections."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from receiving_here import ReceivingHere

from integration.redis_reading import Make, maker, payloads, read, received
from penstock.sdk import Permanent
from servers.certificates import Authority
from servers.redis import PASSWORD, USER, Cluster, Redis
from servers.server import free_port


@pytest.fixture
def make(redis: Redis, tmp_path: Path) -> Make:
    return maker(redis, tmp_path)


@pytest.fixture
def client(redis: Redis) -> Iterator[Any]:
    with redis.client() as client:
        yield client


@pytest.fixture
def key(redis: Redis) -> str:
    return redis.new_key()


def test_start_and_metadata_of_a_group(client: Any, key: str, make: Make) -> None:
    for number in range(1, 4):
        client.xadd(key, {"body": number, "kind": "k"}, id=f"{number}-0")
    source = make(
        stream=key, group="g", consumer="c", start={"offset": "2-0"}, field="body", max_in_flight=1
    )
    rows = received(source, 2, lambda: None, "stream", "id", "fields")
    assert [(row["payload"], row["id"]) for row in rows] == [(b"2", "2-0"), (b"3", "3-0")]
    assert rows[0]["stream"] == key and rows[0]["fields"] == [("kind", b"k")]
    assert [consumer["name"] for consumer in client.xinfo_consumers(key, "g")] == [b"c"]


def test_start_latest_of_a_group(client: Any, key: str, make: Make) -> None:
    client.xadd(key, {"payload": "before"})
    source = make(stream=key, group="g", start="latest")
    rows = received(source, 1, lambda: client.xadd(key, {"payload": "after"}))
    assert [row["payload"] for row in rows] == [b"after"]
    assert [consumer["name"] for consumer in client.xinfo_consumers(key, "g")] == [b"flow.in"]


def test_pending_entries_are_read_again(client: Any, key: str, make: Make) -> None:
    client.xgroup_create(key, "g", "0", mkstream=True)
    for number in range(5):
        client.xadd(key, {"payload": number})
    response = client.xreadgroup("g", "flow.in", {key: ">"}, 4)
    ((_, entries),) = response.items() if isinstance(response, dict) else response
    client.xdel(key, entries[0][0] if isinstance(entries[0], tuple) else entries[0][0][0])
    rows = received(make(stream=key, group="g", claim_after="1h"), 4, lambda: None)
    assert [row["payload"] for row in rows] == [b"1", b"2", b"3", b"4"]


def test_entries_of_a_dead_consumer_are_claimed(client: Any, key: str, make: Make) -> None:
    client.xgroup_create(key, "g", "0", mkstream=True)
    for number in range(3):
        client.xadd(key, {"payload": number})
    client.xreadgroup("g", "dead", {key: ">"}, 2)
    source = make(stream=key, group="g", claim_after="100ms", max_in_flight=1)
    rows = received(source, 3, lambda: None)
    assert {row["payload"] for row in rows} == {b"0", b"1", b"2"}


def test_entries_of_an_active_consumer_are_not_claimed(client: Any, key: str, make: Make) -> None:
    client.xgroup_create(key, "g", "0", mkstream=True)
    for number in range(3):
        client.xadd(key, {"payload": number})
    client.xreadgroup("g", "alive", {key: ">"}, 2)
    rows = received(make(stream=key, group="g"), 1, lambda: None)
    assert [row["payload"] for row in rows] == [b"2"]
    assert client.xpending(key, "g")["pending"] >= 2


def test_max_in_flight(client: Any, key: str, make: Make) -> None:
    for _ in range(10):
        client.xadd(key, {"payload": b"x" * 200_000})
    source = make(stream=key, group="g", max_in_flight=2, journal={"max_size": 1 << 20})
    with closing(ReceivingHere(source)) as receiving:
        receiving.await_end(2)
        until = time.monotonic() + 30
        while client.xpending(key, "g")["pending"] != 2:
            assert time.monotonic() < until
            time.sleep(0.01)


@pytest.mark.parametrize(("side", "expected"), [("left", b"012"), ("right", b"210")])
def test_the_end_of_a_list(client: Any, key: str, make: Make, side: str, expected: bytes) -> None:
    client.rpush(key, 0, 1, 2)
    rows = received(make(list=[key, f"{key}:none"], side=side), 3, lambda: None, "list")
    assert b"".join(row["payload"] for row in rows) == expected
    assert {row["list"] for row in rows} == {key}


def test_the_processing_list_is_read_first(client: Any, key: str, make: Make) -> None:
    client.rpush(f"{key}:held", 0, 1)
    client.rpush(key, 2)
    source = make(list=key, processing=f"{key}:held", max_in_flight=1)
    rows = received(source, 3, lambda: None)
    assert [row["payload"] for row in rows] == [b"0", b"1", b"2"]


def test_the_default_processing_list(client: Any, key: str, make: Make) -> None:
    client.rpush(f"{{{key}}}:flow.in", 0)
    assert [row["payload"] for row in received(make(list=key), 1, lambda: None)] == [b"0"]


def test_channels_and_patterns(client: Any, key: str, make: Make) -> None:
    def send() -> None:
        client.publish(f"{key}:one", "1")
        client.publish(f"{key}:other", "2")
        client.publish(f"{key}.many.x", "3")

    source = make(channel=[f"{key}:one", f"{key}:two"], pattern=f"{key}.many.*")
    rows = received(source, 2, send, "channel", "pattern")
    assert [(row["payload"], row["channel"], row["pattern"]) for row in rows] == [
        (b"1", f"{key}:one", None),
        (b"3", f"{key}.many.x", f"{key}.many.*"),
    ]


def test_an_idle_channel(client: Any, key: str, make: Make) -> None:
    source = make(channel=key, timeout="100ms")
    with closing(ReceivingHere(source)) as receiving:
        receiving.await_ready()
        for at in range(3):
            assert not client.execute_command("BLPOP", f"{key}:none", "0.3")
            client.publish(key, at)
        receiving.await_end(3)
    assert payloads(source) == [b"0", b"1", b"2"]


def test_a_server_that_stops_responding(redis: Redis, key: str, make: Make) -> None:
    with closing(ReceivingHere(make(channel=key, timeout="200ms"))) as receiving:
        receiving.await_ready()
        redis.pause()
        try:
            until = time.monotonic() + 30
            while receiving.receiver.ready.is_set():
                assert time.monotonic() < until
                time.sleep(0.01)
        finally:
            redis.resume()


def test_another_database(redis: Redis, key: str, make: Make) -> None:
    import redis as library

    with library.Redis(port=redis.port, username=USER, password=PASSWORD, db=3) as other:
        other.xadd(key, {"payload": "third"})
    assert payloads(make(url=f"{redis.url}/3", stream=key)) == [b"third"]
    assert payloads(make(stream=key)) == []


def test_a_user_without_permission(key: str, make: Make) -> None:
    reader = {"username": "reader", "password": PASSWORD}
    make(stream=key, auth=reader).check()
    with pytest.raises(Permanent) as caught:
        source = make(stream=key, group="g", auth=reader)
        with source.journal() as journal:
            asyncio.run(source.receive(journal))
    assert caught.value.code == "authorization" and "ACL" in (caught.value.hint or "")


def test_tls(tmp_path: Path, make: Make) -> None:
    authority = Authority(tmp_path)
    with Redis(certificate=authority.issue("server"), root=authority.root) as server:
        url = f"rediss://localhost:{server.tls_port}"
        trusted = {"ca": str(authority.root)}
        with server.client() as client:
            client.xadd("s", {"payload": 1})
        with pytest.raises(Permanent) as caught:
            make(url=url, stream="s").check()
        assert caught.value.code == "tls"
        assert payloads(make(url=url, stream="s", tls=trusted)) == [b"1"]
        assert payloads(make(url=url, stream="s", tls={"verify": False})) == [b"1"]
        source = make(url=url, stream="s", group="g", tls=trusted)
        assert [row["payload"] for row in received(source, 1, lambda: None)] == [b"1"]


class TestCluster:
    """Reads keys of all nodes, with one URL, or with several of which one is available."""

    @pytest.fixture(params=["one", "several"])
    def options(self, redis_cluster: Cluster, request: Any) -> dict[str, Any]:
        several = [f"redis://127.0.0.1:{free_port()}", redis_cluster.servers[1].url]
        return redis_cluster.login | ({"url": several} if request.param == "several" else {})

    @pytest.fixture
    def keys(self, redis: Redis) -> list[str]:
        first = redis.new_key()
        return [f"{first}:{number}" for number in range(8)]

    @pytest.fixture
    def client(self, redis_cluster: Cluster) -> Iterator[Any]:
        with closing(redis_cluster.client()) as client:
            yield client

    def test_streams(self, client: Any, options: Any, keys: list[str], make: Make) -> None:
        for name in keys:
            client.xadd(name, {"payload": name})
        expected = [name.encode() for name in keys]
        source = make(**options, stream=keys)
        source.check()
        assert sorted(payloads(source)) == expected
        rows = received(make(**options, stream=keys, group="g"), 8, lambda: None)
        assert sorted(row["payload"] for row in rows) == expected

    def test_without_cluster(self, redis_cluster: Cluster, keys: list[str], make: Make) -> None:
        with pytest.raises(Permanent) as caught:
            read(make(**redis_cluster.login | {"cluster": False}, stream=keys))
        assert (caught.value.code, caught.value.hint) == ("cluster-mode", "Set cluster: true.")

    def test_lists(self, client: Any, options: Any, keys: list[str], make: Make) -> None:
        for name in keys:
            client.rpush(name, name, name)
        rows = received(make(**options, list=keys), 16, lambda: None)
        assert sorted({row["payload"] for row in rows}) == [name.encode() for name in keys]

    def test_channels(self, client: Any, options: Any, keys: list[str], make: Make) -> None:
        source = make(**options, channel=keys)
        rows = received(source, 8, lambda: [client.publish(name, name) for name in keys])
        assert sorted(row["payload"] for row in rows) == [name.encode() for name in keys]
