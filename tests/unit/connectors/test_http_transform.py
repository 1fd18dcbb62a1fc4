"""The transform `http` on Arrow batches, against a server with good and with hostile responses."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from aiohttp import web

from penstock.connectors.http.transform import HttpTransform
from penstock.core.errors import OptionError, Permanent, PlanError, Transient
from penstock.sdk import Changes, Failure, registry
from penstock.sdk.columns.ddl import arrow_schema
from penstock.sdk.network.event_loop import EventLoopThread

ROWS = pa.RecordBatch.from_pylist(
    [{"id": 1, "name": 'Ann "A"'}, {"id": 2, "name": "Bob"}, {"id": 3, "name": None}],
    schema=arrow_schema("id BIGINT, name STRING"),
)
Handler = Any


class Server:
    """A server on a port of its own. `handlers` are by path, `bodies` those of all requests."""

    def __init__(self) -> None:
        self.handlers: dict[str, Handler] = {}
        self.bodies: list[Any] = []
        self.busy = self.most_busy = 0
        self._loop = EventLoopThread()
        self.url = self._loop.run(self._start())

    async def _start(self) -> str:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        host, port = self._runner.addresses[0][:2]
        return f"http://{host}:{port}"

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        text = await request.text()
        self.bodies.append(json.loads(text) if text else None)
        self.busy += 1
        self.most_busy = max(self.busy, self.most_busy)
        try:
            found: web.StreamResponse = await self.handlers[request.path](request, self.bodies[-1])
            return found
        finally:
            self.busy -= 1

    def on(self, path: str, response: Any) -> str:
        """Responds with JSON, or with the result of a coroutine function. Returns the URL."""

        async def handler(request: web.Request, body: Any) -> web.StreamResponse:
            found = await response(request, body) if callable(response) else response
            return found if isinstance(found, web.StreamResponse) else web.json_response(found)

        self.handlers[path] = handler
        return f"{self.url}{path}"

    def close(self) -> None:
        self._loop.run(self._runner.cleanup())
        self._loop.close()


@pytest.fixture(scope="module")
def shared_server() -> Iterator[Server]:
    server = Server()
    yield server
    server.close()


@pytest.fixture
def server(shared_server: Server) -> Server:
    shared_server.bodies.clear()
    shared_server.most_busy = 0
    return shared_server


def transform(url: str, changes: Changes | None = None, **options: Any) -> HttpTransform:
    options = {"retry": {"attempts": 2, "backoff": "1ms"}, **options}
    made = HttpTransform(HttpTransform.config_type.model_validate({"url": url, **options}))
    json_format = registry.find("format", "json")
    format_: Any = json_format.create(json_format.config_type())
    made.format, made.changes = format_, changes
    made.validate()
    return made


def apply(made: HttpTransform, rows: pa.RecordBatch = ROWS) -> tuple[list[Any], dict[int, str]]:
    """Returns the output rows, and the codes and messages of failures by row."""
    try:
        schema = made.output(rows.schema)
        output = list(made.apply(rows))
    finally:
        made.close()
    failures = {
        e.index: f"{e.error.code}: {e.error.message}" for e in output if isinstance(e, Failure)
    }
    found = []
    for batch in output:
        if isinstance(batch, pa.RecordBatch):
            assert batch.schema == schema
            found += batch.to_pylist()
    return found, failures


async def score(request: web.Request, body: Any) -> Any:
    """Responds to a row, or to an array of rows. The id 2 is rejected, also among others."""
    rows = body if isinstance(body, list) else [body]
    if any(row["id"] == 2 for row in rows):
        return web.Response(status=422, text="no twos")
    scored = [{"score": row["id"] * 10, "secret": "x"} for row in rows]
    return scored if isinstance(body, list) else scored[0]


@pytest.mark.parametrize("framing", ["single", "array"])
def test_results_are_added_to_rows(server: Server, framing: str) -> None:
    made = transform(server.on("/score", score), framing=framing, schema="score INT")
    rows, failures = apply(made)
    assert [(row["id"], row["score"]) for row in rows] == [(1, 10), (3, 30)]
    assert failures == {1: "http-422: 422: no twos"}
    whole = {"id": 1, "name": 'Ann "A"'}
    assert whole in (server.bodies if framing == "single" else server.bodies[0])


@pytest.mark.slow
def test_order_and_parallel_requests_are_bounded(server: Server) -> None:
    async def slow_first(request: web.Request, body: Any) -> Any:
        await asyncio.sleep(0.02 if body["id"] % 3 else 0.05)
        return {"n": body["id"]}

    ids = list(range(40))
    batch = pa.RecordBatch.from_pydict({"id": pa.array(ids, pa.int64())})
    made = transform(server.on("/slow", slow_first), schema="n BIGINT", concurrency=4)
    rows, failures = apply(made, batch)
    assert [row["n"] for row in rows] == ids
    assert not failures and server.most_busy == 4


def test_a_body_is_a_template_of_json(server: Server) -> None:
    async def echo(request: web.Request, body: Any) -> Any:
        return {"data": {"names": body["q"]}}

    server.on("/of/1", echo)
    made = transform(
        server.url + "/of/{id}", body='{{"q": [{name}]}}', schema="names ARRAY<STRING>",
        pointer="/data",
    )  # fmt: skip
    rows, failures = apply(made, ROWS.slice(0, 1))
    assert server.bodies == [{"q": ['Ann "A"']}]
    assert rows[0]["names"] == ['Ann "A"'] and not failures


def test_an_envelope_has_operations(server: Server) -> None:
    async def keep(request: web.Request, body: Any) -> Any:
        kept = [{"metadata": row["metadata"], "data": {**row["data"], "n": 1}} for row in body]
        return [*kept[:2], {"metadata": {"op": "i"}, "data": {"id": 9, "n": 7}}]

    rows = ROWS.append_column("_op", pa.array(["i", "u", "d"]))
    options: dict[str, Any] = {"framing": "array", "payload_version": 1, "response": "replace"}
    override = {"schema_override": {"name": None, "n": "INT"}}
    made = transform(server.on("/keep", keep), Changes("_op", False), **options, **override)
    found, failures = apply(made, rows)
    assert found == [
        {"id": 1, "n": 1, "_op": "i"}, {"id": 2, "n": 1, "_op": "u"}, {"id": 9, "n": 7, "_op": "i"},
    ]  # fmt: skip
    assert not failures
    sent = [row["metadata"] for row in server.bodies[0]]
    assert sent == [{"op": "i"}, {"op": "u"}, {"op": "d"}]
    assert server.bodies[0][0]["data"] == {"id": 1, "name": 'Ann "A"'}


def test_wrong_results_are_dead_letters(server: Server) -> None:
    async def wrong(request: web.Request, body: Any) -> Any:
        return [{"score": 1}, {"score": "high"}] if len(body) == 2 else [{"score": 1}]

    made = transform(server.on("/wrong", wrong), framing="array", max_records=2, schema="score INT")
    rows, failures = apply(made)
    assert [row["id"] for row in rows] == [1, 3]
    assert failures == {1: 'wrong-type: column "score": "high" is not an INT'}

    made = transform(server.on("/few", [{"score": 1}]), framing="array", schema="score INT")
    rows, failures = apply(made)
    assert rows == [] and set(failures.values()) == {"wrong-results: expected 3 results, found 1"}

    made = transform(server.url + "/wrong", framing="array", max_records=2, response="replace",
                     schema="score INT")  # fmt: skip
    rows, failures = apply(made)
    assert rows == [{"score": 1}] and set(failures) == {0, 1}


async def endless(request: web.Request, body: Any) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    for _ in range(1 << 20):
        await response.write(b" " * 65536)
    return response


async def stuck(request: web.Request, body: Any) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    await response.write(b"{")
    await asyncio.sleep(60)
    return response


async def html(request: web.Request, body: Any) -> web.Response:
    return web.Response(text="<html>Welcome</html>", content_type="text/html")


async def redirect(request: web.Request, body: Any) -> web.Response:
    raise web.HTTPFound("/loop")


async def busy(request: web.Request, body: Any) -> web.Response:
    return web.Response(status=503, text="later")


@pytest.mark.quick(1)
@pytest.mark.parametrize(
    ("handler", "code"),
    [(endless, "too-large"), (stuck, "unreachable"), (html, "not-json"), (busy, "http-503")],
)
def test_hostile_responses_are_dead_letters(server: Server, handler: Handler, code: str) -> None:
    made = transform(
        server.on("/hostile", handler), schema="score INT", timeout="200ms",
        max_message_size="1 KiB", after_retries="dead_letter",
    )  # fmt: skip
    rows, failures = apply(made)
    assert rows == [] and [text.split(":")[0] for text in failures.values()] == [code] * 3


def test_other_errors_stop_the_run(server: Server) -> None:
    with pytest.raises(Transient, match="503"):
        apply(transform(server.on("/busy", busy), schema="score INT"))
    assert len(server.bodies) == 6
    with pytest.raises(Permanent, match="302"):
        apply(transform(server.on("/loop", redirect), schema="score INT"))
    with pytest.raises(Transient, match="could not reach"):
        apply(transform("http://127.0.0.1:1/", response="ignore"))


def test_a_response_can_be_ignored(server: Server) -> None:
    rows, failures = apply(transform(server.on("/score", score), response="ignore"))
    assert [row["id"] for row in rows] == [1, 3] and set(failures) == {1}


def test_wrong_columns_are_errors() -> None:
    url = "http://localhost/"
    with pytest.raises(OptionError, match='unknown column "ids"'):
        transform(url + "{ids}", schema="a INT").output(ROWS.schema)
    with pytest.raises(OptionError, match='the input has a column "NAME", as a result has'):
        transform(url, schema="NAME STRING").output(ROWS.schema)
    with pytest.raises(PlanError, match="not declared"):
        transform(url)
