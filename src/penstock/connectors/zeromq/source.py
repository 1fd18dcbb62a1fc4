"""The source of ZeroMQ sockets."""

from __future__ import annotations

import asyncio
from typing import Any

import pyarrow as pa

from penstock.connectors.zeromq.client import MonitoredSocket
from penstock.connectors.zeromq.config import ZeromqSourceConfig
from penstock.connectors.zeromq.sync import SyncClient
from penstock.sdk import Journal, Message, ReceivingSource, Transient

_MAX_APPEND_BYTES = 128 << 10
"""The bytes of one append to the journal. They fit into the smallest journal."""
_MESSAGE_OVERHEAD = 64
_POLL_SECONDS = 0.2


class ZeromqSource(ReceivingSource[ZeromqSourceConfig]):
    """Receives messages from a ZeroMQ socket: SUB or PULL.

    The payload is the last part of a message. Of several parts the first is the topic, and `parts`
    are all parts before the payload. While the journal is full, the source does not receive: PUSH
    peers wait, and PUB peers drop messages above their high-water mark. ZeroMQ has no
    acknowledgements: messages in the socket's memory are lost when the process is killed.

    With `sync` the publisher is a program of stream_data_processor, or a Penstock sink with `sync`.
    After its message `connect` the source sends a request, and receives all later messages.
    Messages without a prior `connect` are received as well. `end` does not end the run: the source
    waits for the next `connect`, also of another publisher at the same endpoint. Neither `connect`
    nor `end` is a row.

    ```yaml
    type: zeromq
    connect: tcp://publisher.example.com:5555
    topic: [orders, payments]
    metadata: {kind: topic}
    ```
    """

    parallelism = "the socket"
    acknowledges = None
    extra = "zeromq"
    client_modules = ("zmq",)

    def message_metadata_schema(self) -> pa.Schema:
        return pa.schema([("topic", pa.string()), ("parts", pa.list_(pa.binary()))])

    def check(self) -> None:
        """Listens at the endpoint, or connects to the peers."""
        monitored_socket = self._open()
        try:
            monitored_socket.await_peers()
        finally:
            monitored_socket.close()

    async def receive(self, journal: Journal) -> None:
        monitored_socket = await asyncio.to_thread(self._open)
        sync = SyncClient(self.config, self.config.sync)
        try:
            await asyncio.to_thread(monitored_socket.await_peers)
            journal.ready.set()
            loss: Transient | None = None
            while True:
                loss = loss or _connection_loss(monitored_socket)
                if messages := await _receive(
                    monitored_socket.socket, 0 if loss else _POLL_SECONDS
                ):
                    await journal.append(sync.remove_control_messages(messages))
                    if sync.request_due:
                        await asyncio.to_thread(sync.send_request)
                elif loss is not None:
                    if not sync.ended:
                        raise loss
                    loss = None
        finally:
            sync.close()
            monitored_socket.close()

    def _open(self) -> MonitoredSocket:
        kind = self.config.socket.upper()
        monitored_socket = MonitoredSocket(self.config, kind)
        if kind == "SUB":
            for topic in self.config.topics:
                monitored_socket.socket.subscribe(topic)
        return monitored_socket


def _connection_loss(monitored_socket: MonitoredSocket) -> Transient | None:
    """Returns the error of a lost connection. Its last messages may still be in the socket."""
    try:
        monitored_socket.process_events()
    except Transient as error:
        return error
    return None


async def _receive(socket: Any, seconds: float) -> list[Message]:
    """Returns the available messages after waiting up to `seconds` for the first one."""
    import zmq

    loop = asyncio.get_running_loop()
    readable = asyncio.Event()
    loop.add_reader(socket.fd, readable.set)
    try:
        if not socket.events & zmq.POLLIN:
            async with asyncio.timeout(seconds):
                await readable.wait()
    except TimeoutError:
        pass
    finally:
        loop.remove_reader(socket.fd)
    messages: list[Message] = []
    size = 0
    while size < _MAX_APPEND_BYTES and socket.events & zmq.POLLIN:
        parts = socket.recv_multipart(zmq.NOBLOCK)
        size += _MESSAGE_OVERHEAD + sum(map(len, parts))
        messages.append(_message(parts))
    return messages


def _message(parts: list[bytes]) -> Message:
    topic = parts[0].decode(errors="replace") if len(parts) > 1 else None
    return Message(parts[-1], {"topic": topic, "parts": parts[:-1]})
