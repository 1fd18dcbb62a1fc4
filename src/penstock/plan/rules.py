"""Rules of a whole plan. Each rule yields errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa

from penstock.core.errors import OptionError, PlanError
from penstock.core.text import did_you_mean
from penstock.plan.functions import used_functions
from penstock.plan.lookups import lookups_read_with_changes
from penstock.plan.model import Node, Plan
from penstock.plan.operation_columns import (
    different_operations,
    unrepeatable_changes,
    unsupported_changes,
    unsupported_state,
)
from penstock.plan.queries import upstream
from penstock.plan.reached_watermarks import windows_have_watermarks
from penstock.plan.updating import find_hidden_windows
from penstock.sdk import Capability
from penstock.sdk.columns.type_names import sql_name
from penstock.spec.node_models import SourceSpec
from penstock.sql.determinism import deterministic

Rule = Callable[[Plan], Iterator[PlanError]]


def static_sources_end(plan: Plan) -> Iterator[PlanError]:
    """Checks that the source of a static table ends."""
    for node in plan.of("source"):
        if node.static and not node.lookup and not node.source.is_bounded():
            hint = "Remove static, or the option that makes the source unbounded."
            yield _error(node, "has no end, so it cannot be static", "static-unbounded", hint)


def sinks_have_streams(plan: Plan) -> Iterator[PlanError]:
    """Checks that every sink has a stream upstream."""
    streams = plan.streams
    for node in plan.of("sink"):
        if node.inputs[0] not in streams:
            problem = "has no stream: all sources upstream are static"
            hint = "Remove static: true from a source."
            yield _error(node, problem, "no-stream", hint)


def watermark_columns_exist(plan: Plan) -> Iterator[PlanError]:
    """Checks that the column of a watermark exists and is of type TIMESTAMP."""
    option = ("watermark", "column")
    for node in plan.of("source"):
        watermark = node.watermark
        columns = node.source.columns
        if watermark is None or columns is None:
            continue
        name = watermark.column
        known = [*columns.names, *node.source.metadata_columns]
        if watermark.expression is not None:
            if name.lower() in map(str.lower, known):
                problem = f'computes the event time "{name}", which is a column of the source'
                hint = "Choose another column name."
                yield _option_error(plan, node, problem, "duplicate-column", hint, *option)
            continue
        problem = f'has its watermark on "{name}", which is'
        if name not in known:
            similar = did_you_mean(name, known)
            problem = f"{problem} not a column"
            yield _option_error(plan, node, problem, "unknown-column", similar, *option)
        elif name in columns.names and not pa.types.is_timestamp(columns.field(name).type):
            problem = f"{problem} {sql_name(columns.field(name).type)}, not TIMESTAMP"
            hint = "Declare the column as TIMESTAMP."
            yield _option_error(plan, node, problem, "wrong-type", hint, *option)


def bounds_are_deterministic(plan: Plan) -> Iterator[PlanError]:
    """Checks that the bound of a watermark calls functions of Spark and depends on the row only."""
    for node in (*plan.of("source"), *plan.of("transform")):
        bound = node.watermark.bound if node.watermark is not None else None
        if bound is None:
            continue
        own = used_functions(plan.functions, [bound])
        if own:
            problem = f"has a watermark whose bound calls {next(iter(own))}, a function of its own"
            hint = (
                "Call the function in a transform upstream, and bound the watermark by its column."
            )
            yield _error(node, problem, "watermark-bound", hint)
        elif not deterministic(bound):
            problem = "has a watermark whose bound depends on chance or on the current time"
            hint = "Write an expression of the columns, so that a repeated batch has the same rows."
            yield _error(node, problem, "watermark-bound", hint)


def late_rows_need_a_watermark(plan: Plan) -> Iterator[PlanError]:
    """Checks that a node whose late rows become dead letters has a watermark."""
    for node in (*plan.of("source"), *plan.of("transform")):
        if node.late == "dead_letter" and node.watermark is None:
            problem = "has late: dead_letter and no watermark, so it has no late rows"
            hint = "Add watermark: {column: NAME, delay: DURATION}, or remove late."
            yield _error(node, problem, "unused-option", hint)


def watermarks_of_transforms_are_first(plan: Plan) -> Iterator[PlanError]:
    """Checks that a transform with a watermark has no state and no watermark upstream."""
    for node in plan.of("transform"):
        watermark = node.watermark
        if watermark is None:
            continue
        above = [plan.nodes[name] for name in upstream([node.name], plan.nodes)]
        other = next((ancestor for ancestor in above if ancestor.watermark is not None), None)
        if watermark.expression is not None:
            problem = "has a watermark with an expression, which only a source may have"
            hint = f'Compute the column "{watermark.column}" in the transform.'
            yield _error(node, problem, "watermark-expression", hint)
        elif node.name not in plan.streams:
            problem = "has a watermark and no stream upstream"
            yield _error(node, problem, "no-stream", "Remove the watermark.")
        elif node.stateful or node.batch_scoped:
            reason = "has state" if node.stateful else "is computed on each batch"
            problem = f"{reason}, so it cannot define a watermark"
            hint = "Define the watermark on a transform upstream."
            yield _error(node, problem, "late-watermark", hint)
        elif other is not None:
            problem = f"has a watermark, and {other.label} upstream has one too"
            yield _error(node, problem, "two-watermarks", "Remove one of the two watermarks.")


def modes_fit_sinks(plan: Plan) -> Iterator[PlanError]:
    """Checks that a sink supports its mode, and that an upsert has a primary key."""
    for node in plan.of("sink"):
        mode = node.sink.mode
        if (error := unsupported_mode(node, mode)) is not None:
            yield error
        elif mode == "upsert" and not (node.sink.primary_key or node.unknown_key):
            problem = "has mode: upsert and no primary key"
            hint = (
                "Set primary_key: [COLUMN, ...] on the sink or on a node upstream, in SQL "
                "PRIMARY KEY (COLUMN, ...)."
            )
            yield _error(node, problem, "missing-option", hint)


def unsupported_mode(node: Node, mode: str | None) -> PlanError | None:
    """Returns the error of a sink that does not support a mode, or None."""
    needed = {"upsert": Capability.UPSERT, "replace": Capability.REPLACE}.get(mode or "")
    if needed is None or node.can(needed):
        return None
    options = node.component.optional_capabilities.get(needed)
    hint = "Set mode: append" + (f", or set {options}." if options else ".")
    return _error(node, f"does not support mode: {mode}", "unsupported-mode", hint)


def primary_keys_are_used(plan: Plan) -> Iterator[PlanError]:
    """Checks that a sink with a primary key upserts, or uses the key with each mode."""
    for node in plan.of("sink"):
        if (error := unused_primary_key(node)) is not None:
            yield error


def unused_primary_key(node: Node) -> PlanError | None:
    """Returns the error of a sink whose primary key has no effect, or None."""
    sink = node.sink
    used = sink.uses_primary_key or (sink.format and sink.format.carries_operations)
    if not node.spec.primary_key or sink.mode == "upsert" or used:
        return None
    problem = f"has primary_key, which has no effect with mode: {sink.mode}"
    upserts = node.can(Capability.UPSERT)
    hint = "Set mode: upsert, or remove primary_key." if upserts else "Remove primary_key."
    return _error(node, problem, "unused-option", hint)


def certain_sink_errors(node: Node) -> Iterator[PlanError]:
    """Yields errors of a sink that do not depend on its inputs and its wrong options."""
    sink, optional = node.sink, node.component.optional_capabilities
    needed = {"upsert": Capability.UPSERT, "replace": Capability.REPLACE}.get(sink.mode)
    error = None if needed in optional else unsupported_mode(node, sink.mode)
    has_format = sink.format is not None or sink.default_format() is None
    if error is None and has_format and not (node.can(Capability.UPSERT) or optional):
        error = unused_primary_key(node)
    if error is not None:
        yield error


def operations_fit_sinks(plan: Plan) -> Iterator[PlanError]:
    """Checks that a sink applies the operations of its rows."""
    for node in plan.of("sink"):
        if node.operation is not None and (error := unsupported_changes(node)) is not None:
            yield error


def transforms_keep_operations(plan: Plan) -> Iterator[PlanError]:
    """Checks that a transform over changes has no state, and one operation column."""
    for node in plan.of("transform"):
        errors = (unsupported_state(node, plan.nodes), different_operations(node, plan.nodes))
        yield from (error for error in errors if error is not None)


def changes_are_repeatable(plan: Plan) -> Iterator[PlanError]:
    """Checks that rows of changes do not depend on chance or the current time."""
    for node in plan.of("transform"):
        if (error := unrepeatable_changes(node, plan.nodes)) is not None:
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
        yield _error(node, problem, "lookup-of-changes", hint)


def deletes_have_keys(plan: Plan) -> Iterator[PlanError]:
    """Checks that a source whose records without value are deletes has a primary key."""
    for node in plan.of("source"):
        if node.source.deletes_by_key and not node.primary_key:
            problem = "has tombstones: delete and no primary key, whose columns the keys hold"
            hint = "Set primary_key: [COLUMN, ...], in SQL PRIMARY KEY (COLUMN, ...)."
            yield _error(node, problem, "missing-option", hint)


def read_once_before_removed(plan: Plan) -> Iterator[PlanError]:
    """Checks that a source that removes its records after reading has a single query."""
    for node in plan.of("source"):
        if not node.source.reads_once():
            continue
        readers = [query.name for query in plan.queries if node.name in query.stream_nodes]
        if len(readers) > 1:
            problem = f"removes records after reading, and {len(readers)} queries read them"
            hint = f"Keep the records, or define a source for each of {', '.join(readers)}."
            yield _error(node, problem, "read-twice", hint)


def changes_have_no_order(plan: Plan) -> Iterator[PlanError]:
    """Checks that an updating transform does not sort its result, whose changes have no order."""
    for node in plan.of("transform"):
        if node.updating and node.state is not None and node.state.sorts_without_limit:
            problem = "sorts a result that is never final: its changes are written as they occur"
            hint = "Remove ORDER BY, add LIMIT, or sort each batch with scope: batch."
            yield _error(node, problem, "not-streamable", hint)


def tables_are_joined_by_row(plan: Plan) -> Iterator[PlanError]:
    """Checks that rows of a table are joined with each batch, not merged or kept.

    An updating transform merges and keeps the rows of a table that does not change.
    """
    at_once = {name for query in plan.queries if query.whole_input for name in query.batch_nodes}
    streams = plan.streams
    for node in plan.of("transform"):
        relation, streaming = node.relation, frozenset(node.inputs) & streams
        if relation is None or not streaming or node.batch_scoped or node.name in at_once:
            continue
        changing = any(plan.nodes[name].lookup for name in node.inputs)
        if node.updating and not changing:
            continue
        if (changing or not node.stateful) and relation.keeps_table_rows:
            problem = "returns the rows of a table by whether the stream has a match for them"
            hint = "Join the table to the stream, as in FROM stream LEFT JOIN table."
            yield _error(node, problem, "not-streamable", hint)
        if relation.merges_table_rows:
            problem = "merges the rows of a table with each batch of a stream"
            hint = "Write the rows of the table by a query of their own."
            yield _error(node, problem, "not-streamable", hint)


def primary_keys_exist(plan: Plan) -> Iterator[PlanError]:
    """Checks that the columns of the primary key of a source exist."""
    for node in plan.of("source"):
        columns = node.source.columns
        by_key = node.can(Capability.LOOKUP_BY_KEY)
        for index, key in enumerate(node.spec.primary_key):
            names = [*(columns.names if columns is not None else ())]
            names += node.source.metadata_columns if by_key else ()
            if columns is not None and key not in names:
                problem = f'has primary_key "{key}", which is not a column'
                hint = did_you_mean(key, names)
                option = ("primary_key", index)
                yield _option_error(plan, node, problem, "unknown-column", hint, *option)


def operation_columns_exist(plan: Plan) -> Iterator[PlanError]:
    """Checks that the operation column of a source exists and is of type STRING."""
    for node in plan.of("source"):
        assert isinstance(node.spec, SourceSpec)
        columns = node.source.columns
        if columns is None:
            continue
        name = node.spec.operation_column
        known = [*columns.names, *node.source.metadata_columns]
        if name is not None and name not in known:
            problem = f'has operation_column "{name}", which is not a column'
            yield _error(node, problem, "unknown-column", did_you_mean(name, known))
        elif name in columns.names and not pa.types.is_string(columns.field(name).type):
            type_ = sql_name(columns.field(name).type)
            problem = f'has operation_column "{name}", which is {type_}, not STRING'
            yield _error(node, problem, "wrong-type", "Declare the column as STRING.")


def _option_error(
    plan: Plan, node: Node, problem: str, code: str, hint: str | None, *option: str | int
) -> PlanError:
    """Returns an error at an option of a node, or at the option around it."""
    error = OptionError.of(*option, message=f"{node.label} {problem}", code=code, hint=hint)
    error.where = plan.locate(error, node)
    return error


def _error(node: Node, problem: str, code: str, hint: str | None) -> PlanError:
    return PlanError(f"{node.label} {problem}", code=code, hint=hint, where=node.where)


ALL: tuple[Rule, ...] = (
    static_sources_end,
    watermark_columns_exist,
    late_rows_need_a_watermark,
    bounds_are_deterministic,
    watermarks_of_transforms_are_first,
    modes_fit_sinks,
    primary_keys_are_used,
    read_once_before_removed,
    operations_fit_sinks,
    transforms_keep_operations,
    changes_are_repeatable,
    deletes_have_keys,
    changes_meet_the_same_rows,
    changes_have_no_order,
    primary_keys_exist,
    operation_columns_exist,
    tables_are_joined_by_row,
    windows_have_watermarks,
    find_hidden_windows,
)

OF_DECLARED_COLUMNS: tuple[Rule, ...] = (watermark_columns_exist, primary_keys_exist)
"""The rules that hold for a source whose columns are declared and whose options are wrong."""
