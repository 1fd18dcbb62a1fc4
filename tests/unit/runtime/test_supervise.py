"""The supervisor's decisions: restarts, ends and phases. Spark's queries are scripted."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from types import SimpleNamespace
from typing import Any

import pytest

from penstock import app
from penstock.cli.summary import describe_unwritten
from penstock.connectors.memory import MemorySource
from penstock.core.errors import PenstockError, Permanent, Transient
from penstock.core.log import Silent
from penstock.observe.execution import Execution
from penstock.observe.metrics import Metrics
from penstock.observe.progress import QueryProgress
from penstock.runtime import periodic_work, query_starts, supervise
from penstock.runtime.outcome import Outcome
from penstock.runtime.query_run import QueryRun
from penstock.runtime.state.directory import StateDirectory
from penstock.runtime.stop import Stopped, StopRequest
from penstock.runtime.supervise import Supervisor

UNREACHABLE = Transient("could not reach the server")
REJECTED = Permanent("the server rejected the request")
PIPELINE = """\
name: shop
sources:
  orders: {type: memory, rows: [], schema: "id LONG, at TIMESTAMP",
           watermark: {column: at, delay: 1 minute}}
transforms:
  hourly: {type: sql, sql: "SELECT window.start AS hour, count(*) AS n FROM orders
           GROUP BY window(at, '1 hour')"}
sinks:
  copy: {type: memory, from: orders}
  counts: {type: memory, from: hourly}
runtime:
  restart: {attempts: 2, backoff: 1ms, max_backoff: 1ms, on_permanent: %s}
"""


@dataclass
class ScriptedQuery:
    """A query that ends at once, with an error or without one, or that runs until it is stopped."""

    error: Exception | None
    isActive: bool = False

    @property
    def status(self) -> dict[str, str]:
        return {"message": "Waiting for data to arrive"}

    def exception(self) -> Exception | None:
        return self.error

    def stop(self) -> None:
        self.isActive = False


@dataclass
class Starts:
    """Starts of queries. `scripts` holds the outcomes of each query, the last one for all others.

    `RUNNING` is the outcome of a query that does not end.
    """

    scripts: dict[str, list[Any]]
    calls: list[tuple[str, str]] = field(default_factory=list)

    def __call__(self, builder: Any, query: Any, checkpoint: Path, observer: Any, **options: Any):
        self.calls.append((query.name, options["until"]))
        script = self.scripts.get(query.name, [None])
        outcome = script.pop(0) if len(script) > 1 else script[0]
        if callable(outcome):
            outcome = outcome(checkpoint)
        running = outcome is RUNNING
        spark = ScriptedQuery(None if running else outcome, running)
        runner = SimpleNamespace(error=None, lock=Lock(), written=None, late=None)
        idle = SimpleNamespace(advance=lambda: None)
        return SimpleNamespace(
            query=query, spark=spark, runner=runner, sources=(), idle=idle, changed_tables=()
        )


RUNNING = object()


@pytest.fixture(autouse=True)
def _without_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervise, "POLL_SECONDS", 0.001)
    monkeypatch.setattr(supervise.Listener, "catch_up", lambda *_: None)
    monkeypatch.setattr(supervise.Listener, "await_end", lambda *_: True)


class Run:
    """A run of the pipeline with scripted queries."""

    def __init__(self, directory: Path, on_permanent: str, until: Any, starts: Starts) -> None:
        path = directory / "shop.yaml"
        path.write_text(PIPELINE % on_permanent)
        plan = app.plan(path)
        self.state = StateDirectory(directory / "state")
        self.stop = StopRequest(self.state)
        streams = SimpleNamespace(addListener=lambda _: None, removeListener=lambda _: None)
        java = SimpleNamespace(sc=lambda: SimpleNamespace(isStopped=lambda: False))
        context = SimpleNamespace(master="local[2]")
        session = SimpleNamespace(streams=streams, sparkContext=context, _jsc=java)
        self.supervisor = Supervisor(
            plan, session, self.state,  # type: ignore[arg-type]
            until=until, metrics=Metrics(), log=Silent(), stop=self.stop,
        )  # fmt: skip
        self.starts = starts

    def __call__(self, monkeypatch: pytest.MonkeyPatch) -> Outcome:
        monkeypatch.setattr(query_starts, "start", self.starts)
        return self.supervisor.run()


def commit(checkpoint: Path, number: int, error: PenstockError | None = None) -> Any:
    """Writes a batch into Spark's logs, as a query does that fails in the batch after it."""
    for log in ("offsets", "commits"):
        (checkpoint / log).mkdir(parents=True, exist_ok=True)
        (checkpoint / log / str(number)).write_text('v2\n{}\norders:{"batch": 0}')
    return error


def test_queries_that_end_are_caught_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    starts = Starts({})
    outcome = Run(tmp_path, "stop_pipeline", "caught_up", starts)(monkeypatch)
    assert (outcome.ending, outcome.errors, outcome.exit_code) == ("caught_up", {}, 0)
    assert sorted(starts.calls) == [("hourly", "caught_up"), ("orders", "caught_up")]


def test_the_lag_of_a_source_has_its_unit_before_the_first_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MemorySource, "lag_unit", "bytes")
    metrics = Run(tmp_path, "stop_pipeline", "caught_up", Starts({})).supervisor.metrics
    nodes = metrics.snapshot()["nodes"]
    assert {name: node["lag_unit"] for name, node in nodes.items()} == {
        "orders": "bytes", "copy": "records", "counts": "records"
    }  # fmt: skip


def test_open_windows_of_the_run_before_are_named_without_a_new_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    earlier = Metrics()
    earlier.queries = {name: Execution() for name in ("hourly", "orders", "removed")}
    earlier.progress["hourly"] = QueryProgress(open_windows=3)
    earlier.watermarks = {"hourly": "2026-03-01T10:30:00.000Z", "removed": "2026-01-01T00:00:00Z"}
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "status.json").write_text(json.dumps(earlier.snapshot()))
    run = Run(tmp_path, "stop_pipeline", "caught_up", Starts({}))
    outcome = run(monkeypatch)
    numbers = run.supervisor.metrics.snapshot()
    assert describe_unwritten(run.supervisor.plan, outcome, numbers) == [
        "hourly: 3 open windows not yet written; watermark 2026-03-01 10:30"
    ]
    assert "removed" not in numbers["watermarks"]


def test_transient_errors_restart_a_query(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    starts = Starts({"orders": [UNREACHABLE, UNREACHABLE, None]})
    run = Run(tmp_path, "stop_pipeline", "caught_up", starts)
    assert run(monkeypatch).ending == "caught_up"
    assert [name for name, _ in starts.calls].count("orders") == 3
    assert run.supervisor.metrics.restarts == 2


def test_transient_errors_without_progress_fail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    starts = Starts({"orders": [UNREACHABLE]})
    outcome = Run(tmp_path, "stop_pipeline", "caught_up", starts)(monkeypatch)
    assert (outcome.ending, outcome.exit_code) == ("failed", 3)
    assert list(outcome.errors) == ["orders"]
    assert [name for name, _ in starts.calls].count("orders") == 3


def test_progress_resets_the_attempts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = [lambda c, n=n: commit(c, n, UNREACHABLE) for n in range(6)]
    starts = Starts({"orders": [*script, None]})
    assert Run(tmp_path, "stop_pipeline", "caught_up", starts)(monkeypatch).ending == "caught_up"
    assert [name for name, _ in starts.calls].count("orders") == 7


def test_a_permanent_error_stops_the_other_queries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    starts = Starts({"orders": [REJECTED], "hourly": [RUNNING]})
    outcome = Run(tmp_path, "stop_pipeline", "stopped", starts)(monkeypatch)
    assert (outcome.ending, list(outcome.errors)) == ("failed", ["orders"])
    assert len(starts.calls) == 2


def test_a_permanent_error_may_stop_its_query_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    starts = Starts({"orders": [REJECTED], "hourly": [UNREACHABLE, None]})
    outcome = Run(tmp_path, "stop_query", "caught_up", starts)(monkeypatch)
    assert (outcome.ending, list(outcome.errors)) == ("failed", ["orders"])
    assert [name for name, _ in starts.calls].count("hourly") == 2


def test_metrics_hold_the_start_of_all_queries_and_permanent_failures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    starts = Starts({"orders": [REJECTED], "hourly": [UNREACHABLE, None]})
    run = Run(tmp_path, "stop_query", "caught_up", starts)
    metrics = run.supervisor.metrics
    assert not metrics.all_started
    run(monkeypatch)
    assert metrics.all_started
    assert metrics.failures == {"orders": REJECTED.code}


def test_a_stop_is_not_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    starts = Starts({"orders": [RUNNING], "hourly": [Stopped()]})
    run = Run(tmp_path, "stop_pipeline", "stopped", starts)
    run.supervisor.on_tick = lambda: run.stop.request("Ctrl-C")
    outcome = run(monkeypatch)
    assert (outcome.ending, outcome.reason, outcome.errors) == ("stopped", "Ctrl-C", {})


def test_queries_are_polled_at_an_end_and_at_each_tick(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits, polled = iter([False] * 20 + [True, False]), list[str]()
    starts = Starts({"orders": [RUNNING], "hourly": [RUNNING]})
    run = Run(tmp_path, "stop_pipeline", "stopped", starts)

    def await_end(*_: object) -> bool:
        if (ended := next(waits, None)) is None:
            run.stop.request("Ctrl-C")
        return bool(ended)

    poll = QueryRun.poll
    monkeypatch.setattr(supervise.Listener, "await_end", await_end)
    monkeypatch.setattr(QueryRun, "poll", lambda each: polled.append(each.query.name) or poll(each))
    monkeypatch.setattr(periodic_work, "TICK_SECONDS", 1e12)  # more than any uptime
    assert run(monkeypatch).ending == "stopped"
    assert polled == ["orders", "hourly"] * 2  # the first tick and the end


def test_the_next_tick_finds_an_end_without_an_event(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when Java has ended."""
    monkeypatch.setattr(supervise.Listener, "await_end", lambda *_: False)
    monkeypatch.setattr(periodic_work, "TICK_SECONDS", 0.01)
    starts = Starts({"orders": [REJECTED], "hourly": [None]})
    outcome = Run(tmp_path, "stop_query", "caught_up", starts)(monkeypatch)
    assert (outcome.ending, list(outcome.errors)) == ("failed", ["orders"])


def test_no_batch_starts_after_a_stop_request(tmp_path: Path) -> None:
    run = Run(tmp_path, "stop_pipeline", "stopped", Starts({}))
    run.stop.request("Ctrl-C")
    with pytest.raises(Stopped):
        run.supervisor.events.on_begin(run.supervisor.plan.queries[0], 0)


def test_windows_are_closed_once_all_input_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    starts = Starts({})
    run = Run(tmp_path, "stop_pipeline", "complete", starts)
    assert run(monkeypatch).ending == "complete"
    assert starts.calls[-1] == ("hourly", "closed")
    assert {until for _, until in starts.calls[:-1]} == {"complete"}
    assert run.state.read("complete")["windows"] is True


def test_a_failure_leaves_windows_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    starts = Starts({"orders": [REJECTED]})
    run = Run(tmp_path, "stop_query", "complete", starts)
    assert run(monkeypatch).ending == "failed"
    assert "closed" not in {until for _, until in starts.calls}
    assert run.state.read("complete") is None


def test_a_run_that_ended_while_closing_goes_on_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    starts = Starts({"hourly": [UNREACHABLE, None]})
    run = Run(tmp_path, "stop_pipeline", "complete", starts)
    run.state.write("closing", {"since": 0})
    assert run(monkeypatch).ending == "complete"
    assert starts.calls == [("hourly", "closed"), ("hourly", "closed")]


FINAL = """\
name: shop
sources:
  orders: {type: memory, rows: [], schema: "id LONG"}
transforms:
  total: {type: sql, sql: SELECT count(*) AS n FROM orders}
sinks:
  copy: {type: blackhole, from: orders}
  out: {type: blackhole, from: total}
runtime:
  restart: {attempts: 2, backoff: 1ms, max_backoff: 1ms, on_permanent: %s}
"""


@pytest.mark.parametrize(
    ("until", "calls"),
    [
        ("complete", [("orders", "complete"), ("total", "complete")]),
        ("caught_up", [("orders", "caught_up")]),
    ],
)
def test_final_rows_are_computed_after_all_input_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, until: str, calls: list[tuple[str, str]]
) -> None:
    monkeypatch.setattr(sys.modules[__name__], "PIPELINE", FINAL)
    starts = Starts({})
    run = Run(tmp_path, "stop_pipeline", until, starts)
    assert run(monkeypatch).ending == until
    assert starts.calls == calls
    complete = run.state.read("complete")
    assert complete is None if until == "caught_up" else complete["windows"] is True


def test_committed_final_rows_are_not_computed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules[__name__], "PIPELINE", FINAL)
    starts = Starts({})
    run = Run(tmp_path, "stop_pipeline", "complete", starts)
    commit(run.state.checkpoint("total"), 0)
    assert run(monkeypatch).ending == "complete"
    assert starts.calls == [("orders", "complete")]
