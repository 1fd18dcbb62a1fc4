"""Request handler of the HTTP source: requests to journal messages, results to responses."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

from penstock.connectors.http.config import HttpSourceConfig
from penstock.connectors.http.errors import message_too_large
from penstock.connectors.http.framing import split_body
from penstock.connectors.http.metadata_headers import without_credentials
from penstock.core.errors import StateError
from penstock.sdk import DecodeError, Journal, Message, Permanent
from penstock.sdk.network.byte_budget import ByteBudget, Share

if TYPE_CHECKING:
    from aiohttp import web

RETRY_AFTER_SECONDS = 1
"""The `Retry-After` header of responses while the journal is full."""

Result = tuple[int, dict[str, Any] | None, dict[str, str]]
"""The status, the JSON body and the headers of a response."""


class RequestHandler:
    """Appends the messages of requests to the journal and responds.

    `failed` is a future with the error after which the journal accepts no more messages.
    """

    def __init__(self, config: HttpSourceConfig, journal: Journal) -> None:
        self._config, self._journal = config, journal
        self._max_size = min(config.max_message_size, config.journal.max_size // 2)
        self._budget = ByteBudget()
        self.failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def respond(self, request: web.Request) -> web.StreamResponse:
        """Returns the response to a request, after its messages are in the journal."""
        if self._config.cors and request.method == "OPTIONS":
            return self._response(204, None, self._preflight_headers(request))
        return self._response(*await self._handle(request))

    async def _handle(self, request: web.Request) -> Result:
        config = self._config
        if request.method not in config.methods:
            allowed = ", ".join(config.methods)
            return 405, {"error": f"expected {allowed}"}, {"Allow": allowed}
        if config.auth and not config.auth.is_authorized(request.headers.get("Authorization", "")):
            challenge = {"WWW-Authenticate": f'{config.auth.scheme} realm="penstock"'}
            return 401, {"error": "authentication failed"}, challenge
        if self._journal.full:
            retry_after = {"Retry-After": str(RETRY_AFTER_SECONDS)}
            return 503, {"error": "the journal is full"}, retry_after
        with self._budget.share() as share:
            try:
                body = await self._read_body(request, share)
            except Permanent as error:
                return 413, {"error": error.message}, {}
            except TimeoutError:
                return 408, {"error": "the request timed out"}, {"Connection": "close"}
            return await self._append(request, body)

    async def _append(self, request: web.Request, body: bytes) -> Result:
        """Appends the messages of a body to the journal."""
        try:
            payloads = split_body(body, self._config.framing)
        except DecodeError as error:
            return 400, {"error": error.message, "detail": error.detail}, {}
        metadata = _request_metadata(request)
        try:
            await self._journal.append([Message(payload, metadata) for payload in payloads])
        except Permanent as error:
            return 413, {"error": error.message}, {}
        except StateError as error:
            if not self.failed.done():
                self.failed.set_exception(error)
            return 500, {"error": "the journal is not writable"}, {}
        return 200, {"received": len(payloads)}, {}

    async def _read_body(self, request: web.Request, share: Share) -> bytes:
        """Returns the body. Raises Permanent if it is too large, TimeoutError after `timeout`."""
        if (request.content_length or 0) > self._max_size:
            raise message_too_large(self._max_size, "the request body")
        await share.await_room()
        if request.headers.get("Expect", "").lower() == "100-continue":
            await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            request.writer.output_size = 0
        body = bytearray()
        async with asyncio.timeout(self._config.timeout):
            while chunk := await request.content.readany():
                body += chunk
                share.resize(len(body))
                if len(body) > self._max_size:
                    raise message_too_large(self._max_size, "the request body")
                await share.await_room()
        return bytes(body)

    def _response(
        self, status: int, body: dict[str, Any] | None, headers: dict[str, str]
    ) -> web.StreamResponse:
        from aiohttp import web

        if self._config.cors:
            headers["Access-Control-Allow-Origin"] = "*"
        text = json.dumps(body) if body is not None else None
        return web.Response(
            status=status, text=text, headers=headers, content_type="application/json"
        )

    def _preflight_headers(self, request: web.Request) -> dict[str, str]:
        return {
            "Access-Control-Allow-Methods": ", ".join(self._config.methods),
            "Access-Control-Allow-Headers": request.headers.get(
                "Access-Control-Request-Headers", "*"
            ),
        }


def _request_metadata(request: web.Request) -> dict[str, Any]:
    """Returns the metadata of a request without its credentials."""
    return {
        "path": request.path,
        "method": request.method,
        "parameters": list(request.match_info.items()),
        "query": list(request.query.items()),
        "headers": without_credentials(request.headers),
        "remote": request.remote,
    }
