"""The RabbitMQ sink: properties of messages, rejections, creation."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from writing import written

from penstock.connectors.rabbitmq import RabbitmqSink
from penstock.core.errors import PlanError
from penstock.sdk import BatchId, Failure, Permanent, Transient
from servers.gate import Gate
from servers.rabbitmq import OTHER_HOST, Rabbit


@pytest.fixture
def queue(rabbitmq: Rabbit) -> Iterator[str]:
    name = rabbitmq.new_queue()
    yield name
    rabbitmq.delete(name)


def named() -> str:
    return f"made-up-{uuid.uuid4().hex[:12]}"


def published(broker: Rabbit, rows: list[dict[str, Any]], **options: Any) -> list[Failure]:
    """Writes rows whose column `text` is the payload."""
    sink = RabbitmqSink(RabbitmqSink.config_type.model_validate({**broker.login, **options}))
    return written(sink, rows)


def bodies(broker: Rabbit, queue: str, host: str = "/") -> list[bytes]:
    return [message.body for message in broker.messages(queue, host)]


def test_message_properties(rabbitmq: Rabbit, queue: str) -> None:
    rows = [{"text": "1", "user": "u1", "to": queue}, {"text": "2", "user": None, "to": queue}]
    failures = published(
        rabbitmq, rows, routing_key="{to}", headers={"user": "{user}", "kind": "k"},
        message_id="m-{text}", type="{user}", content_type="text/plain", priority=4,
        ttl="1h", persistent=False,
    )  # fmt: skip
    assert not failures
    one, two = rabbitmq.messages(queue)
    assert (one.body, one.message_id, one.type) == (b"1", "m-1", "u1")
    assert dict(one.headers) == {"user": "u1", "kind": "k"}
    assert (one.content_type, one.priority, one.expiration) == ("text/plain", 4, 3600)
    assert int(one.delivery_mode) == 1
    assert (dict(two.headers), two.type) == ({"kind": "k"}, None)


def test_messages_survive_a_restart(rabbitmq: Rabbit, queue: str) -> None:
    published(rabbitmq, [{"text": "1"}], routing_key=queue)
    published(rabbitmq, [{"text": "2"}], routing_key=queue, persistent=False)
    rabbitmq.stop()
    rabbitmq.start()
    assert bodies(rabbitmq, queue) == [b"1"]


def test_an_exchange_is_created(rabbitmq: Rabbit, queue: str) -> None:
    exchange = named()
    arguments = {"alternate-exchange": "amq.fanout"}
    create = {"type": "fanout", "durable": False, "auto_delete": True, "arguments": arguments}
    unbound = published(rabbitmq, [{"text": "1"}], exchange=exchange, create=create)
    assert [failure.error.code for failure in unbound] == ["unroutable"]

    async def look_and_bind(channel: Any) -> None:
        await channel.declare_exchange(
            exchange, "fanout", durable=False, auto_delete=True, arguments=arguments
        )
        await (await channel.get_queue(queue)).bind("amq.fanout")

    rabbitmq.do(look_and_bind)
    assert not published(rabbitmq, [{"text": "2"}], exchange=exchange)
    assert bodies(rabbitmq, queue) == [b"2"]


@pytest.mark.parametrize("mandatory", [True, False])
def test_unroutable_messages(rabbitmq: Rabbit, queue: str, mandatory: bool) -> None:
    rows = [{"text": str(number), "to": queue if number % 2 else named()} for number in range(6)]
    failures = published(rabbitmq, rows, routing_key="{to}", mandatory=mandatory, message_id="same")
    assert [failure.index for failure in failures] == ([0, 2, 4] if mandatory else [])
    assert {failure.error.code for failure in failures} <= {"unroutable"}
    assert bodies(rabbitmq, queue) == [b"1", b"3", b"5"]


@pytest.mark.parametrize("max_in_flight", [1, 3, 256])
def test_rejected_messages_are_bad_rows(rabbitmq: Rabbit, queue: str, max_in_flight: int) -> None:
    """The broker closes the channel; the other messages are sent again."""

    async def bind(channel: Any) -> None:
        await (await channel.get_queue(queue)).bind("amq.direct", queue)

    rabbitmq.do(bind)
    rows = [{"text": str(number), "exchange": "amq.direct"} for number in range(6)]
    rows[1]["exchange"] = "missing"
    rows[2]["text"] = "x" * 20_000_001
    rows[4]["exchange"] = "forbidden"
    rabbitmq.do(lambda channel: channel.declare_exchange("forbidden", auto_delete=False))
    failures = published(
        rabbitmq, rows, exchange="{exchange}", routing_key=queue, max_in_flight=max_in_flight
    )
    codes = [(failure.index, failure.error.code) for failure in failures]
    assert codes == [(1, "not-found"), (2, "precondition"), (4, "authorization")]
    assert set(bodies(rabbitmq, queue)) == {b"0", b"3", b"5"}


def test_invalid_addresses(rabbitmq: Rabbit, queue: str) -> None:
    rows = [{"text": "1", "to": None}, {"text": "2", "to": "x" * 256}, {"text": "3", "to": queue}]
    failures = published(rabbitmq, rows, routing_key="{to}")
    assert [(failure.index, failure.error.code) for failure in failures] == [
        (0, "invalid-address"), (1, "invalid-address")
    ]  # fmt: skip
    assert bodies(rabbitmq, queue) == [b"3"]


def test_a_full_queue(rabbitmq: Rabbit) -> None:
    queue = rabbitmq.new_queue(**{"x-max-length": 1, "x-overflow": "reject-publish"})
    assert not published(rabbitmq, [{"text": "1"}], routing_key=queue)
    with pytest.raises(Transient, match="did not confirm") as caught:
        published(rabbitmq, [{"text": "2"}, {"text": "3"}], routing_key=queue)
    assert caught.value.hint
    rabbitmq.delete(queue)


def test_a_missing_exchange(rabbitmq: Rabbit) -> None:
    given = {**rabbitmq.login, "exchange": named()}
    sink = RabbitmqSink(RabbitmqSink.config_type.model_validate(given))
    with pytest.raises(Permanent) as caught:
        sink.check()
    assert caught.value.code == "not-found"
    declaring = RabbitmqSink(RabbitmqSink.config_type.model_validate({**given, "create": True}))
    declaring.check()
    with pytest.raises(Permanent):
        sink.check()
    declaring.open().close()
    sink.check()


def test_a_publisher_goes_on_after_its_connection_was_lost(rabbitmq: Rabbit, queue: str) -> None:
    gate = Gate(rabbitmq.port)
    given = {**rabbitmq.login, "url": f"amqp://127.0.0.1:{gate.port}", "routing_key": queue}
    sink = RabbitmqSink(RabbitmqSink.config_type.model_validate(given))
    rows = pa.RecordBatch.from_pylist([{"text": "1"}])
    client = sink.open()
    gate.stop()
    writer = sink.writer(client, BatchId("q", 0), 0, rows.schema)
    with pytest.raises(Transient):
        writer.write(rows, rows.column("text").cast(pa.binary()))
    gate.start()
    again = sink.writer(client, BatchId("q", 0), 0, rows.schema)
    assert not again.write(rows, rows.column("text").cast(pa.binary()))
    client.close()
    gate.stop()
    assert bodies(rabbitmq, queue) == [b"1"]


def test_another_virtual_host(rabbitmq: Rabbit) -> None:
    queue = rabbitmq.new_queue(host=OTHER_HOST)
    assert not published(rabbitmq, [{"text": "1"}], routing_key=queue, virtual_host=OTHER_HOST)
    assert bodies(rabbitmq, queue, OTHER_HOST) == [b"1"]
    rabbitmq.delete(queue)


def test_missing_confirms(rabbitmq: Rabbit, queue: str) -> None:
    given = {**rabbitmq.login, "routing_key": queue, "timeout": "1s", "keep_alive": "1h"}
    sink = RabbitmqSink(RabbitmqSink.config_type.model_validate(given))
    rows = pa.RecordBatch.from_pylist([{"text": "1"}])
    client = sink.open()
    rabbitmq.pause()
    try:
        writer = sink.writer(client, BatchId("q", 0), 0, rows.schema)
        with pytest.raises(Transient, match="timeout"):
            writer.write(rows, rows.column("text").cast(pa.binary()))
    finally:
        rabbitmq.resume()
    client.close()


def test_an_unknown_column() -> None:
    given = {"url": "amqp://localhost", "exchange": "e", "headers": {"h": "{rom}"}}
    sink = RabbitmqSink(RabbitmqSink.config_type.model_validate(given))
    with pytest.raises(PlanError) as caught:
        sink.check_schema(pa.schema([("room", pa.string())]))
    assert caught.value.message == 'headers.h: unknown column "rom"'
