"""Translation of the queries of a plan to Spark SQL, with the event times of their inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from penstock.core.errors import PenstockError
from penstock.plan.model import Node
from penstock.sql.dialect.relation import Output, Relation


def translate_queries(
    nodes: Mapping[str, Node], report: Callable[[Node, PenstockError], None]
) -> dict[str, Node]:
    """Returns the nodes with queries in Spark SQL. `nodes` are in topological order.

    Queries without a translation are reported, and left out with the nodes downstream.
    """
    translated: dict[str, Node] = {}
    relations: dict[str, Relation] = {}
    sources = [node for node in nodes.values() if node.kind == "source" and not node.static]
    ends = all(node.source.is_bounded() for node in sources)
    for name, node in nodes.items():
        if any(input_ not in translated for input_ in node.inputs):
            continue
        inputs = {
            input_.lower(): relations[input_] for input_ in node.inputs if input_ in relations
        }
        if node.relation is not None:
            try:
                node = replace(node, component=node.relation.bind(inputs))
            except PenstockError as error:
                report(node, error)
                continue
        translated[name] = node
        if node.kind != "sink":
            relations[name] = _relation(node, inputs, ends)
    return translated


def _relation(node: Node, inputs: Mapping[str, Relation], ends: bool) -> Relation:
    """Returns a node as the queries downstream read it."""
    text = None
    if node.relation is not None:
        output, text = node.relation.times(inputs), node.relation.view()
    elif len(inputs) == 1:
        (output,) = (relation.output for relation in inputs.values())
    else:
        output = Output()
    if node.watermark is not None:
        output, text = Output(node.watermark.column), None
    has_watermark = node.watermark is not None or any(
        relation.has_watermark for relation in inputs.values()
    )
    is_stateless = node.relation is None or not node.relation.batch_scoped
    return Relation(node.name, output, text if is_stateless else None, inputs, has_watermark, ends)
