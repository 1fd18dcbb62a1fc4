"""The HTTP poll source: requests a URL at an interval."""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace

import pyarrow as pa

from penstock.connectors.http.client import AsyncHttpClient, Request, Response
from penstock.connectors.http.framing import split_body
from penstock.connectors.http.metadata_headers import without_credentials
from penstock.connectors.http.poll.config import HttpPollSourceConfig
from penstock.connectors.http.poll.paging import first_url, next_url
from penstock.sdk import DecodeError, Journal, Message, Permanent, ReceivingSource
from penstock.sdk.state_file import JsonStateFile

_CHUNK_BYTES = 256 << 10
_NOT_MODIFIED = 304


@dataclass(frozen=True)
class PollState:
    """The progress of polling.

    `url` is the URL of the next request, and `last_full_url` of the last page with messages.
    `previous` and `current` are the digests of the messages of the previous and the current round,
    `last_full` those of the last page with messages. `delivered` are the digests of messages of
    `url` that are records already, if this page is requested again.
    """

    url: str
    last_full_url: str
    etag: str | None = None
    previous: tuple[str, ...] = ()
    current: tuple[str, ...] = ()
    last_full: tuple[str, ...] = ()
    delivered: tuple[str, ...] = ()


class HttpPollSource(ReceivingSource[HttpPollSourceConfig]):
    """Requests a URL at an interval. The response bodies are messages.

    A round is one request, or with `paging` one request for each page. The progress (page, cursor,
    ETag) is saved once the messages before it are on disk. A restart resumes at the saved progress.

    ```yaml
    type: http_poll
    url: https://api.example.com/v1/orders?limit=100
    interval: 30s
    framing: array
    pointer: /data
    paging: {by: cursor, parameter: after, pointer: /next}
    auth: {token: "${env:TOKEN}"}
    ```
    """

    parallelism = "the request"
    acknowledges = "the progress is saved once the messages before it are on disk"
    extra = "http"
    client_modules = ("aiohttp", "msgspec", "jsonpointer")

    def message_metadata_schema(self) -> pa.Schema:
        text_map = pa.map_(pa.string(), pa.string())
        return pa.schema([("url", pa.string()), ("headers", text_map)])

    def check(self) -> None:
        """Requests the first page; with a method other than GET, sends a HEAD request."""
        asyncio.run(self._check())

    async def receive(self, journal: Journal) -> None:
        config = self.config
        first = self._first_url
        file = JsonStateFile(self.directory / "poll.json", first, config.method, config.body or "")
        client = self._new_client()
        try:
            state = _load_state(file) or PollState(first, first)
            while True:
                new_state, round_ended = await self._poll_page(state, client, journal)
                if new_state != state:
                    file.save(asdict(new_state))
                state = new_state
                if round_ended:
                    await asyncio.sleep(config.interval)
        finally:
            await client.close()

    async def _check(self) -> None:
        config = self.config
        client = self._new_client()
        try:
            if config.method == "GET":
                request = self._request(self._first_url)
                response = await client.request(request, config.max_message_size)
                failed = response.status // 100 != 2
            else:
                head = self._request(config.url)._replace(method="HEAD", body=None)
                response = await client.request(head)
                failed = response.status in (401, 403)
            if failed:
                raise response.error(config.url, config.retry)
        finally:
            await client.close()

    @property
    def _first_url(self) -> str:
        return first_url(self.config.url, self.config.paging)

    def _new_client(self) -> AsyncHttpClient:
        config = self.config
        return AsyncHttpClient(config.auth, config.tls_settings, config.timeout, config.retry)

    def _request(self, url: str, etag: str | None = None) -> Request:
        config = self.config
        headers = config.revealed_headers()
        if etag is not None:
            headers["If-None-Match"] = etag
        body = config.body.encode() if config.body is not None else None
        return Request(config.method, url, headers, body)

    async def _poll_page(
        self, state: PollState, client: AsyncHttpClient, journal: Journal
    ) -> tuple[PollState, bool]:
        """Requests a page and appends its messages.

        Returns the new state, and whether the round has ended.
        """
        only_changed = self.config.emit == "changed"
        request = self._request(state.url, state.etag if only_changed else None)
        response = await client.request_with_retry(request, self.config.max_message_size)
        if response.status // 100 != 2 and response.status != _NOT_MODIFIED:
            raise response.error(state.url, self.config.retry)
        journal.ready.set()
        if response.status == _NOT_MODIFIED:
            return state, True
        payloads = self._payloads(response)
        digests: tuple[str, ...] = ()
        if only_changed or self.config.paging is not None:
            digests = tuple(map(_digest, payloads))
        emitted: Sequence[bytes] = payloads
        if only_changed:
            emitted = _without(
                payloads, digests, {digest: len(payloads) for digest in state.previous}
            )
        elif state.delivered:
            emitted = _without(payloads, digests, Counter(state.delivered))
        metadata = {"url": state.url, "headers": without_credentials(response.headers)}
        for chunk in _split_into_chunks(emitted):
            await journal.append([Message(payload, metadata) for payload in chunk])
        return self._next_state(state, response, len(payloads), digests)

    def _next_state(
        self, state: PollState, response: Response, count: int, digests: tuple[str, ...]
    ) -> tuple[PollState, bool]:
        """Returns the state for the next request, and whether the round has ended."""
        paging, url = self.config.paging, state.url
        if self.config.emit == "changed":
            state = replace(state, current=state.current + digests)
        if count:
            state = replace(state, last_full_url=url, last_full=digests)
        following_url = next_url(url, paging, response, count) if paging is not None else url
        if following_url not in (None, url) and count:
            return replace(state, url=following_url, etag=None, delivered=()), False
        first_url, delivered = self._next_round(following_url, state, digests)
        etag = response.headers.get("ETag") if first_url == url else None
        state = replace(
            state, url=first_url, etag=etag, previous=state.current, current=(), delivered=delivered
        )
        return state, True

    def _next_round(
        self, following_url: str | None, state: PollState, digests: tuple[str, ...]
    ) -> tuple[str, tuple[str, ...]]:
        """Returns the first URL of the next round, and the digests of its delivered messages."""
        paging = self.config.paging
        if paging is None:
            return state.url, ()
        if following_url is None and paging.at_end == "restart":
            return self._first_url, ()
        if following_url is None and paging.by == "page":
            return state.last_full_url, state.last_full
        if following_url in (None, state.url):
            return state.url, digests or state.delivered
        return following_url, ()

    def _payloads(self, response: Response) -> list[bytes]:
        if not response.body:
            return []
        try:
            return split_body(response.body, self.config.framing, self.config.pointer)
        except DecodeError as error:
            raise Permanent(
                f"cannot split the response body: {error.message}",
                code="undecodable",
                detail=error.detail,
                hint="Correct the options framing and pointer.",
            ) from None


def _load_state(file: JsonStateFile) -> PollState | None:
    values = file.load()
    if not values:
        return None
    lists = {name: tuple(value) for name, value in values.items() if isinstance(value, list)}
    return PollState(**{**values, **lists})


def _without(
    payloads: Sequence[bytes], digests: Sequence[str], delivered: Mapping[str, int]
) -> list[bytes]:
    """Returns payloads without the first `delivered[digest]` ones of each digest."""
    remaining = dict(delivered)
    emitted = []
    for payload, digest in zip(payloads, digests, strict=True):
        if remaining.get(digest, 0):
            remaining[digest] -= 1
        else:
            emitted.append(payload)
    return emitted


def _split_into_chunks(payloads: Sequence[bytes]) -> Iterator[list[bytes]]:
    """Splits payloads into lists that are small compared to a journal."""
    chunk: list[bytes] = []
    size = 0
    for payload in payloads:
        chunk.append(payload)
        size += len(payload)
        if size >= _CHUNK_BYTES:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


def _digest(payload: bytes) -> str:
    return hashlib.blake2b(payload, digest_size=12).hexdigest()
