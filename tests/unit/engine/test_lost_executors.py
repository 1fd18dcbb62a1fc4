"""Executors that a run has lost: how long their batches wait."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any, cast

import pytest
from py4j.protocol import Py4JJavaError

from penstock.core.errors import Transient
from penstock.engine.spark_session import cluster
from penstock.engine.spark_session.cluster import START_TIMEOUT, WAIT_SECONDS, LostExecutors

JAVA_EXCEPTION: Any = SimpleNamespace(_target_id="o1", _gateway_client=None)


class Clock:
    """A clock, a number of executors, and the warnings."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, master: str = "spark://host:7077") -> None:
        self.now, self.executors, self.warnings = 1e5, 2, 0
        monkeypatch.setattr(cluster, "registered_executors", lambda session: self.executors)
        monkeypatch.setattr(cluster.time, "monotonic", lambda: self.now)
        session = SimpleNamespace(sparkContext=SimpleNamespace(master=master))
        self.lost = LostExecutors(cast(Any, session), cast(Any, self))

    def warning(self, event: str, **facts: object) -> None:
        self.warnings += 1

    def after(self, seconds: float, *, executors: int = 0, waits: bool = True) -> None:
        self.now += seconds
        self.executors = executors
        self.lost.check(waits=waits)


def test_a_batch_without_executors_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    clock.after(WAIT_SECONDS - 1)
    assert clock.warnings == 0
    clock.after(2)
    clock.after(1)
    assert clock.warnings == 1
    with pytest.raises(Transient) as caught:
        clock.after(START_TIMEOUT)
    assert caught.value.code == "no-executors"


@pytest.mark.parametrize("between", [{"executors": 1}, {"waits": False}])
def test_the_time_starts_again(monkeypatch: pytest.MonkeyPatch, between: dict[str, Any]) -> None:
    clock = Clock(monkeypatch)
    clock.after(0, executors=2)
    clock.after(START_TIMEOUT - 1)
    clock.after(1, **between)
    clock.after(START_TIMEOUT - 1)


@pytest.mark.parametrize("stopped", [True, False])
def test_an_application_that_the_cluster_has_removed(
    monkeypatch: pytest.MonkeyPatch, stopped: bool
) -> None:
    """Its queries end with the reason, after Spark has stopped."""
    clock = Clock(monkeypatch)

    def registered(session: Any) -> int:
        raise Py4JJavaError("Cannot call methods on a stopped SparkContext", JAVA_EXCEPTION)

    monkeypatch.setattr(cluster, "registered_executors", registered)
    monkeypatch.setattr(cluster, "is_stopped", lambda session: stopped)
    with nullcontext() if stopped else pytest.raises(Py4JJavaError):
        clock.after(1)


def test_a_local_master_has_no_executors(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch, "local[2]")
    clock.after(2 * START_TIMEOUT)
    clock.after(2 * START_TIMEOUT)
    assert clock.warnings == 0
