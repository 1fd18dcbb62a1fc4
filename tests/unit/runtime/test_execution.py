"""Executions of queries and receivers: their states, as shown by `status` and the views."""

from __future__ import annotations

import io
import os
import re
import time
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console
from rich.live import Live

from penstock import app
from penstock.cli.live_view import LiveView
from penstock.cli.metrics_table import format_elapsed, format_executions, format_lag
from penstock.core.errors import Permanent, Transient
from penstock.core.log import Silent
from penstock.engine.checkpoints.start_offsets import StartOffsets
from penstock.observe.execution import Execution
from penstock.observe.metrics import Metrics
from penstock.plan.model import Query
from penstock.runtime.acknowledge import Acknowledger
from penstock.runtime.query_run import QueryRun
from penstock.runtime.retry import RetryState
from penstock.runtime.state.directory import StateDirectory, now
from penstock.runtime.state.status import Status
from penstock.spec.runtime_models import Restart

DOWN = Transient("could not reach the server", code="unreachable")


def test_a_query_retries_until_a_batch_is_written() -> None:
    execution = Execution()
    retries = RetryState(Restart(), Silent(), execution=execution)
    execution.begin_batch(4)
    began = execution.batch_since
    retries.next_attempt(DOWN, 3)
    since = execution.since
    execution.begin_batch(4)
    retries.next_attempt(DOWN, 3)
    assert (execution.state, execution.since, execution.failures) == ("retrying", since, 2)
    assert (execution.error, execution.code) == ("could not reach the server", "unreachable")
    assert execution.next_attempt is not None and execution.next_attempt > time.time()
    assert (execution.batch, execution.batch_since) == (4, began)
    execution.end_batch()
    assert (execution.state, execution.error, execution.batch) == ("running", None, None)


def test_a_permanent_error_fails_a_query() -> None:
    execution = Execution()
    execution.begin_batch(4)
    retries = RetryState(Restart(), Silent(), execution=execution)
    assert retries.next_attempt(Permanent("rejected"), 3) is None
    assert (execution.state, execution.error, execution.batch) == ("failed", "rejected", None)


def numbers(**executions: Execution) -> dict[str, Any]:
    metrics = Metrics()
    metrics.queries.update(executions)
    return metrics.snapshot()


def test_a_query_stalls_between_attempts_and_in_a_long_batch() -> None:
    execution = Execution()
    execution.begin_batch(1)
    assert not execution.stalled
    assert execution.batch_since is not None
    execution.batch_since -= 10
    assert execution.stalled
    execution.end_batch()
    assert not execution.stalled
    execution.retry(DOWN, 1)
    assert execution.stalled


def test_a_query_that_advances_has_no_line() -> None:
    quick = Execution()
    quick.begin_batch(1)
    assert format_executions(numbers(a=Execution(), b=quick)) == []
    assert format_executions({"nodes": {}}) == []


def test_a_query_that_does_not_advance_has_a_line() -> None:
    slow, retrying, failed = Execution(), Execution(), Execution()
    slow.begin_batch(7)
    slow.batch_since = time.time() - 42
    retrying.begin_batch(3)
    retrying.retry(DOWN, 12.5)
    retrying.since -= 51
    failed.fail(Permanent("rejected"))
    assert format_executions(numbers(slow=slow, retrying=retrying, failed=failed)) == [
        "query slow: batch 7 under way for 42 s",
        "query retrying: retrying for 51 s: could not reach the server · next attempt in 12 s"
        " · batch 3 under way for 0.0 s",
        "query failed: failed: rejected",
    ]


def test_the_sink_that_fails_is_named_until_something_else_fails() -> None:
    execution = Execution()
    execution.begin_batch(3)
    execution.try_again(DOWN, "copy")
    assert (execution.state, execution.failures, execution.next_attempt) == ("retrying", 0, None)
    assert format_executions(numbers(a=execution)) == [
        "query a: retrying for 0.0 s: sink copy: could not reach the server"
        " · batch 3 under way for 0.0 s"
    ]
    since = execution.since
    execution.retry(DOWN, 12.5)
    assert (execution.sink, execution.since, execution.failures) == ("copy", since, 1)
    execution.retry(Transient("could not read the source"), 12.5)
    assert (execution.sink, execution.snapshot()["sink"]) == (None, None)
    execution.try_again(DOWN, "copy")
    execution.end_batch()
    assert (execution.state, execution.sink, execution.error) == ("running", None, None)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (9.94, "9.9 s"), (9.96, "10 s"), (59.4, "59 s"), (59.6, "1 min 0 s"),
        (119.7, "2 min 0 s"), (3599.9, "1 h 0 min"), (97_200, "1 d 3 h"),
    ],
)  # fmt: skip
def test_an_elapsed_time_is_rounded_once(seconds: float, text: str) -> None:
    assert format_elapsed(seconds) == text


def test_a_batch_without_rows_is_not_the_last_batch() -> None:
    flow = Metrics().flow("copy", "sink", "http")
    flow.add(0)
    assert flow.last_batch is None
    flow.add(2)
    assert flow.last_batch is not None and flow.rows == 2


def test_a_receiver_that_is_down_has_a_line() -> None:
    metrics = Metrics()
    metrics.receivers["readings"] = Execution()
    metrics.receivers["readings"].retry(DOWN, 3)
    (line,) = format_executions(metrics.snapshot())
    assert line.startswith("receiver readings: retrying for 0.0 s: could not reach the server")


PIPELINE = """\
name: shop
sources: {orders: {type: files, path: "in/*.csv", format: csv, schema: id LONG, watch: true}}
sinks: {copy: {type: memory, from: orders}}
"""


@pytest.mark.parametrize("width", [40, 80])
def test_the_live_view_of_a_query_that_retries(tmp_path: Path, width: int) -> None:
    (tmp_path / "shop.yaml").write_text(PIPELINE)
    plan = app.plan(tmp_path / "shop.yaml")
    view = LiveView(plan, [])
    metrics = Metrics()
    metrics.watermarks["orders"] = "2013-01-05T12:00:00Z"
    metrics.flow("copy", "sink", "http")
    metrics.queries["copy"] = Execution()
    metrics.queries["copy"].begin_batch(3)
    metrics.queries["copy"].retry(Transient(f"could not reach {'a' * 100}"), 12.5)
    view.begin(plan, metrics)
    output = io.StringIO()
    console = Console(
        file=output, width=width, force_terminal=True, color_system=None, soft_wrap=True
    )
    with Live(console=console, get_renderable=view.render, auto_refresh=False):
        pass
    lines = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", output.getvalue()).splitlines()
    assert max(map(len, lines)) <= width
    assert lines[-1].strip() == "Ctrl-C stops"
    text = "".join("".join(lines).split())
    assert f"querycopy:retryingfor0.0s:couldnotreach{'a' * 100}·nextattemptin12s·batch3" in text


def test_pending_records_are_those_not_yet_committed(tmp_path: Path) -> None:
    (tmp_path / "shop.yaml").write_text(PIPELINE)
    plan = app.plan(tmp_path / "shop.yaml")
    source = plan.nodes["orders"].source
    source.lag = lambda start, end: end["batch"] - start["batch"]  # type: ignore[method-assign]
    state = StateDirectory(tmp_path / "state")
    acknowledger = Acknowledger(plan, state, Silent())
    checkpoint = state.checkpoint(plan.queries[0].name)

    def write(log: str, number: int, batch: int) -> None:
        (checkpoint / log).mkdir(parents=True, exist_ok=True)
        (checkpoint / log / str(number)).write_text(f'v2\n{{}}\norders:{{"batch": {batch}}}')

    assert acknowledger.pending() == {"orders": 0}
    write("offsets", 0, 10)
    assert acknowledger.pending() == {"orders": 0}
    StartOffsets(checkpoint).record("orders", {"batch": 4})
    assert acknowledger.pending() == {"orders": 6}
    write("commits", 0, 10)
    write("offsets", 1, 25)
    assert acknowledger.pending() == {"orders": 15}
    write("commits", 1, 25)
    assert acknowledger.pending() == {"orders": 0}


def test_the_lag_contains_pending_records() -> None:
    metrics = Metrics()
    flow = metrics.flow("orders", "source", "kafka")
    assert metrics.snapshot()["nodes"]["orders"]["lag"] is None
    flow.measure("copy", 0, "records")
    flow.pending = 200
    assert metrics.snapshot()["nodes"]["orders"]["lag"] == 200
    assert format_lag(metrics.snapshot()["nodes"]["orders"]) == "200 records"
    flow.pending = 1
    assert format_lag(metrics.snapshot()["nodes"]["orders"]) == "1 record"


def test_a_killed_run_is_in_the_history(tmp_path: Path) -> None:
    state = StateDirectory(tmp_path / "state")
    with state.locked():
        state.begin_run({"id": "1", "began": "2026-01-01T00:00:00Z"})
        state.write("status.json", Metrics().snapshot())
        assert Status.of(state).runs == ()
    (killed,) = Status.of(state).runs
    assert (killed.id, killed.ending) == ("1", "killed")
    assert killed.began < killed.ended <= now()
    with state.locked():
        state.begin_run({"id": "2", "began": now()})
        state.end_run({"id": "2", "began": now()}, ended=now(), ending="complete", errors={})
    assert [(run.id, run.ending) for run in Status.of(state).runs] == [
        ("2", "complete"),
        ("1", "killed"),
    ]


def test_a_run_killed_after_its_entry_is_in_the_history_once(tmp_path: Path) -> None:
    state = StateDirectory(tmp_path / "state")
    with state.locked():
        state.begin_run({"id": "1", "began": now()})
        run = state.read("run.json")
        state.end_run(run, ended=now(), ending="stopped", errors={})
        state.write("run.json", run)
    assert [run.ending for run in Status.of(state).runs] == ["stopped"]


@dataclass
class ScriptedRun:
    """A run of the query `copy`, of which Spark and the commit log are scripted."""

    message: str = "Initializing sources"
    written: int | None = None
    committed: int | None = None

    def __post_init__(self) -> None:
        self.lock, self.metrics = Lock(), Metrics()
        self.status = {"message": self.message}
        started: Any = SimpleNamespace(
            spark=SimpleNamespace(status=self.status),
            runner=SimpleNamespace(lock=self.lock, written=self.written),
        )
        state: Any = SimpleNamespace(committed=lambda _: self.committed)
        session: Any = None
        query = Query("copy", "", (), (), ())
        self.run = QueryRun(
            query, lambda: started, session, Restart(), state, self.metrics, Silent()
        )


def test_a_restarted_query_without_rows_is_running_again() -> None:
    scripted = ScriptedRun()
    execution = scripted.metrics.queries["copy"]
    execution.retry(DOWN, 1)
    scripted.run.detect_waiting()
    assert (execution.state, execution.subscribed) == ("retrying", False)
    scripted.status["message"] = "Waiting for data to arrive"
    scripted.run.detect_waiting()
    assert (execution.state, execution.subscribed) == ("running", True)


@pytest.mark.parametrize(
    ("written", "committed", "idle"),
    [(None, None, True), (3, None, False), (3, 2, False), (3, 3, True), (3, 4, True)],
)
def test_a_query_is_idle_once_its_batch_is_in_the_commit_log(
    written: int | None, committed: int | None, idle: bool
) -> None:
    scripted = ScriptedRun(written=written, committed=committed)
    assert scripted.run.is_idle() is idle
    with scripted.lock:
        assert not scripted.run.is_idle()


def test_numbers_of_an_earlier_run_are_not_those_of_a_run_that_starts(tmp_path: Path) -> None:
    state = StateDirectory(tmp_path / "state")
    with state.locked():
        assert Status.of(state).numbers is None
        state.write("status.json", Metrics().snapshot())
        assert Status.of(state).numbers is not None
        os.utime(tmp_path / "state/status.json", (1, 1))
        assert Status.of(state).numbers is None and Status.of(state).starting
    assert Status.of(state).numbers is not None
