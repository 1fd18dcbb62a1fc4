"""A sink whose server is down, as status and log show it before an attempt has ended."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from pipelines import Workspace

from penstock.cli.metrics_table import format_executions
from penstock.cli.summary import describe_unwritten
from penstock.core.errors import Transient
from penstock.runtime.handle import RunHandle
from penstock.runtime.state.directory import StateDirectory
from servers.server import free_port
from servers.web import Web

pytestmark = pytest.mark.spark
ROWS = 6
INPUT = [{"id": number} for number in range(ROWS)]
BOUND = 120


class Log:
    """A log that keeps its warnings."""

    def __init__(self) -> None:
        self.warnings: list[tuple[str, dict[str, Any]]] = []

    def warning(self, event: str, **facts: Any) -> None:
        self.warnings.append((event, facts))

    def debug(self, event: str, **facts: Any) -> None:
        pass

    info = error = debug


def pipeline(sinks: str) -> str:
    return f"""
sources:
  numbers: {{type: memory, schema: id LONG, partitions: 2, rows: {json.dumps(INPUT)}}}
sinks:
{sinks}
"""


def await_query(
    handle: RunHandle, workspace: Workspace, holds: Callable[[dict[str, Any]], bool]
) -> dict[str, Any]:
    """Waits until the status of the query holds, in the file that `penstock status` reads."""
    state = StateDirectory(workspace.root / ".penstock" / "pipeline")
    until = time.monotonic() + BOUND
    while True:
        status = state.read("status.json") or {"queries": {}}
        if "numbers" in status["queries"] and holds(status["queries"]["numbers"]):
            return dict(status)
        assert time.monotonic() < until and handle.wait(0.05) is None, status


def test_the_sink_is_named_before_its_attempts_end(workspace: Workspace, web_server: Web) -> None:
    name, port, log = web_server.new_name(), free_port(), Log()
    handle = workspace.start(
        pipeline(f"""
  first: {{type: http, from: numbers, url: "{web_server.url}/kept/{name}"}}
  second:
    type: http
    from: numbers
    url: http://127.0.0.1:{port}/kept/second
    retry: {{attempts: 1000, backoff: 100ms, max_backoff: 100ms}}
"""),
        until="stopped",
        log=log,
    )
    try:
        began = time.time()
        status = await_query(handle, workspace, lambda query: query["state"] == "retrying")
        query = status["queries"]["numbers"]
        assert (query["sink"], query["code"], query["failures"]) == ("second", "unreachable", 0)
        assert f"127.0.0.1:{port}" in query["error"]
        assert began - BOUND < query["since"] <= time.time()
        assert query["next_attempt"] is None and query["batch"] is not None
        (line,) = format_executions(status)
        assert line.startswith("query numbers: retrying for ")
        assert f"sink second: could not reach http://127.0.0.1:{port}" in line
        (facts,) = [facts for event, facts in log.warnings if event == "sink fails"]
        assert (facts["query"], facts["sink"]) == ("numbers", "second")
        assert facts["code"] == "unreachable"
        with Web(port) as second:
            await_query(handle, workspace, lambda query: query["state"] == "running")
            until = time.monotonic() + BOUND
            while len(second.bodies("second")) < ROWS:
                assert time.monotonic() < until and handle.wait(0.1) is None
            received = [json.loads(body)["id"] for body in second.bodies("second")]
    finally:
        handle.stop()
    outcome = handle.wait(BOUND)
    assert outcome is not None and outcome.errors == {}
    assert handle.metrics.restarts == 0
    assert sorted(received) == [*range(ROWS)]
    first = [json.loads(body)["id"] for body in web_server.bodies(name)]
    assert sorted(first) == [*range(ROWS)]


@pytest.mark.parametrize(
    "sink",
    [
        "{type: redis, from: numbers, url: 'redis://127.0.0.1:PORT', stream: s}",
        "{type: kafka, from: numbers, brokers: '127.0.0.1:PORT', topic: t}",
        "{type: kafka, from: numbers, brokers: '127.0.0.1:PORT', topic: t, delivery: exactly_once}",
        "{type: kafka, from: numbers, brokers: '127.0.0.1:PORT', topic: t, create: true}",
        "{type: zeromq, from: numbers, socket: push, connect: 'tcp://127.0.0.1:PORT'}",
    ],
    ids=["redis", "kafka", "kafka exactly once", "kafka create", "zeromq"],
)
def test_a_sink_on_a_dead_port_is_named(workspace: Workspace, sink: str) -> None:
    port = free_port()
    handle = workspace.start(pipeline(f"  out: {sink.replace('PORT', str(port))}"), until="stopped")
    try:
        status = await_query(handle, workspace, lambda query: query["state"] == "retrying")
        query = status["queries"]["numbers"]
        assert query["sink"] == "out" and f"127.0.0.1:{port}" in query["error"]
    finally:
        handle.stop()
        with suppress(Transient):  # of a topic that could not be created before the first batch
            assert handle.wait(BOUND) is not None


def test_a_stop_interrupts_a_batch_whose_sink_fails(workspace: Workspace) -> None:
    handle = workspace.start(
        pipeline(f"""
  out:
    type: http
    from: numbers
    url: http://127.0.0.1:{free_port()}/
    retry: {{attempts: 1000000, backoff: 100ms, max_backoff: 100ms}}
"""),
        until="stopped",
    )
    await_query(handle, workspace, lambda query: query["state"] == "retrying")
    handle.stop()
    outcome = handle.wait(40)
    assert outcome is not None and (outcome.ending, outcome.errors) == ("stopped", {})
    (line,) = describe_unwritten(handle.plan, outcome, handle.metrics.snapshot())
    assert line.startswith("numbers: a batch is not completely written, the next run repeats it; ")
    assert line.endswith("Connection refused")
