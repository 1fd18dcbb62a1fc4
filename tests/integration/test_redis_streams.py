"""Streams that are read by entry ID."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from minute_counts import MinuteCounts

from integration.redis_reading import Make, maker, payloads, read
from penstock.sdk import Permanent, Read, Transient
from servers.redis import Redis

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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


def test_start_positions(client: Any, key: str, make: Make) -> None:
    for number in range(1, 5):
        client.xadd(key, {"payload": number}, id=f"{number}-7")
    assert payloads(make(stream=key)) == [b"1", b"2", b"3", b"4"]
    assert payloads(make(stream=key, start={"offset": "3-7"})) == [b"3", b"4"]
    assert payloads(make(stream=key, start={"offset": "3"})) == [b"3", b"4"]
    time = datetime.fromtimestamp(0.003, UTC).isoformat()
    assert payloads(make(stream=key, start={"timestamp": time})) == [b"3", b"4"]
    latest = make(stream=key, start="latest")
    start = latest.initial_offset()
    client.xadd(key, {"payload": 5}, id="5-0")
    assert payloads(latest, start=start) == [b"5"]


def test_streams_are_merged_by_time_where_a_batch_is_limited(
    client: Any, key: str, make: Make
) -> None:
    streams = [f"{key}:{name}" for name in "ab"]
    for number in range(6):
        client.xadd(streams[number % 2], {"payload": number}, id=f"{number + 1}-0")
    source = make(stream=[*streams, f"{key}:none"], max_records=3)
    start = source.initial_offset()
    assert sorted(payloads(source)) == [b"0", b"1", b"2"]
    stop = source.limit_batch(start, source.latest_offset(start))
    assert sorted(payloads(source, start=stop)) == [b"3", b"4", b"5"]
    assert source.min_offset(start, stop) == source.min_offset(stop, start) == start


def test_metadata_of_an_entry(client: Any, key: str, make: Make) -> None:
    client.xadd(key, {"body": b"\xff", "kind": "k"}, id="1700000000000-3")
    client.xadd(key, {"kind": "k"}, id=f"{2**63}-{2**63}")
    first, second = read(make(stream=key, field="body"), "stream", "id", "timestamp", "fields")
    assert (first["payload"], first["stream"], first["id"]) == (b"\xff", key, "1700000000000-3")
    assert first["timestamp"] == datetime.fromtimestamp(1_700_000_000, UTC)
    assert first["fields"] == [("kind", b"k")] and first["position"] == 3
    assert second["payload"] is None and second["timestamp"] is None


def test_all_fields_are_the_payload(client: Any, key: str, make: Make) -> None:
    client.xadd(key, {"name": "Größe", "n": 1})
    assert json.loads(payloads(make(stream=key, field="*"))[0]) == {"name": "Größe", "n": "1"}
    assert json.loads(make(stream=key, field="*").sample(1)[0].as_py())["n"] == "1"


def test_trimmed_entries(client: Any, key: str, make: Make) -> None:
    for number in range(1, 6):
        client.xadd(key, {"payload": number}, id=f"{number}-0")
    source = make(stream=key)
    start = source.initial_offset()
    client.xdel(key, "3-0")
    assert payloads(source, start=start) == [b"1", b"2", b"4", b"5"]
    client.xtrim(key, maxlen=1, approximate=False)
    with pytest.raises(Permanent) as caught:
        source.latest_offset(start)
    assert caught.value.code == "data-gone"
    options = Read()
    source = make(stream=key, on_data_loss="continue")
    assert payloads(source, start=start, options=options) == [b"5"]
    assert [bad.error.code for bad in options.bad] == ["data-gone"]
    assert payloads(make(stream=key)) == [b"5"], "a new pipeline has no data loss"


def test_a_recreated_stream(client: Any, key: str, make: Make) -> None:
    client.xadd(key, {"payload": 1}, id="7-0")
    start = make(stream=key).latest_offset(make(stream=key).initial_offset())
    client.delete(key)
    client.xadd(key, {"payload": 1}, id="1-0")
    with pytest.raises(Permanent) as caught:
        make(stream=key).latest_offset(start)
    assert caught.value.code == "data-gone"


def test_a_source_outlives_its_server(redis: Redis, client: Any, key: str, make: Make) -> None:
    client.xadd(key, {"payload": 1})
    source = make(stream=key)
    assert payloads(source) == [b"1"]
    redis.kill()
    with pytest.raises(Transient):
        payloads(source)
    redis.start()
    assert payloads(source) == [b"1"]
    source.close()


def test_large_entries_are_read_in_small_pages(client: Any, key: str, make: Make) -> None:
    for _ in range(130):
        client.xadd(key, {"payload": b"x" * 200_000})
    source = make(stream=key)
    start = source.initial_offset()
    (partition,) = source.partitions(start, source.latest_offset(start))
    sizes = [batch.num_rows for batch in source.read(partition, Read())]
    assert sum(sizes) == 130 and max(sizes[1:]) < 30


@pytest.mark.spark
def test_no_row_of_a_stream_that_is_behind_is_late(
    redis: Redis, client: Any, key: str, penstock_spark: SparkSession, tmp_path: Path
) -> None:
    def write(stream: int, payloads: Sequence[bytes]) -> None:
        for payload in payloads:
            client.xadd(f"{key}:{stream}", {"payload": payload})

    streams = [f"{key}:{stream}" for stream in range(2)]
    source = {"type": "redis", **redis.login, "stream": streams}
    MinuteCounts(source, write, penstock_spark, tmp_path).check_partition_behind(40, 13)
