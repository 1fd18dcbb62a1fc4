"""RabbitMQ: creation, bindings, headers, permissions, errors, TLS."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from taking import Take, Taking

from penstock.connectors.rabbitmq import RabbitmqSink, RabbitmqSource, RabbitmqStreamSource
from penstock.sdk import Context, Permanent
from servers.rabbitmq import OTHER_HOST, Rabbit


@pytest.fixture
def received(taking: Take, rabbitmq: Rabbit, tmp_path: Path) -> Callable[..., Taking]:
    counter = count()

    def received(**options: Any) -> Taking:
        state = tmp_path / f"{next(counter)}"
        config = RabbitmqSource.config_type.model_validate({**rabbitmq.login, **options})
        source = RabbitmqSource(config, Context("tests", state.name, state))
        source.check()
        return taking(source)

    return received


@pytest.fixture
def queue(rabbitmq: Rabbit) -> Iterator[str]:
    name = rabbitmq.new_queue()
    yield name
    rabbitmq.delete(name)


def named() -> str:
    return f"made-up-{uuid.uuid4().hex[:12]}"


def bodies(broker: Rabbit, queue: str) -> list[bytes]:
    return [message.body for message in broker.messages(queue)]


# The source


@pytest.mark.parametrize("kind", ["classic", "quorum"])
def test_a_queue_is_created_and_bound(rabbitmq: Rabbit, received: Any, kind: str) -> None:
    exchange, queue = named(), named()
    bind = {"exchange": exchange, "routing_key": ["order.*.large", "order.eu.#"], "create": True}
    source = received(queue=queue, create={"type": kind}, bind=[bind])
    for key in ("order.us.large", "order.us.small", "order.eu", "order.eu.small"):
        rabbitmq.publish(key, [key.encode()], exchange)
    assert source.payloads(3) == [b"order.us.large", b"order.eu", b"order.eu.small"]
    declared = RabbitmqSink.config_type.model_validate(
        {**rabbitmq.login, "exchange": exchange, "create": {"type": "direct"}}
    )
    with pytest.raises(Permanent, match="inequivalent arg 'type'"):
        RabbitmqSink(declared).open()
    again = RabbitmqSource.config_type.model_validate(
        {**rabbitmq.login, "queue": queue, "create": {"type": kind, "durable": True}}
    )
    RabbitmqSource(again).check()


def test_a_queue_is_created_with_its_options(rabbitmq: Rabbit, received: Any) -> None:
    queue = named()
    arguments = {"x-max-length": 10}
    source = received(
        queue=queue, create={"durable": False, "auto_delete": True, "arguments": arguments}
    )
    rabbitmq.do(
        lambda channel: channel.declare_queue(
            queue, durable=False, auto_delete=True,
            arguments={"x-queue-type": "classic", **arguments},
        )
    )  # fmt: skip
    source.receiving.close()
    with pytest.raises(Permanent, match="no queue"):
        RabbitmqSource(
            RabbitmqSource.config_type.model_validate({**rabbitmq.login, "queue": queue})
        ).check()


@pytest.mark.parametrize(("match", "expected"), [("all", [b"2"]), ("any", [b"1", b"2"])])
def test_a_queue_is_bound_by_headers(
    rabbitmq: Rabbit, received: Any, queue: str, match: str, expected: list[bytes]
) -> None:
    exchange = named()
    bind = {"exchange": exchange, "headers": {"kind": "k", "large": True}, "match": match,
            "create": {"type": "headers", "durable": False, "auto_delete": True}}  # fmt: skip
    source = received(queue=queue, bind=[bind])
    rabbitmq.publish("", [b"0"], exchange)
    rabbitmq.publish("", [b"1"], exchange, headers={"kind": "k", "large": False})
    rabbitmq.publish("", [b"2"], exchange, headers={"kind": "k", "large": True})
    assert source.payloads(len(expected)) == expected


def test_metadata(rabbitmq: Rabbit, received: Any, queue: str) -> None:
    at = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    exchange = named()
    bind = {"exchange": exchange, "routing_key": "k", "create": {"type": "direct"}}
    source = received(queue=queue, bind=[bind])
    rabbitmq.publish(
        "k", [b"1"], exchange, message_id="m-1", timestamp=at, content_type="text/plain",
        content_encoding="utf-8", correlation_id="c-1", reply_to="r", type="t", app_id="a",
        priority=3, expiration=60, headers={"text": "x", "number": 5, "list": [1, "a"]},
    )  # fmt: skip
    names = source.source.message_metadata_schema().names
    (row,) = source.rows(1, *names, "received")
    assert row.pop("received") is not None
    assert {name: row[name] for name in names} == {
        "exchange": exchange, "routing_key": "k", "message_id": "m-1", "timestamp": at,
        "headers": [("list", '[1, "a"]'), ("number", "5"), ("text", "x")],
        "content_type": "text/plain", "content_encoding": "utf-8", "correlation_id": "c-1",
        "reply_to": "r", "type": "t", "user_id": None, "app_id": "a", "priority": 3,
        "ttl": 60_000, "persistent": True, "redelivered": False, "delivery_count": None,
    }  # fmt: skip


def test_redelivered_messages(rabbitmq: Rabbit, received: Any) -> None:
    """Messages of a consumer that disconnected without an acknowledgement."""
    queue = rabbitmq.new_queue("quorum")
    rabbitmq.publish(queue, [b"1"])

    async def take(channel: Any) -> None:
        await (await channel.get_queue(queue)).get()

    rabbitmq.do(take)
    (row,) = received(queue=queue).rows(1, "redelivered", "delivery_count", "persistent")
    assert (row["redelivered"], row["delivery_count"], row["persistent"]) == (True, 1, True)
    rabbitmq.delete(queue)


def test_acknowledged_messages_are_removed(rabbitmq: Rabbit, received: Any, queue: str) -> None:
    source = received(queue=queue)
    rabbitmq.publish(queue, [b"1", b"2"])
    assert source.payloads(2) == [b"1", b"2"]
    source.receiving.close()
    assert bodies(rabbitmq, queue) == []


def test_unacknowledged_messages_are_limited(rabbitmq: Rabbit, received: Any, queue: str) -> None:
    """While the journal is full, other consumers receive the remaining messages."""
    source = received(queue=queue, max_in_flight=2, journal={"max_size": "1 MiB"})
    large = [b"%d" % number + b"x" * 400_000 for number in range(8)]
    rabbitmq.publish(queue, large)
    source.receiving.await_end(1)
    rest = rabbitmq.messages(queue)
    assert len(rest) >= len(large) - 5


def test_an_exclusive_consumer(rabbitmq: Rabbit, received: Any, queue: str) -> None:
    received(queue=queue, exclusive=True)

    async def consume(channel: Any) -> None:
        async def take(message: Any) -> None: ...

        await (await channel.get_queue(queue)).consume(take)

    with pytest.raises(Exception, match="exclusive"):
        rabbitmq.do(consume)


def test_the_consumer_with_the_highest_priority_receives(
    rabbitmq: Rabbit, received: Any, queue: str
) -> None:
    low, high = received(queue=queue, priority=1), received(queue=queue, priority=2)
    rabbitmq.publish(queue, [b"%d" % number for number in range(20)])
    assert len(high.payloads(20)) == 20
    assert low.receiving.journal.end() == 0


def test_a_deleted_queue(rabbitmq: Rabbit, received: Any) -> None:
    """The receiver fails and resumes when the queue is created again."""
    queue = named()
    source = received(queue=queue, create=True)
    rabbitmq.publish(queue, [b"1"])
    source.receiving.await_end(1)
    source.receiving.receiver.ready.clear()
    rabbitmq.do(lambda channel: channel.queue_delete(queue))
    source.receiving.await_ready()
    rabbitmq.publish(queue, [b"2"])
    assert source.payloads(2) == [b"1", b"2"]


def test_another_virtual_host(rabbitmq: Rabbit, received: Any) -> None:
    queue = rabbitmq.new_queue(host=OTHER_HOST)
    source = received(queue=queue, virtual_host=OTHER_HOST)
    rabbitmq.publish(queue, [b"1"], host=OTHER_HOST)
    assert source.payloads(1) == [b"1"]
    source.receiving.close()
    rabbitmq.delete(queue)


# The connection


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        ({"auth": {"username": "nobody", "password": "x"}}, "authentication"),
        ({"virtual_host": "missing"}, "authorization"),
        ({"queue": "missing", "stream": "missing", "exchange": "missing"}, "not-found"),
        (
            {"queue": "missing", "stream": "missing", "exchange": "", "routing_key": "missing"},
            "not-found",
        ),
    ],
)
@pytest.mark.parametrize("component", [RabbitmqSource, RabbitmqStreamSource, RabbitmqSink])
def test_missing_resources(
    rabbitmq: Rabbit, component: Any, wrong: dict[str, Any], code: str
) -> None:
    given = {**rabbitmq.login, "queue": "q", "stream": "s", "exchange": "amq.topic", **wrong}
    known = component.config_type.model_fields
    options = {name: value for name, value in given.items() if name in known}
    with pytest.raises(Permanent) as caught:
        component(component.config_type.model_validate(options)).check()
    assert caught.value.code == code and caught.value.hint


def test_a_certificate_that_is_not_trusted(rabbitmq: Rabbit, queue: str) -> None:
    stream = rabbitmq.new_queue("stream")
    given = {**rabbitmq.login, "url": f"amqps://127.0.0.1:{rabbitmq.tls_port}"}
    for component, more in (
        (RabbitmqSource, {"queue": queue}),
        (RabbitmqStreamSource, {"stream": stream}),
        (RabbitmqSink, {"routing_key": queue}),
    ):
        options = {**given, **more}
        trusted = {**options, "tls": {"ca": str(rabbitmq.authority.root)}}
        component(component.config_type.model_validate(trusted)).check()
        with pytest.raises(Permanent, match="TLS verification") as caught:
            component(component.config_type.model_validate(options)).check()
        assert "ca" in (caught.value.hint or "")
    rabbitmq.delete(stream)


def test_missing_heartbeats_close_the_connection(
    rabbitmq: Rabbit, received: Any, queue: str
) -> None:
    """The receiver fails without heartbeats and connects again."""
    source = received(queue=queue, keep_alive="1s")
    rabbitmq.pause()
    try:
        until = time.monotonic() + 30
        while source.receiving.receiver.ready.is_set():
            assert time.monotonic() < until
            time.sleep(0.01)
    finally:
        rabbitmq.resume()
    source.receiving.await_ready()
    rabbitmq.publish(queue, [b"1"])
    assert source.payloads(1) == [b"1"]
