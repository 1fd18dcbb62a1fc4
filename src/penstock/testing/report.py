"""How a case went, for people: what was expected, what came, and where the case stands."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from penstock.core.errors import report
from penstock.core.text import plural, shorten
from penstock.testing.case import Case
from penstock.testing.difference import Difference, Row
from penstock.testing.result import Letters, Result, payload_text

_WIDEST = 60
_MISSING, _UNEXPECTED = "red", "yellow"


def text(result: Result) -> str:
    """The report of one case as plain text."""
    console = Console(file=io.StringIO(), width=160, color_system=None)
    console.print(render(result))
    assert isinstance(console.file, io.StringIO)
    lines = (line.rstrip() for line in console.file.getvalue().splitlines())
    return "\n".join(lines)


def render(result: Result) -> RenderableType:
    """One line for a case that passed; below it, what is wrong with one that did not."""
    mark = Text("ok    ", "green") if result.passed else Text("FAILED", "bold red")
    told = [("  ", ""), (result.case.spec.name, ""), (f"  {place(result.case)}", "dim")]
    head = Text.assemble(mark, *told, (f"  {result.seconds:.2f} s", "dim"))
    return Group(head, *(_indented(part, 8) for part in _problems(result)))


def place(case: Case, *route: str | int) -> str:
    """`file:line` of a case, or of a part of it."""
    where = case.place(*route) if route else case.where
    return f"{where.file}:{where.line}"


def summary(results: list[Result], seconds: float) -> str:
    """`3 passed, 1 failed in 2.1 s`."""
    failed = sum(not result.passed for result in results)
    words = [f"{len(results) - failed} passed", *([f"{failed} failed"] if failed else [])]
    return f"{', '.join(words)} in {seconds:.1f} s"


def _problems(result: Result) -> Iterator[RenderableType]:
    wanted = result.case.spec.error
    if result.no_error and wanted:
        told = " ".join(filter(None, [wanted.code, wanted.message and f'"{wanted.message}"']))
        yield Text(f"expected the error {told}, and the pipeline did not stop")
    if result.error is not None:
        if wanted:
            told = " ".join(filter(None, [wanted.code, wanted.message and f'"{wanted.message}"']))
            yield Text(f"expected the error {told}, and got another:")
        yield Text(report(result.error))
    for node, difference in result.differences.items():
        if difference:
            yield _difference(result.case, node, difference)
    if result.letters:
        yield _letters(result.case, result.letters)


def _difference(case: Case, node: str, difference: Difference) -> RenderableType:
    counts = [
        (len(difference.changed), "different"),
        (len(difference.missing), "missing"),
        (len(difference.unexpected), "unexpected"),
    ]
    told = ", ".join(f"{plural(count, 'row')} {what}" for count, what in counts if count)
    columns = _columns(difference)
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("", *columns):
        table.add_column(name, overflow="fold")
    table.add_column("", no_wrap=True)
    for each in difference.changed:
        row = difference.expected[each.index]
        cells = [
            Text.assemble((_shown(row[name]), _MISSING), ", got ", (_of(each.got, name), "bold"))
            if name in each.columns
            else Text(_of(row, name))
            for name in columns
        ]
        table.add_row("different", *cells, place(case, "expect", node, each.index))
    for at in difference.missing:
        row, here = difference.expected[at], place(case, "expect", node, at)
        table.add_row("missing", *(_of(row, name) for name in columns), here, style=_MISSING)
    for row in difference.unexpected:
        cells = [Text(_of(row, name)) for name in columns]
        table.add_row("unexpected", *cells, "", style=_UNEXPECTED)
    return Group(Text.assemble((node, "bold"), f": {told}"), _indented(table, 2))


def _letters(case: Case, letters: Letters) -> RenderableType:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("", "node", "code", "message", "payload"):
        table.add_column(name, overflow="fold")
    table.add_column("", no_wrap=True)
    for at in letters.missing:
        wanted = (case.spec.dead_letters or [])[at]
        cells = [wanted.node, wanted.code, wanted.message, wanted.payload]
        here = place(case, "dead_letters", at)
        table.add_row("missing", *(each or "" for each in cells), here, style=_MISSING)
    for row in letters.unexpected:
        told = [row["node"], row["code"], row["message"], shorten(payload_text(row), _WIDEST)]
        table.add_row("unexpected", *map(Text, told), "", style=_UNEXPECTED)
    counts = ((letters.missing, "missing"), (letters.unexpected, "unexpected"))
    counted = ", ".join(f"{len(each)} {what}" for each, what in counts if each)
    return Group(Text.assemble(("dead letters", "bold"), f": {counted}"), _indented(table, 2))


def _indented(part: RenderableType, columns: int) -> Padding:
    return Padding(part, (0, 0, 0, columns), expand=False)


def _columns(difference: Difference) -> list[str]:
    """Those that the case names; all where it names none."""
    rows = difference.expected or difference.unexpected
    return list(dict.fromkeys(name for row in rows for name in row))


def _of(row: Row, name: str) -> str:
    return _shown(row[name]) if name in row else ""


def _shown(value: Any) -> str:
    """A value as a case writes it."""
    if isinstance(value, str):
        return shorten(value, _WIDEST)
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, bool) or value is None:
        return json.dumps(value)
    if isinstance(value, Mapping | list):
        return shorten(json.dumps(_plain(value), ensure_ascii=False), _WIDEST)
    return shorten(str(_plain(value)), _WIDEST)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, bytes):
        return value.decode(errors="backslashreplace")
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def facts(result: Result) -> dict[str, Any]:
    """How a case went, for programs."""
    case, error = result.case, result.error
    return {
        "file": case.where.file,
        "line": case.where.line,
        "name": case.spec.name,
        "passed": result.passed,
        "seconds": round(result.seconds, 3),
        "error": {"code": error.code, "message": error.message} if error else None,
        "no_error": result.no_error,
        "nodes": {
            node: {
                "missing": [_plain(each.expected[at]) for at in each.missing],
                "unexpected": [_plain(row) for row in each.unexpected],
                "different": [
                    {"expected": _plain(each.expected[one.index]), "got": _plain(one.got),
                     "columns": list(one.columns)}
                    for one in each.changed
                ],
            }
            for node, each in result.differences.items()
            if each
        },
        "dead_letters": {
            "missing": [
                (case.spec.dead_letters or [])[at].model_dump(exclude_none=True)
                for at in result.letters.missing
            ],
            "unexpected": [
                {key: _plain(row[key]) for key in ("node", "stage", "code", "message", "payload")}
                for row in result.letters.unexpected
            ],
        },
    }  # fmt: skip
