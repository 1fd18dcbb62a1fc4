"""The components of a stream: their types, and the refusal of others by name."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.core.text import did_you_mean
from penstock.spec.dialects.options.declarations import Options
from penstock.spec.dialects.options.reading import Findings, Reading
from penstock.spec.tree.nodes import MappingNode, Node, ScalarNode

ENVELOPE = ("type!", "name = the table of a join", "codec:any = `decode` or `encode`")
"""The options of every input and output."""
_VECTORS = "Penstock has no components of models and vector stores"
REFUSED: Mapping[str, str] = dict.fromkeys(
    ("milvus", "qdrant", "pgvector", "embedding", "llm", "vector_search", "milvus_search",
     "pgvector_search"),
    _VECTORS,
)  # fmt: skip
"""Components of ArkFlow that Penstock does not have, each with the reason."""


def read_component(
    node: Node | None, kind: str, known: Mapping[str, Options], findings: Findings, above: Node
) -> tuple[str, Reading] | None:
    """Returns the type and the options of a component; None after an error."""
    if not isinstance(node, MappingNode):
        where = above.location if node is None else node.location
        findings.error(
            f"expected the {kind} of a stream, found {'nothing' if node is None else 'no map'}",
            where, code="missing-option", hint=f"add {kind}: with a type",
        )  # fmt: skip
        return None
    type_node = node.get("type")
    if not isinstance(type_node, ScalarNode) or type_node.value is None:
        findings.error(
            f"expected the type of the {kind}", node.location, code="missing-option",
            hint=f"add one of {', '.join(known)}",
        )  # fmt: skip
        return None
    type_ = type_node.written
    if type_ in REFUSED and type_ not in known:
        findings.error(
            f'the {kind} "{type_}" of ArkFlow is not supported: {REFUSED[type_]}',
            type_node.location, code="unsupported-option",
        )  # fmt: skip
        return None
    if type_ not in known:
        findings.error(
            f'there is no {kind} "{type_}"', type_node.location, code="unknown-type",
            hint=did_you_mean(type_, list(known)) or f"use one of {', '.join(known)}",
        )  # fmt: skip
        return None
    return type_, Reading(node, f"{kind} {type_}", known[type_], findings)
