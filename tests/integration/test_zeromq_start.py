"""Synchronized start with programs of stream_data_processor: the option `sync`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from threading import Thread
from typing import Any

import pyarrow as pa
import pytest
from stream_data_processor import Publisher, Subscriber
from taking import Take, Taking

from penstock.connectors.zeromq import ZeromqSink, ZeromqSource
from penstock.sdk import BatchId, Context, Failure, Transient
from servers.server import free_port

Endpoints = list[str]


@pytest.fixture(params=["ipc", "tcp"])
def endpoints(request: pytest.FixtureRequest, tmp_path: Path) -> Endpoints:
    """One endpoint for data and two for requests."""
    if request.param == "tcp":
        return [f"tcp://127.0.0.1:{free_port()}" for _ in range(3)]
    return [f"ipc://{tmp_path}/{name}" for name in ("a_to_b", "one_sync", "two_sync")]


@pytest.fixture
def sink(tmp_path: Path) -> Callable[..., ZeromqSink]:
    """Returns a function that makes sinks with the same state directory."""

    def sink(**options: Any) -> ZeromqSink:
        config = ZeromqSink.config_type.model_validate(options)
        return ZeromqSink(config, Context("t", "out", tmp_path / "out"))

    return sink


def source(directory: Path, **options: Any) -> ZeromqSource:
    config = ZeromqSource.config_type.model_validate(options)
    return ZeromqSource(config, Context("t", "in", directory))


def write_batch(to: ZeromqSink, *payloads: bytes) -> list[Failure]:
    """Writes a batch."""
    batch = pa.RecordBatch.from_pylist([{"text": each} for each in payloads])
    writer = to.writer(to.open(), BatchId("q", 0), 0, batch.schema)
    failures = writer.write(batch, batch.column("text"))
    to.commit(BatchId("q", 0), [writer.commit()])
    return list(failures)


def numbers(count: int) -> list[bytes]:
    return [b"%d" % number for number in range(count)]


def test_all_subscribers_receive_all_messages_and_end(sink: Any, endpoints: Endpoints) -> None:
    at, one_sync, two_sync = endpoints
    with closing(sink(listen=at, sync=[one_sync, two_sync], timeout="30s")) as to:
        to.recover()
        writing = Thread(target=write_batch, args=[to, *numbers(500)])
        with Subscriber(at, one_sync) as one:
            writing.start()
            while not one.requested:
                time.sleep(0.01)
            with Subscriber(at, two_sync) as two:
                writing.join(30)
                write_batch(to, b"more")
                to.complete()
                assert one.ended.wait(30) and two.ended.wait(30)
                assert one.received == two.received == [*numbers(500), b"more"]


def test_a_stop_does_not_send_end(sink: Any, endpoints: Endpoints) -> None:
    """The next run waits for the subscriptions, and not for new requests."""
    at, sync, _ = endpoints
    options = {"listen": at, "sync": sync, "timeout": "30s"}
    with Subscriber(at, sync) as subscriber:
        for payload in (b"1", b"2"):
            with closing(sink(**options)) as to:
                to.recover()
                write_batch(to, payload)
        assert subscriber.take(2) == [b"1", b"2"] and not subscriber.ended.is_set()
        with closing(sink(**options)) as to:
            write_batch(to, b"3")
            to.complete()
        assert subscriber.ended.wait(30) and subscriber.received == [b"1", b"2", b"3"]


def test_a_replaced_subscriber_receives_all_messages(sink: Any, endpoints: Endpoints) -> None:
    at, sync, _ = endpoints
    for payload in (b"1", b"2"):
        with Subscriber(at, sync) as subscriber:
            with closing(sink(listen=at, sync=sync, timeout="30s")) as to:
                write_batch(to, payload)
            assert subscriber.take(1) == [payload]


def test_a_subscriber_that_does_not_return(sink: Any, endpoints: Endpoints) -> None:
    at, sync, _ = endpoints
    with Subscriber(at, sync), closing(sink(listen=at, sync=sync, timeout="30s")) as to:
        write_batch(to, b"1")
    with closing(sink(listen=at, sync=sync, timeout="200ms")) as to:
        with pytest.raises(Transient, match="expected 1 subscribers, found 0") as caught:
            write_batch(to, b"2")
        assert caught.value.hint


def test_end_requires_new_requests(sink: Any, endpoints: Endpoints) -> None:
    at, sync, _ = endpoints
    with Subscriber(at, sync) as subscriber:
        with closing(sink(listen=at, sync=sync, timeout="30s")) as to:
            write_batch(to, b"1")
            to.complete()
        assert subscriber.ended.wait(30)
        to = sink(listen=at, sync=sync, timeout="1s")
        with closing(to), pytest.raises(Transient, match="no subscriber sent a request"):
            write_batch(to, b"2")


def test_an_endpoint_without_request_is_named(sink: Any, endpoints: Endpoints) -> None:
    """A subscription without a request does not synchronize."""
    at, one_sync, two_sync = endpoints
    with (
        Subscriber(at, one_sync) as one,
        Subscriber(at, one_sync),
        closing(sink(listen=at, sync=[one_sync, two_sync], timeout="1500ms")) as to,
    ):
        with pytest.raises(Transient) as caught:
            write_batch(to, b"1")
        assert caught.value.message == f"no subscriber sent a request to {two_sync} within timeout"
        assert caught.value.hint and one.requested and not one.received


def test_rows_that_are_control_messages(sink: Any, endpoints: Endpoints) -> None:
    at, sync, _ = endpoints
    with Subscriber(at, sync) as subscriber:
        with closing(sink(listen=at, sync=sync, timeout="30s")) as to:
            failures = write_batch(to, b"connect", b"1", b"end", b"ends")
        assert subscriber.take(2) == [b"1", b"ends"]
    assert [(failure.index, failure.error.code) for failure in failures] == [
        (0, "control-message"),
        (2, "control-message"),
    ]


@pytest.mark.parametrize("replies", [True, False])
def test_the_source_sends_one_request(
    taking: Take, tmp_path: Path, endpoints: Endpoints, replies: bool
) -> None:
    """Another start follows `end` without a restart of the source."""
    at, ours, other = endpoints
    with Publisher(at, ours, other, replies=replies) as publisher:
        took: Taking = taking(source(tmp_path / "in", connect=at, sync=ours))
        with Subscriber(at, other):
            publisher.start()
            publisher.send(*numbers(500))
            publisher.stop()
    assert took.payloads(500) == numbers(500)
    took.receiving.receiver.ready.clear()
    with Publisher(at, ours, replies=replies) as publisher:
        publisher.start()
        publisher.send(b"again")
        assert took.payloads(501)[500:] == [b"again"]
        assert not took.receiving.receiver.ready.is_set()
        publisher.stop()


def test_messages_without_connect_are_received(
    taking: Take, tmp_path: Path, endpoints: Endpoints
) -> None:
    """The source restarts while the publisher sends."""
    at, sync, _ = endpoints
    with Publisher(at, sync) as publisher:
        took: Taking = taking(source(tmp_path / "in", connect=at, sync=sync))
        until = time.monotonic() + 30
        while not (there := took.there()):
            assert time.monotonic() < until
            publisher.send(b"flow")
            time.sleep(0.01)
        assert there[0]["payload"] == b"flow"


def test_sink_and_source(taking: Take, tmp_path: Path, sink: Any, endpoints: Endpoints) -> None:
    at, sync, _ = endpoints
    with closing(sink(listen=at, sync=sync, timeout="30s")) as to:
        to.recover()
        took: Taking = taking(source(tmp_path / "in", connect=at, sync=sync))
        write_batch(to, b"1", b"2")
        to.complete()
    with closing(sink(listen=at, sync=sync, timeout="30s")) as to:
        write_batch(to, b"3")
        assert took.payloads(3) == [b"1", b"2", b"3"]


def test_an_unavailable_sync_endpoint(tmp_path: Path, endpoints: Endpoints) -> None:
    at, sync, other = endpoints
    asking = source(tmp_path / "in", connect=at, sync=other, timeout="300ms")
    with Publisher(at, sync) as publisher, asking.journal() as journal:
        calling = Thread(target=publisher.start, daemon=True)
        calling.start()
        with pytest.raises(Transient, match=f"could not reach {other}") as caught:
            asyncio.run(asking.receive(journal))
        assert caught.value.hint
        with Subscriber(at, sync):
            calling.join(30)


def test_curve_keys(taking: Take, tmp_path: Path, sink: Any, endpoints: Endpoints) -> None:
    import zmq

    at, sync, _ = endpoints
    (server, server_secret), (client, client_secret) = (
        [key.decode() for key in zmq.curve_keypair()] for _ in range(2)
    )
    client_auth = {"public_key": client, "secret_key": client_secret, "server_key": server}
    server_auth = {"public_key": server, "secret_key": server_secret}
    with closing(sink(listen=at, sync=sync, timeout="30s", auth=server_auth)) as to:
        to.recover()
        with Subscriber(at, sync) as unauthenticated:
            took: Taking = taking(source(tmp_path / "in", connect=at, sync=sync, auth=client_auth))
            write_batch(to, b"1")
            assert took.payloads(1) == [b"1"] and not unauthenticated.requested
