"""HTTP clients: requests with retry, asynchronous and blocking."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple

from penstock.connectors.http.config import HttpAuth, HttpRetry, SendingConfig
from penstock.connectors.http.errors import message_too_large, status_error, translate_errors
from penstock.sdk import Permanent, Transient, report_retry
from penstock.sdk.network.event_loop import EventLoopThread
from penstock.sdk.network.tls import Tls

_EXCERPT_BYTES = 500
_CHUNK_BYTES = 1 << 16
_LONGEST_RETRY_AFTER = 3600.0
"""The most seconds that a server can ask a client to wait."""


class Request(NamedTuple):
    """A request."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes | None = None


class Response(NamedTuple):
    """A response with its body, or the beginning of its body."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def retry_after(self) -> float | None:
        """The seconds until the time of the `Retry-After` header, at most an hour.

        None without a header.
        """
        header = self.headers.get("Retry-After", "").strip()
        try:
            seconds = (
                float(header)
                if header.isdecimal()
                else parsedate_to_datetime(header).timestamp() - time.time()
            )
        except ValueError:
            return None
        return min(max(0.0, seconds), _LONGEST_RETRY_AFTER)

    @property
    def text(self) -> str:
        """The beginning of the body."""
        return self.body[:_EXCERPT_BYTES].decode(errors="replace").strip()

    def error(self, url: str, retry: HttpRetry | None = None) -> Transient | Permanent:
        """Returns the error of a response with an error status."""
        return status_error(url, self.status, self.text, retry)


def new_session(auth: HttpAuth | None, tls: Tls | None, timeout: float | None) -> Any:
    """Returns a new aiohttp session. The caller closes the session."""
    import aiohttp

    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(ssl=tls.context() if tls else True, limit=0),
        timeout=aiohttp.ClientTimeout(total=timeout),
        headers={"Authorization": auth.header} if auth else {},
    )


class AsyncHttpClient:
    """A client on the running event loop. Methods raise Transient or Permanent."""

    def __init__(
        self, auth: HttpAuth | None, tls: Tls | None, timeout: float, retry: HttpRetry
    ) -> None:
        self._session = new_session(auth, tls, timeout)
        self._retry = retry

    async def request(self, request: Request, max_size: int | None = None) -> Response:
        """Sends a request once and returns the response, of any status.

        With `max_size` the body is complete, and a larger body raises Permanent. Without `max_size`
        the response has the beginning of its body.
        """
        with translate_errors(request.url):
            async with self._session.request(
                request.method, request.url, data=request.body, headers=request.headers,
                allow_redirects=False,
            ) as response:  # fmt: skip
                body = await _read_body(response, max_size)
                return Response(response.status, response.headers, body)

    async def request_with_retry(
        self,
        request: Request,
        max_size: int | None = None,
        is_final: Callable[[int], bool] = lambda status: False,
    ) -> Response:
        """Sends a request and retries transient errors and retryable statuses.

        Returns the first response whose status is final or not retryable. Raises the last error
        when the attempts are used up.
        """
        for attempt in range(1, self._retry.attempts + 1):
            delay = self._retry.delay(attempt)
            try:
                response = await self.request(request, max_size)
            except Transient as error:
                if attempt == self._retry.attempts:
                    raise
                report_retry(error)
            else:
                if is_final(response.status) or not self._retry.is_retryable(response.status):
                    return response
                if attempt == self._retry.attempts:
                    raise response.error(request.url, self._retry)
                report_retry(response.error(request.url, self._retry))
                if response.retry_after is not None:
                    delay = response.retry_after
            await asyncio.sleep(delay)
        raise AssertionError("retry requires at least one attempt")

    async def close(self) -> None:
        """Closes all connections."""
        await self._session.close()


class HttpClient:
    """A blocking client with an event loop in a thread. Used by many batches."""

    def __init__(self, config: SendingConfig, concurrency: int = 1) -> None:
        """Creates a client that sends up to `concurrency` requests at once."""
        self._config, self._concurrency = config, concurrency
        self._event_loop = EventLoopThread()
        self._client = self._event_loop.run(self._create_client())

    def send(self, requests: Sequence[Request], max_size: int | None = None) -> list[Response]:
        """Sends requests in parallel and returns their final responses, in order.

        With `max_size` the bodies are complete, see `AsyncHttpClient.request`. Raises Transient if
        the attempts of a request are used up.
        """
        return self._event_loop.run(self._send_all(requests, max_size))

    def try_send(
        self, requests: Sequence[Request], max_size: int | None = None
    ) -> list[Response | Transient | Permanent]:
        """Sends requests as `send` does, and returns an error in place of each failed response."""
        return self._event_loop.run(self._try_all(requests, max_size))

    def check(self, url: str) -> None:
        """Sends a HEAD request. Raises Transient or Permanent if the server is unreachable.

        Statuses other than 401 and 403 are accepted.
        """
        response = self._event_loop.run(self._client.request(Request("HEAD", url, {})))
        if response.status in (401, 403):
            raise response.error(url)

    def close(self) -> None:
        """Closes all connections."""
        self._event_loop.run(self._client.close())
        self._event_loop.close()

    async def _create_client(self) -> AsyncHttpClient:
        config = self._config
        return AsyncHttpClient(config.auth, config.tls_settings, config.timeout, config.retry)

    async def _send_all(self, requests: Sequence[Request], max_size: int | None) -> list[Response]:
        tasks = self._start_all(requests, max_size)
        try:
            return list(await asyncio.gather(*tasks))
        finally:
            for task in tasks:
                task.cancel()

    async def _try_all(
        self, requests: Sequence[Request], max_size: int | None
    ) -> list[Response | Transient | Permanent]:
        outcomes = await asyncio.gather(
            *self._start_all(requests, max_size), return_exceptions=True
        )
        found: list[Response | Transient | Permanent] = []
        for outcome in outcomes:
            if not isinstance(outcome, Response | Transient | Permanent):
                raise outcome
            found.append(outcome)
        return found

    def _start_all(
        self, requests: Sequence[Request], max_size: int | None
    ) -> list[asyncio.Future[Response]]:
        semaphore = asyncio.Semaphore(self._concurrency)

        async def send(request: Request) -> Response:
            async with semaphore:
                return await self._client.request_with_retry(
                    request, max_size, self._config.is_final
                )

        return [asyncio.ensure_future(send(request)) for request in requests]


async def _read_body(response: Any, max_size: int | None) -> bytes:
    if max_size is None:
        return bytes(await response.content.read(_EXCERPT_BYTES))
    body = bytearray()
    async for chunk in response.content.iter_chunked(_CHUNK_BYTES):
        body += chunk
        if len(body) > max_size:
            raise message_too_large(max_size, "the response body")
    return bytes(body)
