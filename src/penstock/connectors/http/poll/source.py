"""The source that asks an HTTP server again and again."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Literal, Self

import pyarrow as pa
from pydantic import Field, model_validator

from penstock.connectors.http.asking import Answer, Asking, Request, Retry, refused
from penstock.connectors.http.bodies import Framing, divided
from penstock.connectors.http.endpoint import EndpointConfig, HttpUrl
from penstock.connectors.http.jsontext import Pointer
from penstock.connectors.http.poll.paging import Paging
from penstock.sdk import (
    ByteSize,
    DecodeError,
    Duration,
    Journal,
    Message,
    Permanent,
    ReceivingConfig,
    ReceivingSource,
)
from penstock.sdk.kit.kept import Kept

_PORTION = 256 << 10
_NOT_MODIFIED = 304


class HttpPollSourceConfig(EndpointConfig, ReceivingConfig):
    url: HttpUrl
    """What is asked for."""
    interval: Duration = Field(default=10.0, gt=0)
    """The pause before it is asked for again."""
    method: Literal["GET", "POST", "PUT", "PATCH"] = "GET"
    """The method of requests."""
    body: str | None = None
    """The body of requests."""
    framing: Framing = "single"
    """What an answer's body is: a `single` message, `lines` of them, or the elements of a JSON
    `array`."""
    pointer: Pointer = ""
    """Where the array is in the body, as in `/data/items`; the body itself if left out."""
    paging: Paging | None = None
    """How an answer leads to the next page, which is asked for at once."""
    emit: Literal["all", "changed"] = "all"
    """Which messages are taken: `all` of each round, or those that the round before did not
    have. With `changed` a server that knows ETags is asked for what is new only."""
    retry: Retry = Retry()
    """What happens to requests that fail for a reason that may pass."""
    max_body: ByteSize = Field(default=64 << 20, ge=1)
    """The largest body that is taken."""

    @model_validator(mode="after")
    def _fitting(self) -> Self:
        if self.pointer and self.framing != "array":
            raise ValueError("pointer needs framing: array")
        if self.paging is not None and self.paging.by == "page" and self.framing == "single":
            raise ValueError("paging by page needs framing lines or array: an empty page is last")
        return self

    @property
    def first(self) -> str:
        """The URL of the first request."""
        return self.url if self.paging is None else self.paging.first(self.url)


@dataclass(frozen=True)
class Place:
    """Where the asking is: the URL of the next request, and what the last ones said.

    `full` is the last that had messages. `before` and `now` tell the messages of the last round
    and of this one.
    """

    url: str
    full: str
    etag: str | None = None
    before: tuple[str, ...] = ()
    now: tuple[str, ...] = ()


class HttpPollSource(ReceivingSource[HttpPollSourceConfig]):
    """Asks an HTTP server at an interval; the bodies of its answers are messages.

    A round is one request, or with `paging` one for each page. Where the asking is (page, cursor,
    ETag) is kept once the messages before it are on disk, and a restart goes on there.

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
    acknowledges = "the place to go on is kept once the messages before it are on disk"
    extra = "http"
    clients = ("aiohttp",)

    def about(self) -> pa.Schema:
        texts = pa.map_(pa.string(), pa.string())
        return pa.schema([("url", pa.string()), ("headers", texts)])

    def check(self) -> None:
        """Asks for the first page; with another method than GET, only whether we may."""
        asyncio.run(self._tried())

    async def receive(self, journal: Journal) -> None:
        config = self.config
        kept = Kept(self.directory / "poll.json", config.first, config.method, config.body or "")
        asking = self._asking()
        try:
            place = _restored(kept) or Place(config.first, config.first)
            while True:
                before, (place, ended) = place, await self._page(place, asking, journal)
                if place != before:
                    kept.save(asdict(place))
                if ended:
                    await asyncio.sleep(config.interval)
        finally:
            await asking.close()

    async def _tried(self) -> None:
        config = self.config
        asking = self._asking()
        try:
            if config.method == "GET":
                answer = await asking.once(self._request(config.first), config.max_body)
                wrong = answer.status // 100 != 2
            else:
                head = self._request(config.url)._replace(method="HEAD", body=None)
                answer = await asking.once(head)
                wrong = answer.status in (401, 403)
            if wrong:
                raise refused(config.url, answer, config.retry)
        finally:
            await asking.close()

    def _asking(self) -> Asking:
        config = self.config
        return Asking(config.auth, config.tls, config.timeout, config.retry)

    def _request(self, url: str, etag: str | None = None) -> Request:
        config = self.config
        headers = config.revealed_headers()
        if etag is not None:
            headers["If-None-Match"] = etag
        body = config.body.encode() if config.body is not None else None
        return Request(config.method, url, headers, body)

    async def _page(self, place: Place, asking: Asking, journal: Journal) -> tuple[Place, bool]:
        """Takes a page. Returns where the asking is then, and whether the round is over."""
        changed = self.config.emit == "changed"
        request = self._request(place.url, place.etag if changed else None)
        answer = await asking.patiently(request, self.config.max_body)
        if answer.status // 100 != 2 and answer.status != _NOT_MODIFIED:
            raise refused(place.url, answer, self.config.retry)
        journal.ready.set()
        if answer.status == _NOT_MODIFIED:
            return place, True
        payloads = self._payloads(answer)
        told: tuple[str, ...] = ()
        taken: Sequence[bytes] = payloads
        if changed:
            told = tuple(_digest(each) for each in payloads)
            known = frozenset(place.before)
            taken = [
                each for each, digest in zip(payloads, told, strict=True) if digest not in known
            ]
        about = {"url": place.url, "headers": _without_cookies(answer)}
        for portion in _portions(taken):
            await journal.append([Message(payload, about) for payload in portion])
        return self._after(replace(place, now=place.now + told), answer, len(payloads))

    def _after(self, place: Place, answer: Answer, count: int) -> tuple[Place, bool]:
        """The place of the next request, and whether the round is over."""
        paging, url = self.config.paging, place.url
        full = url if count else place.full
        following = paging.following(url, answer, count) if paging is not None else url
        if following not in (None, url) and count:
            return replace(place, url=following, full=full, etag=None), False
        if following is None:
            stays = paging is not None and paging.at_end == "stay"
            following = full if stays else self.config.first
        etag = answer.headers.get("ETag") if following == url else None
        return Place(following, full, etag, before=place.now), True

    def _payloads(self, answer: Answer) -> list[bytes]:
        if not answer.body:
            return []
        try:
            return divided(answer.body, self.config.framing, self.config.pointer)
        except DecodeError as error:
            raise Permanent(
                error.message, code="undecodable", detail=error.detail,
                hint="look at framing and pointer",
            ) from None  # fmt: skip


def _without_cookies(answer: Answer) -> list[tuple[str, str]]:
    headers = [(name.lower(), value) for name, value in answer.headers.items()]
    return [(name, value) for name, value in headers if name != "set-cookie"]


def _restored(kept: Kept) -> Place | None:
    found = kept.load()
    if not found:
        return None
    return Place(**{**found, "before": tuple(found["before"]), "now": tuple(found["now"])})


def _portions(payloads: Sequence[bytes]) -> Iterator[list[bytes]]:
    """The payloads, in lists that are small beside a journal."""
    portion: list[bytes] = []
    size = 0
    for payload in payloads:
        portion.append(payload)
        size += len(payload)
        if size >= _PORTION:
            yield portion
            portion, size = [], 0
    if portion:
        yield portion


def _digest(payload: bytes) -> str:
    return hashlib.blake2b(payload, digest_size=12).hexdigest()
