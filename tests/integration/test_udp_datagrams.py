"""UDP: framing of datagrams, multicast, and lost datagrams."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from taking import Take, Taking

from penstock.connectors.udp import UdpSink, UdpSource
from penstock.sdk import BatchId, Context, Failure, Transient
from servers.server import free_port

GROUP = "239.255.7.7"


class Listening(Taking):
    """A source that listens, and those who send to it."""

    @property
    def port(self) -> int:
        return int(self.source.config.listen.rpartition(":")[2])

    def send(self, *datagrams: bytes) -> int:
        """Returns the port that they come from."""
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            for each in datagrams:
                sock.sendto(each, ("127.0.0.1", self.port))
            return int(sock.getsockname()[1])


@pytest.fixture
def listening(taking: Take, tmp_path: Path) -> Callable[..., Listening]:
    def listening(**options: Any) -> Listening:
        address, port = "0.0.0.0" if "multicast_group" in options else "127.0.0.1", free_port()
        config = UdpSource.config_type.model_validate({"listen": f"{address}:{port}", **options})
        return taking(UdpSource(config, Context("t", "in", tmp_path / f"{port}")), Listening)

    return listening


def written(options: dict[str, Any], *payloads: bytes) -> tuple[list[Failure], int]:
    """Returns the rejected rows and the number of datagrams."""
    to = UdpSink(UdpSink.config_type.model_validate(options))
    rows = pa.RecordBatch.from_pylist([{"text": each} for each in payloads])
    with closing(to.open()) as client:
        writer = to.writer(client, BatchId("q", 0), 0, rows.schema)
        failures = writer.write(rows, rows.column("text"))
        return list(failures), writer.commit()["datagrams"]


def until_lost(source: UdpSource, count: int) -> None:
    until = time.monotonic() + 20
    while source.lost() < count:
        assert time.monotonic() < until, source.lost()
        time.sleep(0.01)


def test_a_datagram_is_a_message(listening: Any) -> None:
    server = listening()
    port = server.send(b"a\nb", b"", b"c")
    rows = server.rows(3, "remote", "remote_port")
    assert [row["payload"] for row in rows] == [b"a\nb", b"", b"c"]
    assert {(row["remote"], row["remote_port"]) for row in rows} == {("127.0.0.1", port)}


@pytest.mark.parametrize(
    ("framing", "size"),
    [
        ("lines", 14),
        ({"delimiter": "||"}, 17),
        ({"length": 2, "order": "little"}, 17),
        ({"digits": 3}, 20),
    ],
)
def test_several_messages_in_a_datagram(listening: Any, framing: Any, size: int) -> None:
    server = listening(framing=framing)
    to = {"connect": f"127.0.0.1:{server.port}", "framing": framing, "max_datagram_size": size}
    failures, datagrams = written(to, b"one", b"two", b"three", b"four")
    assert not failures and datagrams == 2
    assert server.payloads(4) == [b"one", b"two", b"three", b"four"]


def test_a_row_larger_than_a_datagram(listening: Any) -> None:
    server = listening()
    to = {"connect": f"127.0.0.1:{server.port}"}
    failures, datagrams = written(to, b"x" * 65_508, b"x" * 65_507)
    assert [failure.index for failure in failures] == [0] and datagrams == 1
    assert server.payloads(1) == [b"x" * 65_507]


def test_messages_above_the_maximum_size(listening: Any) -> None:
    server = listening(max_message_size=10)
    server.send(b"x" * 11, b"x" * 10)
    assert server.payloads(1) == [b"x" * 10] and server.source.lost() == 1
    lines = listening(max_message_size=10, framing="lines")
    lines.send(b"a\n" + b"x" * 11 + b"\nb")
    assert lines.payloads(2) == [b"a", b"b"] and lines.source.lost() == 1


def test_an_invalid_length_ends_the_datagram(listening: Any) -> None:
    server = listening(framing={"digits": 2})
    server.send(b"01a02", b"01b0x01-", b"01c")
    assert server.payloads(3) == [b"a", b"b", b"c"] and server.source.lost() == 2


def test_a_full_journal_drops_and_counts(listening: Any) -> None:
    server = listening(journal={"max_size": "1MiB"})
    server.send(*[b"x" * 60_000] * 30)
    until_lost(server.source, 5)
    end = server.source.latest_offset(server.source.initial_offset())["position"]
    assert end + server.source.lost() <= 30


def test_drops_of_the_socket_are_counted(listening: Any) -> None:
    server = listening(buffer=4096)
    server.send(*[b"x" * 1000] * 20_000)
    server.send(b"last")
    until = time.monotonic() + 20
    while (
        end := server.source.latest_offset({"position": 0})["position"]
    ) + server.source.lost() < 20_001:
        assert time.monotonic() < until, (end, server.source.lost())
        time.sleep(0.05)
    assert server.source.lost() > 0


def test_a_multicast_group(listening: Any) -> None:
    """Several sources of a machine may join the group."""
    one = listening(multicast_group=GROUP, interface="127.0.0.1")
    other = UdpSource.config_type.model_validate(
        {"listen": f"0.0.0.0:{one.port}", "multicast_group": GROUP, "interface": "127.0.0.1"}
    )
    UdpSource(other).check()
    to = {"connect": f"{GROUP}:{one.port}", "interface": "127.0.0.1", "hops": 0}
    assert written(to, b"1", b"2") == ([], 2)
    assert one.payloads(2) == [b"1", b"2"]


def test_the_time_to_live_of_multicast() -> None:
    given = {"connect": f"{GROUP}:5000", "interface": "127.0.0.1", "hops": 3}
    with closing(UdpSink(UdpSink.config_type.model_validate(given)).open()) as client:
        assert client.getsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL) == 3
        assert client.getsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, 4) == b"\x7f\0\0\1"


def test_a_port_without_a_listener() -> None:
    to = {"connect": f"127.0.0.1:{free_port()}"}
    assert written(to, b"1", b"2", b"3") == ([], 3)


def test_an_address_in_use(listening: Any) -> None:
    with pytest.raises(Transient, match="could not listen on"):
        listening().source.check()
