"""`penstock inspect`: the rows of a node."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter, validators

from penstock.cli.options import (
    Dialect,
    FunctionFiles,
    Json,
    Overrides,
    Settings,
    Strict,
    with_functions,
)
from penstock.cli.printing import print_json, print_warnings
from penstock.core.deferred_pandas import defer_pandas
from penstock.core.error_report import format_error, to_dicts
from penstock.core.errors import PlanError, UserError
from penstock.core.text import did_you_mean, plural
from penstock.core.units import duration_text

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.plan.model import Plan

FilesAndNode = Annotated[
    tuple[str, ...],
    Parameter(name="FILE... NODE", help="The files of the pipeline, and a node."),
]
Rows = Annotated[int, Parameter(metavar="N", help="Maximum number of rows; 10 by default.")]
Timeout = Annotated[
    float,
    Parameter(
        metavar="SECONDS",
        help="Time to wait for rows; 30 by default.",
        validator=validators.Number(gt=0),
    ),
]


def inspect(
    files_and_node: FilesAndNode = (),
    /,
    *,
    overrides: Overrides = (),
    functions: FunctionFiles = (),
    dialect: Dialect = None,
    strict: Strict = False,
    settings: Settings = None,
    rows: Rows = 10,
    timeout: Timeout = 30.0,
    json: Json = False,
) -> int:
    """Show the rows of a node, without access to sinks.

    The rows of a sink are its input. Sources are read from the earliest offset. Nothing is
    acknowledged, deleted or stored. Rows of endless sources are printed as they arrive.

      penstock inspect late-flights.yaml late
      penstock inspect late-flights.yaml hourly --rows 50 --json
    """
    from penstock.spec.front_end import choose

    choose(dialect, strict, settings)
    from penstock import app
    from penstock.sdk.columns.json_text import parsed_rows

    overrides = with_functions(overrides, functions)
    plan, node = parse_arguments(files_and_node, overrides, "inspect")
    if rows < 1:
        raise UserError(f"--rows: expected at least 1, found {rows}", code="usage")
    printer = _Printer()
    on_rows = None if json or plan.bounded else printer
    defer_pandas()
    preview = app.preview(plan, [node], rows=rows, timeout=timeout, on_rows=on_rows)
    table = preview.tables.get(node)
    errors = to_dicts(preview.error) if preview.error else []
    if json:
        columns = [] if table is None else _columns(table)
        records = [] if table is None else parsed_rows(table)
        dead_letters = preview.dead_letters.num_rows
        print_json(
            {
                "node": node,
                "columns": columns,
                "rows": records,
                "dead_letters": dead_letters,
                "errors": errors,
            }
        )
    else:
        if table is not None and not printer.rows and (table.num_rows or not errors):
            printer(node, table)
            if not table.num_rows:
                _print_empty(plan, node, timeout)
        _print_dead_letters(preview.dead_letters)
        if preview.error:
            print(format_error(preview.error), file=sys.stderr)
    return preview.error.policy.exit_code if preview.error else 0


def parse_arguments(
    files_and_node: tuple[str, ...], overrides: tuple[str, ...], command: str
) -> tuple[Plan, str]:
    """Returns the plan and the node of a command line. Raises UserError."""
    from penstock import app

    *files, node = files_and_node or ("",)
    if not files and not node:
        raise UserError(
            "expected the file of the pipeline and the name of a node", code="usage",
            hint=f"Run penstock {command} FILE NODE.",
        )  # fmt: skip
    if not files or Path(node).suffix in {".yaml", ".yml"}:
        plan = app.plan([*files, node], overrides=overrides)
        raise UserError(
            "expected the name of a node after the file", code="usage",
            hint=f"Add one of {', '.join(plan.nodes)}.",
        )  # fmt: skip
    plan = app.plan(files, overrides=overrides)
    print_warnings(plan.warnings)
    if node not in plan.nodes:
        hint = did_you_mean(node, plan.nodes)
        raise PlanError(f'there is no node "{node}"', code="unknown-node", hint=hint)
    return plan, node


def _columns(table: pa.Table) -> list[dict[str, str]]:
    from penstock.sdk.columns.json_mark import column_type

    return [{"name": field.name, "type": column_type(field)} for field in table.schema]


class _Printer:
    """Prints rows as they arrive, below one heading."""

    def __init__(self) -> None:
        from penstock.sdk.columns.text_table import GrowingTable

        self._table = GrowingTable()
        self.rows = 0

    def __call__(self, node: str, rows: pa.Table) -> None:
        from penstock.sdk.columns.text_table import cell, heading

        columns = zip(rows.columns, rows.schema, strict=True)
        cells = zip(
            *([cell(value, field) for value in column] for column, field in columns), strict=True
        )
        lines = self._table.lines([heading(field) for field in rows.schema], list(cells))
        print("\n".join(lines), flush=True)
        self.rows += rows.num_rows


def _print_empty(plan: Plan, node: str, timeout: float) -> None:
    text = f"no rows at {plan.nodes[node].label}"
    print(text if plan.bounded else f"{text} within {duration_text(timeout)}")


def _print_dead_letters(dead_letters: pa.Table) -> None:
    from penstock.runtime.dead_letters.selection import DeadLetterList

    for row in DeadLetterList(dead_letters).counts():
        records = plural(row.count, "record")
        print(f"{records} failed at {row.node}: {row.code}", file=sys.stderr)
