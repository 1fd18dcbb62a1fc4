"""What is particular to MQTT: wildcards, retained messages, wills, properties, rights, TLS."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from taking import Take, Taking
from writing import written

from penstock.connectors.mqtt import MqttSink, MqttSource
from penstock.core.errors import PlanError
from penstock.sdk import Context, Failure, Permanent
from servers.certificates import Authority
from servers.mosquitto import Mosquitto, Subscriber


@pytest.fixture
def subscribed(taking: Take, mosquitto: Mosquitto, tmp_path: Path) -> Callable[..., Taking]:
    counter = count()

    def subscribed(**options: Any) -> Taking:
        given = {**mosquitto.login, "client_id": tmp_path.name, **options}
        state = tmp_path / f"{next(counter)}"
        source = MqttSource(MqttSource.config_type.model_validate(given), Context(state=state))
        return taking(source)

    return subscribed


def published(broker: Mosquitto, rows: list[dict[str, Any]], **options: Any) -> list[Failure]:
    """Writes rows whose column `text` is the payload."""
    sink = MqttSink(MqttSink.config_type.model_validate({**broker.login, **options}))
    return written(sink, rows)


def heard(subscriber: Subscriber, count: int) -> list[Any]:
    """What a subscriber got, once there is so much."""
    until = time.monotonic() + 20
    while len(subscriber.messages) < count:
        assert time.monotonic() < until, f"{len(subscriber.messages)} of {count}"
        time.sleep(0.01)
    return subscriber.messages


@pytest.fixture
def tls_mosquitto(tmp_path: Path) -> Iterator[tuple[Mosquitto, Path]]:
    """A broker that also listens with TLS, and the file of the authority that it is trusted by."""
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
    published(mosquitto, [{"text": "old"}], topic=topic, retain=True, version=version)
    source = subscribed(topic=topic, retained=retained, version=version)
    mosquitto.publish(topic, [b"new"])
    told = [(row["payload"], row["retained"]) for row in source.rows(1 + retained, "retained")]
    assert told == [(b"old", True), (b"new", False)][not retained :]


def test_properties_come_and_go(mosquitto: Mosquitto, subscribed: Any) -> None:
    topic = mosquitto.new_topic()
    source = subscribed(topic=topic)
    rows = [{"text": "1", "user": "u1"}, {"text": "2", "user": None}]
    given = {"kind": "k", "user": "{user}"}
    published(mosquitto, rows, topic=topic, content_type="text/plain", properties=given)
    one, two = source.rows(2, "properties", "content_type", "response_topic", "correlation_data")
    assert (
        one["properties"] == [("kind", "k"), ("user", "u1")] and one["content_type"] == "text/plain"
    )
    assert two["properties"] == [("kind", "k")]


def test_what_was_published_while_we_were_away(mosquitto: Mosquitto, subscribed: Any) -> None:
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


def test_a_session_that_expires(mosquitto: Mosquitto, subscribed: Any) -> None:
    topic = mosquitto.new_topic()
    subscribed(topic=topic, session_expiry="0s").receiving.close()
    mosquitto.publish(topic, [b"1"])
    source = subscribed(topic=topic, session_expiry="0s")
    mosquitto.publish(topic, [b"2"])
    assert [row["payload"] for row in source.rows(1)] == [b"2"]


def test_packets_that_are_too_large_do_not_come(mosquitto: Mosquitto, subscribed: Any) -> None:
    topic = mosquitto.new_topic()
    source = subscribed(topic=topic, max_packet_size="1KB")
    mosquitto.publish(topic, [b"x" * 2000, b"small"])
    assert [row["payload"] for row in source.rows(1)] == [b"small"]


def test_a_largest_packet_needs_version_5() -> None:
    given = {"url": "mqtt://localhost", "topic": "a", "max_packet_size": 1000, "version": "3.1.1"}
    with pytest.raises(ValueError, match='max_packet_size needs version: "5"'):
        MqttSource.config_type.model_validate(given)


def test_the_will(mosquitto: Mosquitto, subscribed: Any) -> None:
    topic = mosquitto.new_topic()
    will = {"topic": f"{topic}/gone", "payload": "bye", "qos": 1}
    with Subscriber(mosquitto, f"{topic}/gone") as subscriber:
        subscribed(topic=topic, will=will).receiving.receiver.kill()
        assert heard(subscriber, 1)[0].payload == b"bye"


def test_topics_of_columns(mosquitto: Mosquitto) -> None:
    top = mosquitto.new_topic()
    rows = [{"text": "1", "room": "a"}, {"text": "2", "room": "b+"}, {"text": "3", "room": None}]
    with Subscriber(mosquitto, f"{top}/#") as subscriber:
        failures = published(mosquitto, rows, topic=f"{top}/{{room}}")
        (message,) = heard(subscriber, 1)
    assert (message.topic, message.payload) == (f"{top}/a", b"1")
    assert [(f.index, f.error.code) for f in failures] == [(1, "topic"), (2, "topic")]


def test_a_refused_message_is_a_bad_row(mosquitto: Mosquitto) -> None:
    """MQTT 5 tells; before, a broker takes it and says nothing."""
    top = mosquitto.new_topic()
    rows = [{"text": "1", "topic": "forbidden/x"}, {"text": "2", "topic": top}]
    (failure,) = published(mosquitto, rows, topic="{topic}")
    assert failure.index == 0 and "authori" in failure.error.message.lower()


@pytest.mark.parametrize(
    ("topic", "said"),
    [("a/#/b", "last level"), ("a/b#", "last level"), ("a/x+", "level alone"), ("", "1 to 65,535")],
)
def test_topics_that_cannot_be(topic: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        MqttSource.config_type.model_validate({"url": "mqtt://localhost", "topic": topic})
    if topic:
        with pytest.raises(ValueError, match="no \\+ and no #"):
            MqttSink.config_type.model_validate({"url": "mqtt://localhost", "topic": topic})


def test_a_column_that_is_not_there() -> None:
    given = {"url": "mqtt://localhost", "topic": "a/{rom}"}
    sink = MqttSink(MqttSink.config_type.model_validate(given))
    with pytest.raises(PlanError) as caught:
        sink.accepts(pa.schema([("room", pa.string())]))
    assert caught.value.message == 'topic names "rom", and there is no such column'


def test_a_certificate_that_is_not_trusted(tls_mosquitto: Any) -> None:
    broker, root = tls_mosquitto
    given = {**broker.login, "url": f"mqtts://127.0.0.1:{broker.tls_port}", "topic": "allowed/x"}
    for component in (MqttSource, MqttSink):
        component(component.config_type.model_validate({**given, "tls": {"ca": str(root)}})).check()
        with pytest.raises(Permanent, match="not trusted") as caught:
            component(component.config_type.model_validate(given)).check()
        assert "ca" in (caught.value.hint or "")
