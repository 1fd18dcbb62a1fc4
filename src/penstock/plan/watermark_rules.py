"""Rules of the watermarks of a plan. Each rule yields errors."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from penstock.core.errors import PlanError
from penstock.core.text import did_you_mean
from penstock.plan.functions import used_functions
from penstock.plan.graph import upstream
from penstock.plan.model import Plan
from penstock.plan.node_errors import node_error, option_error
from penstock.sdk.columns.type_names import sql_name
from penstock.sql.determinism import deterministic


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
                yield option_error(plan, node, problem, "duplicate-column", hint, *option)
            continue
        problem = f'has its watermark on "{name}", which is'
        if name not in known:
            similar = did_you_mean(name, known)
            problem = f"{problem} not a column"
            yield option_error(plan, node, problem, "unknown-column", similar, *option)
        elif name in columns.names and not pa.types.is_timestamp(columns.field(name).type):
            problem = f"{problem} {sql_name(columns.field(name).type)}, not TIMESTAMP"
            hint = "Declare the column as TIMESTAMP."
            yield option_error(plan, node, problem, "wrong-type", hint, *option)


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
            yield node_error(node, problem, "watermark-bound", hint)
        elif not deterministic(bound):
            problem = "has a watermark whose bound depends on chance or on the current time"
            hint = "Write an expression of the columns, so that a repeated batch has the same rows."
            yield node_error(node, problem, "watermark-bound", hint)


def late_rows_need_a_watermark(plan: Plan) -> Iterator[PlanError]:
    """Checks that a node whose late rows become dead letters has a watermark."""
    for node in (*plan.of("source"), *plan.of("transform")):
        if node.late == "dead_letter" and node.watermark is None:
            problem = "has late: dead_letter and no watermark, so it has no late rows"
            hint = "Add watermark: {column: NAME, delay: DURATION}, or remove late."
            yield node_error(node, problem, "unused-option", hint)


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
            yield node_error(node, problem, "watermark-expression", hint)
        elif node.name not in plan.streams:
            problem = "has a watermark and no stream upstream"
            yield node_error(node, problem, "no-stream", "Remove the watermark.")
        elif node.stateful or node.batch_scoped:
            reason = "has state" if node.stateful else "is computed on each batch"
            problem = f"{reason}, so it cannot define a watermark"
            hint = "Define the watermark on a transform upstream."
            yield node_error(node, problem, "late-watermark", hint)
        elif other is not None:
            problem = f"has a watermark, and {other.label} upstream has one too"
            yield node_error(node, problem, "two-watermarks", "Remove one of the two watermarks.")
