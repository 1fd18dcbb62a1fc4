"""`penstock check`: validation of a pipeline."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter, validators

from penstock.cli.options import (
    Dialect,
    Files,
    FunctionFiles,
    Json,
    Overrides,
    Settings,
    Strict,
    with_functions,
)
from penstock.cli.printing import print_json, print_table, print_warnings
from penstock.core.error_report import format_error, to_dicts
from penstock.core.text import plural

if TYPE_CHECKING:
    from penstock.checks import CheckResult

Level = Annotated[
    Literal["static", "plan", "connect", "sample"],
    Parameter(help="Level of the check: static, plan (default), connect or sample."),
]
Rows = Annotated[int, Parameter(metavar="N", help="Number of rows in a sample; 10 by default.")]
Timeout = Annotated[
    float,
    Parameter(
        metavar="SECONDS",
        help="Timeout of external systems; 30 by default.",
        validator=validators.Number(gt=0),
    ),
]


def check(
    files: Files,
    /,
    *,
    overrides: Overrides = (),
    functions: FunctionFiles = (),
    dialect: Dialect = None,
    strict: Strict = False,
    settings: Settings = None,
    level: Level = "plan",
    rows: Rows = 10,
    timeout: Timeout = 30.0,
    json: Json = False,
) -> int:
    """Check a pipeline and report all errors. Writes and consumes nothing.

    Each level includes the previous ones:

      static    the files only, without Spark
      plan      the columns of every node, by Spark
      connect   a connection to every external system
      sample    a few rows of each source, through the plan but not to its sinks

    Compares the pipeline with its state: changes since the last run are listed, and a change that
    the state does not support is an error.

      penstock check late-flights.yaml
      penstock check late-flights.yaml --level static
      penstock check base.yaml production.yaml --level connect --json
    """
    from penstock.spec.front_end import choose

    choose(dialect, strict, settings)
    from penstock.checks import check as run_check

    overrides = with_functions(overrides, functions)
    result = run_check(files, overrides=overrides, level=level, rows=rows, timeout=timeout)
    if json:
        _print_json(result)
    else:
        _print(result)
    return result.exit_code


def _print_json(result: CheckResult) -> None:
    print_json(
        {
            "ok": not result.errors,
            "level": result.level,
            "errors": [fields for error in result.errors for fields in to_dicts(error)],
            "warnings": [fields for error in result.warnings for fields in to_dicts(error)],
            "changes": result.changes,
            "nodes": result.nodes,
        }
    )


def _print(result: CheckResult) -> None:
    print_warnings(result.warnings)
    if result.errors:
        for error in result.errors:
            print(format_error(error) + "\n", file=sys.stderr)
        if len(result.errors) > 1:
            print(plural(len(result.errors), "error"), file=sys.stderr)
        return
    assert result.plan is not None
    rows = []
    for name, node in result.nodes.items():
        facts = [", ".join(map(str, node.columns))] if node.columns and node.kind != "sink" else []
        facts += [] if node.rows is None else [plural(node.rows, "row") + " in the sample"]
        rows.append((node.kind, name, node.type, "; ".join(facts)))
    if result.level != "static":
        print_table(("", "", "", ""), rows, wrap=True)
        print()
    counts = [
        plural(sum(node.kind == kind for node in result.nodes.values()), kind)
        for kind in ("source", "transform", "sink")
    ]
    for change in result.changes:
        print(f"changed since the last run: {change.subject}: {change.reason}")
    print(f"{result.plan.name}: no errors ({', '.join(counts)})")
