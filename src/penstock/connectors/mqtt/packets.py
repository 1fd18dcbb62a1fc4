"""Reading of MQTT packets: time linear in the size of a packet, bounded bytes in flight."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import Any

from penstock.sdk.network.byte_budget import ByteBudget

_CHUNK_BYTES = 64 << 10
_MAX_LENGTH_BYTES = 4
_REFRESH_SECONDS = 1.0


def replace_reader(connection: Any, budget: ByteBudget) -> None:
    """Replaces the reading task of a connection of gmqtt, before the first packet is sent.

    The client copies and parses all bytes of an incomplete packet with each chunk (gmqtt 0.8), so
    that its time is quadratic in the size of a packet.
    """
    protocol = connection._protocol
    protocol._read_loop_future.cancel()
    protocol._read_loop_future = asyncio.ensure_future(_read_packets(connection, budget))


def packet_size(data: bytes | bytearray) -> int:
    """Returns the size of the first packet (MQTT 5.0, section 2.1.4); 0 if it is unknown."""
    length = 0
    for index, byte in enumerate(data[1 : 1 + _MAX_LENGTH_BYTES]):
        length |= (byte & 0x7F) << 7 * index
        if not byte & 0x80:
            return 2 + index + length
    return 0


async def _read_packets(connection: Any, budget: ByteBudget) -> None:
    """Passes packets to the connection until it is closed."""
    protocol = connection._protocol
    buffer = bytearray()
    with suppress(ConnectionResetError):
        while protocol._connected.is_set():
            await _await_room(connection, budget)
            buffer += await protocol.read(_CHUNK_BYTES)
            if len(buffer) < packet_size(buffer):
                continue
            parsed = protocol._read_packet(bytes(buffer))
            if parsed == -1 or protocol._transport.is_closing():
                break
            del buffer[:parsed]


async def _await_room(connection: Any, budget: ByteBudget) -> None:
    """Waits while the messages in flight exceed the budget. Unread bytes count as a heartbeat."""
    share = budget.share()
    while not budget.has_room(share):
        connection._last_data_in = time.monotonic()
        with suppress(TimeoutError):
            async with asyncio.timeout(_REFRESH_SECONDS):
                await share.await_room()
