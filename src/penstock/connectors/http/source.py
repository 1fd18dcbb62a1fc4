"""The HTTP source: a server that receives requests."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from penstock.connectors.http.config import HttpSourceConfig
from penstock.connectors.http.connection import ServerConnection
from penstock.connectors.http.handler import RequestHandler
from penstock.core.errors import PlanError
from penstock.sdk import Journal, ReceivingSource, Transient
from penstock.sdk.network.address import host_and_port
from penstock.sdk.network.connection_limits import ConnectionCounter

SHUTDOWN_SECONDS = 5.0
HANDSHAKE_SECONDS = 10.0
"""The maximum duration of a TLS handshake."""


class HttpSource(ReceivingSource[HttpSourceConfig]):
    """Listens for HTTP requests. Their bodies are messages.

    The response is 200 once the messages of the request are on disk, and 503 with `Retry-After`
    while the journal is full. Messages acknowledged with 200 are never lost; other messages may
    arrive twice when the client retries. A body that does not match `framing` gets 400, a body
    larger than `max_message_size` gets 413, and a body that is incomplete after `timeout` gets 408.
    Requests without valid credentials get 401 before their body is read.

    ```yaml
    type: http
    listen: 0.0.0.0:8080
    path: /events
    auth: {token: "${env:TOKEN}"}
    framing: lines
    ```
    """

    parallelism = "the server"
    acknowledges = "200 once all messages of the request are on disk"
    extra = "http"
    client_modules = ("aiohttp", "msgspec", "jsonpointer")

    def message_metadata_schema(self) -> pa.Schema:
        text_map = pa.map_(pa.string(), pa.string())
        return pa.schema(
            [
                ("path", pa.string()),
                ("method", pa.string()),
                ("parameters", text_map),
                ("query", text_map),
                ("headers", text_map),
                ("remote", pa.string()),
            ]
        )

    def check(self) -> None:
        """Loads the certificates and binds the address once."""
        if self.config.tls_settings is not None:
            self.config.tls_settings.server_context()
        asyncio.run(self._check_address())

    async def receive(self, journal: Journal) -> None:
        handler = RequestHandler(self.config, journal)
        runner = await self._create_runner(handler)
        try:
            async with await self._listen(runner.server):
                journal.ready.set()
                await handler.failed
        finally:
            await runner.cleanup()

    async def _check_address(self) -> None:
        host, port = host_and_port(self.config.listen)
        try:
            server = await asyncio.start_server(lambda *_: None, host, port)
        except OSError as error:
            raise self._listen_error(error) from None
        server.close()

    async def _create_runner(self, handler: RequestHandler) -> Any:
        from aiohttp import web

        app = web.Application()
        for path in self.config.paths:
            try:
                app.router.add_route("*", path, handler.respond, expect_handler=_defer_continue)
            except ValueError as error:
                raise PlanError(f'path "{path}": {error}', code="invalid-path") from None
        runner = web.AppRunner(
            app, access_log=None, shutdown_timeout=SHUTDOWN_SECONDS,
            keepalive_timeout=self.config.idle_timeout,
        )  # fmt: skip
        await runner.setup()
        return runner

    async def _listen(self, create_protocol: Callable[[], Any]) -> Any:
        """Returns the server of a context in which connections are accepted."""
        config = self.config
        host, port = host_and_port(config.listen)
        tls = config.tls_settings
        counter = ConnectionCounter(config)
        try:
            return await asyncio.get_running_loop().create_server(
                lambda: ServerConnection(create_protocol(), counter, config.timeout),
                host, port, ssl=tls.server_context() if tls is not None else None,
                ssl_handshake_timeout=HANDSHAKE_SECONDS if tls is not None else None,
            )  # fmt: skip
        except OSError as error:
            raise self._listen_error(error) from None

    def _listen_error(self, error: OSError) -> Transient:
        return Transient(
            f"could not listen on {self.config.listen}: {error.strerror}",
            code="listen",
            hint="Stop the program that uses the address, or choose another port.",
        )


async def _defer_continue(request: Any) -> None:
    """Leaves the answer to `Expect: 100-continue` to the handler, after authentication."""
