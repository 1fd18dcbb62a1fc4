"""`penstock check`: what is wrong with a pipeline."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from penstock.cli.options import Files, Json, Sets
from penstock.cli.printing import print_json, print_table, print_warnings
from penstock.core.errors import facts, report
from penstock.core.text import plural

if TYPE_CHECKING:
    from penstock.checks import Checked

Level = Annotated[
    Literal["static", "plan", "connect", "sample"],
    Parameter(help="How deep: static, plan (the default), connect or sample."),
]
Rows = Annotated[int, Parameter(metavar="N", help="How many rows a sample has; 10 by default.")]
Timeout = Annotated[
    float, Parameter(metavar="SECONDS", help="How long systems may take to answer; 30 by default.")
]


def check(
    files: Files,
    /,
    *,
    set: Sets = (),
    level: Level = "plan",
    rows: Rows = 10,
    timeout: Timeout = 30.0,
    json: Json = False,
) -> int:
    """Check a pipeline, and tell all its mistakes at once. Never writes, never consumes.

    Each level includes those before it:

      static    the files alone, in a moment
      plan      the columns of every node, told by Spark
      connect   every outside system answers
      sample    a few rows of each source go through the plan, but not into its sinks

      penstock check late-flights.yaml
      penstock check late-flights.yaml --level static
      penstock check base.yaml production.yaml --level connect --json
    """
    from penstock.checks import check as checked

    found = checked(files, sets=set, level=level, rows=rows, timeout=timeout)
    if json:
        _print_json(found)
    else:
        _print(found)
    return found.exit_code


def _print_json(found: Checked) -> None:
    print_json(
        {
            "ok": not found.errors,
            "level": found.level,
            "errors": [each for error in found.errors for each in facts(error)],
            "warnings": [each for error in found.warnings for each in facts(error)],
            "nodes": found.nodes,
        }
    )


def _print(found: Checked) -> None:
    print_warnings(found.warnings)
    if found.errors:
        for error in found.errors:
            print(report(error) + "\n", file=sys.stderr)
        if len(found.errors) > 1:
            print(plural(len(found.errors), "mistake"), file=sys.stderr)
        return
    assert found.plan is not None
    rows = []
    for name, node in found.nodes.items():
        told = [", ".join(map(str, node.columns))] if node.columns and node.kind != "sink" else []
        told += [] if node.rows is None else [plural(node.rows, "row") + " of the sample"]
        rows.append((node.kind, name, node.type, "; ".join(told)))
    if found.level != "static":
        print_table(("", "", "", ""), rows, wrap=True)
        print()
    counts = [
        plural(sum(node.kind == kind for node in found.nodes.values()), kind)
        for kind in ("source", "transform", "sink")
    ]
    print(f"{found.plan.name}: no mistakes ({', '.join(counts)})")
