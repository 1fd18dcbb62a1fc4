"""What is particular to ZeroMQ: topics, parts, who waits for whom, keys."""

from __future__ import annotations

import gc
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from threading import Thread
from typing import Any

import pyarrow as pa
import pytest
from taking import Take, Taking

from penstock.connectors.zeromq import ZeromqSink, ZeromqSource
from penstock.connectors.zeromq.endpoint import EndpointConfig, Opened
from penstock.core.errors import PlanError
from penstock.sdk import BatchId, Context, Failure, Permanent, Transient
from servers.server import free_port
from servers.zeromq import End


@pytest.fixture
def taking(taking: Take, tmp_path: Path) -> Callable[..., Taking]:
    def taking_(**options: Any) -> Taking:
        config = ZeromqSource.config_type.model_validate(options)
        return taking(ZeromqSource(config, Context("t", "in", tmp_path / "in")))

    return taking_


@pytest.fixture
def endpoint() -> str:
    return f"tcp://127.0.0.1:{free_port()}"


def sink(**options: Any) -> ZeromqSink:
    return ZeromqSink(ZeromqSink.config_type.model_validate(options))


def written(to: ZeromqSink, *rows: dict[str, Any]) -> list[Failure]:
    """Writes a batch; the column `text` is the payload."""
    batch = pa.RecordBatch.from_pylist(list(rows))
    writer = to.writer(to.open(), BatchId("q", 0), 0, batch.schema)
    failures = writer.write(batch, batch.column("text"))
    to.finish(BatchId("q", 0), [writer.commit()])
    return list(failures)


def text(*payloads: bytes) -> list[dict[str, Any]]:
    return [{"text": each} for each in payloads]


def test_topics_and_parts(taking: Any, endpoint: str) -> None:
    with End("XPUB", bind=endpoint) as end:
        source = taking(connect=endpoint, topic=["a", "b."])
        end.send(
            [b"a1", b"1"], [b"b", b"2"], [b"b.x", b"more", b"3"], [b"c", b"4"], [b"alone"]
        )  # fmt: skip
        rows = source.rows(3, "topic", "parts")
    assert [(row["topic"], row["parts"], row["payload"]) for row in rows] == [
        ("a1", [b"a1"], b"1"), ("b.x", [b"b.x", b"more"], b"3"), (None, [], b"alone"),
    ]  # fmt: skip


def test_several_others(taking: Any) -> None:
    ends = [End("PUSH", bind=f"tcp://127.0.0.1:{free_port()}") for _ in range(2)]
    source = taking(socket="pull", connect=[end.endpoint for end in ends])
    for number, end in enumerate(ends):
        with end:
            end.send([b"%d" % number])
            source.receiving.await_end(number + 1)
    assert source.payloads(2) == [b"0", b"1"]


def test_a_connection_that_is_lost(taking: Any, endpoint: str) -> None:
    """It ends with an error, and is started again."""
    with End("PUSH", bind=endpoint) as end:
        source = taking(socket="pull", connect=endpoint)
        end.send([b"1"])
        source.receiving.await_end(1)
        source.receiving.receiver.ready.clear()
    with End("PUSH", bind=endpoint) as end:
        source.receiving.await_ready()
        end.send([b"2"])
        assert source.payloads(2) == [b"1", b"2"]


@pytest.mark.parametrize("kind", ["pub", "push"])
def test_who_binds_keeps_the_socket(endpoint: str, kind: str) -> None:
    other = {"pub": "SUB", "push": "PULL"}[kind]
    with closing(sink(bind=endpoint, socket=kind, topic="t.{key}")) as to:
        to.recover()
        with End(other, connect=endpoint) as end:
            failures = written(
                to, {"text": b"1", "key": "a"}, {"text": b"-", "key": None},
                {"text": b"2", "key": "b"},
            )  # fmt: skip
            written(to, {"text": b"3", "key": "c"})
            assert end.take(3) == [[b"t.a", b"1"], [b"t.b", b"2"], [b"t.c", b"3"]]
    assert [(each.index, each.error.code) for each in failures] == [(1, "topic")]


def test_a_batch_waits_for_its_subscribers(endpoint: str) -> None:
    with closing(sink(bind=endpoint, subscribers=2)) as to:
        to.recover()
        writing = Thread(target=lambda: written(to, *text(b"1")))
        with End("SUB", connect=endpoint) as one:
            writing.start()
            with End("SUB", connect=endpoint) as other:
                assert one.take(1) == other.take(1) == [[b"1"]]
        writing.join(10)


def test_subscribers_that_do_not_come(endpoint: str) -> None:
    with closing(sink(bind=endpoint, timeout="200ms")) as to:
        with pytest.raises(Transient, match="0 of 1 subscribers") as caught:
            written(to, *text(b"1"))
        assert caught.value.hint
    with closing(sink(bind=endpoint, timeout="200ms", subscribers=0)) as to:
        assert written(to, *text(b"1")) == []


@pytest.mark.parametrize("kind", ["pub", "push"])
def test_who_takes_nothing_is_given_up(endpoint: str, kind: str) -> None:
    """As much waits as the high-water mark says, and what the system's buffers hold."""
    to = sink(connect=endpoint, socket=kind, high_water_mark=2, patience="500ms")
    with End({"pub": "SUB", "push": "PULL"}[kind], bind=endpoint, rcvhwm=1):
        with pytest.raises(Transient) as caught:
            written(to, *text(*[b"x" * 1_000_000] * 100))
        assert caught.value.code == "timeout"


def test_nobody_is_there(endpoint: str) -> None:
    for component in (ZeromqSource, ZeromqSink):
        config = component.config_type.model_validate({"connect": endpoint, "timeout": "200ms"})
        with pytest.raises(Transient, match="could not reach") as caught:
            component(config).check()
        assert caught.value.hint


def test_an_endpoint_that_is_taken(endpoint: str) -> None:
    with End("PUSH", bind=endpoint):
        for component in (ZeromqSource, ZeromqSink):
            config = component.config_type.model_validate({"bind": endpoint})
            with pytest.raises(Transient, match="in use"):
                component(config).check()


def test_keys(taking: Any, endpoint: str) -> None:
    import zmq

    (ours, our_secret), (theirs, their_secret), (other, _) = (
        [key.decode() for key in zmq.curve_keypair()] for _ in range(3)
    )
    source = taking(
        socket="pull", bind=endpoint, curve={"public_key": ours, "secret_key": our_secret}
    )
    keys = {"public_key": theirs, "secret_key": their_secret, "server_key": ours}
    given = {"connect": endpoint, "socket": "push", "timeout": "1s", "patience": "1s"}
    written(sink(**given, curve=keys), *text(b"1"))
    assert source.payloads(1) == [b"1"]
    for wrong in ({"curve": {**keys, "server_key": other}}, {}):
        with pytest.raises((Transient, Permanent)) as caught:
            sink(**given, **wrong).check()
        assert "curve" in (caught.value.hint or "")


def test_a_column_that_is_not_there(endpoint: str) -> None:
    with pytest.raises(PlanError, match="topic names"):
        sink(bind=endpoint, topic="{kee}").accepts(pa.schema([("key", pa.string())]))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "either bind or connect"),
        ({"bind": "tcp://a:1", "connect": "tcp://a:1"}, "either bind or connect"),
        ({"bind": "a:1"}, "tcp://HOST:PORT"),
        ({"connect": "tcp://a:1", "curve": {"public_key": "x" * 40, "secret_key": "y"}},
         "server_key"),
        ({"bind": "tcp://a:1", "curve": {"public_key": "x", "secret_key": "y"}}, "40 characters"),
    ],
)  # fmt: skip
def test_options_that_do_not_fit(options: dict[str, Any], said: str) -> None:
    for component in (ZeromqSource, ZeromqSink):
        with pytest.raises(ValueError, match=said):
            component.config_type.model_validate(options)


def test_one_that_is_forgotten_keeps_nobody_waiting() -> None:
    """Left to the collector of garbage in a circle, as an error's traceback makes them."""
    opened: Any = Opened(EndpointConfig(connect=f"tcp://127.0.0.1:{free_port()}"), "PUSH")
    opened.circle = opened
    del opened
    collecting = Thread(target=gc.collect, daemon=True)
    collecting.start()
    collecting.join(20)
    assert not collecting.is_alive()
