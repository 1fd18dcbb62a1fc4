"""MQTT: wildcards, retained messages, Last Will, headers, permissions, TLS."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from receiving_here import ReceivingHere
from taking import Take, Taking
from writing import FIRST, written

from penstock.connectors.mqtt import MqttSink, MqttSource
from penstock.core.errors import PlanError
from penstock.sdk import Capability, Context, Failure, Permanent
from penstock.testing.contract.receiving import Receiving
from servers.certificates import Authority
from servers.mosquitto import Mosquitto, Subscriber


@pytest.fixture
def subscribed(taking: Take, mosquitto: Mosquitto, tmp_path: Path) -> Callable[..., Taking]:
    counter = count()

    def subscribed(receiving: Any = ReceivingHere, **options: Any) -> Taking:
        given = {**mosquitto.login, "client_id": tmp_path.name, **options}
        state = tmp_path / f"{next(counter)}"
        source = MqttSource(MqttSource.config_type.model_validate(given), Context(state=state))
        return taking(source, partial(Taking, receiving=receiving))

    return subscribed


def publish_rows(broker: Mosquitto, rows: list[dict[str, Any]], **options: Any) -> list[Failure]:
    """Writes rows whose column `text` is the payload."""
    sink = MqttSink(MqttSink.config_type.model_validate({**broker.login, **options}))
    return written(sink, rows)


def await_messages(subscriber: Subscriber, count: int) -> list[Any]:
    """Returns the messages of a subscriber once there are `count`."""
    until = time.monotonic() + 20
    while len(subscriber.messages) < count:
        assert time.monotonic() < until, f"{len(subscriber.messages)} of {count}"
        time.sleep(0.01)
    return subscriber.messages


@pytest.fixture
def tls_mosquitto(tmp_path: Path) -> Iterator[tuple[Mosquitto, Path]]:
    """A broker that also listens with TLS, and the file of its CA certificate."""
    authority = Authority(tmp_path)
    with Mosquitto(certificate=authority.issue("broker")) as broker:
        yield broker, authority.root


def test_wildcards_and_topics(mosquitto: Mosquitto, subscribed: Any) -> None:
    top = mosquitto.new_topic()
    source = subscribed(topic=[f"{top}/+/heat", f"{top}/all/#"])
    for topic in ("a/heat", "a/light", "b/heat", "all/x/y", "all"):
        mosquitto.publish(f"{top}/{topic}", [topic.encode()])
    rows = source.rows(4, "topic", "qos")
    assert {row["topic"] for row in rows} == {
        f"{top}/{t}" for t in ("a/heat", "b/heat", "all/x/y", "all")
    }
    assert all(
        row["topic"] == f"{top}/{row['payload'].decode()}" and row["qos"] == 1 for row in rows
    )


@pytest.mark.parametrize("version", ["3.1.1", "5"])
@pytest.mark.parametrize("retained", [True, False])
def test_retained_messages(
    mosquitto: Mosquitto, subscribed: Any, version: str, retained: bool
) -> None:
    topic = mosquitto.new_topic()
    publish_rows(mosquitto, [{"text": "old"}], topic=topic, retain=True, version=version)
    source = subscribed(topic=topic, retained=retained, version=version)
    mosquitto.publish(topic, [b"new"])
    rows = [(row["payload"], row["retained"]) for row in source.rows(1 + retained, "retained")]
    assert rows == [(b"old", True), (b"new", False)][not retained :]


def test_headers(mosquitto: Mosquitto, subscribed: Any) -> None:
    topic = mosquitto.new_topic()
    source = subscribed(topic=topic)
    rows = [{"text": "1", "user": "u1"}, {"text": "2", "user": None}]
    headers = {"kind": "k", "user": "{user}"}
    publish_rows(mosquitto, rows, topic=topic, content_type="text/plain", headers=headers)
    first, second = source.rows(2, "headers", "content_type", "response_topic", "correlation_data")
    assert first["headers"] == [("kind", "k"), ("user", "u1")]
    assert first["content_type"] == "text/plain"
    assert second["headers"] == [("kind", "k")]


def test_messages_are_kept_while_disconnected(mosquitto: Mosquitto, subscribed: Any) -> None:
    topic = mosquitto.new_topic()
    first = subscribed(topic=topic)
    first.receiving.close()
    mosquitto.publish(topic, [b"1", b"2"])
    second = subscribed(topic=topic)
    assert [row["payload"] for row in second.rows(2)] == [b"1", b"2"]
    second.receiving.close()
    mosquitto.publish(topic, [b"3"])
    third = subscribed(topic=topic, clean_start=True)
    mosquitto.publish(topic, [b"4"])
    assert [row["payload"] for row in third.rows(1)] == [b"4"]


def test_session_ttl(mosquitto: Mosquitto, subscribed: Any) -> None:
    topic = mosquitto.new_topic()
    subscribed(topic=topic, session_ttl="0s").receiving.close()
    mosquitto.publish(topic, [b"1"])
    source = subscribed(topic=topic, session_ttl="0s")
    mosquitto.publish(topic, [b"2"])
    assert [row["payload"] for row in source.rows(1)] == [b"2"]


def test_max_message_size(mosquitto: Mosquitto, subscribed: Any) -> None:
    topic = mosquitto.new_topic()
    source = subscribed(topic=topic, max_message_size="1KB")
    mosquitto.publish(topic, [b"x" * 2000, b"small"])
    assert [row["payload"] for row in source.rows(1)] == [b"small"]


def test_max_message_size_requires_version_5() -> None:
    config = {"url": "mqtt://localhost", "topic": "a", "max_message_size": 1000, "version": "3.1.1"}
    with pytest.raises(ValueError, match='max_message_size requires version: "5"'):
        MqttSource.config_type.model_validate(config)


def test_the_last_will(mosquitto: Mosquitto, subscribed: Any) -> None:
    topic = mosquitto.new_topic()
    will = {"topic": f"{topic}/gone", "payload": "bye", "qos": 1}
    with Subscriber(mosquitto, f"{topic}/gone") as subscriber:
        subscribed(Receiving, topic=topic, will=will).receiving.receiver.kill()
        assert await_messages(subscriber, 1)[0].payload == b"bye"


def test_topics_from_columns(mosquitto: Mosquitto) -> None:
    top = mosquitto.new_topic()
    rows = [{"text": "1", "room": "a"}, {"text": "2", "room": "b+"}, {"text": "3", "room": None}]
    with Subscriber(mosquitto, f"{top}/#") as subscriber:
        failures = publish_rows(mosquitto, rows, topic=f"{top}/{{room}}")
        (message,) = await_messages(subscriber, 1)
    assert (message.topic, message.payload) == (f"{top}/a", b"1")
    assert [(f.index, f.error.code) for f in failures] == [
        (1, "invalid-topic"),
        (2, "invalid-topic"),
    ]


def test_a_rejected_message_is_a_dead_letter(mosquitto: Mosquitto) -> None:
    """MQTT 5 only: a broker drops it silently in version 3.1.1."""
    top = mosquitto.new_topic()
    rows = [{"text": "1", "topic": "forbidden/x"}, {"text": "2", "topic": top}]
    (failure,) = publish_rows(mosquitto, rows, topic="{topic}")
    assert failure.index == 0 and "authori" in failure.error.message.lower()


def test_a_missing_column() -> None:
    config = {"url": "mqtt://localhost", "topic": "a/{rom}"}
    sink = MqttSink(MqttSink.config_type.model_validate(config))
    with pytest.raises(PlanError) as caught:
        sink.check_schema(pa.schema([("room", pa.string())]))
    assert caught.value.message == 'topic: unknown column "rom"'


def test_tls_verification(tls_mosquitto: Any) -> None:
    broker, root = tls_mosquitto
    options = {**broker.login, "url": f"mqtts://127.0.0.1:{broker.tls_port}", "topic": "allowed/x"}
    for component in (MqttSource, MqttSink):
        component(
            component.config_type.model_validate({**options, "tls": {"ca": str(root)}})
        ).check()
        with pytest.raises(Permanent, match="TLS verification") as caught:
            component(component.config_type.model_validate(options)).check()
        assert "ca" in (caught.value.hint or "")


def test_a_delete_clears_the_retained_message(mosquitto: Mosquitto) -> None:
    room = mosquitto.new_topic()
    options = {**mosquitto.login, "topic": room + "/{id}", "retain": True}
    sink = MqttSink(MqttSink.config_type.model_validate(options))
    assert {Capability.UPSERT, Capability.DELETE} <= sink.capabilities
    rows = pa.RecordBatch.from_pylist([{"id": 1}, {"id": 2}, {"id": 3}])
    client = sink.open()
    try:
        for operations, payloads in ((["i"] * 3, [b"a", b"b", b"c"]), (["u", "d", "d"], [b"d"])):
            writer = sink.writer(client, FIRST, 0, rows.schema)
            values = pa.array([*payloads, None, None][:3], pa.binary())
            assert not writer.write(rows, values, pa.array(operations))
            writer.commit()
    finally:
        client.close()
    with Subscriber(mosquitto, room + "/#") as subscriber:
        mosquitto.publish(room + "/last", [b"last"])
        until = time.monotonic() + 20
        while not any(message.payload == b"last" for message in subscriber.messages):
            assert time.monotonic() < until
            time.sleep(0.01)
        kept = [(m.topic, m.payload) for m in subscriber.messages if m.retain]
    assert kept == [(f"{room}/1", b"d")]
    publish_rows(mosquitto, [{"text": ""}], topic=f"{room}/1", retain=True)


def test_a_retained_topic_contains_the_primary_key(mosquitto: Mosquitto) -> None:
    options = {**mosquitto.login, "topic": "rooms", "retain": True}
    sink = MqttSink(MqttSink.config_type.model_validate(options))
    sink.mode, sink.primary_key = "upsert", ("id",)
    with pytest.raises(PlanError, match="overwrite each other"):
        sink.check_schema(pa.schema([("id", pa.int32())]))
