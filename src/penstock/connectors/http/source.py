"""The source of HTTP requests: a server."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Annotated, Any, Literal

import pyarrow as pa
from pydantic import AfterValidator, Field, model_validator

from penstock.connectors.http.auth import Auth
from penstock.connectors.http.bodies import Framing, divided
from penstock.core.errors import StateError
from penstock.sdk import (
    ByteSize,
    DecodeError,
    Journal,
    Message,
    Permanent,
    PlanError,
    ReceivingConfig,
    ReceivingSource,
    Transient,
)
from penstock.sdk.kit.address import Address, host_and_port
from penstock.sdk.kit.tls import Tls

if TYPE_CHECKING:
    from aiohttp import web

RETRY_AFTER = 1
"""Seconds after which a sender may try again while the journal is full."""
SHUTDOWN = 5.0


def _path(text: str) -> str:
    if not text.startswith("/"):
        raise ValueError(f'a path begins with a slash: "/{text}"')
    return text


Path = Annotated[str, AfterValidator(_path)]


class HttpSourceConfig(ReceivingConfig):
    listen: Address
    """The address to listen at, as `host:port`; the host 0.0.0.0 is all of the machine's."""
    path: Path | list[Path] = "/"
    """The path of requests, or several; `{name}` stands for a piece, as in `/rooms/{room}`."""
    methods: list[Literal["POST", "PUT", "PATCH", "GET", "DELETE"]] = ["POST"]
    """The methods of requests that are taken."""
    framing: Framing = "single"
    """What a body is: a `single` message, `lines` of them, or the elements of a JSON `array`."""
    auth: Auth | None = None
    """Who may send."""
    tls: Tls | None = None
    """Listen with TLS: our `certificate` and `key`; with `ca` clients need certificates, too."""
    max_body: ByteSize = Field(default=16 << 20, ge=1)
    """The largest body that is taken."""
    cors: bool = False
    """Let pages of other origins send from a browser."""

    @model_validator(mode="after")
    def _some(self) -> HttpSourceConfig:
        if not self.path or not self.methods:
            raise ValueError("give at least one path and one method")
        if self.tls is not None and self.tls.certificate is None:
            raise ValueError("tls: a server needs certificate and key")
        return self

    @property
    def paths(self) -> list[str]:
        return [self.path] if isinstance(self.path, str) else self.path


class HttpSource(ReceivingSource[HttpSourceConfig]):
    """Listens for HTTP requests; their bodies are messages.

    A request is answered with 200 once its messages are on disk, and with 503 and `Retry-After`
    while the journal is full: what was answered with 200 is never lost, and what was not may come
    again. A body that cannot be divided is answered with 400, a larger one than `max_body` with
    413.

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
    clients = ("aiohttp",)

    def about(self) -> pa.Schema:
        texts = pa.map_(pa.string(), pa.string())
        return pa.schema(
            [
                ("path", pa.string()),
                ("method", pa.string()),
                ("parameters", texts),
                ("query", texts),
                ("headers", texts),
                ("remote", pa.string()),
            ]
        )

    def check(self) -> None:
        """Needs the certificates, and an address that can be listened at."""
        if self.config.tls is not None:
            self.config.tls.server_context()
        asyncio.run(self._try_address())

    async def receive(self, journal: Journal) -> None:
        answering = Answering(self.config, journal)
        runner = await self._listening(answering)
        try:
            journal.ready.set()
            await answering.failed
        finally:
            await runner.cleanup()

    async def _try_address(self) -> None:
        host, port = host_and_port(self.config.listen)
        try:
            server = await asyncio.start_server(lambda *_: None, host, port)
        except OSError as error:
            raise self._not_listening(error) from None
        server.close()

    async def _listening(self, answering: Answering) -> Any:
        from aiohttp import web

        app = web.Application(client_max_size=self.config.max_body)
        for path in self.config.paths:
            try:
                app.router.add_route("*", path, answering)
            except ValueError as error:
                raise PlanError(f'path "{path}": {error}', code="path") from None
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=SHUTDOWN)
        await runner.setup()
        host, port = host_and_port(self.config.listen)
        tls = self.config.tls.server_context() if self.config.tls is not None else None
        try:
            await web.TCPSite(runner, host, port, ssl_context=tls).start()
        except OSError as error:
            await runner.cleanup()
            raise self._not_listening(error) from None
        return runner

    def _not_listening(self, error: OSError) -> Transient:
        return Transient(
            f"cannot listen at {self.config.listen}: {error.strerror}",
            code="listen",
            hint="another program may listen there already; give another port",
        )


class Answering:
    """Answers requests, one by one. `failed` is done when the journal takes no more for good."""

    def __init__(self, config: HttpSourceConfig, journal: Journal) -> None:
        self._config, self._journal = config, journal
        self.failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        if self._config.cors and request.method == "OPTIONS":
            return self._answer(204, None, **self._preflight(request))
        status, told, headers = await self._taken(request)
        return self._answer(status, told, **headers)

    async def _taken(self, request: web.Request) -> tuple[int, dict[str, Any], dict[str, str]]:
        config = self._config
        if request.method not in config.methods:
            allowed = ", ".join(config.methods)
            return 405, {"error": f"expected {allowed}"}, {"Allow": allowed}
        if config.auth and not config.auth.admits(request.headers.get("Authorization", "")):
            asked = {"WWW-Authenticate": f'{config.auth.scheme} realm="penstock"'}
            return 401, {"error": "expected other credentials"}, asked
        if self._journal.full:
            again = {"Retry-After": str(RETRY_AFTER)}
            return 503, {"error": "no more can be taken at the moment"}, again
        try:
            bodies = divided(await request.read(), config.framing)
        except DecodeError as error:
            return 400, {"error": error.message, "detail": error.detail}, {}
        about = _about(request)
        try:
            await self._journal.append([Message(body, about) for body in bodies])
        except Permanent as error:
            return 413, {"error": error.message}, {}
        except StateError as error:
            if not self.failed.done():
                self.failed.set_exception(error)
            return 500, {"error": "what arrives cannot be kept"}, {}
        return 200, {"received": len(bodies)}, {}

    def _answer(
        self, status: int, told: dict[str, Any] | None, **headers: str
    ) -> web.StreamResponse:
        from aiohttp import web

        if self._config.cors:
            headers["Access-Control-Allow-Origin"] = "*"
        text = json.dumps(told) if told is not None else None
        return web.Response(
            status=status, text=text, headers=headers, content_type="application/json"
        )

    def _preflight(self, request: web.Request) -> dict[str, str]:
        return {
            "Access-Control-Allow-Methods": ", ".join(self._config.methods),
            "Access-Control-Allow-Headers": request.headers.get(
                "Access-Control-Request-Headers", "*"
            ),
        }


def _about(request: web.Request) -> dict[str, Any]:
    """A request's metadata, without its credentials."""
    headers = [(k.lower(), v) for k, v in request.headers.items() if k.lower() != "authorization"]
    return {
        "path": request.path,
        "method": request.method,
        "parameters": list(request.match_info.items()),
        "query": list(request.query.items()),
        "headers": headers,
        "remote": request.remote,
    }
