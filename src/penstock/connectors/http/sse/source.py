"""The source of server-sent events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pyarrow as pa
from pydantic import Field

from penstock.connectors.http.asking import Answer, reaching, refused, session
from penstock.connectors.http.endpoint import EndpointConfig, HttpUrl
from penstock.connectors.http.sse.events import Events
from penstock.sdk import (
    ByteSize,
    Duration,
    Journal,
    Message,
    Permanent,
    ReceivingConfig,
    ReceivingSource,
    Transient,
)
from penstock.sdk.kit.kept import Kept

_EXCERPT = 500
_TYPE = "text/event-stream"


class SseSourceConfig(EndpointConfig, ReceivingConfig):
    url: HttpUrl
    """The stream."""
    events: list[str] = []
    """The events to take, by name; all if left out. Those without a name are `message`."""
    pause: Duration = 3.0
    """How long to wait before connecting again after the stream has ended; what the server says
    (`retry:`) goes before it."""
    silence: Duration = Field(default=300.0, gt=0)
    """How long the stream may be silent; then it is connected to again."""
    max_message: ByteSize = Field(default=16 << 20, ge=1)
    """The largest event that is taken."""


class SseSource(ReceivingSource[SseSourceConfig]):
    """Reads a stream of server-sent events; the data of each event is a record.

    The id of the last event is kept once the event is on disk, and sent as `Last-Event-ID` with
    the next connect, also after a restart: a server that honours it goes on from there, and
    nothing is lost. Events without an id are lost while we are away.

    ```yaml
    type: sse
    url: https://stream.example.com/v2/changes
    events: [change]
    metadata: {kind: event, event_id: id}
    ```
    """

    parallelism = "the connection"
    acknowledges = "`Last-Event-ID` is of the last event on disk; never where events have no id"
    extra = "http"
    clients = ("aiohttp",)

    def about(self) -> pa.Schema:
        return pa.schema([("event", pa.string()), ("id", pa.string())])

    def check(self) -> None:
        asyncio.run(self._tried())

    async def receive(self, journal: Journal) -> None:
        kept = Kept(self.directory / "last-event.json", self.config.url)
        while True:
            events = Events(kept.load().get("id", ""), self.config.max_message)
            try:
                async with self._connected(events.last_id) as response:
                    journal.ready.set()
                    await self._read(response, events, journal, kept)
            except Transient:
                await asyncio.sleep(events.retry or 0)
                raise
            await asyncio.sleep(self.config.pause if events.retry is None else events.retry)

    async def _tried(self) -> None:
        async with self._connected(""):
            pass

    @asynccontextmanager
    async def _connected(self, last_id: str) -> AsyncIterator[Any]:
        """The server's answer, from its body on. Raises Transient or Permanent."""
        config = self.config
        headers = {"Accept": _TYPE, "Cache-Control": "no-store", **config.revealed_headers()}
        if last_id:
            headers["Last-Event-ID"] = last_id
        async with session(config.auth, config.tls, None) as asking:
            with reaching(config.url):
                async with asyncio.timeout(config.timeout):
                    response = await asking.get(config.url, headers=headers, allow_redirects=False)
                    if response.status != 200:
                        body = await response.content.read(_EXCERPT)
                        raise refused(config.url, Answer(response.status, response.headers, body))
            if response.content_type != _TYPE:
                raise Permanent(
                    f"{config.url} is no stream of events: it is {response.content_type}",
                    code="no-events",
                    hint="look at url",
                )
            yield response

    async def _read(self, response: Any, events: Events, journal: Journal, kept: Kept) -> None:
        """Until the stream has ended, or is silent for too long."""
        while chunk := await self._chunk(response):
            last_id = events.last_id
            taken = [
                Message(each.data, {"event": each.name, "id": each.id or None})
                for each in events.taken(chunk)
                if not self.config.events or each.name in self.config.events
            ]
            await journal.append(taken)
            if events.last_id != last_id:
                kept.save({"id": events.last_id})

    async def _chunk(self, response: Any) -> bytes:
        with reaching(self.config.url):
            try:
                async with asyncio.timeout(self.config.silence):
                    return bytes(await response.content.readany())
            except TimeoutError:
                return b""
