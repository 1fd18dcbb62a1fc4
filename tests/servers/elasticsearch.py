"""OpenSearch behind the requests of Elasticsearch for points in time."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from urllib.request import urlopen

import pytest

from servers.opensearch import VERSION, Opensearch
from servers.server import Server

_HIDDEN = ("Host", "Content-Length", "Accept-Encoding")


class Elasticsearch(Server):
    """Passes requests on to OpenSearch, with its names for points in time."""

    name = "elasticsearch"
    title = f"OpenSearch {VERSION}, in place of Elasticsearch"

    def __init__(self, target: Opensearch) -> None:
        super().__init__()
        self._target = target

    def command(self) -> Sequence[str]:
        """This file, as a program."""
        return [sys.executable, "-m", "servers.elasticsearch", str(self.port), self._target.url]

    def environment(self) -> Mapping[str, str]:
        """So that this module is found."""
        return {"PYTHONPATH": str(Path(__file__).parents[1])}

    def ready(self) -> None:
        """Asks OpenSearch for its version."""
        urlopen(self.url, timeout=5).close()

    @property
    def url(self) -> str:
        """Where it answers."""
        return f"http://127.0.0.1:{self.port}"


def translate(method: str, path: str, body: bytes) -> tuple[str, bytes]:
    """Returns the path and the body of a request to OpenSearch."""
    path, _, parameters = path.partition("?")
    if path == "/_pit":
        return "/_search/point_in_time", json.dumps({"pit_id": [json.loads(body)["id"]]}).encode()
    if path.endswith("/_pit"):
        return f"{path.removesuffix('/_pit')}/_search/point_in_time?{parameters}", body
    return f"{path}?{parameters}", body.replace(b'"_shard_doc"', b'"_id"')


def serve(port: int, target: str) -> None:
    """Runs until it is killed."""
    from aiohttp import ClientSession, web

    async def sessions(app: web.Application) -> object:
        app["session"] = ClientSession(auto_decompress=True)
        yield
        await app["session"].close()

    async def pass_on(request: web.Request) -> web.Response:
        path, body = translate(request.method, request.path_qs, await request.read())
        headers = {key: value for key, value in request.headers.items() if key not in _HIDDEN}
        headers.pop("Content-Encoding", None)
        async with request.app["session"].request(
            request.method, f"{target}{path}", data=body, headers=headers
        ) as response:
            found = await response.read()
        if request.path.endswith("/_pit"):
            found = found.replace(b'"pit_id"', b'"id"')
        return web.Response(
            body=found, status=response.status, content_type="application/json"
        )  # fmt: skip

    app = web.Application(client_max_size=1 << 30)
    app.cleanup_ctx.append(sessions)  # type: ignore[arg-type]
    app.router.add_route("*", "/{path:.*}", pass_on)
    web.run_app(app, host="127.0.0.1", port=port, print=None, access_log=None)


@pytest.fixture(scope="session")
def elasticsearch(opensearch: Opensearch) -> Iterator[Elasticsearch]:
    """One server for all tests that ask for it."""
    with Elasticsearch(opensearch) as server:
        yield server


if __name__ == "__main__":
    serve(int(sys.argv[1]), sys.argv[2])
