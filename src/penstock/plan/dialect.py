"""Translation of the queries of a plan to Spark SQL, with the event times of their inputs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any

from penstock.core.errors import PenstockError
from penstock.plan.model import Node
from penstock.sdk import Relation as SparkRelation
from penstock.sql.dialect.relation import Output, Relation


def translate_queries(
    nodes: Mapping[str, Node], report: Callable[[Node, PenstockError], None]
) -> dict[str, Node]:
    """Returns the nodes with queries in Spark SQL. `nodes` are in topological order.

    Queries without a translation are reported, and left out with the nodes downstream.
    """
    translated: dict[str, Node] = {}
    relations: dict[str, Relation] = {}
    batches: dict[str, frozenset[str]] = {}
    sources = [node for node in nodes.values() if node.kind == "source" and not node.static]
    ends = all(node.source.is_bounded() for node in sources)
    for name, node in nodes.items():
        if any(input_ not in translated for input_ in node.inputs):
            continue
        inputs = {
            input_.lower(): relations[input_] for input_ in node.inputs if input_ in relations
        }
        origins = {origin for input_ in node.inputs for origin in batches[input_]}
        if node.relation is not None:
            try:
                node = replace(node, component=_bind(node.relation, inputs, origins))
            except PenstockError as error:
                report(node, error)
                continue
        translated[name] = node
        batches[name] = _batches(node, batches)
        if node.kind != "sink":
            relations[name] = _relation(node, inputs, ends)
    return translated


def _bind(
    relation: SparkRelation[Any],
    inputs: Mapping[str, Relation],
    origins: Collection[str],
) -> SparkRelation[Any]:
    """Returns a relation of its inputs. Raises OptionError.

    `origins` are the nodes whose batches the rows of the inputs come in.
    Windows of several streams are complete in different batches: OVER is not computed by window.
    """
    bound = relation.bind(inputs)
    if bound.batch_scoped and not relation.batch_scoped and len(origins) > 1:
        return relation.bind(inputs, by_window=False)
    return bound


def _batches(node: Node, batches: Mapping[str, frozenset[str]]) -> frozenset[str]:
    """Returns the nodes whose batches the rows of a node come in; none for a table."""
    if node.kind == "source":
        return frozenset() if node.static else frozenset([node.name])
    streaming = frozenset(name for name in node.inputs if batches[name])
    if node.relation is not None and streaming and node.relation.stateful(streaming):
        return frozenset([node.name])
    return frozenset().union(*(batches[name] for name in node.inputs))


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
