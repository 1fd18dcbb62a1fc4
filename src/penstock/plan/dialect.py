"""Translation of the queries of a plan to Spark SQL, with the event times of their inputs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any

from penstock.core.errors import PenstockError
from penstock.plan.node import Node
from penstock.sdk import DataFrameTransform
from penstock.sdk.transform import QueryTransform
from penstock.sql.dialect.relation import InputRelation, Output


def translate_queries(
    nodes: Mapping[str, Node], report: Callable[[Node, PenstockError], None]
) -> dict[str, Node]:
    """Returns the nodes with queries in Spark SQL and with the facts of their relations.

    `nodes` are in topological order.

    Queries without a translation are reported, and left out with the nodes downstream.
    """
    translated: dict[str, Node] = {}
    relations: dict[str, InputRelation] = {}
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
        if node.frame_transform is not None:
            try:
                node = _bind(node, node.frame_transform, inputs, origins)
            except PenstockError as error:
                report(node, error)
                continue
        translated[name] = node
        batches[name] = _batches(node, batches)
        if node.kind != "sink":
            relations[name] = _as_input(node, inputs, ends)
    return translated


def _bind(
    node: Node,
    transform: DataFrameTransform[Any],
    inputs: Mapping[str, InputRelation],
    origins: Collection[str],
) -> Node:
    """Returns a node of its inputs with the facts of its transform. Raises OptionError.

    `origins` are the nodes whose batches the rows of the inputs come in.
    Windows of several streams are complete in different batches: OVER is not computed by window.
    """
    if not isinstance(transform, QueryTransform):
        relation = transform.relation()
    else:
        query, transform = transform, transform.bind(inputs)
        relation = transform.relation()
        if relation.batch_scoped and len(origins) > 1:
            transform = query.bind(inputs, by_window=False)
            relation = transform.relation()
    streams = any(each.is_stream for each in inputs.values())
    stateful = streams and relation.state is not None
    return replace(node, component=transform, relation=relation, read=inputs, stateful=stateful)


def _batches(node: Node, batches: Mapping[str, frozenset[str]]) -> frozenset[str]:
    """Returns the nodes whose batches the rows of a node come in; none for a table."""
    if node.kind == "source":
        return frozenset() if node.static else frozenset([node.name])
    if node.stateful:
        return frozenset([node.name])
    return frozenset().union(*(batches[name] for name in node.inputs))


def _as_input(node: Node, inputs: Mapping[str, InputRelation], ends: bool) -> InputRelation:
    """Returns a node as the queries downstream read it."""
    text = output = None
    if node.relation is not None:
        output, text = node.relation.output, node.relation.text
    if output is None:
        outputs = [each.output for each in inputs.values()]
        output = outputs[0] if len(outputs) == 1 else Output()
    if node.watermark is not None:
        output, text = Output(node.watermark.column), None
    has_watermark = node.watermark is not None or any(
        relation.has_watermark for relation in inputs.values()
    )
    is_stream = any(each.is_stream for each in inputs.values())
    return InputRelation(
        node.name,
        output,
        None if node.batch_scoped else text,
        inputs,
        has_watermark,
        ends,
        is_stream=not node.static if node.kind == "source" else is_stream,
    )
