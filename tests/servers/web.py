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

    PUT /tables/NAME stores rows with a column `id`. GET /tables/NAME/ID responds with a row or 404,
    GET /tables/NAME?ids=1,2 and POST /tables/NAME with an array of rows, each below `data`. A POST
    of one key responds with a row, or without a body. The id 503 is first busy, and the id 422 is
    rejected, also among others. Rows with a column `always` are part of each array.
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

    def put_table(self, name: str, rows: Sequence[Any]) -> None:
        """Stores the rows of a table."""
        body = json.dumps(rows).encode()
        urlopen(Request(f"{self.url}/tables/{name}", body, method="PUT"), timeout=60).close()

    def requests(self, name: str) -> list[dict[str, Any]]:
        """The kept requests, in order: `body`, `headers`, `method`, `query`."""
        with urlopen(Request(f"{self.url}/requests/{name}"), timeout=60) as answer:
            found: list[dict[str, Any]] = json.load(answer)
        return found

    def bodies(self, name: str) -> list[bytes]:
        """Their bodies."""
        return [base64.b64decode(each["body"]) for each in self.requests(name)]


class Tables:
    """Rows by the text of their column `id`, and the requests of each table in `NAME.kept`."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._rows: dict[str, list[Any]] = {}
        self._busy: set[str] = set()

    async def put(self, request: Any) -> Any:
        """Stores rows."""
        self._rows[request.match_info["name"]] = await request.json()
        return self._response(200, None)

    async def one(self, request: Any) -> Any:
        """Responds with the row of an ID, or with 404."""
        name, key = request.match_info["name"], request.match_info["id"]
        self._keep(name, request.path_qs, "")
        status = self._status(name, [key])
        found = self._find(name, [key])
        return self._response(status or (200 if found else 404), found[0] if found else None)

    async def several(self, request: Any) -> Any:
        """Responds with the rows of IDs that commas separate."""
        name, keys = request.match_info["name"], request.query["ids"].split(",")
        self._keep(name, request.path_qs, "")
        return self._response(self._status(name, keys) or 200, self._find(name, keys))

    async def of_body(self, request: Any) -> Any:
        """Responds to a key as JSON, or to an array of keys."""
        from aiohttp import web

        name, body = request.match_info["name"], await request.json()
        self._keep(name, request.path_qs, body)
        keys = [str(key["id"]) for key in (body if isinstance(body, list) else [body])]
        found, status = self._find(name, keys), self._status(name, keys) or 200
        if isinstance(body, list):
            return self._response(status, found)
        return self._response(status, found[0]) if found else web.Response(status=status)

    def _find(self, name: str, keys: Sequence[str]) -> list[Any]:
        rows = self._rows.get(name, [])
        return [
            row
            for row in rows
            if not isinstance(row, dict) or "always" in row or str(row["id"]) in keys
        ]

    def _status(self, name: str, keys: Sequence[str]) -> int | None:
        if "422" in keys:
            return 422
        if "503" in keys and name not in self._busy:
            self._busy.add(name)
            return 503
        return None

    def _keep(self, name: str, path: str, body: Any) -> None:
        with (self._directory / f"{name}.kept").open("a") as file:
            file.write(json.dumps({"path": path, "body": body}) + "\n")

    def _response(self, status: int, data: Any) -> Any:
        from aiohttp import web

        return web.json_response({"data": data}, status=status)


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

    tables = Tables(directory)
    app = web.Application(client_max_size=1 << 30)
    app.router.add_put("/tables/{name}", tables.put)
    app.router.add_get("/tables/{name}/{id}", tables.one)
    app.router.add_get("/tables/{name}", tables.several)
    app.router.add_post("/tables/{name}", tables.of_body)
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
