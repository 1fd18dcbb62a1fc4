"""The health of a pipeline is that of its worst part, with its reason."""

from __future__ import annotations

import time
from typing import Any

import pytest

from penstock.core.errors import Transient
from penstock.observe.metrics import Metrics
from penstock.runtime.health import (
    HEALTH_STATES,
    IDLE_SECONDS,
    SILENT_SECONDS,
    SLOW_SECONDS,
    health_of,
)
from penstock.runtime.state.status import FinishedRun, Owner, Status

OWNER = Owner(17, "host", "2026-01-01T00:00:00Z")


def running(**changes: Any) -> Status:
    metrics = Metrics()
    metrics.all_started = True
    numbers: Any = metrics.snapshot()
    fields = {"age": 0.0, "stopping": False, "owner": OWNER, "runs": (), "complete": False}
    known = {name: changes.pop(name) for name in fields if name in changes}
    return Status(numbers={**numbers, **changes}, **{**fields, **known})


def execution(**facts: Any) -> dict[str, Any]:
    now = time.time()
    empty = {"state": "running", "since": now, "error": None, "code": None, "sink": None,
             "failures": 0, "next_attempt": None, "batch": None, "batch_since": None}  # fmt: skip
    return {**empty, **facts}


def ended(ending: str, **facts: Any) -> Status:
    run = FinishedRun("r", "2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z", ending, **facts)
    return Status(None, None, (run,), ending == "complete")


@pytest.mark.parametrize(
    ("status", "state", "code"),
    [
        (Status(None, None, (), False), "stopped", "never-run"),
        (ended("stopped"), "stopped", None),
        (ended("caught_up"), "stopped", None),
        (ended("complete"), "complete", None),
        (ended("killed"), "failed", "killed"),
        (ended("failed"), "failed", "failed"),
        (ended("failed", errors={"q": [{"code": "c", "message": "m"}]}), "failed", "c"),
        (Status(OWNER, None, (), False), "starting", None),
        (running(), "running", None),
        (running(started=False), "starting", None),
        (running(stopping=True), "stopping", None),
        (running(seconds=IDLE_SECONDS + 5), "idle", None),
        (running(age=SILENT_SECONDS + 1), "unknown", "silent"),
        (running(queries={"q": execution(state="failed", code="c", error="m")}), "failed", "c"),
        (
            running(receivers={"r": execution(state="retrying", code="c", error="m")}),
            "retrying",
            "c",
        ),
    ],
)
def test_health(status: Status, state: str, code: str | None) -> None:
    health = health_of(status)
    assert (health.state, health.reason and health.reason.code) == (state, code)


@pytest.mark.parametrize(("age", "state"), [(1, "running"), (SLOW_SECONDS + 40, "slow")])
def test_the_age_of_a_batch(age: float, state: str) -> None:
    status = running(queries={"q": execution(batch=4, batch_since=time.time() - age)})
    assert health_of(status).state == state


def test_the_worst_part_decides() -> None:
    queries = {
        "slow": execution(batch=4, batch_since=time.time() - 100),
        "failed": execution(state="failed", code="c", error="m", sink="out"),
        "retrying": execution(state="retrying", code="d", error="n"),
    }
    health = health_of(running(queries=queries))
    assert (health.state, health.reason and health.reason.node) == ("failed", "out")
    severities = [HEALTH_STATES.index(state) for state in ("running", "slow", "retrying", "failed")]  # type: ignore[arg-type]
    assert severities == sorted(severities)


def test_a_retry_has_its_next_attempt() -> None:
    metrics = Metrics()
    metrics.all_started = True
    from penstock.observe.execution import Execution

    metrics.queries["q"] = Execution(subscribed=True)
    metrics.queries["q"].retry(Transient("no connection", code="unavailable"), 30)
    health = health_of(Status(OWNER, metrics.snapshot(), (), False))
    assert health.state == "retrying"
    assert health.next_attempt is not None
    assert health.since is not None
    assert health.next_attempt > health.since
