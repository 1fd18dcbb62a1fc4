"""Rules of dynamic tables: how they are filled, and which rows are checked. Each yields errors."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.core.errors import PlanError
from penstock.plan.graph import upstream
from penstock.plan.model import Plan
from penstock.plan.node import Node
from penstock.plan.node_errors import node_error


def fills_keep_no_state(plan: Plan) -> Iterator[PlanError]:
    """Checks that each row of an input decides by itself which value it adds or removes."""
    for node in plan.of("transform"):
        if node.dynamic_table is None:
            continue
        changing = [plan.nodes[name] for name in node.inputs if plan.nodes[name].operation]
        if changing and (node.operation is None or not _is_keyed_by_value(node)):
            problem = (
                f'is filled by changes (column "{changing[0].operation}"), and the values are not '
                "their primary key"
            )
            hint = (
                "Select the primary key of the changes, or remove the operations with the "
                "transform drop: values are then only added."
            )
            yield node_error(node, problem, "lost-key", hint)
        elif node.updating or node.stateful or node.batch_scoped:
            problem = "is filled by a query with state"
            hint = "Remove DISTINCT, GROUP BY and joins of streams: a table has each value once."
            yield node_error(node, problem, "state-of-table", hint)


def _is_keyed_by_value(node: Node) -> bool:
    return node.primary_key == (node.component.config.column,)


def checks_are_in_step(plan: Plan) -> Iterator[PlanError]:
    """Checks that a table is filled in the batches whose rows are checked."""
    retracting = {*_retracting(plan)}
    for node in plan.nodes.values():
        if node.name in retracting:
            continue
        for table in node.checked_tables:
            fill, queries = plan.fill_of(table), plan.queries_of(node)
            if fill is None or all(
                fill.name in query.sinks and node.name in query.batch_nodes for query in queries
            ):
                continue
            problem = f'checks the dynamic table "{table}", which another query fills'
            if any(node.name in query.stream_nodes for query in queries):
                problem += ": the rows are checked before the state of their query"
            hint = (
                "Check rows of the source that fills the table, after no state. Or check a second "
                "dynamic table, without sql, in the same storage: it is not in step."
            )
            yield node_error(node, problem, "different-batches", hint)


def checks_meet_the_same_values(plan: Plan) -> Iterator[PlanError]:
    """Checks that no updating query retracts rows by a table that has other values by then."""
    for name in _retracting(plan):
        node = plan.nodes[name]
        problem = (
            f'checks the dynamic table "{node.checked_tables[0]}" in an updating query, whose '
            "changes must meet the values that their rows met"
        )
        hint = (
            "Check the rows in a query after the updating one, or remove the operations of its "
            "input with the transform drop."
        )
        yield node_error(node, problem, "lookup-of-changes", hint)


def _retracting(plan: Plan) -> Iterator[str]:
    """Yields the nodes that check changes of which an updating query retracts rows."""
    updating = [node.name for node in plan.of("transform") if node.updating]
    members = {*updating, *upstream(updating, plan.nodes)}
    for node in plan.of("transform"):
        changing = any(plan.nodes[name].operation is not None for name in node.inputs)
        if node.checked_tables and (node.updating or (changing and node.name in members)):
            yield node.name
