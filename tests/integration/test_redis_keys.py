"""Keys of Redis as a lookup table, read without Spark: values, hashes and fields, and a cluster."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from penstock.connectors.redis.config import RedisSourceConfig
from penstock.connectors.redis.keys import KeySource
from penstock.connectors.redis.source import RedisSource
from penstock.sdk import Read
from servers.redis import Cluster, Redis

COLUMNS = pa.schema([
    ("shop", pa.string()), ("id", pa.int64()), ("name", pa.string()), ("price", pa.float64()),
    ("at", pa.timestamp("us", "UTC")),
])  # fmt: skip
KEYS = [{"shop": "a", "id": 1}, {"shop": "a", "id": 2}, {"shop": "b", "id": 1}]


def make(login: dict[str, Any], **options: Any) -> KeySource:
    source = RedisSource.create(RedisSourceConfig(**login, **options))
    assert isinstance(source, KeySource)
    source.columns, source.primary_key = COLUMNS, ("shop", "id")
    source.validate()
    return source


def look_up(source: KeySource) -> tuple[list[dict[str, Any]], Read]:
    keys = pa.RecordBatch.from_pylist(KEYS, pa.schema(list(COLUMNS)[:2]))
    client, read = source.open(), Read(metadata=("key",))
    try:
        return source.lookup(client, keys, read).to_pylist(), read
    finally:
        source.close_client(client)


@pytest.fixture(params=["server", "cluster"])
def system(request: pytest.FixtureRequest) -> Redis | Cluster:
    name = "redis" if request.param == "server" else "redis_cluster"
    found: Redis | Cluster = request.getfixturevalue(name)
    return found


@pytest.fixture
def prefix() -> str:
    return uuid.uuid4().hex[:8]


def test_values_of_keys(system: Redis | Cluster, prefix: str) -> None:
    """A key of another type has no value."""
    with system.client() as client:
        client.set(f"{prefix}:a:1", "one")
        client.set(f"{prefix}:b:1", b"\xff")
        client.rpush(f"{prefix}:a:2", "list")
    rows, read = look_up(make(system.login, key=f"{prefix}:{{shop}}:{{id}}"))
    assert [(row["payload"], row["key"], row["position"]) for row in rows] == [
        (b"one", f"{prefix}:a:1", 0), (b"\xff", f"{prefix}:b:1", 2),
    ]  # fmt: skip
    assert read.bad == []


def test_hashes_are_rows(system: Redis | Cluster, prefix: str) -> None:
    with system.client() as client:
        client.hset(f"{prefix}:a:1", mapping={"price": "1.5", "at": "2026-01-01T00:00:00Z"})
        client.hset(f"{prefix}:a:2", mapping={"price": "cheap"})
        client.set(f"{prefix}:b:1", "text")
    rows, read = look_up(make(system.login, hash=f"{prefix}:{{shop}}:{{id}}"))
    assert rows == [
        {"shop": "a", "id": 1, "name": None, "price": 1.5, "at": datetime(2026, 1, 1, tzinfo=UTC),
         "key": f"{prefix}:a:1"},
    ]  # fmt: skip
    assert {(record.origin, record.position, record.error.code) for record in read.bad} == {
        (f"{prefix}:a:2", 1, "wrong-type"), (f"{prefix}:b:1", 2, "rejected"),
    }  # fmt: skip


def test_fields_of_hashes(system: Redis | Cluster, prefix: str) -> None:
    with system.client() as client:
        client.hset(f"{prefix}:a", mapping={"1": "one", "3": "three"})
    rows, _ = look_up(make(system.login, hash=f"{prefix}:{{shop}}", field="{id}"))
    assert [(row["payload"], row["position"]) for row in rows] == [(b"one", 0)]
