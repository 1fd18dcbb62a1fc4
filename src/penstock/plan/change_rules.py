"""Rules of changes: rows with operations, and results that change. Each rule yields errors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from penstock.core.errors import PlanError
from penstock.plan.graph import upstream
from penstock.plan.lookups import lookups_read_with_changes
from penstock.plan.model import Plan
from penstock.plan.node import Node
from penstock.plan.node_errors import node_error
from penstock.sdk import Capability
from penstock.sql.determinism import deterministic, samples_rows


def operations_fit_sinks(plan: Plan) -> Iterator[PlanError]:
    """Checks that a sink applies the operations of its rows."""
    for node in plan.of("sink"):
        if node.operation is not None and (error := _unsupported_changes(node)) is not None:
            yield error


def transforms_keep_operations(plan: Plan) -> Iterator[PlanError]:
    """Checks that a transform over changes has no state, and one operation column."""
    for node in plan.of("transform"):
        errors = (_unsupported_state(node, plan.nodes), _different_operations(node, plan.nodes))
        yield from (error for error in errors if error is not None)


def changes_are_repeatable(plan: Plan) -> Iterator[PlanError]:
    """Checks that rows of changes do not depend on chance or the current time."""
    for node in plan.of("transform"):
        if (error := _unrepeatable_changes(node, plan.nodes)) is not None:
            yield error


def changes_meet_the_same_rows(plan: Plan) -> Iterator[PlanError]:
    """Checks that an updating transform does not retract rows that it joined with a lookup."""
    updating = [node.name for node in plan.of("transform") if node.updating and node.is_named]
    above = upstream(updating, plan.nodes)
    for node, name in lookups_read_with_changes(plan):
        if node.name not in above and not node.stateful:
            problem = f'drops or repeats changes by their match in the lookup table "{name}"'
            hint = "Use LEFT JOIN, which keeps the changes of rows without a match."
        else:
            problem = f'joins changes with the lookup table "{name}", upstream of an updating query'
            hint = (
                f'Remove lookup from "{name}": as a stream of changes it is joined with the '
                "changes. A change of a row must meet the rows that the row met."
            )
        yield node_error(node, problem, "lookup-of-changes", hint)


def changes_have_no_order(plan: Plan) -> Iterator[PlanError]:
    """Checks that an updating transform does not sort its result, whose changes have no order."""
    for node in plan.of("transform"):
        if node.updating and node.state is not None and node.state.sorts_without_limit:
            problem = "sorts a result that is never final: its changes are written as they occur"
            hint = "Remove ORDER BY, add LIMIT, or sort each batch with scope: batch."
            yield node_error(node, problem, "not-streamable", hint)


def _unsupported_changes(sink: Node) -> PlanError | None:
    """Returns the error of a sink that cannot apply the operations of its rows, or None."""
    if sink.sink.accepts_operations:
        return None
    missing = [c for c in (Capability.UPSERT, Capability.DELETE) if not sink.can(c)]
    column = sink.operation
    if missing:
        problem = f"does not support {' and '.join(missing)}"
        options = sink.component.optional_capabilities.get(missing[0])
        hint = (
            (f"Set {options}, or write" if options else "Write")
            + " to a sink that supports upsert and delete, or set format: debezium_json, or "
            f'remove the column "{column}" with the transform drop to write all rows as inserts.'
        )
    elif sink.sink.mode != "upsert":
        problem = f"has mode: {sink.sink.mode}"
        hint = "Set mode: upsert, or set format: debezium_json to write a log of the changes."
    else:
        return None
    problem = f'{problem}, and its rows have operations (column "{column}")'
    return node_error(sink, problem, "unsupported-operation", hint)


def _unsupported_state(node: Node, nodes: Mapping[str, Node]) -> PlanError | None:
    """Returns the error of a stateful transform over changes, or None."""
    changing = [nodes[name] for name in node.inputs if nodes[name].operation is not None]
    if changing and node.updating:
        return _unknown_rows(node, changing)
    if not changing or not node.stateful:
        return None
    column = changing[0].operation
    problem = (
        f'keeps state, and the rows of "{changing[0].name}" are changes (column "{column}"): '
        "an update or a delete cannot be retracted from the state"
    )
    hint = (
        "Use type: sql, which retracts them, as with SELECT DISTINCT or GROUP BY, or "
        f'remove the column "{column}" with the transform drop to treat each change as a new row.'
    )
    return node_error(node, problem, "state-of-changes", hint)


def _unknown_rows(node: Node, changing: Sequence[Node]) -> PlanError | None:
    """Returns the error of changes that do not say which row they replace, or None."""
    keyless = next(
        (each for each in changing if not (each.updating or each.primary_key or each.unknown_key)),
        None,
    )
    if keyless is None:
        return None
    verb = "combines the" if node.stateful else "retracts"
    problem = (
        f'{verb} rows of "{keyless.name}", which are changes (column "{keyless.operation}") '
        "without a primary key"
    )
    hint = f"Set primary_key: [COLUMN, ...] on {keyless.label}, in SQL PRIMARY KEY (COLUMN, ...)."
    return node_error(node, problem, "missing-option", hint)


def _unrepeatable_changes(node: Node, nodes: Mapping[str, Node]) -> PlanError | None:
    """Returns the error of rows that cannot be retracted, by chance or the current time, or None.

    An updating transform computes a row again when it takes the row back.
    """
    relation = node.relation
    if relation is None:
        return None
    # A sample is an operator that no updating query supports.
    texts = [sql.text for sql in node.sql_texts if not samples_rows(sql.text)]
    if node.updating and not deterministic(*texts):
        problem = (
            "depends on chance or the current time, and its rows are retracted when they change"
        )
        hint = (
            "Compute the value in a transform upstream of the updating query, which keeps it as a "
            "column of its rows, or remove it."
        )
    elif any(nodes[name].operation for name in node.inputs) and relation.filters_by_chance:
        problem = "filters changes by chance: the rows of one key would pass and fail"
        hint = "Use a condition of the primary key, as in WHERE hash(id) % 10 = 0."
    else:
        return None
    return node_error(node, problem, "unrepeatable-changes", hint)


def _different_operations(node: Node, nodes: Mapping[str, Node]) -> PlanError | None:
    """Returns the error of a transform whose inputs have different operation columns, or None."""
    if node.kind != "transform":
        return None
    changing = {nodes[name].operation: name for name in node.inputs if nodes[name].operation}
    if len(changing) < 2:
        return None
    named = ", ".join(f'"{column}" of {name}' for column, name in sorted(changing.items()))
    problem = f"has inputs with different operation columns: {named}"
    hint = "Rename one of the columns with the transform rename."
    return node_error(node, problem, "different-operations", hint)
