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
from servers.redis import Redis


class OnRedis:
    """What all contracts need."""

    wrong_secret = {"password": "wrong"}

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
    limited = {"max_records": 1}

    @pytest.fixture
    def options(self, redis: Redis, key: str) -> dict[str, Any]:
        return {**redis.login, "stream": key}

    @pytest.fixture
    def put(self, client: Any, key: str) -> Any:
        def put(rows: Any, schema: pa.Schema) -> None:
            for payload in self.encoded(rows, schema):
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
        return lambda payloads: [client.xadd(key, {"payload": each}) for each in payloads]


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
    forgets = "nobody keeps what is published"

    @pytest.fixture
    def options(self, redis: Redis, key: str) -> dict[str, Any]:
        return {**redis.login, "channel": key}

    @pytest.fixture
    def send(self, client: Any, key: str) -> Callable[[list[bytes]], None]:
        return lambda payloads: [client.publish(key, each) for each in payloads]


class TestRedisStreamSink(OnRedis, SinkContract):
    component = RedisSink
    variant = "stream: orders"

    @pytest.fixture
    def options(self, redis: Redis, key: str) -> dict[str, Any]:
        return {**redis.login, "stream": key}

    @pytest.fixture
    def rows(self, client: Any, key: str) -> Any:
        return lambda schema: self.decoded(
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
        return lambda schema: self.decoded(client.lrange(key, 0, -1), schema)


class TestRedisHashSink(OnRedis, SinkContract):
    component = RedisSink
    variant = 'hash: totals, field: "{customer}"'
    bad_row = {"id": None, "name": "without a key"}

    @pytest.fixture
    def options(self, redis: Redis, key: str) -> dict[str, Any]:
        return {**redis.login, "hash": key, "field": "{id}"}

    @pytest.fixture
    def rows(self, client: Any, key: str) -> Any:
        return lambda schema: self.decoded([*client.hgetall(key).values()], schema)


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
            found = [client.get(each) for each in client.scan_iter(f"{key}:*", 1000)]
            return self.decoded(found, schema)

        return rows


class TestRedisChannelSink(OnRedis, SinkContract):
    component = RedisSink
    variant = "channel: news"

    @pytest.fixture
    def options(self, redis: Redis, key: str) -> dict[str, Any]:
        return {**redis.login, "channel": key}

    @pytest.fixture(autouse=True)
    def heard(self, redis: Redis, key: str) -> Iterator[list[bytes]]:
        """All that was published so far."""
        heard: list[bytes] = []
        ended = threading.Event()
        subscribed = threading.Event()
        thread = threading.Thread(target=_hear, args=(redis, key, heard, subscribed, ended))
        thread.start()
        assert subscribed.wait(30)
        yield heard
        ended.set()
        thread.join()

    @pytest.fixture
    def rows(self, client: Any, key: str, heard: list[bytes]) -> Any:
        def rows(schema: pa.Schema) -> Any:
            last = uuid.uuid4().bytes
            until = time.monotonic() + 30
            while last not in heard:
                assert time.monotonic() < until
                client.publish(key, last)
                time.sleep(0.01)
            found = [each for each in heard[: heard.index(last)] if len(each) != len(last)]
            heard.clear()
            return self.decoded(found, schema)

        return rows


def _hear(
    server: Redis, key: str, heard: list[bytes], subscribed: threading.Event, ended: threading.Event
) -> None:
    """Subscribes again when the server was gone."""
    from redis.exceptions import ConnectionError

    while not ended.is_set():
        try:
            with server.client() as client, client.pubsub() as pubsub:
                pubsub.subscribe(key)
                while not ended.is_set():
                    said = pubsub.get_message(timeout=0.05)
                    if said and said["type"] == "subscribe":
                        subscribed.set()
                    elif said:
                        heard.append(said["data"])
        except ConnectionError:
            time.sleep(0.05)
