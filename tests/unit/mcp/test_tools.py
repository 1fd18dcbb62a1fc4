"""The tools of assistants, called by the client of the SDK over the pipes of a process."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

from made_letters import made_letters
from penstock.mcp.local import LocalPipelines
from penstock.mcp.remote import RemotePipelines
from penstock.mcp.tools import make_server
from penstock.runtime.dead_letters.store import DeadLetters
from penstock.runtime.state.directory import StateDirectory
from penstock.server.workers.pool import WorkerPool
from penstock.server_client import ServerClient
from server_console import PIPELINE as SERVED
from server_console import Console
from web_console import listening

pytestmark = pytest.mark.slow
PIPELINE = """\
name: shop
sources:
  orders:
    type: generate
    rows: 3
    fields: {id: {type: sequence}}
sinks:
  out: {type: files, from: orders, path: out, format: json}
  db:
    type: postgres
    from: orders
    table: t
    url: postgresql://db/shop
    auth: {username: ann, password: "${DB_PASSWORD}"}
"""
WRONG = PIPELINE.replace("type: generate", "type: generat")
WRITES = {"write_pipeline", "replay_dead_letters"}


class Assistant:
    """A client of the server of tools."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def tools(self) -> set[str]:
        return {tool.name for tool in (await self._client.list_tools()).tools}

    async def call(self, name: str, /, **arguments: Any) -> Any:
        found = await self._client.call_tool(name, arguments)
        text = found.content[0].text  # type: ignore[union-attr]
        assert not found.is_error, text
        return json.loads(text)

    async def error(self, name: str, /, **arguments: Any) -> str:
        found = await self._client.call_tool(name, arguments)
        assert found.is_error, found
        return str(found.content[0].text)  # type: ignore[union-attr]


def session(
    *words: str, test: Callable[[Assistant], Coroutine[Any, Any, None]], **variables: str
) -> None:
    command = ["-m", "penstock", "mcp", *words]
    environment = {**os.environ, "DB_PASSWORD": "hunter2", **variables}
    parameters = StdioServerParameters(command=sys.executable, args=command, env=environment)

    async def body() -> None:
        async with Client(parameters) as client:
            await asyncio.wait_for(test(Assistant(client)), 120)

    asyncio.run(body())


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    (tmp_path / "shop.yaml").write_text(PIPELINE)
    return tmp_path


def test_reading(directory: Path) -> None:
    async def test(assistant: Assistant) -> None:
        assert not await assistant.tools() & WRITES
        assert await assistant.call("list_pipelines") == [{"name": "shop", "file": "shop.yaml"}]
        assert (await assistant.call("check_pipeline", name="shop"))["ok"]
        found = await assistant.call("check_pipeline", name="shop", text=WRONG)
        (error,) = found["errors"]
        assert (error["code"], error["line"]) == ("unknown-type", 4)
        assert error["fixes"][0]["edits"][0]["text"] == "generate"
        nodes = (await assistant.call("explain_pipeline", name="shop"))["nodes"]
        assert [node["name"] for node in nodes] == ["orders", "out", "db"]
        assert (await assistant.call("list_dead_letters", name="shop"))["total"] == 0
        found = await assistant.call("describe", kind="sink", type="kafka")
        assert "topic" in [option["name"] for option in found["options"]]
        found = await assistant.call("search_documentation", query="unknown-type")
        assert "error unknown-type" in found
        assert "did you mean" in await assistant.error("check_pipeline", name="shp")
        assert "no path" in await assistant.error("check_pipeline", name="../x.yaml", text=WRONG)
        assert "nope" in await assistant.error("preview_node", name="shop", node="nope")
        assert await assistant.error("preview", name="shop") == (
            'error[invalid-request]: there is no tool "preview"\n'
            '  hint: did you mean "preview_node"?'
        )
        assert await assistant.error("replay_dead_letters", name="shop") == (
            'error[invalid-request]: the tool "replay_dead_letters" is not offered here\n'
            "  hint: Start penstock mcp with --allow-writes."
        )
        assert "--server URL" in await assistant.error("stop_pipeline", name="shop")
        assert await assistant.error("list_dead_letters", name="shop", limits=3) == (
            'error[invalid-request]: list_dead_letters has no argument "limits"\n'
            '  hint: did you mean "limit"?'
        )
        assert await assistant.error("list_dead_letters", limit=1000) == (
            'error[invalid-request]: list_dead_letters requires the argument "name"\n\n'
            'error[invalid-request]: argument "limit" of list_dead_letters: '
            "Input should be less than or equal to 100"
        )

    session(str(directory), test=test)


def test_secrets_and_sizes(directory: Path) -> None:
    """No answer has a secret that the pipeline reads, and long answers are cut."""
    wrong = PIPELINE.replace("table: t", "table: ${DB_PASSWORD}-${NONE}")
    long = PIPELINE + "".join(f"  s{i}: {{type: prin, from: orders}}\n" for i in range(400))

    async def test(assistant: Assistant) -> None:
        for text in (PIPELINE, wrong):
            found = await assistant.call("check_pipeline", name="shop", text=text)
            assert "hunter2" not in json.dumps(found)
        explained = await assistant.call("explain_pipeline", name="shop")
        assert "hunter2" not in json.dumps(explained)
        cut = await assistant._client.call_tool("check_pipeline", {"name": "shop", "text": long})
        text = str(cut.content[0].text)  # type: ignore[union-attr]
        assert len(text) < 41_000 and text.endswith("more characters")

    session(str(directory), test=test)


def test_writing(directory: Path) -> None:
    async def test(assistant: Assistant) -> None:
        assert await assistant.tools() >= WRITES
        found = await assistant.call("write_pipeline", name="shop", text=WRONG)
        assert not found["written"] and (directory / "shop.yaml").read_text() == PIPELINE
        new = PIPELINE.replace("rows: 3", "rows: 4")
        assert (await assistant.call("write_pipeline", name="sub/new.yaml", text=new))["written"]
        assert (directory / "sub" / "new.yaml").read_text() == new
        for path in ("../new.yaml", "/tmp/new.yaml", ".git/config.yaml", "new.py"):
            assert "no path" in await assistant.error("write_pipeline", name=path, text=new)
        await assistant.call("write_pipeline", name="plain.yaml", text=SERVED.format(name="plain"))
        state = StateDirectory(directory / ".penstock" / "plain")
        with state.locked():
            DeadLetters(state.dead_letters).put("made", made_letters(3, "orders"))
        unknown = {"name": "plain", "ids": ["000000003"]}
        assert (await assistant.error("replay_dead_letters", **unknown)).endswith(
            'error[no-dead-letter]: there is no dead letter with the ID "000000003"\n'
            '  hint: did you mean "000000000"?'
        )
        with state.locked():
            error = await assistant.error("replay_dead_letters", name="plain")
        assert "error[already-running]: this pipeline is already running" in error
        assert "then replay its dead letters" in error
        broken = SERVED.format(name="plain").replace("generate", "generat")
        (directory / "plain.yaml").write_text(broken)
        error = await assistant.error("replay_dead_letters", name="plain")
        assert "plain.yaml:4:18" in error and 'did you mean "generate"?' in error

    session(str(directory), "--allow-writes", test=test)


def test_each_tool_that_is_not_offered_has_a_way_to_it(directory: Path) -> None:
    pool = WorkerPool(1, os.environ)
    places = LocalPipelines(directory, pool), RemotePipelines(ServerClient("http://x", "t"))

    async def names(place: Any, *, allow_writes: bool) -> tuple[set[str], set[str]]:
        server = make_server(place, allow_writes=allow_writes)
        return {tool.name for tool in await server.list_tools()}, {*server.withheld}

    found = [asyncio.run(names(place, allow_writes=w)) for place in places for w in (True, False)]
    everything = set[str]().union(*(offered for offered, _ in found))
    assert [withheld for _, withheld in found] == [everything - offered for offered, _ in found]


@pytest.mark.usefixtures("static_checks")
def test_pipelines_of_a_server(console: Console, pipeline_directory: Path) -> None:
    """The tools over a server that listens, with the rights of two tokens."""
    own = console.client.headers["Authorization"].removeprefix("Bearer ")
    body = {"name": "few", "rights": ["view", "edit"]}
    few = console.post("me/tokens", body, status=201)["token"]
    state = StateDirectory(pipeline_directory / "shop" / ".penstock" / "shop")
    text = SERVED.format(name="shop")

    async def look(assistant: Assistant) -> None:
        tools = await assistant.tools()
        assert not tools & (WRITES | {"preview_node", "test_pipeline", "start_pipeline"})
        (found,) = await assistant.call("list_pipelines")
        assert (found["name"], found["health"]["state"]) == ("shop", "stopped")
        assert (await assistant.call("read_pipeline", name="shop"))["text"] == text
        explained = await assistant.call("explain_pipeline", name="shop")
        assert [each["name"] for each in explained["nodes"]] == ["orders", "out"]
        wrong = await assistant.call(
            "check_pipeline", name="shop", text=text.replace("generate", "generat")
        )
        (error,) = wrong["errors"]
        assert (error["code"], error["line"]) == ("unknown-type", 4)
        assert "shop" in await assistant.error("read_pipeline", name="shp")
        forbidden = await assistant.error("list_dead_letters", name="shop")
        assert "does not have the right data" in forbidden
        assert few not in forbidden
        assert await assistant.error("preview_node", name="shop", node="orders") == (
            'error[invalid-request]: the tool "preview_node" is not offered here\n'
            "  hint: Start penstock mcp with the directory of the pipelines, and without --server."
        )

    async def change(assistant: Assistant) -> None:
        assert await assistant.tools() >= WRITES | {"start_pipeline", "stop_pipeline"}
        broken = text.replace("generate", "generat")
        assert "generat" in await assistant.error("write_pipeline", name="shop", text=broken)
        written = {"text": f"{text}# 2", "note": "by an assistant"}
        assert (await assistant.call("write_pipeline", name="shop", **written))["number"] == 2
        new = await assistant.call("write_pipeline", name="cafe", text=SERVED.format(name="cafe"))
        assert new["name"] == "cafe"
        await assistant.call("start_pipeline", name="shop")
        await asyncio.to_thread(console.await_health, "running")
        await assistant.call("stop_pipeline", name="shop")
        await asyncio.to_thread(console.await_health, "stopped")
        DeadLetters(state.dead_letters).put("made", made_letters(3, "orders"))
        page = await assistant.call("list_dead_letters", name="shop", limit=2)
        assert (page["total"], len(page["letters"])) == (3, 2)

    with listening(console) as url:
        session("--server", url, test=look, PENSTOCK_TOKEN=few)
        session("--server", url, "--allow-writes", test=change, PENSTOCK_TOKEN=own)
    authors = [each["author"] for each in console.get(f"pipelines/{console.id()}/versions")]
    assert authors == ["admin", "file"]
    assert {"apply", "start", "stop"} <= {each["action"] for each in console.get("audit")}
