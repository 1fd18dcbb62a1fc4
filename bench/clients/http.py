"""HTTP, server-sent events and WebSockets with aiohttp."""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar

from clients.system import Ready, System
from penstock.connectors.http import HttpSink, HttpSource
from penstock.connectors.http.poll import HttpPollSource
from penstock.connectors.http.sse import SseSource
from penstock.connectors.http.websocket import WebsocketSink, WebsocketSource
from servers.server import free_port

AT_ONCE = 8
PAGE = 1000
LOCAL = "127.0.0.1"


class Http(System):
    """The source listens, so what is sent in both cases is sent by this loop."""

    name, source, sink = "http", HttpSource, HttpSink
    messages = 10_000
    how = "listens"

    def __init__(self, server: Any) -> None:
        self._port = free_port()

    def options(self) -> dict[str, Any]:
        return {"listen": f"{LOCAL}:{self._port}"}

    def sink_options(self) -> dict[str, Any]:
        return {"url": f"http://{LOCAL}:{self._port}/", "concurrency": AT_ONCE}

    def send(self, payloads: list[bytes]) -> None:
        from aiohttp import ClientSession, TCPConnector

        async def some(client: Any, rest: Any) -> None:
            for payload in rest:
                async with client.post(f"http://{LOCAL}:{self._port}/", data=payload) as answer:
                    await answer.read()
                    answer.raise_for_status()

        async def send() -> None:
            rest = iter(payloads)
            async with ClientSession(connector=TCPConnector(limit=AT_ONCE)) as client:
                await asyncio.gather(*(some(client, rest) for _ in range(AT_ONCE)))

        asyncio.run(send())

    def take(self, count: int, ready: Ready) -> int:
        from aiohttp import web

        done, taken = asyncio.Event(), 0

        async def answer(request: Any) -> Any:
            nonlocal taken
            await request.read()
            taken += 1
            if taken >= count:
                done.set()
            return web.Response()

        asyncio.run(_served(self._port, [web.post("/", answer)], ready, done))
        return taken


class _Given(System):
    """A system whose server gives all messages to everybody who comes."""

    messages = 20_000
    how = "serves"
    source_options: ClassVar[dict[str, Any]] = {}
    scheme = "http"

    def __init__(self, server: Any) -> None:
        self._port = free_port()

    @property
    def url(self) -> str:
        return f"{self.scheme}://{LOCAL}:{self._port}/"

    def options(self) -> dict[str, Any]:
        return {"url": self.url, **self.source_options}


class HttpPoll(_Given):
    name, source = "http_poll", HttpPollSource
    source_options: ClassVar[dict[str, Any]] = {
        "framing": "lines", "paging": {"by": "page", "at_end": "stay"},
    }  # fmt: skip

    def send(self, payloads: list[bytes]) -> None:
        from aiohttp import web

        async def answer(request: Any) -> Any:
            at = (int(request.query["page"]) - 1) * PAGE
            return web.Response(body=b"\n".join(payloads[at : at + PAGE]))

        asyncio.run(_served(self._port, [web.get("/", answer)]))

    def take(self, count: int, ready: Ready) -> int:
        from aiohttp import ClientSession

        async def take() -> int:
            taken = page = 0
            async with ClientSession() as client:
                ready()
                while taken < count:
                    page += 1
                    async with client.get(f"{self.url}?page={page}") as answer:
                        taken += len((await answer.read()).splitlines())
            return taken

        return asyncio.run(take())


class Sse(_Given):
    name, source = "sse", SseSource

    def send(self, payloads: list[bytes]) -> None:
        from aiohttp import web

        async def answer(request: Any) -> Any:
            response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
            await response.prepare(request)
            for number, payload in enumerate(payloads):
                await response.write(b"id: %d\ndata: %s\n\n" % (number, payload))
            await asyncio.sleep(3600)
            return response

        asyncio.run(_served(self._port, [web.get("/", answer)]))

    def take(self, count: int, ready: Ready) -> int:
        from aiohttp import ClientSession

        async def take() -> int:
            taken = 0
            async with ClientSession() as client, client.get(self.url) as answer:
                ready()
                async for line in answer.content:
                    taken += line.startswith(b"data:")
                    if taken == count:
                        break
            return taken

        return asyncio.run(take())


class Websocket(_Given):
    name, source = "websocket", WebsocketSource
    scheme = "ws"

    def send(self, payloads: list[bytes]) -> None:
        from aiohttp import web

        async def answer(request: Any) -> Any:
            socket = web.WebSocketResponse()
            await socket.prepare(request)
            for payload in payloads:
                await socket.send_bytes(payload)
            await socket.receive()
            return socket

        asyncio.run(_served(self._port, [web.get("/", answer)]))

    def take(self, count: int, ready: Ready) -> int:
        from aiohttp import ClientSession

        async def take() -> int:
            taken = 0
            async with ClientSession() as client, client.ws_connect(self.url) as socket:
                ready()
                while taken < count:
                    await socket.receive()
                    taken += 1
            return taken

        return asyncio.run(take())


class WebsocketOut(System):
    name, sink = "websocket (to a server)", WebsocketSink
    how = "listens"

    def __init__(self, server: Any) -> None:
        self._port = free_port()

    def options(self) -> dict[str, Any]:
        return {"url": f"ws://{LOCAL}:{self._port}/"}

    def send(self, payloads: list[bytes]) -> None:
        from aiohttp import ClientSession

        async def send() -> None:
            url = f"ws://{LOCAL}:{self._port}/"
            async with ClientSession() as client, client.ws_connect(url) as socket:
                for payload in payloads:
                    await socket.send_bytes(payload)

        asyncio.run(send())

    def take(self, count: int, ready: Ready) -> int:
        from aiohttp import web

        done, taken = asyncio.Event(), 0

        async def answer(request: Any) -> Any:
            nonlocal taken
            socket = web.WebSocketResponse()
            await socket.prepare(request)
            async for _ in socket:
                taken += 1
                if taken >= count:
                    done.set()
            return socket

        asyncio.run(_served(self._port, [web.get("/", answer)], ready, done))
        return taken


async def _served(
    port: int, routes: Any, ready: Ready | None = None, done: asyncio.Event | None = None
) -> None:
    """Serves until it is done, or killed."""
    from aiohttp import web

    app = web.Application(client_max_size=1 << 30)
    app.add_routes(routes)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, LOCAL, port).start()
    if ready is not None:
        ready()
    await (done or asyncio.Event()).wait()
    await asyncio.sleep(0.2)
    await runner.cleanup()
