"""Health of a pipeline: one state with its reason, for the command line, the API and alerts."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, get_args

from penstock.observe.snapshot import ExecutionSnapshot, Snapshot
from penstock.runtime.state.status import FinishedRun, Status

HealthState = Literal[
    "complete", "stopped", "idle", "running", "starting", "stopping", "slow", "retrying",
    "unknown", "failed", "crash-looping",
]  # fmt: skip
HEALTH_STATES: tuple[HealthState, ...] = get_args(HealthState)
"""The states, least severe first. The health of a pipeline is that of its worst part."""

IDLE_SECONDS = 60.0
"""The time without rows after which a pipeline is idle."""
SLOW_SECONDS = 60.0
"""The age of a batch under way at which its query is slow."""
SILENT_SECONDS = 15.0
"""The time without a status, which a run writes each second, after which its health is unknown."""


@dataclass(frozen=True)
class Reason:
    """The reason of a health. `node` is the part that is concerned: a node, query or receiver."""

    code: str
    message: str
    hint: str | None = None
    node: str | None = None


@dataclass(frozen=True)
class Health:
    """The health of a pipeline. `since` is ISO 8601 in UTC; None if it is not known.

    `next_attempt` is the time of the next retry, as `since`.
    """

    state: HealthState
    since: str | None = None
    reason: Reason | None = None
    next_attempt: str | None = None

    @classmethod
    def from_json(cls, facts: Mapping[str, Any]) -> Health:
        """Returns the health whose fields are `facts`, as `dataclasses.asdict` returns them."""
        reason = facts["reason"]
        return cls(**{**facts, "reason": Reason(**reason) if reason else None})

    @property
    def severity(self) -> int:
        """The position of the state in `HEALTH_STATES`: higher is worse."""
        return HEALTH_STATES.index(self.state)


def health_of(status: Status) -> Health:
    """Returns the health of a pipeline from its status alone, without the wishes of a server."""
    if status.owner is None:
        return _without_run(status)
    since = status.owner.since
    if status.numbers is not None and status.age > SILENT_SECONDS:
        silence = f"the run has written no status for {status.age:.0f} s"
        hint = f"Inspect {status.owner}."
        return Health("unknown", _time(time.time() - status.age), Reason("silent", silence, hint))
    if status.stopping:
        return Health("stopping", since)
    if status.numbers is None or status.starting:
        return _worst(Health("starting", since), status.numbers)
    return _worst(_flow(status.numbers, since), status.numbers)


def _without_run(status: Status) -> Health:
    last = status.runs[0] if status.runs else None
    if status.complete:
        return Health("complete", last.ended if last else None)
    if last is None:
        never = Reason("never-run", "the pipeline has never run", "Start the pipeline.")
        return Health("stopped", None, never)
    if last.ending in ("failed", "killed"):
        return Health("failed", last.ended, _end_of(last))
    return Health("stopped", last.ended)


def _end_of(run: FinishedRun) -> Reason:
    """Returns the reason of a run that failed: its first error."""
    for part, errors in run.errors.items():
        for error in errors:
            node = None if part == "run" else part
            return Reason(error["code"], error["message"], error.get("hint"), node)
    if run.ending == "killed":
        return Reason("killed", "the process of the run was killed", "Start the pipeline again.")
    return Reason("failed", "the run failed")


def _worst(health: Health, numbers: Snapshot | None) -> Health:
    """Returns the worst health among that of the pipeline and those of its parts."""
    parts = [] if numbers is None else list(_parts(numbers))
    return max([health, *parts], key=lambda each: each.severity)


def _parts(numbers: Snapshot) -> Iterator[Health]:
    parts: Mapping[str, Any] = {**numbers["queries"], **numbers["receivers"]}
    for name, execution in parts.items():
        found = _part(name, execution)
        if found is not None:
            yield found


def _part(name: str, execution: ExecutionSnapshot) -> Health | None:
    """Returns the health of a query or receiver that is not as it should be."""
    state, since = execution["state"], _time(execution["since"])
    if state in ("failed", "retrying"):
        code, message = execution["code"] or state, execution["error"] or state
        reason = Reason(code, message, node=execution.get("sink") or name)
        if state == "failed":
            return Health("failed", since, reason)
        return Health("retrying", since, reason, _time(execution["next_attempt"]))
    began = execution.get("batch_since")
    if began is not None and time.time() - began > SLOW_SECONDS:
        batch = f"batch {execution['batch']} has been under way for {time.time() - began:.0f} s"
        return Health("slow", _time(began), Reason("slow-batch", batch, node=name))
    return None


def _flow(numbers: Snapshot, since: str | None) -> Health:
    """Returns whether rows arrive: running or idle."""
    times = [node["last_batch"] for node in numbers["nodes"].values() if node.get("last_batch")]
    last = max((each for each in times if each is not None), default=None)
    began = time.time() - numbers["seconds"]
    if time.time() - (last or began) <= IDLE_SECONDS:
        return Health("running", since)
    return Health("idle", _time(last or began))


def _time(seconds: float | None) -> str | None:
    if seconds is None:
        return None
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
