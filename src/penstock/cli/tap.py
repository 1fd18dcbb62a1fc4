"""`penstock tap`: rows of a node of a running pipeline."""

from __future__ import annotations

import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter, validators

from penstock.cli.inspect import FilesAndNode, parse_arguments
from penstock.cli.options import Json, Overrides
from penstock.cli.server_options import Data, Server, connect, uses_server
from penstock.core.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Mapping

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
    server: Server = None,
    data: Data = None,
) -> int:
    """Show rows of a node of a running pipeline, without another read of its sources.

    With --server, FILE is the name of a pipeline of a server.

    Copies the first rows of a batch, of at most one batch per second. The rows of a sink are its
    input. A source has the columns and rows that the pipeline reads. The exit code is 1 if no rows
    arrive.

      penstock tap late-flights.yaml late
      penstock tap late-flights.yaml flights --batches 1 --json
      penstock tap shop orders --server http://localhost:7077
    """
    words = [Path(word) for word in files_and_node[:-1]]
    if uses_server(server, words):
        answers = _served(server, data, files_and_node, rows, timeout)
    else:
        answers = _local(files_and_node, overrides, rows, timeout)
    with closing(answers):
        return _print(answers, batches, timeout, json)


def _local(
    words: tuple[str, ...], overrides: tuple[str, ...], rows: int, timeout: float
) -> Generator[dict[str, Any], None, None]:
    """Yields the answers of a tap on a run of this machine."""
    from penstock.control import PipelineControl

    plan, node = parse_arguments(words, overrides, "tap")
    with closing(PipelineControl.of(plan).tap(node, rows)) as opened:
        yield from opened.follow(timeout)


def _served(
    server: str | None, data: Path | None, words: tuple[str, ...], rows: int, timeout: float
) -> Generator[dict[str, Any], None, None]:
    """Yields the answers of a tap on a run of a server."""
    if len(words) != 2 or not words[1]:
        raise UserError(
            "expected the name of a pipeline of the server and the name of a node", code="usage",
            hint="List the pipelines with penstock status --all --server URL.",
        )  # fmt: skip
    client, (name, node) = connect(server, data), words
    yield from client.tap(client.pipeline(name).id, node, rows, timeout)


def _print(
    answers: Iterable[Mapping[str, Any]], batches: int | None, timeout: float, json: bool
) -> int:
    from penstock.cli.printing import print_json
    from penstock.sdk.columns.text_table import GrowingTable

    table, count = GrowingTable(), 0
    for answer in answers:
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
