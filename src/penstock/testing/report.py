"""Reports of results, as text and as JSON."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from penstock.core.error_report import format_error
from penstock.core.text import plural, printable, shorten
from penstock.spec.case_models import ExpectedError
from penstock.testing.case_definition import CaseDefinition
from penstock.testing.difference import Difference, Row
from penstock.testing.result import DeadLetterDifference, Result, payload_text

_MAX_WIDTH = 60
_MISSING, _UNEXPECTED = "red", "yellow"


def format_result(result: Result) -> str:
    """Returns the report of a case as plain text."""
    console = Console(file=io.StringIO(), width=160, color_system=None)
    console.print(render_result(result))
    assert isinstance(console.file, io.StringIO)
    lines = (line.rstrip() for line in console.file.getvalue().splitlines())
    return "\n".join(lines)


def render_result(result: Result) -> RenderableType:
    """Returns one line for a case, followed by the problems of a failed case."""
    mark = Text("ok    ", "green") if result.passed else Text("FAILED", "bold red")
    where = _format_location(result.case)
    line = Text.assemble(
        mark, f"  {result.case}", (f"  {where}", "dim"), (f"  {result.seconds:.2f} s", "dim")
    )
    return Group(line, *(_indent(problem, 8) for problem in _problems(result)))


def format_summary(results: Sequence[Result], seconds: float) -> str:
    """Returns the numbers of cases and the time: `3 passed, 1 failed in 2.1 s`."""
    failed = sum(not result.passed for result in results)
    counts = [f"{len(results) - failed} passed", *([f"{failed} failed"] if failed else [])]
    return f"{', '.join(counts)} in {seconds:.1f} s"


def result_to_dict(result: Result) -> dict[str, Any]:
    """Returns the result as JSON values."""
    case, error, dead_letters = result.case, result.error, result.dead_letters
    return {
        "file": case.where.file,
        "line": case.where.line,
        "name": case.spec.name,
        "passed": result.passed,
        "seconds": round(result.seconds, 3),
        "error": {"code": error.code, "message": error.message} if error else None,
        "no_error": result.error_missing,
        "nodes": {
            node: {
                "missing": [_to_json(difference.expected[index]) for index in difference.missing],
                "unexpected": [_to_json(row) for row in difference.unexpected],
                "different": [
                    {"expected": _to_json(difference.expected[row.index]),
                     "got": _to_json(row.actual), "columns": list(row.columns)}
                    for row in difference.changed
                ],
            }
            for node, difference in result.differences.items()
            if difference
        },
        "dead_letters": {
            "missing": [
                (case.spec.dead_letters or [])[index].model_dump(exclude_none=True)
                for index in dead_letters.missing
            ],
            "unexpected": [
                {key: _to_json(row[key]) for key in ("node", "stage", "code", "message", "payload")}
                for row in dead_letters.unexpected
            ],
        },
    }  # fmt: skip


def _format_location(case: CaseDefinition, *route: str | int) -> str:
    where = case.locate(*route) if route else case.where
    return f"{where.file}:{where.line}"


def _problems(result: Result) -> Iterator[RenderableType]:
    expected = result.case.spec.error
    if expected and result.error_missing:
        yield Text(f"expected {_describe_error(expected)}, found no error")
    if result.error is not None:
        if expected:
            yield Text(f"expected {_describe_error(expected)}, found another error:")
        yield Text(format_error(result.error))
    for node, difference in result.differences.items():
        if difference:
            yield _render_difference(result.case, node, difference)
    if result.dead_letters:
        yield _render_dead_letters(result.case, result.dead_letters)


def _describe_error(error: ExpectedError) -> str:
    parts = [error.code, error.message and f'"{error.message}"']
    text = " ".join(part for part in parts if part)
    return f"the error {text}" if text else "an error"


def _render_difference(case: CaseDefinition, node: str, difference: Difference) -> RenderableType:
    counts = [
        (len(difference.changed), "different"),
        (len(difference.missing), "missing"),
        (len(difference.unexpected), "unexpected"),
    ]
    summary = ", ".join(f"{plural(count, 'row')} {state}" for count, state in counts if count)
    columns = difference.columns
    table = _table("", *columns)
    for changed in difference.changed:
        row = difference.expected[changed.index]
        cells = [
            Text.assemble(
                (_format_cell(row, name), _MISSING),
                ", got ",
                (_format_cell(changed.actual, name), "bold"),
            )
            if name in changed.columns
            else Text(_format_cell(row if name in row else changed.actual, name))
            for name in columns
        ]
        where = _format_location(case, *difference.route, changed.index)
        table.add_row("different", *cells, where)
    for index in difference.missing:
        cells = [Text(_format_cell(difference.expected[index], name)) for name in columns]
        where = _format_location(case, *difference.route, index)
        table.add_row("missing", *cells, where, style=_MISSING)
    for row in difference.unexpected:
        cells = [Text(_format_cell(row, name)) for name in columns]
        table.add_row("unexpected", *cells, "", style=_UNEXPECTED)
    return Group(Text.assemble((node, "bold"), f": {summary}"), _indent(table, 2))


def _render_dead_letters(case: CaseDefinition, difference: DeadLetterDifference) -> RenderableType:
    table = _table("", "node", "code", "message", "payload")
    for index in difference.missing:
        expected = (case.spec.dead_letters or [])[index]
        texts = [expected.node, expected.code, expected.message, expected.payload]
        where = _format_location(case, "dead_letters", index)
        table.add_row("missing", *(Text(text or "") for text in texts), where, style=_MISSING)
    for row in difference.unexpected:
        payload = shorten(payload_text(row), _MAX_WIDTH)
        texts = [row["node"], row["code"], row["message"], payload]
        cells = [Text(printable(text or "")) for text in texts]
        table.add_row("unexpected", *cells, "", style=_UNEXPECTED)
    counts = ((difference.missing, "missing"), (difference.unexpected, "unexpected"))
    summary = ", ".join(
        f"{len(dead_letters)} {state}" for dead_letters, state in counts if dead_letters
    )
    return Group(Text.assemble(("dead letters", "bold"), f": {summary}"), _indent(table, 2))


def _table(*columns: str) -> Table:
    """Returns a table with these columns and a column of locations."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in columns:
        table.add_column(Text(printable(name)), overflow="fold")
    table.add_column("", no_wrap=True)
    return table


def _indent(part: RenderableType, columns: int) -> Padding:
    return Padding(part, (0, 0, 0, columns), expand=False)


def _format_cell(row: Row, name: str) -> str:
    return _format_value(row[name]) if name in row else ""


def _format_value(value: Any) -> str:
    """Returns a value in the notation of a case."""
    if isinstance(value, str):
        return shorten(printable(value), _MAX_WIDTH)
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, bool) or value is None:
        return json.dumps(value)
    if isinstance(value, Mapping | list):
        return shorten(printable(json.dumps(_to_json(value), ensure_ascii=False)), _MAX_WIDTH)
    return shorten(printable(str(_to_json(value))), _MAX_WIDTH)


def _to_json(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _to_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_to_json(item) for item in value]
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, bytes):
        return value.decode(errors="backslashreplace")
    return value if isinstance(value, str | int | float | bool | None) else str(value)
