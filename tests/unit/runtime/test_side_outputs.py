"""Side outputs of a run, driven by hand: their order, their failures and their end."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from penstock.observe.metrics import Metrics
from penstock.plan.model import Observer, Query
from penstock.runtime import side_outputs
from penstock.runtime.side_outputs import SideOutputs
from penstock.sdk import Config, ObservedRows, SideOutput

QUERY = Query("q", "a", (), (), ())
ROWS = pa.table({"id": [1, 2, 3]})


class Watched(SideOutput[Config]):
    def __init__(self, on_rows: Callable[[ObservedRows], None] = lambda rows: None) -> None:
        super().__init__(Config())
        self.on_rows, self.calls = on_rows, list[Any]()

    def open(self) -> None:
        self.calls.append("open")

    def observe(self, rows: ObservedRows) -> None:
        self.on_rows(rows)
        self.calls.append((rows.node, rows.batch, rows.rows.num_rows, rows.count))

    def close(self) -> None:
        self.calls.append("close")


def run(
    *outputs: Watched, batches: int = 3, max_rows: int = 2, ready: threading.Event | None = None
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Passes batches to side outputs. Returns their metrics and the events of the log."""
    events: list[dict[str, Any]] = []
    log: Any = SimpleNamespace(warning=lambda name, **facts: events.append({"name": name, **facts}))
    observers = [Observer(f"s{i}", each, ("a",), max_rows) for i, each in enumerate(outputs)]
    plan: Any = SimpleNamespace(observers=observers)
    metrics = Metrics()
    running = SideOutputs(plan, metrics, log)
    for number in range(batches):
        running.pass_rows(QUERY, number, "a", ROWS, 3)
        running.pass_rows(QUERY, number, "b", ROWS, 3)
    if ready is not None:
        ready.wait(30)
    running.close()
    snapshot: Any = metrics.snapshot()
    return snapshot["side_outputs"], events


def test_batches_are_passed_in_order_and_limited() -> None:
    watched = Watched()
    numbers, events = run(watched)
    assert watched.calls == ["open", *(("a", n, 2, 3) for n in range(3)), "close"]
    assert numbers["s0"] == {"batches": 3, "rows": 9, "missed": 0, "failures": 0, "error": None}
    assert not events


@pytest.mark.parametrize("error", [ValueError("no"), SystemExit("no")])
def test_a_failure_is_counted_and_affects_no_other(error: BaseException) -> None:
    def fail(rows: ObservedRows) -> None:
        if rows.batch != 1:
            raise error

    failing, other = Watched(fail), Watched()
    numbers, events = run(failing, other)
    assert [each for each in failing.calls if each[0] == "a"] == [("a", 1, 2, 3)]
    assert [numbers["s0"][key] for key in ("batches", "missed", "failures")] == [1, 2, 2]
    assert numbers["s1"]["batches"] == 3 and numbers["s1"]["error"] is None
    assert [(each["side_output"], each["error"]) for each in events] == [
        ("s0", f"{type(error).__name__}: no")
    ]


@pytest.mark.slow
def test_a_side_output_that_does_not_return_is_left_behind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(side_outputs, "END_SECONDS", 0.2)
    begun, end = threading.Event(), threading.Event()

    def hang(rows: ObservedRows) -> None:
        begun.set()
        end.wait(60)

    hanging = Watched(hang)
    hanging.max_queued = 2
    numbers, events = run(hanging, Watched(), batches=10, ready=begun)
    end.set()
    assert numbers["s0"]["batches"] == 0 and numbers["s0"]["missed"] == 10
    assert numbers["s1"]["batches"] == 10
    assert {each["error"] for each in events} >= {"the queue of 2 batches is full"}


def test_a_side_output_that_cannot_be_opened_misses_batches() -> None:
    class Closed(Watched):
        def open(self) -> None:
            raise OSError("no disk")

    numbers, _ = run(Closed())
    assert numbers["s0"]["missed"] == 3 and numbers["s0"]["error"] == "OSError: no disk"


def test_rows_that_cannot_be_copied_are_missed() -> None:
    log: Any = SimpleNamespace(warning=lambda name, **facts: None)
    plan: Any = SimpleNamespace(observers=[Observer("s", Watched(), ("a",), 1)])
    metrics = Metrics()
    running = SideOutputs(plan, metrics, log)
    running.miss("a", ValueError("bad"))
    running.close()
    snapshot: Any = metrics.snapshot()
    assert snapshot["side_outputs"]["s"]["missed"] == 1
    assert "could not be copied: ValueError: bad" in snapshot["side_outputs"]["s"]["error"]
