from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest

from penstock.connectors.redis import RedisSink, RedisSource
from penstock.testing.contract import ReceivingContract, SinkContract, SourceContract
from servers.redis import USER, Redis

LAST = b"last "


class OnRedis:
    """The server and credentials of all contracts."""

    wrong_credentials = {"auth": {"username": USER, "password": "wrong"}}

    @pytest.fixture
    def server(self, redis: Redis) -> Redis:
        return redis

    @pytest.fixture
    def key(self, redis: Redis) -> str:
        return redis.new_key()

    @pytest.fixture
    def client(self, redis: Redis) -> Iterator[Any]:
        with redis.client() as client:
            yield client


class TestRedisStreams(OnRedis, SourceContract):
    component = RedisSource
    variant = "stream: orders"
    batch_limit = {"max_records": 1}

    @pytest.fixture
    def options(self, redis: Redis, key: str) -> dict[str, Any]:
        return {**redis.login, "stream": key}

    @pytest.fixture
    def put(self, client: Any, key: str) -> Any:
        def put(rows: Any, schema: pa.Schema) -> None:
            for payload in self.encode(rows, schema):
                client.xadd(key, {"payload": payload})

        return put


class TestRedisGroup(OnRedis, ReceivingContract):
    component = RedisSource
    variant = "stream: orders, group: workers"

    @pytest.fixture
    def options(self, redis: Redis, key: str) -> dict[str, Any]:
        return {**redis.login, "stream": key, "group": "made-up"}

    @pytest.fixture
    def send(self, client: Any, key: str) -> Callable[[list[bytes]], None]:
        return lambda payloads: [client.xadd(key, {"payload": p}) for p in payloads]


class TestRedisList(OnRedis, ReceivingContract):
    component = RedisSource
    variant = "list: jobs"

    @pytest.fixture
    def options(self, redis: Redis, key: str) -> dict[str, Any]:
        return {**redis.login, "list": key}

    @pytest.fixture
    def send(self, client: Any, key: str) -> Callable[[list[bytes]], None]:
        return lambda payloads: client.rpush(key, *payloads)


class TestRedisChannel(OnRedis, ReceivingContract):
    component = RedisSource
    variant = "channel: news"
    lossy_reason = "messages without a subscriber are not kept"

    @pytest.fixture
    def options(self, redis: Redis, key: str) -> dict[str, Any]:
        return {**redis.login, "channel": key}

    @pytest.fixture
    def send(self, client: Any, key: str) -> Callable[[list[bytes]], None]:
        return lambda payloads: [client.publish(key, p) for p in payloads]


class TestRedisStreamSink(OnRedis, SinkContract):
    component = RedisSink
    variant = "stream: orders"

    @pytest.fixture
    def options(self, redis: Redis, key: str) -> dict[str, Any]:
        return {**redis.login, "stream": key}

    @pytest.fixture
    def rows(self, client: Any, key: str) -> Any:
        return lambda schema: self.decode(
            [fields[b"payload"] for _, fields in client.xrange(key)], schema
        )


class TestRedisListSink(OnRedis, SinkContract):
    component = RedisSink
    variant = "list: jobs"

    @pytest.fixture
    def options(self, redis: Redis, key: str) -> dict[str, Any]:
        return {**redis.login, "list": key}

    @pytest.fixture
    def rows(self, client: Any, key: str) -> Any:
        return lambda schema: self.decode(client.lrange(key, 0, -1), schema)


class TestRedisHashSink(OnRedis, SinkContract):
    component = RedisSink
    variant = 'hash: totals, field: "{customer}"'
    bad_row = {"id": None, "name": "without a key"}

    @pytest.fixture
    def options(self, redis: Redis, key: str) -> dict[str, Any]:
        return {**redis.login, "hash": key, "field": "{id}"}

    @pytest.fixture
    def rows(self, client: Any, key: str) -> Any:
        return lambda schema: self.decode([*client.hgetall(key).values()], schema)


class TestRedisKeySink(OnRedis, SinkContract):
    component = RedisSink
    variant = 'key: "totals:{customer}"'
    bad_row = {"id": None, "name": "without a key"}

    @pytest.fixture
    def options(self, redis: Redis, key: str) -> dict[str, Any]:
        return {**redis.login, "key": key + ":{id}"}

    @pytest.fixture
    def rows(self, client: Any, key: str) -> Any:
        def rows(schema: pa.Schema) -> Any:
            values = [client.get(name) for name in client.scan_iter(f"{key}:*", 1000)]
            return self.decode(values, schema)

        return rows


class TestRedisChannelSink(OnRedis, SinkContract):
    component = RedisSink
    variant = "channel: news"

    @pytest.fixture
    def options(self, redis: Redis, key: str) -> dict[str, Any]:
        return {**redis.login, "channel": key}

    @pytest.fixture(autouse=True)
    def published(self, redis: Redis, key: str) -> Iterator[list[bytes]]:
        """Yields the list of published messages."""
        published: list[bytes] = []
        ended = threading.Event()
        subscribed = threading.Event()
        thread = threading.Thread(target=_collect, args=(redis, key, published, subscribed, ended))
        thread.start()
        assert subscribed.wait(30)
        yield published
        ended.set()
        thread.join()

    @pytest.fixture
    def rows(self, client: Any, key: str, published: list[bytes]) -> Any:
        def rows(schema: pa.Schema) -> Any:
            last = LAST + uuid.uuid4().bytes
            until = time.monotonic() + 30
            while last not in published:
                assert time.monotonic() < until
                client.publish(key, last)
                time.sleep(0.01)
            payloads = [p for p in published[: published.index(last)] if not p.startswith(LAST)]
            published.clear()
            return self.decode(payloads, schema)

        return rows


def _collect(
    server: Redis,
    key: str,
    published: list[bytes],
    subscribed: threading.Event,
    ended: threading.Event,
) -> None:
    """Collects messages. Subscribes again after the server restarts."""
    from redis.exceptions import ConnectionError

    while not ended.is_set():
        try:
            with server.client() as client, client.pubsub() as pubsub:
                pubsub.subscribe(key)
                while not ended.is_set():
                    event = pubsub.get_message(timeout=0.05)
                    if event and event["type"] == "subscribe":
                        subscribed.set()
                    elif event:
                        published.append(event["data"])
        except ConnectionError:
            time.sleep(0.05)
