"""Reading of server-sent events from the response of a server."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from http.client import HTTPException, HTTPResponse
from socket import socket
from typing import Any

EVENTS = "text/event-stream"
MAX_LINE = 64 * 1024 * 1024


def read_events(
    response: HTTPResponse, connection: socket, deadline: float, silence: float
) -> Iterator[tuple[str, Any]]:
    """Yields the names and contents of events until the deadline.

    Raises TimeoutError after `silence` seconds without a line, and HTTPException at the end of the
    stream and for other contents.
    """
    name, parts = "", list[str]()
    while (remaining := deadline - time.monotonic()) > 0:
        connection.settimeout(min(remaining, silence))
        try:
            line = response.readline(MAX_LINE + 1)
        except TimeoutError:
            if time.monotonic() >= deadline:
                return
            raise
        if not line.endswith(b"\n"):
            raise HTTPException("the server ended the stream" if not line else "a line is too long")
        text = line.decode("utf-8", "replace").rstrip("\r\n")
        key, _, value = text.partition(":")
        if key == "event":
            name = value.strip()
        elif key == "data":
            parts.append(value)
        elif not text and parts:
            yield name, _content(parts)
            name, parts = "", []


def _content(parts: list[str]) -> Any:
    try:
        return json.loads("\n".join(parts))
    except (ValueError, RecursionError):
        raise HTTPException("the server sent an event that is no JSON") from None
