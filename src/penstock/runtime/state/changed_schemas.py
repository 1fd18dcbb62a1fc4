"""Changes of the schemas of sources during a run: the columns after them, pinned once they fit."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.core.errors import Bug, StateError
from penstock.plan.model import Plan
from penstock.runtime.state.directory import StateDirectory
from penstock.runtime.state.schemas import (
    FILE,
    InferredSchema,
    added_operation,
    apply_pins,
    pin_entry,
)
from penstock.sdk import ReplayableSource


def apply_changes(plan: Plan, state: StateDirectory) -> list[InferredSchema]:
    """Sets the columns of sources to those after the changes of their schemas.

    The columns of the plan are the pinned ones. Returns the schemas that have changed, which
    `pin_changes` pins.
    """
    apply_pins(plan, state)
    changed = []
    for node in plan.of("source"):
        source = node.source
        if not isinstance(source, ReplayableSource) or node.static:
            continue
        columns = source.changed_columns()
        if columns is not None:
            source.columns = columns
            changed.append(InferredSchema(node.name, columns, added_operation(node)))
    if not changed:
        raise Bug("the columns of no source have changed")
    return changed


def pin_changes(changed: Sequence[InferredSchema], state: StateDirectory) -> None:
    """Pins the schemas that have changed."""
    pins = {schema.node: pin_entry(schema) for schema in changed}
    state.write(FILE, {**(state.read(FILE) or {}), **pins})


def changed_schema_error(
    plan: Plan, changed: Sequence[InferredSchema], error: StateError
) -> StateError:
    """Returns the error of a state that the changed schemas of sources do not fit."""
    names = ", ".join(f'"{schema.node}"' for schema in changed)
    return StateError(
        f"the columns of the source {names} have changed in a way that the state of the pipeline "
        "does not support",
        code="changed-schema",
        detail=error.detail or error.message,
        hint="Declare the columns of the source in schema to go on with the columns of before, or "
        "reset the state with --fresh. No row after the change was read.",
        where=plan.nodes[changed[0].node].where,
    )
