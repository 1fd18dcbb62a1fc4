"""A stream of server-sent events, divided (HTML Living Standard, 9.2.6)."""

from __future__ import annotations

import re
from dataclasses import dataclass

from penstock.sdk import Permanent

_LINE_END = re.compile(rb"\r\n|\r|\n")
_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Event:
    """An event; `id` is the last that the server gave, with this event or before."""

    name: str
    data: bytes
    id: str


class Events:
    """Takes a stream as it comes, and gives the events in it.

    `last_id` and `retry` (seconds) are what the server said last. Raises Permanent where an event
    has more than `most` bytes.
    """

    def __init__(self, last_id: str = "", most: int = 16 << 20) -> None:
        self.last_id = last_id
        self.retry: float | None = None
        self._most = most
        self._head: bytes | None = b""
        self._held = b""
        self._rest = bytearray()
        self._name = ""
        self._data: list[bytes] = []
        self._size = 0
        self._id = last_id

    def taken(self, chunk: bytes) -> list[Event]:
        """The events that are whole with these bytes."""
        if self._head is not None:
            self._head += chunk
            if len(self._head) < len(_MARK):
                return []
            chunk, self._head = self._head.removeprefix(_MARK), None
        chunk, self._held = self._held + chunk, b""
        if chunk.endswith(b"\r"):
            chunk, self._held = chunk[:-1], b"\r"
        first, *more = _LINE_END.split(chunk)
        self._rest += first
        self._need_room(len(self._rest))
        if not more:
            return []
        lines = [bytes(self._rest), *more[:-1]]
        self._rest = bytearray(more[-1])
        return [event for line in lines if (event := self._line(line)) is not None]

    def _line(self, line: bytes) -> Event | None:
        if not line:
            return self._dispatched()
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            self._data.append(value)
            self._size += len(value) + 1
            self._need_room(self._size)
        elif field == b"event":
            self._name = value.decode(errors="replace")
        elif field == b"id" and b"\0" not in value:
            self._id = value.decode(errors="replace")
        elif field == b"retry" and value.isdigit():
            self.retry = int(value) / 1000
        return None

    def _dispatched(self) -> Event | None:
        name, data = self._name or "message", self._data
        self.last_id, self._name, self._data, self._size = self._id, "", [], 0
        return Event(name, b"\n".join(data), self._id) if data else None

    def _need_room(self, size: int) -> None:
        if size > self._most:
            raise Permanent(
                f"an event has more than {self._most:,} bytes",
                code="too-large",
                hint="max_message says how large it may be",
            )
