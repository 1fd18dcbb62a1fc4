"""Synchronized start, the protocol of stream_data_processor: the option `sync`.

The publisher sends `connect` until each subscriber has sent a request to an endpoint of its own,
and sends `end` after the last message. Both are ordinary messages of the data socket.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from penstock.connectors.zeromq.client import MonitoredSocket
from penstock.connectors.zeromq.config import SocketConfig
from penstock.core.files.durable import create_directory_durably
from penstock.sdk import Message
from penstock.sdk.state_file import JsonStateFile

CONNECT, END = b"connect", b"end"
CONTROL_MESSAGES = (CONNECT, END)


class SyncServer:
    """The publisher's side: the endpoints of `sync`, and the subscribers that are synchronized.

    `state` keeps the synchronized endpoints until `end`: a subscriber sends its request only once,
    also when the publisher restarts.
    """

    def __init__(self, config: SocketConfig, endpoints: Sequence[str], state: Path | None) -> None:
        self._file = None
        if state is not None:
            create_directory_durably(state)
            self._file = JsonStateFile(state / "sync.json", config.listen or "")
        synchronized = self._file.load().get("synchronized", []) if self._file is not None else []
        self.missing = [endpoint for endpoint in endpoints if endpoint not in synchronized]
        self._endpoints = endpoints
        self._sockets: dict[str, MonitoredSocket] = {}
        try:
            for endpoint in endpoints:
                self._sockets[endpoint] = MonitoredSocket(
                    config.with_endpoint(listen=endpoint), "REP"
                )
        except BaseException:
            self.close()
            raise

    def answer(self, milliseconds: int = 0) -> None:
        """Answers pending requests, and waits for the first one for `milliseconds`."""
        for endpoint, monitored_socket in self._sockets.items():
            while monitored_socket.socket.poll(milliseconds):
                monitored_socket.socket.recv_multipart()
                monitored_socket.socket.send(b"")
                milliseconds = 0
                if endpoint in self.missing:
                    self.missing.remove(endpoint)
                    self._save([name for name in self._endpoints if name not in self.missing])

    def reset(self) -> None:
        """Requires a new request of each subscriber, as after `end`."""
        self.missing = [*self._endpoints]
        self._save([])

    def close(self, linger: float = 0.0) -> None:
        """Closes the endpoints after sending pending answers for up to `linger` seconds."""
        for monitored_socket in self._sockets.values():
            monitored_socket.close(linger)

    def _save(self, synchronized: list[str]) -> None:
        if self._file is not None:
            self._file.save({"synchronized": synchronized})


class SyncClient:
    """The subscriber's side: sends one request after `connect`, and again only after `end`."""

    def __init__(self, config: SocketConfig, endpoint: str | None) -> None:
        self._config, self._endpoint = config, endpoint
        self._request: MonitoredSocket | None = None
        self.request_due = False
        """Whether a `connect` message awaits the request."""
        self.ended = False
        """Whether the last message was `end`, after which the publisher may disconnect."""

    def remove_control_messages(self, messages: Iterable[Message]) -> list[Message]:
        """Processes `connect` and `end`. Returns the other messages."""
        if self._endpoint is None:
            return [*messages]
        rows = []
        for message in messages:
            single_part = not message.metadata["parts"]
            self.ended = single_part and message.payload == END
            if self.ended:
                self.close()
            elif single_part and message.payload == CONNECT:
                self.request_due = self._request is None
            else:
                rows.append(message)
        return rows

    def send_request(self) -> None:
        """Sends the request. Raises Transient if the endpoint is not reachable."""
        self.request_due = False
        self._request = MonitoredSocket(self._config.with_endpoint(connect=self._endpoint), "REQ")
        self._request.await_peers()
        self._request.socket.send(b"")

    def close(self) -> None:
        """Closes the request socket and waits for the next `connect`."""
        self.request_due = False
        if self._request is not None:
            self._request.close()
            self._request = None
