"""`penstock tap`: rows of a node of a running pipeline."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter, validators

from penstock.cli.inspect import FilesAndNode, parse_arguments
from penstock.cli.options import Json, Overrides

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.runtime.taps.listener import Tap

Rows = Annotated[
    int,
    Parameter(
        metavar="N", help="Maximum number of rows of a batch; 10 by default.",
        validator=validators.Number(gte=1, lte=1000),
    ),
]  # fmt: skip
Batches = Annotated[
    int | None,
    Parameter(metavar="N", help="End after N batches.", validator=validators.Number(gte=1)),
]
Timeout = Annotated[
    float,
    Parameter(
        metavar="SECONDS", help="End after as many seconds; 60 by default.",
        validator=validators.Number(gt=0),
    ),
]  # fmt: skip


def tap(
    files_and_node: FilesAndNode = (),
    /,
    *,
    overrides: Overrides = (),
    rows: Rows = 10,
    batches: Batches = None,
    timeout: Timeout = 60.0,
    json: Json = False,
) -> int:
    """Show rows of a node of a running pipeline, without another read of its sources.

    Copies the first rows of a batch, of at most one batch per second. The rows of a sink are its
    input. A source has the columns and rows that the pipeline reads. The exit code is 1 if no rows
    arrive.

      penstock tap late-flights.yaml late
      penstock tap late-flights.yaml flights --batches 1 --json
    """
    from penstock.control import PipelineControl

    plan, node = parse_arguments(files_and_node, overrides, "tap")
    control = PipelineControl.of(plan)
    opened = control.tap(node, rows)
    try:
        return _print(opened, batches, timeout, json)
    finally:
        opened.close()


def _print(opened: Tap, batches: int | None, timeout: float, json: bool) -> int:
    from penstock.cli.printing import print_json
    from penstock.sdk.columns.text_table import GrowingTable

    table, count = GrowingTable(), 0
    for answer in opened.follow(timeout):
        if "missed" in answer:
            print(f"batch {answer['batch']}: no rows: {answer['missed']}", file=sys.stderr)
        if "rows" not in answer:
            continue
        if json:
            print_json(_batch(answer))
        elif answer["rows"]:
            header = [(each["name"], _is_number(each["type"])) for each in answer["columns"]]
            cells = [[value or "" for value in row] for row in answer["rows"]]
            print("\n".join(table.lines(header, cells)), flush=True)
        count += bool(answer["rows"])
        if batches is not None and count >= batches:
            break
    if not count:
        print(f"no rows within {timeout:g} s", file=sys.stderr)
    return int(not count)


def _batch(answer: Mapping[str, Any]) -> dict[str, Any]:
    names = ("query", "batch", "time", "skipped", "columns", "rows")
    return {name: answer[name] for name in names}


def _is_number(type_: str) -> bool:
    return type_.partition("(")[0] in {
        "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL",
    }  # fmt: skip
