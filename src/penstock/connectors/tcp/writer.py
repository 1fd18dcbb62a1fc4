"""Writers of the TCP sink: to a connection, or to the driver for a broadcast."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from penstock.connectors.tcp.client import TcpClient
from penstock.sdk import Failure, Receipt, Writer
from penstock.sdk.messages.framing import Framing, encode_frames
from penstock.sdk.messages.packing import pack_messages


class TcpWriter(Writer):
    """Sends all rows of a call before `write` returns."""

    def __init__(self, client: TcpClient, framing: Framing) -> None:
        self._client, self._framing = client, framing
        self._count = 0

    def write(
        self, rows: pa.RecordBatch, payloads: Any = None, operations: pa.StringArray | None = None
    ) -> Sequence[Failure]:
        frames, failures = encode_frames(payloads, self._framing)
        self._client.send(b"".join(frames))
        self._count += len(frames)
        return failures

    def commit(self) -> Receipt:
        self._client.flush()
        return {"messages": self._count}


class BroadcastWriter(Writer):
    """Packs the rows into the receipt, for the driver to send."""

    def __init__(self, partition: int, framing: Framing) -> None:
        self._partition, self._framing = partition, framing
        self._frames: list[bytes] = []

    def write(
        self, rows: pa.RecordBatch, payloads: Any = None, operations: pa.StringArray | None = None
    ) -> Sequence[Failure]:
        frames, failures = encode_frames(payloads, self._framing)
        self._frames += frames
        return failures

    def commit(self) -> Receipt:
        return pack_messages(self._partition, [self._frames])
