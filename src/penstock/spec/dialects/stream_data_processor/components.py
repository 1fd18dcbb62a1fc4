"""The components of a graph: their types, and the refusal of others by name."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.core.text import did_you_mean
from penstock.spec.dialects.options.declarations import Options
from penstock.spec.dialects.options.reading import Findings, Reading
from penstock.spec.tree.nodes import MappingNode, Node, ScalarNode

REFUSED: Mapping[str, str] = {
    "kapacitor": "the protocol of Kapacitor's user-defined functions is not supported",
    "record_batches": "the format arrow is for files; send JSON, CSV or Graphite in messages",
    "log": "run penstock inspect, or convert the file and add a transform log",
    "pipeline": "write its handlers in their order",
}
"""Components that Penstock does not have, each with the reason."""


def read_component(
    node: Node | None, kind: str, known: Mapping[str, Options], findings: Findings, above: Node
) -> tuple[str, Reading] | None:
    """Returns the type and the options of a component; None after an error."""
    where = above.location if node is None else node.location
    type_node = node.get("type") if isinstance(node, MappingNode) else None
    if not isinstance(node, MappingNode) or not isinstance(type_node, ScalarNode):
        findings.error(
            f"expected a {kind} with its type", where, code="missing-option",
            hint=f"add type: {', '.join(known)}",
        )  # fmt: skip
        return None
    name = type_node.written
    if name in REFUSED:
        findings.error(
            f'the {kind} "{name}" is not supported: {REFUSED[name]}', type_node.location,
            code="unsupported-option",
        )  # fmt: skip
        return None
    if name not in known:
        findings.error(
            f'there is no {kind} "{name}"', type_node.location, code="unknown-type",
            hint=did_you_mean(name, list(known)) or f"use one of {', '.join(known)}",
        )  # fmt: skip
        return None
    return name, Reading(node, f"{kind} {name}", known[name], findings)
