"""Requests to servers, tried again where that may help, and what their answers mean."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from pydantic import Field

from penstock.connectors.http.auth import Auth
from penstock.connectors.http.statuses import Status, listed
from penstock.sdk import Config, Duration, Permanent, Transient
from penstock.sdk.kit.tls import Tls, tls_context

_EXCERPT = 500
_CHUNK = 1 << 16


class Retry(Config):
    """How often a request is tried that failed for a reason that may pass."""

    attempts: int = Field(default=5, ge=1)
    """How often a request is sent before it has failed for good, or for `restart:`."""
    backoff: Duration = 0.5
    """The pause after the first failure, doubled after each; `Retry-After` goes before it."""
    longest: Duration = 30.0
    """The longest pause."""
    statuses: list[Status] = [408, 425, 429, 500, 502, 503, 504]
    """The statuses for which another try may help, each as 503 or as 5xx; if left out 408, 425,
    429, 500, 502, 503 and 504. A request that gets another has failed for good."""

    def helps(self, status: int) -> bool:
        """Whether another try may help."""
        return listed(status, self.statuses)

    def pause(self, failures: int) -> float:
        """The seconds to wait after so many failures in a row, not in step with others."""
        return float(
            min(self.backoff * 2 ** (failures - 1), self.longest) * random.uniform(0.8, 1.2)
        )


class Request(NamedTuple):
    """A request to send."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes | None = None


class Answer(NamedTuple):
    """What the server said."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def after(self) -> float | None:
        """The seconds of a header `Retry-After`, which may be a date."""
        header = self.headers.get("Retry-After", "").strip()
        if header.isdigit():
            return float(header)
        try:
            return max(0.0, parsedate_to_datetime(header).timestamp() - time.time())
        except ValueError:
            return None

    @property
    def said(self) -> str:
        """The status, and the server's words if there are any."""
        text = self.body[:_EXCERPT].decode(errors="replace").strip()
        return f"{self.status}: {text}" if text else str(self.status)


class Asking:
    """Connections to servers, on the running event loop. Methods raise Transient or Permanent."""

    def __init__(self, auth: Auth | None, tls: Tls | bool, timeout: float, retry: Retry) -> None:
        self.session = session(auth, tls, timeout)
        self._retry = retry

    async def once(self, request: Request, most: int | None = None) -> Answer:
        """The answer with the begin of its body; with all of it, up to `most` bytes."""
        with reaching(request.url):
            async with self.session.request(
                request.method, request.url, data=request.body, headers=request.headers,
                allow_redirects=False,
            ) as response:  # fmt: skip
                body = await _read(response, most)
                return Answer(response.status, response.headers, body)

    async def patiently(
        self,
        request: Request,
        most: int | None = None,
        settles: Callable[[int], bool] = lambda status: False,
    ) -> Answer:
        """The answer of a server that does not say that it is only busy.

        Statuses that settle it are an answer whatever they mean elsewhere.
        """
        attempt = 0
        while True:
            attempt += 1
            after = None
            try:
                answer = await self.once(request, most)
            except Transient:
                if attempt == self._retry.attempts:
                    raise
            else:
                if settles(answer.status) or not self._retry.helps(answer.status):
                    return answer
                if attempt == self._retry.attempts:
                    raise refused(request.url, answer, self._retry)
                after = answer.after
            await asyncio.sleep(self._retry.pause(attempt) if after is None else after)

    async def close(self) -> None:
        """Ends the connections."""
        await self.session.close()


def session(auth: Auth | None, tls: Tls | bool, timeout: float | None) -> Any:
    """A session of aiohttp, to be closed."""
    import aiohttp

    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(ssl=tls_context(tls) or False, limit=0),
        timeout=aiohttp.ClientTimeout(total=timeout),
        headers={"Authorization": auth.header} if auth else {},
    )


@contextmanager
def reaching(url: str) -> Iterator[None]:
    """What goes wrong with a connection, as Transient or Permanent."""
    import aiohttp

    try:
        yield
    except aiohttp.InvalidURL as error:
        raise Permanent(f'"{error.url}" is no URL', code="url") from None
    except aiohttp.ClientConnectorCertificateError as error:
        raise Permanent(
            f"the certificate of {urlsplit(url).hostname} is not trusted: {error}",
            code="tls",
            hint="tls: {ca: FILE} names those to trust",
        ) from None
    except aiohttp.WSServerHandshakeError as error:
        raise refused(url, Answer(error.status, {}, b"")) from None
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise unreachable(url, str(error) or "no answer in time") from None


def unreachable(url: str, why: str) -> Transient:
    """There is no connection, no answer, or no connection any more."""
    parts = urlsplit(url)
    return Transient(
        f"could not reach {parts.scheme}://{parts.netloc.rpartition('@')[2]}: {why}",
        code="unreachable",
        hint="is the server running, and is the url right?",
    )


def refused(url: str, answer: Answer, retry: Retry | None = None) -> Transient | Permanent:
    """An answer that is not what was asked for."""
    message = f"{urlsplit(url).hostname} answered with {answer.said}"
    code = f"http-{answer.status}"
    if (retry or Retry()).helps(answer.status):
        return Transient(message, code=code, hint="the server may say more in its log")
    hint = "look at auth" if answer.status in (401, 403) else "look at url, method and headers"
    return Permanent(message, code=code, hint=hint)


async def _read(response: Any, most: int | None) -> bytes:
    if most is None:
        return bytes(await response.content.read(_EXCERPT))
    chunks = bytearray()
    async for chunk in response.content.iter_chunked(_CHUNK):
        chunks += chunk
        if len(chunks) > most:
            raise Permanent(
                f"the body of the answer has more than {most:,} bytes",
                code="too-large",
                hint="max_body says how large it may be",
            )
    return bytes(chunks)
