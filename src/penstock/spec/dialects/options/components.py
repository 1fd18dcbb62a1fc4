"""The type and the options of a component in a file of another tool."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from penstock.core.text import did_you_mean
from penstock.spec.dialects.options.declarations import Options
from penstock.spec.dialects.options.reading import Findings, Reading
from penstock.spec.tree.nodes import MappingNode, Node, ScalarNode

ReadComponent = Callable[
    [Node | None, str, Mapping[str, Options], Findings, Node], tuple[str, Reading] | None
]
"""A function from a node, a kind, the known types, findings and the node above; see below."""


def component_reader(unsupported: Mapping[str, str]) -> ReadComponent:
    """Returns a function that returns the type and the options of a component, None after an error.

    `unsupported` are the types that Penstock does not have, each with the reason.
    """

    def read_component(
        node: Node | None, kind: str, known: Mapping[str, Options], findings: Findings, above: Node
    ) -> tuple[str, Reading] | None:
        where = above.location if node is None else node.location
        type_ = node.get("type") if isinstance(node, MappingNode) else None
        if not isinstance(node, MappingNode) or not isinstance(type_, ScalarNode) or (
            type_.value is None
        ):  # fmt: skip
            findings.error(
                f"expected the type of the {kind}", where, code="missing-option",
                hint=f"add type: with one of {', '.join(known)}",
            )  # fmt: skip
            return None
        name = type_.written
        if name in known:
            return name, Reading(node, f"{kind} {name}", known[name], findings)
        if name in unsupported:
            findings.error(
                f'the {kind} "{name}" is not supported: {unsupported[name]}', type_.location,
                code="unsupported-option",
            )  # fmt: skip
            return None
        findings.error(
            f'there is no {kind} "{name}"', type_.location, code="unknown-type",
            hint=did_you_mean(name, list(known)) or f"use one of {', '.join(known)}",
        )  # fmt: skip
        return None

    return read_component
