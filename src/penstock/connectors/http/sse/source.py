"""The source of server-sent events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pyarrow as pa
from pydantic import Field

from penstock.connectors.http.client import Response, new_session
from penstock.connectors.http.config import HttpUrl, StaticClientConfig
from penstock.connectors.http.errors import translate_errors
from penstock.connectors.http.sse.parser import EventParser
from penstock.sdk import (
    ByteSize,
    Duration,
    Journal,
    Message,
    Permanent,
    PositiveDuration,
    ReceivingConfig,
    ReceivingSource,
    Transient,
)
from penstock.sdk.state_file import JsonStateFile

_EXCERPT_BYTES = 500
_CONTENT_TYPE = "text/event-stream"


class SseSourceConfig(StaticClientConfig, ReceivingConfig):
    url: HttpUrl
    """The URL of the event stream."""
    events: list[str] = []
    """The names of the events to receive; all events by default. The name of an event without a
    name is `message`."""
    reconnect_delay: Duration = Field(default=3.0, ge=0)
    """The delay before a reconnect after the end of the stream. The reconnection time that the
    server sends (`retry:`) overrides the delay."""
    idle_timeout: PositiveDuration = 300.0
    """The maximum time without data. After that time the source reconnects."""
    max_message_size: ByteSize = Field(default=16 << 20, ge=1)
    """The maximum size of an event."""


class SseSource(ReceivingSource[SseSourceConfig]):
    """Receives a stream of server-sent events. The data of each event is a message.

    The ID of the last event is saved once the event is on disk. Each connect sends the ID as
    `Last-Event-ID`, also after a restart: a server that supports the header resumes after that
    event, and no event is lost. Events without an ID are lost while the source is disconnected.

    ```yaml
    type: sse
    url: https://stream.example.com/v2/changes
    events: [change]
    metadata: {kind: event, event_id: id}
    ```
    """

    parallelism = "the connection"
    acknowledges = (
        "`Last-Event-ID` is the ID of the last event on disk; never for events without IDs"
    )
    extra = "http"
    client_modules = ("aiohttp",)

    def message_metadata_schema(self) -> pa.Schema:
        return pa.schema([("event", pa.string()), ("id", pa.string())])

    def check(self) -> None:
        asyncio.run(self._check())

    async def receive(self, journal: Journal) -> None:
        file = JsonStateFile(self.directory / "last-event.json", self.config.url)
        while True:
            parser = EventParser(file.load().get("id", ""), self.config.max_message_size)
            try:
                async with self._connect(parser.last_id) as response:
                    journal.ready.set()
                    await self._receive_events(response, parser, journal, file)
            except Transient:
                await asyncio.sleep(parser.retry or 0)
                raise
            delay = self.config.reconnect_delay if parser.retry is None else parser.retry
            await asyncio.sleep(delay)

    async def _check(self) -> None:
        async with self._connect(""):
            pass

    @asynccontextmanager
    async def _connect(self, last_id: str) -> AsyncIterator[Any]:
        """Yields the response before its body is read. Raises Transient or Permanent."""
        config = self.config
        headers = {
            "Accept": _CONTENT_TYPE,
            "Cache-Control": "no-store",
            **config.revealed_headers(),
        }
        if last_id:
            headers["Last-Event-ID"] = last_id
        async with new_session(config.auth, config.tls_settings, None) as session:
            with translate_errors(config.url):
                async with asyncio.timeout(config.timeout):
                    response = await session.get(config.url, headers=headers, allow_redirects=False)
                    if response.status != 200:
                        body = await response.content.read(_EXCERPT_BYTES)
                        excerpt = Response(response.status, response.headers, body)
                        raise excerpt.error(config.url)
            if response.content_type != _CONTENT_TYPE:
                raise Permanent(
                    f"expected an event stream ({_CONTENT_TYPE}), found {response.content_type}",
                    code="content-type",
                    hint="Set url to the URL of an event stream.",
                )
            yield response

    async def _receive_events(
        self, response: Any, parser: EventParser, journal: Journal, file: JsonStateFile
    ) -> None:
        """Appends events to the journal until the stream ends or is idle for too long."""
        while chunk := await self._read_chunk(response):
            last_id = parser.last_id
            messages = [
                Message(event.data, {"event": event.name, "id": event.id or None})
                for event in parser.feed(chunk)
                if not self.config.events or event.name in self.config.events
            ]
            await journal.append(messages)
            if parser.last_id != last_id:
                file.save({"id": parser.last_id})

    async def _read_chunk(self, response: Any) -> bytes:
        """Returns the next bytes; none at the end of the stream and after the idle timeout."""
        with translate_errors(self.config.url):
            try:
                async with asyncio.timeout(self.config.idle_timeout):
                    return bytes(await response.content.readany())
            except TimeoutError:
                return b""
