"""The sink of ZeroMQ sockets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from penstock.connectors.zeromq.config import ZeromqSinkConfig
from penstock.connectors.zeromq.writer import Sender, ZeromqWriter
from penstock.core.errors import raise_all
from penstock.sdk import BatchId, Capability, Context, Receipt, Sink, Writer
from penstock.sdk.messages.packing import unpack_messages


class ZeromqSink(Sink[ZeromqSinkConfig]):
    """Sends rows through a ZeroMQ socket: PUB or PUSH.

    A batch waits for its subscribers, and slow subscribers delay it. ZeroMQ has no
    acknowledgements: a lost message is not detected.

    With `connect`, each partition of a batch opens a connection, and is done once the operating
    system has all messages. With `listen`, the driver keeps the socket open and sends all
    messages, so a batch must fit into its memory.

    `sync` synchronizes the start with programs of stream_data_processor. The first batch sends the
    message `connect` every second, for up to `timeout`, until each endpoint has received a request.
    A run that ends by itself sends `end`; a run that is stopped does not. A subscriber sends only
    one request, so the synchronized endpoints are kept in the state: after a stop or a crash the
    next run waits for as many subscriptions and sends `connect` once. After `end` or `--fresh` each
    subscriber must send a request again. A row that is exactly `connect` or `end` becomes a dead
    letter.

    ```yaml
    type: zeromq
    from: late
    listen: tcp://0.0.0.0:5555
    topic: flights.{carrier}
    min_subscribers: 2
    ```
    """

    acknowledges = None
    variants = ("connect: tcp://collector.example.com:5555", "listen: tcp://0.0.0.0:5555")
    capabilities = frozenset({Capability.BYTES, Capability.ORDERED})
    extra = "zeromq"
    client_modules = ("zmq",)
    _sender: Sender | None = None

    def __init__(self, config: ZeromqSinkConfig, context: Context | None = None) -> None:
        super().__init__(config, context)
        if config.listen is not None:
            self.parallelism = "the driver"

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_sender": None}

    def check_schema(self, columns: pa.Schema) -> None:
        super().check_schema(columns)
        if self.config.topic is not None:
            raise_all(self.config.topic.check(columns, "topic"))

    def check(self) -> None:
        """Listens at the endpoint, or connects to the peers."""
        if self._sender is None:
            sender = Sender(self.config)
            try:
                sender.await_peers()
            finally:
                sender.close()

    def writer(self, client: Any, batch: BatchId, partition: int, schema: pa.Schema) -> Writer:
        return ZeromqWriter(self.config, partition)

    def recover(self) -> None:
        if self.config.listen is not None:
            self._listening_sender()

    def commit(self, batch: BatchId, receipts: Sequence[Receipt]) -> None:
        if self.config.listen is not None and receipts:
            self._listening_sender().send(unpack_messages(receipts))

    def complete(self) -> None:
        try:
            if self._sender is not None:
                self._sender.send_end()
        finally:
            self.close()

    def close(self) -> None:
        if self._sender is not None:
            sender, self._sender = self._sender, None
            sender.flush_and_close()

    def _listening_sender(self) -> Sender:
        if self._sender is None:
            self._sender = Sender(self.config, self.context.state)
        return self._sender
