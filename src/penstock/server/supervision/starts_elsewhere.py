"""Starts by a server of another machine, which had the store before.

The run may still be there, and this machine cannot see its process. If both machines have the same
state directory, its lock and its history are the truth. The lease of a state in an object store
allows one run. In other cases nothing starts here until a user confirms the end of the run.
"""

from __future__ import annotations

from penstock.runtime.health import Reason
from penstock.runtime.state.status import Status
from penstock.server.store.pipelines import Start


def is_found(start: Start, status: Status) -> bool:
    """Returns whether the state directory of this machine has a run, or the end of that start."""
    return status.owner is not None or any(run.id == start.run for run in status.runs)


def reason_of(start: Start) -> Reason:
    """Returns the reason for which a pipeline is not started on this machine."""
    return Reason(
        "runs-elsewhere",
        f"the server on {start.host} has started run {start.run}, which may still be there: "
        "this machine does not have its state",
        f"Stop the run on {start.host}, then confirm its end by a start of the pipeline here.",
    )
