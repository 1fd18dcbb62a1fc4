"""The Pulsar sink: keys, headers, timestamps, batching, and rejections."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from writing import written

from penstock.connectors.pulsar import PulsarSink
from penstock.core.errors import ValidationErrors
from penstock.sdk import Permanent
from servers.pulsar import LARGEST, Pulsar


def made(pulsar: Pulsar, **options: Any) -> PulsarSink:
    return PulsarSink(PulsarSink.config_type.model_validate({**pulsar.login, **options}))


def sent(pulsar: Pulsar, count: int, **options: Any) -> list[Any]:
    """Writes the rows `0`, `1` and so on. Returns the messages."""
    topic = pulsar.new_topic()
    rows = [{"text": str(each), "key": "ab"[each % 2]} for each in range(count)]
    assert not written(made(pulsar, topic=topic, **options), rows)
    return pulsar.messages(topic)


def entries(messages: Sequence[Any]) -> int:
    return len({message.message_id().entry_id() for message in messages})


def test_unknown_columns() -> None:
    options = {
        "url": "pulsar://localhost", "topic": "{a}", "key": "{b}", "ordering_key": "{c}",
        "headers": {"Who": "{d}"}, "event_time_column": "text",
    }  # fmt: skip
    sink = PulsarSink(PulsarSink.config_type.model_validate(options))
    with pytest.raises(ValidationErrors) as caught:
        sink.check_schema(pa.schema([("text", pa.string())]))
    errors = [error.message for error in caught.value.errors]
    assert len(errors) == 5 and all(any(f'"{name}"' in each for each in errors) for name in "abcd")


def test_message_properties(pulsar: Pulsar) -> None:
    topic = pulsar.new_topic()
    sink = made(
        pulsar, topic=topic, key="k-{who}", ordering_key="o-{who}", event_time_column="at",
        headers={"Who": "{who}", "Made": "up"},
    )  # fmt: skip
    at = datetime(2024, 5, 1, 9, 30, 0, 123_000, UTC)
    rows = [{"text": "1", "who": "ann", "at": at}, {"text": "2", "who": None, "at": None}]
    assert not written(sink, rows)
    first, second = pulsar.messages(topic)
    assert (first.partition_key(), first.ordering_key()) == ("k-ann", "o-ann")
    assert first.properties() == {"Who": "ann", "Made": "up"}
    assert first.event_timestamp() == round(at.timestamp() * 1000)
    assert (second.partition_key(), second.ordering_key()) == ("", "")
    assert (second.properties(), second.event_timestamp()) == ({"Made": "up"}, 0)


def test_topics_from_columns(pulsar: Pulsar) -> None:
    one, other = pulsar.new_topic(), pulsar.new_topic()
    topics = [one, other, None, "a/b", one]
    rows = [{"text": str(at), "to": topic} for at, topic in enumerate(topics)]
    failures = written(made(pulsar, topic="{to}"), rows)
    assert [(each.index, each.error.code) for each in failures] == [
        (2, "invalid-topic"), (3, "invalid-topic"),
    ]  # fmt: skip
    assert [message.data() for message in pulsar.messages(one)] == [b"0", b"4"]
    assert [message.data() for message in pulsar.messages(other)] == [b"1"]


def test_an_invalid_topic_is_permanent(pulsar: Pulsar) -> None:
    for topic in ("a/b", "persistent://public/nowhere/a"):
        sink = made(pulsar, topic=topic)
        with pytest.raises(Permanent):
            sink.check()
        with pytest.raises(Permanent):
            written(sink, [{"text": "1"}])


def test_keys_select_the_partition(pulsar: Pulsar) -> None:
    topic = pulsar.new_topic(partitions=4)
    rows = [{"text": str(at), "key": f"k{at % 8}"} for at in range(32)]
    assert not written(made(pulsar, topic=topic, key="{key}"), rows)
    found = pulsar.messages(topic)
    places = {(message.partition_key(), message.topic_name()) for message in found}
    assert len(found) == 32 and len(places) == 8


def test_messages_are_batched(pulsar: Pulsar) -> None:
    assert entries(sent(pulsar, 20)) == 1
    assert entries(sent(pulsar, 20, batching={"max_records": 5})) == 4
    assert entries(sent(pulsar, 20, batching={"max_size": "8 B"})) > 1
    assert entries(sent(pulsar, 20, batching=False)) == 20


def test_batches_by_key(pulsar: Pulsar) -> None:
    found = sent(pulsar, 20, batching={"by_key": True}, key="{key}")
    assert entries(found) == 2
    assert [message.partition_key() for message in found] == ["a"] * 10 + ["b"] * 10


@pytest.mark.parametrize("compression", ["none", "lz4", "zlib", "zstd", "snappy"])
def test_messages_are_compressed(pulsar: Pulsar, compression: str) -> None:
    topic = pulsar.new_topic()
    text = "made up " * 50_000
    assert not written(made(pulsar, topic=topic, compression=compression), [{"text": text}])
    assert [message.data().decode() for message in pulsar.messages(topic)] == [text]
    size = pulsar.admin("GET", f"persistent/public/default/{topic}/stats")["bytesInCounter"]
    assert (size < len(text) // 2) is (compression != "none")


def test_large_messages_are_chunked_or_rejected(pulsar: Pulsar) -> None:
    rows = [{"text": "x" * (LARGEST + 1)}, {"text": "y"}]
    topic = pulsar.new_topic()
    failures = written(made(pulsar, topic=topic), rows)
    assert [(each.index, each.error.code) for each in failures] == [(0, "too-large")]
    topic = pulsar.new_topic()
    assert not written(made(pulsar, topic=topic, batching=False, chunking=True), rows)
    assert [len(message.data()) for message in pulsar.messages(topic)] == [LARGEST + 1, 1]


def test_messages_are_delayed(pulsar: Pulsar) -> None:
    import pulsar as client_library

    topic = pulsar.new_topic()
    with pulsar.client() as client:
        consumer = client.subscribe(topic, "s", client_library.ConsumerType.Shared)
        written(made(pulsar, topic=topic, delay="1h"), [{"text": "late"}])
        written(made(pulsar, topic=topic), [{"text": "now"}])
        assert consumer.receive(30_000).data() == b"now"
        with pytest.raises(client_library.Timeout):
            consumer.receive(500)
