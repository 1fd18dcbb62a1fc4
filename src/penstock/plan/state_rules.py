"""Rules of a state in an object store, which is copied from the disk of the driver."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.core.errors import PlanError
from penstock.core.location import Location
from penstock.plan.executor_state import shared_state
from penstock.plan.model import Plan
from penstock.plan.node_errors import node_error
from penstock.sdk.phases import receiving_source
from penstock.spec.runtime_models import Runtime

CODE = "object-store-state"


def executors_store_nothing(plan: Plan) -> bool:
    """Returns whether a state is in an object store, and the tasks run on a cluster."""
    return plan.location.url is not None and not is_local(plan.spec.runtime)


def is_local(runtime: Runtime) -> bool:
    """Returns whether the master is one of this machine."""
    return runtime.master.partition("[")[0] == "local"


def executors_write_no_state(plan: Plan) -> Iterator[PlanError]:
    """Checks that executors of a cluster write no state that is in an object store."""
    if not executors_store_nothing(plan):
        return
    master = plan.spec.runtime.master
    written = [
        f'"{state.node.name}"'
        for state in shared_state(plan)
        if receiving_source(state.node.component) is None
    ]
    if written:
        alternative = (
            "deploy without executors: penstock deploy k8s --executors 0"
            if master.startswith("k8s://")
            else "runtime.master to local[*]"
        )
        yield PlanError(
            f"the state of {', '.join(written)} is in files of the executors of {master}, and only "
            "files of the driver are copied to an object store",
            code=CODE, where=_where(plan),
            hint="Set runtime.state to a path that all machines share, such as NFS, or "
            f"{alternative}.",
        )  # fmt: skip


def messages_outlive_the_disk(plan: Plan) -> Iterator[PlanError]:
    """Checks that no source acknowledges messages that are only on the disk of this machine."""
    if plan.location.url is None:
        return
    for node in plan.of("source"):
        if receiving_source(node.source) is not None:
            problem = (
                "acknowledges messages when they are in its journal, on the disk of this machine, "
                "so that the state cannot be in an object store"
            )
            hint = "Set runtime.state to a directory, such as a volume that outlives the machine."
            yield node_error(node, problem, CODE, hint)


def _where(plan: Plan) -> Location | None:
    return plan.pipeline.source_map.value(("runtime", "state"))
