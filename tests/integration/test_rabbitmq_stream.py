"""RabbitMQ streams: start positions, deleted messages, ranges of tasks, metadata."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from typing import Any

import pytest

from penstock.connectors.rabbitmq import RabbitmqStreamSource, stream
from penstock.sdk import Context, Permanent, Read
from servers.rabbitmq import Rabbit

SMALL = {"x-stream-max-segment-size-bytes": 10_000, "x-max-length-bytes": 40_000}


@pytest.fixture
def name(rabbitmq: Rabbit) -> Iterator[str]:
    name = rabbitmq.new_queue("stream")
    yield name
    rabbitmq.delete(name)


@pytest.fixture
def short(rabbitmq: Rabbit) -> Iterator[str]:
    """A stream whose first messages were deleted."""
    name = rabbitmq.new_queue("stream", **SMALL)
    for number in range(20):
        rabbitmq.publish(name, [b"%03d" % number + b"x" * 5000])
    firsts = [-1, first(rabbitmq, name)]
    while firsts[-1] == 0 or firsts[-2] != firsts[-1]:
        time.sleep(0.5)
        firsts.append(first(rabbitmq, name))
    yield name
    rabbitmq.delete(name)


def first(broker: Rabbit, name: str) -> int:
    """The offset of a stream's first message."""
    with closing(source(broker, name)) as reading:
        return int(reading.initial_offset()["offset"])


def source(broker: Rabbit, name: str, **options: Any) -> RabbitmqStreamSource:
    given = {**broker.login, "stream": name, **options}
    return RabbitmqStreamSource(
        RabbitmqStreamSource.config_type.model_validate(given), Context("tests", "node")
    )


def rows(source: RabbitmqStreamSource, *metadata: str, read: Read | None = None) -> list[Any]:
    """All from its start to the end of the stream."""
    start = source.initial_offset()
    read = read or Read(metadata=metadata)
    found = [
        row
        for partition in source.partitions(start, source.latest_offset(start))
        for batch in source.read(partition, read)
        for row in batch.to_pylist()
    ]
    source.close()
    return found


def payloads(source: RabbitmqStreamSource) -> list[bytes]:
    return [row["payload"] for row in rows(source)]


def test_where_it_starts(rabbitmq: Rabbit, name: str) -> None:
    rabbitmq.publish(name, [b"0", b"1"])
    time.sleep(1.1)
    between = datetime.now(UTC)
    time.sleep(1.1)
    rabbitmq.publish(name, [b"2"])
    rabbitmq.publish(name, [b"3"])
    expected: list[tuple[Any, list[bytes]]] = [
        ("earliest", [b"0", b"1", b"2", b"3"]),
        ("latest", []),
        ({"offset": 1}, [b"1", b"2", b"3"]),
        ({"timestamp": between.isoformat()}, [b"2", b"3"]),
        ({"timestamp": between.replace(tzinfo=None).isoformat()}, [b"2", b"3"]),
        ({"timestamp": "2001-01-01T00:00:00Z"}, [b"0", b"1", b"2", b"3"]),
        ({"timestamp": "2101-01-01T00:00:00Z"}, []),
    ]
    for start, found in expected:
        assert (start, payloads(source(rabbitmq, name, start=start))) == (start, found)


@pytest.mark.parametrize("start", ["earliest", "latest", {"timestamp": "2001-01-01T00:00:00Z"}])
def test_an_empty_stream(rabbitmq: Rabbit, name: str, start: Any) -> None:
    assert source(rabbitmq, name, start=start).initial_offset() == {"offset": 0}
    assert payloads(source(rabbitmq, name, start=start)) == []


def test_an_unknown_offset(rabbitmq: Rabbit, name: str) -> None:
    rabbitmq.publish(name, [b"0"])
    with pytest.raises(Permanent, match="ends at offset 1") as caught:
        rows(source(rabbitmq, name, start={"offset": 7}))
    assert caught.value.code == "unknown-offset"


def test_deleted_messages(rabbitmq: Rabbit, short: str) -> None:
    kept = rows(source(rabbitmq, short), "offset")
    found, first = [row["payload"] for row in kept], kept[0]["offset"]
    assert 0 < len(found) < 20 and found[-1].startswith(b"019")
    with pytest.raises(Permanent, match="were deleted") as caught:
        rows(source(rabbitmq, short, start={"offset": 1}))
    assert caught.value.code == "data-gone"
    read = Read()
    skipping = source(rabbitmq, short, start={"offset": 1}, on_data_loss="continue")
    assert [row["payload"] for row in rows(skipping, read=read)] == found
    (bad,) = read.bad
    assert (bad.payload, bad.origin, bad.position) == (None, short, 1)
    assert bad.error.code == "data-gone" and f"from offset 1 to {first} " in bad.error.message


def test_offsets_of_the_broker_are_not_data_loss(rabbitmq: Rabbit, short: str) -> None:
    """A new segment of a stream begins with such an offset."""
    kept = rows(source(rabbitmq, short), "offset")
    before = kept[0]["offset"] - 1
    assert rows(source(rabbitmq, short, start={"offset": before}), "offset") == kept
    offsets = [row["offset"] for row in kept]
    assert offsets != [*range(offsets[0], offsets[0] + len(offsets))]
    one_by_one = source(rabbitmq, short, max_records=1)
    at, found = one_by_one.initial_offset(), []
    end = one_by_one.latest_offset(at)
    while at != end:
        stop = one_by_one.limit_batch(at, end)
        for partition in one_by_one.partitions(at, stop):
            found += [b for batch in one_by_one.read(partition, Read()) for b in batch["position"]]
        at = stop
    one_by_one.close()
    assert [each.as_py() for each in found] == offsets


def test_a_stream_whose_messages_were_all_deleted(rabbitmq: Rabbit) -> None:
    """A source that has read the stream resumes; a new source starts at the end."""
    name = rabbitmq.new_queue("stream", **{**SMALL, "x-max-length-bytes": 10_000})
    for number in range(20):
        rabbitmq.publish(name, [b"%03d" % number + b"x" * 5000])
    new, old = source(rabbitmq, name), source(rabbitmq, name, start={"offset": 25})
    start = new.initial_offset()
    assert (
        new.latest_offset(start) == start
        and old.latest_offset(old.initial_offset()) == old.initial_offset()
    )
    rabbitmq.publish(name, [b"new"])
    (partition,) = new.partitions(start, new.latest_offset(start))
    assert [b["payload"].to_pylist() for b in new.read(partition, Read())] == [[b"new"]]
    for each in (new, old):
        each.close()
    rabbitmq.delete(name)


def test_large_ranges_are_read_by_several_tasks(
    rabbitmq: Rabbit, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "PARTITION_SIZE", 7)
    expected = [b"%d" % number for number in range(20)]
    rabbitmq.publish(name, expected)
    reading = source(rabbitmq, name, max_in_flight=3)
    assert reading.partitions({"offset": 0}, {"offset": 20}) == [(0, 7), (7, 14), (14, 20)]
    assert payloads(reading) == expected


def test_metadata(rabbitmq: Rabbit, name: str) -> None:
    rabbitmq.publish(name, [b"0"])
    rabbitmq.publish(name, [b"1"], headers={"a": "b"}, message_id="m")
    one, two = rows(source(rabbitmq, name), "offset", "headers", "message_id", "routing_key")
    assert (one["offset"], one["headers"], one["position"]) == (0, [], 0)
    assert (two["offset"], two["headers"], two["message_id"]) == (1, [("a", "b")], "m")
    assert two["routing_key"] == name and two["origin"] == name


def test_a_sample(rabbitmq: Rabbit, name: str, short: str) -> None:
    reading = source(rabbitmq, name)
    assert reading.sample(2).to_pylist() == []
    rabbitmq.publish(name, [b"0", b"1", b"2"])
    assert reading.sample(2).to_pylist() == [b"0", b"1"]
    assert source(rabbitmq, short).sample(1)[0].as_py() == payloads(source(rabbitmq, short))[0]


def test_a_reader_reconnects_after_a_restart(rabbitmq: Rabbit, name: str) -> None:
    rabbitmq.publish(name, [b"0"])
    reading = source(rabbitmq, name)
    assert payloads(reading) == [b"0"]
    rabbitmq.stop()
    rabbitmq.start()
    rabbitmq.publish(name, [b"1"])
    assert payloads(reading) == [b"0", b"1"]


def test_a_queue_is_not_a_stream(rabbitmq: Rabbit) -> None:
    queue = rabbitmq.new_queue()
    rabbitmq.publish(queue, [b"0"])
    with pytest.raises(Permanent, match="of queue type rabbit_classic_queue"):
        rows(source(rabbitmq, queue))
    assert [message.body for message in rabbitmq.messages(queue)] == [b"0"]
    rabbitmq.delete(queue)
