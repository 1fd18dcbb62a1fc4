"""Rules of a whole plan. Each rule yields errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa

from penstock.core.errors import PlanError
from penstock.core.text import did_you_mean
from penstock.plan.change_rules import (
    changes_are_repeatable,
    changes_have_no_order,
    changes_meet_the_same_rows,
    operations_fit_sinks,
    transforms_keep_operations,
)
from penstock.plan.dynamic_table_rules import (
    checks_are_in_step,
    checks_meet_the_same_values,
    fills_keep_no_state,
)
from penstock.plan.model import Plan
from penstock.plan.node import Node
from penstock.plan.node_errors import node_error, option_error
from penstock.plan.reached_watermarks import windows_have_watermarks
from penstock.plan.state_rules import executors_write_no_state, messages_outlive_the_disk
from penstock.plan.truncation_rules import truncations_empty_targets
from penstock.plan.updating import find_hidden_windows
from penstock.plan.watermark_rules import (
    bounds_are_deterministic,
    late_rows_need_a_watermark,
    watermark_columns_exist,
    watermarks_of_transforms_are_first,
)
from penstock.sdk import Capability
from penstock.sdk.columns.type_names import sql_name
from penstock.spec.node_models import SourceSpec

Rule = Callable[[Plan], Iterator[PlanError]]


def static_sources_end(plan: Plan) -> Iterator[PlanError]:
    """Checks that the source of a static table ends."""
    for node in plan.of("source"):
        if node.static and not node.lookup and not node.source.is_bounded():
            hint = "Remove static, or the option that makes the source unbounded."
            yield node_error(node, "has no end, so it cannot be static", "static-unbounded", hint)


def sinks_have_streams(plan: Plan) -> Iterator[PlanError]:
    """Checks that every sink has a stream upstream."""
    streams = plan.streams
    for node in plan.of("sink"):
        if node.inputs[0] not in streams:
            problem = "has no stream: all sources upstream are static"
            hint = "Remove static: true from a source."
            yield node_error(node, problem, "no-stream", hint)


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
            yield node_error(node, problem, "missing-option", hint)


def unsupported_mode(node: Node, mode: str | None) -> PlanError | None:
    """Returns the error of a sink that does not support a mode, or None."""
    needed = {"upsert": Capability.UPSERT, "replace": Capability.REPLACE}.get(mode or "")
    if needed is None or node.can(needed):
        return None
    options = node.component.optional_capabilities.get(needed)
    hint = "Set mode: append" + (f", or set {options}." if options else ".")
    return node_error(node, f"does not support mode: {mode}", "unsupported-mode", hint)


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
    return node_error(node, problem, "unused-option", hint)


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


def deletes_have_keys(plan: Plan) -> Iterator[PlanError]:
    """Checks that a source whose records without value are deletes has a primary key."""
    for node in plan.of("source"):
        if node.source.deletes_by_key and not node.primary_key:
            problem = "has tombstones: delete and no primary key, whose columns the keys hold"
            hint = "Set primary_key: [COLUMN, ...], in SQL PRIMARY KEY (COLUMN, ...)."
            yield node_error(node, problem, "missing-option", hint)


def read_once_before_removed(plan: Plan) -> Iterator[PlanError]:
    """Checks that a source that removes its records after reading has a single query."""
    for node in plan.of("source"):
        if not node.source.reads_once():
            continue
        readers = [query.name for query in plan.queries if node.name in query.stream_nodes]
        if len(readers) > 1:
            problem = f"removes records after reading, and {len(readers)} queries read them"
            hint = f"Keep the records, or define a source for each of {', '.join(readers)}."
            yield node_error(node, problem, "read-twice", hint)


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
            yield node_error(node, problem, "not-streamable", hint)
        if relation.merges_table_rows:
            problem = "merges the rows of a table with each batch of a stream"
            hint = "Write the rows of the table by a query of their own."
            yield node_error(node, problem, "not-streamable", hint)


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
                yield option_error(plan, node, problem, "unknown-column", hint, *option)


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
            yield node_error(node, problem, "unknown-column", did_you_mean(name, known))
        elif name in columns.names and not pa.types.is_string(columns.field(name).type):
            type_ = sql_name(columns.field(name).type)
            problem = f'has operation_column "{name}", which is {type_}, not STRING'
            yield node_error(node, problem, "wrong-type", "Declare the column as STRING.")


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
    truncations_empty_targets,
    primary_keys_exist,
    operation_columns_exist,
    tables_are_joined_by_row,
    fills_keep_no_state,
    checks_are_in_step,
    checks_meet_the_same_values,
    windows_have_watermarks,
    find_hidden_windows,
    executors_write_no_state,
    messages_outlive_the_disk,
)

OF_DECLARED_COLUMNS: tuple[Rule, ...] = (watermark_columns_exist, primary_keys_exist)
"""The rules that hold for a source whose columns are declared and whose options are wrong."""
