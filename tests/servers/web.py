"""A web server that keeps requests, and responds with the errors of web servers."""

from __future__ import annotations

import base64
import json
import socket
import ssl
import sys
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

from servers.server import Server

USER, PASSWORD = "made-up-user", "made-up-password"
_LOGIN = "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()


class Web(Server):
    """The server at `url`. Its data survive a kill.

    POST /kept/NAME keeps a request; /strict/NAME also requires USER and PASSWORD. /busy/NAME
    answers every request first with 503, and /choosy/NAME rejects bodies with the id 3 (422).
    """

    name = "web"
    title = "a web server by aiohttp 3"

    def __init__(self, port: int | None = None, certificate: Path | None = None) -> None:
        super().__init__(port)
        self._certificate = certificate

    def command(self) -> Sequence[str]:
        """This file, as a program."""
        certificate = [str(self._certificate)] if self._certificate else []
        return [
            sys.executable,
            "-m",
            "servers.web",
            str(self.port),
            str(self.directory.path),
            *certificate,
        ]

    def environment(self) -> Mapping[str, str]:
        """So that this module is found."""
        return {"PYTHONPATH": str(Path(__file__).parents[1])}

    def ready(self) -> None:
        """Connects, and asks for what was never sent."""
        socket.create_connection(("127.0.0.1", self.port), 5).close()
        if self._certificate is None:
            self.requests("nothing")

    @property
    def url(self) -> str:
        """Where it answers."""
        return f"http://127.0.0.1:{self.port}"

    def new_name(self) -> str:
        """Returns an unused NAME."""
        return f"n{uuid.uuid4().hex[:12]}"

    def requests(self, name: str) -> list[dict[str, Any]]:
        """The kept requests, in order: `body`, `headers`, `method`, `query`."""
        with urlopen(Request(f"{self.url}/requests/{name}"), timeout=10) as answer:
            found: list[dict[str, Any]] = json.load(answer)
        return found

    def bodies(self, name: str) -> list[bytes]:
        """Their bodies."""
        return [base64.b64decode(each["body"]) for each in self.requests(name)]


def serve(port: int, directory: Path, certificate: str | None = None) -> None:
    """Runs until it is killed."""
    from aiohttp import web

    busy: set[tuple[str, bytes]] = set()

    async def take(request: web.Request) -> web.Response:
        body = await request.read()
        way, name = request.match_info["way"], request.match_info["name"]
        if way == "strict" and request.headers.get("Authorization") != _LOGIN:
            return web.Response(status=401)
        if request.method == "HEAD":
            return web.Response()
        if way == "busy" and (name, body) not in busy:
            busy.add((name, body))
            return web.Response(status=503, headers={"Retry-After": "0"})
        if way == "choosy" and b'"id":3' in body:
            return web.Response(status=422, text="the id 3 is not accepted")
        kept = {
            "body": base64.b64encode(body).decode(),
            "headers": {key.lower(): value for key, value in request.headers.items()},
            "method": request.method,
            "query": dict(request.query),
        }
        with (directory / f"{name}.kept").open("a") as file:
            file.write(json.dumps(kept) + "\n")
        return web.Response(status=201)

    async def requests(request: web.Request) -> web.Response:
        path = directory / f"{request.match_info['name']}.kept"
        lines = path.read_text().splitlines() if path.exists() else []
        return web.json_response([json.loads(line) for line in lines])

    app = web.Application(client_max_size=1 << 30)
    app.router.add_get("/requests/{name}", requests)
    app.router.add_route("*", "/{way:kept|strict|busy|choosy}/{name}", take)
    tls = None
    if certificate is not None:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(certificate)
    web.run_app(app, host="127.0.0.1", port=port, ssl_context=tls, print=None, access_log=None)


@pytest.fixture(scope="session")
def web_server() -> Iterator[Web]:
    """One server for all tests that ask for it."""
    with Web() as server:
        yield server


if __name__ == "__main__":
    serve(int(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:])
