"""ZeroMQ: topics, parts, peers, CURVE keys."""

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
from penstock.connectors.zeromq.client import MonitoredSocket
from penstock.connectors.zeromq.config import SocketConfig
from penstock.core.errors import PlanError
from penstock.sdk import BatchId, Context, Failure, Read, Transient
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


def write_batch(to: ZeromqSink, *rows: dict[str, Any]) -> list[Failure]:
    """Writes a batch; the column `text` is the payload."""
    batch = pa.RecordBatch.from_pylist(list(rows))
    writer = to.writer(to.open(), BatchId("q", 0), 0, batch.schema)
    failures = writer.write(batch, batch.column("text"))
    to.commit(BatchId("q", 0), [writer.commit()])
    return list(failures)


def text(*payloads: bytes) -> list[dict[str, Any]]:
    return [{"text": payload} for payload in payloads]


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


def test_several_peers(taking: Any) -> None:
    ends = [End("PUSH", bind=f"tcp://127.0.0.1:{free_port()}") for _ in range(2)]
    source = taking(socket="pull", connect=[end.endpoint for end in ends])
    for number, end in enumerate(ends):
        with end:
            end.send([b"%d" % number])
            source.receiving.await_end(number + 1)
    assert source.payloads(2) == [b"0", b"1"]


def test_a_lost_connection(taking: Any, endpoint: str) -> None:
    """The receiver ends with an error and is restarted."""
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
def test_a_listening_sink_keeps_the_socket(endpoint: str, kind: str) -> None:
    other = {"pub": "SUB", "push": "PULL"}[kind]
    with closing(sink(listen=endpoint, socket=kind, topic="t.{key}")) as to:
        to.recover()
        with End(other, connect=endpoint) as end:
            failures = write_batch(
                to, {"text": b"1", "key": "a"}, {"text": b"-", "key": None},
                {"text": b"2", "key": "b"},
            )  # fmt: skip
            write_batch(to, {"text": b"3", "key": "c"})
            assert end.take(3) == [[b"t.a", b"1"], [b"t.b", b"2"], [b"t.c", b"3"]]
    assert [(failure.index, failure.error.code) for failure in failures] == [(1, "invalid-topic")]


def test_min_subscribers(endpoint: str) -> None:
    with closing(sink(listen=endpoint, min_subscribers=2)) as to:
        to.recover()
        writing = Thread(target=lambda: write_batch(to, *text(b"1")))
        with End("SUB", connect=endpoint) as one:
            writing.start()
            with End("SUB", connect=endpoint) as other:
                assert one.take(1) == other.take(1) == [[b"1"]]
        writing.join(10)


def test_missing_subscribers(endpoint: str) -> None:
    with closing(sink(listen=endpoint, timeout="200ms")) as to:
        with pytest.raises(Transient, match="expected 1 subscribers, found 0") as caught:
            write_batch(to, *text(b"1"))
        assert caught.value.hint
    with closing(sink(listen=endpoint, timeout="200ms", min_subscribers=0)) as to:
        assert write_batch(to, *text(b"1")) == []


@pytest.mark.parametrize("kind", ["pub", "push"])
def test_write_timeout(endpoint: str, kind: str) -> None:
    """The queue and the buffers of the operating system are full."""
    to = sink(connect=endpoint, socket=kind, high_water_mark=2, write_timeout="500ms")
    with End({"pub": "SUB", "push": "PULL"}[kind], bind=endpoint, rcvhwm=1):
        with pytest.raises(Transient) as caught:
            write_batch(to, *text(*[b"x" * 1_000_000] * 100))
        assert caught.value.code == "timeout"


def test_an_unavailable_peer(endpoint: str) -> None:
    for component in (ZeromqSource, ZeromqSink):
        config = component.config_type.model_validate({"connect": endpoint, "timeout": "200ms"})
        with pytest.raises(Transient, match="could not reach") as caught:
            component(config).check()
        assert caught.value.hint


def test_an_endpoint_in_use(endpoint: str) -> None:
    with End("PUSH", bind=endpoint):
        for component in (ZeromqSource, ZeromqSink):
            config = component.config_type.model_validate({"listen": endpoint})
            with pytest.raises(Transient, match="in use"):
                component(config).check()


def test_curve_keys(taking: Any, endpoint: str) -> None:
    import zmq

    (server, server_secret), (client, client_secret), (other, _) = (
        [key.decode() for key in zmq.curve_keypair()] for _ in range(3)
    )
    source = taking(
        socket="pull", listen=endpoint, auth={"public_key": server, "secret_key": server_secret}
    )
    keys = {"public_key": client, "secret_key": client_secret, "server_key": server}
    options = {"connect": endpoint, "socket": "push", "timeout": "1s", "write_timeout": "1s"}
    write_batch(sink(**options, auth=keys), *text(b"1"))
    assert source.payloads(1) == [b"1"]
    for wrong in ({"auth": {**keys, "server_key": other}}, {}):
        with pytest.raises(Transient, match="no handshake within timeout") as caught:
            sink(**options, **wrong).check()
        assert caught.value.code == "unreachable"
        assert "auth" in (caught.value.hint or "")


def test_a_missing_column(endpoint: str) -> None:
    with pytest.raises(PlanError, match="topic: unknown column"):
        sink(listen=endpoint, topic="{kee}").check_schema(pa.schema([("key", pa.string())]))


def test_garbage_collection_does_not_block() -> None:
    """A traceback may put a socket into a reference cycle."""
    opened: Any = MonitoredSocket(SocketConfig(connect=f"tcp://127.0.0.1:{free_port()}"), "PUSH")
    opened.cycle = opened
    del opened
    collecting = Thread(target=gc.collect, daemon=True)
    collecting.start()
    collecting.join(20)
    assert not collecting.is_alive()


def test_a_message_over_the_bound(taking: Any, endpoint: str) -> None:
    with End("PUSH", bind=endpoint) as end:
        source = taking(connect=endpoint, socket="pull", max_message_size="1MB")
        end.send([b"1"], [b"x" * 1_000_001], [b"x" * 2_000_000, b"3"], [b"4"])
        source.receiving.await_end(4)
        start = source.source.initial_offset()
        read = Read()
        (partition,) = source.source.partitions(start, source.source.latest_offset(start))
        batches = list(source.source.read(partition, read))
    payloads = [payload for batch in batches for payload in batch.column("payload").to_pylist()]
    assert payloads == [b"1", b"4"]
    assert [(record.position, record.error.code) for record in read.bad] == [
        (1, "too-large"), (2, "too-large"),
    ]  # fmt: skip
