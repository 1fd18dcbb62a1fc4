"""Check of the state of a pipeline on a cluster, whose machines may share a directory."""

from __future__ import annotations

from penstock.core.errors import PlanError
from penstock.plan.executor_state import shared_state
from penstock.plan.model import Plan
from penstock.plan.state_rules import CODE


def check_shared_state(plan: Plan) -> None:
    """Raises PlanError if executors write a state that is in an object store."""
    found = shared_state(plan)
    if plan.location.url is not None and found:
        labels = ", ".join(state.node.label for state in found)
        raise PlanError(
            f"expected a state in a directory that all machines share, for {labels}, found "
            f"{plan.location.url}",
            code=CODE, where=plan.pipeline.source_map.value(("runtime", "state")),
            hint="Remove runtime.state and runtime.storage from the file, or run the pipeline with "
            "a local master in a container of penstock deploy image.",
        )  # fmt: skip
