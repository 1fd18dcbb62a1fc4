"""A start in step with programs of stream_data_processor: who calls, who asks, what is kept."""

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
from instep import Publisher, Subscriber
from taking import Take, Taking

from penstock.connectors.zeromq import ZeromqSink, ZeromqSource
from penstock.sdk import BatchId, Context, Failure, Transient
from servers.server import free_port

Endpoints = list[str]


@pytest.fixture(params=["ipc", "tcp"])
def endpoints(request: pytest.FixtureRequest, tmp_path: Path) -> Endpoints:
    """One for the data, two to ask at."""
    if request.param == "tcp":
        return [f"tcp://127.0.0.1:{free_port()}" for _ in range(3)]
    return [f"ipc://{tmp_path}/{name}" for name in ("a_to_b", "one_sync", "two_sync")]


@pytest.fixture
def sink(tmp_path: Path) -> Callable[..., ZeromqSink]:
    """All have one state."""

    def sink(**options: Any) -> ZeromqSink:
        config = ZeromqSink.config_type.model_validate(options)
        return ZeromqSink(config, Context("t", "out", tmp_path / "out"))

    return sink


def source(directory: Path, **options: Any) -> ZeromqSource:
    config = ZeromqSource.config_type.model_validate(options)
    return ZeromqSource(config, Context("t", "in", directory))


def written(to: ZeromqSink, *payloads: bytes) -> list[Failure]:
    """Writes a batch."""
    batch = pa.RecordBatch.from_pylist([{"text": each} for each in payloads])
    writer = to.writer(to.open(), BatchId("q", 0), 0, batch.schema)
    failures = writer.write(batch, batch.column("text"))
    to.finish(BatchId("q", 0), [writer.commit()])
    return list(failures)


def numbers(count: int) -> list[bytes]:
    return [b"%d" % number for number in range(count)]


def test_all_get_everything_and_the_end(sink: Any, endpoints: Endpoints) -> None:
    at, one_sync, two_sync = endpoints
    with closing(sink(bind=at, sync=[one_sync, two_sync], timeout="30s")) as to:
        to.recover()
        writing = Thread(target=written, args=[to, *numbers(500)])
        with Subscriber(at, one_sync) as one:
            writing.start()
            while not one.asked:
                time.sleep(0.01)
            with Subscriber(at, two_sync) as two:
                writing.join(30)
                written(to, b"more")
                to.complete()
                assert one.ended.wait(30) and two.ended.wait(30)
                assert one.got == two.got == [*numbers(500), b"more"]


def test_a_stop_is_no_end(sink: Any, endpoints: Endpoints) -> None:
    """The next run begins when as many are there again: they do not ask once more."""
    at, sync, _ = endpoints
    options = {"bind": at, "sync": sync, "timeout": "30s"}
    with Subscriber(at, sync) as subscriber:
        for payload in (b"1", b"2"):
            with closing(sink(**options)) as to:
                to.recover()
                written(to, payload)
        assert subscriber.take(2) == [b"1", b"2"] and not subscriber.ended.is_set()
        with closing(sink(**options)) as to:
            written(to, b"3")
            to.complete()
        assert subscriber.ended.wait(30) and subscriber.got == [b"1", b"2", b"3"]


def test_who_comes_in_the_place_of_another_misses_nothing(sink: Any, endpoints: Endpoints) -> None:
    at, sync, _ = endpoints
    for payload in (b"1", b"2"):
        with Subscriber(at, sync) as subscriber:
            with closing(sink(bind=at, sync=sync, timeout="30s")) as to:
                written(to, payload)
            assert subscriber.take(1) == [payload]


def test_who_does_not_come_back(sink: Any, endpoints: Endpoints) -> None:
    at, sync, _ = endpoints
    with Subscriber(at, sync), closing(sink(bind=at, sync=sync, timeout="30s")) as to:
        written(to, b"1")
    with closing(sink(bind=at, sync=sync, timeout="200ms")) as to:
        with pytest.raises(Transient, match="0 of 1 subscribers are there") as caught:
            written(to, b"2")
        assert caught.value.hint


def test_after_the_end_all_have_to_ask_again(sink: Any, endpoints: Endpoints) -> None:
    at, sync, _ = endpoints
    with Subscriber(at, sync) as subscriber:
        with closing(sink(bind=at, sync=sync, timeout="30s")) as to:
            written(to, b"1")
            to.complete()
        assert subscriber.ended.wait(30)
        to = sink(bind=at, sync=sync, timeout="1s")
        with closing(to), pytest.raises(Transient, match="no subscriber has asked"):
            written(to, b"2")


def test_who_has_not_asked_is_named(sink: Any, endpoints: Endpoints) -> None:
    """A subscriber that does not ask is not enough."""
    at, one_sync, two_sync = endpoints
    with (
        Subscriber(at, one_sync) as one,
        Subscriber(at, one_sync),
        closing(sink(bind=at, sync=[one_sync, two_sync], timeout="1500ms")) as to,
    ):
        with pytest.raises(Transient) as caught:
            written(to, b"1")
        assert caught.value.message == f"no subscriber has asked at {two_sync}"
        assert caught.value.hint and one.asked and not one.got


def test_rows_that_are_words(sink: Any, endpoints: Endpoints) -> None:
    at, sync, _ = endpoints
    with Subscriber(at, sync) as subscriber:
        with closing(sink(bind=at, sync=sync, timeout="30s")) as to:
            failures = written(to, b"connect", b"1", b"end", b"ends")
        assert subscriber.take(2) == [b"1", b"ends"]
    assert [(each.index, each.error.code) for each in failures] == [(0, "sync"), (2, "sync")]


@pytest.mark.parametrize("replies", [True, False])
def test_we_ask_when_we_are_called(
    taking: Take, tmp_path: Path, endpoints: Endpoints, replies: bool
) -> None:
    """The end is followed by another start, and nothing has to be started again for it."""
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


def test_data_without_a_call_are_kept(taking: Take, tmp_path: Path, endpoints: Endpoints) -> None:
    """We were started again while the publisher was in full flow."""
    at, sync, _ = endpoints
    with Publisher(at, sync) as publisher:
        took: Taking = taking(source(tmp_path / "in", connect=at, sync=sync))
        until = time.monotonic() + 30
        while not (there := took.there()):
            assert time.monotonic() < until
            publisher.send(b"flow")
            time.sleep(0.01)
        assert there[0]["payload"] == b"flow"


def test_our_sink_and_our_source(
    taking: Take, tmp_path: Path, sink: Any, endpoints: Endpoints
) -> None:
    at, sync, _ = endpoints
    with closing(sink(bind=at, sync=sync, timeout="30s")) as to:
        to.recover()
        took: Taking = taking(source(tmp_path / "in", connect=at, sync=sync))
        written(to, b"1", b"2")
        to.complete()
    with closing(sink(bind=at, sync=sync, timeout="30s")) as to:
        written(to, b"3")
        assert took.payloads(3) == [b"1", b"2", b"3"]


def test_nobody_is_where_we_ask(tmp_path: Path, endpoints: Endpoints) -> None:
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


def test_keys(taking: Take, tmp_path: Path, sink: Any, endpoints: Endpoints) -> None:
    import zmq

    at, sync, _ = endpoints
    (ours, our_secret), (theirs, their_secret) = (
        [key.decode() for key in zmq.curve_keypair()] for _ in range(2)
    )
    given = {"public_key": theirs, "secret_key": their_secret, "server_key": ours}
    own = {"public_key": ours, "secret_key": our_secret}
    with closing(sink(bind=at, sync=sync, timeout="30s", curve=own)) as to:
        to.recover()
        with Subscriber(at, sync) as stranger:
            took: Taking = taking(source(tmp_path / "in", connect=at, sync=sync, curve=given))
            written(to, b"1")
            assert took.payloads(1) == [b"1"] and not stranger.asked


@pytest.mark.parametrize(
    ("component", "options", "said"),
    [
        (ZeromqSink, {"connect": "tcp://a:1"}, "publishes and binds"),
        (ZeromqSink, {"bind": "tcp://a:1", "socket": "push"}, "publishes and binds"),
        (ZeromqSink, {"bind": "tcp://a:1", "topic": "t"}, "leave out topic"),
        (ZeromqSink, {"bind": "tcp://a:1", "subscribers": 1}, "leave out subscribers"),
        (ZeromqSink, {"bind": "tcp://a:2"}, "endpoints that differ"),
        (ZeromqSink, {"bind": "tcp://a:1", "sync": ["tcp://a:2"] * 2}, "endpoints that differ"),
        (ZeromqSink, {"bind": "tcp://a:1", "sync": []}, "endpoints that differ"),
        (ZeromqSink, {"bind": "tcp://a:1", "sync": "inproc://a"}, "tcp://HOST:PORT"),
        (ZeromqSource, {"bind": "tcp://a:1"}, "subscribes to one"),
        (ZeromqSource, {"connect": ["tcp://a:1", "tcp://a:3"]}, "subscribes to one"),
        (ZeromqSource, {"connect": "tcp://a:1", "socket": "pull"}, "subscribes to one"),
        (ZeromqSource, {"connect": "tcp://a:1", "topic": "t"}, "leave out topic"),
        (ZeromqSource, {"connect": "tcp://a:2"}, "another endpoint"),
    ],
)
def test_options_that_do_not_fit(component: Any, options: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        component.config_type.model_validate({"sync": "tcp://a:2", **options})
