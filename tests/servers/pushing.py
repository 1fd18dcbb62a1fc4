"""A web server that has news: WebSockets, streams of events, and pages that change."""

from __future__ import annotations

import asyncio
import base64
import json
import socket
import ssl
import sys
import uuid
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote
from urllib.request import Request, urlopen

import pytest

from servers.server import Server

USER, PASSWORD = "made-up-user", "made-up-password"
LOGIN = {"auth": {"username": USER, "password": PASSWORD}}
_LOGIN = "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
_PAGE = 1 << 20


class Pushing(Server):
    """The server at `url`. Its data survive a kill. It requires USER and PASSWORD.

    A client of the WebSocket /hub/NAME gets what is pushed to NAME, and what it sends is kept.
    /events/NAME is a stream of the events of NAME, after Last-Event-ID. /log/NAME gives the
    entries of NAME as lines, or with ?as=array as a JSON object; ?after=N are those after N.
    /script/NAME gives the answers that were scripted, by query.
    """

    name = "pushing"
    title = "a web server by aiohttp 3"

    def __init__(self, port: int | None = None, certificate: Path | None = None) -> None:
        super().__init__(port)
        self._certificate = certificate

    def command(self) -> Sequence[str]:
        """This file, as a program."""
        certificate = [str(self._certificate)] if self._certificate else []
        module = [sys.executable, "-m", "servers.pushing"]
        return [*module, str(self.port), str(self.directory.path), *certificate]

    def environment(self) -> Mapping[str, str]:
        """So that this module is found."""
        return {"PYTHONPATH": str(Path(__file__).parents[1])}

    def stop(self) -> None:
        """At once: it would wait for clients that do not leave."""
        self.kill()

    def ready(self) -> None:
        """Connects, and asks for what was never sent."""
        socket.create_connection(("127.0.0.1", self.port), 5).close()
        self.kept("nothing")

    @property
    def url(self) -> str:
        """Where it answers."""
        return f"http{'s' if self._certificate else ''}://127.0.0.1:{self.port}"

    @property
    def ws_url(self) -> str:
        """Where its WebSockets are."""
        return self.url.replace("http", "ws", 1)

    def new_name(self) -> str:
        """Returns an unused NAME."""
        return f"n{uuid.uuid4().hex[:12]}"

    def push(self, name: str, payload: bytes, kind: str = "text") -> int:
        """Sends a message to all clients of a hub; returns how many there are.

        The kind `close` closes them with the code that the payload is.
        """
        return int(self._asked(f"push/{name}?kind={kind}", payload))

    def append(self, name: str, payload: bytes, event: str = "") -> None:
        """Adds an entry to a log, which is an event of its stream, too."""
        self._asked(f"append/{name}?event={quote(event)}", payload)

    def script(self, name: str, answers: Any) -> None:
        """What /script/NAME answers: by query, `status`, `headers`, `body` and `etag`."""
        self._asked(f"answers/{name}", json.dumps(answers).encode())

    def kept(self, name: str) -> list[dict[str, Any]]:
        """What clients sent, in order: requests (`method`, `query`, `headers`, `body`), frames."""
        found: list[dict[str, Any]] = json.loads(self._asked(f"kept/{name}"))
        return found

    def _asked(self, path: str, body: bytes | None = None) -> bytes:
        unverified = ssl._create_unverified_context() if self._certificate else None
        request = Request(f"{self.url}/{path}", body)
        with urlopen(request, timeout=60, context=unverified) as answer:
            said: bytes = answer.read()
        return said


class Store:
    """What the server knows, in its directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.grown = asyncio.Condition()

    def keep(self, name: str, what: dict[str, Any]) -> None:
        self._add(f"{name}.kept", what)

    async def append(self, name: str, payload: bytes, event: str) -> None:
        self._add(f"{name}.log", {"payload": base64.b64encode(payload).decode(), "event": event})
        async with self.grown:
            self.grown.notify_all()

    def kept(self, name: str) -> list[dict[str, Any]]:
        return self._lines(f"{name}.kept")

    def log(self, name: str, after: int) -> list[tuple[int, str, bytes]]:
        """The entries after that number, with their numbers and events."""
        lines = self._lines(f"{name}.log")[after:]
        return [
            (after + number, line["event"], base64.b64decode(line["payload"]))
            for number, line in enumerate(lines, 1)
        ]

    def script(self, name: str, answers: bytes | None = None) -> Any:
        path = self._directory / f"{name}.script"
        if answers is not None:
            path.write_bytes(answers)
        return json.loads(path.read_bytes())

    def _add(self, file: str, what: dict[str, Any]) -> None:
        with (self._directory / file).open("a") as opened:
            opened.write(json.dumps(what) + "\n")

    def _lines(self, file: str) -> list[dict[str, Any]]:
        path = self._directory / file
        lines = path.read_text().splitlines() if path.exists() else []
        return [json.loads(line) for line in lines]


def serve(port: int, directory: Path, certificate: str | None = None) -> None:
    """Runs until it is killed."""
    from aiohttp import web

    app = web.Application(client_max_size=1 << 30)
    app.router.add_route("*", "/{way}/{name}", Answers(Store(directory)).respond)
    tls = None
    if certificate is not None:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(certificate)
    web.run_app(
        app, host="127.0.0.1", port=port, ssl_context=tls, print=None, access_log=None,
        shutdown_timeout=0,
    )  # fmt: skip


class Answers:
    """The ways of the server."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._hubs: dict[str, set[Any]] = defaultdict(set)

    async def respond(self, request: Any) -> Any:
        from aiohttp import web

        way, name = request.match_info["way"], request.match_info["name"]
        if way in ("push", "append", "answers", "kept"):
            return web.Response(body=await getattr(self, f"_{way}")(request, name))
        if request.headers.get("Authorization") != _LOGIN:
            return web.Response(status=401, text="who are you?")
        return await getattr(self, f"_{way}")(request, name)

    # What tests ask

    async def _push(self, request: Any, name: str) -> bytes:
        body, kind = await request.read(), request.query["kind"]
        hub = list(self._hubs[name])
        for client in hub:
            if kind == "close":
                await client.close(code=int(body), message=b"made-up reason")
            elif kind == "text":
                await client.send_str(body.decode())
            else:
                await client.send_bytes(body)
        return str(len(hub)).encode()

    async def _append(self, request: Any, name: str) -> bytes:
        await self._store.append(name, await request.read(), request.query["event"])
        return b""

    async def _answers(self, request: Any, name: str) -> bytes:
        self._store.script(name, await request.read())
        return b""

    async def _kept(self, request: Any, name: str) -> bytes:
        return json.dumps(self._store.kept(name)).encode()

    # What clients ask

    async def _hub(self, request: Any, name: str) -> Any:
        """With ?deaf=1 pings are not answered."""
        from aiohttp import WSMsgType, web

        client = web.WebSocketResponse(max_msg_size=1 << 30, protocols=["made-up"], autoping=False)
        await client.prepare(request)
        self._hubs[name].add(client)
        self._keep_request(request, name, b"")
        try:
            async for message in client:
                if message.type is WSMsgType.PING:
                    self._store.keep(name, {"frame": "ping"})
                    if not request.query.get("deaf"):
                        await client.pong(message.data)
                elif message.type in (WSMsgType.TEXT, WSMsgType.BINARY):
                    text = message.type is WSMsgType.TEXT
                    body = message.data.encode() if text else message.data
                    kind = "text" if text else "binary"
                    self._store.keep(name, {"frame": kind, "body": base64.b64encode(body).decode()})
                    if request.query.get("echo"):
                        await client.send_bytes(body)
        finally:
            self._hubs[name].discard(client)
        return client

    async def _events(self, request: Any, name: str) -> Any:
        from aiohttp import web

        self._keep_request(request, name, b"")
        at = int(request.headers.get("Last-Event-ID", "0"))
        stream = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await stream.prepare(request)
        while True:
            async with self._store.grown:
                while not (found := self._store.log(name, at)):
                    await self._store.grown.wait()
            for at, event, payload in found:
                head = f"id: {at}\n" + (f"event: {event}\n" if event else "")
                await stream.write(head.encode() + b"data: " + payload + b"\n\n")

    async def _log(self, request: Any, name: str) -> Any:
        from aiohttp import web

        after = int(request.query.get("after", "0"))
        entries, size = [], 0
        for number, _, payload in self._store.log(name, after):
            after, size = number, size + len(payload)
            entries.append(payload)
            if size > _PAGE:
                break
        if request.query.get("as") == "array":
            items = b",".join(entries)
            return web.Response(body=b'{"data": {"items": [%s]}, "next": %d}' % (items, after))
        body = b"".join(entry + b"\n" for entry in entries)
        return web.Response(body=body, headers={"X-Next": str(after)})

    async def _script(self, request: Any, name: str) -> Any:
        """An answer of several is given once, but for the last."""
        from aiohttp import web

        self._keep_request(request, name, await request.read())
        script = self._store.script(name)
        answer = script.get(request.query_string, {"status": 404})
        if isinstance(answer, list):
            script[request.query_string] = answer[1:] or answer
            self._store.script(name, json.dumps(script).encode())
            answer = answer[0]
        headers = dict(answer.get("headers", {}))
        if "etag" in answer:
            headers["ETag"] = answer["etag"]
            if request.headers.get("If-None-Match") == answer["etag"]:
                return web.Response(status=304, headers=headers)
        return web.Response(
            status=answer.get("status", 200), headers=headers, body=answer.get("body", "").encode()
        )

    def _keep_request(self, request: Any, name: str, body: bytes) -> None:
        headers = {key.lower(): value for key, value in request.headers.items()}
        self._store.keep(
            name,
            {
                "method": request.method,
                "query": request.query_string,
                "headers": headers,
                "body": body.decode(),
            },
        )


@pytest.fixture(scope="session")
def pushing() -> Iterator[Pushing]:
    """One server for all tests that ask for it."""
    with Pushing() as server:
        yield server


if __name__ == "__main__":
    serve(int(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:])
