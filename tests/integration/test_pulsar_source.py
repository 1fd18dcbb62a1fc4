"""The Pulsar source: partitions, start positions, metadata, subscriptions."""

from __future__ import annotations

import time
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from receiving_here import ReceivingHere, receiving_here

from penstock.connectors.pulsar import PulsarSource
from penstock.sdk import Context, Permanent, Read, Transient
from servers.pulsar import BASIC, LARGEST, PASSWORD, Pulsar

SHARED = {"subscription": "workers", "subscription_type": "shared"}


def made(pulsar: Pulsar, state: Path | None = None, **options: Any) -> Any:
    config = PulsarSource.config_type.model_validate({**pulsar.login, **options})
    return PulsarSource.create(config, Context("tests", "node", state))


def rows(source: Any, *metadata: str, start: Any = None, end: Any = None) -> list[dict[str, Any]]:
    start = source.initial_offset() if start is None else start
    read = Read(metadata=metadata)
    ranges = source.partitions(start, source.latest_offset(start) if end is None else end)
    found = [
        row for each in ranges for batch in source.read(each, read) for row in batch.to_pylist()
    ]
    assert not read.bad, read.bad
    return found


def payloads(source: Any, **between: Any) -> list[bytes | None]:
    return [row["payload"] for row in rows(source, **between)]


def backlog(pulsar: Pulsar, topic: str, subscription: str) -> int:
    stats = pulsar.admin("GET", f"persistent/public/default/{topic}/stats?getPreciseBacklog=true")
    return int(stats["subscriptions"][subscription]["msgBacklog"])


def test_partitions_are_read_separately(pulsar: Pulsar) -> None:
    parted, whole = pulsar.new_topic(partitions=2), pulsar.new_topic()
    for key in "abcdefgh":
        pulsar.send(parted, [key.encode()], partition_key=key)
    pulsar.send(whole, [b"i"])
    source = made(pulsar, topic=[parted, whole])
    start = source.initial_offset()
    assert len(source.partitions(start, source.latest_offset(start))) == 3
    found = rows(source, "topic", "partition", "key")
    assert sorted(row["payload"] for row in found) == [bytes([each]) for each in b"abcdefghi"]
    places = {(row["topic"].rpartition("/")[2], row["partition"]) for row in found}
    assert places == {(parted, 0), (parted, 1), (whole, None)}
    assert all(row["key"] == row["payload"].decode() for row in found if row["key"])


def test_a_new_partition_is_read_from_the_earliest_message(pulsar: Pulsar) -> None:
    topic = pulsar.new_topic(partitions=1)
    source = made(pulsar, topic=topic, start="latest")
    start = source.initial_offset()
    pulsar.admin("POST", f"persistent/public/default/{topic}/partitions", 3)
    for key in "abcdefgh":
        pulsar.send(topic, [key.encode()], partition_key=key)
    assert sorted(payloads(source, start=start)) == [bytes([each]) for each in b"abcdefgh"]


def test_metadata_of_a_message(pulsar: Pulsar) -> None:
    topic = pulsar.new_topic()
    before = datetime.now(UTC)
    about = {"partition_key": "k", "ordering_key": "o", "properties": {"Kind": "made up"}}
    pulsar.send(topic, [b"x"], event_timestamp=1_700_000_000_123, **about)
    pulsar.send(topic, [None])
    names = made(pulsar, topic=topic).metadata_schema().names
    first, second = rows(made(pulsar, topic=topic), *names)
    assert (first["key"], first["ordering_key"]) == ("k", "o")
    assert first["headers"] == [("Kind", "made up")]
    assert first["event_time"].isoformat() == "2023-11-14T22:13:20.123000+00:00"
    assert before.timestamp() - 1 <= first["publish_time"].timestamp() <= time.time() + 1
    assert first["message_id"].endswith(":0:-1") and first["redelivery_count"] == 0
    assert first["producer"] and first["origin"].endswith(topic)
    assert second["payload"] is second["key"] is second["event_time"] is None
    assert second["position"] == first["position"] + 1


def test_starts_at_the_end(pulsar: Pulsar) -> None:
    topic = pulsar.new_topic()
    pulsar.send_together(topic, [b"1", b"2"])
    source = made(pulsar, topic=topic, start="latest")
    start = source.initial_offset()
    pulsar.send_together(topic, [b"3", b"4"])
    assert payloads(source, start=start) == [b"3", b"4"]


def test_starts_at_a_time(pulsar: Pulsar) -> None:
    topic = pulsar.new_topic()
    pulsar.send(topic, [b"1", b"2"])
    time.sleep(0.05)
    pulsar.send(topic, [b"3", b"4"])
    third = rows(made(pulsar, topic=topic), "publish_time")[2]["publish_time"]
    since = made(pulsar, topic=topic, start={"timestamp": third.isoformat()})
    assert payloads(since) == [b"3", b"4"]
    never = made(pulsar, topic=topic, start={"timestamp": "2100-01-01T00:00:00"})
    start = never.initial_offset()
    pulsar.send(topic, [b"5"])
    assert payloads(never, start=start) == [b"5"]


def test_starts_at_a_message_id(pulsar: Pulsar) -> None:
    topic = pulsar.new_topic()
    pulsar.send(topic, [b"1"])
    pulsar.send_together(topic, [b"2", b"3"])
    found = rows(made(pulsar, topic=topic), "message_id")
    for index, row in enumerate(found):
        start = {"offset": {row["origin"]: row["message_id"]}}
        source = made(pulsar, topic=topic, start=start)
        assert payloads(source) == [b"1", b"2", b"3"][index:]
    with pytest.raises(Permanent, match="expected a partition"):
        made(pulsar, topic=topic, start={"offset": {"other": "1:2"}}).initial_offset()
    with pytest.raises(ValidationError, match="LEDGER:ENTRY"):
        made(pulsar, topic=topic, start={"offset": {"other": "first"}})


def test_batches_end_within_an_entry(pulsar: Pulsar) -> None:
    topic = pulsar.new_topic()
    pulsar.send_together(topic, [b"1", b"2", b"3"])
    pulsar.send(topic, [b"4"])
    source = made(pulsar, topic=topic, max_records=2)
    at, found = source.initial_offset(), []
    for _ in range(2):
        stop = source.limit_batch(at, source.latest_offset(at))
        found.append(payloads(source, start=at, end=stop))
        at = stop
    assert found == [[b"1", b"2"], [b"3", b"4"]] and source.latest_offset(at) == at


def test_chunked_messages(pulsar: Pulsar) -> None:
    topic = pulsar.new_topic()
    with pulsar.client() as client:
        producer = client.create_producer(topic, chunking_enabled=True)
        for size in (1, 2 * LARGEST, 3 * LARGEST):
            producer.send(b"x" * size)
    source = made(pulsar, topic=topic, max_records=2)
    start = source.initial_offset()
    end = source.latest_offset(start)
    middle = source.limit_batch(start, end)
    parts = [payloads(source, start=a, end=b) for a, b in [(start, middle), (middle, end)]]
    assert [[len(each) for each in part] for part in parts] == [[1, 2 * LARGEST], [3 * LARGEST]]
    assert source.latest_offset(end) == end


def test_deleted_messages_are_reported(pulsar: Pulsar) -> None:
    topic = pulsar.new_topic()
    pulsar.send(topic, [b"1"])
    source = made(pulsar, topic=topic)
    start = source.initial_offset()
    end = source.latest_offset(start)
    pulsar.admin("DELETE", f"persistent/public/default/{topic}")
    with pytest.raises(Permanent) as caught:
        rows(source, start=start, end=end)
    assert caught.value.code == "data-gone"
    read, skipping = Read(), made(pulsar, topic=topic, on_data_loss="continue")
    for each in skipping.partitions(start, end):
        assert not list(skipping.read(each, read))
    assert [bad.error.code for bad in read.bad] == ["data-gone"]


def test_a_subscription_is_acknowledged_after_the_batch(pulsar: Pulsar) -> None:
    topic = pulsar.new_topic()
    source = made(pulsar, topic=topic, subscription="pipeline", max_records=2)
    start = source.initial_offset()
    assert backlog(pulsar, topic, "pipeline") == 0
    pulsar.send(topic, [b"1"])
    pulsar.send_together(topic, [b"2", b"3"])
    end = source.latest_offset(start)
    assert backlog(pulsar, topic, "pipeline") == 2, "it counts entries"
    source.commit(source.limit_batch(start, end))
    assert backlog(pulsar, topic, "pipeline") == 1, "what is left of an entry is kept"
    source.commit(end)
    assert backlog(pulsar, topic, "pipeline") == 0


def test_journaled_messages_are_acknowledged(pulsar: Pulsar, tmp_path: Path) -> None:
    topic = pulsar.new_topic()
    pulsar.send(topic, [b"1", b"2"])
    source = made(pulsar, tmp_path, topic=topic, **SHARED, consumer="made-up")
    with closing(ReceivingHere(source)) as receiving:
        receiving.await_end(2)
        stats = pulsar.admin("GET", f"persistent/public/default/{topic}/stats")
        (consumer,) = stats["subscriptions"]["workers"]["consumers"]
        assert consumer["consumerName"] == "made-up"
    assert backlog(pulsar, topic, "workers") == 0
    assert payloads(source) == [b"1", b"2"]


def test_a_new_subscription_may_start_at_the_end(pulsar: Pulsar, tmp_path: Path) -> None:
    topic = pulsar.new_topic()
    pulsar.send(topic, [b"1"])
    source = made(pulsar, tmp_path, topic=topic, **SHARED, start="latest")
    with closing(ReceivingHere(source)) as receiving:
        receiving.await_ready()
        pulsar.send(topic, [b"2"])
        receiving.await_end(1)
    assert payloads(source) == [b"2"]


@pytest.mark.parametrize(
    ("type_", "broker"),
    [("exclusive", "Exclusive"), ("failover", "Failover"), ("key_shared", "Key_Shared")],
)
def test_types_of_subscriptions(pulsar: Pulsar, tmp_path: Path, type_: str, broker: str) -> None:
    topics = [pulsar.new_topic(), pulsar.new_topic()]
    for topic in topics:
        pulsar.send(topic, [b"1"], partition_key="a")
    source = made(pulsar, tmp_path, topic=topics, subscription="s", subscription_type=type_)
    with closing(ReceivingHere(source)) as receiving:
        receiving.await_end(2)
        stats = pulsar.admin("GET", f"persistent/public/default/{topics[0]}/stats")
        assert stats["subscriptions"]["s"]["type"] == broker
    assert {row["topic"].rpartition("/")[2] for row in rows(source, "topic")} == {*topics}


def test_an_exclusive_subscription_is_busy(pulsar: Pulsar, tmp_path: Path) -> None:
    topic = pulsar.new_topic()
    with pulsar.client() as client:
        client.subscribe(topic, "workers")
        options = {"subscription": "workers", "subscription_type": "exclusive"}
        ended = receiving_here(made(pulsar, tmp_path, topic=topic, **options))
        error = ended.exception(60)
    assert isinstance(error, Transient) and "shared" in (error.hint or "")


@pytest.mark.parametrize("options", [{}, SHARED])
def test_invalid_topics(pulsar: Pulsar, options: dict[str, Any]) -> None:
    for topic in ("a/b", "persistent://public/nowhere/a"):
        with pytest.raises(Permanent) as caught:
            made(pulsar, topic=topic, **options).check()
        assert caught.value.hint
    basic = {"auth": {"username": BASIC, "password": PASSWORD}}
    with pytest.raises(Permanent) as caught:
        made(pulsar, topic=pulsar.new_topic(), **{**options, **basic}).check()
    assert caught.value.code == "authentication"
