"""Check of the state of a pipeline on a cluster, whose machines share a directory."""

from __future__ import annotations

from penstock.core.errors import PlanError
from penstock.plan.model import Plan
from penstock.plan.state_rules import CODE


def check_shared_state(plan: Plan) -> None:
    """Raises PlanError if the state is in an object store, which executors do not write."""
    if plan.location.url is not None:
        raise PlanError(
            f"expected a state in a directory that all machines share, found {plan.location.url}",
            code=CODE, where=plan.pipeline.source_map.value(("runtime", "state")),
            hint="Remove runtime.state and runtime.storage from the file, or run the pipeline with "
            "a local master in a container of penstock deploy image.",
        )  # fmt: skip
