"""Sinks whose primary key is not that of the changes they write.

A row that changes its key of the sink must not delete the row that another one has put there. The
last row of each key of the sink is computed by a transform, which keeps all rows as its state.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

from penstock.core.errors import PlanError
from penstock.plan.graph import upstream
from penstock.plan.node import Node
from penstock.plan.operation_columns import inherit, written_key
from penstock.plan.updating import mark_updating
from penstock.spec.node_models import TransformSpec
from penstock.transforms.last_rows import TYPE, LastRows, LastRowsConfig


def key_rows_of_sinks(
    nodes: Mapping[str, Node], streams: frozenset[str], *, spark_keeps_groups: bool
) -> tuple[dict[str, Node], list[PlanError]]:
    """Returns the nodes, marked, with a transform above each sink with a key of its own.

    `spark_keeps_groups` is an argument of `mark_updating`.
    The errors are those of sinks whose changes have lost their key. These sinks are left out.
    """
    marked = mark_updating(nodes, streams, spark_keeps_groups=spark_keeps_groups)
    inherited = inherit(marked, streams)
    sinks = {name for name, node in inherited.items() if _has_own_key(node, inherited)}
    if not sinks:
        return marked, []
    keyed: dict[str, Node] = {}
    for name, node in nodes.items():
        if name in sinks:
            rows = _last_rows(node, inherited, nodes.keys() | keyed.keys())
            keyed[rows.name] = rows
            node = replace(node, inputs=(rows.name,))
        keyed[name] = node
    streams |= keyed.keys() - nodes.keys()
    marked = mark_updating(keyed, streams, spark_keeps_groups=spark_keeps_groups)
    inherited = inherit(marked, streams)
    errors = list(_lost_keys(inherited, keyed.keys() - nodes.keys()))
    places = [error.where for error in errors]
    return {name: node for name, node in marked.items() if node.where not in places}, errors


def _has_own_key(sink: Node, nodes: Mapping[str, Node]) -> bool:
    """Returns whether a sink writes changes by a key that does not contain the key of the changes.

    Changes whose key is not known have the key of the sink.
    """
    key = {*written_key(sink)} if sink.kind == "sink" else set()
    if sink.operation is None or not key:
        return False
    rows = nodes[sink.inputs[0]]
    if rows.unknown_key:
        return False
    if rows.primary_key or rows.updating:
        return not rows.primary_key or not {*rows.primary_key} <= key
    origin = rows.origin_key
    if origin is None or not rows.complete_changes:
        # An update deletes no other row of its key.
        return origin is not None and {*origin} != key
    return not origin or not {*origin} <= key


def _last_rows(sink: Node, nodes: Mapping[str, Node], names: Collection[str]) -> Node:
    """Returns the transform above a sink."""
    (input_,) = sink.inputs
    name = _free_name(f"{sink.written_name}_rows", names)
    config = LastRowsConfig(
        key=list(sink.spec.primary_key), input_key=list(nodes[input_].primary_key)
    )
    context = replace(sink.component.context, node=name, state=None)
    spec = TransformSpec.model_validate({"type": TYPE, "from": input_})
    component = LastRows(config, context)
    return Node(
        name,
        "transform",
        component,
        spec,
        (input_,),
        sink.where,
        relation=component.relation(),
        stateful=True,
    )


def _free_name(name: str, names: Collection[str]) -> str:
    known = {each.lower() for each in names}
    number, free = 1, name
    while free.lower() in known:
        number += 1
        free = f"{name}_{number}"
    return free


def _lost_keys(nodes: Mapping[str, Node], added: Collection[str]) -> Iterator[PlanError]:
    """Yields the errors of sinks whose changes have no key above the transform."""
    for sink in nodes.values():
        if sink.kind != "sink" or sink.inputs[0] not in added:
            continue
        rows = nodes[nodes[sink.inputs[0]].inputs[0]]
        if rows.updating or rows.primary_key:
            continue
        above = upstream([rows.name], nodes)
        keyed = [nodes[name] for name in nodes if name in above and nodes[name].primary_key]
        key = ", ".join(keyed[-1].primary_key) if keyed else ""
        yield PlanError(
            f"{sink.label} writes changes by the key {', '.join(sink.spec.primary_key)}, and "
            f'"{rows.name}" has lost their primary key {key}: the order of the changes of one key '
            "of the sink is not known",
            code="lost-key",
            hint=f"Set primary_key: [COLUMN, ...] on {rows.label}, the columns that identify a row "
            f"of its output, or return {key} unchanged.",
            where=sink.where,
        )
