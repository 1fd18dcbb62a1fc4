"""The stream of changes of all pipelines, as server-sent events.

The first event `pipelines` has all summaries. Each later one has the IDs and the changed fields of
those that changed, and the IDs of those that are gone. An event `age` follows at least every ten
seconds.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import aclosing
from dataclasses import asdict
from typing import Any

from fastapi import APIRouter, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse

from penstock.server.api.context import TheViews
from penstock.server.api.security import RequestError, Viewer, is_permitted
from penstock.server.views import Views

router = APIRouter(tags=["pipelines"])
PERIOD = 2.0
AGE_SECONDS = 10.0
STREAMS_PER_USER = 8
CHECK_SECONDS = 1.0
"""The time after which a stream checks again that its user has the right to it."""


class Streams:
    """The open streams of a server, limited for each user."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._lock = threading.Lock()
        self.closed = threading.Event()

    def open(self, user: str) -> None:
        """Counts a stream. Raises RequestError with the status 429 above the limit."""
        with self._lock:
            if self._counts.get(user, 0) >= STREAMS_PER_USER:
                raise RequestError(
                    429, f'the user "{user}" has {STREAMS_PER_USER} open streams',
                    code="too-many-streams", hint="Close other windows of the console.",
                )  # fmt: skip
            self._counts[user] = self._counts.get(user, 0) + 1

    def close(self, user: str) -> None:
        """Counts the end of a stream."""
        with self._lock:
            self._counts[user] -= 1

    def close_all(self) -> None:
        """Ends all streams, before the end of the server."""
        self.closed.set()


@router.get("/events", response_class=StreamingResponse)
def follow_pipelines(request: Request, user: Viewer, views: TheViews) -> StreamingResponse:
    """Streams the changes of all pipelines as server-sent events."""
    return stream(request, user.name, _events(views, streams_of(request)))


def streams_of(request: Request) -> Streams:
    """Returns the streams of the server that answers a request."""
    streams: Streams = request.app.state.streams
    return streams


def stream(
    request: Request, user: str, events: AsyncIterator[str],
    record: Callable[[], None] = lambda: None,
) -> StreamingResponse:  # fmt: skip
    """Returns the response of server-sent events, which counts as a stream of a user.

    `record` records an accepted stream before its first event. The end of the response, or of the
    client, closes `events`. The stream ends with the session or token, and the right of the user.
    Raises RequestError as `Streams`, and the errors of `record`.
    """
    streams = streams_of(request)
    streams.open(user)
    try:
        record()
    except BaseException:
        streams.close(user)
        raise
    return StreamingResponse(
        _counted(request, user, events), media_type="text/event-stream",
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )  # fmt: skip


def event(name: str, content: Mapping[str, Any]) -> str:
    """Returns the text of a server-sent event."""
    return f"event: {name}\ndata: {json.dumps(content)}\n\n"


async def _counted(request: Request, user: str, events: AsyncIterator[str]) -> AsyncIterator[str]:
    streams, checked = streams_of(request), time.monotonic()
    try:
        async with aclosing(events):  # type: ignore[type-var]
            async for each in events:
                if time.monotonic() - checked >= CHECK_SECONDS:
                    if not await is_permitted(request):
                        return
                    checked = time.monotonic()
                yield each
    finally:
        streams.close(user)


async def _events(views: Views, streams: Streams) -> AsyncIterator[str]:
    """Yields the events of one stream. A stream that waits has no thread."""
    known: dict[str, dict[str, Any]] = {}
    sent = 0.0
    while not streams.closed.is_set():
        summaries = await run_in_threadpool(views.summaries)
        current = {each.id: asdict(each) for each in summaries}
        changed = list(_changes(known, current))
        gone = sorted(known.keys() - current.keys())
        if changed or gone or not sent:
            yield event("pipelines", {"changed": changed, "gone": gone})
            sent = time.monotonic()
        elif time.monotonic() - sent >= AGE_SECONDS:
            yield event("age", {})
            sent = time.monotonic()
        known = current
        await _wait(streams)


def _changes(
    known: dict[str, dict[str, Any]], current: dict[str, dict[str, Any]]
) -> Iterator[dict[str, Any]]:
    """Yields the ID and the changed fields of each pipeline that changed, or that is new."""
    for id, facts in current.items():
        before = known.get(id, {})
        if before != facts:
            yield {
                "id": id,
                **{n: v for n, v in facts.items() if n not in before or before[n] != v},
            }


async def _wait(streams: Streams) -> None:
    """Waits for the next comparison, or for the end of all streams."""
    until = time.monotonic() + PERIOD
    while time.monotonic() < until and not streams.closed.is_set():
        await asyncio.sleep(0.1)
