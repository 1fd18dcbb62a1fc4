"""`penstock inspect`: the rows that flow at a node."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from penstock.cli.options import Json, Sets
from penstock.cli.printing import print_json, print_warnings
from penstock.core.errors import PlanError, UserError, facts, report
from penstock.core.text import did_you_mean, plural
from penstock.core.units import duration_text

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.plan.model import Plan

FilesAndNode = Annotated[
    tuple[str, ...], Parameter(name="FILE... NODE", help="The pipeline's files, and a node's name.")
]
Rows = Annotated[int, Parameter(metavar="N", help="At most so many rows; 10 by default.")]
Timeout = Annotated[
    float, Parameter(metavar="SECONDS", help="How long to wait for rows; 30 by default.")
]


def inspect(
    files_and_node: FilesAndNode = (),
    /,
    *,
    set: Sets = (),
    rows: Rows = 10,
    timeout: Timeout = 30.0,
    json: Json = False,
) -> int:
    """Show the rows that flow at a node, without touching sinks.

    A source or a transform shows what it gives, a sink what would be written there. Sources are
    read from their beginning; nothing is acknowledged, deleted or kept.

      penstock inspect late-flights.yaml late
      penstock inspect late-flights.yaml hourly --rows 50 --json
    """
    from penstock import app

    plan, node = _asked(files_and_node, set)
    if rows < 1:
        raise UserError("--rows must be at least 1", code="usage")
    seen = app.observe(plan, [node], rows=rows, timeout=timeout)
    table = seen.tables.get(node)
    errors = facts(seen.error) if seen.error else []
    if json:
        columns = [] if table is None else _columns(table)
        found = [] if table is None else table.to_pylist()
        letters = seen.dead_letters.num_rows
        print_json(
            {
                "node": node,
                "columns": columns,
                "rows": found,
                "dead_letters": letters,
                "errors": errors,
            }
        )
    else:
        if table is not None and (table.num_rows or not errors):
            _print(table, f"no rows came to {plan.nodes[node].label}", plan, timeout)
        _print_letters(seen.dead_letters)
        if seen.error:
            print(report(seen.error), file=sys.stderr)
    return seen.error.conduct.exit_code if seen.error else 0


def _asked(files_and_node: tuple[str, ...], sets: tuple[str, ...]) -> tuple[Plan, str]:
    from penstock import app

    *files, node = files_and_node or ("",)
    if not files and not node:
        raise UserError(
            "expected the pipeline's file and a node's name", code="usage",
            hint="penstock inspect FILE NODE",
        )  # fmt: skip
    if not files or Path(node).suffix in {".yaml", ".yml"}:
        plan = app.plan([*files, node], sets=sets)
        raise UserError(
            "expected a node's name after the file", code="usage",
            hint=f"its nodes: {', '.join(plan.nodes)}",
        )  # fmt: skip
    plan = app.plan(files, sets=sets)
    print_warnings(plan.warnings)
    if node not in plan.nodes:
        hint = did_you_mean(node, plan.nodes)
        raise PlanError(f'there is no node "{node}"', code="unknown-node", hint=hint)
    return plan, node


def _columns(table: pa.Table) -> list[dict[str, str]]:
    from penstock.sdk.kit.columns import sql_name

    return [{"name": field.name, "type": sql_name(field.type)} for field in table.schema]


def _print(table: pa.Table, nothing: str, plan: Plan, timeout: float) -> None:
    from penstock.sdk.kit.texttable import cell, heading, text_table

    rows = zip(*([cell(value) for value in column] for column in table.columns), strict=True)
    print("\n".join(text_table(map(heading, table.schema), rows)))
    if not table.num_rows:
        print(nothing if plan.bounded else f"{nothing} within {duration_text(timeout)}")


def _print_letters(letters: pa.Table) -> None:
    from penstock.runtime.selection import counts

    for each in counts(letters):
        records = plural(each.count, "record")
        print(f"{records} failed at {each.node}: {each.code}", file=sys.stderr)
