"""Rules of sources whose truncations empty the targets (`on_truncate: apply`).

A truncation has no rows. So it reaches a sink only through transforms that keep no row of an
earlier batch, and the sink must have the rows of this source alone.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from penstock.core.errors import PlanError
from penstock.plan.graph import stream_sources, upstream
from penstock.plan.model import Plan
from penstock.plan.node import Node
from penstock.plan.node_errors import node_error
from penstock.sdk import Capability, Component
from penstock.sdk.columns.names import fold
from penstock.sdk.database import TableName, TableSink
from penstock.sdk.database.config import ServerConfig
from penstock.sdk.phases import receiving_source
from penstock.sql.keyed_rows import KeyedRows
from penstock.transforms.last_rows import TYPE as LAST_ROWS

_CODE = "unsupported-truncation"
_TABLES = ("table", "aggregate_table")
"""The options that name a table that a sink writes."""


def truncations_empty_targets(plan: Plan) -> Iterator[PlanError]:
    """Checks that a truncation of a source can empty all its targets."""
    for source in plan.of("source"):
        if not source.source.truncates or source.name not in plan.streams:
            continue
        stops: set[str] = set()
        for node in plan.nodes.values():
            above = upstream([node.name], plan.nodes)
            if source.name not in above or above & stops:
                continue
            problem = _problem(node, source, plan)
            if problem is not None:
                stops.add(node.name)
                yield _error(_named(node, plan), problem, source)


def _error(node: Node, problem: str, source: Node) -> PlanError:
    problem = f"{problem}, and {source.label} has on_truncate: apply"
    hint = (
        f'Set on_truncate: fail or ignore on source "{source.written_name}", or write its rows by '
        "stateless transforms to a table that no other sink writes, with mode: upsert, the "
        "operation column and the primary key of the source."
    )
    return node_error(node, problem, _CODE, hint)


def _named(node: Node, plan: Plan) -> Node:
    """Returns a node that the user's file names: the node itself, or the first one downstream."""
    if node.is_named:
        return node
    below = (each for each in plan.nodes.values() if node.name in upstream([each.name], plan.nodes))
    return next((each for each in below if each.is_named), node)


def _problem(node: Node, source: Node, plan: Plan) -> str | None:
    """Returns why a truncation of a source cannot pass a node downstream, or None."""
    if node.kind == "sink":
        return _problem_of_sink(node, source, plan)
    function = node.batch_function
    if node.dynamic_table is not None:
        return "keeps values of earlier rows"
    if node.type == LAST_ROWS and not node.is_named:
        return "has another primary key than its rows"
    if node.stateful or node.updating or (function is not None and function.carries_rows):
        return "keeps earlier rows in its state"
    if stream_sources(node.name, plan.nodes, plan.streams) != [source.name]:
        return "merges rows of several streams"
    return "computes the operations of its rows" if _computes_operations(node, plan) else None


def _computes_operations(node: Node, plan: Plan) -> bool:
    """Returns whether a transform is known to have another operation column than its input.

    It may keep rows that are deleted, as a history. Of a UNION and of a function over batches
    this is not known.
    """
    if node.relation is None or not node.computes_operations or node.operation is None:
        return False
    if any("union" in sql.text.lower() for sql in node.sql_texts):
        return False
    rows = {name: _operations(plan.nodes[name], plan) for name in node.inputs}
    carried = node.relation.lineage.keyed_rows(rows).origin or ()
    return [*map(fold, carried)] != [fold(node.operation)]


def _operations(node: Node, plan: Plan) -> KeyedRows:
    """Returns the rows of an input, with the operation column in place of the primary key."""
    key = () if node.operation is None else (node.operation,)
    return KeyedRows(key=key, origin=key, is_stream=node.name in plan.streams)


def _problem_of_sink(node: Node, source: Node, plan: Plan) -> str | None:
    if node.sink.mode != "upsert" or node.operation is None:
        return "keeps rows that are deleted"
    if not node.can(Capability.TRUNCATE):
        return "cannot remove all rows of its target at once"
    others = [source, *(each for each in plan.of("sink") if each is not node)]
    shared = next((each for each in others if _share_table(each, node)), None)
    return f'has the table of {shared.kind} "{shared.written_name}"' if shared else None


def _share_table(first: Node, second: Node) -> bool:
    """Returns whether two nodes may have the same table, by their options."""
    parts = [receiving_source(node.component) or node.component for node in (first, second)]
    place, other_place = map(_place, parts)
    if place is None or place != other_place:
        return False
    folds = all(part.dialect.folds_names for part in parts if isinstance(part, TableSink))
    # A name without a schema may be in any schema.
    return any(
        all(one == other for one, other in zip(names, others, strict=False))
        for names in _tables(parts[0], folds=folds)
        for others in _tables(parts[1], folds=folds)
    )


def _place(component: Component[Any]) -> Any:
    """Returns the database of a source or a sink, or None."""
    config = component.config
    if isinstance(config, ServerConfig):
        return fold(config.host), config.port, config.database
    options = config.model_dump(include={"url", "path"})
    path = options.get("path")
    return options.get("url") if path is None else os.path.realpath(path)


def _tables(component: Component[Any], *, folds: bool) -> list[list[str]]:
    """Returns the names of the tables of a component, each with its qualifiers after it."""
    options = component.config.model_dump(include=set(_TABLES))
    names = [[*reversed(TableName.parse(table).parts)] for table in options.values() if table]
    return [[*map(fold, name)] for name in names] if folds else names
