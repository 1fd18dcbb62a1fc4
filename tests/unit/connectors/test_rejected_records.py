"""Records that a system cannot accept are rejected one by one, without a server."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from penstock.connectors.http.config import HttpSinkConfig
from penstock.connectors.kafka import writer
from penstock.connectors.kafka.administration import TopicLimits
from penstock.connectors.kafka.config import KafkaSinkConfig
from penstock.connectors.kafka.records import RecordMapping
from penstock.connectors.kafka.writer import RecordProducer
from penstock.connectors.mqtt.writer import MAX_PACKET_BYTES, OutgoingMessage, packet_size
from penstock.connectors.nats.subjects import subject_error
from penstock.connectors.pulsar.config import PulsarSinkConfig
from penstock.connectors.pulsar.writer import PulsarWriter
from penstock.connectors.redis.config import RedisSinkConfig
from penstock.connectors.redis.errors import row_error
from penstock.core.errors import Permanent, Rejected


class Producer:
    """A producer of librdkafka that knows the topic `known` and keeps what it is given."""

    def __init__(self) -> None:
        self.sent: list[Any] = []

    def produce(self, topic: str, value: bytes | None = None, key: Any = None, **_: Any) -> None:
        self.sent.append((topic, key))

    def list_topics(self, topic: str, timeout: float) -> Any:
        error = None if topic == "known" else SimpleNamespace(name=lambda: "UNKNOWN_TOPIC_OR_PART")
        return SimpleNamespace(topics={topic: SimpleNamespace(error=error, partitions={0: 0})})


@pytest.fixture
def producer(monkeypatch: pytest.MonkeyPatch) -> Callable[[TopicLimits], RecordProducer]:
    monkeypatch.setattr(writer, "create_producer", lambda *_: (Producer(), SimpleNamespace()))
    config = KafkaSinkConfig.model_validate({"brokers": "b:1", "topic": "known"})
    properties = {"batch.size": 0, "message.max.bytes": 1_000_000}
    return lambda limits: RecordProducer(config, properties, lambda topic: limits, "known")


def codes(failures: Any) -> dict[int, str | None]:
    return {failure.index: failure.error.code for failure in failures}


ROWS = pa.record_batch({"id": ["1", None, "3"], "topic": ["known", "missing", "known"]})


@pytest.mark.parametrize(
    ("keyed", "upserts", "options", "rejected"),
    [
        (True, False, {"key": "{id}"}, {1: "null-key"}),
        (False, True, {"key": "{id}"}, {1: "null-key"}),
        (False, False, {"key": "{id}"}, {}),
        (True, False, {"key": "{id}", "headers": {"h": "{topic}"}}, {1: "null-key"}),
        (True, False, {}, {}),
    ],
)
def test_a_null_key_of_a_compacted_topic(
    producer: Any, keyed: bool, upserts: bool, options: dict[str, Any], rejected: dict[int, str]
) -> None:
    config = KafkaSinkConfig.model_validate({"brokers": "b:1", "topic": "known", **options})
    fields = RecordMapping(config, (), upserts=upserts).fields(ROWS)
    records = producer(TopicLimits(keyed=keyed))
    assert codes(records.send([b"{}"] * 3, fields)) == rejected
    assert len(records.producer.sent) == 3 - len(rejected)  # type: ignore[attr-defined]


def test_an_unknown_topic_of_a_row(producer: Any) -> None:
    config = KafkaSinkConfig.model_validate({"brokers": "b:1", "topic": "{topic}"})
    records = producer(TopicLimits(known=False))
    fields = RecordMapping(config, ()).fields(ROWS)
    assert codes(records.send([b"{}"] * 3, fields)) == {1: "unknown-topic"}


def test_the_size_of_a_key_is_in_bytes(producer: Any) -> None:
    config = KafkaSinkConfig.model_validate({"brokers": "b:1", "topic": "known", "key": "{id}"})
    rows = pa.record_batch({"id": ["ä" * 300, "a" * 300]})
    records = producer(TopicLimits(size=700))
    fields = RecordMapping(config, ()).fields(rows)
    assert codes(records.check([b"{}"] * 2, fields)) == {0: "too-large"}


def test_times_before_1970_of_pulsar() -> None:
    config = PulsarSinkConfig.model_validate(
        {"url": "pulsar://localhost:6650", "topic": "t", "event_time_column": "at"}
    )
    times = [datetime(1969, 12, 31, tzinfo=UTC), datetime(2024, 1, 1, tzinfo=UTC), None]
    rows = pa.record_batch({"at": pa.array(times, pa.timestamp("us", "UTC"))})
    writer = PulsarWriter(None, config)  # type: ignore[arg-type]
    first, *others = writer.messages(rows, pa.array([b"1", b"2", b"3"]))
    assert isinstance(first, Rejected) and first.code == "invalid-timestamp"
    assert [isinstance(each, Rejected) for each in others] == [False, False]


@pytest.mark.parametrize(("size", "is_error"), [(3900, False), (3901, True)])
def test_a_subject_longer_than_the_control_line(size: int, is_error: bool) -> None:
    assert (subject_error("s" * size) is not None) is is_error


def test_a_packet_larger_than_the_protocol_allows() -> None:
    message = OutgoingMessage("t", b"x" * 100, [("name", "value")])
    assert packet_size(message) > 100 and packet_size(message) < MAX_PACKET_BYTES


@pytest.mark.quick(1)
@pytest.mark.parametrize("has_own_key", [True, False])
def test_a_key_of_redis_without_permission(has_own_key: bool) -> None:
    from redis.exceptions import NoPermissionError

    config = RedisSinkConfig.model_validate({"url": "redis://localhost", "key": "{id}"})
    error = NoPermissionError("No permissions to access a key")
    if has_own_key:
        assert row_error(error, config, has_own_key=True).code == "authorization"
    else:
        with pytest.raises(Permanent, match="denied permission"):
            row_error(error, config)


@pytest.mark.parametrize(
    ("url", "status", "rejects"),
    [
        ("http://localhost/{id}", 404, True),
        ("http://localhost/{id}", 414, True),
        ("http://localhost/{id}", 401, False),
        ("http://localhost/all", 404, False),
        ("http://localhost/all", 400, True),
    ],
)
def test_statuses_of_one_url(url: str, status: int, rejects: bool) -> None:
    assert HttpSinkConfig.model_validate({"url": url}).is_rejection(status) is rejects
