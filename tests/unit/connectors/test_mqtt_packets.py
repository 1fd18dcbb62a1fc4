"""The reading of MQTT packets from chunks."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from penstock.connectors.mqtt.packets import packet_size, replace_reader
from penstock.sdk.network.byte_budget import ByteBudget

gmqtt_protocol = pytest.importorskip("gmqtt.mqtt.protocol")


def packet(size: int) -> bytes:
    """Returns a packet whose body has a size."""
    length, remaining = bytearray(), size
    while True:
        remaining, digit = divmod(remaining, 128)
        length.append(digit | (0x80 if remaining else 0))
        if not remaining:
            return b"\x30" + bytes(length) + b"x" * size


@pytest.mark.parametrize("size", [0, 1, 127, 128, 16_383, 16_384, 2_097_152])
def test_packet_size(size: int) -> None:
    data = packet(size)
    assert packet_size(data) == len(data)
    assert packet_size(data[:1]) == 0 and packet_size(b"\x30\x80\x80") == 0


class ReadingConnection:
    """A connection whose protocol reads from chunks and keeps the sizes of packets."""

    _last_data_in = 0.0

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self.sizes: list[int] = []
        self.copied = 0
        self._chunks = chunks
        self._connected = asyncio.Event()
        self._connected.set()
        self._protocol = self._transport = self._connection = self
        self._read_loop_future: Any = asyncio.get_running_loop().create_future()

    async def read(self, count: int) -> bytes:
        chunk = next(self._chunks, None)
        if chunk is None:
            raise ConnectionResetError
        return chunk

    def is_closing(self) -> bool:
        return False

    def put_package(self, package: Any) -> None:
        self.sizes.append(len(package.data))

    def _read_packet(self, data: bytes) -> int:
        self.copied += len(data)
        return int(gmqtt_protocol.MQTTProtocol._read_packet(self, data))


def read(chunks: Iterator[bytes]) -> ReadingConnection:
    """Returns the connection after it has read all chunks."""

    async def run() -> ReadingConnection:
        connection = ReadingConnection(chunks)
        replace_reader(connection, ByteBudget())
        with suppress(asyncio.CancelledError):
            await connection._read_loop_future
        return connection

    return asyncio.run(run())


@pytest.mark.parametrize("length", [1, 2, 3, 1_000, 100_000])
def test_packets_of_any_chunks(length: int) -> None:
    sizes = [0, 5, 127, 128, 3_000, 0, 20_000, 1]
    data = b"".join(map(packet, sizes))
    chunks = (data[start : start + length] for start in range(0, len(data), length))
    assert read(chunks).sizes == sizes


@pytest.mark.slow
def test_a_large_packet_is_parsed_once() -> None:
    data = packet(20_000_000) + packet(1)
    chunks = (data[start : start + 65_536] for start in range(0, len(data), 65_536))
    connection = read(chunks)
    assert connection.sizes == [20_000_000, 1]
    assert connection.copied < len(data) + 200_000


def test_reading_waits_for_room() -> None:
    async def run() -> None:
        budget = ByteBudget(10)
        connection = ReadingConnection(iter([packet(1)]))
        with budget.share() as message:
            message.resize(10)
            replace_reader(connection, budget)
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            assert connection.sizes == []
        await connection._read_loop_future
        assert connection.sizes == [1]

    asyncio.run(run())
