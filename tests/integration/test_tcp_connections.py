"""TCP: framing, listening and connecting, TLS."""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from threading import Thread
from typing import Any

import pyarrow as pa
import pytest
from taking import Take, Taking

from penstock.connectors.tcp import TcpSink, TcpSource
from penstock.sdk import BatchId, Context, Failure, Permanent, Transient
from servers.certificates import Authority
from servers.peer import Peer
from servers.server import free_port


class Listening(Taking):
    """A source that listens, and those who send to it."""

    @property
    def port(self) -> int:
        return int(self.source.config.listen.rpartition(":")[2])

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), 10)

    def send(self, *data: bytes) -> None:
        """On one connection."""
        with self.connect() as connection:
            for each in data:
                connection.sendall(each)


@pytest.fixture
def listening(taking: Take, tmp_path: Path) -> Callable[..., Listening]:
    def listening(**options: Any) -> Listening:
        given = {"listen": f"127.0.0.1:{free_port()}", **options}
        config = TcpSource.config_type.model_validate(given)
        return taking(TcpSource(config, Context("t", "in", tmp_path / "in")), Listening)

    return listening


def sink(**options: Any) -> TcpSink:
    return TcpSink(TcpSink.config_type.model_validate(options))


def written(to: TcpSink, *payloads: bytes, number: int = 0) -> list[Failure]:
    """Writes a batch of these rows."""
    rows = pa.RecordBatch.from_pylist([{"text": each} for each in payloads])
    batch, client = BatchId("q", number), to.open()
    try:
        writer = to.writer(client, batch, 0, rows.schema)
        failures = writer.write(rows, rows.column("text"))
        to.commit(batch, [writer.commit()])
    finally:
        if client is not None:
            client.close()
    return list(failures)


def until_lost(source: TcpSource, count: int) -> None:
    until = time.monotonic() + 20
    while source.lost() < count:
        assert time.monotonic() < until
        time.sleep(0.01)


def test_lines_in_pieces(listening: Any) -> None:
    server = listening()
    server.send(b"one\r", b"\n\n  \ntw", b"o\nthree")
    assert server.payloads(3) == [b"one", b"two", b"three"]


def test_a_delimiter(listening: Any) -> None:
    server = listening(framing={"delimiter": "||"})
    server.send(b"a\nb|", b"|c|d||", b"e")
    assert server.payloads(3) == [b"a\nb", b"c|d", b"e"]


@pytest.mark.parametrize("size", [1, 2, 4])
@pytest.mark.parametrize("order", ["big", "little"])
def test_a_length(listening: Any, size: int, order: Any) -> None:
    server = listening(framing={"length": size, "order": order})
    data = b"".join(len(each).to_bytes(size, order) + each for each in (b"ab\n", b"", b"c"))
    server.send(*(data[at : at + 1] for at in range(len(data))))
    assert server.payloads(3) == [b"ab\n", b"", b"c"]


def test_a_length_in_digits(listening: Any) -> None:
    server = listening(framing={"digits": 10})
    to = sink(connect=server.source.config.listen, framing={"digits": 10})
    assert written(to, b"hello", b"", b"00\n") == []
    data = b"0000000005hello"
    server.send(*(data[at : at + 1] for at in range(len(data))))
    assert sorted(server.payloads(4)) == [b"", b"00\n", b"hello", b"hello"]


def test_digits_as_they_are_sent(peer: Peer) -> None:
    assert written(sink(connect=peer.address, framing={"digits": 10}), b"hello", b"") == []
    assert peer.kept() == [b"0000000005hello0000000000"]
    peer.clear()


def test_an_invalid_length_closes_the_connection(
    listening: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    """Other connections stay open, and the log has the error."""
    server = listening(framing={"digits": 4})
    with server.connect() as good, server.connect() as bad:
        bad.sendall(b"0001aGET / HTTP/1.1\r\n0001b")
        bad.settimeout(20)
        with suppress(ConnectionResetError):
            assert bad.recv(1) == b""
        good.sendall(b"0001c")
        assert server.payloads(2) == [b"a", b"c"]
    assert server.source.lost() == 1
    log = capfd.readouterr().err
    assert "expected the length of a message in 4 digits, not 'GET '" in log
    assert "0001b" not in log


def test_an_invalid_length_fails_a_source_that_connects(peer: Peer, tmp_path: Path) -> None:
    options = {"connect": peer.giving_address, "framing": {"digits": 2}}
    source = TcpSource(
        TcpSource.config_type.model_validate(options), Context("t", "in", tmp_path / "in")
    )
    with source.journal() as journal:

        def give() -> None:
            journal.ready.wait()
            peer.give(b"01a{}")

        giving = Thread(target=give)
        giving.start()
        with pytest.raises(Transient, match=r"in 2 digits, not '\{\}'") as caught:
            asyncio.run(source.receive(journal))
        giving.join()
    assert caught.value.code == "out-of-step" and caught.value.hint
    end = source.latest_offset(source.initial_offset())
    assert end["position"] == 1 and source.lost() == 1


def test_a_partial_message(listening: Any) -> None:
    server = listening(framing={"length": 2})
    server.send(b"\0\x01a\0\x09bc")
    until_lost(server.source, 1)
    assert server.payloads(1) == [b"a"]


@pytest.mark.parametrize(
    ("framing", "data"),
    [
        ("lines", [b"a\n" + b"x" * 11 + b"\nb\n", b"y" * 1000, b"\n", b"0123456789\nc\n"]),
        ({"delimiter": "||"}, [b"a||" + b"x" * 11 + b"||b||", b"y" * 999 + b"|",
                                 b"|0123456789||c"]),
        ({"length": 2}, [b"\0\x01a\0\x0b" + b"x" * 11 + b"\0\x01b\1\0", b"y" * 256,
                         b"\0\x0a0123456789\0\x01c"]),
        ({"digits": 3}, [b"001a011" + b"x" * 11 + b"001b256", b"y" * 256, b"010",
                         b"0123456789001c"]),
    ],
)  # fmt: skip
def test_messages_above_the_maximum_size(listening: Any, framing: Any, data: list[bytes]) -> None:
    server = listening(framing=framing, max_message_size=10)
    server.send(*data)
    assert server.payloads(4) == [b"a", b"b", b"0123456789", b"c"]
    assert server.source.lost() == 2


def test_the_sender_of_a_message(listening: Any) -> None:
    server = listening()
    with server.connect() as one, server.connect() as two:
        ports = [each.getsockname()[1] for each in (one, two)]
        one.sendall(b"1\n")
        server.rows(1)
        two.sendall(b"2\n")
        rows = server.rows(2, "remote", "remote_port")
    assert [(row["remote"], row["remote_port"]) for row in rows] == [
        ("127.0.0.1", port) for port in ports
    ]


def test_many_empty_messages_fit_into_a_small_journal(listening: Any) -> None:
    server = listening(framing={"delimiter": "|"}, journal={"max_size": "1MiB"})
    server.send(b"|" * 10_000)
    assert server.payloads(10_000) == [b""] * 10_000


def test_an_address_in_use(listening: Any) -> None:
    server = listening()
    address = server.source.config.listen
    for component in (server.source, sink(listen=address)):
        with pytest.raises(Transient, match="could not listen on"):
            component.check()


@pytest.mark.parametrize(
    ("framing", "said"),
    [
        ("lines", "delimiter"),
        ({"length": 1}, "a length of 1 bytes"),
        ({"digits": 2}, "a length of 2 digits"),
    ],
)
def test_rows_that_do_not_match_the_framing(peer: Peer, framing: Any, said: str) -> None:
    to = sink(connect=peer.address, framing=framing)
    (failure,) = written(to, b"good", b"bad\n" + b"x" * 300)
    assert failure.index == 1 and said in failure.error.message
    assert [data.strip(b"\n\x0404") for data in peer.kept()] == [b"good"]
    peer.clear()


def test_a_connection_that_was_closed_between_batches(peer: Peer) -> None:
    to = sink(connect=peer.address)
    link = to.open()
    assert link is not None
    with closing(link):
        for payload in (b"1", b"2"):
            writer = to.writer(link, BatchId("q", 0), 0, pa.schema([]))
            rows = pa.RecordBatch.from_pylist([{"text": payload}])
            writer.write(rows, rows.column("text"))
            writer.commit()
            peer.kept()
            peer.drop()
    assert peer.kept() == [b"1\n", b"2\n"]
    peer.clear()


def test_the_write_timeout(peer: Peer) -> None:
    to = sink(connect=peer.address, write_timeout="500ms")
    peer.pause()
    try:
        with pytest.raises(Transient, match="was lost"):
            written(to, b"x" * 50_000_000)
    finally:
        peer.resume()
    peer.kept()
    peer.clear()


def test_all_subscribers_receive_all_rows() -> None:
    port = free_port()
    to = sink(listen=f"127.0.0.1:{port}", min_subscribers=2)
    with closing(to):
        to.recover()
        takers = [socket.create_connection(("127.0.0.1", port), 10) for _ in range(2)]
        written(to, b"1", b"2")
        takers[0].close()
        late = socket.create_connection(("127.0.0.1", port), 10)
        written(to, b"3", number=1)
    assert [taker.makefile("rb").read() for taker in (takers[1], late)] == [b"1\n2\n3\n", b"3\n"]
    for taker in (takers[1], late):
        taker.close()


def test_a_batch_waits_for_min_subscribers() -> None:
    to = sink(listen=f"127.0.0.1:{free_port()}", min_subscribers=1, timeout="200ms")
    with closing(to), pytest.raises(Transient, match="0 of 1 subscribers") as caught:
        written(to, b"1")
    assert caught.value.hint


def test_listening_with_tls(listening: Any, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    ours, theirs = (str(authority.issue(name)) for name in ("ours", "theirs"))
    root = str(authority.root)
    server = listening(tls={"certificate": ours, "key": ours, "ca": root})
    to = {"connect": server.source.config.listen}
    written(sink(**to, tls={"ca": root, "certificate": theirs, "key": theirs}), b"1")
    assert server.payloads(1) == [b"1"]
    with pytest.raises(Permanent, match="TLS verification"):
        sink(**to, tls=True).check()
    with pytest.raises(Transient) as caught:
        for number in range(100):
            written(sink(**to, tls={"ca": root}, write_timeout="1h"), b"no", number=number)
    assert caught.value.code == "connection-lost"
    assert server.payloads(1) == [b"1"]


def test_subscribers_with_tls(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    ours = str(authority.issue("ours"))
    port = free_port()
    to = sink(listen=f"127.0.0.1:{port}", tls={"certificate": ours, "key": ours})
    context = ssl.create_default_context(cafile=str(authority.root))
    context.check_hostname = True
    with closing(to):
        to.recover()
        with socket.create_connection(("127.0.0.1", port), 10) as plain:
            got: list[bytes] = []

            def take() -> None:
                with context.wrap_socket(plain, server_hostname="127.0.0.1") as connection:
                    got.append(connection.recv(100))

            thread = Thread(target=take)
            thread.start()
            written(to, b"1")
            thread.join(10)
    assert got == [b"1\n"]
