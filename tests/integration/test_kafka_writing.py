"""Writes to Kafka topics: topic, partition, key, headers and timestamp."""

from __future__ import annotations

import json
import sys
import uuid
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import TIMESTAMP_CREATE_TIME
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType
from kafka_records import Writing, put, rows, sink, source, write

from penstock.connectors.kafka.administration import TopicLimits, topic_limits
from penstock.core.errors import MissingExtra, Permanent, PlanError
from penstock.sdk import Failure
from servers.kafka import Kafka

JAVA = {
    "21": -973932308, "foobar": -790332482, "abc": 479470107,
    "a-little-bit-long-string": -985981536, "a-little-bit-longer-string": -1486304829,
    "lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
}  # fmt: skip
"""Keys and their hashes in Java, from Kafka's tests of Utils.murmur2."""


def failure_details(failures: list[Failure]) -> list[tuple[int, str, str]]:
    return [(each.index, each.error.code, each.error.message) for each in failures]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_compression(kafka: Kafka, codec: str) -> None:
    topic = kafka.create_topic()
    given = [{"id": number, "text": "x" * 100} for number in range(100)]
    assert not write(sink(kafka, topic, compression=codec), given)
    assert rows(kafka, topic) == given
    (log,) = (kafka.directory.path / "data" / f"{topic}-0").glob("*.log")
    assert ["none", "gzip", "snappy", "lz4", "zstd"][log.read_bytes()[22] & 7] == codec


def test_keys_choose_the_partition_that_java_chooses(kafka: Kafka) -> None:
    topic = kafka.create_topic(partitions=7)
    assert not write(sink(kafka, topic, key="{user}"), [{"user": key} for key in JAVA])
    found = {each.key().decode(): each.partition() for each in kafka.messages(topic)}
    assert found == {key: (hash_ & 0x7FFFFFFF) % 7 for key, hash_ in JAVA.items()}


def test_another_partitioner(kafka: Kafka) -> None:
    topic = kafka.create_topic(partitions=2)
    given = [{"user": f"u{number}"} for number in range(100)]
    assert not write(sink(kafka, topic, key="{user}", partitioner="random"), [*given, *given])
    places = {(each.key(), each.partition()) for each in kafka.messages(topic)}
    assert len(places) > 100


@pytest.mark.parametrize(
    ("key", "row", "expected"),
    [
        ("{a}", {"a": "x"}, b"x"),
        ("{a}", {"a": b"\xff"}, b"\xff"),
        ("{a}", {"a": 7}, b"7"),
        ("{a}", {"a": None}, None),
        ("k", {"a": 7}, b"k"),
        ("{a}-{b}", {"a": "x", "b": 1}, b"x-1"),
        (["a"], {"a": b"\xff"}, b"\xff"),
        (["a", "b"], {"a": "x", "b": 1}, b"x:1"),
        (["a", "b"], {"a": "x", "b": None}, None),
    ],
)
def test_keys(kafka: Kafka, key: Any, row: dict[str, Any], expected: bytes | None) -> None:
    topic = kafka.create_topic()
    types = {"a": pa.string(), "b": pa.int64()}
    schema = pa.schema([(n, types[n] if v is None else pa.scalar(v).type) for n, v in row.items()])
    option = "key" if isinstance(key, str) else "key_columns"
    raw = sink(kafka, topic, **{option: key})
    assert not write(raw, [row], schema=schema)
    assert [each.key() for each in kafka.messages(topic)] == [expected]


def test_the_primary_key_of_an_upsert_is_the_key(kafka: Kafka) -> None:
    topic = kafka.create_topic()
    upserts = sink(kafka, topic)
    upserts.mode, upserts.primary_key = "upsert", ("id",)
    write(upserts, [{"id": 1, "name": "a"}])
    assert [each.key() for each in kafka.messages(topic)] == [b"1"]


def test_headers_by_template(kafka: Kafka) -> None:
    topic = kafka.create_topic()
    headers = {"source": "shop", "user": "{user}"}
    write(sink(kafka, topic, headers=headers), [{"user": "ann"}, {"user": None}])
    assert [each.headers() for each in kafka.messages(topic)] == [
        [("source", b"shop"), ("user", b"ann")],
        [("source", b"shop"), ("user", None)],
    ]


@pytest.mark.parametrize(
    "type_",
    [
        pa.map_(pa.string(), pa.string()),
        pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])),
    ],
)
def test_headers_of_a_column(kafka: Kafka, type_: pa.DataType) -> None:
    topic = kafka.create_topic()
    pairs = [("a", "1"), ("a", "2")] if pa.types.is_map(type_) else [("a", b"1"), ("a", None)]
    given = pairs if pa.types.is_map(type_) else [{"key": k, "value": v} for k, v in pairs]
    schema = pa.schema([("id", pa.int64()), ("h", type_)])
    each = [{"id": 1, "h": given}, {"id": 2, "h": []}, {"id": 3, "h": None}]
    assert not write(
        sink(kafka, topic, headers_column="h", exclude_columns=["h"]), each, schema=schema
    )
    first, empty, none = kafka.messages(topic)
    assert first.headers() == [(k, v.encode() if isinstance(v, str) else v) for k, v in pairs]
    assert not empty.headers() and not none.headers()
    assert json.loads(first.value()) == {"id": 1}


def test_metadata_columns_of_a_source_are_written(kafka: Kafka) -> None:
    topic, copy = kafka.create_topic(partitions=2), kafka.create_topic(partitions=2)
    put(kafka, topic, b'{"id":1}', partition=1, key=b"\xff", headers=[("a", b"1"), ("a", None)])
    (original,) = kafka.messages(topic)
    metadata = source(kafka, topic).metadata_schema()
    row = {"id": 1, "key": original.key(), "partition": 1,
           "headers": [{"key": k, "value": v} for k, v in original.headers()]}  # fmt: skip
    schema = pa.schema([("id", pa.int64()), *(metadata.field(n) for n in list(row)[1:])])
    options = {
        "key": "{key}", "headers_column": "headers", "partition_column": "partition",
        "exclude_columns": ["key", "headers", "partition"],
    }  # fmt: skip
    write(sink(kafka, copy, **options), [row], schema=schema)
    (copied,) = kafka.messages(copy)
    for part in ("key", "headers", "partition", "value"):
        assert getattr(copied, part)() == getattr(original, part)()


def test_the_partition_of_a_column(kafka: Kafka) -> None:
    topic = kafka.create_topic(partitions=3)
    numbers = [2, 0, 3, -1, None]
    given = [{"id": id_, "at": number} for id_, number in enumerate(numbers)]
    failures = write(sink(kafka, topic, partition_column="at", exclude_columns=["at"]), given)
    assert failure_details(failures) == [
        (3, "invalid-partition", "-1 is not a valid partition"),
        (2, "invalid-partition", f'topic "{topic}" has no partition 3'),
    ]
    found = {json.loads(each.value())["id"]: each.partition() for each in kafka.messages(topic)}
    assert (found[0], found[1], len(found)) == (2, 0, 3)


@pytest.mark.parametrize("delivery", ["at_least_once", "exactly_once"])
@pytest.mark.parametrize("zone", ["UTC", None])
def test_the_time_of_a_column(kafka: Kafka, zone: str | None, delivery: str) -> None:
    topic = kafka.create_topic(retention_ms=-1)
    schema = pa.schema([("id", pa.int64()), ("at", pa.timestamp("us", zone))])
    times = [1_577_934_245_678_901, None, 0, -1_000_000, 1_000]
    given = [{"id": id_, "at": at} for id_, at in enumerate(times)]
    options = {"timestamp_column": "at", "exclude_columns": ["at"], "delivery": delivery}
    failures = write(sink(kafka, topic, **options), given, schema=schema)
    assert [(index, code) for index, code, _ in failure_details(failures)] == [
        (2, "invalid-timestamp"), (3, "invalid-timestamp"),
    ]  # fmt: skip
    found = {json.loads(m.value())["id"]: m.timestamp() for m in kafka.messages(topic)}
    assert found[0] == (TIMESTAMP_CREATE_TIME, 1_577_934_245_678)
    assert found[4] == (TIMESTAMP_CREATE_TIME, 1)
    assert found[1][1] > 1_577_934_245_678 and len(found) == 3


@pytest.mark.parametrize(("kind", "taken"), [("CreateTime", [1]), ("LogAppendTime", [0, 1, 2])])
def test_timestamps_outside_of_the_limits(kafka: Kafka, kind: str, taken: list[int]) -> None:
    limits = {"message_timestamp_after_max_ms": 60_000, "message_timestamp_before_max_ms": 60_000}
    topic = kafka.create_topic(message_timestamp_type=kind, **limits)
    times = [datetime(9000, 1, 1, tzinfo=UTC), datetime.now(UTC), datetime(2000, 1, 1, tzinfo=UTC)]
    given = [{"id": id_, "at": at} for id_, at in enumerate(times)]
    failures = write(sink(kafka, topic, timestamp_column="at", exclude_columns=["at"]), given)
    rejected = [(index, "invalid-timestamp") for index in range(3) if index not in taken]
    assert [(index, code) for index, code, _ in failure_details(failures)] == rejected
    assert [row["id"] for row in rows(kafka, topic)] == taken


@pytest.mark.parametrize("delivery", ["at_least_once", "exactly_once"])
def test_a_timestamp_limit_that_was_lowered(kafka: Kafka, delivery: str) -> None:
    limit = "message.timestamp.after.max.ms"
    topic = kafka.create_topic(**{limit: 2**62})
    writes = sink(kafka, topic, timestamp_column="at", delivery=delivery)
    client, given = writes.open(), [{"id": 1, "at": datetime(9000, 1, 1, tzinfo=UTC)}]
    assert not write(writes, given, 0, client=client)
    entry = ConfigEntry(limit, "60000", incremental_operation=AlterConfigOpType.SET)
    changed = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    kafka.admin.incremental_alter_configs([changed])[changed].result(30)
    with pytest.raises(Permanent) as caught:
        for number in range(1, 1000):
            write(writes, given, number, client=client)
    assert caught.value.code == "invalid-timestamp"
    assert limit in (caught.value.hint or "")


@pytest.mark.parametrize("delivery", ["at_least_once", "exactly_once"])
def test_a_null_key_of_a_compacted_topic(kafka: Kafka, delivery: str) -> None:
    topic = kafka.create_topic(**{"cleanup.policy": "compact"})
    given = [{"id": "1"}, {"id": None}, {"id": "3"}]
    failures = write(sink(kafka, topic, key="{id}", delivery=delivery), given)
    assert [(index, code) for index, code, _ in failure_details(failures)] == [(1, "null-key")]
    assert [row["id"] for row in rows(kafka, topic)] == ["1", "3"]


def test_topics_of_columns(kafka: Kafka) -> None:
    prefix = f"orders-{uuid.uuid4().hex[:6]}"
    for country in ("de", "ch"):
        kafka.create_topic(f"{prefix}-{country}")
    given = [{"id": n, "country": c} for n, c in enumerate(["de", "ch", None, "a b", "", "de"])]
    failures = write(sink(kafka, f"{prefix}-{{country}}", exclude_columns=["country"]), given)
    assert failure_details(failures) == [
        (2, "invalid-topic", "null is not a valid topic name"),
        (3, "invalid-topic", f'"{prefix}-a b" is not a valid topic name'),
    ]
    assert rows(kafka, f"{prefix}-de") == [{"id": 0}, {"id": 5}]
    assert rows(kafka, f"{prefix}-ch") == [{"id": 1}]


@pytest.mark.parametrize("delivery", ["at_least_once", "exactly_once"])
@pytest.mark.parametrize("templated", [False, True])
def test_records_of_ten_megabytes(kafka: Kafka, delivery: str, templated: bool) -> None:
    topic = kafka.create_topic(max_message_bytes=12_000_000)
    given = [{"id": n, "topic": topic, "text": str(n) * 10_000_000} for n in range(3)]
    name = "{topic}" if templated else topic
    options = {"exclude_columns": ["topic"], "delivery": delivery}
    assert not write(sink(kafka, name, **options), given)
    kafka.await_visible(topic)
    assert [(each["id"], len(each["text"])) for each in rows(kafka, topic)] == [
        (n, 10_000_000) for n in range(3)
    ]


@pytest.mark.parametrize("templated", [False, True])
def test_a_record_that_is_too_large(kafka: Kafka, templated: bool) -> None:
    topic = kafka.create_topic(max_message_bytes=50_000)
    given = [{"id": 1, "topic": topic, "text": "x" * length} for length in (10, 60_000, 49_000, 10)]
    name = "{topic}" if templated else topic
    failures = write(sink(kafka, name, key="{id}"), given)
    [(index, code, message)] = failure_details(failures)
    assert (index, code) == (1, "too-large")
    assert message.startswith("expected a record of at most 50,000 bytes, found 60,")
    assert len(rows(kafka, topic)) == 3


@pytest.mark.parametrize("templated", [False, True])
@pytest.mark.parametrize("limit", [50_000, 3_000_000])
def test_limits_that_are_known_late(
    kafka: Kafka, limit: int, templated: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = kafka.create_topic(max_message_bytes=limit)
    answers = iter([TopicLimits(known=False)] * 3)
    monkeypatch.setattr(
        "penstock.connectors.kafka.administration.topic_limits",
        lambda admin, name: next(answers, None) or topic_limits(admin, name),
    )
    name = "{topic}" if templated else topic
    given = [{"id": n, "topic": topic, "text": "x" * (limit - (-1) ** n * 500)} for n in range(4)]
    failures = write(sink(kafka, name, key="{id}"), given)
    assert [(index, code) for index, code, _ in failure_details(failures)] == [
        (1, "too-large"), (3, "too-large"),
    ]  # fmt: skip
    assert [each["id"] for each in rows(kafka, topic)] == [0, 2]


@pytest.mark.parametrize("delivery", ["at_least_once", "exactly_once"])
@pytest.mark.parametrize("templated", [False, True])
def test_records_that_exceed_the_limit_of_a_topic_together(
    kafka: Kafka, delivery: str, templated: bool
) -> None:
    topics = [kafka.create_topic(max_message_bytes=20_000), kafka.create_topic()]
    given = [{"id": n, "topic": topics[n % 2], "text": "x" * 3_000} for n in range(40)]
    if templated:
        assert not write(sink(kafka, "{topic}", delivery=delivery), given, 1)
    else:
        assert not write(sink(kafka, topics[0], delivery=delivery), given[::2])
    for topic in topics:
        kafka.await_visible(topic)
    assert [each["id"] for each in rows(kafka, topics[0])] == list(range(0, 40, 2))
    assert len(rows(kafka, topics[1])) == 20 * templated


def test_more_records_than_the_queue_holds(kafka: Kafka) -> None:
    topic = kafka.create_topic()
    small = {"queue.buffering.max.messages": 100}
    given = [{"id": number} for number in range(2000)]
    assert not write(sink(kafka, topic, properties=small), given)
    assert rows(kafka, topic) == given


def test_unknown_columns(kafka: Kafka) -> None:
    columns = pa.schema([("user", pa.string()), ("tags", pa.list_(pa.string()))])
    for options, option in [
        ({"key": "{usr}"}, "key"), ({"partition_column": "usr"}, "partition_column"),
        ({"headers_column": "usr"}, "headers_column"),
        ({"key_columns": ["user", "usr"]}, "key_columns"),
        ({"headers": {"a": "{usr}"}}, "headers.a"),
        ({"exclude_columns": ["usr"]}, "exclude_columns"),
        ({"topic": "a-{usr}"}, "topic"), ({"timestamp_column": "usr"}, "timestamp_column"),
    ]:  # fmt: skip
        given: dict[str, Any] = {"topic": "t", **options}
        with pytest.raises(PlanError) as caught:
            sink(kafka, **given).check_schema(columns)
        assert caught.value.message == f'{option}: unknown column "usr"'
        assert caught.value.hint == 'did you mean "user"?'
    for given in (
        {"key": "{tags}"}, {"partition_column": "user"}, {"headers_column": "user"},
        {"timestamp_column": "user"},
    ):  # fmt: skip
        with pytest.raises(PlanError) as caught:
            sink(kafka, "t", **given).check_schema(columns)
        assert caught.value.code == "wrong-type"


def test_a_topic_is_created(kafka: Kafka) -> None:
    name = f"new-{uuid.uuid4().hex[:6]}"
    create = {"partitions": 3, "config": {"cleanup.policy": "compact"}}
    creates = sink(kafka, name, create=create)
    creates.check()
    assert name not in kafka.admin.list_topics(timeout=10).topics
    for _ in range(2):
        creates.recover()
    with pytest.raises(Permanent) as caught:
        write(creates, [{"id": 1}])
    assert caught.value.hint == "Set key: a compacted topic requires keys."
    assert not write(sink(kafka, name, key="{id}"), [{"id": 1}])
    assert len(kafka.admin.list_topics(name, timeout=10).topics[name].partitions) == 3
    assert rows(kafka, name) == [{"id": 1}]
    with pytest.raises(Permanent) as caught:
        sink(kafka, f"{name}2", create={"config": {"cleanup.polic": "compact"}}).recover()
    assert "cleanup.polic" in caught.value.message


def test_an_unknown_topic(kafka: Kafka) -> None:
    topic = kafka.create_topic()
    with pytest.raises(Permanent) as caught:
        sink(kafka, topic[:-1]).check()
    assert caught.value.message == f'cannot find topic "{topic[:-1]}"'
    assert f'did you mean "{topic}"?' in (caught.value.hint or "")
    assert "create" in (caught.value.hint or "")


@pytest.mark.parametrize("make", [source, sink])
def test_an_unknown_property_is_reported_without_a_network(make: Any) -> None:
    make("nobody:1", "t", properties={"linger.ms": 5, "socket.keepalive.enable": True}).validate()
    for name, value in [("lingr.ms", 5), ("linger.ms", "soon"), ("compression.level", 99)]:
        with pytest.raises(PlanError) as caught:
            make("nobody:1", "t", properties={name: value}).validate()
        assert caught.value.code == "invalid-property"
        assert caught.value.hint is not None


@pytest.mark.parametrize("make", [source, sink])
def test_the_library_is_missing(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    with pytest.raises(MissingExtra) as caught:
        make("nobody:1", "t").validate()
    assert caught.value.hint == "Run pip install 'penstock[kafka]'."


def test_an_aborted_batch_does_not_affect_the_next(kafka: Kafka) -> None:
    topic = kafka.create_topic()
    writes = sink(kafka, topic)
    client = writes.open()
    first = Writing(writes, client=client)
    first.write([{"id": number} for number in range(1000)])
    first.abort()
    again = Writing(writes, client=client)
    again.write([{"id": 1000}])
    again.commit()
    assert rows(kafka, topic)[-1] == {"id": 1000}
