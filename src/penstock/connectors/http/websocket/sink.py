"""The WebSocket sink: sends rows to a server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from penstock.connectors.http.websocket.client import BlockingConnection, WebsocketClient
from penstock.connectors.http.websocket.config import WebsocketSinkConfig
from penstock.sdk import BatchId, Capability, Failure, Receipt, Rejected, Sink, Writer


class WebsocketSink(Sink[WebsocketSinkConfig]):
    """Connects to a WebSocket server and sends each row as a message.

    A batch is complete when the server has replied to a ping that follows the rows. The pong
    confirms that the server has read the rows, not that it has processed them. Messages from the
    server are discarded.

    ```yaml
    type: websocket
    from: prices
    url: wss://wall.example.com/prices
    auth: {token: "${env:TOKEN}"}
    ```
    """

    acknowledges = "the server has replied to a ping that follows the rows"
    capabilities = frozenset({Capability.BYTES, Capability.ORDERED})
    extra = "http"
    client_modules = ("aiohttp",)

    def check(self) -> None:
        client = self.open()
        try:
            client.connection()
        finally:
            client.close()

    def open(self) -> WebsocketClient:
        return WebsocketClient(self.config)

    def writer(self, client: Any, batch: BatchId, partition: int, schema: pa.Schema) -> Writer:
        return WebsocketWriter(client.connection(), self.config)


class WebsocketWriter(Writer):
    """Sends all rows of a call before `write` returns."""

    def __init__(self, connection: BlockingConnection, config: WebsocketSinkConfig) -> None:
        self._connection, self._config = connection, config
        self._count = 0

    def write(
        self, rows: pa.RecordBatch, payloads: Any = None, operations: pa.StringArray | None = None
    ) -> Sequence[Failure]:
        bodies = payloads.to_pylist()
        failures = []
        if self._config.frame == "text":
            failures = [
                Failure(index, _NOT_UTF8) for index, body in enumerate(bodies) if not _is_utf8(body)
            ]
        failed = {failure.index for failure in failures}
        valid = [body for index, body in enumerate(bodies) if index not in failed]
        self._connection.send(valid)
        self._count += len(valid)
        return failures

    def commit(self) -> Receipt:
        self._connection.flush()
        return {"messages": self._count}


_NOT_UTF8 = Rejected("expected UTF-8 text; frame: binary sends any bytes", code="not-utf8")


def _is_utf8(body: bytes) -> bool:
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    return True
