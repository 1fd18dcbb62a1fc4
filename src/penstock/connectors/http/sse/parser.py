"""Parser of event streams (HTML Living Standard, 9.2.6)."""

from __future__ import annotations

import re
from dataclasses import dataclass

from penstock.connectors.http.errors import message_too_large

_LINE_END = re.compile(rb"\r\n|\r|\n")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Event:
    """An event. `id` is the last event ID of the stream, set by this event or an earlier one."""

    name: str
    data: bytes
    id: str


class EventParser:
    """Incremental parser of an event stream.

    `last_id` is the last event ID, and `retry` the reconnection time in seconds that the server
    set. Raises Permanent if an event has more than `max_size` bytes.
    """

    def __init__(self, last_id: str = "", max_size: int = 16 << 20) -> None:
        self.last_id = last_id
        self.retry: float | None = None
        self._max_size = max_size
        self._head: bytes | None = b""
        self._carriage_return = b""
        self._partial_line = bytearray()
        self._name = ""
        self._data: list[bytes] = []
        self._size = 0
        self._id = last_id

    def feed(self, chunk: bytes) -> list[Event]:
        """Returns the events that this chunk completes."""
        if self._head is not None:
            self._head += chunk
            if len(self._head) < len(_BYTE_ORDER_MARK):
                return []
            chunk, self._head = self._head.removeprefix(_BYTE_ORDER_MARK), None
        chunk, self._carriage_return = self._carriage_return + chunk, b""
        if chunk.endswith(b"\r"):
            chunk, self._carriage_return = chunk[:-1], b"\r"
        first, *remaining = _LINE_END.split(chunk)
        self._partial_line += first
        self._check_size(len(self._partial_line))
        if not remaining:
            return []
        lines = [bytes(self._partial_line), *remaining[:-1]]
        self._partial_line = bytearray(remaining[-1])
        return [event for line in lines if (event := self._parse_line(line)) is not None]

    def _parse_line(self, line: bytes) -> Event | None:
        if not line:
            return self._dispatch()
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            self._data.append(value)
            self._size += len(value) + 1
            self._check_size(self._size)
        elif field == b"event":
            self._name = value.decode(errors="replace")
        elif field == b"id" and b"\0" not in value:
            self._id = value.decode(errors="replace")
        elif field == b"retry" and value.isdigit():
            self.retry = int(value) / 1000
        return None

    def _dispatch(self) -> Event | None:
        name, data = self._name or "message", self._data
        self.last_id, self._name, self._data, self._size = self._id, "", [], 0
        return Event(name, b"\n".join(data), self._id) if data else None

    def _check_size(self, size: int) -> None:
        if size > self._max_size:
            raise message_too_large(self._max_size, "an event")
