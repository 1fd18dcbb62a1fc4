"""Primary keys that systems declare: read before the first run, then kept."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.core.errors import PenstockError
from penstock.plan.make import with_primary_keys
from penstock.plan.model import Plan
from penstock.plan.node import Node
from penstock.runtime.state.directory import StateDirectory
from penstock.sdk.columns.names import find_name

FILE = "primary_keys.json"


def resolve_primary_keys(plan: Plan, state: StateDirectory | None, *, pin: bool = False) -> Plan:
    """Returns the plan with the primary keys that the systems of its sources declare.

    A key that is not in `state` is read from the system; with `pin` it is stored there, if the plan
    is valid with it. Raises UserError, or ValidationErrors if the plan is invalid with these keys,
    and Transient or Permanent if a system cannot be reached.
    """
    sources = [node for node in plan.of("source") if node.unknown_key]
    if not sources:
        return plan
    stored = (state.read(FILE) if state is not None else None) or {}
    keys = {node.name: _key(plan, node, stored) for node in sources}
    resolved = with_primary_keys(plan, keys)
    if state is not None and pin and any(name not in stored for name in keys):
        state.write(FILE, {**stored, **keys})
    return resolved


def apply_stored_keys(plan: Plan, state: StateDirectory) -> Plan | None:
    """Returns the plan with the stored primary keys; None if one of them is not stored."""
    unknown = [node.name for node in plan.of("source") if node.unknown_key]
    stored = (state.read(FILE) if unknown else None) or {}
    if any(name not in stored for name in unknown):
        return None
    return with_primary_keys(plan, {name: tuple(stored[name]) for name in unknown})


def without_unknown_keys(plan: Plan) -> Plan:
    """Returns the plan of sources whose undeclared keys have no columns. Reads no system.

    Raises UserError, or ValidationErrors if the plan needs a key.
    """
    unknown = [node.name for node in plan.of("source") if node.unknown_key]
    return with_primary_keys(plan, dict.fromkeys(unknown, ())) if unknown else plan


def _key(plan: Plan, node: Node, stored: Mapping[str, list[str]]) -> tuple[str, ...]:
    if node.name in stored:
        return tuple(stored[node.name])
    try:
        key = node.source.infer_primary_key()
    except PenstockError as error:
        error.where = plan.locate(error, node)
        raise
    columns = node.source.columns
    if columns is None:
        return key
    # A pipeline that declares its columns spells them as it likes, and may leave out the key.
    found = [find_name(name, columns.names) for name in key]
    return tuple(columns.names[index] for index in found) if min(found, default=0) >= 0 else ()
